"""What a run has done, in numbers. The names are those of the native engine and of the JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Counters"]


@dataclass(frozen=True)
class Counters:
    """A snapshot.

    Attributes:
        windows: finished by the target.
        committed: tokens committed, end tokens not counted.
        verify_steps: number of steps by the candidates in them; steps of 64 and more are one entry.
        alone_steps: steps without candidates.
        proposed, accepted: candidates verified, and committed.
        realignments: times that candidates began elsewhere than where the last ones left off.
        drafted: draft tokens published, as tokens of the target.
        stale_drafts: draft tokens never proposed before their window was over.
        lead_total: sum over verify steps of the draft tokens ready after the committed prefix.
        seconds: wall time by phase: encode, prompt, decode, draft_encode, draft_decode, and wall.
        lanes: by lane name: cores, and each thread's name, requested and actual core mask.
        exact: whether steps were made so that the text is what the target alone gives.
    """

    windows: int
    committed: int
    verify_steps: Mapping[int, int]
    alone_steps: int
    proposed: int
    accepted: int
    realignments: int
    drafted: int
    stale_drafts: int
    lead_total: int
    seconds: Mapping[str, float]
    lanes: Mapping[str, Mapping[str, Any]]
    exact: bool

    def as_json(self) -> dict[str, Any]:
        """The same as values that JSON knows."""
        return asdict(self)
