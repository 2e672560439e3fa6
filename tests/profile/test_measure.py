"""Measuring, on an engine whose times are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from as2d_cli.profile.fit import Heard
from as2d_cli.profile.layouts import Layout
from as2d_cli.profile.measure import Effort, Subject, measure
from as2d_cli.profile.reckoning import Measured
from as2d_cli.profile.room import Room
from as2d_cli.profile.spread import Spread

STEP, ENCODE, TOKEN, DRAFT_ENCODE = 0.005, 0.2, 0.003, 0.05
BESIDE, OWN = 2.0, 1.5
TEXT = list(range(30))
ROWS = (1, 4, 9)


ROOMY = Room(free=lambda: 1 << 40, held=lambda: 0)
CRAMPED = Room(free=lambda: None, held=lambda: 0)


class Machine:
    """Attributes:
    open: engines.
    visits: so far; each begins with steps on lent cores.
    drift: how much longer all takes, by visits.
    """

    def __init__(self, drift: Callable[[int], float]) -> None:
        self.open = self.visits = 0
        self.drift = drift


class FakeEngine:
    """On one core all takes `OWN` times as long; beside a drafter `BESIDE` times as long again."""

    def __init__(self, layout: Layout, machine: Machine) -> None:
        self.layout, self.machine = layout, machine
        self.asked: list[str] = []
        self.most_open = 0

    def _slow(self, lend: bool) -> float:
        self.most_open = max(self.most_open, self.machine.open)
        own = 1.0 if lend and len(self.layout[0]) + len(self.layout[1]) > 1 else OWN
        return own * self._drift()

    def _drift(self) -> float:
        return self.machine.drift(self.machine.visits - 1)

    def time_encode(
        self, seconds_of_audio: float, repeats: int, *, lend: bool = True, most_seconds: float
    ) -> list[float]:
        self.asked.append("encode")
        return [(ENCODE + 0.001 * seconds_of_audio) * self._slow(lend)] * repeats

    def time_steps(
        self, rows: Sequence[int], repeats: int, *, lend: bool = True, most_seconds: float
    ) -> list[list[float]]:
        self.asked.append("steps")
        self.machine.visits += lend
        # One of them is disturbed.
        return [[_step(count) * self._slow(lend)] * (repeats - 1) + [1.0] for count in rows]

    def time_draft(self, samples: Any, language: str, *, lend: bool = True) -> Mapping[str, Any]:
        self.asked.append("draft")
        assert language == "en" and not lend
        return _draft(self._drift())

    def time_together(
        self, rows: Sequence[int], seconds: float, samples: Any, language: str
    ) -> Mapping[str, Any]:
        self.asked.append("together")
        slow = BESIDE * self._drift()
        stopped = _draft(1.0) | {"complete": False, "tokens": [], "steps": 9.0}
        steps = [[_step(count) * OWN * slow] * 3 for count in rows]
        return {"steps": steps, "drafts": [_draft(slow)] * 3 + [stopped]}


def _step(rows: float) -> float:
    return STEP + 0.0005 * (rows - 1)


def _draft(slow: float) -> dict[str, Any]:
    steps = TOKEN * slow * (len(TEXT) + 1)
    return {"encode": DRAFT_ENCODE * slow, "steps": steps, "tokens": TEXT, "complete": True}


class Watch:
    def __init__(self) -> None:
        self.total = self.done = 0.0
        self.told: list[str] = []

    def begin(self, summary: str, total: float) -> None:
        self.told.append(summary)
        self.total = total

    def doing(self, what: str) -> None:
        self.told.append(what)

    def advance(self, amount: float) -> None:
        assert amount >= 0
        self.done += amount


def run(
    layouts: Sequence[Layout],
    *,
    seconds: float = 0.0,
    drafter: str | None = "x",
    drift: Callable[[int], float] = lambda visits: 1.0,
    room: Room = ROOMY,
) -> tuple[Measured, list[FakeEngine], Watch]:
    """In a run, steps take 0.8 of what they do where they are timed."""
    engines: list[FakeEngine] = []
    machine = Machine(drift)

    @contextmanager
    def open_engine(layout: Layout) -> Iterator[FakeEngine]:
        engines.append(FakeEngine(layout, machine))
        machine.open += 1
        yield engines[-1]
        machine.open -= 1

    def hear(engine: FakeEngine, windows: Sequence[Any], batch: int) -> Heard:
        steps = len(TEXT)
        if batch > 1:  # half of them at a time, each further one of which costs 2 ms a step
            together = batch / 2
            count = round(len(windows) * steps / together)
            decode = count * (0.8 * _step(together) + 0.002 * (together - 1))
            seconds = {"decode": decode, "encode": 9.0, "wall": 9.0 + decode}
            return Heard([TEXT] * len(windows), count, seconds)
        decode = steps * STEP * 0.8
        seconds = {"encode": 0.21, "prompt": 0.01, "decode": decode, "wall": 0.25 + decode}
        return Heard([TEXT], steps, seconds)

    watch = Watch()
    subject = Subject(
        "t", drafter, False, open_engine, hear, np.zeros(11 * 16000, np.float32), "en", 4, room
    )
    effort = Effort(seconds, ROWS, 8, 2)
    return measure(subject, layouts, effort, watch), engines, watch


WHOLE, SPLIT, ONE = ((0, 1), ()), ((0,), (1,)), ((0,), ())


def test_what_is_measured_becomes_costs() -> None:
    found, _, _ = run([WHOLE, SPLIT])
    whole, split = found.costs.lanes
    assert whole.alone.encode(20) == pytest.approx(ENCODE + 0.020)
    # The forwards of a run are what counts: the table is made to fit them.
    assert whole.alone.step(1) == pytest.approx(0.8 * STEP)
    assert whole.alone.step(9) == pytest.approx(0.8 * _step(9)), (
        "the one that was disturbed counts for nothing"
    )
    assert whole.own is None and whole.beside is None and whole.draft is None
    assert split.own is not None and split.beside is not None
    assert split.own.step(4) == pytest.approx(0.8 * OWN * _step(4))
    assert split.contention == pytest.approx(BESIDE)
    assert split.beside.encode(20) == pytest.approx(BESIDE * OWN * (ENCODE + 0.020))
    assert split.draft is not None and split.draft_beside is not None
    assert split.draft.token == pytest.approx(TOKEN)
    assert split.draft_beside.token == pytest.approx(TOKEN * BESIDE)
    assert split.draft_beside.encode(11) == pytest.approx(DRAFT_ENCODE * BESIDE)


def test_the_same_cores_cost_the_same_however_they_are_shared() -> None:
    """A split whose draft lane rests has all cores, as the whole: what was timed of one counts for
    both, and neither is the cheaper for having been measured in better moments.
    """
    found, _, _ = run([WHOLE, SPLIT], seconds=0.5, drift=lambda visits: 1.0 + visits % 3)
    whole, split = found.costs.lanes
    assert split.alone == whole.alone


def test_a_run_of_several_windows_tells_what_one_more_costs() -> None:
    found, _, _ = run([WHOLE])
    costs = found.costs
    assert costs.window == pytest.approx(0.03), "wall time that is no encoder, prompt or step"
    lane = costs.lanes[0]
    assert lane.alone.window == pytest.approx(0.002)
    assert lane.alone.step(2, 2) == pytest.approx(0.8 * _step(2) + 0.002)


def test_the_clip_and_its_draft_are_handed_on() -> None:
    found, _, _ = run([WHOLE, SPLIT])
    assert found.text == found.draft == TEXT
    alone = run([WHOLE], drafter=None)[0]
    assert (alone.text, alone.draft) == (TEXT, ())


def test_two_layouts_are_measured_twice_however_little_time_there_is() -> None:
    found, engines, watch = run([WHOLE, SPLIT, ONE])
    assert [lane.target_cores for lane in found.costs.lanes] == [(0, 1), (0,)]
    assert engines[0].asked == ["steps", "encode"] * 2
    assert engines[1].asked.count("together") == 2
    assert engines[1].asked.count("steps") == 3, "without lent cores every other time"
    assert watch.told == [
        "measuring t with x, up to 3 ways to share the cores",
        "target on 2",
        "target on 1, drafter on 1",
        "target on 1, drafter on 1",
        "target on 2",
    ]


def test_more_time_is_more_rounds_and_more_layouts() -> None:
    found, engines, _ = run([WHOLE, SPLIT, ONE], seconds=0.5)
    assert len(found.costs.lanes) == 3
    assert engines[0].asked.count("steps") > 2


def test_what_drifts_meets_all_layouts_alike() -> None:
    """The machine gets slower with every visit; one core stays OWN times as slow as two."""
    layouts = [WHOLE, ONE]

    def drift(visits: int) -> float:
        return 1.0 + 0.1 * visits

    found, _, _ = run(layouts, seconds=0.2, drafter=None, drift=drift, room=ROOMY)
    whole, one = found.costs.lanes
    assert one.alone.step(9) / whole.alone.step(9) == pytest.approx(OWN, rel=0.1)
    assert whole.alone.step_spread.high > 1.05, "and is seen in the spread of each"
    apart, _, _ = run(layouts, seconds=0.2, drafter=None, drift=drift, room=CRAMPED)
    whole, one = apart.costs.lanes
    assert one.alone.step(9) / whole.alone.step(9) > 1.2 * OWN


def test_models_that_do_not_fit_into_memory_together_are_opened_one_by_one() -> None:
    _, engines, watch = run([WHOLE, SPLIT], room=CRAMPED)
    assert watch.told[1:] == ["target on 2"] * 2 + ["target on 1, drafter on 1"] * 2
    assert [engine.most_open for engine in engines] == [1, 1]
    _, engines, _ = run([WHOLE, SPLIT], room=ROOMY)
    assert [engine.most_open for engine in engines] == [2, 2]


def test_costs_know_how_far_they_may_be_off() -> None:
    steady = run([WHOLE, SPLIT])[0].costs.lanes[0].alone
    assert steady.step_spread == steady.encode_spread == Spread()
    found = run([WHOLE, SPLIT], drift=lambda visits: (1.0, 1.0, 1.2, 1.2)[visits % 4])[0].costs
    for lane in found.lanes:
        spread = lane.alone.step_spread
        assert spread.low == pytest.approx(1.0 / 1.1, abs=0.1) and spread.low < 0.95
        assert spread.high > 1.05
    batch = found.lanes[0].alone
    assert batch.window_most > batch.window


def test_a_noisy_machine_is_admitted() -> None:
    assert run([WHOLE])[0].costs.noise == 0.0
    assert run([WHOLE])[0].costs.bandwidth
