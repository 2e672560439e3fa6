"""What rich writes to: the environment's standard error."""

from __future__ import annotations

import io
from typing import IO, cast

from rich.console import Console

from as2d_cli.environment import Environment, Output

__all__ = ["terminal_console"]


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
