"""Everything that a bench found out, as raw as it came."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from as2d_cli.bench.contenders import Contender
from as2d_cli.bench.measure import Sample, Texts
from as2d_cli.bench.planned import Planned
from as2d_cli.bench.units import Unit
from as2d_cli.profile.alignment import WindowTrace
from as2d_cli.tasks.models import Model
from as2d_cli.text.repeats import suspicions
from as2d_cli.text.text_stream import TextStream

__all__ = ["Results"]


@dataclass
class Results:
    """Contenders and units are told apart by their places in the lists.

    Attributes:
        target: whose text it is.
        drafters: by what the user called them.
        noun: what a unit is: ``window``, ``recording`` or ``question``.
        repeat: rounds that were asked for.
        samples: in the order of time; a run whose drafter failed is among them.
        texts: by unit, what the reference said, where it is known.
        flags: by unit, what is suspicious in that text (see `as2d_cli.text.repeats`), if anything.
        load_seconds, lanes, peak_memory: by contender.
        withdrawn: by contender, why it did not go on.
        widths: by number of cores, seconds of the target alone in warm-up.
        traces: by drafter and unit, what its drafts were worth (see
            `as2d_cli.profile.alignment`), where that was looked into.
        planned: by unit, what is planned for it, where a contender has plans.
        shared: units whose plan is the baseline itself: a second run would only measure noise, so
            that the runs of one are those of the other.
        unit_lanes: as `lanes`, by unit, of the contender that has plans.
        predicted: by contender and unit, seconds that a simulation gives, where it can.
        machine: what the JSON tells of another machine that it ran on; None for this one.
        moments: by order of the samples, what is known of that machine before and after.
        untimed: contender, unit and window of runs that nobody timed and that differed from the
            reference.
        complete: nothing that was asked for is missing.
    """

    target: Model
    drafters: Mapping[str, Model]
    contenders: Sequence[Contender]
    units: Sequence[Unit]
    noun: str
    repeat: int
    samples: list[Sample] = field(default_factory=list)
    texts: dict[int, Texts] = field(default_factory=dict)
    flags: dict[int, list[str]] = field(default_factory=dict)
    load_seconds: dict[int, float] = field(default_factory=dict)
    lanes: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    peak_memory: dict[int, int] = field(default_factory=dict)
    withdrawn: dict[int, str] = field(default_factory=dict)
    widths: dict[int, float] = field(default_factory=dict)
    traces: dict[str, dict[int, Sequence[WindowTrace]]] = field(default_factory=dict)
    planned: Mapping[int, Planned] = field(default_factory=dict)
    shared: set[int] = field(default_factory=set)
    unit_lanes: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    predicted: dict[int, dict[int, float]] = field(default_factory=dict)
    machine: Mapping[str, Any] | None = None
    moments: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    untimed: set[tuple[int, int, int]] = field(default_factory=set)
    complete: bool = False

    @property
    def reference(self) -> int:
        """Number of the contender whose text the others must equal."""
        return next(i for i, c in enumerate(self.contenders) if c.reference)

    @property
    def baseline(self) -> int:
        """Number of the contender whose time the others are compared with."""
        return next(i for i, c in enumerate(self.contenders) if c.baseline)

    def entrant(self, contender: int, unit: int) -> Contender:
        """What the contender is on this unit: itself, or what is planned."""
        entry = self.contenders[contender]
        return self.planned[unit].entrant if entry.planned else entry

    def takes_part(self, contender: int, unit: int) -> bool:
        """A drafter that does not know a unit's language sits it out."""
        drafter = self.drafters.get(self.entrant(contender, unit).drafter or "")
        return drafter is None or self.units[unit].language in drafter.languages

    def hear(self, unit: int, texts: Texts) -> None:
        """Takes in what the reference says; the first time counts."""
        if unit not in self.texts:
            self.texts[unit] = texts
            self.flags[unit] = sorted(
                {flag for tokens in texts for flag in suspicions(tokens, self.text([tokens]))}
            )

    def differing(self, sample: Sample) -> list[int]:
        """Indexes of the windows whose tokens are not the reference's."""
        pieces = self.units[sample.turn.unit].pieces
        right = self.texts.get(sample.turn.unit, sample.ran.texts)
        return [
            piece.index
            for piece, own, wanted in zip(pieces, sample.ran.texts, right, strict=True)
            if own != wanted
        ]

    def text(self, windows: Iterable[Sequence[int]]) -> str:
        """Tokens of windows as text."""
        parts = []
        for tokens in windows:
            stream = TextStream(self._pieces)
            parts.append((stream.push(tokens) + stream.finish()).strip())
        return " ".join(part for part in parts if part)

    @cached_property
    def _pieces(self) -> Sequence[bytes]:
        return self.target.vocabulary().pieces
