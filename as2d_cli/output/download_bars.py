"""Progress bars of downloads, on a terminal's standard error."""

from __future__ import annotations

import io
from typing import IO, cast

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TaskID, TextColumn, TransferSpeedColumn
from rich.progress import Progress as RichProgress

from as2d_cli.environment import Environment, Output

__all__ = ["DownloadBars"]


class DownloadBars:
    """One bar at a time, taken away when its file is there (see `as2d_cli.catalog.Progress`)."""

    def __init__(self, environment: Environment) -> None:
        console = Console(
            file=cast(IO[str], _TextFile(environment.stderr)),
            force_terminal=True,
            no_color=not environment.colour,
            width=environment.columns,
            legacy_windows=False,
        )
        self._progress = RichProgress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=None),
            DownloadColumn(),
            TransferSpeedColumn(),
            console=console,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task: TaskID | None = None

    def start(self, label: str, total_bytes: int | None) -> None:
        self._progress.start()
        self._task = self._progress.add_task(label, total=total_bytes)

    def advance(self, n: int) -> None:
        if self._task is not None:
            self._progress.advance(self._task, n)

    def finish(self) -> None:
        if self._task is not None:
            self._progress.remove_task(self._task)
            self._task = None
        self._progress.stop()

    def close(self) -> None:
        """Leaves nothing on the terminal."""
        self.finish()


class _TextFile(io.TextIOBase):
    """Standard error of the environment as a text file."""

    def __init__(self, output: Output) -> None:
        self._output = output

    def write(self, text: str, /) -> int:
        self._output.say(text)
        return len(text)

    def isatty(self) -> bool:
        return self._output.is_terminal
