"""The plan of a run: by what was measured here, if that still holds, else by rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from as2d_cli.decoding.plan import (
    Machine,
    Plan,
    PlanRequest,
    make_plan,
    named_cores,
    rounded,
    this_machine,
    windows_of,
)
from as2d_cli.errors import As2dError
from as2d_cli.profile.alignment import of_any_length, of_length
from as2d_cli.profile.costs import CostModel
from as2d_cli.profile.planner import Candidate, Ranked, best, candidates, rank
from as2d_cli.profile.profiles import BundleFolder, Profile, Profiles, Where, key_of

__all__ = ["BundleStore", "fitting", "plan_by_profile", "plan_with"]

_LENGTHS = (240.0, 120.0, 90.0, 60.0, 45.0, 30.0, 25.0, 20.0, 15.0, 12.0, 8.0, 4.0, 0.0)
"""Seconds of a recording that it is looked at for whether drafts pay."""


class BundleStore(Protocol):
    """What is used of a store (see `as2d_cli.catalog.Store`)."""

    @property
    def cache(self) -> Path: ...
    def find(self, name: str, /) -> BundleFolder | None: ...


def plan_by_profile(
    request: PlanRequest,
    store: BundleStore,
    elsewhere: tuple[Machine, Where] | None = None,
) -> Plan:
    """The best plan that does what is asked for. Measures nothing, and fetches nothing.

    Args:
        elsewhere: another machine than this one.

    Raises:
        As2dError: status USAGE; a list of cores is wrong.
    """
    machine, where = elsewhere or (this_machine(), None)
    ruled = make_plan(request, machine)
    if request.costs is not None:
        return ruled
    profile, why = _profile(request, store, where)
    if profile is None:
        return replace(ruled, why=f"{ruled.why}: {why}") if why else ruled
    return plan_with(profile, request, machine)


def plan_with(profile: Profile, request: PlanRequest, machine: Machine) -> Plan:
    """The same, by this profile; by rule where it has nothing like what is asked for."""
    ruled = make_plan(request, machine)
    recordings = profile.recordings()
    if not recordings:
        return replace(ruled, why=f"{ruled.why}: there is no speech to compare on")
    costs = profile.costs
    fits = fitting(request, machine)
    entries = list(candidates([costs]))
    if request.seconds is not None:
        count = windows_of(request.seconds)
        recordings = of_length(recordings, rounded(request.seconds))
        if request.method == "auto" and request.windows is None:
            # A batch of more than there are is the same as of these.
            entries = [entry for entry in entries if entry.windows <= count]
    else:
        recordings = of_any_length(recordings)
    if not any(map(fits, entries)):
        return replace(ruled, why=f"{ruled.why}: nothing like it was measured")
    # The target alone is what all others are compared with, whether it was asked for or not.
    alone = fitting(replace(request, method="target", budget=None, windows=None), machine)
    bases = [e for e in entries if alone(e)] or [e for e in entries if e.method == "target"]
    compared = [entry for entry in entries if fits(entry) or entry in bases]
    ranking = rank(compared, {None: recordings, costs.drafter: recordings})
    chosen = best([ranked for ranked in ranking if fits(ranked.candidate)])
    plan = replace(chosen.candidate.plan(_why(costs, chosen)), pin=ruled.pin)
    if request.method != "auto" or request.seconds is not None or plan.method != "as2d":
        return plan
    return replace(plan, least_seconds=_least_seconds(chosen.candidate, profile))


def fitting(request: PlanRequest, machine: Machine) -> Callable[[Candidate], bool]:
    """Whether a plan does what is asked for.

    Raises:
        As2dError: status USAGE; a list of cores is wrong.
    """
    target = named_cores(request.target_cores, "--target-cores", machine)
    draft = named_cores(request.draft_cores, "--draft-cores", machine)
    elastic = request.pin and machine.can_pin
    most = machine.most_threads
    most = most if request.threads is None else min(most, request.threads)

    def fits(entry: Candidate) -> bool:
        lane, drafts = entry.lane, entry.method == "as2d"
        size = entry.windows if entry.method == "batched" else entry.budget
        return (
            request.method in ("auto", entry.method)
            and len(lane.target_cores) + len(lane.draft_cores) <= most
            and (not target or lane.target_cores == target)
            and (not draft or lane.draft_cores == draft)
            and (not drafts or (request.drafter is not None and entry.elastic == elastic))
            and (request.windows is None or request.windows == entry.windows)
            and (request.budget is None or entry.method == "target" or request.budget == size)
        )

    return fits


def _least_seconds(chosen: Candidate, profile: Profile) -> float:
    """How long a recording must be for drafts to gain anything on it.

    Against the target on the same cores while the drafter rests: the lanes are shared out before a
    recording's length is known.
    """
    alone = replace(chosen, method="target", budget=0, windows=1)
    least = _LENGTHS[0]
    for seconds in _LENGTHS:
        recordings = of_length(profile.recordings(), seconds)
        ranking = rank([chosen, alone], {None: recordings, chosen.drafter: recordings})
        if best(ranking).candidate is not chosen:
            break
        least = seconds
    return least


def _profile(
    request: PlanRequest, store: BundleStore, where: Where | None
) -> tuple[Profile | None, str]:
    """What was measured with these models, and if there is nothing, what is to be said of it.

    Nothing, where the models are not here: they are fetched next, which is told, too.
    """
    names = [request.target] + ([request.drafter] if request.drafter else [])
    try:
        found = [store.find(name) for name in names if name]
    except As2dError:
        return None, ""
    bundles = [bundle for bundle in found if bundle is not None]
    if not bundles or len(bundles) < len(found):
        return None, ""
    target, *drafters = bundles
    return Profiles(store.cache).load(key_of(target, drafters[0] if drafters else None, where))


def _why(costs: CostModel, chosen: Ranked) -> str:
    when = f" on {costs.created[:10]}" if costs.created else ""
    return f"by what was measured here{when}: {chosen.ratio:.2f} x the target alone"
