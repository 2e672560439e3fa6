"""What answering costs: measured, kept, chosen by."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from as2d_cli.catalog import Bundle
from as2d_cli.decoding import Counters, RunCosts, Window
from as2d_cli.decoding.events import DrafterLost, RunFinished
from as2d_cli.errors import As2dError
from as2d_cli.profile import answer_timing
from as2d_cli.profile.answer_choice import choose, repeating_share
from as2d_cli.profile.answer_costs import FREE, SOURCE, AnswerCosts, Trial
from as2d_cli.profile.answer_profiles import AnswerProfiles
from as2d_cli.profile.answer_timing import AnswerSubject, measure_answers
from as2d_cli.profile.layouts import Layout
from as2d_cli.profile.measure import Effort
from as2d_cli.profile.recent import RecentAnswer, RecentAnswers
from as2d_cli.tasks.models import default_backend
from tests.catalog.language_models import write_model
from tests.catalog.test_llama import bundle_of
from tests.fakes import run_cli
from tests.tasks.test_transcription import Watcher

USUAL = {"spread": 0.1, "length": 1.0}
KEY = {"machine": "a machine", "kernels": "k", "target": "toy", "drafter": "small", "as2d": "1"}


def known(spread: float = 0.05, **trials: tuple[float, float]) -> AnswerCosts:
    """The target takes 10 s for an answer of either kind; `trials`: other methods' seconds."""
    seconds = {"target": (10.0, 10.0), "lookup": (10.0, 5.0), **trials}
    lengths = {"target": (1.0, 1.0), "lookup": (1.0, 5.0), "coupled": (3.0, 6.0)}
    return AnswerCosts(
        target="toy",
        drafter="small",
        cores=(0, 1),
        split=((0,), (1,)),
        steps={1: 0.05, 8: 0.08},
        beside={1: 0.07, 8: 0.11},
        prompt=0.005,
        draft_token=0.02,
        draft_beside=0.03,
        draft_prompt=0.002,
        trials={
            method: {
                kind: Trial(took, spread, lengths.get(method, (1.5, 2.0))[number])
                for number, (kind, took) in enumerate(zip((FREE, SOURCE), pair, strict=True))
            }
            for method, pair in seconds.items()
        },
        key=KEY,
        created="2026-01-02T03:04:05+00:00",
    )


# The choice


@pytest.mark.parametrize(
    ("trials", "spread", "method"),
    [
        ({}, 0.05, "lookup"),
        ({"coupled": (7.0, 3.0)}, 0.05, "coupled"),
        # Faster altogether, but answers in the model's own words would be slower.
        ({"coupled": (10.5, 1.0)}, 0.05, "lookup"),
        # As good as look-ups, as far as can be told.
        ({"coupled": (9.7, 4.8)}, 0.05, "lookup"),
        ({"coupled": (7.0, 3.0)}, 0.5, "lookup"),
        # Look-ups have as many candidates as pay: what they seem to cost is noise.
        ({"lookup": (10.2, 10.1)}, 0.05, "lookup"),
        ({"lookup": (11.5, 11.5)}, 0.01, "target"),
    ],
)
def test_the_fastest_that_is_surely_no_slower(
    trials: dict[str, tuple[float, float]], spread: float, method: str
) -> None:
    assert choose(known(spread, **trials), []).method == method


def test_why() -> None:
    why = choose(known(coupled=(7.0, 3.0)), []).why
    assert why == (
        "by what was measured here on 2026-01-02: 2.00 x the target alone where 50% of the answers "
        "repeat what was said (lookup 1.33 x)"
    )


def test_only_what_is_allowed() -> None:
    costs = known(coupled=(5.0, 1.0), anchored=(4.0, 3.0))
    assert choose(costs, [], ["target", "lookup", "coupled"]).method == "coupled"


