"""Measures what the work of both lanes costs here, in a time that was agreed on."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from as2d_cli.audio.decode import RATE
from as2d_cli.audio.downmix import Samples
from as2d_cli.profile.alignment import perfect
from as2d_cli.profile.costs import CostModel, DraftCosts, LaneCosts, Line, TargetCosts
from as2d_cli.profile.layouts import Layout
from as2d_cli.profile.simulate import Setup, simulate

__all__ = [
    "FULL",
    "QUICK",
    "USUAL",
    "Effort",
    "Heard",
    "Measured",
    "Subject",
    "TimedEngine",
    "Watch",
    "fitted",
    "measure",
]

_AUDIO = (5.0, 28.0)
"""Seconds of audio that the encoder is timed with: near both ends of what a window can be."""

_BATCH = 4
"""Windows decoded at a time, to see what one more of them costs a step."""

_LEAST_LAYOUTS = 2
_MOST_ROUNDS = 12

_APART_SHARE = 0.7
"""Of the time for two lanes; the rest is for both at work."""

_MAD = 1.4826
"""Makes a median deviation one that is comparable with a standard deviation."""

_COPIED = 64 << 20
"""Bytes; beyond the caches."""


@dataclass(frozen=True)
class Effort:
    """How much work is put in.

    Attributes:
        seconds: to be done in, loading apart.
        rows: of the forwards that are timed.
        most_layouts: ways to share the cores.
        runs: of the target alone, after one to warm up, and of several windows at a time.
    """

    seconds: float
    rows: tuple[int, ...]
    most_layouts: int
    runs: int


QUICK = Effort(4.0, (1, 2, 4, 9, 16), 2, 1)
USUAL = Effort(40.0, (1, 2, 4, 5, 8, 9, 16, 17, 32), 8, 3)
FULL = Effort(150.0, (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 24, 32), 16, 5)


@dataclass(frozen=True)
class Heard:
    """A run over windows.

    Attributes:
        texts: by window.
        steps: forwards after the prompts.
        seconds: by phase; ``wall`` is all of it.
    """

    texts: Sequence[Sequence[int]]
    steps: int
    seconds: Mapping[str, float]


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
class Subject:
    """What is measured.

    Attributes:
        target, drafter: ids.
        shares_encoder: the drafter hears what the target's encoder says.
        open: an engine with these models on these cores.
        hear: runs the target alone over windows, so many at a time.
        clip, language: known speech, at most half a window.
        prompt_rows: tokens before a window's text.
    """

    target: str
    drafter: str | None
    shares_encoder: bool
    open: Callable[[Layout], AbstractContextManager[Any]]
    hear: Callable[[Any, Sequence[Samples], int], Heard]
    clip: Samples
    language: str
    prompt_rows: int


class Watch(Protocol):
    """Who is told how far it is."""

    def begin(self, summary: str, total: float) -> None:
        """The work takes about `total` seconds."""

    def doing(self, what: str) -> None:
        """This comes next."""

    def advance(self, amount: float) -> None:
        """So much of the total is done."""


@dataclass(frozen=True)
class Measured:
    """What came of it.

    Attributes:
        text, draft: of the clip, in the target's tokens; no draft without a drafter.
    """

    costs: CostModel
    text: Sequence[int]
    draft: Sequence[int]


def measure(subject: Subject, layouts: Sequence[Layout], effort: Effort, watch: Watch) -> Measured:
    """Measures as many of `layouts`, in their order, as there is time for, but two in any case."""
    return _Measuring(subject, effort, watch).all(layouts[: effort.most_layouts])


class _Measuring:
    def __init__(self, subject: Subject, effort: Effort, watch: Watch) -> None:
        self._subject, self._effort, self._watch = subject, effort, watch
        self._spreads: list[float] = []
        self._draft: Sequence[int] = ()
        self._told = 0.0

    def all(self, layouts: Sequence[Layout]) -> Measured:
        subject, effort, times = self._subject, self._effort, self._effort.runs
        self._watch.begin(_summary(subject, layouts), effort.seconds)
        self._told = time.monotonic()
        end = self._told + effort.seconds
        lanes: list[LaneCosts] = []
        runs: list[Heard] = []
        batches: list[Heard] = []
        for number, layout in enumerate(layouts):
            left = end - time.monotonic()
            if number >= _LEAST_LAYOUTS and left <= 0:
                break
            share = max(left, 0.1 * effort.seconds) / (len(layouts) - number)
            self._watch.doing(_name(layout))
            with subject.open(layout) as engine:
                if number == 0:
                    runs = [subject.hear(engine, [subject.clip], 1) for _ in range(times + 1)][1:]
                    batches = [
                        subject.hear(engine, [subject.clip] * _BATCH, _BATCH) for _ in range(times)
                    ]
                lanes.append(self._lane(engine, layout, share))
            self._tell()
        costs = CostModel(
            target=subject.target,
            drafter=subject.drafter,
            shares_encoder=subject.shares_encoder,
            lanes=tuple(lanes),
            prompt_rows=subject.prompt_rows,
            bandwidth=_bandwidth(),
            noise=statistics.median(self._spreads) if self._spreads else 0.0,
        )
        costs = fitted(costs, runs, batches, len(subject.clip) / RATE)
        return Measured(costs, runs[0].texts[0], self._draft)

    def _lane(self, engine: TimedEngine, layout: Layout, seconds: float) -> LaneCosts:
        """One way to share the cores."""
        target, draft = layout
        end = time.monotonic() + seconds * (1.0 if not draft else _APART_SHARE)
        ways = {True: _Samples(), False: _Samples()} if draft else {True: _Samples()}
        drafts: list[tuple[float, Mapping[str, Any]]] = []
        rounds = 0
        while rounds == 0 or (rounds < _MOST_ROUNDS and time.monotonic() < end):
            for lend, samples in ways.items():
                # One sample comes in any case, however slow the machine is.
                most = max(0.0, end - time.monotonic()) / 4
                for audio in _AUDIO:
                    samples.encode[audio] += engine.time_encode(
                        audio, 2, lend=lend, most_seconds=most
                    )
                found = engine.time_steps(self._effort.rows, 5, lend=lend, most_seconds=most)
                for rows, taken in zip(self._effort.rows, found, strict=True):
                    samples.steps[rows] += taken
            if draft:
                drafts += self._drafts(engine)
            rounds += 1
            self._tell()
        costs = {lend: self._target(samples) for lend, samples in ways.items()}
        lane = LaneCosts(target, draft, costs[True])
        if not draft:
            return lane
        return self._together(
            engine, replace(lane, own=costs[False], draft=_draft(drafts)), seconds
        )

    def _tell(self) -> None:
        now = time.monotonic()
        self._watch.advance(now - self._told)
        self._told = now

    def _drafts(self, engine: TimedEngine) -> list[tuple[float, Mapping[str, Any]]]:
        """Drafts of the clip, and of the clip said twice: by seconds of audio."""
        subject = self._subject
        found = []
        for samples in (subject.clip, np.concatenate([subject.clip, subject.clip])):
            timing = engine.time_draft(samples, subject.language, lend=False)
            found.append((len(samples) / RATE, timing))
        self._draft = list(found[0][1]["tokens"])
        return found

    def _together(self, engine: TimedEngine, lane: LaneCosts, seconds: float) -> LaneCosts:
        """Both lanes at work."""
        subject = self._subject
        assert lane.own is not None and lane.draft is not None
        found = engine.time_together(
            self._effort.rows, seconds * (1 - _APART_SHARE), subject.clip, subject.language
        )
        steps = {
            rows: self._middle(taken)
            for rows, taken in zip(self._effort.rows, found["steps"], strict=True)
        }
        # The encoder computes, as a step of many rows does, and is slowed down as that is.
        most = max(steps)
        slower = max(1.0, steps[most] / lane.own.steps[most])
        encode = _scaled(lane.own.encode, slower)
        # The last one may have been stopped in the middle.
        whole = [draft for draft in found["drafts"] if draft["complete"]] or found["drafts"]
        audio = len(subject.clip) / RATE
        draft = _draft([(audio, timing) for timing in whole])
        longer = draft.encode(audio) / lane.draft.encode(audio) if lane.draft.encode(audio) else 1.0
        return replace(
            lane,
            beside=TargetCosts(encode, steps),
            draft_beside=DraftCosts(_scaled(lane.draft.encode, longer), draft.token),
        )

    def _target(self, samples: _Samples) -> TargetCosts:
        encode = {audio: self._middle(taken) for audio, taken in samples.encode.items()}
        steps = {rows: self._middle(taken) for rows, taken in samples.steps.items()}
        return TargetCosts(Line.through(encode), steps)

    def _middle(self, seconds: Sequence[float]) -> float:
        """The median; the spread about it is remembered."""
        middle = statistics.median(seconds)
        if len(seconds) > 2 and middle > 0:
            apart = statistics.median(abs(taken - middle) for taken in seconds)
            self._spreads.append(_MAD * apart / middle)
        return middle


class _Samples:
    """Seconds of the target's work, by seconds of audio and by rows."""

    def __init__(self) -> None:
        self.encode: defaultdict[float, list[float]] = defaultdict(list)
        self.steps: defaultdict[int, list[float]] = defaultdict(list)


