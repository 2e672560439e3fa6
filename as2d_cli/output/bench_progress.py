"""How far a bench or a profile is: a bar with the time left on a terminal, a line elsewhere."""

from __future__ import annotations

from rich.progress import Progress, TaskID, TextColumn

from as2d_cli.environment import Environment
from as2d_cli.errors import one_line
from as2d_cli.output.bar import bar_columns
from as2d_cli.output.console import terminal_console

__all__ = ["BenchProgress"]


class BenchProgress:
    """See `as2d_cli.bench.session.Watch` and `as2d_cli.profile.measure.Watch`.

    It draws only when told something, between two runs: a thread that draws now and then would take
    its time from what is measured.
    """

    def __init__(self, environment: Environment, *, quiet: bool = False) -> None:
        self._environment, self._quiet = environment, quiet
        self._live = environment.stderr.is_terminal and not environment.dumb and not quiet
        self._progress = Progress(
            *bar_columns(),
            TextColumn("left"),
            console=terminal_console(environment),
            auto_refresh=False,
            transient=True,
            expand=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task: TaskID | None = None

    def begin(self, summary: str, total: float) -> None:
        if not self._quiet:
            self._environment.talk(summary)
        if self._live:
            self._task = self._progress.add_task("warm-up", total=total)
            self._progress.start()

    def doing(self, what: str) -> None:
        if self._task is not None:
            self._progress.update(self._task, description=one_line(what), refresh=True)

    def advance(self, amount: float) -> None:
        if self._task is not None:
            self._progress.advance(self._task, amount)

    def line(self, text: str) -> None:
        self.close()
        self._environment.talk(text)
        if self._task is not None:
            self._progress.start()

    def close(self) -> None:
        """Leaves nothing on the terminal; the next `line` brings it back."""
        if self._task is not None:
            self._progress.stop()
