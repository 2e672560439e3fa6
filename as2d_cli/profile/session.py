"""A whole profile: models, measurement, ranking, the plan that won."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from as2d_cli import _native
from as2d_cli.bench.contenders import Contender
from as2d_cli.bench.measure import decode
from as2d_cli.catalog import Bundle, Catalogue
from as2d_cli.decoding import Engine, Plan
from as2d_cli.decoding.plan import Machine, PlanRequest, this_machine
from as2d_cli.errors import As2dError, ExitStatus
from as2d_cli.profile.alignment import (
    Recordings,
    of_any_length,
    of_length,
    perfect,
    read_traces,
    trace_of,
)
from as2d_cli.profile.choose import fitting
from as2d_cli.profile.costs import CostModel
from as2d_cli.profile.fit import Heard
from as2d_cli.profile.layouts import Layout, layouts
from as2d_cli.profile.measure import Effort, Subject, Watch, measure
from as2d_cli.profile.planner import Ranked, best, candidates, rank, reasons
from as2d_cli.profile.profiles import Profile, Profiles, Where, here, key_of
from as2d_cli.profile.reckoning import Measured
from as2d_cli.tasks.interrupt import interruptible
from as2d_cli.tasks.known_clip import known_clip
from as2d_cli.tasks.models import check_drafter, check_listener
from as2d_cli.text.whisper_prompt import prompt

__all__ = ["Findings", "ProfileRequest", "Site", "ranked", "run_profile", "spoken"]

_LENGTHS = (5, 10, 20, 30, 60, 240)
"""Seconds of recordings that a plan is told for."""


@dataclass(frozen=True)
class ProfileRequest:
    """What is asked for.

    Attributes:
        target, drafter: ids or paths; `drafter` None for none.
        effort: how much is measured.
        saved: measure nothing, take what was measured before.
        alignment: traces to plan by, or None for those that came with as2d.
    """

    target: str
    drafter: str | None
    effort: Effort
    saved: bool = False
    alignment: Path | None = None


@dataclass(frozen=True)
class Findings:
    """What came of it.

    Attributes:
        costs: of the pair that was asked for.
        ranking: of all plans with this target, the fastest first.
        chosen: the plan that won.
        reasons: why, in sentences.
        windows: of speech, that the plans were compared on.
        by_length: the plan that wins on recordings of so many seconds each.
        file: where it is kept, or None.
    """

    costs: CostModel
    ranking: Sequence[Ranked]
    chosen: Ranked
    reasons: Sequence[str]
    windows: int
    by_length: Sequence[tuple[int, Ranked]] = ()
    file: Path | None = None

    def plan(self) -> Plan:
        """The one that won."""
        return self.chosen.candidate.plan(
            f"by what was measured: {self.chosen.ratio:.2f} x the target alone"
        )


class Site(Protocol):
    """Where it is measured."""

    @property
    def machine(self) -> Machine: ...
    @property
    def where(self) -> Where: ...
    def measure(
        self,
        target: Bundle,
        drafter: Bundle | None,
        layouts: Sequence[Layout],
        effort: Effort,
        watch: Watch,
    ) -> Measured:
        """As `as2d_cli.profile.measure.measure`, on what `known_clip` says."""


class StoreFace(Protocol):
    """What is used of a store (see `as2d_cli.catalog.Store`)."""

    @property
    def catalogue(self) -> Catalogue: ...
    def find(self, name: str, /) -> Bundle | None: ...


def run_profile(
    request: ProfileRequest,
    target: Bundle,
    drafter: Bundle | None,
    store: StoreFace,
    profiles: Profiles,
    watch: Watch,
    site: Site | None = None,
) -> Findings:
    """Measures, keeps what was measured, and ranks the plans.

    Args:
        site: another machine than this one.

    Raises:
        As2dError: a model cannot be loaded, the target writes down nothing, or nothing that holds
            was saved.
    """
    check_listener(target)
    if drafter is not None:
        check_drafter(request.drafter or drafter.id, drafter, target)
    site = site or _Here()
    key = key_of(target, drafter, site.where)
    machine = site.machine
    file = None
    if request.saved:
        found, why = profiles.load(key)
        if found is None:
            raise As2dError(why, remedy="run as2d profile without --saved")
        profile = found
    else:
        ways = layouts(machine, drafter=drafter is not None)
        measured = site.measure(target, drafter, ways, request.effort, watch)
        created = datetime.now(UTC).isoformat(timespec="seconds")
        costs = replace(measured.costs, key=key, created=created)
        profile = Profile(costs, _heard(measured, target, drafter))
        file = profiles.save(profile)
    others = [] if request.alignment else _others(profile, target, store, profiles, site.where)
    found_by = {
        p.costs.drafter: read_traces(request.alignment, target.id, p.costs.drafter)
        if request.alignment
        else p.recordings()
        for p in (profile, *others)
    }
    models = [p.costs for p in (profile, *others)]
    anything = {drafter: of_any_length(found) for drafter, found in found_by.items()}
    findings = ranked(models, anything, machine)
    lengths = [(seconds, _chosen_for(seconds, models, found_by, machine)) for seconds in _LENGTHS]
    return replace(findings, by_length=lengths, file=file)


def ranked(
    models: Sequence[CostModel], recordings: Mapping[str | None, Recordings], machine: Machine
) -> Findings:
    """The plans of these cost models on this machine, compared.

    Args:
        recordings: traces by drafter.
    """
    first = recordings[models[0].drafter]
    ranking = rank(candidates(models), {None: first, **recordings})
    # Of all that was compared, what can be had here. The target on all cores always can.
    fits = fitting(PlanRequest(drafter="any"), machine)
    chosen = best([r for r in ranking if fits(r.candidate)])
    windows = sum(len(recording) for recording in first)
    return Findings(models[0], ranking, chosen, reasons(ranking, chosen), windows)


def _chosen_for(
    seconds: int,
    models: Sequence[CostModel],
    recordings: Mapping[str | None, Recordings],
    machine: Machine,
) -> Ranked:
    """What wins on recordings of so many seconds."""
    pieces = {drafter: of_length(found, seconds) for drafter, found in recordings.items()}
    return ranked(models, pieces, machine).chosen


def _others(
    profile: Profile, target: Bundle, store: StoreFace, profiles: Profiles, where: Where
) -> list[Profile]:
    """What was measured of the target with other drafters, as far as it holds."""
    found = []
    for entry in store.catalogue.models:
        if entry.role != "drafter" or entry.id == profile.costs.drafter or not entry.usable:
            continue
        bundle = store.find(entry.id)
        other = profiles.load(key_of(target, bundle, where))[0] if bundle is not None else None
        if other is not None:
            found.append(other)
    return found


def spoken(target: Bundle) -> str:
    """The language that the known clip is taken for: its own, if the target knows it."""
    return "en" if "en" in target.languages else target.languages[0]


class _Here:
    """This machine."""

    def __init__(self) -> None:
        self.machine = this_machine()
        self.where = here()

    def measure(
        self,
        target: Bundle,
        drafter: Bundle | None,
        layouts: Sequence[Layout],
        effort: Effort,
        watch: Watch,
    ) -> Measured:
        return measure(_subject(target, drafter, self.machine), layouts, effort, watch)


def _subject(target: Bundle, drafter: Bundle | None, machine: Machine) -> Subject:
    clip = known_clip()
    language = spoken(target)

    @contextmanager
    def open_engine(layout: Layout) -> Iterator[Engine]:
        cores, draft = layout
        plan = Plan("as2d" if draft else "target", cores, draft, 8, pin=machine.can_pin)
        engine = interruptible(lambda: Engine.open(target, drafter if draft else None, plan))
        with engine:
            if engine.warnings:
                raise As2dError(engine.warnings[0], status=ExitStatus.UNAVAILABLE)
            yield engine

    def hear(engine: Engine, windows: Sequence[Any], batch: int) -> Heard:
        entrant = Contender("batched", budget=batch) if batch > 1 else Contender("target")
        ran = decode(engine, entrant, windows, target, language)
        counters = ran.counters
        steps = counters.alone_steps + sum(counters.verify_steps.values())
        return Heard(ran.texts, steps, counters.seconds)

    return Subject(
        target=target.id,
        drafter=drafter.id if drafter is not None else None,
        shares_encoder=drafter is not None and bool(drafter.target),
        open=open_engine,
        hear=hear,
        clip=clip,
        language=language,
        prompt_rows=len(prompt(target, language)),
    )


def _heard(measured: Measured, target: Bundle, drafter: Bundle | None) -> Recordings:
    """The clip as a recording of one window, and as one of several."""
    seconds = len(known_clip()) / target.sample_rate
    if drafter is None:
        window = perfect(seconds, len(measured.text))
    else:
        tracer = _native.Replay(target.path / target.vocabulary_file)
        end = target.tokens["end"]
        window = trace_of(tracer, seconds, measured.text, measured.draft, end)
    return [[window], [window] * 6]
