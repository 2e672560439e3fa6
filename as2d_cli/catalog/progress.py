"""How fetching tells what it does; whoever shows it lives elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from as2d_cli.catalog.entries import ModelEntry

# Called before anything is fetched: what, and into which folder the bundle goes.
OnStart = Callable[[ModelEntry, Path], None]
# Called with a model's id when another process is pulling it.
OnWait = Callable[[str], None]
# Called with one line about a source that could not deliver; the next one is tried.
OnProblem = Callable[[str], None]


class Progress(Protocol):
    """Bytes done of bytes to do, one label at a time."""

    def start(self, label: str, total_bytes: int | None) -> None:
        """A new piece of work; ``total_bytes`` is None where it is not known."""

    def advance(self, n: int) -> None:
        """``n`` more bytes are done."""

    def finish(self) -> None:
        """The piece of work is over, done or not."""


def fetching(entry: ModelEntry, folder: Path) -> str:
    """One line for `OnStart`: what, how large, under which licence, where to."""
    return f"fetching {entry.id} ({terms(entry)}) to {folder}"


def terms(entry: ModelEntry) -> str:
    """How large a model is, as far as that is known, and under which licence."""
    size = f"{entry.bytes / 1e6:.0f} MB" if entry.bytes else "size unknown"
    return f"{size}, licence {entry.licence}"


def waiting(model_id: str) -> str:
    """One line for `OnWait`."""
    return f"another process is pulling {model_id}, waiting"


class Silent:
    """Shows nothing."""

    def start(self, label: str, total_bytes: int | None) -> None:
        """Nothing."""

    def advance(self, n: int) -> None:
        """Nothing."""

    def finish(self) -> None:
        """Nothing."""


def no_talk(line: str) -> None:
    """Says nothing."""


def no_start(entry: ModelEntry, folder: Path) -> None:
    """Says nothing."""
