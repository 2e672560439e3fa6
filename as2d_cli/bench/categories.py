"""What a plan was worth on each category of recordings, beside the best plan that never changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from as2d_cli.bench.results import Results
from as2d_cli.bench.statistics import bootstrap, over, pooled_ratio, slower_share
from as2d_cli.bench.summary import unit_seconds

__all__ = ["Category", "by_category"]


@dataclass(frozen=True)
class Category:
    """The plan on some units; None is what cannot be told.

    Attributes:
        name: of the category; "" for all units.
        units: that the plan and the baseline have, without those that are flagged.
        ratio, ratio_interval: as of a `Row`.
        slower_share: of the units.
        fixed: label of the contender that is the fastest over these units, of those that have all
            of them; no plan and no ceiling.
        fixed_ratio: the ratio of that one.
        fixed_share: throughput of the plan over that of that one.
    """

    name: str
    units: int
    ratio: float | None
    ratio_interval: tuple[float, float] | None
    slower_share: float | None
    fixed: str | None
    fixed_ratio: float | None
    fixed_share: float | None

    def as_json(self) -> dict[str, Any]:
        """As values that JSON knows."""
        return asdict(self)


def by_category(results: Results) -> list[Category]:
    """Each category in the order of the units, and all of them at the end. Without a plan, none."""
    plan = next((i for i, c in enumerate(results.contenders) if c.planned), None)
    if plan is None:
        return []
    seconds = unit_seconds(results)
    groups: dict[str, list[int]] = {}
    for unit in sorted(seconds[plan].keys() & seconds[results.baseline].keys()):
        if not results.flags.get(unit):
            groups.setdefault(results.units[unit].clip.category, []).append(unit)
    named = [(name, units) for name, units in groups.items() if name]
    everything = [unit for units in groups.values() for unit in units]
    return [
        _category(name, units, plan, results, seconds)
        for name, units in [*named, ("", everything)]
        if units
    ]


def _category(
    name: str,
    units: list[int],
    plan: int,
    results: Results,
    seconds: Mapping[int, Mapping[int, float]],
) -> Category:
    base = [seconds[results.baseline][unit] for unit in units]
    own = [seconds[plan][unit] for unit in units]
    totals = {
        number: sum(seconds[number][unit] for unit in units)
        for number, contender in enumerate(results.contenders)
        if not contender.planned and not contender.ceiling and seconds[number].keys() >= set(units)
    }
    best = min(totals, key=lambda number: totals[number])  # the baseline has them all
    return Category(
        name=name,
        units=len(units),
        ratio=pooled_ratio(base, own),
        ratio_interval=bootstrap(pooled_ratio, base, own),
        slower_share=slower_share(base, own),
        fixed=results.contenders[best].label,
        fixed_ratio=over(sum(base), totals[best]),
        fixed_share=over(totals[best], sum(own)),
    )
