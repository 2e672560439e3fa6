"""The plan of a run: by what was measured here, if that still holds, else by rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from as2d_cli.decoding.plan import Machine, Plan, PlanRequest, make_plan, named_cores, this_machine
from as2d_cli.errors import As2dError
from as2d_cli.profile.costs import CostModel
from as2d_cli.profile.planner import Candidate, Ranked, best, candidates, rank
from as2d_cli.profile.profiles import BundleFolder, Profile, Profiles, key_of

__all__ = ["BundleStore", "fitting", "plan_by_profile", "plan_with"]


class BundleStore(Protocol):
    """What is used of a store (see `as2d_cli.catalog.Store`)."""

    @property
    def cache(self) -> Path: ...
    def find(self, name: str, /) -> BundleFolder | None: ...


def plan_by_profile(request: PlanRequest, store: BundleStore) -> Plan:
    """The best plan that does what is asked for. Measures nothing, and fetches nothing.

    Raises:
        As2dError: status USAGE; a list of cores is wrong.
    """
    machine = this_machine()
    ruled = make_plan(request, machine)
    if request.costs is not None:
        return ruled
    profile, why = _profile(request, store)
    if profile is None:
        return replace(ruled, why=f"{ruled.why}: {why}")
    return plan_with(profile, request, machine)


def plan_with(profile: Profile, request: PlanRequest, machine: Machine) -> Plan:
    """The same, by this profile; by rule where it has nothing like what is asked for."""
    ruled = make_plan(request, machine)
    recordings = profile.recordings()
    if not recordings:
        return replace(ruled, why=f"{ruled.why}: there is no speech to compare on")
    costs = profile.costs
    ranking = rank(candidates([costs]), {None: recordings, costs.drafter: recordings})
    able = fitting(ranking, request, machine)
    if not able:
        return replace(ruled, why=f"{ruled.why}: nothing like it was measured")
    chosen = best(able)
    return replace(chosen.candidate.plan(_why(costs, chosen)), pin=ruled.pin)


def fitting(ranking: Sequence[Ranked], request: PlanRequest, machine: Machine) -> list[Ranked]:
    """Those that do what is asked for, in the same order.

    Raises:
        As2dError: status USAGE; a list of cores is wrong.
    """
    target = named_cores(request.target_cores, "--target-cores", machine)
    draft = named_cores(request.draft_cores, "--draft-cores", machine)
    elastic = request.pin and machine.can_pin
    most = machine.granted if request.threads is None else min(machine.granted, request.threads)

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

    return [ranked for ranked in ranking if fits(ranked.candidate)]


def _profile(request: PlanRequest, store: BundleStore) -> tuple[Profile | None, str]:
    """What was measured with these models."""
    names = [request.target] + ([request.drafter] if request.drafter else [])
    try:
        bundles = [store.find(name) for name in names if name]
    except As2dError:
        return None, "its models are not here"
    if not bundles or None in bundles:
        return None, "its models are not here yet"
    target, *drafters = [bundle for bundle in bundles if bundle is not None]
    return Profiles(store.cache).load(key_of(target, drafters[0] if drafters else None))


def _why(costs: CostModel, chosen: Ranked) -> str:
    when = f" on {costs.created[:10]}" if costs.created else ""
    return f"by what was measured here{when}: {chosen.ratio:.2f} x the target alone"
