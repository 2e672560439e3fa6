"""From ``head.npz`` to a bundle."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from as2d_cli.catalog.build import Recipe, build, revision
from as2d_cli.catalog.bundle import DESCRIPTION, Bundle, BundleError, sha256_of
from as2d_cli.catalog.graphs.head import PLACES, POOL, TILE, WINDOW_POSITIONS
from as2d_cli.catalog.graphs.whisper import any_choice
from as2d_cli.catalog.probe import measure_row_invariance
from as2d_cli.catalog.runtime import GraphError, open_session
from as2d_cli.catalog.vocabulary import Vocabulary
from as2d_cli.catalog.weights.head import HeadFile, write_head
from tests.catalog.heads import (
    CONTEXT,
    HEADS,
    LAYERS,
    LETTERS,
    TEXT,
    WIDTH,
    adapter_head,
    ctc_head,
)
from tests.catalog.material import WIDTH as ENCODING_WIDTH
from tests.catalog.material import put, whisper_files


def built(folder: Path, file: HeadFile, target: str = "") -> Bundle:
    source = folder / "head.npz"
    write_head(source, file)
    (folder / "bundle").mkdir()
    recipe = Recipe(
        id="mine",
        role="target",
        family="head",
        licence="unknown",
        languages=(),
        sources={"head.npz": source},
        digests={"head.npz": sha256_of(source)},
        target=target,
    )
    return build(recipe, folder / "bundle")


@pytest.fixture(scope="module")
def adapter(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return built(tmp_path_factory.mktemp("adapter"), adapter_head(), target="tiny")


@pytest.fixture(scope="module")
def ctc(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return built(tmp_path_factory.mktemp("ctc"), ctc_head())


def test_an_adapters_bundle_says_what_it_is(adapter: Bundle) -> None:
    assert Bundle.read(adapter.path) == adapter
    assert (adapter.id, adapter.family, adapter.role) == ("mine", "head", "drafter")
    assert (adapter.kind, adapter.target, adapter.builder) == ("adapter", "tiny", revision("head"))
    assert (adapter.licence, adapter.languages) == ("MIT", ("en", "de"))
    assert (adapter.encoding_width, adapter.frames_per_position) == (ENCODING_WIDTH, POOL)
    assert (adapter.layers, adapter.heads, adapter.head_size) == (LAYERS, HEADS, WIDTH // HEADS)
    assert (adapter.width, adapter.context) == (WIDTH, CONTEXT)
    first = len(TEXT)
    assert adapter.tokens == {"start": first, "no_timestamps": first + 1, "end": first + 2}
    assert adapter.suppress == (first, first + 1)
    assert adapter.vocabulary() == Vocabulary((*TEXT, b"", b"", b""), merge_ranks=False)
    assert adapter.row_invariance == "any"
    lines = (adapter.path / DESCRIPTION).read_text().splitlines()
    frames = f"frames_per_position: {POOL}"
    for line in ("kind: adapter", "target: tiny", "encoding_width: 32", frames):
        assert line in lines


def test_a_ctc_heads_bundle_says_what_it_is(ctc: Bundle) -> None:
    assert Bundle.read(ctc.path) == ctc
    assert (ctc.kind, ctc.encoder, ctc.decoder) == ("ctc", "encoder.onnx", "encoder.onnx")
    assert (ctc.layers, ctc.heads, ctc.head_size, ctc.context) == (0, 0, 0, 0)
    assert not ctc.tokens
    assert ctc.vocabulary() == Vocabulary((*TEXT, *[b""] * 4), merge_ranks=False)
    assert ctc.vocabulary_size == len(TEXT) + 4
    files = [record.name for record in ctc.files]
    assert files == ["encoder.onnx", "encoder.data", "vocabulary.bin"]


def lines(tiles: int) -> Any:
    random = np.random.default_rng(3)
    return random.standard_normal((1, TILE * tiles, ENCODING_WIDTH)).astype(np.float32)


def test_the_adapters_encoder_feeds_its_decoder(adapter: Bundle) -> None:
    encoder, decoder = open_session(adapter.encoder_path), open_session(adapter.decoder_path)
    names = [value.name for value in encoder.get_outputs()]
    cross = dict(zip(names, encoder.run(None, {"encoding": lines(2)}), strict=True))
    assert cross["cross_k_0"].shape == (HEADS, 2, WIDTH // HEADS // 4, 16, 4)
    shape = (1, HEADS, CONTEXT, WIDTH // HEADS)
    sketch = cross.pop("sketch")
    assert sketch.shape == (1, 2 * 16 * PLACES)
    assert set(sketch[0].tolist()) <= {*range(LETTERS), adapter.vocabulary_size}
    feeds = {name: values[None] for name, values in cross.items()}
    for layer in range(LAYERS):
        for kind in "kv":
            feeds[f"past_{kind}_{layer}"] = np.zeros(shape, dtype=np.float32)
    feeds["tokens"] = np.array([[adapter.tokens["start"], adapter.tokens["no_timestamps"]]])
    feeds["positions"] = np.arange(2)
    feeds["places"] = np.array([[0, 0, 0, 0], [0, 1, 0, 0]], dtype=np.int32)
    feeds |= any_choice(2)
    feeds["suppress"] = np.zeros(adapter.vocabulary_size, dtype=np.float32)
    (chosen,) = decoder.run(["next"], feeds)
    assert chosen.shape == (1, 2)
    assert 0 <= chosen.min() <= chosen.max() < adapter.vocabulary_size


def test_an_adapter_without_a_sketch(tmp_path: Path) -> None:
    bundle = built(tmp_path, adapter_head(sketch=False), target="tiny")
    names = {value.name for value in open_session(bundle.encoder_path).get_outputs()}
    assert names == {
        f"cross_{kind}_{layer}" for kind in ("k", "k_scale", "v", "v_scale") for layer in range(2)
    }


def test_a_ctc_head_says_a_letter_or_the_blank_for_every_line(ctc: Bundle) -> None:
    (letters,) = open_session(ctc.encoder_path).run(None, {"encoding": lines(3)})
    assert letters.shape == (1, 3 * TILE)
    assert len(set(letters[0].tolist())) > 1
    assert set(letters[0].tolist()) <= {*range(LETTERS), ctc.vocabulary_size - 1}


def test_a_head_for_another_target_than_expected(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="is a head for 'tiny', not for 'large'"):
        built(tmp_path, adapter_head(), target="large")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("encoding_width: 32", "encoding_width: wide"), "'encoding_width' is 'wide'"),
        (("kind: adapter\n", ""), "0 lines for 'kind'"),
        (("target: tiny\n", "target: tiny\ntarget: large\n"), "2 lines for 'target'"),
        ((f"frames_per_position: {POOL}\n", ""), "0 lines for 'frames_per_position'"),
    ],
)
def test_a_heads_text_that_was_edited(
    tmp_path: Path, adapter: Bundle, change: tuple[str, str], said: str
) -> None:
    folder = shutil.copytree(adapter.path, tmp_path / "edited")
    text = folder / DESCRIPTION
    assert change[0] in text.read_text()
    text.write_text(text.read_text().replace(*change))
    with pytest.raises(BundleError, match=said):
        Bundle.read(folder)


def test_other_families_do_not_speak_of_targets(tmp_path: Path) -> None:
    sources = put(tmp_path / "mine", whisper_files())
    (tmp_path / "bundle").mkdir()
    recipe = Recipe(
        id="tiny",
        role="target",
        family="whisper",
        licence="MIT",
        languages=("en",),
        sources={path.name: path for path in sources.iterdir()},
        digests={},
    )
    bundle = build(recipe, tmp_path / "bundle")
    text = (bundle.path / DESCRIPTION).read_text()
    assert not [key for key in ("kind", "target", "encoding_width") if f"\n{key}:" in text]
    assert Bundle.read(bundle.path).target == ""


def test_rows_are_measured_on_a_heads_whole_window(
    adapter: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: set[tuple[int, ...]] = set()

    class Watched:
        def __init__(self, path: Path, threads: int) -> None:
            self._session = open_session(path, threads)

        def run(self, names: Any, feeds: dict[str, Any]) -> Any:
            seen.add((feeds["cross_k_0"].shape[2], feeds["cross_v_1"].shape[3]))
            return self._session.run(names, feeds)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._session, name)

    monkeypatch.setattr("as2d_cli.catalog.probe.open_session", Watched)
    assert measure_row_invariance(adapter.decoder_path) == "any"
    assert seen == {(WINDOW_POSITIONS // 16, WINDOW_POSITIONS // 4)}


def test_a_decoder_that_does_not_tell_its_window(adapter: Bundle, tmp_path: Path) -> None:
    folder = shutil.copytree(adapter.path, tmp_path / "edited")
    model = onnx.load_model(folder / "decoder.onnx", load_external_data=False)
    node = next(n for n in model.graph.node if n.op_type == "CrossAttention")
    next(a for a in node.attribute if a.name == "positions").i = 400
    (folder / "decoder.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(GraphError, match="how many positions"):
        measure_row_invariance(folder / "decoder.onnx")
