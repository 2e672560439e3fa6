"""What a person reads: the table, and below it what it means."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from rich.console import Console

from as2d_cli.bench.advice import advice
from as2d_cli.bench.calibrate import best_width
from as2d_cli.bench.categories import by_category
from as2d_cli.bench.results import Results
from as2d_cli.bench.summary import Row
from as2d_cli.bench.table import print_categories, print_table
from as2d_cli.bench.wer import HOW_TO_INSTALL
from as2d_cli.bench.words import counted

__all__ = ["print_report"]


_ROUGH = 0.25
"""Idle machines stay far below; more is another program's doing."""


def print_report(
    results: Results,
    rows: Sequence[Row],
    console: Console,
    *,
    wide: bool,
    errors: bool,
    parts: Mapping[str, Sequence[Row]] = MappingProxyType({}),
) -> None:
    """Prints the table, the same for units that were left out, and the notes.

    Args:
        parts: by category of questions, the rows of those units alone.
        wide: all columns, whatever the width.
        errors: word errors could be counted.
    """
    unit = results.noun
    print_table(rows, console, all_columns=wide)
    for category, some in parts.items():
        console.print(f"\nof these, {category}:", soft_wrap=True)
        print_table(some, console, all_columns=wide)
    flagged = [row.flagged for row in rows if row.flagged is not None]
    if flagged:
        looped = max(row.looped for row in rows)
        console.print(
            f"\nleft out above: {counted(looped, unit)} whose text goes in circles, "
            "which drafts guess too easily",
            soft_wrap=True,
        )
        print_table(flagged, console, all_columns=wide)
    categories = by_category(results)
    if len(categories) > 1:
        console.print("\nthe plan on each category, and the one strategy that is the best on it")
        print_categories(categories, console)
    notes = (
        _notes(results, unit, errors) + _prediction(rows, results.baseline) + advice(results, rows)
    )
    if notes:
        console.print()
    for note in notes:
        console.print(note, soft_wrap=True)


def _notes(results: Results, unit: str, errors: bool) -> list[str]:
    notes = []
    if results.widths:
        tried = ", ".join(str(width) for width in results.widths)
        width = best_width(results.widths)
        notes.append(
            f"target-only runs on {counted(width, 'core')}, the fastest of {tried} in warm-up"
        )
    spread = _spread(results)
    if spread is not None and spread > _ROUGH:
        notes.append(
            f"repeats of one {unit} differ by {spread:.0%}: something else uses these cores, "
            "and the figures are rough"
        )
    if results.shared:
        notes.append(
            f"the plan is the target alone for {counted(len(results.shared), unit)} of "
            f"{len(results.units)}: the runs of one are those of the other"
        )
    hot = sum(moment["throttled"] for moment in results.moments.values())
    if hot:
        notes.append(
            f"{hot} of {counted(len(results.moments), 'sample')} ran on cores that were throttled: "
            "let the device cool down, or use --cool-down 40"
        )
    if any(contender.ceiling for contender in results.contenders):
        notes.append("oracle and the target as its own drafter show the most that drafts can give")
    if not errors and any(entry.clip.text for entry in results.units):
        notes.append(f"no word error rates: {HOW_TO_INSTALL}")
    return notes


def _prediction(rows: Sequence[Row], baseline: int) -> list[str]:
    """How far the simulation was off, in the middle."""
    errors = [abs(row.prediction_error) for row in rows if row.prediction_error is not None]
    if not errors:
        return []
    told = (
        f"error: what as2d profile measured predicts the seconds of {counted(len(errors), 'row')}, "
        f"off by {statistics.median(errors):.0%} in the median"
    )
    found = [_ratio_error(rows[baseline], row) for row in rows]
    ratios = [abs(error) for error in found if error is not None]
    if ratios:
        # What the machine did besides made all rows slower: plans go by the ratios.
        told += (
            f", and the ratios to {rows[baseline].label}, off by {statistics.median(ratios):.0%}"
        )
    return [told]


def _ratio_error(base: Row, row: Row) -> float | None:
    """By what share the predicted ratio to `base` is more than the measured one; None where there
    is no such ratio.
    """
    if row is base or row.windows != base.windows or not row.seconds:
        return None
    if not base.predicted_seconds or not row.predicted_seconds:
        return None
    predicted = base.predicted_seconds / row.predicted_seconds
    return predicted / (base.seconds / row.seconds) - 1


def _spread(results: Results) -> float | None:
    """By how much the baseline's slowest repeat of a unit exceeds its fastest: the median unit."""
    seconds: dict[int, list[float]] = defaultdict(list)
    for sample in results.samples:
        if sample.turn.contender == results.baseline:
            seconds[sample.turn.unit].append(sample.seconds)
    spreads = [max(taken) / min(taken) - 1 for taken in seconds.values() if len(taken) > 1]
    return statistics.median(spreads) if spreads else None