def fitted(
    costs: CostModel, runs: Sequence[Heard], batches: Sequence[Heard], audio: float
) -> CostModel:
    """Makes the costs those of a run, by runs of the target alone on the first of the lanes.

    The forwards of a run are earlier in their window than those that were timed, and of other
    numbers; a run has work that is neither; and one window more in a batch costs something.

    Args:
        runs, batches: of one window, and of several at a time, all the same.
        audio: seconds of a window.
    """
    alone = costs.lanes[0].alone
    step = statistics.median(run.seconds["decode"] / max(run.steps, 1) for run in runs)
    scale = step / alone.step(1)
    rest = statistics.median(
        run.seconds["wall"] - run.seconds["encode"] - run.seconds["decode"] - run.seconds["prompt"]
        for run in runs
    )
    lanes = tuple(_with_steps(lane, scale, 0.0) for lane in costs.lanes)
    costs = replace(costs, lanes=lanes, window=max(0.0, rest))
    window = perfect(audio, len(runs[0].texts[0]))
    wall = statistics.median(run.seconds["wall"] for run in batches)
    without, with_one = (
        simulate(
            [window] * len(batches[0].texts),
            Setup(0, _BATCH),
            costs,
            _with_steps(lanes[0], 1, more),
        ).seconds
        for more in (0.0, 1.0)
    )
    more = max(0.0, (wall - without) / (with_one - without)) if with_one > without else 0.0
    return replace(costs, lanes=tuple(_with_steps(lane, 1.0, more) for lane in lanes))


