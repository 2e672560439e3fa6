"""The plan of a run: by what was measured here, if that still holds, else by rule."""

from __future__ import annotations

from collections.abc import Iterator
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
    found = list(fitting(candidates([profile.costs]), request, machine))
    if not found or not recordings:
        return replace(ruled, why=f"{ruled.why}: nothing like it was measured")
    names = {None: recordings, profile.costs.drafter: recordings}
    chosen = best(rank(found, names))
    return replace(chosen.candidate.plan(_why(profile.costs, chosen)), exact=ruled.exact)


def fitting(
    entries: Iterator[Candidate], request: PlanRequest, machine: Machine
) -> Iterator[Candidate]:
    """Those that do what is asked for."""
    target = named_cores(request.target_cores, "--target-cores", machine)
    draft = named_cores(request.draft_cores, "--draft-cores", machine)
    elastic = request.pin and machine.can_pin
    most = machine.granted if request.threads is None else min(machine.granted, request.threads)
    wanted = "target" if request.method == "target" else request.method
    for entry in entries:
        cores = len(entry.lane.target_cores) + len(entry.lane.draft_cores)
        size = entry.windows if entry.method == "batched" else entry.budget
        if (
            wanted in ("auto", entry.method)
            and (entry.method == "as2d" or not draft)
            and (entry.method != "as2d" or request.drafter is not None)
            and cores <= most
            and (not target or entry.lane.target_cores == target)
            and (not draft or entry.lane.draft_cores == draft)
            and (entry.method != "as2d" or entry.elastic == elastic)
            and (request.windows is None or request.windows == entry.windows)
            and (request.budget is None or entry.method == "target" or request.budget == size)
        ):
            yield entry


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
