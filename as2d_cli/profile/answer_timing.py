"""Measures what answering costs here: the work of both lanes, and each method's answers.

A language model's steps can be timed by themselves, but how many tokens a draft gains hangs on the
pair of models and on what is asked. So every method answers the same questions, of both kinds, in
turn and with nothing computed before.
"""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from as2d_cli.decoding import Window
from as2d_cli.decoding.costs import RunCosts
from as2d_cli.decoding.counters import Counters
from as2d_cli.decoding.events import DrafterLost, RunFinished
from as2d_cli.errors import As2dError, ExitStatus
from as2d_cli.methods import IN_TURN, SPLIT, default_budget
from as2d_cli.profile.answer_costs import FREE, SOURCE, AnswerCosts, Trial
from as2d_cli.profile.layouts import Layout
from as2d_cli.profile.measure import Effort, Watch
from as2d_cli.profile.spread import spread_of, typical_noise

__all__ = ["QUESTIONS", "TRANSCRIPT", "AnswerSubject", "measure_answers"]

TRANSCRIPT = (
    "Four score and seven years ago our fathers brought forth upon this continent a new nation, "
    "conceived in liberty, and dedicated to the proposition that all men are created equal.",
    "Now we are engaged in a great civil war, testing whether that nation, or any nation so "
    "conceived and so dedicated, can long endure.",
    "We are met on a great battle-field of that war.",
)
"""Abraham Lincoln, 19 November 1863."""

QUESTIONS = {FREE: "what is this about, in your own words?", SOURCE: "correct the transcript"}

MOST_TOKENS = 40
"""Of an answer: enough for a method to show what it gains."""

_REPEATS = 5
"""Forwards of each number of rows in a round."""

_LEAST_ROUNDS = 2
"""One says nothing of what the next would say."""

_MOST_ROUNDS = 8


class TimedRun(Protocol):
    """What is used of a run (see `as2d_cli.decoding.Run`)."""

    def submit(self, window: Any, /) -> None: ...
    def finish(self) -> None: ...
    def cancel(self) -> None: ...
    def poll(self, timeout: float, /) -> Sequence[Any]: ...
    def counters(self) -> Counters: ...


class AnswerEngine(Protocol):
    """What is used of an engine (see `as2d_cli.decoding.Engine`)."""

    def time_steps(self, rows: Sequence[int], repeats: int, /) -> list[list[float]]: ...
    def start(
        self, draft: bool = True, *, method: str, budget: int, costs: RunCosts | None
    ) -> TimedRun: ...


@dataclass(frozen=True)
class AnswerSubject:
    """What is measured.

    Attributes:
        target, drafter: ids.
        cores: of the target where it is alone; the drafter, in turn with it, has them, too.
        split: cores of both lanes at work, or None.
        open: an engine with these models on these cores.
        prompts: by kind of answer, each as the target's tokens and as the drafter's.
    """

    target: str
    drafter: str | None
    cores: tuple[int, ...]
    split: Layout | None
    open: Callable[[Layout], AbstractContextManager[Any]]
    prompts: Mapping[str, tuple[Sequence[int], Sequence[int]]]


def measure_answers(subject: AnswerSubject, effort: Effort, watch: Watch) -> AnswerCosts:
    """Measures in rounds until the time of `effort` is over, two in any case.

    Raises:
        As2dError: a model cannot be loaded, or fails.
    """
    pair = subject.target + (f" with {subject.drafter}" if subject.drafter else "")
    watch.begin(f"measuring {pair}, every way to draft its answers", effort.seconds)
    with ExitStack() as stack:
        whole = subject.cores if subject.drafter else ()
        engines = {False: stack.enter_context(subject.open((subject.cores, whole)))}
        if subject.split is not None:
            engines[True] = stack.enter_context(subject.open(subject.split))
        return _Measuring(subject, engines, effort, watch).all()


