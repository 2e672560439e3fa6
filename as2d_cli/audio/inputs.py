"""What a user names -> the inputs that are meant, folders searched."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from as2d_cli.audio.decode import display_name

__all__ = ["Input", "expand"]


@dataclass(frozen=True)
class Input:
    """One input.

    Attributes:
        path: of the file; ``-`` for standard input.
        folder: the folder, named by the user, that it was found in; None where it was itself named.
    """

    path: str
    folder: str | None = None

    @property
    def below(self) -> Path:
        """Its path below `folder`; of one that was named, the last part of its name."""
        path = Path(self.path)
        return path.relative_to(self.folder) if self.folder is not None else Path(path.name)


def expand(
    names: Iterable[str], *, recursive: bool, problem: Callable[[str], None]
) -> Iterator[Input]:
    """The inputs in the order of `names`, those of a folder sorted by path.

    Args:
        recursive: a folder stands for all files in it and below, but for hidden ones. Links to
            folders are not followed. Otherwise a folder stays what it is, which cannot be opened.
        problem: is told of a folder that cannot be read.
    """
    for name in names:
        if recursive and _is_folder(name):
            yield from _files(name, problem)
        else:
            yield Input(name)


def _is_folder(name: str) -> bool:
    with suppress(OSError, ValueError):  # too long, or with a NUL byte
        return name not in ("", "-") and Path(name).is_dir()
    return False


def _files(folder: str, problem: Callable[[str], None]) -> Iterator[Input]:
    def told(error: OSError) -> None:
        problem(f"cannot read {display_name(error.filename)}: {error.strerror}")

    for root, folders, files in os.walk(folder, onerror=told):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        for file in sorted(files):
            path = Path(root) / file
            if not file.startswith(".") and path.is_file():  # a FIFO would wait for its writer
                yield Input(str(path), folder)
