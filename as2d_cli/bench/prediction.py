"""What the simulation says of the runs that were timed: it has to earn its trust."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from as2d_cli.audio.decode import RATE
from as2d_cli.bench.contenders import ORACLE, Contender
from as2d_cli.bench.results import Results
from as2d_cli.profile.alignment import Recordings, WindowTrace, as_json, perfect
from as2d_cli.profile.costs import CostModel, LaneCosts
from as2d_cli.profile.simulate import Setup, simulate

__all__ = ["alignment", "predict", "predictable"]

_SIMULATED = ("target", "batched", "as2d")


def predictable(contender: Contender, models: Mapping[str | None, CostModel]) -> CostModel | None:
    """The costs that its runs can be simulated with, or None.

    Args:
        models: by drafter, as the user called it; that of None for the target alone.
    """
    if contender.method not in _SIMULATED or contender.one_row:
        return None
    return models.get(None if contender.drafter == ORACLE else contender.drafter)


def predict(results: Results, models: Mapping[str | None, CostModel]) -> None:
    """Fills in `results.predicted`, by `results.traces` where a drafter is at work."""
    for number in range(len(results.contenders)):
        told = {unit: _predicted(results, models, number, unit) for unit in results.texts}
        results.predicted[number] = {unit: s for unit, s in told.items() if s is not None}


def alignment(results: Results) -> dict[str, object]:
    """All traces as the document that ``--alignment`` writes."""
    pairs: dict[tuple[str, str], Recordings] = {}
    for name, units in results.traces.items():
        recordings: dict[int, list[WindowTrace]] = {}
        for unit, windows in sorted(units.items()):
            recordings.setdefault(results.units[unit].recording, []).extend(windows)
        pairs[results.target.id, results.drafters[name].id] = list(recordings.values())
    return as_json(pairs)


def _setup(contender: Contender) -> Setup:
    if contender.method == "batched":
        return Setup(0, contender.budget)
    if contender.method == "target":
        return Setup(0)
    return Setup(contender.budget, contender.windows, free=contender.drafter == ORACLE)


def _lane(costs: CostModel, lanes: Mapping[str, Mapping[str, Sequence[int]]]) -> LaneCosts | None:
    """What was measured on the cores that the contender ran on."""
    target, draft = (tuple(lanes.get(name, {}).get("cores", ())) for name in ("target", "draft"))
    same = (
        lane for lane in costs.lanes if (lane.target_cores, lane.draft_cores) == (target, draft)
    )
    return next(same, None)


def _predicted(
    results: Results, models: Mapping[str | None, CostModel], number: int, unit: int
) -> float | None:
    """Seconds of a contender's run over a unit."""
    entrant = results.entrant(number, unit)
    costs = predictable(entrant, models)
    lanes = results.unit_lanes if entrant.planned else results.lanes
    lane = (
        None if costs is None else _lane(costs, lanes.get(unit if entrant.planned else number, {}))
    )
    setup = _setup(entrant)
    if costs is None or lane is None or (setup.drafts and lane.draft_beside is None):
        return None
    windows = _windows(results, entrant, unit)
    return None if windows is None else simulate(windows, setup, costs, lane).seconds


def _windows(results: Results, entrant: Contender, unit: int) -> Sequence[WindowTrace] | None:
    """What is known of a unit's windows."""
    if entrant.method == "as2d" and entrant.drafter != ORACLE:
        return results.traces.get(entrant.drafter or "", {}).get(unit)
    pieces, texts = results.units[unit].pieces, results.texts[unit]
    return [perfect(p.count / RATE, len(text)) for p, text in zip(pieces, texts, strict=True)]
