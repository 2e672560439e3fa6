"""What is answered about real speech, against `transformers`: token for token, by every method."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from as2d_cli.audio.downmix import Samples
from as2d_cli.catalog import ensure_bundle
from as2d_cli.decoding import Engine, PlanRequest, Window, make_plan
from as2d_cli.decoding.events import DrafterLost, RunFinished, WindowFinished
from as2d_cli.tasks.prompting import AskOptions, Prompt, Prompter
from as2d_cli.tasks.subject import Heard
from tests.audio_llms.conftest import KINDS, Published, clip
from tests.audio_llms.reference import answer

Publish = Callable[[str], Published]

TOKENS = 48
DRAFTED = ("as2d", "coupled", "adaptive", "pearl", "anchored")


def asked(model: Published, samples: Samples, question: str) -> Prompt:
    prompter = Prompter(model.bundle, AskOptions())
    spoken = [(0, len(samples))]
    return Heard(samples, spoken, "Be brief.", model.bundle, prompter, "en").whole(question)


def said(
    engine: Engine, prompts: Sequence[Prompt], method: str, *, temperature: float = 0.0
) -> list[tuple[int, ...]]:
    """What is answered to prompts that are asked in one run."""
    run = engine.start(method=method, adaptive=False)
    for i, prompt in enumerate(prompts):
        run.submit(
            Window(
                i,
                0.0,
                prompt.samples,
                prompt.ids,
                TOKENS,
                prompt.language,
                temperature=temperature,
                seed=5,
            )
        )
    run.finish()
    found = {}
    while True:
        for event in run.poll(1.0):
            assert not isinstance(event, DrafterLost), event.message
            if isinstance(event, WindowFinished):
                found[event.window] = event.tokens
            elif isinstance(event, RunFinished):
                assert event.error is None, event.error
                assert run.counters().exact
                return [found[i] for i in range(len(prompts))]


def opened(model: Published) -> Engine:
    return Engine.open(model.bundle, None, make_plan(PlanRequest("target", 8)))


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(
    ("file", "seconds"), [("jfk.flac", None), ("hope.mp3", 4.0), ("gutenberg.flac", 33.3)]
)
def test_tokens_are_those_of_the_reference(
    published: Publish, name: str, file: str, seconds: float | None
) -> None:
    model = published(name)
    prompt = asked(model, clip(file, seconds), "summarize")
    right = answer(model, prompt.ids, prompt.samples, TOKENS)
    ends = [i for i, token in enumerate(right) if token in model.bundle.ends]
    right = right[: ends[0]] if ends else right
    with opened(model) as engine:
        for method in ("target", "lookup"):
            assert said(engine, [prompt], method) == [tuple(right)], method
        wrong = [right[0], *(1 + token % 600 for token in right[1:])]
        for script in (right, wrong, right[:5] + wrong[5:9] + right[9:]):
            engine.replay({0: script})
            for method in DRAFTED:
                assert said(engine, [prompt], method) == [tuple(right)], method


@pytest.mark.parametrize("name", KINDS)
def test_answers_depend_on_what_is_heard_and_on_the_question(published: Publish, name: str) -> None:
    model = published(name)
    prompts = [
        asked(model, clip(file, 4.0), question)
        for file in ("jfk.flac", "hope.mp3")
        for question in ("summarize", "who speaks?")
    ]
    with opened(model) as engine:
        together = said(engine, prompts, "target")
        assert len(set(together)) == len(prompts)
        # Nothing of one is left in another, though audio and beginnings are shared.
        assert [said(engine, [prompt], "target")[0] for prompt in prompts[::-1]] == together[::-1]
    with opened(model) as engine:
        assert said(engine, prompts[-1:], "lookup") == together[-1:]


@pytest.mark.parametrize("name", KINDS)
def test_what_is_drawn_by_chance_is_the_same_by_every_method(published: Publish, name: str) -> None:
    model = published(name)
    prompt = asked(model, clip("hope.mp3", 4.0), "summarize")
    with opened(model) as engine:
        (likeliest,) = said(engine, [prompt], "target")
        drawn = said(engine, [prompt], "target", temperature=1.5)
        assert drawn != [likeliest]
        engine.replay({0: drawn[0][:7] + likeliest})
        for method in ("lookup", *DRAFTED):
            assert said(engine, [prompt], method, temperature=1.5) == drawn, method


@pytest.mark.model
@pytest.mark.parametrize("name", ["ultravox", "voxtral"])
@pytest.mark.parametrize("drafter", ["whisper-tiny.en", "moonshine-tiny-en"])
def test_a_speech_model_drafts_through_text(published: Publish, name: str, drafter: str) -> None:
    model = published(name)
    prompt = asked(model, clip("gutenberg.flac", 33.3), "summarize")
    plan = make_plan(PlanRequest("as2d", 8))
    with Engine.open(model.bundle, ensure_bundle(drafter), plan) as engine:
        assert not engine.warnings
        right = said(engine, [prompt], "target")
        assert said(engine, [prompt], "as2d") == right
        assert said(engine, [prompt], "coupled") == right
