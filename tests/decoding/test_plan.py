"""How cores are shared, for machines of every shape."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from as2d_cli.audio.windows import RATE, WINDOW
from as2d_cli.decoding.plan import (
    WINDOW_SECONDS,
    Machine,
    Plan,
    PlanRequest,
    machine_of,
    rounded,
    this_machine,
    windows_of,
)
from as2d_cli.decoding.plan import make_plan as make_plan_of
from as2d_cli.errors import As2dError, ExitStatus
from as2d_cli.machine import read_machine
from as2d_cli.methods import METHODS, needs_drafter
from as2d_cli.profile.layouts import layouts
from tests.machine import trees

LAPTOP = Machine(((0, 1, 2, 3, 4, 5, 6, 7),))
PHONE_4_4 = Machine(((4, 5, 6, 7), (0, 1, 2, 3)))
PHONE_1_3_4 = Machine(((7,), (4, 5, 6), (0, 1, 2, 3)))
PHONE_2_6 = Machine(((6, 7), (0, 1, 2, 3, 4, 5)))
TWO = Machine(((0, 1),))
ONE = Machine(((3,),))
SERVER = Machine((tuple(range(64)),))


def make_plan(
    method: str,
    budget: int | None = None,
    target_cores: str | None = None,
    draft_cores: str | None = None,
    windows: int | None = None,
    shares_encoder: bool = False,
    threads: int | None = None,
    *,
    machine: Machine,
) -> Plan:
    request = PlanRequest(
        method, budget, target_cores, draft_cores, windows, shares_encoder, threads
    )
    return make_plan_of(request, machine)


@pytest.mark.parametrize(
    ("machine", "method", "target", "draft"),
    [
        (LAPTOP, "as2d", (0, 1, 2, 3, 4, 5), (6, 7)),
        (PHONE_4_4, "as2d", (4, 5, 6), (7,)),
        (PHONE_1_3_4, "as2d", (7, 4, 5), (6,)),
        (PHONE_2_6, "as2d", (6, 7), (0, 1)),
        (TWO, "as2d", (0,), (1,)),
        (ONE, "as2d", (3,), (3,)),
        (SERVER, "as2d", tuple(range(8)), (62, 63)),
        (LAPTOP, "target", (0, 1, 2, 3, 4, 5, 6, 7), ()),
        (PHONE_4_4, "target", (4, 5, 6, 7), ()),
        (PHONE_1_3_4, "target", (7, 4, 5, 6), ()),
        (TWO, "target", (0, 1), ()),
        (SERVER, "target", tuple(range(8)), ()),
        (TWO, "batched", (0, 1), ()),
        (LAPTOP, "lookup", (0, 1, 2, 3, 4, 5, 6, 7), ()),
        (TWO, "pearl", (0,), (1,)),
        (TWO, "multi", (0,), (1,)),
        (TWO, "coupled", (0, 1), (0, 1)),
        (PHONE_4_4, "adaptive", (4, 5, 6, 7), (4, 5, 6, 7)),
    ],
)
def test_cores_are_shared(
    machine: Machine, method: str, target: tuple[int, ...], draft: tuple[int, ...]
) -> None:
    plan = make_plan(method, 8, machine=machine)
    assert (plan.method, plan.target_cores, plan.draft_cores) == (method, target, draft)


@pytest.mark.parametrize(
    ("machine", "method"),
    [(LAPTOP, "as2d"), (PHONE_1_3_4, "as2d"), (TWO, "batched"), (ONE, "batched")],
)
def test_auto_drafts_only_where_there_are_cores_to_spare(machine: Machine, method: str) -> None:
    assert make_plan("auto", 8, machine=machine).method == method


def test_a_budget_is_of_candidates_or_of_windows() -> None:
    assert make_plan("as2d", machine=TWO).budget == 8
    assert make_plan("batched", machine=TWO).budget == 4
    assert make_plan("batched", 6, machine=TWO).budget == 6
    assert make_plan("auto", 31, machine=TWO).budget == 4, "31 candidates are not 31 windows"
    assert make_plan("auto", 31, machine=LAPTOP).budget == 31


def test_a_drafter_without_an_encoder_is_worth_its_steps_everywhere() -> None:
    for machine in (TWO, ONE):
        plan = make_plan("auto", shares_encoder=True, machine=machine)
        assert (plan.method, plan.budget, plan.windows) == ("as2d", 8, 3)
    plan = make_plan("auto", shares_encoder=True, machine=LAPTOP)
    assert (plan.method, plan.windows) == ("as2d", 1)
    assert make_plan("target", shares_encoder=True, machine=TWO).method == "target"


def test_windows_are_of_methods_that_can() -> None:
    assert make_plan("as2d", machine=TWO).windows == 1
    assert make_plan("as2d", windows=4, machine=TWO).windows == 4
    assert make_plan("lookup", windows=4, machine=TWO).windows == 4
    for method in ("target", "coupled", "adaptive", "pearl", "batched"):
        assert make_plan(method, windows=4, machine=TWO).windows == 1, method
    assert make_plan("auto", windows=2, shares_encoder=True, machine=TWO).windows == 2


def test_every_method_has_a_plan_on_every_machine() -> None:
    for method in METHODS:
        for machine in (LAPTOP, PHONE_4_4, PHONE_1_3_4, PHONE_2_6, TWO, ONE, SERVER):
            plan = make_plan(method, machine=machine)
            assert plan.target_cores
            assert bool(plan.draft_cores) == needs_drafter(method)


def test_a_quota_counts_like_cores() -> None:
    half = Machine(((0, 1, 2, 3, 4, 5, 6, 7),), quota=0.5)
    assert make_plan("auto", 8, machine=half).target_cores == (0,)
    three = Machine(((0, 1, 2, 3, 4, 5, 6, 7),), quota=3.7)
    plan = make_plan("as2d", 8, machine=three)
    assert len(plan.target_cores) + len(plan.draft_cores) == 3


@pytest.mark.parametrize("machine", [LAPTOP, PHONE_4_4, PHONE_1_3_4, PHONE_2_6, TWO, ONE, SERVER])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("most", [1, 2, 3, 5, 100])
def test_threads_are_a_limit_on_both_lanes_together(
    machine: Machine, method: str, most: int
) -> None:
    plan = make_plan(method, threads=most, machine=machine)
    assert 1 <= len({*plan.target_cores, *plan.draft_cores}) <= most
    assert bool(plan.draft_cores) == needs_drafter(method)


def test_named_cores_count_as_threads() -> None:
    plan = make_plan("as2d", None, "0-2", threads=3, machine=LAPTOP)
    assert (plan.target_cores, plan.draft_cores) == ((0, 1, 2), (2,))
    plan = make_plan("as2d", None, None, "0,1", threads=3, machine=LAPTOP)
    assert (plan.target_cores, plan.draft_cores) == ((2,), (0, 1))
    with pytest.raises(As2dError, match="--threads 2 is less than the 3 cores named") as caught:
        make_plan("as2d", None, "0-1", "2", threads=2, machine=LAPTOP)
    assert caught.value.status == ExitStatus.USAGE


def test_threads_are_not_pinned_against_anyones_will() -> None:
    assert make_plan_of(PlanRequest("target"), TWO).pin
    assert not make_plan_of(PlanRequest("target", pin=False), TWO).pin
    assert not make_plan_of(PlanRequest("target"), Machine(((0, 1),), can_pin=False)).pin


def test_lanes_never_share_a_core_where_there_are_two() -> None:
    for machine in (LAPTOP, PHONE_4_4, PHONE_1_3_4, PHONE_2_6, TWO, SERVER):
        plan = make_plan("as2d", 8, machine=machine)
        assert not set(plan.target_cores) & set(plan.draft_cores)
        assert plan.target_cores
        assert plan.draft_cores


@pytest.mark.parametrize(
    ("target", "draft", "expected"),
    [
        ("0-2", None, ((0, 1, 2), (6, 7))),
        ("5-7", None, ((5, 6, 7), (3, 4))),
        (None, "0", ((1, 2, 3, 4, 5, 6, 7), (0,))),
        ("3,1", "0,2", ((3, 1), (0, 2))),
        ("1", "1", ((1,), (1,))),
        (" 1 - 2 ", None, None),
    ],
)
def test_named_cores(
    target: str | None,
    draft: str | None,
    expected: tuple[tuple[int, ...], tuple[int, ...]] | None,
) -> None:
    if expected is None:
        with pytest.raises(As2dError):
            make_plan("as2d", 8, target, draft, machine=LAPTOP)
    else:
        plan = make_plan("as2d", 8, target, draft, machine=LAPTOP)
        assert (plan.target_cores, plan.draft_cores) == expected


def test_naming_draft_cores_asks_for_drafting() -> None:
    assert make_plan("auto", 8, None, "1", machine=TWO).method == "as2d"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("8", "core 8 may not be used here"),
        ("0-99", "core 8 may not be used here"),
        ("3-1", "runs backwards"),
        ("a", "'a' is not a core"),
        ("", "'' is not a core"),
        ("1,,2", "'' is not a core"),
        ("-1", "'-1' is not a core"),
        ("1-", "'1-' is not a core"),
        ("1,1", "core 1 is named twice"),
        ("0-99999999999", "there is no core 99999999999"),
        ("²", "'²' is not a core"),
    ],
)
def test_wrong_lists_are_refused_by_name(text: str, problem: str) -> None:
    with pytest.raises(As2dError) as caught:
        make_plan("target", 8, text, machine=LAPTOP)
    assert caught.value.status == ExitStatus.USAGE
    assert "--target-cores" in str(caught.value)
    assert problem in str(caught.value)
    assert "0,1,2,3,4,5,6,7" in str(caught.value)


def test_this_machine_has_the_cores_of_its_mask() -> None:
    import os

    machine = this_machine()
    assert {*machine.cores, *machine.siblings} == os.sched_getaffinity(0)


def test_second_threads_of_a_core_are_in_no_rule(tmp_path: Path) -> None:
    siblings = [f"{core % 4},{core % 4 + 4}" for core in range(8)]
    machine = machine_of(read_machine(trees.cores(tmp_path, 8, siblings=siblings), "0-7"))
    assert (machine.cores, machine.siblings) == ((0, 1, 2, 3), (4, 5, 6, 7))
    plan = make_plan("as2d", machine=machine)
    assert (plan.target_cores, plan.draft_cores) == ((0, 1, 2), (3,))
    for method in METHODS:
        plan = make_plan(method, machine=machine)
        assert {*plan.target_cores, *plan.draft_cores} <= {0, 1, 2, 3}
    named = make_plan("as2d", None, "0-3", "7", machine=machine)
    assert (named.target_cores, named.draft_cores) == ((0, 1, 2, 3), (7,)), "by name they are had"


def test_whether_a_drafter_gains_by_a_second_thread_is_measured(tmp_path: Path) -> None:
    siblings = ["0-1", "0-1", "2-3", "2-3"]
    machine = machine_of(read_machine(trees.cores(tmp_path, 4, siblings=siblings), "0-3"))
    assert machine.cores == (0, 2)
    assert layouts(machine, drafter=True) == [
        ((0, 2), ()),
        ((0,), (2,)),
        ((0,), ()),
        ((0, 2), (3,)),
    ]
    assert all(set(cores) <= {0, 2} for cores, _ in layouts(machine, drafter=False))
    half = replace(machine, quota=1.0)
    assert layouts(half, drafter=True) == [((0,), ())], "a quota counts threads, wherever they are"


def test_hybrid_cores_of_one_and_of_two_threads(tmp_path: Path) -> None:
    siblings = [f"{core // 2 * 2}-{core // 2 * 2 + 1}" for core in range(4)] + ["4", "5"]
    khz = [5_100_000] * 4 + [3_700_000] * 2
    facts = read_machine(trees.cores(tmp_path, 6, max_khz=khz, siblings=siblings), "0-5")
    machine = machine_of(facts)
    assert machine.clusters == ((0, 2), (4, 5))
    assert machine.siblings == (1, 3)


def test_a_head_has_nothing_to_gain_on_a_few_words_where_cores_are_few() -> None:
    head = PlanRequest(shares_encoder=True)
    plan = make_plan_of(head, TWO)
    assert (plan.method, plan.windows) == ("as2d", 3)
    assert not plan.drafts(11) and plan.drafts(12) and plan.drafts(None)
    one = make_plan_of(replace(head, seconds=11), TWO)
    assert (one.method, one.target_cores) == ("target", (0, 1))
    assert make_plan_of(replace(head, seconds=12), TWO).method == "as2d"
    assert make_plan_of(replace(head, seconds=5), LAPTOP).method == "as2d"
    forced = make_plan_of(replace(head, method="as2d", seconds=5), TWO)
    assert forced.method == "as2d" and forced.drafts(5), "who asks for drafts gets them"


def test_lengths_of_which_plans_are_made_are_few() -> None:
    assert [rounded(seconds) for seconds in (0.2, 11.4, 11.6, 119.4, 120, 121, 3600)] == [
        *(0, 11, 12, 119, 120, 150, 3600)
    ]


def test_windows_of_a_recording() -> None:
    assert WINDOW_SECONDS * RATE == WINDOW
    assert [windows_of(seconds) for seconds in (0, 30, 30.1, 60, 90.5)] == [1, 1, 2, 2, 4]
