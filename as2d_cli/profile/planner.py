"""Every plan that could be made, what each would be worth, and which is the best."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from as2d_cli.decoding.plan import Plan
from as2d_cli.methods import default_budget
from as2d_cli.profile.alignment import Recordings
from as2d_cli.profile.costs import WORK, CostModel, LaneCosts
from as2d_cli.profile.simulate import Outcome, Setup, simulate

__all__ = ["BUDGETS", "Candidate", "Ranked", "best", "candidates", "rank", "reasons"]

BUDGETS = (1, 2, 4, 6, 8, 12, 16)
"""Candidates in a verify step."""

_BATCHES = (2, 3, 4, 6, 8)
"""Windows decoded at a time, without drafts."""

_DRAFTED_BATCHES = (1, 2, 3)

_CLOSE = 0.01
"""Plans that differ by less are one for all that a simulation can tell: the simpler is taken."""


_SURE = 1.1
"""What drafts must gain at the least. Two lanes get in each other's way, and on a shared machine
how much changes from one minute to the next: two virtual cores may be threads of one for a while,
which the target alone feels less. Smaller gains came out as losses as often as not.
"""


@dataclass(frozen=True)
class Candidate:
    """A plan that could be made.

    Attributes:
        costs: of its pair of models.
        lane: how it shares the cores.
        method: ``target``, ``batched`` or ``as2d``.
        budget: most candidates in a verify step; 0 without drafts.
        windows: decoded at a time.
        elastic: lanes lend their cores, which takes pinned threads.
    """

    costs: CostModel
    lane: LaneCosts
    method: str
    budget: int = 0
    windows: int = 1
    elastic: bool = True

    @property
    def drafter(self) -> str | None:
        """Its id, or None."""
        return self.costs.drafter if self.method == "as2d" else None

    @property
    def label(self) -> str:
        """For people: ``as2d whisper-tiny.en 8 x3``."""
        parts = [self.method, self.drafter or "", str(self.budget or "")]
        text = " ".join(part for part in parts if part)
        return text + (f" x{self.windows}" if self.windows > 1 else "")

    def setup(self) -> Setup:
        """As the simulator takes it."""
        return Setup(self.budget, self.windows, self.elastic)

    def plan(self, why: str) -> Plan:
        """As the engine takes it."""
        batched = self.method == "batched"
        return Plan(
            method=self.method,
            target_cores=self.lane.target_cores,
            draft_cores=self.lane.draft_cores if self.method == "as2d" else (),
            budget=self.windows if batched else self.budget or default_budget(self.method),
            pin=self.elastic,
            windows=1 if batched else self.windows,
            costs=self.lane.run_costs(),
            why=why,
        )


@dataclass(frozen=True)
class Ranked:
    """A candidate and what it would be worth.

    Attributes:
        outcome: over all recordings.
        ratio: throughput over that of the target alone on the cores that suit it best.
        slower: share of the recordings that take longer than with that.
        least: `ratio` less what the spread of the measurements may make of it, which is worked out
            for the fastest of each method and lane; the others lose the same share. Where `ratio`
            is no gain already, it is the same.
    """

    candidate: Candidate
    outcome: Outcome
    ratio: float
    slower: float
    least: float

    @property
    def tokens_per_second(self) -> float:
        """Committed."""
        return self.outcome.tokens / self.outcome.seconds


def candidates(models: Iterable[CostModel]) -> Iterator[Candidate]:
    """All of them, the simplest first."""
    for costs in models:
        for lane in costs.lanes:
            if not lane.draft_cores:
                yield Candidate(costs, lane, "target")
                for windows in _BATCHES:
                    yield Candidate(costs, lane, "batched", windows=windows)
                continue
            for windows in _DRAFTED_BATCHES:
                for budget in BUDGETS:
                    yield Candidate(costs, lane, "as2d", budget, windows)
            # Pinned threads lend their cores, others do not: what that is worth is seen here.
            yield Candidate(costs, lane, "as2d", 8, 1, elastic=False)


def rank(entries: Iterable[Candidate], recordings: Mapping[str | None, Recordings]) -> list[Ranked]:
    """The fastest first.

    Args:
        recordings: traces by drafter; those of None are for plans without one. All of the same
            audio, or of audio of one kind.
    """
    found = [(entry, _runs(entry, recordings)) for entry in entries]
    lonely = [pair for pair in found if pair[0].method == "target"]
    first = min(lonely, key=lambda pair: _pooled(pair[1]).seconds, default=None)
    base = _Base.of(*first, recordings) if first is not None else None
    ranked = []
    for entry, runs in found:
        pooled = _pooled(runs)
        ratio, slower, least = 1.0, 0.0, 1.0
        if base is not None:
            ratio = least = _ratio(pooled, base.outcome)
            if len(base.runs) == len(runs):
                late = [a.seconds > b.seconds for a, b in zip(runs, base.runs, strict=True)]
                slower = statistics.fmean(late)
        ranked.append((Ranked(entry, pooled, ratio, slower, least), runs))
    ranked.sort(key=lambda pair: -pair[0].tokens_per_second)
    if base is None:
        return [first for first, _ in ranked]
    return list(_with_least(ranked, base, recordings))


def best(ranking: Sequence[Ranked]) -> Ranked:
    """The first whose gain over the target alone is sure, or the simplest of those as good as it.

    A gain that the measurements' own spread could have made is none, nor one of drafts that is
    below `_SURE`. Where the target alone is not among them, nothing is held against it.
    """
    alone = any(r.candidate.method == "target" for r in ranking)
    able = [r for r in ranking if not alone or _sure(r)]
    first = able[0]
    as_good = [r for r in able if r.tokens_per_second >= (1 - _CLOSE) * first.tokens_per_second]
    return min(as_good, key=lambda r: (r.candidate.method != "target", -r.tokens_per_second))


def _sure(ranked: Ranked) -> bool:
    method = ranked.candidate.method
    return method == "target" or ranked.least > (_SURE if method == "as2d" else 1.0)


def reasons(ranking: Sequence[Ranked], chosen: Ranked) -> list[str]:
    """Why `chosen` won, in sentences."""
    lines = [
        f"{chosen.candidate.label} is {_times(chosen.ratio)} the target alone: "
        f"{chosen.tokens_per_second:.0f} tokens/s"
    ]
    unsure = ranking[0]
    if unsure.ratio > chosen.ratio and not _sure(unsure):
        lines.append(
            f"{unsure.candidate.label} might be {_times(unsure.ratio)} the target alone, but by "
            f"the spread of what was measured perhaps only {unsure.least:.2f} x: no sure gain"
        )
    elif chosen.candidate.method != "target":
        lines.append(
            f"by the spread of what was measured that is {chosen.least:.2f} x at the least"
        )
    drafting = next((r for r in ranking if r.candidate.method == "as2d"), None)
    if chosen.candidate.method != "as2d" and drafting is not None:
        contention = drafting.candidate.lane.contention
        line = (
            f"the best with drafts is {drafting.candidate.label}, {_times(drafting.ratio)} the "
            "target alone"
        )
        if contention is not None:
            line += (
                f": beside a working drafter the target's steps take {contention:.2f} x as long as "
                "on the same cores alone, and these are fewer"
            )
        lines.append(line)
    if chosen.candidate.method == "as2d":
        outcome = chosen.outcome
        lines.append(
            f"it commits {outcome.tokens / outcome.steps:.1f} tokens a step; "
            f"{outcome.alone / outcome.steps:.0%} of the steps find nothing drafted"
        )
    stiff = next((r for r in ranking if not r.candidate.elastic), None)
    if stiff is not None:
        elastic = replace(stiff.candidate, elastic=True)
        lent = next(r for r in ranking if r.candidate == elastic)
        worth = lent.tokens_per_second / stiff.tokens_per_second - 1
        lines.append(f"cores that help the other lane are worth {worth:+.0%} to {elastic.label}")
    return lines


def _runs(entry: Candidate, recordings: Mapping[str | None, Recordings]) -> list[Outcome]:
    known = recordings.get(entry.drafter) or recordings[None]
    return [simulate(windows, entry.setup(), entry.costs, entry.lane) for windows in known]


def _with_least(
    ranked: Iterable[tuple[Ranked, Sequence[Outcome]]],
    base: _Base,
    recordings: Mapping[str | None, Recordings],
) -> Iterator[Ranked]:
    """Fills in `least`, the fastest first."""
    kept: dict[tuple[int, str], float] = {}
    for one, runs in ranked:
        if one.ratio <= 1:
            yield one
            continue
        kind = id(one.candidate.lane), one.candidate.method
        if kind not in kept:
            kept[kind] = _least(one.candidate, runs, base, recordings) / one.ratio
        yield replace(one, least=one.ratio * kept[kind])


def _least(
    entry: Candidate,
    runs: Sequence[Outcome],
    base: _Base,
    recordings: Mapping[str | None, Recordings],
) -> float:
    """The ratio to the target alone, less what the measurements may be off by.

    Each kind of work is off by itself, of the one and of the other: what that makes of the ratio
    adds up like independent errors, to the root of the squares. Against the target on the cores
    that suit it best; and, where these are others, against it on the same cores, whose figures were
    made in the same minutes: the lesser of the two.
    """
    pooled = _pooled(runs)

    def lost(ratio: float, others: Iterable[float]) -> float:
        return ratio - math.sqrt(sum(max(0.0, ratio - other) ** 2 for other in others))

    dear = [_pooled(_runs(replace(entry, lane=entry.lane.off(what)), recordings)) for what in WORK]
    ratio = _ratio(pooled, base.outcome)
    others = [_ratio(one, base.outcome) for one in dear]
    if entry.lane is base.candidate.lane:
        # What makes the one slower makes the other slower, too.
        return lost(ratio, (_ratio(one, own) for one, own in zip(dear, base.dear, strict=True)))
    others += [ratio * base.outcome.seconds / own.seconds for own in base.dear]
    here = replace(entry, method="target", budget=0, windows=1, elastic=True)
    same = _Base.of(here, _runs(here, recordings), recordings)
    on_same = (_ratio(one, own) for one, own in zip(dear, same.dear, strict=True))
    return min(lost(ratio, others), lost(_ratio(pooled, same.outcome), on_same))


@dataclass(frozen=True)
class _Base:
    """The target alone: as it was measured, and with each kind of work as dear as it may be."""

    candidate: Candidate
    runs: Sequence[Outcome]
    outcome: Outcome
    dear: Sequence[Outcome]

    @classmethod
    def of(
        cls,
        candidate: Candidate,
        runs: Sequence[Outcome],
        recordings: Mapping[str | None, Recordings],
    ) -> _Base:
        dear = [
            _pooled(_runs(replace(candidate, lane=candidate.lane.off(what)), recordings))
            for what in WORK
        ]
        return cls(candidate, runs, _pooled(runs), dear)


def _ratio(own: Outcome, alone: Outcome) -> float:
    return own.tokens / own.seconds * alone.seconds / alone.tokens


def _pooled(runs: Sequence[Outcome]) -> Outcome:
    return Outcome(
        sum(run.seconds for run in runs),
        sum(run.tokens for run in runs),
        sum(run.steps for run in runs),
        sum(run.alone for run in runs),
        sum(run.accepted for run in runs),
    )


def _times(ratio: float) -> str:
    return f"{ratio:.2f} x as fast as"
