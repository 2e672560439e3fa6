"""Plain words for rows that are slower than the target alone: by how much, why, and what to do."""

from __future__ import annotations

from collections.abc import Sequence

from as2d_cli.bench.contenders import ORACLE
from as2d_cli.bench.results import Results
from as2d_cli.bench.summary import Row
from as2d_cli.bench.words import counted

__all__ = ["advice"]

_LATE = 0.3
"""A share of steps without candidates from which on the drafter is called late."""

_WRONG = 0.5
"""An acceptance below which the drafter is called wrong."""


def advice(results: Results, rows: Sequence[Row]) -> list[str]:
    """One line for each row that is slower than the baseline; none for the others."""
    remedy = _remedy(results, rows)
    lines = []
    for number, row in enumerate(rows):
        contender = results.contenders[number]
        if row.ratio is None or row.ratio >= 1 or contender.method == "target":
            continue
        name = row.label if contender.drafter is None else f"{contender.method} with "
        name += "" if contender.drafter is None else f"{contender.drafter} {contender.budget}"
        interval = row.ratio_interval
        if interval is not None and interval[1] >= 1:
            lines.append(
                f"{name} is as fast as target-only here, as far as can be told "
                f"({row.ratio:.2f} x, {interval[0]:.2f}-{interval[1]:.2f}): "
                "a larger --repeat or more audio tells more"
            )
            continue
        reason = _reason(results, rows, number)
        action = remedy
        if contender.drafter == ORACLE:
            action = f"no drafter can win with {contender.method} {contender.budget} here, {remedy}"
        lines.append(f"{name} is slower here ({row.ratio:.2f} x): {reason}; {action}")
    return lines


def _remedy(results: Results, rows: Sequence[Row]) -> str:
    """The fastest of what a user can choose."""
    able = [i for i, row in enumerate(rows) if not results.contenders[i].ceiling and row.ratio]
    best = max(able, key=lambda i: rows[i].ratio or 0.0, default=results.baseline)
    contender, interval = results.contenders[best], rows[best].ratio_interval
    if contender.method == "target" or interval is None or interval[0] <= 1:
        return "use --method target"
    if contender.planned:
        return "use --method auto"
    drafter = f" --drafter {contender.drafter}" if contender.drafter else ""
    return f"use --method {contender.method}{drafter} --budget {contender.budget}"


def _reason(results: Results, rows: Sequence[Row], number: int) -> str:
    """What most of the time that is lost goes into."""
    own, base = _per_window(rows[number]), _per_window(rows[results.baseline])
    lost = {phase: own[phase] - base[phase] for phase in ("encode", "decode", "wall")}
    lost["rest"] = lost.pop("wall") - lost["encode"] - lost["decode"]
    most = max(lost, key=lambda phase: lost[phase])
    parts = []
    if own["draft_encode"] > 0:
        parts.append(f"its drafter's encoder takes {_seconds(own['draft_encode'])} a window")
    if most == "encode":
        parts.append(
            f"the target's encoder takes {_seconds(own['encode'])} instead of "
            f"{_seconds(base['encode'])}{_cores(results, number)}"
        )
    elif most == "decode":
        parts += _wasted(rows[number])
    else:
        parts.append(f"lanes that start and stop take {_seconds(lost['rest'])} a window")
    return " and ".join(parts)


def _wasted(row: Row) -> list[str]:
    """Why steps with candidates do not pay."""
    found = []
    if row.alone_share is not None and row.alone_share > _LATE:
        found.append(f"{row.alone_share:.0%} of the steps found no candidates")
    if row.acceptance is not None and row.acceptance < _WRONG:
        found.append(f"only {row.acceptance:.0%} of the candidates are right")
    if not found:
        found.append("verifying costs more than the accepted candidates save")
    return found


def _per_window(row: Row) -> dict[str, float]:
    phases = ("encode", "decode", "draft_encode", "wall")
    return {p: row.phases.get(p, 0.0) / max(1, row.windows) for p in phases}


def _cores(results: Results, number: int) -> str:
    """`` on 1 core instead of 2`` where the drafter took cores from the target."""
    own, base = (
        len(results.lanes.get(i, {}).get("target", {}).get("cores", ()))
        for i in (number, results.baseline)
    )
    if not 0 < own < base:
        return ""
    return f" on {counted(own, 'core')} instead of {base}"


def _seconds(value: float) -> str:
    return f"{value:.2f} s"
