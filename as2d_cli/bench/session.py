"""A whole bench: data, models, warm-up, timing, memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Protocol

from as2d_cli import _native
from as2d_cli.audio.decode import RATE
from as2d_cli.audio.windows import AudioWindow
from as2d_cli.bench.calibrate import calibrate
from as2d_cli.bench.contenders import ORACLE, Contender, contenders
from as2d_cli.bench.dataset import Clip, default_clips, load_clips
from as2d_cli.bench.engines import Engines, Seat
from as2d_cli.bench.measure import Ran, Sample, Turn, run_unit, schedule
from as2d_cli.bench.memory import peak_memory
from as2d_cli.bench.prediction import predict, predictable
from as2d_cli.bench.results import Results
from as2d_cli.bench.units import Recordings, Unit, load_units
from as2d_cli.bench.words import counted
from as2d_cli.decoding import PlanRequest
from as2d_cli.errors import As2dError, ExitStatus
from as2d_cli.methods import needs_drafter
from as2d_cli.profile.alignment import Tracer, WindowTrace, trace_of
from as2d_cli.profile.costs import CostModel
from as2d_cli.tasks.interrupt import interruptible
from as2d_cli.tasks.models import (
    Backend,
    ModelRequest,
    PlanFace,
    check_drafter,
    drafter_name,
    make_plan,
)
from as2d_cli.text.whisper_prompt import is_multilingual

__all__ = ["BenchRequest", "Session", "Watch"]

_ANYTHING = PlanRequest()


@dataclass(frozen=True)
class BenchRequest:
    """What is asked for.

    Attributes:
        sources: see `load_clips`; none for the clips that are here anyway.
        target, drafters: ids or paths; a drafter may be ``oracle`` or the target.
        windows: of a recording in a batch; only where recordings are timed.
        whole: time recordings, not windows.
        language: only clips in it, and of clips that do not say.
        spans: keep what the lanes did when.
        memory: measure peak memory.
        asked: what is asked of every plan beside its method.
        planned: one more contender, as its plan has it; None for none.
        alignment: look into what the drafts are worth, whether or not something needs it.
    """

    sources: Sequence[Path]
    target: str
    methods: Sequence[str]
    drafters: Sequence[str]
    budgets: Sequence[int]
    windows: Sequence[int] = (1,)
    repeat: int = 1
    whole: bool = False
    language: str | None = None
    offline: bool = False
    spans: bool = False
    memory: bool = True
    asked: PlanRequest = _ANYTHING
    planned: ModelRequest | None = None
    alignment: bool = False


class Watch(Protocol):
    """Who is told how far it is."""

    def begin(self, summary: str, total: float) -> None:
        """The work is `total`, in seconds of audio."""

    def doing(self, what: str) -> None:
        """This comes next."""

    def advance(self, amount: float) -> None:
        """So much of the total is done."""

    def line(self, text: str) -> None:
        """A problem, or something worth knowing."""


class Session:
    """One bench. Making it gets the data and the models; `run` does the work.

    Attributes:
        results: what is known so far, whenever `run` ends and however.
    """

    def __init__(self, request: BenchRequest, backend: Backend, watch: Watch) -> None:
        """Raises As2dError: no clip can be used, a model cannot be had, or two are no pair."""
        self._request = request
        self._backend = backend
        self._watch = watch
        clips = load_clips(request.sources) if request.sources else default_clips()
        clips = [c for c in clips if request.language in (None, c.language or request.language)]
        if not clips:
            raise As2dError(f"no clips in language {request.language}", status=ExitStatus.USAGE)
        methods = self._methods()
        self._plan, planned = self._planned()
        names = request.drafters if any(needs_drafter(method) for method in methods) else []
        target = backend.ensure(request.target, request.offline)
        used = [*names, planned.drafter] if planned is not None and planned.drafter else names
        drafters = {n: backend.ensure(n, request.offline) for n in used if n != ORACLE}
        for name, drafter in drafters.items():
            check_drafter(name, drafter, target)
        self._target = target
        self._drafters = drafters
        self._recordings = Recordings()
        entrants = contenders(
            methods,
            names,
            request.budgets,
            request.windows if request.whole else (1,),
            ceilings={ORACLE} | {name for name, d in drafters.items() if d.id == target.id},
            row_invariance=target.row_invariance,
        )
        if planned is not None:
            entrants.append(planned)
        units = self._units(clips)
        self.results = Results(target, drafters, entrants, units, request.whole, request.repeat)

    def run(self) -> None:
        """Measures everything; may be interrupted at any time.

        Raises:
            As2dError: the target failed.
        """
        results = self.results
        entered = {
            unit: [i for i in range(len(results.contenders)) if results.takes_part(i, unit)]
            for unit in range(len(results.units))
        }
        firsts = {i: unit for unit in reversed(entered) for i in entered[unit]}
        turns = list(schedule(len(results.units), self._request.repeat, entered))
        self._watch.begin(
            self._summary(), sum(map(self._size, [*firsts.values(), *(t.unit for t in turns)]))
        )
        with ExitStack() as stack:
            engines = Engines(
                stack, self._backend, self._target, self._drafters, self._request.asked, self._plan
            )
            self._calibrate(stack, engines)
            for contender, unit in sorted(firsts.items()):
                self._warm_up(engines, contender, unit)
            for turn in turns:
                self._take(engines, turn)
            models = self._models()
            self._trace(engines, models)
        predict(results, models)
        if self._request.memory:
            for contender, unit in sorted(self._longest(entered).items()):
                self._weigh(engines, contender, unit)
        results.complete = True

    # Data

    def _methods(self) -> list[str]:
        methods = list(self._request.methods)
        if not self._request.whole and "batched" in methods:
            self._watch.line(
                "batched needs several windows at once: left out without --by recording"
            )
            methods.remove("batched")
        return methods

    def _planned(self) -> tuple[PlanFace | None, Contender | None]:
        """The plan of a contender of its own."""
        asked = self._request.planned
        if asked is None:
            return None, None
        plan = make_plan(asked, self._backend, self._request.language)
        drafter = None
        if needs_drafter(plan.method):
            language = self._request.language
            drafter = drafter_name(asked.drafter, asked.target, language, self._backend)
        budget = plan.budget if plan.method != "target" else 0
        return plan, Contender(plan.method, drafter, budget, plan.windows, planned=True)

    def _units(self, clips: Sequence[Clip]) -> list[Unit]:
        with ExitStack() as stack:
            seats: list[Seat] = []

            def language(clip: Clip, window: AudioWindow) -> str:
                code = clip.language or self._request.language
                if not code and not is_multilingual(self._target):
                    return next(iter(self._target.languages))
                if not code:
                    if not seats:
                        engines = Engines(
                            stack, self._backend, self._target, {}, self._request.asked
                        )
                        seats.append(engines.open_alone(stack, engines.alone_cores()))
                    engine = seats[0].engine
                    return interruptible(lambda: engine.detect_language(window.samples))[0]
                if code not in (self._target.language_tokens or self._target.languages):
                    raise As2dError(f"{clip.path}: {self._target.id} does not know language {code}")
                return code

            units = load_units(
                clips,
                whole=self._request.whole,
                language=language,
                left_out=lambda error: self._watch.line(f"left out: {error}"),
            )
        if not units:
            raise As2dError("nothing to measure: no clip can be used", status=ExitStatus.USAGE)
        return units

    def _summary(self) -> str:
        results = self.results
        recordings = len({unit.recording for unit in results.units})
        windows = sum(len(unit.pieces) for unit in results.units)
        seconds = sum(unit.audio_seconds for unit in results.units)
        return (
            f"{counted(windows, 'window')} of {counted(recordings, 'recording')} "
            f"({seconds:.0f} s of audio), {counted(len(results.contenders), 'contender')}, "
            f"{counted(results.repeat, 'round')}"
        )

    def _size(self, unit: int) -> float:
        return self.results.units[unit].audio_seconds

    # Timing

    def _calibrate(self, stack: ExitStack, engines: Engines) -> None:
        results = self.results
        self._watch.doing("warm-up")
        results.widths = calibrate(
            stack,
            engines,
            results.contenders[results.baseline],
            results.units,
            self._recordings,
            self._target,
        )

    def _warm_up(self, engines: Engines, contender: int, unit: int) -> None:
        self._watch.doing("warm-up")
        seat = engines.of(self.results.contenders[contender])
        self.results.load_seconds[contender] = seat.load_seconds
        if seat.lost is None:
            seat.lost = self._run(engines, contender, unit).lost
        if seat.lost is not None:
            self._withdraw(contender, seat.lost)
        self._watch.advance(self._size(unit))

    def _take(self, engines: Engines, turn: Turn) -> None:
        results = self.results
        contender, unit = results.contenders[turn.contender], results.units[turn.unit]
        seat = engines.of(contender)
        if seat.lost is not None:
            self._withdraw(turn.contender, seat.lost)
        if turn.contender not in results.withdrawn:
            self._watch.doing(f"{contender.label}: {unit.name}")
            ran = self._run(engines, turn.contender, turn.unit)
            if not self._request.spans:
                ran = replace(ran, spans=())
            results.samples.append(Sample(turn, len(results.samples), ran))
            if contender.reference:
                results.hear(turn.unit, ran.texts)
            seat.lost = ran.lost
            if ran.lost is not None:
                self._withdraw(turn.contender, ran.lost)
        self._watch.advance(self._size(turn.unit))

    def _run(self, engines: Engines, contender: int, unit: int) -> Ran:
        results = self.results
        entrant, work = results.contenders[contender], results.units[unit]
        windows = self._recordings.windows(work)
        seat = engines.of(entrant)
        if entrant.drafter == ORACLE:
            seat.engine.replay(dict(enumerate(self._said(engines, unit))))
        ran = run_unit(seat, entrant, work, windows, self._target)
        results.lanes[contender] = ran.counters.lanes
        return ran

    def _said(self, engines: Engines, unit: int) -> Sequence[Sequence[int]]:
        """What the reference says, who may not have had its turn yet."""
        results = self.results
        if unit not in results.texts:
            results.hear(unit, self._run(engines, results.reference, unit).texts)
        return results.texts[unit]

    def _withdraw(self, contender: int, why: str) -> None:
        if contender not in self.results.withdrawn:
            self.results.withdrawn[contender] = why
            self._watch.line(f"{self.results.contenders[contender].label}: withdrawn: {why}")

    # Prediction

    def _models(self) -> dict[str | None, CostModel]:
        """What was measured here before, by drafter."""
        found = {None: self._backend.costs(self._target, None)} | {
            name: self._backend.costs(self._target, drafter)
            for name, drafter in self._drafters.items()
        }
        return {name: costs for name, costs in found.items() if costs is not None}

    def _trace(self, engines: Engines, models: Mapping[str | None, CostModel]) -> None:
        """What the drafts of each window are worth, where a prediction or a file needs it."""
        results = self.results
        entered = {
            c.drafter: number
            for number, c in reversed(list(enumerate(results.contenders)))
            if c.method == "as2d" and c.drafter in self._drafters
            if self._request.alignment or predictable(c, models)
        }
        for drafter, number in entered.items():
            if drafter is None or number in results.withdrawn:
                continue
            traces = results.traces[drafter] = {}
            for unit in results.texts:
                if results.takes_part(number, unit):
                    self._watch.doing(f"{drafter}: drafts of {results.units[unit].name}")
                    traces[unit] = self._traced(engines.of(results.contenders[number]), unit)

    def _traced(self, seat: Seat, unit: int) -> list[WindowTrace]:
        work, texts = self.results.units[unit], self.results.texts[unit]
        found = []
        for window, text in zip(self._recordings.windows(work), texts, strict=True):
            timing = interruptible(partial(seat.engine.time_draft, window.samples, work.language))
            seconds = len(window.samples) / RATE
            found.append(
                trace_of(self._tracer, seconds, text, timing["tokens"], self._target.tokens["end"])
            )
        return found

    @cached_property
    def _tracer(self) -> Tracer:
        return _native.Replay(self._target.path / self._target.vocabulary_file)

    # Memory

    def _longest(self, entered: dict[int, list[int]]) -> dict[int, int]:
        by_length = sorted(entered, key=self._size)
        return {
            i: unit for unit in by_length for i in entered[unit] if i not in self.results.withdrawn
        }

    def _weigh(self, engines: Engines, contender: int, unit: int) -> None:
        results = self.results
        entrant = results.contenders[contender]
        self._watch.doing(f"{entrant.label}: memory")
        try:
            results.peak_memory[contender] = peak_memory(
                entrant,
                self._target,
                self._drafters.get(entrant.drafter or ""),
                engines.plan(entrant),
                results.units[unit],
                results.texts[unit] if entrant.drafter == ORACLE else (),
            )
        except As2dError as error:
            self._watch.line(f"{entrant.label}: no peak memory: {error}")
