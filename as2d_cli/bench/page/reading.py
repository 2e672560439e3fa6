"""A bench document as the page needs it: medians, ratios per unit, typical and worst units."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from as2d_cli.bench.page.marks import number

__all__ = ["Contender", "Reading", "Unit"]

COLOURS = 6
"""As many as can be told apart with any kind of colour blindness; then line patterns differ."""

PATTERNS = 4


@dataclass(frozen=True)
class Contender:
    """One of what was compared.

    Attributes:
        index: in the document.
        style: CSS classes of its colour and line pattern, the same in every chart.
        figures: its row of the summary.
        entry: all that the document says of it.
    """

    index: int
    label: str
    style: str
    baseline: bool
    reference: bool
    ceiling: bool
    exact: bool
    drafter: str | None
    figures: Mapping[str, Any]
    entry: Mapping[str, Any]

    @property
    def family(self) -> tuple[str, str]:
        """What contenders have in common that differ in their budget alone."""
        return str(self.entry.get("method")), self.drafter or ""


@dataclass(frozen=True)
class Unit:
    """What was timed: a window, a whole recording or a question."""

    index: int
    name: str
    audio_seconds: float
    flags: Sequence[str]
    entry: Mapping[str, Any]


class Reading:
    """The document, looked up by contender and unit.

    Where a unit was measured several times, times are medians, and samples whose drafter was lost
    say nothing about time.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document
        self.units = [_unit(index, entry) for index, entry in enumerate(document["units"])]
        self.contenders = _contenders(document)
        self.baseline = next((c for c in self.contenders if c.baseline), None)
        self.texts = {entry["unit"]: entry for entry in document.get("texts") or ()}
        self._samples: dict[tuple[int, int], list[Mapping[str, Any]]] = defaultdict(list)
        self._timed: dict[tuple[int, int], list[Mapping[str, Any]]] = defaultdict(list)
        for sample in document["samples"]:
            key = sample["contender"], sample["unit"]
            self._samples[key].append(sample)
            if not sample["lost"]:
                self._timed[key].append(sample)
        self._spans: dict[tuple[int, int, int], list[Mapping[str, Any]]] = defaultdict(list)
        for span in document.get("spans") or ():
            self._spans[span["contender"], span["unit"], span["repeat"]].append(span)

    @property
    def clean(self) -> list[Unit]:
        """The units that the figures are about: those without a flag."""
        return [unit for unit in self.units if not unit.flags]

    @property
    def flagged(self) -> list[Unit]:
        """The others."""
        return [unit for unit in self.units if unit.flags]

    def samples(self, contender: Contender, units: Sequence[Unit]) -> list[Mapping[str, Any]]:
        """All samples of a contender on these units."""
        return [s for unit in units for s in self._samples.get((contender.index, unit.index), ())]

    def middle(self, contender: Contender, unit: Unit) -> list[Mapping[str, Any]]:
        """The sample with the median time, or the two about it, the faster first.

        Their mean is the median, and their phases add up to it.
        """
        samples = sorted(
            self._timed.get((contender.index, unit.index), ()), key=lambda s: float(s["seconds"])
        )
        return samples[(len(samples) - 1) // 2 : len(samples) // 2 + 1]

    def ratio(self, contender: Contender, unit: Unit) -> float | None:
        """The baseline's seconds over the contender's, above 1 where it is faster."""
        if self.baseline is None:
            return None
        mine, base = self._seconds(contender, unit), self._seconds(self.baseline, unit)
        if not mine or not base:
            return None
        ratio = base / mine
        return ratio if math.isfinite(ratio) and ratio > 0 else None

    def ratios(self, contender: Contender) -> list[tuple[float, Unit]]:
        """Of all clean units, the slowest first."""
        pairs = [(self.ratio(contender, unit), unit) for unit in self.clean]
        known = [(ratio, unit) for ratio, unit in pairs if ratio is not None]
        return sorted(known, key=lambda pair: (pair[0], pair[1].index))

    def spans(self, contender: Contender, unit: Unit) -> list[Mapping[str, Any]]:
        """What the lanes did in the first of the middle samples, in order of time."""
        middle = self.middle(contender, unit)
        if not middle:
            return []
        key = (contender.index, unit.index, middle[0]["repeat"])
        return sorted(self._spans.get(key, ()), key=lambda span: span["begin"])

    def _seconds(self, contender: Contender, unit: Unit) -> float | None:
        middle = self.middle(contender, unit)
        return statistics.fmean(sample["seconds"] for sample in middle) if middle else None

    def leader(self) -> Contender | None:
        """The fastest that is neither the baseline nor a ceiling, by the pooled ratio."""
        rivals = [
            c
            for c in self.contenders
            if not c.baseline and not c.ceiling and _known(c.figures.get("ratio"))
        ]
        return max(rivals, key=lambda c: float(c.figures["ratio"]), default=None)

    def with_spans(self, contender: Contender) -> list[tuple[float, Unit]]:
        """As `ratios`, of the units with spans."""
        return [pair for pair in self.ratios(contender) if self.spans(contender, pair[1])]


def _unit(index: int, entry: Mapping[str, Any]) -> Unit:
    name = str(entry["clip"])
    if entry.get("window") is not None:
        start, end = entry["start"], entry["start"] + entry["audio_seconds"]
        name += f", window {entry['window']} ({number(start, 1)}\u2013{number(end, 1)} s)"
    if entry.get("question") is not None:
        name += f": {entry['question']}"
    return Unit(index, name, entry["audio_seconds"], tuple(entry.get("flags") or ()), entry)


def _contenders(document: Mapping[str, Any]) -> list[Contender]:
    rows = list(document.get("summary") or ())
    found: list[Contender] = []
    coloured = 0
    for index, entry in enumerate(document["contenders"]):
        style = "base"
        if not entry["baseline"]:
            style = f"c{coloured % COLOURS} p{coloured // COLOURS % PATTERNS}"
            coloured += 1
        found.append(
            Contender(
                index=index,
                label=str(entry["label"]),
                style=style,
                baseline=entry["baseline"],
                reference=entry["reference"],
                ceiling=entry["ceiling"],
                exact=entry["exact"],
                drafter=entry["drafter"],
                figures=rows[index] if index < len(rows) else {},
                entry=entry,
            )
        )
    return found


def _known(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
