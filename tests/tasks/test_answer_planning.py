"""How answers are made: by rule, by what was measured, as asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from as2d_cli.decoding.plan import PlanRequest
from as2d_cli.profile.answer_costs import AnswerCosts
from as2d_cli.profile.recent import RecentAnswers
from as2d_cli.tasks.answer_planning import AnswerPlan, plan_answers
from as2d_cli.tasks.asking import answering
from tests.fakes import FakePlan, Script, backend
from tests.profile.test_answers import known

Cores = tuple[int, ...]


def planned(
    script: Script,
    found: AnswerCosts | None = None,
    here: str | None = None,
    on: tuple[Cores, Cores] = ((), ()),
    **asked: Any,
) -> AnswerPlan:
    """The plan for a model where `here` could draft and `found` was measured; `on`: the cores of
    both lanes.
    """
    base = backend(script)
    target_cores, draft_cores = on

    def plan(request: PlanRequest) -> FakePlan:
        base.plan(request)
        return FakePlan(request.method, 8, target_cores=target_cores, draft_cores=draft_cores)

    def answer_costs(target: str, drafter: str | None) -> tuple[AnswerCosts | None, str]:
        script.log.append(("costs", target, drafter))
        return found, "" if found else "nothing was measured here"

    recent = RecentAnswers(None)
    for _ in range(10):
        recent.add("lookup", 50, 10)
    there = replace(
        base,
        plan=plan,
        answer_drafter=lambda target: here,
        answer_costs=answer_costs,
        recent=lambda target: recent,
    )
    return plan_answers(answering("toy", **asked), there)


@pytest.mark.parametrize(
    ("asked", "method", "drafter"),
    [
        ({}, "lookup", None),
        ({"drafter": None}, "lookup", None),
        ({"drafter": "named"}, "as2d", "named"),
        ({"drafter": "named", "method": "coupled"}, "coupled", "named"),
        ({"drafter": "named", "method": "lookup"}, "lookup", None),
        ({"method": "anchored"}, "anchored", "small"),
        ({"method": "target"}, "target", None),
    ],
)
def test_the_rule(asked: dict[str, Any], method: str, drafter: str | None) -> None:
    script = Script()
    made = planned(script, here="small", **asked)
    assert (made.request.method, made.request.drafter) == (method, drafter)
    assert made.plan.method == method
    assert ("method" in asked) == (made.why == "as asked for")
    assert script.asked[0].costs is None


def test_what_was_measured_decides_and_reaches_the_engine() -> None:
    script = Script()
    made = planned(script, known(coupled=(5.0, 1.0)), here="small")
    assert (made.request.method, made.request.drafter) == ("coupled", "small")
    assert ("costs", "toy", "small") in script.log
    assert "by what was measured here on 2026-01-02" in made.why
    costs = script.asked[0].costs
    assert costs is not None
    assert (costs.alone_steps, costs.drafted_steps) == ({1: 0.05, 8: 0.08}, {})


def test_recent_answers_decide_too() -> None:
    # Look-ups commit five tokens a step of late, which was measured of answers that repeat.
    found = known(lookup=(10.0, 4.0), coupled=(9.0, 5.5))
    assert planned(Script(), found, here="small").request.method == "lookup"


def test_a_named_method_gets_the_measured_costs() -> None:
    script = Script()
    made = planned(script, known(), here="small", method="anchored")
    assert made.why == "as asked for"
    costs = script.asked[0].costs
    assert costs is not None
    assert costs.drafted_steps == {1: 0.07, 8: 0.11}


@pytest.mark.parametrize(
    ("asked", "on", "holds"),
    [
        ({"target_cores": "0-1"}, ((0, 1), (0, 1)), True),
        ({"target_cores": "0"}, ((0,), (0,)), False),
        ({"threads": 1}, ((0,), (0,)), False),
        ({"method": "anchored", "draft_cores": "1"}, ((0,), (1,)), True),
        ({"method": "anchored", "draft_cores": "0"}, ((1,), (0,)), False),
    ],
)
def test_what_was_measured_on_other_cores_says_nothing(
    asked: dict[str, Any], on: tuple[Cores, Cores], holds: bool
) -> None:
    script = Script()
    made = planned(script, known(coupled=(5.0, 1.0)), here="small", on=on, **asked)
    assert (made.request.costs is not None) == holds
    assert (script.asked[-1].costs is not None) == holds
    if "method" not in asked:
        assert made.request.method == ("coupled" if holds else "lookup")
        assert ("other cores were measured" in made.why) != holds
