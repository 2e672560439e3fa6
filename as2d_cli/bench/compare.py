"""Runs every strategy over the same windows and counts where the text differs."""

from __future__ import annotations

from collections import Counter as Histogram
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from as2d_cli.audio.decode import RATE, AudioFile
from as2d_cli.audio.windows import AudioWindow, is_silent, windows
from as2d_cli.bench.dataset import Clip
from as2d_cli.decoding import Counters, Engine, Plan, Window, make_plan
from as2d_cli.decoding.events import DrafterLost, RunFinished, WindowFinished
from as2d_cli.errors import As2dError
from as2d_cli.tasks.models import Model
from as2d_cli.text.whisper_prompt import prompt

__all__ = ["REFERENCE", "Contender", "Outcome", "compare", "contenders"]


@dataclass(frozen=True)
class Contender:
    """A strategy with what belongs to it.

    Attributes:
        method: ``target`` or ``as2d``.
        drafter: id of the drafter, or None.
        budget: most candidates per verify step, 0 without a drafter.
        exact: steps are padded so that the text cannot depend on the strategy.
    """

    method: str
    drafter: str | None = None
    budget: int = 0
    exact: bool = True

    @property
    def label(self) -> str:
        """For people: ``as2d whisper-tiny.en 8``."""
        parts = [self.method, self.drafter or "", str(self.budget) if self.budget else ""]
        return " ".join(part for part in parts if part) + ("" if self.exact else " (one row)")


REFERENCE = Contender("target")
"""What all others must equal: the target alone, in exact mode."""


@dataclass
class Outcome:
    """What one contender did over all clips.

    Attributes:
        windows: finished.
        differing: windows whose tokens are not those of the reference: clip and window index.
        audio_seconds, wall_seconds: of all clips it ran on; loading and decoding of files apart.
        clip_seconds: wall seconds of the last clip.
        baseline_seconds: wall seconds of the target alone, in its fastest form that was run, over
            the same clips.
        committed, drafted, proposed, accepted, alone_steps, realignments, stale_drafts: summed
            counters of the runs.
        verify_steps: by number of candidates.
        texts: token ids by clip, in the order of the windows.
        lost: why a drafter failed, where it did.
    """

    contender: Contender
    windows: int = 0
    differing: list[tuple[str, int]] = field(default_factory=list)
    audio_seconds: float = 0.0
    wall_seconds: float = 0.0
    clip_seconds: float = 0.0
    baseline_seconds: float = 0.0
    committed: int = 0
    drafted: int = 0
    proposed: int = 0
    accepted: int = 0
    alone_steps: int = 0
    realignments: int = 0
    stale_drafts: int = 0
    verify_steps: Histogram[int] = field(default_factory=Histogram)
    texts: dict[str, list[tuple[int, ...]]] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)

    @property
    def steps(self) -> int:
        """Forwards of the target, prompts not counted."""
        return self.alone_steps + sum(self.verify_steps.values())

    @property
    def tokens_per_step(self) -> float | None:
        """Mean number of tokens that a step commits."""
        return self.committed / self.steps if self.steps else None

    def add(self, counters: Counters) -> None:
        """Takes in the counters of one run."""
        self.windows += counters.windows
        self.committed += counters.committed
        self.drafted += counters.drafted
        self.proposed += counters.proposed
        self.accepted += counters.accepted
        self.alone_steps += counters.alone_steps
        self.realignments += counters.realignments
        self.stale_drafts += counters.stale_drafts
        self.verify_steps.update(counters.verify_steps)
        self.clip_seconds = counters.seconds["wall"]
        self.wall_seconds += self.clip_seconds


def contenders(
    methods: Sequence[str],
    drafters: Sequence[str],
    budgets: Sequence[int],
    row_invariance: str = "even",
) -> list[Contender]:
    """Every combination; the reference comes first, whether it was asked for or not.

    Args:
        row_invariance: the target's (see `as2d_cli.catalog.Bundle`).
    """
    found = [REFERENCE]
    if "target" in methods and row_invariance == "even":
        # The honest rival: one row a step is faster, and as good where nothing is verified. A
        # target that is invariant for any number of rows takes one row in exact mode as well.
        found.append(Contender("target", exact=False))
    if "as2d" in methods:
        found += [Contender("as2d", drafter, budget) for drafter in drafters for budget in budgets]
    return found


