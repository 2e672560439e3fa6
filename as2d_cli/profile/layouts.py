"""The ways to share a machine's cores between the lanes that are worth a measurement."""

from __future__ import annotations

from collections.abc import Iterator

from as2d_cli.decoding.plan import MOST_TARGET_CORES, Machine, PlanRequest, make_plan

__all__ = ["Layout", "layouts"]

Layout = tuple[tuple[int, ...], tuple[int, ...]]
"""Cores of the target lane and of the draft lane; no draft lane where the latter are none."""


def layouts(machine: Machine, *, drafter: bool) -> list[Layout]:
    """The likeliest first: what the rules choose, then what could be better than that.

    Lanes of their own share no core, so that one core is one lane's; second threads of a core count
    as cores of their own.

    Args:
        drafter: there is one.
    """
    found = list(dict.fromkeys(_all(machine, drafter)))
    return [
        (target, draft)
        for target, draft in found
        if target
        and not set(target) & set(draft)
        and len(target) + len(draft) <= machine.most_threads
    ]


def _all(machine: Machine, drafter: bool) -> Iterator[Layout]:
    whole = make_plan(PlanRequest("target"), machine).target_cores
    yield whole, ()
    if drafter:
        plan = make_plan(PlanRequest("as2d"), machine)
        yield plan.target_cores, plan.draft_cores
        yield from _splits(machine)
    for cluster in machine.clusters:
        yield cluster[: min(machine.granted, MOST_TARGET_CORES)], ()
    width = len(whole) // 2
    while width > 0:
        yield whole[:width], ()
        width //= 2
    if drafter and machine.siblings:
        # Second threads are in no rule: see `Machine`. Whether a drafter gains anything on one,
        # beside a target that has all the cores, is measured last.
        yield whole, machine.siblings[-1:]


def _splits(machine: Machine) -> Iterator[Layout]:
    """The first cores for the target; the next or the last for the drafter, one or two of them."""
    cores, granted = machine.cores, machine.granted
    fast = len(machine.clusters[0])
    for drafters in (1, 2):
        room = granted - drafters
        yield cores[: min(fast, room, MOST_TARGET_CORES)], cores[-drafters:]
        yield cores[: min(fast - drafters, room, MOST_TARGET_CORES)], cores[fast - drafters : fast]
        yield cores[: min(len(cores) - drafters, room, MOST_TARGET_CORES)], cores[-drafters:]
        if fast < len(cores):
            yield cores[: min(fast, room)], cores[fast : fast + drafters]
