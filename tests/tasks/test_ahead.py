"""What is done of an answer while the recording is still heard."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import pairwise
from typing import Any

import pytest

from as2d_cli.catalog import Bundle
from as2d_cli.catalog.build import CHAT_TEMPLATE
from as2d_cli.decoding import Engine, PlanRequest, Window, make_plan
from as2d_cli.errors import As2dError
from as2d_cli.tasks import ahead as ahead_module
from as2d_cli.tasks.ahead import Ahead
from as2d_cli.tasks.asking import AskOptions, ask
from as2d_cli.tasks.models import Models
from as2d_cli.tasks.transcript import Monitor, Progress, Segment, SourceInfo
from tests.catalog.language_models import write_model
from tests.catalog.test_llama import bundle_of
from tests.fakes import FakeCounters, FakeEngine, FakePlan, FakeRun, Script, answerer, text_of
from tests.tasks.test_asking import Reader, transcript
from tests.tasks.test_transcription import Watcher

OPTIONS = AskOptions(system="Be brief.")
INFO = SourceInfo("clip.wav", None, "whisper-base", None, "target", 8)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The speech stage counts as idle as soon as it is."""
    monkeypatch.setattr(ahead_module, "_QUIET", 0.0)
    monkeypatch.setattr(ahead_module, "_BLOCK", 16)


def progress(*activities: str, cores: tuple[int, ...] = (0, 1)) -> Progress:
    """Of a speech stage whose lanes do this."""
    lanes = dict(zip(("target", "draft"), ((a, -1) for a in activities), strict=False))
    counters = FakeCounters(lanes={"target": {"cores": list(cores)}})
    return Progress(INFO, 0.0, "", "", 0, 0, 1.0, lanes, counters)


IDLE, BUSY = progress("idle", "idle"), progress("verifying", "drafting")


class Slow(FakeRun):
    """A run whose windows are not done before `release` is set."""

    release: threading.Event

    def poll(self, timeout: float, /) -> list[Any]:
        if self._windows and not self._cancelled and not self.release.wait(timeout):
            return []
        return super().poll(timeout)


class Stage:
    """A language model that is opened and run in plain sight."""

    def __init__(self, context: int = 2048, fails: tuple[str, ...] = (), **how: Any) -> None:
        self.script, self.watcher = Script(), Watcher()
        self.release, self.loaded = threading.Event(), threading.Event()
        self.release.set()
        self.loaded.set()
        self.loading = threading.Event()
        self.opened: list[str] = []
        self.closed = threading.Event()
        self._context, self._fails = context, list(fails)
        self.ahead = Ahead(self.opening, OPTIONS, "summarize", self.watcher, **how)

    def opening(self, monitor: Monitor) -> AbstractContextManager[Models]:
        @contextmanager
        def models() -> Iterator[Models]:
            self.opened.append(threading.current_thread().name)
            self.loading.set()
            assert self.loaded.wait(30)
            if self._fails:
                raise As2dError(self._fails.pop(0))
            plan = FakePlan("lookup", 8)
            engine = FakeEngine(self.script, plan)
            slow = type("Slow", (Slow,), {"release": self.release})
            engine.start = lambda draft=True: slow(self.script, draft, 8)  # type: ignore[method-assign]
            try:
                yield Models(engine, answerer("toy", self._context), None, plan)
            finally:
                self.closed.set()

        return models()

    def say(self, *lines: str) -> None:
        for line in lines:
            self.ahead.listener.segment(Segment(0.0, 1.0, line, ()))

    def see(self, progress: Progress) -> None:
        self.ahead.watcher.progress(progress)

    @property
    def windows(self) -> list[Window]:
        return [entry[1] for entry in list(self.script.log) if entry[0] == "window"]


def until(condition: Callable[[], bool]) -> None:
    """Waits for it."""
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


def computed(stage: Stage) -> str:
    return text_of(stage.ahead.computed).rstrip("\n")


