"""The columns of a bar with the time left."""

from __future__ import annotations

from rich.progress import BarColumn, ProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Column

__all__ = ["bar_columns"]


def bar_columns() -> tuple[ProgressColumn, ...]:
    """What is done, cut to the terminal's width, a bar, its percentage and the time left."""
    return (
        TextColumn(
            "{task.description}",
            markup=False,
            table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"),
        ),
        BarColumn(bar_width=20),
        TextColumn("{task.percentage:.0f}%"),
        TimeRemainingColumn(),
    )
