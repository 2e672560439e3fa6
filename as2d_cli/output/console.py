"""What rich writes to: the environment's streams."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import IO, cast

from rich.console import Console

from as2d_cli.environment import Environment, Output

__all__ = ["print_page", "terminal_console"]


def terminal_console(environment: Environment) -> Console:
    """A console on standard error, for displays that a caller shows on a terminal only.

    Text is shown as it is: no markup, no emoji codes, no guessed highlighting.
    """
    return Console(
        file=cast(IO[str], _TextFile(environment.stderr)),
        force_terminal=True,
        no_color=not environment.colour,
        width=environment.columns,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )


def print_page(environment: Environment, draw: Callable[[Console], None]) -> None:
    """What `draw` prints to a console, on standard output; without colours on a pipe."""
    page = io.StringIO()
    terminal = environment.stdout.is_terminal
    console = Console(
        file=page,
        # Wide enough for any table: rich would cut it off.
        width=environment.width if terminal else 1000,
        force_terminal=terminal,
        color_system="standard" if terminal and environment.colour else None,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    draw(console)
    text = "".join(f"{line.rstrip()}\n" for line in page.getvalue().splitlines())
    environment.stdout.write(text)
    environment.stdout.flush()


class _TextFile(io.TextIOBase):
    """An output as a text file; what its encoding cannot hold is escaped."""

    def __init__(self, output: Output) -> None:
        self._output = output

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._output.encoding

    def write(self, text: str, /) -> int:
        self._output.say(text)
        return len(text)

    def isatty(self) -> bool:
        return self._output.is_terminal
