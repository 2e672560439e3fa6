"""Figures from seconds. Pure functions; what cannot be told is None."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

__all__ = [
    "bootstrap",
    "geometric_mean",
    "oracle_share",
    "over",
    "percentile",
    "pooled_ratio",
    "slower_share",
]

Seconds = npt.NDArray[np.float64]

_RESAMPLES = 2000
_SEED = 0


def over(above: float, below: float) -> float | None:
    """A quotient, or None where there is none."""
    return above / below if below else None


def pooled_ratio(baseline: Sequence[float], own: Sequence[float]) -> float | None:
    """Baseline seconds of all units over own seconds of the same units: above 1 where faster."""
    return over(sum(baseline), sum(own))


def geometric_mean(baseline: Sequence[float], own: Sequence[float]) -> float | None:
    """Of the units' ratios: every unit counts the same, however long it is."""
    ratios = _ratios(baseline, own)
    return float(np.exp(np.log(ratios).mean())) if ratios is not None else None


def bootstrap(
    statistic: Callable[[Sequence[float], Sequence[float]], float | None],
    baseline: Sequence[float],
    own: Sequence[float],
) -> tuple[float, float] | None:
    """Bounds of the middle 95 % of a statistic over units drawn again with replacement.

    The same for the same seconds on every machine. None for fewer than two units, which say
    nothing of what another set of units would give.
    """
    count = len(own)
    if count < 2 or _ratios(baseline, own) is None:
        return None
    first, second = np.asarray(baseline, np.float64), np.asarray(own, np.float64)
    # RandomState, not default_rng: NumPy promises that its numbers never change.
    random = np.random.RandomState(_SEED)
    values = []
    for _ in range(_RESAMPLES):
        drawn = random.randint(0, count, count)
        values.append(statistic(first[drawn].tolist(), second[drawn].tolist()))
    low, high = np.percentile(np.asarray(values, np.float64), (2.5, 97.5))
    return float(low), float(high)


def percentile(values: Sequence[float], per_cent: float) -> float | None:
    """With linear interpolation between the two nearest."""
    return float(np.percentile(np.asarray(values), per_cent)) if values else None


def slower_share(baseline: Sequence[float], own: Sequence[float]) -> float | None:
    """Share of units that took longer than the baseline took; as long is not longer."""
    slower = sum(mine > base for base, mine in zip(baseline, own, strict=True))
    return over(slower, len(own))


def oracle_share(
    own: Mapping[int, float], catalogue: Sequence[Mapping[int, float]]
) -> float | None:
    """Own throughput over that of an oracle which knows, for each unit, the fastest of a catalogue.

    Args:
        own: seconds by unit.
        catalogue: the same of each entry; an entry need not have every unit.
    """
    times = {unit: [entry[unit] for entry in catalogue if unit in entry] for unit in own}
    common = [unit for unit in own if times[unit]]
    return over(sum(min(times[unit]) for unit in common), sum(own[unit] for unit in common))


def _ratios(baseline: Sequence[float], own: Sequence[float]) -> Seconds | None:
    """None without units, or where a unit took no time."""
    first, second = np.asarray(baseline, np.float64), np.asarray(own, np.float64)
    if not len(second) or first.min() <= 0 or second.min() <= 0:
        return None
    return np.asarray(first / second)
