"""What the program knows of the process around it, in one object that tests replace whole."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from as2d_cli.errors import As2dError, one_line

if TYPE_CHECKING:
    from as2d_cli.device.runner import Kit
    from as2d_cli.tasks.models import Backend

__all__ = ["Environment", "Output"]


@dataclass
class Output:
    """One of the two text streams out of the process.

    Attributes: raw: where the bytes go; None when the caller closed the stream. name: how errors
        call it. is_terminal: a person is looking at it. encoding: of the bytes. Standard output is
        always UTF-8: its reader is as often a program as a
            terminal, and a result must not depend on the locale.
    """

    raw: BinaryIO | None
    name: str = "standard output"
    is_terminal: bool = False
    encoding: str = "utf-8"

    def write(self, text: str) -> None:
        """Writes `text`; what the encoding cannot hold is escaped.

        Raises:
            BrokenPipeError: the reader went away.
            As2dError: any other failure, a closed stream included.
        """
        self._checked(text.encode(self.encoding, "backslashreplace"))

    def flush(self) -> None:
        """Hands what was written to the system; raises as `write` does."""
        self._checked(b"")

    def _checked(self, data: bytes) -> None:
        if self.raw is None:
            raise As2dError(f"{self.name} is closed", remedy="give --output FILE or leave it open")
        try:
            if data:
                self.raw.write(data)
            else:
                self.raw.flush()
        except BrokenPipeError:
            raise
        except (OSError, ValueError) as e:
            reason = e.strerror if isinstance(e, OSError) and e.strerror else str(e)
            raise As2dError(f"cannot write to {self.name}: {reason}") from e

    def say(self, text: str) -> None:
        """Writes `text` and flushes, for talk that nobody may be there to hear: never fails."""
        if self.raw is None:
            return
        with contextlib.suppress(OSError, ValueError):
            self.raw.write(text.encode(self.encoding, "backslashreplace"))
            self.raw.flush()


@dataclass
class Environment:
    """The standard streams, the variables and the folders.

    Attributes: stdin: binary; None when the caller closed it. shared_terminal: stdout and stderr
        are the same terminal, so that talk and result share lines. columns: fixed width of the
        terminal, or None to ask it each time (it may be resized). backend: catalogue and engine in
        place of the real ones (tests). sound: in place of the module sounddevice (tests). kit: what
        a device gets, in place of what is built for it (tests).
    """

    stdin: BinaryIO | None
    stdout: Output
    stderr: Output
    variables: Mapping[str, str] = field(default_factory=dict)
    shared_terminal: bool = False
    columns: int | None = None
    backend: Backend | None = None
    sound: Any = None
    kit: Kit | None = None

    @classmethod
    def of_process(cls) -> Environment:
        """The environment of this process."""
        out_terminal, err_terminal = _is_terminal(sys.stdout), _is_terminal(sys.stderr)
        shared = out_terminal and err_terminal and _same_file(1, 2)
        err_encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
        return cls(
            # Unbuffered: a thread that waits in a buffered read holds a lock, and the interpreter
            # aborts when it ends meanwhile.
            stdin=getattr(_buffer(sys.stdin), "raw", None),
            stdout=Output(_buffer(sys.stdout), "standard output", out_terminal),
            stderr=Output(_buffer(sys.stderr), "standard error", err_terminal, err_encoding),
            variables=os.environ,
            shared_terminal=shared,
        )

    @property
    def width(self) -> int:
        """Columns of the terminal; 80 where there is none."""
        return self.columns or shutil.get_terminal_size((80, 24)).columns

    @property
    def dumb(self) -> bool:
        """The terminal cannot move its cursor: no live display."""
        return self.variables.get("TERM", "") in ("dumb", "unknown")

    @property
    def colour(self) -> bool:
        """Colour is welcome on a terminal; NO_COLOR, not empty, turns it off (no-color.org)."""
        return not self.dumb and not self.variables.get("NO_COLOR")

    @property
    def debug(self) -> bool:
        """AS2D_DEBUG=1: a bug shows its traceback."""
        return self.variables.get("AS2D_DEBUG", "") not in ("", "0")

    @property
    def cache_dir(self) -> Path:
        """Where bundles and downloads live: $AS2D_CACHE_DIR, else the platform's own place."""
        chosen = self.variables.get("AS2D_CACHE_DIR")
        if chosen:
            return Path(chosen)
        from platformdirs import user_cache_path

        return user_cache_path("as2d")

    @property
    def config_file(self) -> Path:
        """Settings of the user: $AS2D_CONFIG, else the platform's own place."""
        chosen = self.variables.get("AS2D_CONFIG")
        if chosen:
            return Path(chosen)
        from platformdirs import user_config_path

        return user_config_path("as2d") / "config.toml"

    def talk(self, line: str) -> None:
        """One line for the person, on standard error, in the program's name."""
        self.stderr.say(f"as2d: {one_line(line)}\n")


def _buffer(stream: object) -> BinaryIO | None:
    return getattr(stream, "buffer", None)


def _is_terminal(stream: object) -> bool:
    try:
        return bool(stream is not None and stream.isatty())  # type: ignore[attr-defined]
    except ValueError:  # already closed
        return False


def _same_file(a: int, b: int) -> bool:
    try:
        x, y = os.fstat(a), os.fstat(b)
    except OSError as e:
        if e.errno != errno.EBADF:
            raise
        return False
    return (x.st_dev, x.st_ino, x.st_rdev) == (y.st_dev, y.st_ino, y.st_rdev)
