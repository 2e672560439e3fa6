"""What the steps of a run cost, as far as it was measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["RunCosts"]


@dataclass(frozen=True)
class RunCosts:
    """Seconds of the target's work on the lanes of a plan.

    Attributes:
        alone_steps: of a forward, by its rows, while the draft lane rests.
        drafted_steps: the same while the draft lane works.
        encode_base, encode_per_second: of the encoder: so much, and so much more for each second
            of audio.
    """

    alone_steps: Mapping[int, float]
    drafted_steps: Mapping[int, float]
    encode_base: float
    encode_per_second: float
