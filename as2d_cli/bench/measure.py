"""Runs contenders on units, one at a time, and writes down what each run did."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from as2d_cli.audio.downmix import Samples
from as2d_cli.audio.windows import AudioWindow
from as2d_cli.bench.contenders import Contender
from as2d_cli.bench.engines import BenchEngine, BenchRun, Seat
from as2d_cli.bench.units import Asked, Unit
from as2d_cli.decoding import Counters, Window
from as2d_cli.decoding.events import (
    DrafterLost,
    Event,
    LaneChanged,
    RunFinished,
    WindowFinished,
)
from as2d_cli.errors import As2dError
from as2d_cli.tasks.models import Model
from as2d_cli.text.whisper_prompt import prompt

__all__ = ["Ran", "Sample", "Span", "Turn", "answer", "decode", "run_unit", "schedule"]

_LOOK = 0.02
"""Seconds between looks at a run. The engine keeps the time itself: whoever waits for each of its
events would only take a core from it now and then."""

_NOTHING = np.empty(0, np.float32)

Texts = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Turn:
    """Who runs on what, when.

    Attributes:
        repeat: round through all units.
        unit, contender: their numbers.
    """

    repeat: int
    unit: int
    contender: int


@dataclass(frozen=True)
class Span:
    """What a lane did between two times, in seconds from the run's beginning."""

    lane: str
    activity: str
    window: int
    begin: float
    end: float


@dataclass(frozen=True)
class Ran:
    """One run of the engine.

    Attributes:
        texts: token ids by window, in the order of the windows.
        counters: at its end.
        lost: why the drafter failed, or None.
        spans: what the lanes did; idle times left out.
    """

    texts: Texts
    counters: Counters
    lost: str | None
    spans: tuple[Span, ...]


@dataclass(frozen=True)
class Sample:
    """A run that was timed, in its place.

    Attributes:
        order: counts all samples in the order of time.
    """

    turn: Turn
    order: int
    ran: Ran

    @property
    def seconds(self) -> float:
        """From the run's beginning to its end, encoder included."""
        return self.ran.counters.seconds["wall"]


def schedule(units: int, repeat: int, entered: Mapping[int, Sequence[int]]) -> Iterator[Turn]:
    """All turns: per unit every contender once, in alternating order.

    A B C, then C B A: whatever drifts while it goes on (clocks, heat, other programs) meets all
    alike. A unit that was begun with A in one round is begun with C in the next.

    Args:
        entered: numbers of the contenders that take part, by unit.
    """
    for number in range(repeat):
        for unit in range(units):
            order = entered[unit] if (unit + number) % 2 == 0 else entered[unit][::-1]
            for contender in order:
                yield Turn(number, unit, contender)


def run_unit(
    seat: Seat, contender: Contender, unit: Unit, windows: Sequence[AudioWindow], target: Model
) -> Ran:
    """Runs a contender on a unit.

    Raises:
        As2dError: the target failed.
    """
    if unit.asked is not None:
        return answer(seat.engine, contender, unit.asked, unit.language)
    samples = [window.samples for window in windows]
    return decode(seat.engine, contender, samples, target, unit.language)


def decode(
    engine: BenchEngine,
    contender: Contender,
    windows: Sequence[Samples],
    target: Model,
    language: str,
) -> Ran:
    """One run over `windows`, all of them queued at once.

    Raises:
        As2dError: the target failed.
    """
    ids = prompt(target, language)
    room = target.context - len(ids)
    return _run(
        engine,
        contender,
        [Window(i, 0.0, samples, ids, room, language) for i, samples in enumerate(windows)],
    )


def answer(engine: BenchEngine, contender: Contender, asked: Asked, language: str) -> Ran:
    """One run over a prompt, of which the engine knows nothing from the run before.

    Raises:
        As2dError: the target failed.
    """
    # An engine keeps what it computed for the last prompt, and what it heard: whoever comes second
    # on the same question would have it for nothing.
    _run(engine, contender, [Window(0, 0.0, _NOTHING, asked.prompt[-1:], 1)])
    samples = _NOTHING if asked.samples is None else asked.samples
    window = Window(0, 0.0, samples, asked.prompt, asked.limit, language)
    return _run(engine, contender, [window])


def _run(engine: BenchEngine, contender: Contender, windows: Sequence[Window]) -> Ran:
    run = _start(engine, contender)
    try:
        for window in windows:
            run.submit(window)
        run.finish()
        events = _events(run)
    except BaseException:
        run.cancel()
        raise
    return _ran(events, run.counters(), len(windows))


def _start(engine: BenchEngine, contender: Contender) -> BenchRun:
    return engine.start(
        method=contender.method,
        budget=contender.budget,
        exact=not contender.one_row,
        windows=contender.windows,
        # Any other is what it says from the first window to the last.
        adaptive=contender.planned,
    )


def _events(run: BenchRun) -> list[Event]:
    events: list[Event] = []
    while True:
        events += run.poll(0.0)
        if events and isinstance(events[-1], RunFinished):
            return events
        time.sleep(_LOOK)


def _ran(events: Sequence[Event], counters: Counters, windows: int) -> Ran:
    last = events[-1]
    assert isinstance(last, RunFinished)
    if last.error is not None:
        raise As2dError(last.error)
    texts = {e.window: e.tokens for e in events if isinstance(e, WindowFinished)}
    lost = next((e.message for e in events if isinstance(e, DrafterLost)), None)
    return Ran(
        tuple(texts[index] for index in range(windows)),
        counters,
        lost,
        tuple(_spans(events, last.seconds)),
    )


def _spans(events: Iterable[Event], end: float) -> Iterator[Span]:
    open_: dict[str, LaneChanged] = {}
    for event in events:
        if isinstance(event, LaneChanged):
            before = open_.pop(event.lane, None)
            if before is not None:
                yield _span(before, event.seconds)
            if event.activity not in ("idle", "done"):
                open_[event.lane] = event
    for before in open_.values():
        yield _span(before, end)


def _span(begin: LaneChanged, end: float) -> Span:
    return Span(begin.lane, begin.activity, begin.window, begin.seconds, end)
