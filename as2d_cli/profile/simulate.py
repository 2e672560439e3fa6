"""A run of both lanes without running it: what it would take, by costs and alignment traces.

It follows the engine (`native/src/decode`): which window begins when, what goes into a step, how
far the drafter may lead. Time passes in pieces of the target's work; the drafter goes on meanwhile.
While both work, each is as slow as it was measured beside the other; a lane that rests lends its
cores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from as2d_cli.profile.alignment import WindowTrace
from as2d_cli.profile.costs import CostModel, LaneCosts

__all__ = ["Outcome", "Setup", "simulate"]

_APART = 8
"""As RunOptions::batch_apart: tokens that each window of a batch has before another joins it."""


@dataclass(frozen=True)
class Setup:
    """How a run is done.

    Attributes:
        budget: most candidates in a verify step; 0 for a target alone.
        batch: windows decoded at a time.
        elastic: a lane that rests lends its cores.
        free: the drafter costs nothing and is always done.
    """

    budget: int
    batch: int = 1
    elastic: bool = True
    free: bool = False

    @property
    def drafts(self) -> bool:
        """A drafter is at work."""
        return self.budget > 0 and not self.free


@dataclass(frozen=True)
class Outcome:
    """What a run would be.

    Attributes:
        seconds: from its beginning to its end.
        tokens: committed.
        steps: forwards of the target after the prompts.
        alone: those without candidates.
        accepted: candidates that were right.
    """

    seconds: float
    tokens: int
    steps: int
    alone: int
    accepted: int


def simulate(
    windows: Sequence[WindowTrace], setup: Setup, costs: CostModel, lane: LaneCosts
) -> Outcome:
    """The run of a recording whose windows are all there from the beginning.

    Args:
        lane: one of those of `costs`.
    """
    return _Run(windows, setup, costs, lane).outcome()


@dataclass(slots=True)
class _Active:
    """A window in the target's batch; `right`: of its candidates in this step."""

    index: int
    committed: int
    right: int = 0


class _Drafter:
    """The draft lane: goes on through the windows, whatever the target does.

    Attributes:
        working: it has a window.
        drafted: by window, tokens published, the end among them; fractions are work in progress.
        encoded: windows whose encoding the target has told.
    """

    def __init__(
        self, windows: Sequence[WindowTrace], lead: int, costs: CostModel, lane: LaneCosts
    ) -> None:
        self._windows = windows
        self._lead = lead
        self._hears = costs.shares_encoder
        assert lane.draft_beside is not None
        # The target rests only when all is done, so that the drafter is never alone.
        self._costs = lane.draft_beside
        self._first = self._next = 0
        self._now = -1
        self._encoding = 0.0  # the part of the encoder's work that is left
        self.drafted = [0.0] * len(windows)
        self.encoded = 0
        self.finished = [False] * len(windows)

    @property
    def working(self) -> bool:
        return self._now >= 0

    def look(self) -> None:
        """Takes the next window, if it may."""
        now = self._now
        # A piece of work is finished even if its window is not wanted any more: the encoder's is
        # long, a token's is not.
        if now >= 0 and not (self.finished[now] and self._encoding <= 0):
            return
        self._now = -1
        while self._first < len(self._windows) and self.finished[self._first]:
            self._first += 1
        self._next = max(self._next, self._first)
        while self._next < len(self._windows) and self.finished[self._next]:
            self._next += 1
        ready = not self._hears or self._next < self.encoded
        if self._next < len(self._windows) and self._next <= self._first + self._lead and ready:
            self._now = self._next
            self._next += 1
            self._encoding = 1.0

    def advance(self, seconds: float) -> float:
        """Works for at most `seconds`, up to its next change; returns how long that was."""
        costs = self._costs
        window = self._windows[self._now]
        if self._encoding > 0:
            whole = costs.encode(window.seconds)
            needed = self._encoding * whole
            if needed > seconds:
                self._encoding -= seconds / whole
                return seconds
            self._encoding = 0.0
            self.look()
            return needed
        left = window.drafted + 1 - self.drafted[self._now]
        needed = left * costs.token
        if needed > seconds:
            self.drafted[self._now] += seconds / costs.token
            return seconds
        self.drafted[self._now] = window.drafted + 1
        self._now = -1
        self.look()
        return needed


