"""The Python face over scripted models."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from as2d_cli import _native
from as2d_cli.decoding import Counters, Engine, Plan, Run, RunCosts, Window
from as2d_cli.decoding.events import (
    DraftAdvanced,
    DrafterLost,
    DraftingChanged,
    Event,
    LaneChanged,
    RunFinished,
    TokensCommitted,
    WindowFinished,
)
from as2d_cli.decoding.ort_library import ort_library
from as2d_cli.errors import As2dError

TEXT = {0: list(range(10, 60)), 1: list(range(100, 130))}
AS2D = Plan("as2d", (0,), (0,), budget=8)
PROMPT = [900, 901]


def window(index: int, max_tokens: int = 400) -> Window:
    return Window(index, 30.0 * index, np.array([index], np.float32), PROMPT, max_tokens)


def collect(run: Run) -> list[Event]:
    events: list[Event] = []
    deadline = time.monotonic() + 20
    while not (events and isinstance(events[-1], RunFinished)):
        assert time.monotonic() < deadline
        events += run.poll(0.1)
    return events


def decode(engine: Engine, draft: bool = True) -> tuple[list[Event], Counters]:
    run = engine.start(draft)
    for index in TEXT:
        run.submit(window(index))
    run.finish()
    return collect(run), run.counters()


def texts(events: list[Event]) -> dict[int, list[int]]:
    return {e.window: list(e.tokens) for e in events if isinstance(e, WindowFinished)}


def test_events_tell_the_whole_story_in_order() -> None:
    drafter = _native.ScriptedDrafter(TEXT)
    with Engine.scripted(TEXT, drafter, AS2D, encode_seconds=0.3) as engine:
        events, counters = decode(engine)
    assert texts(events) == TEXT
    committed: dict[int, list[int]] = {0: [], 1: []}
    for event in events:
        if isinstance(event, TokensCommitted):
            committed[event.window] += event.tokens
    assert committed == TEXT
    assert [e.seconds for e in events] == sorted(e.seconds for e in events)
    assert isinstance(events[-1], RunFinished)
    assert events[-1].error is None
    assert not events[-1].cancelled
    finished = [e for e in events if isinstance(e, DraftAdvanced) and e.finished]
    assert [(e.window, e.tokens) for e in finished] == [(0, 51), (1, 31)]
    activities = [e.activity for e in events if isinstance(e, LaneChanged) and e.lane == "target"]
    assert activities[:3] == ["encoding", "prompting", "verifying"]
    assert counters.windows == 2
    assert counters.committed == 80
    assert counters.accepted <= counters.proposed
    steps = sum(n * count for n, count in counters.verify_steps.items())
    assert steps == counters.proposed
    assert counters.exact
    assert set(counters.seconds) == {
        "encode",
        "prompt",
        "decode",
        "draft_encode",
        "draft_decode",
        "wall",
    }
    assert counters.as_json()["verify_steps"] == dict(counters.verify_steps)


def test_without_drafting_the_target_goes_alone() -> None:
    drafter = _native.ScriptedDrafter(TEXT)
    with Engine.scripted(TEXT, drafter, AS2D) as engine:
        events, counters = decode(engine, draft=False)
    assert texts(events) == TEXT
    assert counters.verify_steps == {}
    assert counters.drafted == 0


@pytest.mark.parametrize("ending", ["throw", "hang"])
def test_a_drafter_that_fails_costs_one_warning_and_no_text(ending: str) -> None:
    drafter = _native.ScriptedDrafter({0: TEXT[0][:10]}, ending)
    with Engine.scripted(TEXT, drafter, AS2D, step_seconds=0.0002) as engine:
        events, _ = decode(engine)
        assert texts(events) == TEXT
        assert len([e for e in events if isinstance(e, DrafterLost)]) == 1
        # It is not used again.
        events, counters = decode(engine)
        assert texts(events) == TEXT
        assert not [e for e in events if isinstance(e, DrafterLost)]
        assert counters.drafted == 0
    drafter.release()


def test_other_threads_run_while_one_waits_for_events() -> None:
    with Engine.scripted(TEXT, None, AS2D, encode_seconds=0.3) as engine:
        run = engine.start()
        run.submit(window(0))
        turns = 0
        waiting = threading.Thread(target=run.poll, args=(5.0,))
        run.poll(0.1)  # what the lane told when it began
        waiting.start()
        while waiting.is_alive() and turns < 1000:
            turns += 1
        assert turns == 1000, "the GIL was held"
        run.cancel()
        waiting.join()


def test_cancel_comes_from_any_thread() -> None:
    with Engine.scripted(TEXT, None, AS2D, encode_seconds=30.0) as engine:
        run = engine.start()
        run.submit(window(0))
        threading.Timer(0.05, run.cancel).start()
        last = collect(run)[-1]
    assert isinstance(last, RunFinished)
    assert last.cancelled


def test_a_run_that_is_dropped_ends() -> None:
    with Engine.scripted(TEXT, None, AS2D, encode_seconds=30.0) as engine:
        run = engine.start()
        run.submit(window(0))
        start = time.monotonic()
        del run
        assert time.monotonic() - start < 5, "it waited for the encoder"


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (Window(0, 0.0, np.zeros(1, np.float32), [], 10), "prompt"),
        (Window(0, 0.0, np.zeros(1, np.float32), [1] * 447, 10), "context"),
        (Window(0, 0.0, np.zeros(1, np.float32), [1000], 10), "vocabulary"),
        (Window(0, 0.0, np.zeros(1, np.float32), PROMPT, -1), "max_tokens"),
    ],
)
def test_requests_that_cannot_be_served_are_refused(bad: Window, problem: str) -> None:
    with Engine.scripted(TEXT, None, AS2D) as engine:
        run = engine.start()
        with pytest.raises(As2dError, match=problem):
            run.submit(bad)


def test_a_scripted_engine_is_measured_like_a_real_one() -> None:
    engine = _native.Engine.scripted(TEXT, 0.001, 0.002)
    assert min(engine.time_encode(30.0, 3)) >= 0.002
    steps = engine.time_steps([1, 2, 8], 4)
    assert [len(times) for times in steps] == [4, 4, 4]
    assert min(map(min, steps)) >= 0.001
    with pytest.raises(_native.NativeError, match="no drafter"):
        engine.time_draft(np.zeros(1, np.float32))
    engine.set_drafter(_native.ScriptedDrafter(TEXT, token_seconds=0.0005, encode_seconds=0.003))
    draft = engine.time_draft(np.zeros(1, np.float32), "en")
    assert draft["complete"]
    assert draft["tokens"] == list(TEXT[0])
    assert draft["encode"] >= 0.003
    assert draft["steps"] >= 0.0005 * len(TEXT[0])
    together = engine.time_together([2, 8], 0.05, np.zeros(1, np.float32), "en")
    assert all(together["steps"])
    assert together["drafts"][0]["tokens"]


@pytest.mark.parametrize("pays", [True, False])
def test_a_drafter_that_does_not_pay_is_dropped(pays: bool) -> None:
    script = {index: [10 + index] * 20 for index in range(12)}
    draft = script if pays else {index: [1] * 400 for index in script}
    # What a step of the target alone should take: far more than it does, or far less.
    costs = RunCosts({2: 10.0 if pays else 1e-7}, {}, 0.0, 0.0)
    plan = replace(AS2D, costs=costs)
    with Engine.scripted(
        script, _native.ScriptedDrafter(draft), plan, step_seconds=0.001
    ) as engine:
        run = engine.start()
        for index in script:
            run.submit(window(index))
        run.finish()
        events = collect(run)
    assert texts(events) == script
    decisions = [e for e in events if isinstance(e, DraftingChanged)]
    if pays:
        assert not decisions
    else:
        assert not decisions[0].on
        assert "of the target's own time with drafts" in decisions[0].message


def test_costs_that_cannot_be_are_refused() -> None:
    plan = replace(AS2D, costs=RunCosts({1: -1.0}, {}, 0.0, 0.0))
    with Engine.scripted(TEXT, None, plan) as engine:
        with pytest.raises(As2dError, match="a step of 1 rows cannot take"):
            engine.start()
        decode_only = engine.start(adaptive=False)
        decode_only.cancel()


def test_measuring_can_be_cancelled() -> None:
    engine = _native.Engine.scripted(TEXT, 0.001, 30.0)
    threading.Timer(0.05, engine.cancel_timing).start()
    for _ in range(2):
        with pytest.raises(_native.NativeCancelledError):
            engine.time_encode(30.0, 3)


def test_a_scripted_target_knows_no_languages() -> None:
    with Engine.scripted(TEXT, None, AS2D) as engine, pytest.raises(As2dError, match="languages"):
        engine.detect_language(np.zeros(100, np.float32))


def test_a_head_is_not_heard_without_its_target(tmp_path: Path) -> None:
    description = "as2d-bundle 1\nid: small\nfamily: head\nkind: ctc\ntarget: big\n"
    (tmp_path / "bundle.txt").write_text(description, encoding="utf-8")
    silence = np.zeros(100, np.float32)
    with pytest.raises(_native.NativeError, match="says nothing without its target; pull 'big'"):
        _native.draft_alone(ort_library(), tmp_path, silence, "en")
    with pytest.raises(_native.NativeError, match="'head' cannot be the target"):
        _native.draft_alone(ort_library(), tmp_path, silence, "en", tmp_path)
