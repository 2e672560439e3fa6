"""The contender that does with each unit what transcribe would do with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from as2d_cli.bench.contenders import Contender
from as2d_cli.bench.units import Unit
from as2d_cli.decoding.plan import rounded
from as2d_cli.methods import needs_drafter
from as2d_cli.tasks.models import Backend, ModelRequest, PlanFace, drafter_name, make_plan

__all__ = ["Planned", "plan_units", "planned_contender"]


@dataclass(frozen=True)
class Planned:
    """What is planned for a unit: the plan, and the same as a contender."""

    entrant: Contender
    plan: PlanFace


def plan_units(asked: ModelRequest, backend: Backend, units: Sequence[Unit]) -> dict[int, Planned]:
    """A plan for each unit: its length and its language are known.

    Raises:
        As2dError: status USAGE; the cores asked for are not there.
    """
    known: dict[tuple[float, str], Planned] = {}
    found = {}
    for number, unit in enumerate(units):
        key = rounded(unit.audio_seconds), unit.language
        if key not in known:
            known[key] = _planned(asked, backend, unit)
        found[number] = known[key]
    return found


def planned_contender(planned: dict[int, Planned]) -> Contender:
    """The one that stands for all of them: itself, if they are the same throughout."""
    entrants = {entry.entrant for entry in planned.values()}
    return entrants.pop() if len(entrants) == 1 else Contender("auto", planned=True)


def _planned(asked: ModelRequest, backend: Backend, unit: Unit) -> Planned:
    plan = make_plan(asked, backend, unit.language, unit.audio_seconds)
    drafter = None
    if needs_drafter(plan.method):
        drafter = drafter_name(asked.drafter, asked.target, unit.language, backend)
    budget = plan.budget if plan.method != "target" else 0
    return Planned(Contender(plan.method, drafter, budget, plan.windows, planned=True), plan)
