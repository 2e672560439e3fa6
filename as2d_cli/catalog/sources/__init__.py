"""Places that model files come from.

A source is a function ``(entry, source, folder, progress)`` that puts all of the entry's files into
``folder``, each under its final name only once its size and digest are right.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from as2d_cli.catalog.bundle import sha256_of
from as2d_cli.catalog.entries import SourceFile

# Where no size is declared: larger than any single model file that could be meant.
SIZE_LIMIT = 16 << 30


class SourceError(Exception):
    """This source cannot deliver; the next one may. The message is one line."""


def is_whole(file: SourceFile, path: Path) -> bool:
    """Whether ``path`` holds the file as declared; without a digest, any existing file counts."""
    if not path.is_file() or (file.size is not None and path.stat().st_size != file.size):
        return False
    return file.sha256 is None or sha256_of(path) == file.sha256


def accept(file: SourceFile, partial: Path, path: Path, digest: str | None = None) -> None:
    """Check a complete temporary file and give it its final name; a wrong one is deleted.

    Args:
        file: what it should be.
        partial: the temporary file.
        path: the final name.
        digest: its SHA-256 if the writer has it already.

    Raises:
        SourceError: size or digest differ.
    """
    size = partial.stat().st_size
    found = digest or sha256_of(partial)
    problem = None
    if file.size is not None and size != file.size:
        problem = f"{file.name} has {size} bytes instead of {file.size}"
    elif file.sha256 is not None and found != file.sha256:
        problem = f"{file.name} has SHA-256 {found[:12]}.. instead of {file.sha256[:12]}.."
    if problem:
        partial.unlink()
        raise SourceError(problem)
    partial.replace(path)


class CheckedWriter:
    """Writes a temporary file, counts and digests what goes through, and stops at a limit."""

    def __init__(self, file: SourceFile, partial: Path, on_bytes: Callable[[int], None]) -> None:
        self._file = file
        self._partial = partial
        self._on_bytes = on_bytes
        self._out = partial.open("wb")
        self._digest = hashlib.sha256()
        self._left = file.size if file.size is not None else SIZE_LIMIT

    def __enter__(self) -> CheckedWriter:
        return self

    def __exit__(self, *exception: object) -> None:
        self._out.close()

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of what was written."""
        return self._digest.hexdigest()

    def write(self, chunk: bytes) -> None:
        """Append ``chunk``.

        Raises:
            SourceError: that would make the file larger than declared.
        """
        self._left -= len(chunk)
        if self._left < 0:
            raise SourceError(f"{self._file.name} is larger than declared")
        self._out.write(chunk)
        self._digest.update(chunk)
        self._on_bytes(len(chunk))