def test_steps_tell_what_is_asked_for() -> None:
    costs = known(coupled=(7.0, 3.0))
    assert repeating_share(costs, []) == 0.5
    assert repeating_share(costs, [RecentAnswer("lookup", 5.0)] * 20) > 0.85
    assert repeating_share(costs, [RecentAnswer("lookup", 1.0)] * 20) < 0.15
    assert repeating_share(costs, [RecentAnswer("coupled", 4.5)] * 20) == pytest.approx(0.5)
    # The target alone commits one a step whatever is asked for; others were not measured.
    assert repeating_share(costs, [RecentAnswer("target", 1.0)] * 20) == 0.5
    assert repeating_share(costs, [RecentAnswer("pearl", 1.0)] * 20) == 0.5
    # What is new counts for more.
    turned = [RecentAnswer("lookup", 1.0)] * 10 + [RecentAnswer("lookup", 5.0)] * 10
    assert repeating_share(costs, turned) > repeating_share(costs, turned[::-1])


# What is kept


def test_costs_are_kept_until_they_are_stale(tmp_path: Path) -> None:
    profiles, costs = AnswerProfiles(tmp_path), known()
    assert profiles.load(KEY) == (None, "nothing was measured here")
    path = profiles.save(costs)
    assert profiles.load(KEY) == (costs, "")
    found, why = profiles.load({**KEY, "kernels": "other"})
    assert found is None
    assert why == "what was measured is stale: kernels changed since"
    assert profiles.load({**KEY, "drafter": None})[0] is None
    for broken in (path.read_text()[:100], "[]", "[" * 100_000):
        path.write_text(broken)
        assert profiles.load(KEY) == (None, f"{path.name} is broken")


@pytest.mark.parametrize(
    "change",
    [
        {"format": "x"},
        {"steps": {}},
        {"steps": {"1": 0}},
        {"steps": {"1": math.inf}},
        {"trials": {"t": {"k": {}}}},
        {"trials": {}},
        {"trials": {"target": {FREE: {"seconds": 1, "spread": 0, "length": 1}}}},
        {"trials": {"target": dict.fromkeys((FREE, SOURCE), {"seconds": 0} | USUAL)}},
        {"trials": {"target": dict.fromkeys((FREE, SOURCE), {"seconds": "long"} | USUAL)}},
    ],
)
def test_what_are_no_costs(change: dict[str, Any]) -> None:
    data = json.loads(json.dumps(known().as_json()))
    assert AnswerCosts.from_json(data) == known()
    with pytest.raises(ValueError, match=r"is|not"):
        AnswerCosts.from_json(data | change)


def test_recent_answers_are_remembered(tmp_path: Path) -> None:
    file = tmp_path / "answers" / "recent.json"
    recent = RecentAnswers(file)
    recent.add("lookup", 30, 0)
    assert not recent.answers
    for tokens in range(1, 41):
        recent.add("lookup", tokens, 10)
    again = RecentAnswers(file).answers
    assert again == recent.answers
    assert len(again) == 32
    assert again[-1] == RecentAnswer("lookup", 4.0)
    for broken in ("[1]", "[" * 100_000):
        file.write_text(broken)
        assert not RecentAnswers(file).answers
    file.unlink()
    file.parent.rmdir()
    file.parent.write_text("no folder")
    RecentAnswers(file).add("lookup", 30, 10)


# Measuring


QUICK = Effort(0.0, (1, 4, 8), 2, 1)


class Silent:
    def begin(self, summary: str, total: float) -> None: ...
    def doing(self, what: str) -> None: ...
    def advance(self, amount: float) -> None: ...


