"""How far a measured cost may be off, by how its repeats differ."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = [
    "MEDIAN_ERROR",
    "Spread",
    "relative_deviation",
    "spread_of",
    "typical_noise",
    "undisturbed",
]

_MAD = 1.4826
"""Makes a median deviation one that is comparable with a standard deviation."""

MEDIAN_ERROR = 1.2533
"""A median of n samples is off by so many standard deviations over the root of n."""

_LEAST = 0.1
"""No bound is below this share of a cost: nothing takes no time."""


@dataclass(frozen=True)
class Spread:
    """Bounds of a cost as shares of it: the truth is between them two times out of three.

    Errors of many costs are not all of one sign, so a sum of costs at their bounds is off less
    often than that.
    """

    low: float = 1.0
    high: float = 1.0


def undisturbed(samples: Iterable[float]) -> float:
    """What work takes by itself: the lower quartile of its `samples`.

    What else a machine does, or the machines beside a virtual one do, makes it longer and never
    shorter, often for more than half of the time; a single sample below all others is chance, too.
    """
    ordered = sorted(samples)
    place = (len(ordered) - 1) / 4
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def spread_of(rounds: Sequence[float], noise: float, fitted: int = 1) -> Spread:
    """The bounds of what is made of `rounds`.

    Args:
        rounds: what each round said of one cost, as shares of the median or in its unit.
        noise: deviation of rounds from their median, as `typical_noise` has it. Few rounds say
            little of how far they are off, so none is taken to be surer than this makes it.
        fitted: figures that were made to fit these rounds; each takes away what one of them says.
    """
    count = max(1, len(rounds) - fitted + 1)
    own = relative_deviation(rounds) if len(rounds) > max(1, fitted) else 0.0
    width = MEDIAN_ERROR * max(noise, own) / math.sqrt(count)
    return Spread(max(_LEAST, 1 - width), 1 + width)


def typical_noise(costs: Iterable[Sequence[float]]) -> float:
    """By which share a round is off, typically, over the rounds of all costs; 0 if none tells."""
    found = [relative_deviation(rounds) for rounds in costs if len(rounds) > 1]
    return statistics.median(found) if found else 0.0


def relative_deviation(samples: Sequence[float]) -> float:
    """Standard deviation as a share of the median, by median deviation: outliers do not count."""
    middle = statistics.median(samples)
    apart = statistics.median(abs(sample - middle) for sample in samples)
    # Of two samples each is half of their distance away from the middle.
    return _MAD * apart / middle * math.sqrt(len(samples) / (len(samples) - 1))
