"""The methods by which a target decodes: names of the native engine's strategies."""

from __future__ import annotations

__all__ = ["IN_TURN", "METHODS", "SPLIT", "TOGETHER", "default_budget", "needs_drafter"]

METHODS = (
    "target",
    "as2d",
    "coupled",
    "adaptive",
    "pearl",
    "multi",
    "lookup",
    "batched",
    "anchored",
)
"""All of them."""

SPLIT = ("as2d", "pearl", "multi", "anchored")
"""Those whose lanes work at the same time, and so share out the cores."""

IN_TURN = ("coupled", "adaptive")
"""Those whose lanes wait for each other, so that each may have all cores."""

TOGETHER = ("as2d", "multi", "lookup")
"""Those that can decode several windows of a recording in one batch; ``batched`` always does."""

_CANDIDATES = 8
_WINDOWS = 4


def needs_drafter(method: str) -> bool:
    """Whether the method has a draft lane."""
    return method in SPLIT or method in IN_TURN


def default_budget(method: str) -> int:
    """Most candidates per verify step; with ``batched``, windows in a batch."""
    return _WINDOWS if method == "batched" else _CANDIDATES