@dataclass
class FakeRun:
    """A run of which the counters are known."""

    engine: FakeEngine
    method: str
    costs: RunCosts | None
    cancelled: bool = False

    def submit(self, window: Window, /) -> None:
        self.engine.windows.append((self.method, window))

    def finish(self) -> None: ...

    def cancel(self) -> None:
        self.cancelled = True
        self.engine.cancelled += 1

    def poll(self, timeout: float, /) -> Sequence[Any]:
        if self.method in self.engine.loses:
            return [DrafterLost(0.0, "crash")]
        return [RunFinished(0.0, False, self.engine.fails)]

    def counters(self) -> Counters:
        drafts = self.method not in ("target", "lookup")
        seconds = {
            "wall": 2.0 if drafts else 4.0,
            "prompt": 1.0,
            "decode": 1.5,
            "draft_encode": 0.5 if drafts else 0.0,
            "draft_decode": 0.6 if drafts else 0.0,
        }
        # 40 tokens in ten steps of one row and ten of four.
        return Counters(1, 40, {3: 10}, 10, 30, 20, 0, 30 if drafts else 0, 0, 0, seconds, {}, True)


@dataclass
class FakeEngine:
    layout: Layout
    windows: list[tuple[str, Window]] = field(default_factory=list)
    loses: tuple[str, ...] = ()
    fails: str | None = None
    cancelled: int = 0

    def time_steps(self, rows: Sequence[int], repeats: int, /) -> list[list[float]]:
        # While four rows were timed something else went on.
        return [[{1: 0.05, 4: 0.09, 8: 0.08}[n]] * repeats for n in rows]

    def start(
        self, draft: bool = True, *, method: str, budget: int, costs: RunCosts | None
    ) -> FakeRun:
        assert draft == (method not in ("target", "lookup"))
        return FakeRun(self, method, costs)


def measured(
    drafter: str | None = "small", split: Layout | None = ((0,), (1,)), **how: Any
) -> tuple[AnswerCosts, list[FakeEngine]]:
    engines: list[FakeEngine] = []

    @contextmanager
    def open_engine(layout: Layout) -> Iterator[FakeEngine]:
        engines.append(FakeEngine(layout, **how))
        yield engines[-1]

    prompts = {FREE: ([5, 6, 7, 8], [5, 3]), SOURCE: ([5, 6, 9, 8], [5, 3])}
    subject = AnswerSubject("toy", drafter, (0, 1), split, open_engine, prompts)
    return measure_answers(subject, QUICK, Silent()), engines


def test_every_method_answers_both_questions_with_nothing_known() -> None:
    costs, (whole, split) = measured()
    assert (whole.layout, split.layout) == (((0, 1), (0, 1)), ((0,), (1,)))
    assert set(costs.trials) == {"target", "lookup", "coupled", "as2d", "anchored"}
    for engine in (whole, split):
        pairs = list(zip(engine.windows[::2], engine.windows[1::2], strict=True))
        for (_, before), (_, asked) in pairs:
            assert before.prompt[0] != asked.prompt[0]
            assert before.draft_prompt[0] != asked.draft_prompt[0]
    # Two rounds at least, the second the other way round.
    methods = [method for method, _ in whole.windows[1::2]]
    once = ["target"] * 2 + ["lookup"] * 2 + ["coupled"] * 2
    assert methods == once + once[::-1]
    assert (costs.cores, costs.split) == ((0, 1), ((0,), (1,)))
    assert costs.steps == pytest.approx({1: 0.05, 4: 0.08, 8: 0.08})
    # Steps were timed to take 1.3 s, and took 1.5 beside a drafter.
    assert costs.beside == pytest.approx({n: s * 1.5 / 1.3 for n, s in costs.steps.items()})
    assert costs.prompt == pytest.approx(0.25)
    assert (costs.draft_token, costs.draft_beside) == pytest.approx((0.02, 0.02))
    assert costs.draft_prompt == pytest.approx(0.125)
    assert costs.trials["coupled"][FREE] == Trial(2.0, 0.0, 2.0)


