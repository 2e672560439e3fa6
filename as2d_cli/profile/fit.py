"""Makes what was timed piece by piece fit whole runs."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from as2d_cli.profile.costs import CostModel, LaneCosts, TargetCosts
from as2d_cli.profile.spread import spread_of, undisturbed

__all__ = ["BATCH", "Heard", "fitted"]

BATCH = 4
"""Windows decoded at a time, to see what one more of them costs a step."""


@dataclass(frozen=True)
class Heard:
    """A run over windows.

    Attributes:
        texts: by window.
        steps: forwards after the prompts.
        seconds: by phase; ``wall`` is all of it.
    """

    texts: Sequence[Sequence[int]]
    steps: int
    seconds: Mapping[str, float]


def fitted(
    costs: CostModel,
    runs: Sequence[Heard],
    batches: Sequence[Heard],
    noise: float = 0.0,
) -> CostModel:
    """Makes the costs those of a run, by runs of the target alone on the first of the lanes.

    The forwards of a run are earlier in their window than those that were timed, and of other
    numbers; a run has work that is neither; and one window more in a batch costs something.

    Args:
        runs, batches: of one window, and of several at a time, all the same.
        noise: see `spread_of`.
    """
    alone = costs.lanes[0].alone
    step = undisturbed(run.seconds["decode"] / max(run.steps, 1) for run in runs)
    scale = step / alone.step(1)
    rest = undisturbed(
        run.seconds["wall"] - run.seconds["encode"] - run.seconds["decode"] - run.seconds["prompt"]
        for run in runs
    )
    lanes = tuple(_changed(lane, scale, 0.0, 0.0) for lane in costs.lanes)
    costs = replace(costs, lanes=lanes, window=max(0.0, rest))
    more, most = _further_windows(costs.lanes[0].alone, batches, noise)
    return replace(costs, lanes=tuple(_changed(lane, 1.0, more, most) for lane in lanes))


def _further_windows(
    alone: TargetCosts, batches: Sequence[Heard], noise: float
) -> tuple[float, float]:
    """What each further window adds to a step beyond its rows, and what that may be at the most.

    Of the forwards only: what the encoder takes differs more from run to run than all of this.
    """
    steps, windows = [], []
    for run in batches:
        steps.append(run.seconds["decode"] / max(run.steps, 1))
        # One token of each window that is not done; the first comes with the prompt, and the end
        # is a token, too.
        windows.append(sum(map(len, run.texts)) / max(run.steps, 1))
    together = statistics.fmean(windows)
    if together <= 1:
        return 0.0, 0.0
    taken = undisturbed(steps)
    more, most = (
        max(0.0, (seconds - alone.step(together)) / (together - 1))
        for seconds in (taken, taken * spread_of(steps, noise).high)
    )
    return more, most


def _changed(lane: LaneCosts, scale: float, window: float, window_most: float) -> LaneCosts:
    """With steps of so many times the seconds, and such further windows."""

    def changed(costs: TargetCosts) -> TargetCosts:
        steps = {rows: scale * seconds for rows, seconds in costs.steps.items()}
        return replace(costs, steps=steps, window=window, window_most=window_most)

    return replace(
        lane,
        alone=changed(lane.alone),
        own=lane.own and changed(lane.own),
        beside=lane.beside and changed(lane.beside),
    )
