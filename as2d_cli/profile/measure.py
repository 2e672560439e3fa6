"""Measures what the work of both lanes costs here, in a time that was agreed on.

All ways to share the cores are visited again and again, in turn: what drifts on the machine then
meets all of them, and shows as a spread of each, not as a difference between them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from as2d_cli.audio.decode import RATE
from as2d_cli.audio.downmix import Samples
from as2d_cli.profile.costs import CostModel
from as2d_cli.profile.fit import BATCH, Heard
from as2d_cli.profile.layouts import Layout
from as2d_cli.profile.reckoning import Measured, Reckoning
from as2d_cli.profile.room import Room
from as2d_cli.profile.visit import TimedEngine, visit

__all__ = ["FULL", "QUICK", "USUAL", "Effort", "Subject", "Watch", "layout_name", "measure"]

_LEAST_LAYOUTS = 2

_LEAST_ROUNDS = 2
"""One says nothing of what the next would say."""

_MOST_ROUNDS = 12

_FIRST_SHARE = 0.5
"""Of the time for the first round: the ways that it does not get to are left out."""

_TOGETHER_SHARE = 0.05
"""Of the time for each look at both lanes at work."""

_MOST_TOGETHER = 1.0

_COPIED = 64 << 20
"""Bytes; beyond the caches."""


@dataclass(frozen=True)
class Effort:
    """How much work is put in.

    Attributes:
        seconds: to be done in, loading apart.
        rows: of the forwards that are timed.
        most_layouts: ways to share the cores.
        batches: rounds with a run over several windows at a time.
    """

    seconds: float
    rows: tuple[int, ...]
    most_layouts: int
    batches: int


QUICK = Effort(4.0, (1, 2, 4, 9, 16), 2, 1)
USUAL = Effort(40.0, (1, 2, 4, 5, 8, 9, 16, 17, 32), 8, 3)
FULL = Effort(150.0, (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 24, 32), 16, 5)


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
        room: tells whether one engine more fits beside those that are open.
    """

    target: str
    drafter: str | None
    shares_encoder: bool
    open: Callable[[Layout], AbstractContextManager[Any]]
    hear: Callable[[Any, Sequence[Samples], int], Heard]
    clip: Samples
    language: str
    prompt_rows: int
    room: Room = field(default_factory=Room)


class Watch(Protocol):
    """Who is told how far it is."""

    def begin(self, summary: str, total: float) -> None:
        """The work takes about `total` seconds."""

    def doing(self, what: str) -> None:
        """This comes next."""

    def advance(self, amount: float) -> None:
        """So much of the total is done."""


def measure(subject: Subject, layouts: Sequence[Layout], effort: Effort, watch: Watch) -> Measured:
    """Measures as many of `layouts`, in their order, as there is time for, but two in any case."""
    return _Measuring(subject, effort, watch).all(layouts[: effort.most_layouts])


class _Measuring:
    def __init__(self, subject: Subject, effort: Effort, watch: Watch) -> None:
        self._subject, self._effort, self._watch = subject, effort, watch
        self._found = Reckoning(len(subject.clip) / RATE)
        self._told = self._begun = 0.0

    def all(self, layouts: Sequence[Layout]) -> Measured:
        subject, found = self._subject, self._found
        self._watch.begin(_summary(subject, layouts), self._effort.seconds)
        self._told = self._begun = time.monotonic()
        # Those that fit into the memory together are measured in turn; and so on with the rest.
        while len(found.lanes) < len(layouts):
            if len(found.lanes) >= _LEAST_LAYOUTS and self._left() <= 0:
                break
            with ExitStack() as stack:
                self._group(stack, layouts)
        return found.measured(
            CostModel(
                target=subject.target,
                drafter=subject.drafter,
                shares_encoder=subject.shares_encoder,
                lanes=(),
                prompt_rows=subject.prompt_rows,
                bandwidth=_bandwidth(),
            )
        )

    def _group(self, stack: ExitStack, layouts: Sequence[Layout]) -> None:
        """Opens as many as there is room and time for, and visits them in turn."""
        lanes = self._found.lanes
        end = time.monotonic() + self._left() * _FIRST_SHARE
        group: list[tuple[Layout, TimedEngine]] = []
        for layout in layouts[len(lanes) :]:
            if group and not self._subject.room.for_another():
                break
            if len(lanes) >= _LEAST_LAYOUTS and time.monotonic() >= end:
                break
            engine = stack.enter_context(self._subject.open(layout))
            group.append((layout, engine))
            self._visit(layout, engine)
            self._subject.room.opened()
        rest = len(layouts) - len(lanes)
        share = self._left() * len(group) / (len(group) + rest)
        self._rounds(group, time.monotonic() + share)

    def _rounds(self, group: Sequence[tuple[Layout, TimedEngine]], end: float) -> None:
        """The first is over. A B C, then C B A, as in a bench."""
        for number in range(1, _MOST_ROUNDS):
            begun = time.monotonic()
            for layout, engine in group if number % 2 == 0 else group[::-1]:
                self._visit(layout, engine)
            now = time.monotonic()
            if number + 1 >= _LEAST_ROUNDS and now + (now - begun) / 2 > end:
                break

    def _visit(self, layout: Layout, engine: TimedEngine) -> None:
        self._watch.doing(layout_name(layout))
        subject, effort, lane = self._subject, self._effort, self._found.lane(layout)
        number = lane.visits
        together = min(_MOST_TOGETHER, effort.seconds * _TOGETHER_SHARE) if layout[1] else None
        clip, language = subject.clip, subject.language
        lane.add(visit(engine, number, effort.rows, clip, language, together))
        if lane is self._found.lanes[0]:
            self._found.runs.append(subject.hear(engine, [clip], 1))
            if number < effort.batches:
                self._found.batches.append(subject.hear(engine, [clip] * BATCH, BATCH))
        now = time.monotonic()
        self._watch.advance(now - self._told)
        self._told = now

    def _left(self) -> float:
        return max(0.0, self._begun + self._effort.seconds - time.monotonic())


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


def layout_name(layout: Layout) -> str:
    """For people."""
    target, draft = layout
    cores = f"target on {len(target)}"
    return cores + (f", drafter on {len(draft)}" if draft else "")
