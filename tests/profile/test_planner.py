"""Which plans there are, which wins, and what is asked of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from as2d_cli.decoding.plan import Machine, PlanRequest
from as2d_cli.errors import As2dError, ExitStatus
from as2d_cli.profile.alignment import perfect
from as2d_cli.profile.choose import plan_by_profile, plan_with
from as2d_cli.profile.costs import CostModel
from as2d_cli.profile.layouts import layouts
from as2d_cli.profile.planner import best, candidates, rank, reasons
from as2d_cli.profile.profiles import Profile
from tests.profile.material import costs, target, wrong

TWO = Machine(((0, 1),))
RIGHT = [[perfect(10, 40)], [perfect(10, 40)] * 5]
WRONG = [[wrong(10, 40)], [wrong(10, 40)] * 5]


def dear_windows() -> CostModel:
    """A window more in a batch costs as much as a step of its own: batches gain nothing."""
    model = costs()
    lanes = [
        replace(lane, alone=target(window=0.011), beside=target(window=0.011))
        for lane in model.lanes
    ]
    return replace(model, lanes=tuple(lanes))


def test_a_right_and_cheap_drafter_wins() -> None:
    ranking = rank(candidates([dear_windows()]), {None: RIGHT, "x": RIGHT})
    chosen = best(ranking)
    assert chosen.candidate.method == "as2d"
    assert chosen.candidate.budget >= 8
    assert chosen.ratio > 1.5
    assert chosen.slower == 0


def test_a_wrong_drafter_loses_to_the_target_alone() -> None:
    model = dear_windows()
    slow = replace(model.lanes[1], beside=target(0.020, 0.2, window=0.022))
    model = replace(model, lanes=(model.lanes[0], slow))
    ranking = rank(candidates([model]), {None: WRONG, "x": WRONG})
    assert best(ranking).candidate.method == "target"
    assert best(ranking).ratio == 1.0
    worst = next(r for r in ranking if r.candidate.method == "as2d")
    assert worst.slower == 1.0
    told = " ".join(reasons(ranking, best(ranking)))
    assert "the best with drafts is as2d x" in told


def test_batches_win_where_a_step_costs_the_same_for_all() -> None:
    ranking = rank(candidates([costs()]), {None: WRONG, "x": WRONG})
    chosen = best(ranking)
    assert (chosen.candidate.method, chosen.candidate.windows) == ("batched", 6)
    plan = chosen.candidate.plan("why")
    assert (plan.method, plan.budget, plan.windows, plan.why) == ("batched", 6, 1, "why")
    assert plan.draft_cores == ()


def test_of_equals_the_target_alone_wins() -> None:
    single = [[perfect(10, 40)]]
    ranking = rank(candidates([replace(costs(), lanes=costs().lanes[:1])]), {None: single})
    assert best(ranking).candidate.method == "target"


def test_lanes_that_lend_nothing_are_compared_and_never_chosen_by_pinned_threads() -> None:
    ranking = rank(candidates([dear_windows()]), {None: RIGHT, "x": RIGHT})
    assert [r.candidate.elastic for r in ranking].count(False) == 1
    profile = Profile(dear_windows(), RIGHT)
    assert plan_with(profile, PlanRequest(drafter="x"), TWO).pin
    for method in ("auto", "target", "as2d"):
        assert not plan_with(profile, PlanRequest(method, drafter="x", pin=False), TWO).pin


def test_what_a_method_is_worth_is_told_by_the_target_alone() -> None:
    plan = plan_with(Profile(dear_windows(), RIGHT), PlanRequest("as2d", drafter="x"), TWO)
    assert float(plan.why.split(": ")[1].split()[0]) > 1.5


@pytest.mark.parametrize(
    ("request_", "method"),
    [
        (PlanRequest(drafter="x"), "as2d"),
        (PlanRequest(drafter=None), "target"),
        (PlanRequest("target", drafter="x"), "target"),
        (PlanRequest("batched", drafter="x"), "batched"),
        (PlanRequest("as2d", budget=4, drafter="x"), "as2d"),
        (PlanRequest(threads=1, drafter="x"), "batched"),
        (PlanRequest(target_cores="0", drafter="x"), "as2d"),
        (PlanRequest(target_cores="0,1", drafter="x"), "target"),
        (PlanRequest("coupled", drafter="x"), "coupled"),
    ],
)
def test_a_profile_answers_what_is_asked(request_: PlanRequest, method: str) -> None:
    plan = plan_with(Profile(dear_windows(), RIGHT), request_, TWO)
    assert plan.method == method
    if request_.budget is not None:
        assert plan.budget == request_.budget
    if request_.target_cores is not None:
        assert ",".join(map(str, plan.target_cores)) == request_.target_cores
    if request_.threads is not None:
        assert len(plan.target_cores) <= request_.threads
    measured = method != "coupled" and request_.threads is None
    assert (plan.costs is not None) == measured
    assert ("measured here on 2026-01-02" in plan.why) == measured


def test_wrong_cores_are_refused_with_a_profile_too() -> None:
    with pytest.raises(As2dError, match="--target-cores 7: core 7") as caught:
        plan_with(Profile(costs(), RIGHT), PlanRequest(target_cores="7"), TWO)
    assert caught.value.status == ExitStatus.USAGE


def test_without_models_the_rules_decide_and_say_so(tmp_path: Path) -> None:
    class Empty:
        cache = tmp_path

        def find(self, name: str, /) -> None:
            return None

    plan = plan_by_profile(PlanRequest(target="whisper-base"), Empty())
    assert plan.costs is None
    assert plan.why == "by rule, not by measurement: its models are not here yet"


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        (Machine(((3,),)), [((3,), ())]),
        (TWO, [((0, 1), ()), ((0,), (1,)), ((0,), ())]),
        (Machine(((0, 1),), quota=0.5), [((0,), ())]),
    ],
)
def test_layouts_of_small_machines(
    machine: Machine, expected: list[tuple[tuple[int, ...], tuple[int, ...]]]
) -> None:
    assert layouts(machine, drafter=True) == expected


@pytest.mark.parametrize(
    "machine",
    [
        Machine(((0, 1, 2, 3, 4, 5, 6, 7),)),
        Machine(((4, 5, 6, 7), (0, 1, 2, 3))),
        Machine(((7,), (4, 5, 6), (0, 1, 2, 3))),
        Machine(((6, 7), (0, 1, 2, 3, 4, 5))),
        Machine((tuple(range(64)),)),
        Machine((tuple(range(8)),), quota=3.5),
    ],
)
def test_layouts_share_no_core_and_keep_to_the_machine(machine: Machine) -> None:
    found = layouts(machine, drafter=True)
    assert found[0][1] == () and found[1][1], "what the rules choose comes first"
    assert len(found) == len(set(found))
    for cores, draft in found:
        assert not set(cores) & set(draft)
        assert set(cores) | set(draft) <= set(machine.cores)
        assert len(cores) + len(draft) <= machine.granted
    assert not any(draft for _, draft in layouts(machine, drafter=False))