class _Run:
    def __init__(
        self, windows: Sequence[WindowTrace], setup: Setup, costs: CostModel, lane: LaneCosts
    ) -> None:
        self._windows, self._setup, self._costs = windows, setup, costs
        self._alone = lane.alone if setup.elastic or lane.own is None else lane.own
        self._beside = lane.beside or self._alone
        self._drafter = _Drafter(windows, setup.batch + 1, costs, lane) if setup.drafts else None
        self._ahead = setup.drafts and costs.shares_encoder
        # By windows and rows: looked up in every step.
        self._table = [
            [self._step_seconds(rows, windows) for rows in range(most + 1)]
            for windows in range(setup.batch + 1)
            for most in (windows * (setup.budget + 1),)
        ]
        self._now = 0.0
        self._steps = self._lonely = self._accepted = self._committed = 0

    def outcome(self) -> Outcome:
        if self._drafter is not None:
            self._drafter.look()
        self._decode()
        self._now += self._costs.window * len(self._windows)
        return Outcome(self._now, self._committed, self._steps, self._lonely, self._accepted)

    # The target lane

    def _decode(self) -> None:
        batch: list[_Active | None] = [None] * self._setup.batch
        waiting = iter(range(len(self._windows)))
        ahead: int | None = None
        while True:
            for place in range(len(batch)):
                while batch[place] is None and _may_begin(batch):
                    index = next(waiting, None) if ahead is None else ahead
                    if index is None:
                        break
                    if ahead is None:
                        self._encode(index)
                    ahead = None
                    batch[place] = self._begin(index)
            if not any(batch):
                return
            if self._ahead and ahead is None and _may_begin(batch):
                ahead = next(waiting, None)
                if ahead is not None:
                    self._encode(ahead)
            self._step(batch)

    def _encode(self, index: int) -> None:
        seconds = self._windows[index].seconds
        self._work(self._alone.encode(seconds), self._beside.encode(seconds))
        if self._drafter is not None:
            self._drafter.encoded = index + 1
            self._drafter.look()

    def _begin(self, index: int) -> _Active | None:
        """The prompt; None where the text is empty."""
        rows = self._costs.prompt_rows
        self._work(self._alone.step(rows), self._beside.step(rows))
        if self._windows[index].tokens == 0:
            self._finish(index)
            return None
        self._committed += 1
        return _Active(index, 1)

    def _step(self, batch: list[_Active | None]) -> None:
        busy = candidates = 0
        for active in batch:
            if active is not None:
                busy += 1
                candidates += self._propose(active)
        self._work(*self._table[busy][busy + candidates])
        self._steps += 1
        self._lonely += candidates == 0
        for place, active in enumerate(batch):
            if active is None:
                continue
            tokens = self._windows[active.index].tokens
            self._accepted += active.right
            before = active.committed
            active.committed += active.right + 1
            # One of them is the end.
            self._committed += min(active.committed, tokens) - before
            if active.committed > tokens:
                self._finish(active.index)
                batch[place] = None

    def _step_seconds(self, rows: int, windows: int) -> tuple[float, float]:
        return self._alone.step(rows, windows), self._beside.step(rows, windows)

    def _propose(self, active: _Active) -> int:
        """How many candidates there are now; it is known how many of them are right."""
        if self._setup.budget == 0:
            return 0
        window = self._windows[active.index]
        drafted = window.drafted + 1
        if self._drafter is not None:
            drafted = int(self._drafter.drafted[active.index])
        at = active.committed - 1
        proposed = min(self._setup.budget, max(0, drafted - window.place[at]))
        active.right = min(proposed, window.run[at])
        return proposed

    def _finish(self, index: int) -> None:
        if self._drafter is not None:
            self._drafter.finished[index] = True
            self._drafter.look()

    # Time

    def _work(self, alone: float, beside: float) -> None:
        """The target does one piece of work, which takes so long without and with the other."""
        drafter = self._drafter
        if drafter is None:
            self._now += alone
            return
        left = 1.0
        while drafter.working:
            took = drafter.advance(left * beside)
            self._now += took
            left -= took / beside
            if left <= 1e-9:
                return
        self._now += left * alone


def _may_begin(batch: Sequence[_Active | None]) -> bool:
    return all(active is None or active.committed >= _APART for active in batch)
