"""Windows of the cache as tensors, several at a time."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from as2d_cli.catalog.graphs.head import POOL, TILE, WINDOW_POSITIONS
from as2d_cli.distill.cache import Cache, Entry

__all__ = [
    "IGNORED",
    "NO_TEXT",
    "Batch",
    "Groups",
    "Text",
    "batches",
    "group_windows",
    "make_batch",
]

Groups = list[list[int]]

IGNORED = -100
"""A token that is none: beyond the end of a text."""

_POSITIONS = 3 * WINDOW_POSITIONS
"""Positions in a batch: three windows of half a minute. With four times as many there are a quarter
of the steps, and the adapter explains far less of the hints after as many passes."""

_MOST_WINDOWS = 48


@dataclass(frozen=True)
class Batch:
    """Some windows.

    Attributes:
        encoding: bfloat16 [windows, lines, encoding width], zeros after what there is.
        mask: bool [windows, positions]: what the head's graph has for a window.
        hints: float32 [windows, positions, width] of the initial drafter's encoder.
        hinted: bool [windows, positions]: where there are any.
        tokens: int64 [windows, tokens]: prompt, text, end; then `IGNORED`.
        letters: int64 [all letters]: of one window's text after the other's.
        letter_counts: int64 [windows].
    """

    encoding: Tensor
    mask: Tensor
    hints: Tensor
    hinted: Tensor
    tokens: Tensor
    letters: Tensor
    letter_counts: Tensor


@dataclass(frozen=True)
class Text:
    """What the target says in a window: prompt, pieces and end; and the letters of it."""

    tokens: Sequence[int]
    letters: Sequence[int]


NO_TEXT = Text((0,), ())


def padded(lines: int) -> int:
    """Lines that the graph is given for so many."""
    return -(-lines // TILE) * TILE


def make_batch(cache: Cache, entries: Sequence[Entry], texts: Sequence[Text]) -> Batch:
    """The windows of ``entries``, which say ``texts``."""
    lines = max(padded(entry.lines) for entry in entries)
    positions = lines // POOL
    first = cache.encoding(entries[0])
    encoding = torch.zeros((len(entries), lines, first.shape[1]), dtype=torch.bfloat16)
    width = cache.hints(entries[0]).shape[1]
    hints = np.zeros((len(entries), positions, width), dtype=np.float32)
    mask = torch.zeros((len(entries), positions), dtype=torch.bool)
    hinted = torch.zeros_like(mask)
    tokens = torch.full((len(entries), max(len(text.tokens) for text in texts)), IGNORED)
    for index, (entry, text) in enumerate(zip(entries, texts, strict=True)):
        encoding[index, : entry.lines] = torch.from_numpy(cache.encoding(entry))
        hints[index, : entry.positions] = cache.hints(entry)
        mask[index, : padded(entry.lines) // POOL] = True
        hinted[index, : entry.positions] = True
        tokens[index, : len(text.tokens)] = torch.tensor(text.tokens)
    letters = torch.tensor([letter for text in texts for letter in text.letters], dtype=torch.long)
    counts = torch.tensor([len(text.letters) for text in texts])
    return Batch(encoding, mask, torch.from_numpy(hints), hinted, tokens, letters, counts)


def batches(
    cache: Cache, entries: Sequence[Entry], texts: Sequence[Text], groups: Groups
) -> Iterator[Batch]:
    """The windows of every group, read as they are needed."""
    for group in groups:
        yield make_batch(cache, [entries[i] for i in group], [texts[i] for i in group])


def group_windows(entries: Sequence[Entry], shuffle: random.Random) -> Groups:
    """All windows once, by index, those of about one length together, in a random order."""
    order = sorted(range(len(entries)), key=lambda i: entries[i].lines + shuffle.random() * 200)
    groups: list[list[int]] = [[]]
    longest = 0
    for index in order:
        longest = max(longest, padded(entries[index].lines) // POOL)
        group = groups[-1]
        if group and (longest * (len(group) + 1) > _POSITIONS or len(group) >= _MOST_WINDOWS):
            groups.append([])
            longest = padded(entries[index].lines) // POOL
        groups[-1].append(index)
    shuffle.shuffle(groups)
    return groups
