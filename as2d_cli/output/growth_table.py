"""A device from a description, for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from as2d_cli.machine.cores import core_list
from as2d_cli.output.profile_report import milliseconds, print_ranking, print_table
from as2d_cli.profile.device import Device
from as2d_cli.profile.growth import Growth

__all__ = ["print_growth"]


def print_growth(
    device: Device, found: Sequence[Growth], console: Console, *, explain: bool
) -> None:
    """One line a target.

    Args:
        explain: the ranking of each, too.
    """
    console.print(Text(device.name, style="bold"))
    for core, count, ghz in device.clusters:
        console.print(f"  {count} x {core} at {ghz:g} GHz")
    console.print("estimated from clocks, vector width and memory, not measured", soft_wrap=True)
    console.print()
    rows = [("target", "step", "encoder 10 s", "with drafts", "gain", "best", "gain", "cores")]
    for entry in found:
        costs, chosen, drafting = entry.findings.costs, entry.findings.chosen, entry.drafting
        alone = costs.lanes[0].alone
        lane = chosen.candidate.lane
        cores = core_list(lane.target_cores)
        if chosen.candidate.drafter:
            cores += f" | {core_list(lane.draft_cores)}"
        row = (
            costs.target,
            milliseconds(alone.step(1)),
            milliseconds(alone.encode(10)),
            "" if drafting is None else _short(drafting.candidate.label, costs.drafter),
            "" if drafting is None else f"{drafting.ratio:.2f} x",
            _short(chosen.candidate.label, costs.drafter),
            f"{chosen.ratio:.2f} x",
            cores,
        )
        rows.append(row)
    print_table(rows, console, left=(0, 3, 5, 7))
    if explain:
        for entry in found:
            console.print()
            console.print(Text(entry.findings.costs.target, style="bold"))
            print_ranking(entry.findings, console)


def _short(label: str, drafter: str | None) -> str:
    """The drafter is the same in all lines."""
    return label.replace(f"{drafter} ", "") if drafter else label
