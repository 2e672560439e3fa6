"""Windows of the cache as tensors."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from as2d_cli.catalog.graphs.head import POOL, TILE, WINDOW_POSITIONS
from as2d_cli.distill.cache import Entry
from tests.distill.material import ENCODING_WIDTH, windows

torch = pytest.importorskip("torch")

from as2d_cli.distill.batches import (  # noqa: E402
    IGNORED,
    Text,
    batches,
    group_windows,
    make_batch,
)


def entries_of(lines: Sequence[int]) -> list[Entry]:
    return [
        Entry(str(index), False, n / 50, (1,), 0, n, 0, n // POOL) for index, n in enumerate(lines)
    ]


def test_a_batch_holds_what_the_cache_does(tmp_path: Path) -> None:
    cache = windows(tmp_path, [[1, 2], [3], [2]], vocabulary=4, lines=(50, 64, 130))
    texts = [Text([9, 9, 1, 8], [2, 3]), Text([9, 9], []), Text([9, 9, 7], [5])]
    batch = make_batch(cache, cache.entries, texts)
    # A multiple of 32 lines, two a position.
    assert batch.encoding.shape == (3, 160, ENCODING_WIDTH)
    assert batch.encoding.dtype == torch.bfloat16
    for index, entry in enumerate(cache.entries):
        expected = torch.from_numpy(cache.encoding(entry)).bfloat16()
        assert torch.equal(batch.encoding[index, : entry.lines], expected)
        assert not batch.encoding[index, entry.lines :].any()
        hints = torch.from_numpy(cache.hints(entry)).float()
        assert torch.equal(batch.hints[index, : entry.positions], hints)
        assert not batch.hints[index, entry.positions :].any()
    # The graph has zeros up to a multiple of 32 lines to look at.
    assert batch.mask.sum(1).tolist() == [32, 32, 80]
    assert batch.hinted.sum(1).tolist() == [25, 32, 65]
    for mask in (batch.mask, batch.hinted):
        assert torch.equal(mask, mask.sort(1, descending=True).values)
    assert batch.tokens.tolist() == [
        [9, 9, 1, 8],
        [9, 9, IGNORED, IGNORED],
        [9, 9, 7, IGNORED],
    ]
    assert batch.letters.tolist() == [2, 3, 5]
    assert batch.letter_counts.tolist() == [2, 0, 1]


def test_batches_follow_the_groups(tmp_path: Path) -> None:
    cache = windows(tmp_path, [[1], [2], [3]], vocabulary=4)
    made = list(batches(cache, cache.entries, [Text([n], [n]) for n in (5, 6, 7)], [[2, 0], [1]]))
    assert [batch.tokens.tolist() for batch in made] == [[[7], [5]], [[6]]]
    assert [batch.letters.tolist() for batch in made] == [[7, 5], [6]]
    expected = torch.from_numpy(cache.encoding(cache.entries[2])).bfloat16()
    assert torch.equal(made[0].encoding[0], expected)


def test_groups_have_every_window_once() -> None:
    entries = entries_of(np.random.default_rng(0).integers(60, 1500, 300).tolist())
    groups = group_windows(entries, random.Random(0))
    assert sorted(index for group in groups for index in group) == list(range(300))
    assert all(groups)
    for group in groups:
        longest = max(-(-entries[index].lines // TILE) * 16 for index in group)
        assert longest * len(group) <= 3 * WINDOW_POSITIONS
        # Little of a batch is nothing.
        shortest = min(entries[index].lines for index in group)
        assert POOL * longest - shortest < TILE + 200 + 1500 * len(group) / 300 * 2


def test_groups_are_as_large_as_they_may_be() -> None:
    groups = group_windows(entries_of([1500] * 24), random.Random(0))
    assert [len(group) for group in groups] == [3] * 8
    assert sorted(map(len, group_windows(entries_of([64] * 100), random.Random(0)))) == [4, 48, 48]


def test_a_longer_window_begins_a_new_group() -> None:
    groups = group_windows(entries_of([64] * 20 + [1500]), random.Random(0))
    assert sorted(map(len, groups)) == [1, 20] or sorted(map(len, groups)) == [10, 11]


def test_order_is_random_and_the_seeds() -> None:
    entries = entries_of(np.random.default_rng(0).integers(60, 1500, 200).tolist())
    first = group_windows(entries, random.Random(1))
    assert first == group_windows(entries, random.Random(1))
    assert first != group_windows(entries, random.Random(2))
    means = [np.mean([entries[index].lines for index in group]) for group in first]
    assert means != sorted(means)
    # Windows meet others from pass to pass, not only batches each other.
    assert {frozenset(group) for group in first} != {
        frozenset(group) for group in group_windows(entries, random.Random(2))
    }
