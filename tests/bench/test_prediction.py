"""What the simulation says of the runs, and the contender that has a plan of its own."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from as2d_cli.catalog.vocabulary import Vocabulary
from as2d_cli.decoding import Plan
from as2d_cli.profile.alignment import read_traces
from as2d_cli.profile.costs import CostModel, LaneCosts
from as2d_cli.profile.plan_file import SavedPlan, as_json
from tests.bench.fakes import FakeMachine, run_bench
from tests.bench.test_command import clips, rows
from tests.fakes import PIECES, tokens_of
from tests.profile.material import costs, target

__all__ = ["clips"]


def one_core() -> CostModel:
    """The target alone on core 0, 0.1 s of encoder and 10 ms a step; no lane for a drafter."""
    return replace(costs(), lanes=(LaneCosts((0,), (), target()),))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With the vocabulary of the fake target."""
    Vocabulary(PIECES, False).write(tmp_path / "vocabulary.bin")
    return tmp_path


def bench(fake: FakeMachine, *args: str) -> dict[str, Any]:
    run_bench(fake, "--json", "out.json", *args)
    whole: dict[str, Any] = json.loads(Path("out.json").read_text())
    return whole


def test_the_error_of_a_prediction_is_a_column(clips: str, folder: Path) -> None:
    # " hello 2": 8 tokens and the end, the first of which comes of the prompt.
    predicted = 2 * (0.1 + 0.01 + 8 * 0.01)
    fake = FakeMachine(cores=1, takes=lambda job: 0.1, folder=folder, costs=one_core())
    ran = run_bench(fake, clips, "--drafters", "x")
    assert rows(ran)["target"][rows(ran)["method"].index("error")] == "+90%"
    assert "predicts the seconds of 1 row, off by 90% in the median" in ran.stdout
    summary = bench(fake, clips, "--drafters", "x")["summary"]
    assert summary[0]["predicted_seconds"] == pytest.approx(predicted)
    assert summary[0]["prediction_error"] == pytest.approx(predicted / 0.2 - 1)
    assert summary[1]["predicted_seconds"] is None, "no drafter was measured on these cores"


def test_an_oracle_is_predicted_as_a_drafter_that_costs_nothing(clips: str, folder: Path) -> None:
    fake = FakeMachine(cores=1, takes=lambda job: 0.1, folder=folder, costs=one_core())
    summary = bench(fake, clips, "--drafters", "oracle")["summary"]
    # Seven tokens and the end in one step.
    assert summary[1]["predicted_seconds"] == pytest.approx(2 * (0.1 + 0.01 + 0.01))
    # Both take 0.1 s a window here, and 0.19 against 0.12 s were predicted.
    ran = run_bench(fake, clips, "--drafters", "oracle")
    assert "and the ratios to target, off by 58%" in ran.stdout
    alone = run_bench(fake, clips, "--methods", "target")
    assert "off by 90% in the median" in alone.stdout and "ratios to" not in alone.stdout


def test_without_a_profile_nothing_is_predicted(clips: str) -> None:
    fake = FakeMachine(cores=1)
    ran = run_bench(fake, clips, "--drafters", "x")
    assert "predicts" not in ran.stdout
    assert bench(fake, clips, "--drafters", "x")["summary"][0]["prediction_error"] is None


def test_what_drafts_are_worth_is_written(clips: str, folder: Path) -> None:
    fake = FakeMachine(cores=1, folder=folder, drafts=tokens_of(" hello 2"))
    run_bench(fake, clips, "--drafters", "x", "--alignment", "a.json")
    first, second = read_traces(Path("a.json"), "whisper-base", "x")
    assert [window.seconds for window in (*first, *second)] == [2.0, 3.0]
    assert first[0].run == tuple(range(8, 0, -1)), "all of it and its end"
    assert second[0].run[0] == 6, "up to the number"


PLAN = Plan("as2d", (0,), (0,), 4)


def test_a_plan_is_a_contender_with_cores_of_its_own(clips: str) -> None:
    fake = FakeMachine(cores=2, plan=PLAN, takes=lambda job: 1.0 if job.drafter else 2.0)
    whole = bench(fake, clips, "--methods", "target", "--plan", "auto", "--threads", "2")
    labels = [contender["label"] for contender in whole["contenders"]]
    assert labels == ["target", "plan: as2d x 4"]
    assert whole["summary"][1]["ratio"] == 2.0
    assert whole["summary"][1]["oracle_share"] == 1.0
    assert {request.threads for request in fake.asked} == {2}
    assert fake.adaptive == [bool(job.drafter) for job in fake.jobs], "only a plan adapts itself"


def test_a_plan_that_has_no_use_for_a_drafter_loads_none(clips: str) -> None:
    fake = FakeMachine(cores=2, plan=Plan("batched", (0, 1), (), 4))
    whole = bench(fake, clips, "--methods", "target", "--plan", "auto")
    assert whole["contenders"][1]["label"] == "plan: batched 4"
    assert {job.drafter for job in fake.jobs} == {None}


def test_a_plan_comes_of_a_file(clips: str) -> None:
    Path("plan.json").write_text(json.dumps(as_json(SavedPlan("whisper-base", "y", PLAN))))
    fake = FakeMachine(cores=2)
    whole = bench(fake, clips, "--methods", "target", "--plan", "plan.json", "--no-pin")
    assert whole["contenders"][1]["label"] == "plan: as2d y 4"
    asked = next(request for request in fake.asked if request.method == "as2d")
    assert (asked.target_cores, asked.draft_cores, asked.pin) == ("0", "0", False)
    ran = run_bench(fake, clips, "--plan", "clips.jsonl")
    assert ran.status == 2
    assert ran.stderr.startswith("as2d: --plan clips.jsonl: is no plan")