def test_the_prompt_is_computed_while_nobody_speaks() -> None:
    stage = Stage()
    with stage.ahead:
        stage.see(IDLE)
        assert not stage.opened, "nothing was said"
        stage.say("Hello world.")
        until(lambda: computed(stage).endswith("Hello world."))
        stage.see(BUSY)
        stage.say("Good bye.")
        stage.see(IDLE)
        until(lambda: computed(stage).endswith("Hello world.\nGood bye."))
        models = stage.ahead.models()
        assert models.target.id == "toy"
        assert stage.opened == ["as2d-ahead"]
        assert not stage.closed.is_set()
    assert stage.closed.is_set()
    # Blocks, each of which goes on from the one before; no word of an answer is asked for.
    prompts = [list(window.prompt) for window in stage.windows]
    assert {window.max_tokens for window in stage.windows} == {1}
    for before, after in pairwise(prompts):
        assert after[: len(before)] == before
        assert 0 < len(after) - len(before) <= 16
    count = len(stage.ahead.computed)
    assert f"info {count} tokens of the prompt were computed while listening" in stage.watcher.talk


def test_a_busy_speech_stage_has_all_cores() -> None:
    stage = Stage(own_cores=(0, 1), cores=2)
    with stage.ahead:
        stage.see(BUSY)
        stage.say("Hello world.")
        stage.see(BUSY)
        time.sleep(0.05)
        assert not stage.opened
        stage.ahead.models()
        assert stage.opened == [threading.current_thread().name]
        assert not stage.ahead.computed
    assert stage.closed.is_set()


def test_idle_for_a_moment_is_not_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead_module, "_QUIET", 3600.0)
    stage = Stage()
    with stage.ahead:
        stage.see(IDLE)
        stage.say("Hello world.")
        stage.see(IDLE)
        time.sleep(0.05)
        assert not stage.opened


def test_it_gives_way_to_speech_and_goes_on_later() -> None:
    stage = Stage()
    with stage.ahead:
        stage.release.clear()
        stage.see(IDLE)
        stage.say("Hello world.")
        until(lambda: len(stage.windows) == 1)
        stage.see(BUSY)
        until(lambda: "cancel" in stage.script.log)
        assert not stage.ahead.computed
        stage.release.set()
        stage.see(IDLE)
        until(lambda: computed(stage).endswith("Hello world."))
    assert stage.windows[0].prompt == stage.windows[1].prompt


def test_a_core_to_spare_is_enough_to_load_but_not_to_compute() -> None:
    stage = Stage(own_cores=(0, 1), cores=3)
    with stage.ahead:
        stage.see(BUSY)
        stage.say("Hello world.")
        until(lambda: bool(stage.opened))
        time.sleep(0.05)
        assert not stage.windows
        stage.ahead.models()
        assert stage.opened == ["as2d-ahead"]
    assert "info toy was loaded while listening" in stage.watcher.talk


@pytest.mark.parametrize(("cores", "computes"), [(4, True), (3, False)])
def test_cores_of_its_own_are_enough_for_all(cores: int, computes: bool) -> None:
    stage = Stage(own_cores=(2, 3), cores=cores)
    with stage.ahead:
        stage.see(BUSY)
        stage.say("Hello world.")
        if computes:
            until(lambda: computed(stage).endswith("Hello world."))
        else:
            time.sleep(0.05)
            assert not stage.windows, "a quota of three is no four cores"


def test_what_is_being_computed_when_speech_ends_is_completed() -> None:
    stage = Stage()
    with stage.ahead:
        stage.release.clear()
        stage.see(IDLE)
        stage.say("Hello world.")
        until(lambda: len(stage.windows) == 1)
        stage.see(BUSY)
        threading.Timer(0.05, stage.release.set).start()
        stage.see(IDLE)
        stage.ahead.models()
    # One block, or where it had to give way first none; but no second.
    assert len(stage.ahead.computed) in (0, 16)


def test_a_transcript_that_is_too_long_is_not_computed() -> None:
    stage = Stage(context=256)
    with stage.ahead:
        stage.see(IDLE)
        stage.say("word " * 60)
        stage.ahead.models()
        assert not stage.windows