def test_a_model_alone() -> None:
    costs, (only,) = measured(drafter=None, split=None)
    assert only.layout == ((0, 1), ())
    assert set(costs.trials) == {"target", "lookup"}
    assert (costs.split, costs.beside, costs.draft_token) == (None, {}, None)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"loses": ("coupled",)}, "small cannot be measured: crash"),
        ({"fails": "no memory"}, "toy cannot be measured: no memory"),
    ],
)
def test_a_model_that_fails(how: dict[str, Any], said: str) -> None:
    with pytest.raises(As2dError, match=said):
        measured(**how)


# The command, with real models


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Bundle, Bundle]:
    folder = tmp_path_factory.mktemp("models")
    made = []
    for seed, name in enumerate(("one", "other")):
        file = write_model(folder / f"{name}.gguf", seed=seed, context=2048)
        made.append(bundle_of(file, folder / name))
    return made[0], made[1]


@pytest.fixture
def few_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_timing, "MOST_TOKENS", 8)


def test_a_language_model_is_measured_kept_and_planned_by(
    models: tuple[Bundle, Bundle],
    tmp_path: Path,
    few_tokens: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    variables = {"AS2D_CACHE_DIR": str(tmp_path)}
    pair = ("--target", str(models[0].path), "--drafter", str(models[1].path))
    plan = tmp_path / "plan.json"
    ran = run_cli("profile", *pair, "--quick", "--json", "--save", str(plan), variables=variables)
    assert ran.status == 0, ran.stderr
    assert "; ask plans by it\n" in ran.stderr
    data = json.loads(ran.stdout)
    costs = AnswerCosts.from_json(data["costs"])
    assert {"target", "lookup", "coupled"} <= set(costs.trials)
    assert all(seconds > 0 for seconds in costs.steps.values())
    assert data["method"] in costs.trials
    assert json.loads(plan.read_text())["method"] == data["method"]
    saved = run_cli("profile", *pair, "--saved", variables=variables)
    assert saved.status == 0, saved.stderr
    assert f"best: --method {data['method']}" in saved.stdout
    assert "a token of a prompt takes" in saved.stdout
    other = run_cli("profile", "--target", str(models[0].path), "--drafter", "none", "--saved",
                    variables=variables)  # fmt: skip
    assert other.stderr == "as2d: nothing was measured here; run as2d profile without --saved\n"
    # What ask asks, which knows models by the names that it was given.
    monkeypatch.setenv("AS2D_CACHE_DIR", str(tmp_path))
    backend = default_backend(Watcher())
    own, drafter = (str(model.path) for model in models)
    assert backend.answer_costs(own, drafter) == (costs, "")
    assert backend.answer_costs("./none", drafter) == (None, "nothing was measured here")
    backend.recent(own).add("lookup", 6, 2)
    kept = AnswerProfiles(tmp_path).recent(models[0].id).answers
    assert kept == (RecentAnswer("lookup", 3.0),)


@pytest.mark.parametrize("option", ["--html", "--alignment"])
def test_what_a_language_model_has_no_use_for(
    models: tuple[Bundle, Bundle], tmp_path: Path, option: str
) -> None:
    ran = run_cli("profile", "--target", str(models[0].path), option, str(tmp_path / "x"))
    assert ran.status == 2
    assert f"the language model tiny and {option} do not go together" in ran.stderr


def test_a_drafter_is_one_that_is_here_and_smaller() -> None:
    from as2d_cli.catalog import load_catalogue

    catalogue = load_catalogue()
    large, small = "qwen2.5-coder-1.5b-instruct", "qwen2.5-coder-0.5b-instruct"
    tiny = "smollm2-135m-instruct"
    assert catalogue.smaller(large, {large, small, tiny, "whisper-tiny.en"}) == small
    assert catalogue.smaller(large, {large, tiny}) == tiny
    assert catalogue.smaller(tiny, {large, small, tiny}) is None
    assert catalogue.smaller("./folder", {small}) is None
    hearing = {entry.id for entry in catalogue.models if entry.role == "audio-llm"}
    assert len(hearing) > 1
    assert all(catalogue.smaller(name, hearing) is None for name in hearing)
