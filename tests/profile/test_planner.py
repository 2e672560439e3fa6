"""Which plans there are, which wins, and what is asked of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from as2d_cli.decoding.plan import Machine, PlanRequest
from as2d_cli.errors import As2dError, ExitStatus
from as2d_cli.profile.alignment import Recordings, of_any_length, of_length, perfect
from as2d_cli.profile.choose import plan_by_profile, plan_with
from as2d_cli.profile.costs import CostModel, LaneCosts
from as2d_cli.profile.layouts import layouts
from as2d_cli.profile.planner import Ranked, best, candidates, rank, reasons
from as2d_cli.profile.profiles import Profile
from as2d_cli.profile.spread import Spread
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


def unsure(model: CostModel, low: float, high: float) -> CostModel:
    """The same with steps that may be off so far, in the lanes with a drafter and without."""
    spread = Spread(low, high)

    def changed(lane: LaneCosts) -> LaneCosts:
        alone = replace(lane.alone, step_spread=spread, encode_spread=spread)
        beside = lane.beside and replace(lane.beside, step_spread=spread, encode_spread=spread)
        return replace(lane, alone=alone, beside=beside)

    return replace(model, lanes=tuple(map(changed, model.lanes)))


def ranking_of(model: CostModel, recordings: Recordings = RIGHT) -> list[Ranked]:
    return rank(candidates([model]), {None: recordings, "x": recordings})


def test_a_gain_within_the_noise_is_none() -> None:
    certain = best(ranking_of(dear_windows()))
    assert certain.candidate.method == "as2d" and certain.least == certain.ratio > 1.5
    little = ranking_of(unsure(dear_windows(), 0.95, 1.05))
    assert best(little).candidate.label == certain.candidate.label
    assert 1 < best(little).least < best(little).ratio
    much = ranking_of(unsure(dear_windows(), 0.1, 9.0))
    assert much[0].candidate.method == "as2d" and much[0].ratio == pytest.approx(certain.ratio)
    assert much[0].least < 1
    assert best(much).candidate.method == "target"
    told = reasons(much, best(much))
    assert "might be 3." in told[1] and told[1].endswith("no sure gain")


def test_a_slow_moment_of_the_target_alone_is_no_gain_of_drafts() -> None:
    """Measured in a bad moment it seems slower than on lent cores, which are the same ones."""
    model = costs(token=0.02, slower=1.5)
    slow = replace(model.lanes[0], alone=target(0.03, 0.3, window=0.033))
    shared = replace(model.lanes[1], alone=target(window=0.011), beside=target(0.015, 0.15, 0.016))
    ranking = ranking_of(replace(model, lanes=(slow, shared)))
    assert ranking[0].candidate.method == "as2d" and ranking[0].ratio > 1.5
    assert ranking[0].least < 1
    assert best(ranking).candidate.method == "target"


def test_noise_is_nothing_to_who_asks_for_drafts() -> None:
    profile = Profile(unsure(dear_windows(), 0.1, 9.0), RIGHT)
    assert plan_with(profile, PlanRequest("as2d", drafter="x"), TWO).method == "as2d"
    assert plan_with(profile, PlanRequest(drafter="x"), TWO).method == "target"


def test_a_batch_on_the_same_cores_shares_their_noise() -> None:
    """Whatever a step takes, it takes in both; only what a further window costs is to be feared."""
    alone = replace(costs(), lanes=costs().lanes[:1])
    chosen = best(ranking_of(unsure(alone, 0.4, 2.5), WRONG))
    assert chosen.candidate.method == "batched" and chosen.ratio >= chosen.least > 1
    dear = replace(alone.lanes[0], alone=replace(target(), window_most=0.011))
    chosen = best(ranking_of(replace(alone, lanes=(dear,)), WRONG))
    assert chosen.candidate.method == "target"


def test_a_plan_is_for_as_many_windows_as_there_are() -> None:
    """A batch gains where there are several windows, and nothing where there is one."""
    profile = Profile(costs(), WRONG)
    for seconds, method, budget in [(12, "target", 8), (31, "batched", 2), (250, "batched", 6)]:
        plan = plan_with(profile, PlanRequest(drafter="x", seconds=seconds), TWO)
        assert (plan.method, plan.budget) == (method, budget)
    asked = PlanRequest("batched", budget=4, seconds=12)
    assert plan_with(profile, asked, TWO).budget == 4, "who asks for it gets it"


def test_a_head_has_nothing_to_do_ahead_where_there_is_one_window() -> None:
    """Its drafts are as slow as the target's text, but it may be a window ahead. Cores are shared
    before a length is known, so a plan says from how many windows on it drafts.
    """
    model = costs(token=0.009, draft_encode=0.06, slower=1.2, shares_encoder=True)
    lanes = tuple(
        replace(
            lane,
            alone=target(window=0.011),
            beside=lane.beside and replace(lane.beside, window=0.014),
        )
        for lane in model.lanes
    )
    profile = Profile(replace(model, lanes=lanes), RIGHT)
    request = PlanRequest(drafter="x", shares_encoder=True)
    plan = plan_with(profile, request, TWO)
    assert plan.method == "as2d"
    assert 30 < plan.least_seconds < 240
    assert not plan.drafts(20) and plan.drafts(plan.least_seconds) and plan.drafts(None)
    alone = plan_with(profile, replace(request, seconds=20), TWO)
    assert (alone.method, alone.least_seconds) == ("target", 0)
    forced = plan_with(profile, replace(request, method="as2d"), TWO)
    assert forced.drafts(1), "who asks for drafts gets them"


def test_plans_for_a_length_look_at_windows_of_about_that_length() -> None:
    brief, long = [perfect(4, n) for n in range(16)], [perfect(28, n) for n in range(16)]
    audio = [brief, long]
    assert of_length(audio, 5) == [[window] for window in brief[:12]]
    assert of_length(audio, 20) == [[window] for window in long[:12]]
    assert of_length(audio, 55) == [long[first : first + 2] for first in range(0, 12, 2)]
    assert of_length(audio, 8) == of_length(audio, 5), "windows of 4 seconds are the nearest"
    assert of_length(audio, 16 * 30) == [long]
    assert of_length([long[:3]], 120) == [long[:3]], "all there is"
    assert of_any_length(audio) == audio
    many = [[window] for window in brief] * 6
    assert of_any_length(many) == many[::3], "a plan is made at once"


def test_drafts_are_for_recordings_that_are_long_enough_for_them() -> None:
    """A short window is said before the drafter is ahead."""
    brief = [[perfect(4, 6)]] * 16
    long = [[perfect(28, 90)]] * 16
    profile = Profile(
        costs(token=0.002, draft_encode=0.1, slower=1.3, shares_encoder=True), [*brief, *long]
    )
    plan = plan_with(profile, PlanRequest(drafter="x"), TWO)
    assert plan.method == "as2d"
    assert 4 < plan.least_seconds <= 30
    methods = {
        seconds: plan_with(profile, PlanRequest(drafter="x", seconds=seconds), TWO).method
        for seconds in (4, 28)
    }
    assert methods == {4: "target", 28: "as2d"}


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


def test_without_models_the_rules_decide_and_say_nothing_of_models(tmp_path: Path) -> None:
    class Empty:
        cache = tmp_path

        def find(self, name: str, /) -> None:
            return None

    plan = plan_by_profile(PlanRequest(target="whisper-base"), Empty())
    assert plan.costs is None
    assert plan.why == "by rule, not by measurement"


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
