"""Makes a cost model of what was timed, here or elsewhere."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from as2d_cli.profile.costs import CostModel
from as2d_cli.profile.fit import Heard, fitted
from as2d_cli.profile.lane_timing import LaneTiming
from as2d_cli.profile.layouts import Layout
from as2d_cli.profile.spread import MEDIAN_ERROR, typical_noise
from as2d_cli.profile.visit import REPEATS

__all__ = ["Measured", "Reckoning"]


@dataclass(frozen=True)
class Measured:
    """What came of it.

    Attributes:
        text, draft: of the clip, in the target's tokens; no draft without a drafter.
    """

    costs: CostModel
    text: Sequence[int]
    draft: Sequence[int]


class Reckoning:
    """Collects what is timed of one pair of models.

    Attributes:
        lanes: by layout, in the order in which they were visited first.
        runs: of the target alone over the clip, on the first layout.
        batches: the same over the clip several times in a batch.
    """

    def __init__(self, audio: float) -> None:
        """`audio`: seconds of the clip."""
        self.lanes: list[LaneTiming] = []
        self.runs: list[Heard] = []
        self.batches: list[Heard] = []
        self._audio = audio

    def lane(self, layout: Layout) -> LaneTiming:
        """What is timed of a layout, which is a new one if it was not asked for before."""
        found = next((lane for lane in self.lanes if lane.layout == layout), None)
        if found is None:
            found = LaneTiming(layout, self._audio)
            self.lanes.append(found)
        return found

    def measured(self, pair: CostModel) -> Measured:
        """What came of it.

        Args:
            pair: all of the costs that was not timed here.
        """
        noise, repeats = self._noise()
        lanes = tuple(lane.costs(noise, self._alike(lane)) for lane in self.lanes)
        costs = replace(pair, lanes=lanes, noise=repeats)
        costs = fitted(costs, self.runs, self.batches, noise)
        draft = next((lane.draft for lane in self.lanes if lane.draft), ())
        return Measured(costs, self.runs[0].texts[0], draft)

    def _alike(self, lane: LaneTiming) -> list[LaneTiming]:
        """The others that share the same cores out."""
        return [other for other in self.lanes if other is not lane and other.cores == lane.cores]

    def _noise(self) -> tuple[float, float]:
        """How far rounds are off, and repeats within one."""
        rounds = [found for lane in self.lanes for found in lane.rounds()]
        deviations = [found for lane in self.lanes for found in lane.deviations()]
        repeats = statistics.median(deviations) if deviations else 0.0
        # A round cannot be surer than its own repeats, however much alike two rounds turned out.
        return max(typical_noise(rounds), MEDIAN_ERROR * repeats / REPEATS**0.5), repeats
