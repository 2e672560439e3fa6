"""What the steps of a target cost on this machine, as far as a run adapts to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["RunCosts"]


@dataclass(frozen=True)
class RunCosts:
    """Seconds; what lies between two numbers of rows is interpolated.

    Attributes:
        alone_steps: of a step by its number of rows, on all cores: the draft lane rests. May be
            empty, as the other.
        drafted_steps: the same on the target lane's own cores, while the draft lane works.
        encode_base, encode_per_second: of an encoder pass: so many, and so many more for each
            second of audio.
    """

    alone_steps: Mapping[int, float]
    drafted_steps: Mapping[int, float]
    encode_base: float
    encode_per_second: float

    def as_native(self) -> dict[str, Any]:
        """The same as the native engine takes it."""
        return {
            "alone_steps": dict(self.alone_steps),
            "drafted_steps": dict(self.drafted_steps),
            "encode_base": self.encode_base,
            "encode_per_second": self.encode_per_second,
        }
