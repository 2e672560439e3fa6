"""The Python face over scripted models."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import pytest

from as2d_cli import _native
from as2d_cli.decoding import Counters, Engine, Plan, Run, Window
from as2d_cli.decoding.events import (
    DraftAdvanced,
    DrafterLost,
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
