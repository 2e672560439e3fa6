"""What the work of both lanes costs on one machine: the numbers that a plan is made of."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

from as2d_cli.decoding.costs import RunCosts
from as2d_cli.profile.spread import Spread

__all__ = ["FORMAT", "WORK", "CostModel", "DraftCosts", "LaneCosts", "Line", "TargetCosts"]

FORMAT = "as2d-costs-2"

WORK = ("encoder", "steps", "windows", "drafter")
"""Kinds of work that are measured apart."""

_EXACT = Spread()


@dataclass(frozen=True)
class Line:
    """Seconds of work that grow with the audio: `base`, and `per_second` for each second of it."""

    base: float
    per_second: float

    def __call__(self, audio_seconds: float) -> float:
        return self.base + self.per_second * audio_seconds

    def times(self, factor: float) -> Line:
        """The line of so many times the seconds."""
        return Line(self.base * factor, self.per_second * factor)

    @classmethod
    def through(cls, points: Mapping[float, float]) -> Line:
        """The line of least squares of (audio seconds -> seconds), neither part below 0."""
        count = len(points)
        mean = sum(points) / count
        height = sum(points.values()) / count
        spread = sum((x - mean) ** 2 for x in points)
        if spread == 0:
            return cls(height, 0.0)
        slope = sum((x - mean) * (y - height) for x, y in points.items()) / spread
        slope = max(0.0, slope)
        base = height - slope * mean
        return cls(base, slope) if base >= 0 else cls(0.0, height / mean)


@dataclass(frozen=True)
class TargetCosts:
    """Seconds of the target's work.

    Attributes:
        encode: of the encoder.
        steps: of a forward by its rows, ascending, all of one window.
        window: more of a forward for each further window that it has rows of.
        encode_spread, step_spread: how far encoder and steps may be off.
        window_most: what `window` may be at the most.
    """

    encode: Line
    steps: Mapping[int, float]
    window: float = 0.0
    encode_spread: Spread = _EXACT
    step_spread: Spread = _EXACT
    window_most: float = 0.0

    def step(self, rows: float, windows: int = 1) -> float:
        """Seconds of a forward. Between two measured numbers of rows it is a straight line; below
        the first its own figure, and beyond the last the line goes on, but never down: on a noisy
        machine a larger step may have seemed the cheaper one. As `CostCurve` of the engine.
        """
        return self._table(rows) + self.window * (windows - 1)

    def off(self, what: str) -> TargetCosts:
        """One of the costs is as high as it may be: ``encoder``, ``steps`` or ``windows``; another
        word changes nothing.
        """
        if what == "encoder":
            return replace(self, encode=self.encode.times(self.encode_spread.high))
        if what == "steps":
            factor = self.step_spread.high
            return replace(self, steps={n: factor * s for n, s in self.steps.items()})
        if what == "windows":
            return replace(self, window=max(self.window, self.window_most))
        return self

    def _table(self, rows: float) -> float:
        counts, seconds = self._points
        if len(counts) == 1 or rows <= counts[0]:
            return seconds[0]
        at = min(bisect_left(counts, rows), len(counts) - 1)
        part = (rows - counts[at - 1]) / (counts[at] - counts[at - 1])
        found = seconds[at - 1] + part * (seconds[at] - seconds[at - 1])
        return found if rows <= counts[-1] else max(seconds[-1], found)

    @cached_property
    def _points(self) -> tuple[list[int], list[float]]:
        ordered = sorted(self.steps.items())
        return [rows for rows, _ in ordered], [seconds for _, seconds in ordered]


@dataclass(frozen=True)
class DraftCosts:
    """Seconds of the drafter's work; a token is one of the target's. Spreads: how far each may be
    off.
    """

    encode: Line
    token: float
    encode_spread: Spread = _EXACT
    token_spread: Spread = _EXACT

    def highest(self) -> DraftCosts:
        """As much as it may be."""
        encode = self.encode.times(self.encode_spread.high)
        return replace(self, encode=encode, token=self.token * self.token_spread.high)


@dataclass(frozen=True)
class LaneCosts:
    """What was measured on one way to share the cores.

    Attributes:
        target_cores, draft_cores: of the lanes; no draft lane where the latter are none.
        alone: of the target while the draft lane rests and lends its cores, or is not there.
        own: the same on the target lane's own cores; None where nothing is lent.
        beside: of the target while the draft lane works.
        draft: of the drafter on its own cores while the target lane rests.
        draft_beside: the same while the target lane works.
    """

    target_cores: tuple[int, ...]
    draft_cores: tuple[int, ...]
    alone: TargetCosts
    own: TargetCosts | None = None
    beside: TargetCosts | None = None
    draft: DraftCosts | None = None
    draft_beside: DraftCosts | None = None

    @property
    def contention(self) -> float | None:
        """How many times longer a step takes beside a working drafter, over all rows."""
        if self.beside is None or self.own is None:
            return None
        rows = sorted(set(self.beside.steps) & set(self.own.steps))
        return sum(self.beside.steps[n] for n in rows) / sum(self.own.steps[n] for n in rows)

    @property
    def spreads(self) -> list[Spread]:
        """Of all its costs."""
        targets = [costs for costs in (self.alone, self.own, self.beside) if costs is not None]
        drafts = [costs for costs in (self.draft, self.draft_beside) if costs is not None]
        return [
            *(spread for costs in targets for spread in (costs.encode_spread, costs.step_spread)),
            *(spread for costs in drafts for spread in (costs.encode_spread, costs.token_spread)),
        ]

    def off(self, what: str) -> LaneCosts:
        """What was measured of one kind of work is as high as it may be: one of `WORK`. A layout's
        figures of one kind were made in the same minutes, and are off together.
        """
        draft, draft_beside = self.draft, self.draft_beside
        if what == "drafter":
            draft, draft_beside = draft and draft.highest(), draft_beside and draft_beside.highest()
        return replace(
            self,
            alone=self.alone.off(what),
            own=self.own and self.own.off(what),
            beside=self.beside and self.beside.off(what),
            draft=draft,
            draft_beside=draft_beside,
        )

    def run_costs(self) -> RunCosts:
        """What the engine's budget policy needs of it."""
        beside = self.beside or self.alone
        encode = self.alone.encode
        return RunCosts(dict(self.alone.steps), dict(beside.steps), encode.base, encode.per_second)