class _Measuring:
    def __init__(
        self,
        subject: AnswerSubject,
        engines: Mapping[bool, AnswerEngine],
        effort: Effort,
        watch: Watch,
    ) -> None:
        self._subject, self._engines = subject, engines
        self._effort, self._watch = effort, watch
        self._steps: dict[int, list[float]] = defaultdict(list)
        self._seen: dict[tuple[str, str], list[Counters]] = defaultdict(list)

    def all(self) -> AnswerCosts:
        methods = ["target", "lookup"]
        if self._subject.drafter is not None:
            methods += ["coupled"] + (["as2d", "anchored"] if True in self._engines else [])
        begun = told = time.monotonic()
        for number in range(_MOST_ROUNDS):
            start = time.monotonic()
            self._watch.doing("steps")
            times = self._engines[False].time_steps(self._effort.rows, _REPEATS)
            for rows, samples in zip(self._effort.rows, times, strict=True):
                self._steps[rows] += samples
            for method in methods if number % 2 == 0 else methods[::-1]:
                self._watch.doing(method)
                for kind in self._subject.prompts:
                    self._seen[method, kind].append(self._answer(method, kind))
                now = time.monotonic()
                self._watch.advance(now - told)
                told = now
            late = told + (told - start) / 2 > begun + self._effort.seconds
            if late and number + 1 >= _LEAST_ROUNDS:
                break
        return self._costs(methods)

    def _step_costs(self) -> dict[int, float]:
        """Seconds by rows. More rows are never cheaper: what seemed so is what else went on."""
        found = {rows: statistics.median(samples) for rows, samples in self._steps.items()}
        return {rows: min(s for n, s in found.items() if n >= rows) for rows in found}

    def _answer(self, method: str, kind: str) -> Counters:
        engine = self._engines[method in SPLIT]
        ids, draft_ids = self._subject.prompts[kind]
        # So that nothing of the prompt is there from the answer before, in either model.
        forget = "coupled" if self._subject.drafter is not None else "target"
        others = [_another(ids), _another(draft_ids)]
        self._run(engine, forget, Window(0, 0.0, _NOTHING, others[0], 3, draft_prompt=others[1]))
        return self._run(
            engine, method, Window(0, 0.0, _NOTHING, ids, MOST_TOKENS, draft_prompt=draft_ids)
        )

    def _run(self, engine: AnswerEngine, method: str, window: Window) -> Counters:
        steps = self._step_costs()
        # No method is to look worse for a guess of what steps cost.
        costs = RunCosts(steps, {}, 0.0, 0.0)
        drafts = method in IN_TURN + SPLIT
        run = engine.start(drafts, method=method, budget=default_budget(method), costs=costs)
        try:
            run.submit(window)
            run.finish()
            while True:
                for event in run.poll(0.05):
                    if isinstance(event, DrafterLost):
                        raise _failed(self._subject.drafter, event.message)
                    if isinstance(event, RunFinished):
                        if event.error:
                            raise _failed(self._subject.target, event.error)
                        return run.counters()
        except BaseException:
            run.cancel()
            raise

    def _costs(self, methods: Sequence[str]) -> AnswerCosts:
        subject = self._subject
        steps = self._step_costs()
        prompts = {kind: len(ids) for kind, (ids, _) in subject.prompts.items()}
        noise = typical_noise([c.seconds["wall"] for c in seen] for seen in self._seen.values())

        def over(names: Sequence[str], of: Callable[[str, Counters], float | None]) -> float | None:
            found = [
                figure
                for (method, kind), all_seen in self._seen.items()
                if method in names
                for counters in all_seen
                if (figure := of(kind, counters)) is not None
            ]
            return statistics.median(found) if found else None

        def per_draft(kind: str, counters: Counters) -> float | None:
            drafted = counters.drafted
            return counters.seconds["draft_decode"] / drafted if drafted else None

        prompt = over(["target", "lookup"], lambda k, c: c.seconds["prompt"] / prompts[k])
        slower = over(["as2d", "anchored"], lambda k, c: _slower(c, steps))
        assert prompt is not None
        return AnswerCosts(
            target=subject.target,
            drafter=subject.drafter,
            cores=subject.cores,
            split=subject.split,
            steps=steps,
            beside={} if slower is None else {n: s * max(1.0, slower) for n, s in steps.items()},
            prompt=prompt,
            draft_token=over(["coupled"], per_draft),
            draft_beside=over(["as2d", "anchored"], per_draft),
            draft_prompt=over(["coupled"], lambda k, c: c.seconds["draft_encode"] / prompts[k]),
            trials={
                method: {kind: _trial(self._seen[method, kind], noise) for kind in prompts}
                for method in methods
            },
        )


_NOTHING = np.empty(0, np.float32)


def _another(prompt: Sequence[int]) -> list[int]:
    """A short prompt that begins otherwise; none for none."""
    return [token for token in prompt if token != prompt[0]][:2]


def _trial(seen: Sequence[Counters], noise: float) -> Trial:
    seconds = [counters.seconds["wall"] for counters in seen]
    last = seen[-1]
    steps = last.alone_steps + sum(last.verify_steps.values())
    spread = spread_of(seconds, noise).high - 1
    return Trial(statistics.median(seconds), spread, last.committed / max(1, steps))


def _slower(counters: Counters, steps: Mapping[int, float]) -> float | None:
    """How many times as long the steps of a run took as `steps` has them."""
    made = {0: counters.alone_steps, **counters.verify_steps}
    expected = sum(count * _at_rows(steps, 1 + candidates) for candidates, count in made.items())
    return counters.seconds["decode"] / expected if expected else None


def _at_rows(steps: Mapping[int, float], rows: int) -> float:
    """Between two measured numbers of rows, a straight line; beyond them the nearest."""
    known = sorted(steps)
    return float(np.interp(rows, known, [steps[n] for n in known]))


def _failed(model: str | None, why: str) -> As2dError:
    return As2dError(f"{model} cannot be measured: {why}", status=ExitStatus.UNAVAILABLE)