def _with_steps(lane: LaneCosts, scale: float, window: float) -> LaneCosts:
    def changed(costs: TargetCosts | None) -> TargetCosts | None:
        if costs is None:
            return None
        steps = {rows: scale * seconds for rows, seconds in costs.steps.items()}
        return TargetCosts(costs.encode, steps, window)

    alone = changed(lane.alone)
    assert alone is not None
    return replace(lane, alone=alone, own=changed(lane.own), beside=changed(lane.beside))


def _draft(drafts: Sequence[tuple[float, Mapping[str, Any]]]) -> DraftCosts:
    """By seconds of audio and what a draft of it took."""
    by_audio: dict[float, list[float]] = defaultdict(list)
    for audio, timing in drafts:
        by_audio[audio].append(timing["encode"])
    encode = Line.through({audio: statistics.median(taken) for audio, taken in by_audio.items()})
    # The end is a token like any other.
    token = statistics.median(timing["steps"] / (len(timing["tokens"]) + 1) for _, timing in drafts)
    return DraftCosts(encode, token)


def _scaled(line: Line, factor: float) -> Line:
    return Line(line.base * factor, line.per_second * factor)


def _bandwidth() -> float:
    """Bytes a second that one core reads and writes: the best of a few copies."""
    source = np.ones(_COPIED, np.uint8)
    target = np.empty_like(source)
    best = 0.0
    for _ in range(4):
        begun = time.perf_counter()
        np.copyto(target, source)
        best = max(best, 2 * _COPIED / (time.perf_counter() - begun))
    return best


def _summary(subject: Subject, layouts: Sequence[Layout]) -> str:
    pair = subject.target + (f" with {subject.drafter}" if subject.drafter else "")
    return f"measuring {pair}, up to {len(layouts)} ways to share the cores"


def _name(layout: Layout) -> str:
    target, draft = layout
    cores = f"target on {len(target)}"
    return cores + (f", drafter on {len(draft)}" if draft else "")
