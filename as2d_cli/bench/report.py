"""Outcomes as a table and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from as2d_cli.bench.compare import Outcome

__all__ = ["as_json", "print_table"]


def as_json(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Every outcome with all that it counted; ratios are above 1 where it is faster."""
    return [_row(outcome) for outcome in outcomes]


def _row(outcome: Outcome) -> dict[str, Any]:
    contender = outcome.contender
    return {
        "method": contender.method,
        "drafter": contender.drafter,
        "budget": contender.budget,
        "exact": contender.exact,
        "windows": outcome.windows,
        "differing": [{"clip": clip, "window": window} for clip, window in outcome.differing],
        "audio_seconds": outcome.audio_seconds,
        "wall_seconds": outcome.wall_seconds,
        "baseline_seconds": outcome.baseline_seconds,
        "ratio": _over(outcome.baseline_seconds, outcome.wall_seconds),
        "tokens_per_second": _over(outcome.committed, outcome.wall_seconds),
        "tokens_per_step": outcome.tokens_per_step,
        "committed": outcome.committed,
        "drafted": outcome.drafted,
        "proposed": outcome.proposed,
        "accepted": outcome.accepted,
        "alone_steps": outcome.alone_steps,
        "verify_steps": {str(n): outcome.verify_steps[n] for n in sorted(outcome.verify_steps)},
        "realignments": outcome.realignments,
        "stale_drafts": outcome.stale_drafts,
        "lost": outcome.lost,
    }


def print_table(outcomes: Sequence[Outcome], console: Console) -> None:
    """One row each; the ratio is to the target alone over the same clips, above 1 where faster.

    Where the terminal is too narrow for all columns, those that matter most are shown.
    """
    headings = [h for h in _HEADINGS if console.width >= _WIDE or h not in _LESSER]
    table = Table(box=None, pad_edge=False)
    table.add_column("method", no_wrap=True)
    for heading in headings:
        table.add_column(heading, justify="right")
    for outcome in outcomes:
        figures = dict(zip(_HEADINGS, _figures(outcome), strict=True))
        table.add_row(Text(outcome.contender.label), *(figures[h] for h in headings))
    console.print(table)


_HEADINGS = (
    "windows",
    "differing",
    "x real time",
    "ratio",
    "tokens/s",
    "tokens/step",
    "accepted",
    "alone steps",
    "realigned",
)
_LESSER = ("windows", "tokens/s", "alone steps", "realigned")
# Columns of a terminal that has room for all columns of the table.
_WIDE = 124


def _figures(outcome: Outcome) -> tuple[str, ...]:
    """In the order of the headings."""
    return (
        str(outcome.windows),
        str(len(outcome.differing)),
        _number(_over(outcome.audio_seconds, outcome.wall_seconds), ".1f"),
        _number(_over(outcome.baseline_seconds, outcome.wall_seconds), ".2f"),
        _number(_over(outcome.committed, outcome.wall_seconds), ".0f"),
        _number(outcome.tokens_per_step, ".2f"),
        _number(_over(outcome.accepted, outcome.proposed), ".0%"),
        _number(_over(outcome.alone_steps, outcome.steps), ".0%"),
        str(outcome.realignments),
    )


def _over(above: float, below: float) -> float | None:
    return above / below if below else None


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
