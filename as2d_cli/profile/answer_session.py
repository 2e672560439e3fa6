"""A whole profile of language models: models, measurement, the method that is the fastest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from as2d_cli.catalog import Bundle
from as2d_cli.decoding import Engine, Plan
from as2d_cli.decoding.plan import Machine, PlanRequest, make_plan, this_machine
from as2d_cli.errors import As2dError, ExitStatus
from as2d_cli.methods import SPLIT, default_budget, needs_drafter
from as2d_cli.profile.answer_choice import AnswerChoice, choose
from as2d_cli.profile.answer_costs import AnswerCosts
from as2d_cli.profile.answer_profiles import AnswerProfiles
from as2d_cli.profile.answer_timing import (
    MOST_TOKENS,
    QUESTIONS,
    TRANSCRIPT,
    AnswerSubject,
    measure_answers,
)
from as2d_cli.profile.layouts import Layout
from as2d_cli.profile.measure import Effort, Watch
from as2d_cli.profile.profiles import here, key_of
from as2d_cli.tasks.interrupt import interruptible
from as2d_cli.tasks.prompting import AskOptions, Prompter

__all__ = ["AnswerFindings", "profile_answers"]


@dataclass(frozen=True)
class AnswerFindings:
    """What came of it.

    Attributes:
        choice: what ``ask`` takes, by what was asked of late.
        file: where it is kept, or None.
    """

    costs: AnswerCosts
    choice: AnswerChoice
    file: Path | None = None

    def plan(self) -> Plan:
        """The one for ``ask --plan``."""
        costs, method = self.costs, self.choice.method
        split = costs.split if method in SPLIT else None
        target, draft = split or (costs.cores, costs.cores if needs_drafter(method) else ())
        return Plan(
            method=method,
            target_cores=target,
            draft_cores=draft,
            budget=default_budget(method),
            pin=this_machine().can_pin,
            costs=costs.run_costs(method),
            why=self.choice.why,
        )


def profile_answers(
    target: Bundle,
    drafter: Bundle | None,
    effort: Effort,
    profiles: AnswerProfiles,
    watch: Watch,
    *,
    saved: bool = False,
) -> AnswerFindings:
    """Measures, keeps what was measured, and chooses.

    Args:
        saved: measure nothing, take what was measured before.

    Raises:
        As2dError: a model cannot be loaded, or nothing that holds was saved.
    """
    key = key_of(target, drafter, here())
    recent = profiles.recent(target.id).answers
    if saved:
        found, why = profiles.load(key)
        if found is None:
            raise As2dError(why, remedy="run as2d profile without --saved")
        return AnswerFindings(found, choose(found, recent))
    measured = measure_answers(_subject(target, drafter, this_machine()), effort, watch)
    created = datetime.now(UTC).isoformat(timespec="seconds")
    costs = replace(measured, key=key, created=created)
    return AnswerFindings(costs, choose(costs, recent), profiles.save(costs))


def _subject(target: Bundle, drafter: Bundle | None, machine: Machine) -> AnswerSubject:
    whole = make_plan(PlanRequest("lookup"), machine).target_cores
    plan = make_plan(PlanRequest("as2d"), machine)
    apart = drafter is not None and not set(plan.target_cores) & set(plan.draft_cores)

    @contextmanager
    def open_engine(layout: Layout) -> Iterator[Engine]:
        cores, draft = layout
        method = "as2d" if draft else "target"
        lanes = Plan(method, cores, draft, default_budget(method), pin=machine.can_pin)
        engine = interruptible(lambda: Engine.open(target, drafter if draft else None, lanes))
        with engine:
            if engine.warnings:
                raise As2dError(engine.warnings[0], status=ExitStatus.UNAVAILABLE)
            yield engine

    prompter = Prompter(target, AskOptions(max_tokens=MOST_TOKENS), drafter)
    asked = {kind: prompter.about(TRANSCRIPT, question) for kind, question in QUESTIONS.items()}
    return AnswerSubject(
        target=target.id,
        drafter=drafter.id if drafter is not None else None,
        cores=whole,
        split=(plan.target_cores, plan.draft_cores) if apart else None,
        open=open_engine,
        prompts={kind: (prompt.ids, prompt.draft_ids) for kind, prompt in asked.items()},
    )
