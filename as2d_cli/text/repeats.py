"""Text that goes round in circles: what a model says when it has lost the thread."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Repeat", "compression_ratio", "longest_repeat", "suspicions"]

MOST_COMPRESSION = 2.4
"""Text that compresses better is taken for a loop (Radford et al. 2022, section 4.5)."""

_LEAST_TIMES = 4
_LEAST_TOKENS = 16
"""People say "no, no, no, no"; four times in a row and as long as a sentence is a loop."""


@dataclass(frozen=True)
class Repeat:
    """The same tokens again and again, with nothing between.

    Attributes:
        start: of the first time.
        period: tokens of one time.
        times: how often, counting whole ones.
    """

    start: int
    period: int
    times: int

    @property
    def length(self) -> int:
        """Tokens of all times together."""
        return self.period * self.times


def longest_repeat(tokens: Sequence[int], times: int = 2) -> Repeat | None:
    """The longest stretch of `tokens` that is one n-gram at least `times` in a row; of equally long
    ones that of the shortest n-gram, then the first.
    """
    best: Repeat | None = None
    for period in range(1, len(tokens) // times + 1):
        start = 0
        # One past the end differs from everything, which closes the last run.
        for i in range(period, len(tokens) + 1):
            if i < len(tokens) and tokens[i] == tokens[i - period]:
                continue
            found = Repeat(start, period, (i - start) // period)
            if found.times >= times and (best is None or found.length > best.length):
                best = found
            start = i - period + 1
    return best


def compression_ratio(text: str) -> float:
    """Bytes of `text` over its bytes after zlib; 0 for no text."""
    data = text.encode("utf-8", "replace")
    return len(data) / len(zlib.compress(data))


def suspicions(tokens: Sequence[int], text: str) -> list[str]:
    """What is wrong with one window's text.

    Returns:
        ``loop``: the same tokens four times in a row and more, 16 tokens and more in all;
        ``compression``: the text says little for its length. Empty for what looks like speech.
    """
    found = []
    repeat = longest_repeat(tokens, _LEAST_TIMES)
    if repeat is not None and repeat.length >= _LEAST_TOKENS:
        found.append("loop")
    if compression_ratio(text) > MOST_COMPRESSION:
        found.append("compression")
    return found
