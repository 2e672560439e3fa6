"""Rows of figures as a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from as2d_cli.bench.categories import Category
from as2d_cli.bench.summary import Row
from as2d_cli.errors import one_line

__all__ = ["print_categories", "print_table"]

_GAP = 2
_LEAST_LABEL = 16


@dataclass(frozen=True)
class _Column:
    """Attributes:
    heading: short.
    cell: of a row.
    style: of the cell, for terminals.
    """

    heading: str
    cell: Callable[[Row], str]
    style: Callable[[Row], str] = lambda row: ""


def print_table(rows: Sequence[Row], console: Console, *, all_columns: bool = False) -> None:
    """One line a row, never wrapped.

    Args:
        all_columns: even if the console is too narrow; else the columns that matter most of those
            that tell anything.
    """
    columns = _COLUMNS
    cells = {column.heading: [column.cell(row) for row in rows] for column in columns}
    widths = {
        heading: max(map(cell_len, [heading, *column])) + _GAP for heading, column in cells.items()
    }
    labels = [one_line(row.label) for row in rows]
    room = max(map(cell_len, ["method", *labels]))
    if not all_columns:
        room = min(room, max(_LEAST_LABEL, console.width // 2))
        told = [c for c in columns if set(cells[c.heading]) != {"-"}]
        columns = _fitting(told, widths, console.width - room)
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
    table.add_column("method", no_wrap=True, width=room)
    for column in columns:
        table.add_column(column.heading, justify="right", no_wrap=True)
    for number, row in enumerate(rows):
        table.add_row(
            Text(_shortened(labels[number], room)),
            *(Text(cells[c.heading][number], style=c.style(row)) for c in columns),
        )
    console.print(table, crop=False)


def print_categories(categories: Sequence[Category], console: Console) -> None:
    """One line a category, never wrapped; the last is of all."""
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
    table.add_column("category", no_wrap=True)
    for heading in ("units", "ratio", "95 %", "slower", "of fixed", "its ratio"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("fixed", no_wrap=True)
    for entry in categories:
        cells = (
            one_line(entry.name) or "all",
            str(entry.units),
            _number(entry.ratio, ".2f"),
            _range(entry.ratio_interval),
            _number(entry.slower_share, ".0%"),
            _number(entry.fixed_share, ".1%"),
            _number(entry.fixed_ratio, ".2f"),
            one_line(entry.fixed or "-"),
        )
        table.add_row(*map(Text, cells))
    console.print(table, crop=False)


_PRIORITY = (
    "ratio",
    "real time",
    "exact",
    "95 %",
    "tokens/s",
    "slower",
    "accepted",
    "alone",
    "memory",
    "of best",
    "WER",
    "p95",
    "p50",
    "length",
    "mean",
    "error",
    "lead",
    "realigned",
)


def _fitting(columns: Sequence[_Column], widths: dict[str, int], room: int) -> list[_Column]:
    """The most important ones that fit, in their usual order."""
    kept = set()
    there = {column.heading for column in columns}
    for heading in (heading for heading in _PRIORITY if heading in there):
        if widths[heading] > room:
            break
        room -= widths[heading]
        kept.add(heading)
    return [column for column in columns if column.heading in kept]


def _mean(row: Row) -> str:
    if row.geometric_mean is None:
        return "-"
    interval = _range(row.geometric_mean_interval)
    return f"{row.geometric_mean:.2f}" + (f" ({interval})" if interval != "-" else "")


def _exact(row: Row) -> str:
    differing = row.differing + (row.flagged.differing if row.flagged else 0)
    if differing:
        return f"{differing} differ"
    return "yes" if row.windows or row.flagged else "-"


def _ratio_style(row: Row) -> str:
    interval = row.ratio_interval
    if interval is None or interval[0] <= 1 <= interval[1]:
        return ""
    return "green" if interval[0] > 1 else "red"


def _number(value: float | None, form: str, after: str = "") -> str:
    return "-" if value is None else format(value, form) + after


def _range(interval: tuple[float, float] | None) -> str:
    """The baseline's own says nothing."""
    known = interval is not None and interval != (1.0, 1.0)
    return f"{interval[0]:.2f}-{interval[1]:.2f}" if interval is not None and known else "-"


def _memory(amount: int | None) -> str:
    return "-" if amount is None else f"{amount / 1e6:.0f} MB"


def _shortened(label: str, room: int) -> str:
    """The end of a long label: budgets and names of folders tell it apart."""
    if cell_len(label) <= room:
        return label
    while label and cell_len(label) > room - 3:
        label = label[1:]
    return "..." + label


_COLUMNS = [
    _Column("tokens/s", lambda r: _number(r.tokens_per_second, ".0f")),
    _Column("real time", lambda r: _number(r.real_time, ".1f", "x")),
    _Column("ratio", lambda r: _number(r.ratio, ".2f"), _ratio_style),
    _Column("95 %", lambda r: _range(r.ratio_interval)),
    _Column("mean", _mean),
    _Column("p50", lambda r: _number(r.p50, ".2f")),
    _Column("p95", lambda r: _number(r.p95, ".2f")),
    _Column("slower", lambda r: _number(r.slower_share, ".0%")),
    _Column("of best", lambda r: _number(r.oracle_share, ".0%")),
    _Column("length", lambda r: _number(r.accepted_length, ".1f")),
    _Column("accepted", lambda r: _number(r.acceptance, ".0%")),
    _Column("alone", lambda r: _number(r.alone_share, ".0%")),
    _Column("lead", lambda r: _number(r.lead, ".1f")),
    _Column("realigned", lambda r: f"{r.realignments:.0f}" if r.windows else "-"),
    _Column("WER", lambda r: _number(r.wer, ".1%")),
    _Column("error", lambda r: _number(r.prediction_error, "+.0%")),
    _Column("exact", _exact, lambda r: "bold red" if r.differing else ""),
    _Column("memory", lambda r: _memory(r.peak_memory_bytes)),
]
