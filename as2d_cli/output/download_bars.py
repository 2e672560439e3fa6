"""Progress bars of downloads, on a terminal's standard error."""

from __future__ import annotations

from rich.progress import BarColumn, DownloadColumn, TaskID, TextColumn, TransferSpeedColumn
from rich.progress import Progress as RichProgress

from as2d_cli.environment import Environment
from as2d_cli.output.console import terminal_console

__all__ = ["DownloadBars"]


class DownloadBars:
    """One bar at a time, taken away when its file is there (see `as2d_cli.catalog.Progress`)."""

    def __init__(self, environment: Environment) -> None:
        self._progress = RichProgress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=None),
            DownloadColumn(),
            TransferSpeedColumn(),
            console=terminal_console(environment),
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
