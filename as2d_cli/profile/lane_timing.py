"""What the work of both lanes costs on one way to share the cores, by what visits timed."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from as2d_cli.profile.costs import DraftCosts, LaneCosts, Line, TargetCosts
from as2d_cli.profile.layouts import Layout
from as2d_cli.profile.spread import Spread, relative_deviation, spread_of, undisturbed
from as2d_cli.profile.visit import TargetTimes, TimedDraft, Visit

__all__ = ["LaneTiming"]


class LaneTiming:
    """Collects what the visits to an engine on these cores timed, here or elsewhere.

    Attributes:
        layout: the cores.
        visits: so far.
        draft: what the drafter said of the clip, in the target's tokens.
    """

    def __init__(self, layout: Layout, audio: float) -> None:
        """`audio`: seconds of the clip."""
        self.layout = layout
        self.visits = 0
        self.draft: Sequence[int] = ()
        self._audio = audio
        self._alone, self._own, self._beside = _Target(), _Target(), _Target()
        self._rest, self._work = _Draft(), _Draft()

    @property
    def cores(self) -> frozenset[int]:
        """Of both lanes."""
        return frozenset(self.layout[0] + self.layout[1])

    def add(self, visit: Visit) -> None:
        """One visit more."""
        self._alone.add(visit.alone)
        if visit.own is not None:
            self._own.add(visit.own)
        if visit.draft is not None:
            self._rest.add(visit.draft)
            if self.visits == 0:
                self.draft = visit.draft.tokens
        if visit.beside is not None:
            self._beside.add_steps(visit.beside)
        # The last one may have been stopped in the middle.
        for draft in [draft for draft in visit.drafts if draft.complete] or visit.drafts:
            self._work.add(draft)
        self.visits += 1

    def costs(self, noise: float, alike: Iterable[LaneTiming] = ()) -> LaneCosts:
        """What came of it.

        Args:
            noise: see `spread_of`.
            alike: what was timed of other ways to share the same cores: while the draft lane rests
                and lends its own, the target's work is the same in all of them.
        """
        target, draft = self.layout
        together = self._alone.with_others(other._alone for other in alike)
        alone = together.costs(together.encoder(), noise)
        lane = LaneCosts(target, draft, alone)
        if not draft:
            return lane
        # On fewer cores all audio takes longer by the same factor: a few passes tell it.
        own = self._own.costs(alone.encode.times(self._own.encode_level(alone.encode)), noise)
        steps = self._beside.steps()
        # The encoder computes, as a step of many rows does, and is slowed down as that is.
        most = max(steps)
        slower = max(1.0, steps[most] / own.steps[most])
        spread = self._beside.step_spread(noise)
        beside = TargetCosts(own.encode.times(slower), steps, 0.0, spread, spread)
        rest, work = self._rest.costs(noise), self._work.costs(noise)
        audio = self._audio
        longer = work.encode(audio) / rest.encode(audio) if rest.encode(audio) else 1.0
        work = replace(work, encode=rest.encode.times(longer))
        return replace(lane, own=own, beside=beside, draft=rest, draft_beside=work)

    def rounds(self) -> Iterator[Sequence[float]]:
        """For each cost what each visit said of it."""
        for target in (self._alone, self._own, self._beside):
            yield target.step_levels()
        for draft in (self._rest, self._work):
            yield draft.tokens

    def deviations(self) -> Iterator[float]:
        """Of the repeats within a visit, as shares."""
        for target in (self._alone, self._own, self._beside):
            yield from target.deviations()


class _Target:
    """Seconds of the target's work.

    Attributes:
        encode: audio and seconds of each pass, a visit each.
    """

    def __init__(self) -> None:
        self.encode: list[tuple[float, float]] = []
        self._visits: list[Mapping[int, Sequence[float]]] = []

    def add(self, times: TargetTimes) -> None:
        """Of one visit."""
        self.add_steps(times.steps)
        self.encode.append((times.audio, times.encode))

    def add_steps(self, steps: Mapping[int, Sequence[float]]) -> None:
        """Seconds by rows, of one visit."""
        self._visits.append(steps)

    def with_others(self, others: Iterable[_Target]) -> _Target:
        """All that was timed of the same work."""
        whole = _Target()
        for part in (self, *others):
            whole.encode += part.encode
            whole._visits += part._visits
        return whole

    def costs(self, encode: Line, noise: float) -> TargetCosts:
        """`encode`: what was made of the passes of the encoder."""
        levels = [seconds / encode(audio) for audio, seconds in self.encode]
        fitted = len({audio for audio, _ in self.encode})
        spread = spread_of(levels, noise, fitted)
        return TargetCosts(encode, self.steps(), 0.0, spread, self.step_spread(noise))

    def encoder(self) -> Line:
        by_audio: dict[float, list[float]] = defaultdict(list)
        for audio, seconds in self.encode:
            by_audio[audio].append(seconds)
        return _line(by_audio)

    def encode_level(self, other: Line) -> float:
        """How many times as long as `other` the encoder takes."""
        return undisturbed(seconds / other(audio) for audio, seconds in self.encode)

    def steps(self) -> dict[int, float]:
        """By rows, of the samples of all visits."""
        return {
            rows: undisturbed(s for visit in self._visits for s in visit[rows])
            for rows in self._visits[0]
        }

    def step_spread(self, noise: float) -> Spread:
        return spread_of(self.step_levels(), noise)

    def step_levels(self) -> list[float]:
        """Of each visit, over all rows: how much longer steps took in it than in all."""
        if not self._visits:
            return []
        steps = self.steps()
        return [
            statistics.median(undisturbed(visit[rows]) / steps[rows] for rows in steps)
            for visit in self._visits
        ]

    def deviations(self) -> Iterator[float]:
        for visit in self._visits:
            yield from (relative_deviation(taken) for taken in visit.values() if len(taken) > 2)


class _Draft:
    """Seconds of the drafter's work.

    Attributes:
        tokens: seconds of each, a draft each.
    """

    def __init__(self) -> None:
        self.tokens: list[float] = []
        self._encode: list[tuple[float, float]] = []

    def add(self, draft: TimedDraft) -> None:
        """One draft."""
        self._encode.append((draft.audio, draft.encode))
        # The end is a token like any other.
        self.tokens.append(draft.steps / (len(draft.tokens) + 1))

    def costs(self, noise: float) -> DraftCosts:
        by_audio: dict[float, list[float]] = defaultdict(list)
        for audio, seconds in self._encode:
            by_audio[audio].append(seconds)
        line = _line(by_audio)
        levels = [s / line(audio) if line(audio) else 1.0 for audio, s in self._encode]
        return DraftCosts(
            line,
            undisturbed(self.tokens),
            spread_of(levels, noise, fitted=len(by_audio)),
            spread_of(self.tokens, noise),
        )


def _line(seconds: Mapping[float, Sequence[float]]) -> Line:
    """By seconds of audio."""
    return Line.through({audio: undisturbed(taken) for audio, taken in seconds.items()})
