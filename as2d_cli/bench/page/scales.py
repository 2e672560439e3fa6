"""From figures to pixels, with round ticks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Linear", "Log"]


@dataclass(frozen=True)
class Linear:
    """From 0 to `high`, drawn from pixel `start` to pixel `end`."""

    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.start + (self.end - self.start) * value / self.high

    def ticks(self, gap: float) -> list[float]:
        """Round values at least `gap` pixels apart."""
        least = self.high * gap / abs(self.end - self.start)
        magnitude = 10.0 ** math.floor(math.log10(least))
        step = next(m * magnitude for m in (1, 2, 5, 10, 20) if m * magnitude >= least)
        return [step * n for n in range(math.floor(self.high / step * (1 + 1e-9)) + 1)]


# In the order in which they get a place: what a reader looks for first.
_RATIOS = (
    *(1, 2, 0.5, 4, 0.25, 10, 0.1, 1.5, 0.75, 3, 5, 0.2, 1.25, 0.8, 1.2, 0.9, 1.1, 0.6, 0.7),
    *(1.75, 2.5, 0.4, 0.3, 8, 6, 7, 20, 0.05, 50, 0.02, 100, 0.01, 1000, 0.001),
)


@dataclass(frozen=True)
class Log:
    """Ratios from `low` to `high`: twice as fast and half as fast are equally far from 1."""

    low: float
    high: float
    start: float
    end: float

    @classmethod
    def around(cls, values: Sequence[float], start: float, end: float) -> Log:
        """Holds all `values` and 1, with a little air at both ends."""
        low, high = min([1.0, *values]), max([1.0, *values])
        air = max((high / low) ** 0.06, 1.03)
        return cls(low / air, high * air, start, end)

    def __call__(self, value: float) -> float:
        part = math.log(value / self.low) / math.log(self.high / self.low)
        return self.start + (self.end - self.start) * part

    def ticks(self, gap: float) -> list[float]:
        """Round ratios at least `gap` pixels apart, 1 among them; evenly spaced if they can be."""
        for step in (0.01, 0.02, 0.05, 0.1, 0.2):
            first, last = math.ceil(self.low / step), math.floor(self.high / step)
            even = [round(n * step, 2) for n in range(first, last + 1)]
            if 1 in even and abs(self(last * step) - self((last - 1) * step)) >= gap:
                return even
        chosen: list[float] = []
        for ratio in _RATIOS:
            if self.low <= ratio <= self.high and all(
                abs(self(ratio) - self(other)) >= gap for other in chosen
            ):
                chosen.append(ratio)
        return sorted(chosen)
