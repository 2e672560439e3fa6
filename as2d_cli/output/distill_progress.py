"""How far a distillation is: bars on a terminal, lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from rich.progress import Progress, TaskID

from as2d_cli.distill.training import Point
from as2d_cli.environment import Environment
from as2d_cli.errors import one_line
from as2d_cli.output.bar import bar_columns
from as2d_cli.output.console import terminal_console

__all__ = ["DistillProgress"]

_EVERY = 30.0
"""Seconds between two lines of the same kind where no bar can be drawn."""


class DistillProgress:
    """See `as2d_cli.distill.request.Watch`. Use it in a ``with`` statement."""

    def __init__(self, environment: Environment, *, quiet: bool) -> None:
        self._environment = environment
        self._quiet = quiet
        live = environment.stderr.is_terminal and not environment.dumb and not quiet
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._said = -_EVERY
        if live:
            self._progress = Progress(
                *bar_columns(),
                console=terminal_console(environment),
                transient=True,
                expand=True,
            )

    def __enter__(self) -> Self:
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

    def stage(self, text: str) -> None:
        self._line(text)
        self._drop()

    def collected(self, seconds: float, wanted: float | None) -> None:
        text = f"collecting: {seconds / 3600:.2f} h"
        if self._progress is not None:
            self._bar(text, seconds if wanted else 0, wanted)
        elif time.monotonic() - self._said >= _EVERY:
            self._said = time.monotonic()
            self._line(text)

    def point(self, point: Point, passes: int) -> None:
        worth = _several(point.tokens_per_step)
        budgets = "/".join(map(str, point.tokens_per_step))
        sketch = left = ""
        if point.sketch_per_step:
            sketch = f", of the sketch {_several(point.sketch_per_step)}"
        if 0 < point.passes < passes:
            left = f", {_clock(point.seconds / point.passes * (passes - point.passes))} left"
        self._line(
            f"pass {point.passes} of {passes} ({point.stage}): "
            f"{worth} tokens a step at budget {budgets}{sketch}{left}"
        )
        if self._progress is not None:
            self._bar(f"training: {worth} tokens a step", point.passes, passes)

    def warning(self, text: str) -> None:
        self._line(f"warning: {text}")

    def _line(self, text: str) -> None:
        if self._quiet:
            return
        if self._progress is None:
            self._environment.talk(one_line(text))
        else:
            self._progress.console.print(f"as2d: {one_line(text)}")

    def _bar(self, text: str, done: float, whole: float | None) -> None:
        assert self._progress is not None
        if self._task is None:
            self._task = self._progress.add_task(text, total=whole)
        self._progress.update(self._task, description=text, completed=done, total=whole)

    def _drop(self) -> None:
        if self._progress is not None and self._task is not None:
            self._progress.remove_task(self._task)
        self._task = None


def _several(worth: Mapping[int, float]) -> str:
    return " / ".join(f"{x:.2f}" for x in worth.values())


def _clock(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
