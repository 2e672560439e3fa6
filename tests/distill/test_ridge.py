"""The best linear map, in closed form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from as2d_cli.catalog.graphs.head import POOL
from as2d_cli.distill.cache import Cache

torch = pytest.importorskip("torch")

from as2d_cli.distill.batches import NO_TEXT, Batch, batches  # noqa: E402
from as2d_cli.distill.network import Adapter  # noqa: E402
from as2d_cli.distill.ridge import fit_ridge  # noqa: E402

Array = npt.NDArray[Any]

WIDTH, WINDOWS = 6, 40


def made(folder: Path, noise: float) -> tuple[list[Batch], Adapter, Adapter]:
    """Windows, an adapter to fit, and the one whose output their hints are, plus noise."""
    torch.manual_seed(0)
    true, adapter = Adapter(8, WIDTH, 0), Adapter(8, WIDTH, 0)
    for one in (true, adapter):
        one.norm.weight.data.uniform_(0.5, 1.5)
    adapter.norm.load_state_dict(true.norm.state_dict())
    true.join.bias.data += 3
    random = np.random.default_rng(0)
    cache = Cache(folder, 8, WIDTH, {})
    for index in range(WINDOWS):
        lines = 48 if index % 2 else 62  # no multiple of 32: what is filled up has no hints
        encoding = (random.standard_normal((lines, 8)) + 1).astype(np.float16)
        joined = torch.from_numpy(encoding)[: lines // POOL * POOL].bfloat16().float()
        pooled = joined.reshape(1, -1, 8)
        with torch.no_grad():
            hints = true(pooled, torch.ones(1, lines // POOL, dtype=torch.bool))[0].numpy()
        hints = hints + noise * random.standard_normal(hints.shape)
        cache.add(str(index), False, 1.0, (1,), encoding, hints.astype(np.float16))
    groups = [list(range(15)), list(range(15, WINDOWS))]
    return list(batches(cache, cache.entries, [NO_TEXT] * WINDOWS, groups)), adapter, true


def outputs(adapter: Adapter, found: list[Batch]) -> tuple[Array, Array]:
    with torch.no_grad():
        pairs = [(adapter(b.encoding.float(), b.mask)[b.hinted], b.hints[b.hinted]) for b in found]
    said, hints = (torch.cat(side).numpy() for side in zip(*pairs, strict=True))
    return said, hints


def test_a_known_map_is_found_again(tmp_path: Path) -> None:
    found, adapter, true = made(tmp_path, noise=0.0)
    explained = fit_ridge(adapter, found)
    assert explained == pytest.approx(1.0, abs=2e-3)
    said, hints = outputs(adapter, found)
    assert np.abs(said - hints).max() < 0.05 * hints.std()
    with torch.no_grad():
        assert (adapter.join.bias - true.join.bias).abs().max() < 0.1


def test_the_share_that_is_explained_is_of_the_variance(tmp_path: Path) -> None:
    found, adapter, _ = made(tmp_path, noise=0.5)
    explained = fit_ridge(adapter, found)
    said, hints = outputs(adapter, found)
    # Over all outputs together, about the mean of each.
    error = np.square(said - hints).sum()
    variance = np.square(hints - hints.mean(0)).sum()
    assert 0.3 < explained < 0.9
    assert explained == pytest.approx(1 - error / variance, abs=1e-3)


def test_no_other_map_is_better(tmp_path: Path) -> None:
    found, adapter, _ = made(tmp_path, noise=0.5)
    fit_ridge(adapter, found)
    said, hints = outputs(adapter, found)
    joined = [b.encoding.float().reshape(len(b.mask), -1, POOL * 8)[b.hinted] for b in found]
    with torch.no_grad():
        x = adapter.norm(torch.cat(joined)).numpy()
    x = np.concatenate([x, np.ones((len(x), 1))], 1)
    best = x @ np.linalg.lstsq(x, hints, rcond=None)[0]
    least = np.square(best - hints).sum()
    assert least <= np.square(said - hints).sum() < 1.005 * least


def test_batching_does_not_matter(tmp_path: Path) -> None:
    found, adapter, _ = made(tmp_path, noise=0.5)
    explained = fit_ridge(adapter, found)
    weight = adapter.join.weight.detach().clone()
    assert fit_ridge(adapter, reversed(found)) == pytest.approx(explained, abs=1e-5)
    np.testing.assert_allclose(adapter.join.weight.detach(), weight, atol=1e-4)


def test_nothing_but_the_map_is_set(tmp_path: Path) -> None:
    found, adapter, _ = made(tmp_path, noise=0.0)
    norm = {name: value.clone() for name, value in adapter.norm.state_dict().items()}
    fit_ridge(adapter, found)
    for name, value in adapter.norm.state_dict().items():
        assert torch.equal(value, norm[name])
    assert adapter.join.weight.requires_grad
