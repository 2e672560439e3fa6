"""What the work of both lanes takes on one way to share the cores, timed visit by visit."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from as2d_cli.audio.decode import RATE
from as2d_cli.audio.downmix import Samples
from as2d_cli.profile.costs import DraftCosts, LaneCosts, Line, TargetCosts
from as2d_cli.profile.layouts import Layout
from as2d_cli.profile.spread import Spread, relative_deviation, spread_of

__all__ = ["REPEATS", "LaneTiming", "TimedEngine"]

_AUDIO = (5.0, 28.0)
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


class LaneTiming:
    """Collects what an engine on these cores takes.

    Attributes:
        layout: the cores.
        draft: what the drafter said of the clip, in the target's tokens.
    """

    def __init__(self, layout: Layout, rows: Sequence[int], clip: Samples, language: str) -> None:
        self.layout = layout
        self.draft: Sequence[int] = ()
        self._rows, self._clip, self._language = rows, clip, language
        self._visits = 0
        self._alone, self._own, self._beside = _Target(), _Target(), _Target()
        self._rest, self._work = _Draft(), _Draft()

    def visit(self, engine: TimedEngine, seconds: float) -> None:
        """Takes a few samples of everything.

        Args:
            seconds: both lanes work together for so long.
        """
        self._time_target(engine, self._alone, lend=True)
        if self.layout[1]:
            if self._visits % _OWN_EVERY == 0:
                self._time_target(engine, self._own, lend=False)
            self._time_draft(engine)
            self._time_together(engine, seconds)
        self._visits += 1

    def costs(self, noise: float) -> LaneCosts:
        """What came of it.

        Args:
            noise: see `spread_of`.
        """
        target, draft = self.layout
        alone = self._alone.costs(self._alone.encoder(), noise)
        lane = LaneCosts(target, draft, alone)
        if not draft:
            return lane
        # On fewer cores all audio takes longer by the same factor: a few passes tell it.
        own = self._own.costs(alone.encode.times(self._own.encode_level(alone.encode)), noise)
        steps = self._beside.steps()
        # The encoder computes, as a step of many rows does, and is slowed down as that is.
        most = max(steps)
        slower = max(1.0, steps[most] / own.steps[most])
        spread = self._beside.step_spread(noise)
        beside = TargetCosts(own.encode.times(slower), steps, 0.0, spread, spread)
        rest, work = self._rest.costs(noise), self._work.costs(noise)
        audio = len(self._clip) / RATE
        longer = work.encode(audio) / rest.encode(audio) if rest.encode(audio) else 1.0
        work = replace(work, encode=rest.encode.times(longer))
        return replace(lane, own=own, beside=beside, draft=rest, draft_beside=work)

    def rounds(self) -> Iterator[Sequence[float]]:
        """For each cost what each visit said of it."""
        for target in (self._alone, self._own, self._beside):
            yield target.step_levels()
        for draft in (self._rest, self._work):
            yield draft.tokens

    def deviations(self) -> Iterator[float]:
        """Of the repeats within a visit, as shares."""
        for target in (self._alone, self._own, self._beside):
            yield from target.deviations()

    def _time_target(self, engine: TimedEngine, found: _Target, *, lend: bool) -> None:
        # No more samples than one of each, and the repeats of steps: the visits are many.
        found.add(self._rows, engine.time_steps(self._rows, REPEATS, lend=lend, most_seconds=30.0))
        audio = _AUDIO[len(found.encode) % len(_AUDIO)]
        (seconds,) = engine.time_encode(audio, 1, lend=lend, most_seconds=0.0)
        found.encode.append((audio, seconds))

    def _time_draft(self, engine: TimedEngine) -> None:
        """Of the clip, and in turn of the clip said twice: longer audio takes longer."""
        twice = self._visits % 2 == 1
        samples = np.concatenate([self._clip, self._clip]) if twice else self._clip
        timing = engine.time_draft(samples, self._language, lend=False)
        self._rest.add(len(samples) / RATE, timing)
        if not twice:
            self.draft = list(timing["tokens"])

    def _time_together(self, engine: TimedEngine, seconds: float) -> None:
        found = engine.time_together(self._rows, seconds, self._clip, self._language)
        self._beside.add(self._rows, found["steps"])
        # The last one may have been stopped in the middle.
        whole = [draft for draft in found["drafts"] if draft["complete"]] or found["drafts"]
        for timing in whole:
            self._work.add(len(self._clip) / RATE, timing)


class _Target:
    """Seconds of the target's work.

    Attributes:
        encode: audio and seconds of each pass, a visit each.
    """

    def __init__(self) -> None:
        self.encode: list[tuple[float, float]] = []
        self._visits: list[dict[int, Sequence[float]]] = []

    def add(self, rows: Sequence[int], steps: Sequence[Sequence[float]]) -> None:
        """Seconds by rows, of one visit."""
        self._visits.append(dict(zip(rows, steps, strict=True)))

    def costs(self, encode: Line, noise: float) -> TargetCosts:
        """`encode`: what was made of the passes of the encoder."""
        levels = [seconds / encode(audio) for audio, seconds in self.encode]
        fitted = len({audio for audio, _ in self.encode})
        spread = spread_of(levels, noise, fitted)
        return TargetCosts(encode, self.steps(), 0.0, spread, self.step_spread(noise))

    def encoder(self) -> Line:
        by_audio: dict[float, list[float]] = defaultdict(list)
        for audio, seconds in self.encode:
            by_audio[audio].append(seconds)
        return _line(by_audio)

    def encode_level(self, other: Line) -> float:
        """How many times as long as `other` the encoder takes."""
        return statistics.median(seconds / other(audio) for audio, seconds in self.encode)

    def steps(self) -> dict[int, float]:
        """Medians of all samples."""
        return {
            rows: statistics.median(s for visit in self._visits for s in visit[rows])
            for rows in self._visits[0]
        }

    def step_spread(self, noise: float) -> Spread:
        return spread_of(self.step_levels(), noise)

    def step_levels(self) -> list[float]:
        """Of each visit, over all rows: how much longer steps took in it than in all."""
        if not self._visits:
            return []
        steps = self.steps()
        return [
            statistics.median(statistics.median(visit[rows]) / steps[rows] for rows in steps)
            for visit in self._visits
        ]

    def deviations(self) -> Iterator[float]:
        for visit in self._visits:
            yield from (relative_deviation(taken) for taken in visit.values() if len(taken) > 2)


class _Draft:
    """Seconds of the drafter's work.

    Attributes:
        tokens: seconds of each, a draft each.
    """

    def __init__(self) -> None:
        self.tokens: list[float] = []
        self._encode: list[tuple[float, float]] = []

    def add(self, audio: float, timing: Mapping[str, Any]) -> None:
        """One draft."""
        self._encode.append((audio, timing["encode"]))
        # The end is a token like any other.
        self.tokens.append(timing["steps"] / (len(timing["tokens"]) + 1))

    def costs(self, noise: float) -> DraftCosts:
        by_audio: dict[float, list[float]] = defaultdict(list)
        for audio, seconds in self._encode:
            by_audio[audio].append(seconds)
        line = _line(by_audio)
        levels = [s / line(audio) if line(audio) else 1.0 for audio, s in self._encode]
        return DraftCosts(
            line,
            statistics.median(self.tokens),
            spread_of(levels, noise, fitted=len(by_audio)),
            spread_of(self.tokens, noise),
        )


def _line(seconds: Mapping[float, Sequence[float]]) -> Line:
    """By seconds of audio."""
    return Line.through({audio: statistics.median(taken) for audio, taken in seconds.items()})