def compare(
    clips: Sequence[Clip],
    entrants: Sequence[Contender],
    target: Model,
    drafters: Mapping[str, Model],
    *,
    repeat: int = 1,
    default_language: str = "en",
    report: Callable[[int, int, Clip], None] = lambda done, of, clip: None,
    skipped: Callable[[As2dError], None] = lambda error: None,
) -> Iterator[list[Outcome]]:
    """Runs all contenders on one clip after the other, in alternating order (A B C, then C B A).

    A drafter that does not know a clip's language sits that clip out. Yields the outcomes so far
    after each clip, the same objects each time.

    Args:
        repeat: how often all clips are gone through.
        default_language: of clips that do not say.
        report: called before each clip with its number, how many there are, and itself.
        skipped: called with the reason why a clip cannot be used; the others go on.

    Raises:
        As2dError: the reference cannot be run.
    """
    outcomes = [Outcome(contender) for contender in entrants]
    with ExitStack() as stack:
        engines = _Engines(stack, target, drafters)
        total = repeat * len(clips)
        forward = True
        for number in range(total):
            clip = clips[number % len(clips)]
            report(number, total, clip)
            language = clip.language or default_language
            try:
                pieces = _pieces(clip)
            except As2dError as error:
                skipped(error)
                continue
            running = [
                outcome
                for outcome in outcomes
                if pieces
                and (
                    outcome.contender.drafter is None
                    or language in drafters[outcome.contender.drafter].languages
                )
            ]
            order = running if forward else running[::-1]
            forward = not forward
            for outcome in order:
                _run(engines.of(outcome.contender), outcome, clip, pieces, target, language)
            _judge(running, clip, pieces)
            yield outcomes


def _pieces(clip: Clip) -> list[AudioWindow]:
    with AudioFile(clip.path) as audio:
        return [window for window in windows(audio) if not is_silent(window.samples)]


class _Engines:
    """One engine for each way of sharing the cores, opened when first used."""

    def __init__(self, stack: ExitStack, target: Model, drafters: Mapping[str, Model]) -> None:
        self._stack = stack
        self._target = target
        self._drafters = drafters
        self._open: dict[str | None, Engine] = {}

    def of(self, contender: Contender) -> tuple[Engine, Plan]:
        """The engine, and the plan of this contender on it."""
        plan = make_plan(contender.method, contender.budget)
        engine = self._open.get(contender.drafter)
        if engine is None:
            drafter = self._drafters[contender.drafter] if contender.drafter else None
            engine = self._stack.enter_context(Engine.open(self._target, drafter, plan))
            if engine.warnings:
                raise As2dError(engine.warnings[0])
            self._open[contender.drafter] = engine
        return engine, plan


def _run(
    engine: tuple[Engine, Plan],
    outcome: Outcome,
    clip: Clip,
    pieces: Sequence[AudioWindow],
    target: Model,
    language: str,
) -> None:
    contender = outcome.contender
    run = engine[0].start(budget=contender.budget, exact=contender.exact)
    try:
        ids = prompt(target, language)
        for piece in pieces:
            room = target.context - len(ids)
            run.submit(Window(piece.index, piece.start, piece.samples, ids, room, language))
        run.finish()
        texts = _collect(run.poll, outcome)
    except BaseException:
        run.cancel()
        raise
    outcome.add(run.counters())
    outcome.texts[str(clip.path)] = [texts[piece.index] for piece in pieces]


def _collect(
    poll: Callable[[float], Sequence[object]], outcome: Outcome
) -> dict[int, tuple[int, ...]]:
    texts: dict[int, tuple[int, ...]] = {}
    while True:
        for event in poll(0.1):
            match event:
                case WindowFinished(window=index, tokens=tokens):
                    texts[index] = tokens
                case DrafterLost(message=message):
                    outcome.lost.append(message)
                case RunFinished(error=error):
                    if error is not None:
                        raise As2dError(error)
                    return texts
                case _:
                    pass


def _judge(running: Sequence[Outcome], clip: Clip, pieces: Sequence[AudioWindow]) -> None:
    """Compares each with the reference, which is among them."""
    if not running:
        return
    name = str(clip.path)
    reference = next(o for o in running if o.contender == REFERENCE)
    said = reference.texts[name]
    duration = sum(len(piece.samples) for piece in pieces) / RATE
    baseline = min(o.clip_seconds for o in running if o.contender.method == "target")
    for outcome in running:
        outcome.audio_seconds += duration
        outcome.baseline_seconds += baseline
        outcome.differing += [
            (name, piece.index)
            for piece, own, right in zip(pieces, outcome.texts[name], said, strict=True)
            if own != right
        ]
