"""A visit to an engine: a few samples of all its work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from as2d_cli.audio.decode import RATE
from as2d_cli.audio.downmix import Samples

__all__ = ["AUDIO", "REPEATS", "TargetTimes", "TimedDraft", "TimedEngine", "Visit", "visit"]

AUDIO = (5.0, 28.0)
"""Seconds of audio that the encoder is timed with, in turn: near both ends of what a window is."""

REPEATS = 5
"""Forwards of each number of rows in a visit."""

_OWN_EVERY = 2
"""Visits from one that times the lane without lent cores to the next: its figures matter least."""


class TimedEngine(Protocol):
    """What is used of an engine (see `as2d_cli.decoding.Engine`). All calls block."""

    def time_encode(
        self, seconds_of_audio: float, repeats: int, *, lend: bool = True, most_seconds: float
    ) -> list[float]: ...
    def time_steps(
        self, rows: Sequence[int], repeats: int, *, lend: bool = True, most_seconds: float
    ) -> list[list[float]]: ...
    def time_draft(
        self, samples: Any, language: str, *, lend: bool = True
    ) -> Mapping[str, Any]: ...
    def time_together(
        self, rows: Sequence[int], seconds: float, samples: Any, language: str
    ) -> Mapping[str, Any]: ...


@dataclass(frozen=True)
class TargetTimes:
    """Seconds of the target's work.

    Attributes:
        steps: of forwards by rows, a sample each.
        audio, encode: a pass of the encoder over so many seconds of audio took so many.
    """

    steps: Mapping[int, Sequence[float]]
    audio: float
    encode: float


@dataclass(frozen=True)
class TimedDraft:
    """A draft of so many seconds of audio.

    Attributes:
        encode, steps: seconds of the encoder, and of all that came after it.
        tokens: the target's, without the end.
        complete: the drafter ended it; otherwise it was stopped.
    """

    audio: float
    encode: float
    steps: float
    tokens: Sequence[int]
    complete: bool


@dataclass(frozen=True)
class Visit:
    """What was timed in one visit.

    Attributes:
        alone: while the draft lane rests and lends its cores, or is not there.
        own: without these cores; None where it was not this visit's turn.
        draft: while the target lane rests; None where there is no drafter.
        beside: seconds of forwards by rows while the draft lane works; none without a drafter.
        drafts: those of that time.
    """

    alone: TargetTimes
    own: TargetTimes | None = None
    draft: TimedDraft | None = None
    beside: Mapping[int, Sequence[float]] | None = None
    drafts: Sequence[TimedDraft] = ()


def visit(
    engine: TimedEngine,
    number: int,
    rows: Sequence[int],
    clip: Samples,
    language: str,
    seconds: float | None,
) -> Visit:
    """Takes the samples. native/runner/profile.cc does the same on a device.

    Args:
        number: of visits to this engine before.
        rows: of the forwards.
        seconds: both lanes work together for so long; None where there is no drafter.
    """
    alone = _target(engine, number, rows, lend=True)
    if seconds is None:
        return Visit(alone)
    own = None
    if number % _OWN_EVERY == 0:
        own = _target(engine, number // _OWN_EVERY, rows, lend=False)
    # The clip, and in turn the clip said twice: longer audio takes longer.
    samples = clip if number % 2 == 0 else np.concatenate([clip, clip])
    draft = _draft(samples, engine.time_draft(samples, language, lend=False))
    found = engine.time_together(rows, seconds, clip, language)
    beside = dict(zip(rows, found["steps"], strict=True))
    drafts = [_draft(clip, timing) for timing in found["drafts"]]
    return Visit(alone, own, draft, beside, drafts)


def _target(engine: TimedEngine, number: int, rows: Sequence[int], *, lend: bool) -> TargetTimes:
    # No more samples than one of each, and the repeats of steps: the visits are many.
    steps = engine.time_steps(rows, REPEATS, lend=lend, most_seconds=30.0)
    audio = AUDIO[number % len(AUDIO)]
    (seconds,) = engine.time_encode(audio, 1, lend=lend, most_seconds=0.0)
    return TargetTimes(dict(zip(rows, steps, strict=True)), audio, seconds)


def _draft(samples: Samples, timing: Mapping[str, Any]) -> TimedDraft:
    return TimedDraft(
        audio=len(samples) / RATE,
        encode=timing["encode"],
        steps=timing["steps"],
        tokens=list(timing["tokens"]),
        complete=timing["complete"],
    )
