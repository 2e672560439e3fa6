"""Files that are not complete yet, for a way out that cannot unwind."""

from __future__ import annotations

import contextlib
import os

__all__ = ["forget", "remember", "remove_all"]

_PATHS: set[str] = set()


def remember(path: str) -> None:
    """`path` goes when the process leaves at once."""
    _PATHS.add(path)


def forget(path: str) -> None:
    """It is complete, or gone."""
    _PATHS.discard(path)


def remove_all() -> None:
    """Removes them; never fails."""
    for path in tuple(_PATHS):
        with contextlib.suppress(OSError):
            os.unlink(path)  # noqa: PTH108 - a plain name, in a signal handler
