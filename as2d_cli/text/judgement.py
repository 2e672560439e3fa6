"""What a model said of a window, and whether it is to be believed.

Thresholds and the way back by rising temperatures are those of Whisper's own decoder (Radford et
al. 2022, section 4.5).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from as2d_cli.text.repeats import longest_repeat, suspicions

__all__ = ["TEMPERATURES", "Attempt", "best_of", "invented_loop"]

TEMPERATURES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Tried in turn until the text is to be believed."""

_LEAST_LOG_PROBABILITY = -1.0
_MOST_NO_SPEECH = 0.6
_FASTEST = 30.0
"""Characters in a second that nobody says for half a window; fast talkers reach 20."""


@dataclass(frozen=True)
class Attempt:
    """One decoding of a window.

    Attributes:
        tokens: all of them; `words` without timestamps.
        text: of the words.
        reason: why it ended, as `WindowFinished` has it.
        temperature: 0 where the likeliest tokens were taken.
        log_probability: mean of the tokens and the end.
        no_speech: probability that nobody speaks.
        times: see `WindowFinished`.
    """

    tokens: tuple[int, ...]
    words: tuple[int, ...]
    text: str
    reason: str
    temperature: float = 0.0
    log_probability: float = 0.0
    no_speech: float = 0.0
    times: tuple[float, ...] = ()

    @property
    def nobody_speaks(self) -> bool:
        """The model thinks so, and is not sure of its words."""
        return self.no_speech > _MOST_NO_SPEECH and self.log_probability < _LEAST_LOG_PROBABILITY

    @cached_property
    def flaws(self) -> list[str]:
        """``loop``, ``compression`` (see `suspicions`), ``unlikely``: the model is not sure."""
        found = suspicions(self.words, self.text)
        if self.log_probability < _LEAST_LOG_PROBABILITY:
            found.append("unlikely")
        return found


def best_of(attempts: Sequence[Attempt]) -> Attempt:
    """The one with the fewest kinds of flaws; of equals the likeliest, then the first.

    To say the same again and again is one kind, to be unlikely the other: what somebody did say
    forty times is better than what a high temperature makes of it.
    """

    def kinds(attempt: Attempt) -> int:
        flaws = attempt.flaws
        return ("unlikely" in flaws) + ("loop" in flaws or "compression" in flaws)

    return min(attempts, key=lambda attempt: (kinds(attempt), -attempt.log_probability))


def invented_loop(attempt: Attempt, seconds: float) -> range | None:
    """Which of the words say again what was said, in a loop that nobody can have spoken.

    Args:
        seconds: of speech in the window.

    Returns:
        Indices into `Attempt.words` of all times but the first; None where the same is said again
        and again at a speed of people, which they do.
    """
    if "loop" not in attempt.flaws:
        return None
    repeat = longest_repeat(attempt.words, 4)
    assert repeat is not None, "a loop is one"
    if attempt.reason != "context" and len(attempt.text) <= _FASTEST * seconds:
        return None
    return range(repeat.start + repeat.period, repeat.start + repeat.length)