@dataclass(frozen=True)
class CostModel:
    """All of one machine with one pair of models.

    Attributes:
        target, drafter: ids; `drafter` None for none.
        shares_encoder: the drafter hears what the target's encoder says.
        lanes: the ways to share the cores that were measured, the likeliest first.
        key: what the numbers belong to, by name: machine, models, versions. Others are stale.
        window: seconds of a run for each window beyond encoder, prompt and steps.
        prompt_rows: tokens before a window's text.
        bandwidth: bytes a second that one core copies, or None.
        noise: typical spread of repeats, as a share of their median.
        created: ISO 8601, or empty.
        estimated: derived from a description, not measured.
    """

    target: str
    drafter: str | None
    shares_encoder: bool
    lanes: Sequence[LaneCosts]
    key: Mapping[str, Any] = field(default_factory=dict)
    window: float = 0.0
    prompt_rows: int = 4
    bandwidth: float | None = None
    noise: float = 0.0
    created: str = ""
    estimated: bool = False

    def as_json(self) -> dict[str, Any]:
        """As values that JSON knows."""
        return {"format": FORMAT, **asdict(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> CostModel:
        """The reverse of `as_json`.

        Raises:
            ValueError: it is not one, or of another format.
        """
        if data.get("format") != FORMAT:
            raise ValueError(f"is not of the format {FORMAT}")
        try:
            fields = {name: data[name] for name in cls.__dataclass_fields__}
            return cls(**fields | {"lanes": tuple(_lane(lane) for lane in data["lanes"])})
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"is broken ({error})") from error


def _lane(data: Mapping[str, Any]) -> LaneCosts:
    return LaneCosts(
        target_cores=tuple(data["target_cores"]),
        draft_cores=tuple(data["draft_cores"]),
        alone=_target(data["alone"]),
        own=_target(data["own"]) if data["own"] else None,
        beside=_target(data["beside"]) if data["beside"] else None,
        draft=_draft(data["draft"]) if data["draft"] else None,
        draft_beside=_draft(data["draft_beside"]) if data["draft_beside"] else None,
    )


def _target(data: Mapping[str, Any]) -> TargetCosts:
    steps = {int(rows): float(seconds) for rows, seconds in data["steps"].items()}
    if not steps or min(steps.values()) <= 0:
        raise TypeError("steps that cannot be")
    return TargetCosts(
        Line(**data["encode"]),
        steps,
        float(data["window"]),
        Spread(**data["encode_spread"]),
        Spread(**data["step_spread"]),
        float(data["window_most"]),
    )


def _draft(data: Mapping[str, Any]) -> DraftCosts:
    return DraftCosts(
        Line(**data["encode"]),
        float(data["token"]),
        Spread(**data["encode_spread"]),
        Spread(**data["token_spread"]),
    )
