"""The embedded models on real speech."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from as2d_cli import _native
from as2d_cli.audio.decode import AudioFile
from as2d_cli.audio.windows import windows
from as2d_cli.bench.dataset import Clip, load_clips
from as2d_cli.bench.session import BenchRequest, Session
from as2d_cli.bench.summary import summarise
from as2d_cli.catalog import Bundle, ensure_bundle
from as2d_cli.decoding import Counters, Engine, PlanRequest, RunCosts, Window, make_plan
from as2d_cli.decoding.events import (
    DrafterLost,
    DraftingChanged,
    Event,
    RunFinished,
    WindowFinished,
)
from as2d_cli.methods import METHODS
from as2d_cli.output.talk import Talk
from as2d_cli.tasks.models import default_backend
from as2d_cli.text.whisper_prompt import prompt
from as2d_cli.text.words import timed_words
from tests.bench.fakes import Notes, silent_environment

pytestmark = pytest.mark.model

DATA = Path(__file__).parents[1] / "data"
CLIPS = load_clips([DATA / "clips.jsonl"])
ENGLISH = [clip for clip in CLIPS if clip.language == "en"]
PLAN = make_plan(PlanRequest("target", 1))
DRAFTERS = ("moonshine-tiny-en", "whisper-tiny.en")


@pytest.fixture(scope="module")
def target() -> Bundle:
    return ensure_bundle("whisper-base")


@pytest.fixture(scope="module")
def drafters() -> dict[str, Bundle]:
    return {name: ensure_bundle(name) for name in DRAFTERS}


@pytest.fixture(scope="module")
def engine(target: Bundle) -> Iterator[Engine]:
    with Engine.open(target, None, make_plan(PlanRequest("as2d", 8))) as engine:
        yield engine


def decode(
    engine: Engine,
    clip: Clip,
    target: Bundle,
    *,
    draft: bool = True,
    method: str | None = None,
    language: str = "en",
) -> tuple[list[tuple[int, ...]], list[Event], Counters]:
    run = engine.start(draft, method=method)
    ids = prompt(target, language)
    with AudioFile(clip.path) as audio:
        for piece in windows(audio):
            run.submit(Window(piece.index, piece.start, piece.samples, ids, 440, language))
    run.finish()
    events: list[Event] = []
    while not (events and isinstance(events[-1], RunFinished)):
        events += run.poll(1.0)
    finished = {e.window: e.tokens for e in events if isinstance(e, WindowFinished)}
    tokens = [finished[window] for window in sorted(finished)]
    return tokens, events, run.counters()


def text_of(target: Bundle, tokens: list[tuple[int, ...]]) -> str:
    pieces = target.vocabulary().pieces
    return b"".join(pieces[t] for window in tokens for t in window).decode()


def words(text: str) -> list[str]:
    return "".join(c if c.isalnum() or c == "'" else " " for c in text.lower()).split()


@pytest.mark.parametrize("whole", [False, True], ids=["by window", "by recording"])
def test_every_strategy_says_what_the_target_says(whole: bool) -> None:
    request = BenchRequest(
        [DATA / "clips.jsonl"],
        "whisper-base",
        ["as2d"],
        [*DRAFTERS, "oracle"],
        [4, 16] if whole else [8],
        language="en",
        whole=whole,
        memory=False,
    )
    session = Session(request, default_backend(Talk(silent_environment(), quiet=True)), Notes())
    session.run()
    results = session.results
    assert results.complete
    assert results.withdrawn == {}
    for contender, row in zip(results.contenders, summarise(results), strict=True):
        assert row.differing == 0, row.label
        assert row.windows == 4
        if contender.method == "as2d":
            assert row.accepted_length is not None and row.accepted_length > 1, row.label
        if contender.drafter == "oracle":
            assert row.acceptance == 1.0


@pytest.mark.parametrize(
    ("drafter", "methods"),
    [("moonshine-tiny-en", METHODS), ("whisper-tiny.en", ("coupled", "pearl"))],
)
def test_every_method_says_what_the_target_says(
    target: Bundle, drafters: dict[str, Bundle], drafter: str, methods: tuple[str, ...]
) -> None:
    # Two windows, and the first is three times as long as what Moonshine takes at once.
    clip = next(clip for clip in ENGLISH if clip.path.stem == "hope")
    with Engine.open(target, drafters[drafter], make_plan(PlanRequest("coupled", 6))) as engine:
        alone, _, _ = decode(engine, clip, target, draft=False)
        assert len(alone) == 2
        for method in methods:
            tokens, events, counters = decode(engine, clip, target, method=method)
            assert tokens == alone, method
            assert not [event for event in events if isinstance(event, DrafterLost)], method
            if method in ("coupled", "adaptive", "pearl"):
                # However busy the machine is, and so of use beyond the first piece.
                assert counters.accepted > counters.committed // 3, method


@pytest.mark.parametrize("clip", CLIPS, ids=lambda clip: clip.path.stem)
def test_words_are_those_spoken(engine: Engine, target: Bundle, clip: Clip) -> None:
    assert clip.language is not None
    assert clip.text is not None
    tokens, _, _ = decode(engine, clip, target, language=clip.language)
    said, spoken = words(text_of(target, tokens)), words(clip.text)
    missing = [word for word in spoken if word not in said]
    assert len(missing) <= len(spoken) // 10, (said, spoken)
    assert abs(len(said) - len(spoken)) <= 2 + len(spoken) // 10


@pytest.mark.parametrize("clip", CLIPS, ids=lambda clip: clip.path.stem)
def test_language_is_recognised(engine: Engine, clip: Clip) -> None:
    with AudioFile(clip.path) as audio:
        first = next(windows(audio))
    code, probability = engine.detect_language(first.samples)
    assert code == clip.language
    assert 0.5 < probability <= 1.0


@pytest.mark.parametrize("ending", ["throw", "hang", "never"])
def test_a_drafter_that_fails_changes_nothing(target: Bundle, ending: str) -> None:
    with Engine.open(target, None, make_plan(PlanRequest("as2d", 8))) as engine:
        alone, _, _ = decode(engine, ENGLISH[0], target)
        # Right for five tokens, and then it fails.
        drafter = _native.ScriptedDrafter({0: list(alone[0][:5])}, ending)
        engine.set_drafter(drafter)
        tokens, events, counters = decode(engine, ENGLISH[0], target)
        assert tokens == alone
        assert counters.drafted >= 5
        lost = [event for event in events if isinstance(event, DrafterLost)]
        assert len(lost) == (0 if ending == "never" else 1)
        drafter.release()


def test_the_targets_own_text_as_draft_is_accepted_whole(target: Bundle) -> None:
    with Engine.open(target, None, make_plan(PlanRequest("as2d", 7))) as engine:
        alone, _, _ = decode(engine, ENGLISH[0], target)
        engine.set_drafter(_native.ScriptedDrafter({0: list(alone[0])}))
        tokens, _, counters = decode(engine, ENGLISH[0], target)
    assert tokens == alone
    assert counters.accepted == counters.proposed
    # One token from the prompt step, then eight a step, and the end.
    assert sum(counters.verify_steps.values()) == -(-len(alone[0]) // 8)


def test_a_broken_drafter_is_a_warning(
    target: Bundle, drafters: dict[str, Bundle], tmp_path: Path
) -> None:
    folder = tmp_path / "broken"
    shutil.copytree(drafters["moonshine-tiny-en"].path, folder)
    decoder = folder / drafters["moonshine-tiny-en"].decoder
    decoder.write_bytes(decoder.read_bytes()[: 1 << 20])
    with Engine.open(target, Bundle.read(folder), make_plan(PlanRequest("as2d", 8))) as engine:
        assert len(engine.warnings) == 1
        assert decoder.name in engine.warnings[0]
        tokens, events, _ = decode(engine, ENGLISH[0], target)
    assert not [event for event in events if isinstance(event, DrafterLost)]
    assert "country" in text_of(target, tokens)


def test_threads_are_on_their_cores(target: Bundle, drafters: dict[str, Bundle]) -> None:
    plan = make_plan(PlanRequest("as2d", 8))
    with Engine.open(target, drafters["moonshine-tiny-en"], plan) as engine:
        _, _, counters = decode(engine, ENGLISH[0], target)
    lanes = {"target": plan.target_cores, "draft": plan.draft_cores}
    for lane, cores in lanes.items():
        report = counters.lanes[lane]
        assert tuple(report["cores"]) == cores
        threads = report["threads"]
        assert {thread["actual"] for thread in threads} == {str(core) for core in cores}
        assert all(thread["refused"] == "" for thread in threads)
        assert all(thread["name"].startswith(f"as2d-{lane}"[:15]) for thread in threads)


def test_one_engine_gives_the_same_in_any_order(engine: Engine, target: Bundle) -> None:
    first = [decode(engine, clip, target)[0] for clip in ENGLISH]
    again = [decode(engine, clip, target)[0] for clip in reversed(ENGLISH)]
    assert first == again[::-1]


def test_silence_and_noise_do_not_leak_into_the_next_window(engine: Engine, target: Bundle) -> None:
    alone, _, _ = decode(engine, ENGLISH[0], target)
    ids = prompt(target, "en")
    with AudioFile(ENGLISH[0].path) as audio:
        speech = next(windows(audio)).samples
    noise = np.random.default_rng(0).standard_normal(480_000).astype(np.float32) * 0.01
    run = engine.start()
    for index, samples in enumerate((noise, speech, np.zeros(16_000, np.float32), speech)):
        run.submit(Window(index, 0.0, samples, ids, 60, "en"))
    run.finish()
    events: list[Event] = []
    while not (events and isinstance(events[-1], RunFinished)):
        events += run.poll(1.0)
    said = {e.window: e.tokens for e in events if isinstance(e, WindowFinished)}
    assert said[1] == said[3] == alone[0]


@pytest.mark.parametrize("together", [1, 2])
def test_a_run_that_adapts_says_the_same(
    target: Bundle, drafters: dict[str, Bundle], together: int
) -> None:
    """Steps alone are said to cost nothing, so that drafting is dropped and probed all the time."""
    costs = RunCosts({2: 1e-6}, {2: 0.010, 8: 0.014, 16: 0.025}, 0.0, 0.0)
    plan = dataclasses.replace(make_plan(PlanRequest("as2d", 15)), costs=costs, windows=together)
    ids = prompt(target, "en")
    with AudioFile(DATA / "jfk.flac") as audio:
        speech = next(windows(audio)).samples
    with Engine.open(target, drafters["moonshine-tiny-en"], plan) as engine:
        said = []
        decisions = 0
        for draft in (False, True):
            run = engine.start(draft)
            for index in range(7):
                samples = speech[: len(speech) - 16_000 * index]
                run.submit(Window(index, 0.0, samples, ids, 440, "en"))
            run.finish()
            events: list[Event] = []
            while not (events and isinstance(events[-1], RunFinished)):
                events += run.poll(1.0)
            said.append({e.window: e.tokens for e in events if isinstance(e, WindowFinished)})
            decisions = sum(isinstance(e, DraftingChanged) for e in events)
    assert len(said[0]) == 7
    assert said[1] == said[0]
    assert decisions > 0


def test_a_target_that_depends_on_its_rows_is_not_called_exact(target: Bundle) -> None:
    with Engine.open(dataclasses.replace(target, row_invariance="none"), None, PLAN) as engine:
        _, _, counters = decode(engine, ENGLISH[0], target)
    assert not counters.exact


def _asked(
    engine: Engine, ids: list[int], draft: bool, method: str, **wishes: object
) -> dict[int, WindowFinished]:
    """What the target says of the English clips."""
    run = engine.start(draft, method=method)
    for index, clip in enumerate(ENGLISH):
        with AudioFile(clip.path) as audio:
            samples = next(windows(audio)).samples
        run.submit(Window(index, 0.0, samples, ids, 440, "en", **wishes))  # type: ignore[arg-type]
    run.finish()
    events: list[Event] = []
    while not (events and isinstance(events[-1], RunFinished)):
        events += run.poll(1.0)
    return {e.window: e for e in events if isinstance(e, WindowFinished)}


@pytest.mark.parametrize("wishes", [{"timestamps": True}, {"temperature": 0.8, "seed": 3}])
def test_timestamps_and_what_is_drawn_are_the_same_whatever_is_drafted(
    target: Bundle, drafters: dict[str, Bundle], wishes: dict[str, object]
) -> None:
    timed = "timestamps" in wishes
    ids = prompt(target, "en", timestamps=timed)
    with Engine.open(target, drafters["whisper-tiny.en"], make_plan(PlanRequest("as2d", 8))) as e:
        alone = _asked(e, ids, False, "target", **wishes)
        for method in ("as2d", "coupled", "multi", "lookup"):
            found = _asked(e, ids, True, method, **wishes)
            for index, window in alone.items():
                assert found[index].tokens == window.tokens, method
                assert found[index].log_probability == window.log_probability
                assert found[index].no_speech == window.no_speech
    first = target.tokens["timestamp_begin"]
    assert all((window.tokens[0] >= first) == timed for window in alone.values())


def test_words_are_where_they_are_heard(engine: Engine, target: Bundle) -> None:
    """Pauses of this recording, by ear and by its energy: 2.2 to 3.2, 4.4 to 5.3, 7.7 to 8.1 s."""
    with AudioFile(DATA / "jfk.flac") as audio:
        samples = next(windows(audio)).samples
    run = engine.start(False)
    run.submit(Window(0, 0.0, samples, prompt(target, "en"), 440, "en", token_times=True))
    run.finish()
    events: list[Event] = []
    while not (events and isinstance(events[-1], RunFinished)):
        events += run.poll(1.0)
    (finished,) = [e for e in events if isinstance(e, WindowFinished)]
    pieces = target.vocabulary().pieces
    words = timed_words(finished.tokens, finished.times, pieces, "en")
    assert len(finished.times) == len(finished.tokens) + 1
    by_text = {word.text.strip(" ,."): word for word in words}
    assert by_text["Americans"].end == pytest.approx(2.2, abs=0.5)
    assert by_text["country"].end <= 11.0
    assert 3.0 < by_text["not"].start < 4.5
    assert 0.0 <= by_text["And"].start < 0.7
