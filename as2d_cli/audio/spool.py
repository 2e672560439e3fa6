"""MP4 whose index comes last, out of a pipe: it can only be read from a file."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from typing import BinaryIO, cast

from as2d_cli.errors import As2dError

__all__ = ["Prefixed", "index_comes_last", "spooled"]

_FIRST_BOX = b"ftyp"
_INDEX, _DATA = b"moov", b"mdat"
_MOST_BEFORE = 1 << 20
"""Bytes of small boxes before the index or the data; programs write a hundred."""


class Prefixed:
    """A stream that gives bytes which were read from it once more, and then the rest."""

    def __init__(self, file: BinaryIO, prefix: bytes) -> None:
        self._file = file
        self._prefix = prefix

    def read(self, size: int) -> bytes:
        """At most `size` bytes; none at the end."""
        if self._prefix:
            data, self._prefix = self._prefix[:size], self._prefix[size:]
            return data
        return self._file.read(size) or b""


def index_comes_last(file: BinaryIO) -> tuple[bool, bytes]:
    """Whether a stream is MP4 (QuickTime, M4A) with its data before its index.

    Returns:
        The answer, and what was read from the stream for it.
    """
    head = _read(file, b"", 8)
    at = 0
    while at < _MOST_BEFORE and len(head) >= at + 8:
        kind, size = head[at + 4 : at + 8], int.from_bytes(head[at : at + 4], "big")
        if at == 0 and kind != _FIRST_BOX:
            break
        if kind in (_INDEX, _DATA):
            return kind == _DATA, head
        at += size
        if size < 8 or at > _MOST_BEFORE:
            break
        head = _read(file, head, at + 8)
    return False, head


def spooled(file: BinaryIO, head: bytes, name: str) -> BinaryIO:
    """All of a stream in a file without a name, which goes when it is closed.

    Args:
        head: what was read from it already.
        name: for messages.

    Raises:
        As2dError: there is no room for it.
    """
    try:
        with contextlib.ExitStack() as stack:
            copy = stack.enter_context(tempfile.TemporaryFile())
            copy.write(head)
            shutil.copyfileobj(file, copy, 1 << 20)
            copy.seek(0)
            stack.pop_all()  # the caller closes it
    except OSError as e:
        raise As2dError(
            f"cannot keep {name}, whose index comes last: {e.strerror}", remedy="give it as a file"
        ) from e
    return cast(BinaryIO, copy)


def _read(file: BinaryIO, head: bytes, size: int) -> bytes:
    """`head` made `size` long, or shorter at the end of the stream."""
    while len(head) < size and (more := file.read(size - len(head))):
        head += more
    return head
