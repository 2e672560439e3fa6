"""A real language model. It is not fetched for tests: `as2d models pull` brings it."""

from __future__ import annotations

import pytest

from as2d_cli.catalog import find_bundle
from as2d_cli.output.talk import Talk
from as2d_cli.tasks.asking import AskOptions, answering, ask
from as2d_cli.tasks.models import Backend, check_answerer, default_backend, make_plan, open_models
from tests.bench.fakes import silent_environment
from tests.tasks.test_asking import Reader, transcript

pytestmark = pytest.mark.llm

MODEL = "qwen2.5-coder-0.5b-instruct"
SPEECH = (
    "And so my fellow Americans, ask not what your country can do for you.",
    "Ask what you can do for your country.",
)


@pytest.fixture(scope="module")
def backend() -> Backend:
    if find_bundle(MODEL) is None:
        pytest.skip(f"{MODEL} is not in the cache")
    return default_backend(Talk(silent_environment(), quiet=True))


def answer(backend: Backend, question: str, method: str, options: AskOptions) -> str:
    request = answering(MODEL, method=method, offline=True)
    plan, reader = make_plan(request, backend), Reader()
    with open_models(request, plan, backend, reader, check=check_answerer) as models:
        told = ask(transcript(*SPEECH), [question], models, options, sink=reader, monitor=reader)
    return told.answers[0].text


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_look_ups_change_no_answer(backend: Backend, temperature: float) -> None:
    options = AskOptions(max_tokens=60, temperature=temperature, seed=3)
    question = "repeat the transcript, word for word"
    alone = answer(backend, question, "target", options)
    assert "country" in alone
    assert answer(backend, question, "lookup", options) == alone


def test_another_seed_draws_another_answer(backend: Backend) -> None:
    drawn = {
        answer(backend, "summarize", "target", AskOptions(max_tokens=40, temperature=1, seed=seed))
        for seed in range(3)
    }
    assert len(drawn) > 1
