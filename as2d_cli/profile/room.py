"""Memory that is free for further models."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

__all__ = ["Room", "free_memory", "held_memory"]

_SPARED = 2
"""Of the free memory one model more may take one part in so many: others need some, too."""


class Room:
    """Whether one more engine fits beside those that are open, by what these have taken."""

    def __init__(
        self,
        free: Callable[[], int | None] | None = None,
        held: Callable[[], int | None] | None = None,
    ) -> None:
        """Nothing is open yet.

        Args:
            free, held: other ones than `free_memory` and `held_memory`.
        """
        self._free = free or free_memory
        self._held = held or held_memory
        self._before = self._held()
        self._largest = 0

    def opened(self) -> None:
        """One more is open, and has run."""
        now = self._held()
        if now is not None and self._before is not None:
            self._largest = max(self._largest, now - self._before)
        self._before = now

    def for_another(self) -> bool:
        """Whether there is room for one as large as the largest so far. Not known is no."""
        free = self._free()
        return free is not None and self._before is not None and self._largest * _SPARED <= free


def held_memory() -> int | None:
    """Bytes that this process holds in memory."""
    try:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    except (OSError, IndexError):
        return None
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def free_memory(root: Path = Path("/")) -> int | None:
    """Bytes that may still be had: of the machine, and of what the container grants.

    Args:
        root: folder with the `sys` and `proc` of another machine.
    """
    try:
        lines = (root / "proc/meminfo").read_text(encoding="ascii").splitlines()
        free = next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvail"))
    except (OSError, StopIteration):
        return None
    return min([free, *_granted(root)])


def _granted(root: Path) -> list[int]:
    """What is left of each limit above this process, in control groups of both versions."""
    try:
        groups = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    left = []
    for line in groups:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            base, names = root / "sys/fs/cgroup", ("memory.max", "memory.current")
        elif "memory" in controllers.split(","):
            base = root / "sys/fs/cgroup/memory"
            names = "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        # A container may see its own group as the root.
        below = Path(path.lstrip("/"))
        for group in {base, *(base / part for part in (below, *below.parents))}:
            limit, used = (_number(group / name) for name in names)
            if limit is not None and used is not None:
                left.append(max(0, limit - used + _reclaimed(group / "memory.stat")))
    return left


def _reclaimed(path: Path) -> int:
    """Bytes of files that the kernel drops before it refuses anything."""
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    found = dict(line.split(" ", 1) for line in lines if " " in line)
    text = found.get("total_inactive_file", found.get("inactive_file", "0"))
    return int(text) if text.isdigit() else 0


def _number(path: Path) -> int | None:
    try:
        text = path.read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None  # "max" is no limit
