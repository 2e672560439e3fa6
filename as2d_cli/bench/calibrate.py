"""How many cores the target alone is fastest on: an honest baseline is at its best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

from as2d_cli.bench.contenders import Contender
from as2d_cli.bench.engines import Engines
from as2d_cli.bench.measure import run_unit
from as2d_cli.bench.units import Recordings, Unit
from as2d_cli.tasks.models import Model

__all__ = ["best_width", "calibrate", "widths"]

_ANSWER = 16
"""Tokens of an answer that are enough to judge by."""

_ROUNDS = 4
"""The first is a warm-up; the best of the others counts."""


def widths(most: int) -> list[int]:
    """1, 2, 4, ... and `most` itself."""
    found = []
    width = 1
    while width < most:
        found.append(width)
        width *= 2
    return [*found, most]


def best_width(seconds: Mapping[int, float]) -> int:
    """The fastest; of equals the one that takes fewer cores."""
    return min(seconds, key=lambda width: (seconds[width], width))


def calibrate(
    stack: ExitStack,
    engines: Engines,
    contender: Contender,
    units: Sequence[Unit],
    recordings: Recordings,
    target: Model,
) -> dict[int, float]:
    """Gives `engines` the fastest engine of the target alone; `stack` keeps it open.

    It is judged by one window of the first unit and one of the unit in the middle.

    Args:
        contender: the baseline.

    Returns:
        Seconds by width; empty where there is no choice.
    """
    cores = engines.alone_cores()
    if len(cores) < 2:
        return {}
    chosen = list(dict.fromkeys([units[0], units[len(units) // 2]]))
    chosen = [_part(unit) for unit in chosen]
    pieces = [(unit, recordings.windows(unit)) for unit in chosen]
    tried = widths(len(cores))
    with ExitStack() as opened:
        stacks = {width: opened.enter_context(ExitStack()) for width in tried}
        seats = {width: engines.open_alone(stacks[width], cores[:width]) for width in tried}
        best: dict[tuple[int, int], float] = {}
        for number in range(_ROUNDS):
            for width in tried if number % 2 == 0 else tried[::-1]:
                for place, (unit, windows) in enumerate(pieces):
                    ran = run_unit(seats[width], contender, unit, windows, target)
                    if number:
                        taken = ran.counters.seconds["wall"]
                        best[width, place] = min(taken, best.get((width, place), taken))
        seconds = {w: sum(best[w, place] for place in range(len(pieces))) for w in tried}
        width = best_width(seconds)
        stack.push(stacks[width].pop_all())
    engines.adopt(seats[width], cores[:width])
    return seconds


def _part(unit: Unit) -> Unit:
    """One window of a unit, or the beginning of an answer."""
    asked = unit.asked
    if asked is not None:
        asked = replace(asked, limit=min(asked.limit, _ANSWER))
    return replace(unit, pieces=unit.pieces[:1], asked=asked)
