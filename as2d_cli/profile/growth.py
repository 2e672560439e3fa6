"""What drafting would gain on a device as its target grows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from as2d_cli.profile.alignment import read_traces, shipped
from as2d_cli.profile.device import Device, costs_on, shapes
from as2d_cli.profile.planner import Ranked
from as2d_cli.profile.session import Findings, ranked

__all__ = ["Growth", "growth"]

_TRACED = "whisper-base"
"""Whose drafts are taken to be as right for every other target."""


@dataclass(frozen=True)
class Growth:
    """One target.

    Attributes:
        findings: with the drafter.
        drafting: the best plan with drafts, of one window at a time: what drafts alone are worth.
    """

    findings: Findings
    drafting: Ranked | None


def growth(device: Device, alignment: Path | None = None) -> list[Growth]:
    """Each target, the smallest first.

    Args:
        alignment: traces of whisper-base with the drafter; those that came with as2d if left out.

    Raises:
        As2dError: the traces cannot be read.
    """
    drafter, targets = shapes()
    recordings = (
        shipped(_TRACED, drafter.name)
        if alignment is None
        else read_traces(alignment, _TRACED, drafter.name)
    )
    found = []
    for target in targets:
        costs = costs_on(device, target, drafter)
        findings = ranked([costs], {drafter.name: recordings}, device.machine)
        one_window = (
            r for r in findings.ranking if r.candidate.drafter and r.candidate.windows == 1
        )
        drafting = next(one_window, None)
        found.append(Growth(findings, drafting))
    return found
