"""A result file that appears whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self, cast

from as2d_cli.descriptors import descriptor_of
from as2d_cli.environment import Output
from as2d_cli.errors import As2dError
from as2d_cli.leftovers import forget, remember

__all__ = ["ResultFile", "result_files"]


class ResultFile:
    """Writes beside `path` and renames at `keep`; anything else leaves `path` as it was.

    A path that exists and is no regular file (a FIFO, /dev/null) is written to directly, and so is
    one that stands for an open descriptor (/dev/stdout), whatever that leads to.

    Attributes:
        out: where to write.
    """

    def __init__(self, path: Path, option: str = "--output", *, force: bool = True) -> None:
        """Raises As2dError, naming `option`, when nothing can be written there.

        Args:
            force: a file that exists is replaced; otherwise it is an error.
        """
        self._path = path
        self._option = option
        self._temporary: Path | None = None
        try:
            if path.is_dir():
                raise As2dError(f"{option} {path} is a directory", remedy="give a file name")
            # Such a path leads to whatever file the descriptor is of, and replacing that file would
            # take it from the others who write to it: (echo a; as2d ... -o /dev/stdout) > file.
            descriptor = descriptor_of(str(path))
            if descriptor is not None:
                raw = cast(BinaryIO, os.fdopen(os.dup(descriptor), "wb"))
            elif path.is_file() and not force:
                raise As2dError(f"{option} {path} exists", remedy="choose another name, or --force")
            elif path.exists() and not path.is_file():
                raw = cast(BinaryIO, path.open("wb"))
            else:
                # A link keeps pointing where it does; its target is what is replaced.
                self._path = path.resolve()
                number, name = tempfile.mkstemp(
                    prefix=".as2d-", suffix=".part", dir=self._path.parent
                )
                self._temporary = Path(name)
                remember(name)
                os.fchmod(number, self._mode())
                raw = cast(BinaryIO, os.fdopen(number, "wb"))
        except OSError as e:
            raise As2dError(
                f"cannot write {option} {path}: {e.strerror}", remedy="choose another place"
            ) from e
        self._raw = raw
        self.out = Output(raw, f"{option} {path}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with contextlib.suppress(OSError):
            self._raw.close()
        if self._temporary is not None:
            self._temporary.unlink(missing_ok=True)
            forget(str(self._temporary))

    def keep(self) -> None:
        """The result is complete: it gets its name.

        Raises:
            As2dError: the disk is full, or the folder went away.
        """
        self.out.flush()
        try:
            self._raw.close()
            if self._temporary is not None:
                self._temporary.replace(self._path)
                forget(str(self._temporary))
                self._temporary = None
        except OSError as e:
            raise As2dError(f"cannot write {self._option} {self._path}: {e.strerror}") from e

    def _mode(self) -> int:
        """The permissions that a plain open() would have given, which mkstemp does not."""
        if self._path.exists():
            return self._path.stat().st_mode & 0o777
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def result_files(stack: ExitStack, wanted: Mapping[str, Path | None]) -> dict[str, ResultFile]:
    """The files of those options that were given; `stack` closes them.

    Raises:
        As2dError: nothing can be written to one of them.
    """
    return {
        option: stack.enter_context(ResultFile(path, option))
        for option, path in wanted.items()
        if path is not None
    }
