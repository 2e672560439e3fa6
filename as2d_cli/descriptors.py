"""Paths that stand for an open descriptor of this process."""

from __future__ import annotations

import re

__all__ = ["descriptor_of"]

_STREAMS = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}
_OPEN_FILE = re.compile(r"/(?:dev|proc/self)/fd/(\d{1,9})")


def descriptor_of(path: str) -> int | None:
    """The descriptor that `path` (``/dev/stdin``, ``/dev/fd/3``) stands for; None for a file."""
    named = _OPEN_FILE.fullmatch(path)
    return int(named[1]) if named else _STREAMS.get(path)