def test_a_model_that_cannot_be_loaded_is_one_warning_and_then_an_error() -> None:
    stage = Stage(fails=("no memory", "still no memory"))
    with stage.ahead:
        stage.see(IDLE)
        stage.say("Hello world.")
        until(lambda: bool(stage.opened))
        with pytest.raises(As2dError, match="still no memory"):
            stage.ahead.models()
    warnings = [line for line in stage.watcher.talk if line.startswith("warning")]
    assert warnings == ["warning nothing more is computed while listening: no memory"]


def test_a_model_that_can_be_loaded_later_answers() -> None:
    stage = Stage(fails=("no memory",))
    with stage.ahead:
        stage.see(IDLE)
        stage.say("Hello world.")
        until(lambda: bool(stage.opened))
        assert stage.ahead.models().target.id == "toy"
    assert len(stage.opened) == 2


def test_an_engine_that_fails_ahead_is_one_warning() -> None:
    stage = Stage()
    stage.script.fails = "no memory"
    with stage.ahead:
        stage.see(IDLE)
        stage.say("Hello world.")
        until(lambda: bool(stage.windows))
        stage.ahead.models()
    assert "warning nothing more is computed while listening: no memory" in stage.watcher.talk


def test_an_interruption_does_not_wait_for_a_model() -> None:
    stage = Stage()
    stage.loaded.clear()
    with pytest.raises(KeyboardInterrupt), stage.ahead:
        stage.see(IDLE)
        stage.say("Hello world.")
        assert stage.loading.wait(30)
        raise KeyboardInterrupt
    assert not stage.closed.is_set()
    stage.loaded.set()
    assert stage.closed.wait(30), "what was loaded in the end is closed by who loaded it"
    assert not stage.windows


def test_an_interruption_cancels_what_is_computed() -> None:
    stage = Stage()
    stage.release.clear()
    with pytest.raises(KeyboardInterrupt), stage.ahead:
        stage.see(IDLE)
        stage.say("Hello world.")
        until(lambda: bool(stage.windows))
        raise KeyboardInterrupt
    assert stage.closed.wait(30)
    assert "cancel" in stage.script.log


def test_a_failure_of_the_speech_stage_leaves_nothing_behind() -> None:
    stage = Stage()
    with pytest.raises(As2dError), stage.ahead:
        stage.see(IDLE)
        stage.say("Hello world.")
        until(lambda: bool(stage.windows))
        raise As2dError("no audio")
    assert stage.closed.is_set()


# With a real engine


QUESTIONS = ["q", "r", "why", "that", "the end"]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    folder = tmp_path_factory.mktemp("tiny")
    bundle = bundle_of(write_model(folder / "tiny.gguf"), folder / "bundle")
    # After its own it has nothing to say.
    template = "{% for m in messages %}{{ m.content }}{% endfor %}"
    (bundle.path / CHAT_TEMPLATE).write_text(template)
    return bundle


def test_answers_are_the_same_with_a_prompt_that_was_computed_ahead(tiny: Bundle) -> None:
    options, plan = AskOptions(system="", max_tokens=16), make_plan(PlanRequest("lookup"))

    @contextmanager
    def opening(monitor: Monitor) -> Iterator[Models]:
        with Engine.open(tiny, None, plan) as engine:
            yield Models(engine, tiny, None, plan)

    lines = ["the other thing", "and the other one"]
    said = []
    for early in (False, True):
        reader = Reader()
        with Ahead(opening, options, QUESTIONS[0], reader) as ahead:
            for number, line in enumerate(lines):
                if early:
                    ahead.watcher.progress(IDLE)
                ahead.listener.segment(Segment(0.0, 1.0, line, ()))
                if early:
                    until(lambda number=number: len(ahead.computed) > 14 * (number + 1))  # type: ignore[misc]
                    ahead.watcher.progress(BUSY)
            answers = ask(
                transcript(*lines), QUESTIONS, ahead.models(), options,
                sink=reader, monitor=reader, ahead=ahead.computed,
            )  # fmt: skip
        said.append([answer.tokens for answer in answers.answers])
        assert (answers.prompt_tokens_ahead > 30) == early
    assert said[0] == said[1]
    assert sum(map(len, said[0])) > 16
