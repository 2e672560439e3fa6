"""Whisper's timestamp tokens -> segments."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

__all__ = ["STEP", "TimedTokens", "timed_tokens"]

STEP = 0.02
"""Seconds from one timestamp token to the next (Radford et al. 2022, section 2.3)."""


@dataclass(frozen=True)
class TimedTokens:
    """Text tokens that stand together.

    Attributes:
        start, end: seconds from the beginning of the window; None where the model said nothing.
        tokens: of the text.
        places: of each of them among all text tokens of the window.
    """

    start: float | None
    end: float | None
    tokens: tuple[int, ...]
    places: tuple[int, ...]


def timed_tokens(
    tokens: Sequence[int], first_timestamp: int | None, left_out: Collection[int] = ()
) -> list[TimedTokens]:
    """The segments of a window's text, in order; those without text are left out.

    Args:
        tokens: with timestamps, or without.
        first_timestamp: the token of 0.00; None for a model without timestamps.
        left_out: places, among the text tokens, of tokens that are not to be in the result.
    """
    segments: list[TimedTokens] = []
    start: float | None = None
    held: list[tuple[int, int]] = []
    place = 0

    def close(end: float | None) -> None:
        if held:
            words, places = tuple(t for t, _ in held), tuple(p for _, p in held)
            segments.append(TimedTokens(start, end, words, places))
            held.clear()

    for token in tokens:
        if first_timestamp is None or token < first_timestamp:
            if place not in left_out:
                held.append((token, place))
            place += 1
            continue
        time = (token - first_timestamp) * STEP
        close(time)
        start = time
    close(None)
    return segments
