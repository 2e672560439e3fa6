"""A plan that is made for each unit, and what it is worth on each category."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from as2d_cli.decoding import Plan, PlanRequest
from tests.bench.fakes import FakeMachine, Job, run_bench
from tests.fakes import Ran, tone, write_wav

ALONE = Plan("target", (0, 1), (), 8)
DRAFTED = Plan("as2d", (0,), (1,), 4, windows=3)


class Planning(FakeMachine):
    """The target alone for one window, drafts for more."""

    def backend(self) -> Any:
        found = super().backend()
        plan: Callable[[PlanRequest], Any] = found.plan

        def planned(request: PlanRequest) -> Any:
            if request.method != "auto":
                return plan(request)
            self.asked.append(request)
            return ALONE if request.seconds is not None and request.seconds <= 30 else DRAFTED

        object.__setattr__(found, "plan", planned)
        return found


@pytest.fixture
def clips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Two short clips of one category, a long one of another."""
    monkeypatch.chdir(tmp_path)
    entries = []
    for name, seconds, category in [("a", 2, "short"), ("b", 2.4, "short"), ("c", 65, "long")]:
        write_wav(tmp_path / f"{name}.wav", tone(seconds))
        entries.append({"file": f"{name}.wav", "language": "en", "category": category})
    (tmp_path / "clips.jsonl").write_text("\n".join(map(json.dumps, entries)))
    return "clips.jsonl"


def takes(job: Job) -> float:
    """Seconds of each window."""
    alone = 1.0 if job.cores == 2 else 1.5
    return {"target": alone, "as2d": 0.5, "batched": 0.4}[job.method] * len(job.seconds)


def bench(fake: FakeMachine, clips: str, *args: str) -> tuple[dict[str, Any], Ran]:
    methods = ["--methods", "target,as2d,batched", "--drafters", "x", "--plan", "auto"]
    ran = run_bench(fake, clips, *methods, "--by", "recording", "--json", "out.json", *args)
    whole: dict[str, Any] = json.loads(Path("out.json").read_text())
    return whole, ran


def test_each_unit_has_a_plan_of_its_own(clips: str) -> None:
    fake = Planning(cores=2, plan=DRAFTED, takes=takes)
    whole, ran = bench(fake, clips)
    assert whole["contenders"][-1]["label"] == "plan: auto"
    assert [unit["plan"] for unit in whole["units"]] == [
        "plan: target",
        "plan: target",
        "plan: as2d x 4 x3",
    ]
    asked = [request.seconds for request in fake.asked if request.method == "auto"]
    assert asked == [2.0, 65.0], "units of about the same length share a plan"
    assert ran.status == 0, ran.stderr


def test_a_plan_that_is_the_baseline_is_not_run_twice(clips: str) -> None:
    fake = Planning(cores=2, plan=DRAFTED, takes=takes)
    whole, ran = bench(fake, clips)
    assert [unit["plan_is_baseline"] for unit in whole["units"]] == [True, True, False]
    mine = {s["unit"]: s for s in whole["samples"] if s["contender"] == 3}
    base = {s["unit"]: s for s in whole["samples"] if s["contender"] == 0}
    assert [mine[unit]["seconds"] == base[unit]["seconds"] for unit in range(3)] == [
        True,
        True,
        False,
    ]
    assert whole["summary"][3]["slower_share"] == 0
    assert "the plan is the target alone for 2 recordings of 3" in ran.stdout


def test_one_core_is_another_plan_than_two(clips: str) -> None:
    """Where warm-up finds the target alone faster on one core, the plan's two are measured."""
    fake = Planning(cores=2, plan=DRAFTED, takes=lambda job: takes(job) * job.cores)
    whole, _ = bench(fake, clips)
    assert not any(unit["plan_is_baseline"] for unit in whole["units"])
    assert whole["categories"][0]["slower_share"] == 1.0


def test_each_category_is_compared_with_what_never_changes(clips: str) -> None:
    whole, ran = bench(Planning(cores=2, plan=DRAFTED, takes=takes), clips)
    short, long, everything = whole["categories"]
    assert (short["name"], short["units"], short["ratio"]) == ("short", 2, 1.0)
    assert (short["fixed"], short["fixed_ratio"]) == ("batched 8", 2.5)
    assert short["fixed_share"] == pytest.approx(0.4)
    assert (long["name"], long["ratio"], long["slower_share"]) == ("long", 2.0, 0.0)
    assert long["fixed_share"] == pytest.approx(0.8)
    assert (everything["name"], everything["units"]) == ("", 3)
    assert everything["ratio"] == pytest.approx(5 / 3.5)
    table = ran.stdout.split("the plan on each category")[1].splitlines()
    assert table[2].split()[:3] == ["short", "2", "1.00"]
    assert table[4].split()[:2] == ["all", "3"] and table[4].rstrip().endswith("batched 8")


def test_without_a_plan_there_is_nothing_to_compare(clips: str) -> None:
    run_bench(FakeMachine(cores=2), clips, "--methods", "target", "--json", "out.json")
    whole = json.loads(Path("out.json").read_text())
    assert whole["categories"] == []
    assert whole["units"][0]["plan"] is None
