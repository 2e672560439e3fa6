"""How answers are made: by what was measured here, if that still holds, else by rule."""

from __future__ import annotations

from dataclasses import dataclass, replace

from as2d_cli.methods import SPLIT, needs_drafter
from as2d_cli.profile.answer_choice import choose
from as2d_cli.profile.answer_costs import AnswerCosts
from as2d_cli.tasks.models import AUTO, Backend, ModelRequest, PlanFace, make_plan

__all__ = ["AnswerPlan", "plan_answers", "ruled"]


@dataclass(frozen=True)
class AnswerPlan:
    """How answers are made.

    Attributes:
        request: with a drafter only if the method has a use for one.
        why: what the plan was made by, for people.
    """

    request: ModelRequest
    plan: PlanFace
    why: str


def ruled(request: ModelRequest) -> ModelRequest:
    """`request` with a method, where nothing was measured.

    Candidates are looked up in prompt and answer: answers that repeat the transcript gain by it,
    and others lose nothing. Whoever names a drafter wants it used.
    """
    if request.method != AUTO:
        return request
    return replace(request, method="lookup" if request.drafter in (None, AUTO) else "as2d")


def plan_answers(request: ModelRequest, backend: Backend) -> AnswerPlan:
    """How `request` is done here. Measures nothing, and fetches nothing.

    Raises:
        As2dError: status USAGE; the cores asked for are not there.
    """
    drafter = request.drafter
    if drafter == AUTO:
        drafter = backend.answer_drafter(request.target)
    if request.costs is not None:
        return _made(request, drafter, None, "", backend)
    found, missing = backend.answer_costs(request.target, drafter)
    made = _made(request, drafter, found, missing, backend)
    named = request.target_cores or request.draft_cores or request.threads
    if found is None or not named or _measured_on(made.plan, found):
        return made
    return _made(request, drafter, None, "other cores were measured", backend)


def _made(
    request: ModelRequest,
    drafter: str | None,
    found: AnswerCosts | None,
    missing: str,
    backend: Backend,
) -> AnswerPlan:
    """The plan by `found`; without it by rule, and `missing` is why."""
    method, why, costs = request.method, "as asked for", request.costs
    if method == AUTO and found is not None:
        chosen = choose(found, backend.recent(request.target).answers)
        method, why = chosen.method, chosen.why
    elif method == AUTO:
        method, why = ruled(request).method, f"by rule, not by measurement: {missing}"
    if found is not None:
        costs = found.run_costs(method)
    made = replace(
        request, method=method, drafter=drafter if needs_drafter(method) else None, costs=costs
    )
    return AnswerPlan(made, make_plan(made, backend), why)


def _measured_on(plan: PlanFace, found: AnswerCosts) -> bool:
    if plan.method not in SPLIT:
        return tuple(plan.target_cores) == found.cores
    return (tuple(plan.target_cores), tuple(plan.draft_cores)) == found.split
