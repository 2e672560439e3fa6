"""Numbers in sentences."""

from __future__ import annotations

__all__ = ["counted"]


def counted(number: int, thing: str) -> str:
    """``1 window``, ``2 windows``."""
    return f"{number} {thing}" + ("" if number == 1 else "s")
