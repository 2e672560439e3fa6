"""What was found, as values that JSON knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from as2d_cli.profile.device import Device
from as2d_cli.profile.growth import Growth
from as2d_cli.profile.planner import Ranked
from as2d_cli.profile.session import Findings

__all__ = ["document", "growth_document"]


def document(findings: Findings) -> dict[str, Any]:
    """All of a profile."""
    return {
        "format": "as2d-profile-1",
        "costs": findings.costs.as_json(),
        "windows": findings.windows,
        "ranking": [_ranked(ranked) for ranked in findings.ranking],
        "chosen": _ranked(findings.chosen),
        "by_length": [
            {"seconds": seconds, "chosen": _ranked(chosen)}
            for seconds, chosen in findings.by_length
        ],
        "reasons": list(findings.reasons),
    }


def growth_document(device: Device, found: Sequence[Growth]) -> dict[str, Any]:
    """What a device would gain, target by target."""
    return {
        "format": "as2d-device-1",
        "device": device.name,
        "estimated": True,
        "clusters": [
            {"core": core, "cores": count, "ghz": ghz} for core, count, ghz in device.clusters
        ],
        "targets": [
            {
                "target": entry.findings.costs.target,
                "drafter": entry.findings.costs.drafter,
                "chosen": _ranked(entry.findings.chosen),
                "drafting": entry.drafting and _ranked(entry.drafting),
            }
            for entry in found
        ],
    }


def _ranked(ranked: Ranked) -> dict[str, Any]:
    entry = ranked.candidate
    return {
        "label": entry.label,
        "method": entry.method,
        "drafter": entry.drafter,
        "budget": entry.budget,
        "windows": entry.windows,
        "elastic": entry.elastic,
        "target_cores": list(entry.lane.target_cores),
        "draft_cores": list(entry.lane.draft_cores) if entry.drafter else [],
        "seconds": ranked.outcome.seconds,
        "tokens": ranked.outcome.tokens,
        "tokens_per_second": ranked.tokens_per_second,
        "ratio": ranked.ratio,
        "least_ratio": ranked.least,
        "slower_share": ranked.slower,
    }
