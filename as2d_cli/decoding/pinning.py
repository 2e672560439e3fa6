"""What the system made of the cores that threads were bound to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from as2d_cli.errors import one_line

__all__ = ["misplaced"]


def misplaced(lanes: Mapping[str, Mapping[str, Any]]) -> str | None:
    """One line about all threads that are not where they were asked to be; None if all are.

    Args:
        lanes: reports of `as2d_cli._native.Engine.lanes`.
    """
    threads = [
        thread
        for lane in lanes.values()
        for thread in lane["threads"]
        if thread["requested"] and (thread["refused"] or thread["actual"] != thread["requested"])
    ]
    if not threads:
        return None
    cores = sorted({thread["requested"] for thread in threads}, key=lambda text: (len(text), text))
    reasons = sorted({thread["refused"] for thread in threads} - {""})
    why = f" ({', '.join(reasons)})" if reasons else ""
    where = sorted({thread["actual"] for thread in threads})
    return one_line(
        f"the system does not let threads be bound to core {', '.join(cores)}{why}: they run on "
        f"{', '.join(where)}"
    )
