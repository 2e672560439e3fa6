"""A whole bench: data, models, warm-up, timing, memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Protocol, cast

from as2d_cli import _native
from as2d_cli.audio.decode import RATE
from as2d_cli.audio.windows import AudioWindow
from as2d_cli.bench.calibrate import calibrate
from as2d_cli.bench.contenders import ORACLE, Contender, contenders
from as2d_cli.bench.dataset import Clip, default_clips, load_clips
from as2d_cli.bench.engines import BenchPlan, Engines, Seat
from as2d_cli.bench.measure import Ran, Sample, Turn, run_unit, schedule
from as2d_cli.bench.memory import peak_memory
from as2d_cli.bench.planned import plan_units, planned_contender
from as2d_cli.bench.prediction import predict, predictable
from as2d_cli.bench.questions import (
    About,
    Question,
    UnusableError,
    listened,
    question_units,
    read,
)
from as2d_cli.bench.results import Results
from as2d_cli.bench.units import Recordings, Unit, load_units
from as2d_cli.bench.words import counted
from as2d_cli.decoding import PlanRequest
from as2d_cli.errors import As2dError, ExitStatus
from as2d_cli.methods import needs_drafter
from as2d_cli.profile.alignment import Tracer, WindowTrace, trace_of
from as2d_cli.profile.costs import CostModel
from as2d_cli.tasks.answer_planning import plan_answers
from as2d_cli.tasks.asking import hear
from as2d_cli.tasks.interrupt import interruptible
from as2d_cli.tasks.models import (
    Backend,
    Model,
    ModelRequest,
    check_answerer,
    check_drafter,
    check_listener,
    hears,
)
from as2d_cli.tasks.prompting import Prompter, same_tokens
from as2d_cli.tasks.recording import record
from as2d_cli.tasks.sources import file_source
from as2d_cli.tasks.transcript import Progress, Transcript
from as2d_cli.tasks.transcription import TranscribeOptions
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
        questions: to be answered by the target, which is a language model; None to transcribe.
        speech: how transcripts to ask about are made.
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
    questions: Sequence[Question] | None = None
    speech: ModelRequest | None = None

    @property
    def noun(self) -> str:
        """What a unit is called."""
        if self.questions is not None:
            return "question"
        return "recording" if self.whole else "window"


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
        names = request.drafters if any(needs_drafter(method) for method in methods) else []
        target = self._get_target()
        self._target = target
        drafters = self._drafters = self._models_of(names)
        self._recordings = Recordings()
        entrants = contenders(
            methods,
            names,
            request.budgets,
            request.windows if request.whole else (1,),
            ceilings={ORACLE} | {name for name, d in drafters.items() if d.id == target.id},
            row_invariance=target.row_invariance,
        )
        units = self._units(clips) if request.questions is None else self._asked(clips)
        if not units:
            raise As2dError("nothing to measure: no clip can be used", status=ExitStatus.USAGE)
        planned = {}
        if request.planned is not None:
            asked = request.planned
            if request.questions is not None:
                asked = plan_answers(asked, backend).request
            planned = plan_units(asked, backend, units)
            entrants.append(planned_contender(planned))
            used = dict.fromkeys(p.entrant.drafter for p in planned.values())
            drafters |= self._models_of([name for name in used if name and name not in drafters])
        self.results = Results(
            target, drafters, entrants, units, request.noun, request.repeat, planned=planned
        )

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
        firsts = self._firsts(entered)
        turns = list(schedule(len(results.units), self._request.repeat, entered))
        self._watch.begin(
            self._summary(),
            sum(map(self._size, [*(u for _, u in firsts), *(t.unit for t in turns)])),
        )
        with ExitStack() as stack:
            engines = Engines(
                stack, self._backend, self._target, self._drafters, self._request.asked
            )
            self._calibrate(stack, engines)
            results.shared = set(self._shared(engines))
            for contender, unit in firsts:
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
            how = " without --by recording" if self._request.questions is None else ""
            self._watch.line(f"batched needs several windows at once: left out{how}")
            methods.remove("batched")
        return methods

    def _models_of(self, names: Iterable[str]) -> dict[str, Model]:
        """Drafters by what the user calls them."""
        request = self._request
        found = {n: self._backend.ensure(n, request.offline) for n in names if n != ORACLE}
        for name, drafter in found.items():
            check_drafter(name, drafter, self._target)
            reads = request.questions is not None and not hears(self._target)
            if reads and not same_tokens(drafter, self._target):
                raise As2dError(
                    f"drafter {name} has other tokens than {self._target.id}",
                    remedy="choose one with the same",
                    status=ExitStatus.USAGE,
                )
        return found

    def _firsts(self, entered: Mapping[int, Sequence[int]]) -> list[tuple[int, int]]:
        """Each contender, and each plan of one, with the first unit that it has."""
        firsts: dict[tuple[int, Contender], int] = {}
        for unit, numbers in entered.items():
            for number in numbers:
                firsts.setdefault((number, self.results.entrant(number, unit)), unit)
        return sorted((number, unit) for (number, _), unit in firsts.items())

    def _shared(self, engines: Engines) -> Iterator[int]:
        """Units whose plan is what the baseline does."""
        results = self.results
        if results.baseline != results.reference:
            return  # the baseline takes a row less in each step than a plan may
        cores = engines.baseline_cores or engines.alone_cores()
        for unit, planned in results.planned.items():
            plan = cast(BenchPlan, planned.plan)
            if planned.entrant.method == "target" and plan.target_cores == cores:
                yield unit

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

            return load_units(
                clips,
                whole=self._request.whole,
                language=language,
                left_out=lambda error: self._watch.line(f"left out: {error}"),
            )

    def _asked(self, clips: Sequence[Clip]) -> list[Unit]:
        """Questions about the clips, or about transcripts of them."""
        request = self._request
        assert request.questions is not None and request.speech is not None
        speech, ear, backend = request.speech, _Ear(self._watch), self._backend

        def about(clip: Clip, prompter: Prompter) -> About | None:
            source = file_source(clip.path)
            if hears(self._target):
                self._watch.doing(f"speech in {clip.path.name}")
                recording = record(source, monitor=ear, backend=backend, offline=request.offline)
                if recording is None:
                    raise UnusableError
                return listened(recording, self._target, prompter)
            self._watch.doing(f"transcript of {clip.path.name}")
            spoken = TranscribeOptions(clip.language or request.language)
            transcript = hear(source, speech, spoken, monitor=ear, backend=backend)
            if transcript is None:
                raise UnusableError
            return read(transcript, prompter)

        return question_units(
            clips, request.questions, self._target, about=about, left_out=self._watch.line
        )

    def _get_target(self) -> Model:
        """Raises As2dError: it cannot be had, or is of no use for this task."""
        request = self._request
        if request.questions is not None:
            what = self._backend.to_fetch(request.target)
            if what is not None and not request.offline:
                raise As2dError(
                    f"{request.target} is not on this machine ({what})",
                    remedy=f"run 'as2d models pull {request.target}'",
                    status=ExitStatus.UNAVAILABLE,
                )
        target = self._backend.ensure(request.target, request.offline)
        (check_listener if request.questions is None else check_answerer)(target)
        return target

    def _summary(self) -> str:
        results = self.results
        recordings = len({unit.recording for unit in results.units})
        pieces = sum(len(unit.pieces) for unit in results.units)
        noun = "window" if self._request.questions is None else "question"
        seconds = sum(unit.audio_seconds for unit in results.units)
        return (
            f"{counted(pieces, noun)} of {counted(recordings, 'recording')} "
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

    def _seat(self, engines: Engines, contender: int, unit: int) -> Seat:
        """The engine of a contender, for this unit."""
        entrant = self.results.entrant(contender, unit)
        return engines.of(entrant, self.results.planned[unit].plan if entrant.planned else None)

    def _is_shared(self, contender: int, unit: int) -> bool:
        return self.results.contenders[contender].planned and unit in self.results.shared

    def _warm_up(self, engines: Engines, contender: int, unit: int) -> None:
        self._watch.doing("warm-up")
        if self._is_shared(contender, unit):
            self._watch.advance(self._size(unit))
            return
        seat = self._seat(engines, contender, unit)
        self.results.load_seconds[contender] = seat.load_seconds
        if seat.lost is None:
            seat.lost = self._run(engines, contender, unit).lost
        if seat.lost is not None:
            self._withdraw(contender, seat.lost)
        self._watch.advance(self._size(unit))

    def _take(self, engines: Engines, turn: Turn) -> None:
        results = self.results
        contender, unit = results.contenders[turn.contender], results.units[turn.unit]
        if self._is_shared(turn.contender, turn.unit):
            self._watch.advance(self._size(turn.unit))
            return
        seat = self._seat(engines, turn.contender, turn.unit)
        if seat.lost is not None:
            self._withdraw(turn.contender, seat.lost)
        if turn.contender not in results.withdrawn:
            self._watch.doing(f"{contender.label}: {unit.name}")
            ran = self._run(engines, turn.contender, turn.unit)
            if not self._request.spans:
                ran = replace(ran, spans=())
            results.samples.append(Sample(turn, len(results.samples), ran))
            if turn.contender == results.baseline:
                self._share(turn, ran)
            if contender.reference:
                results.hear(turn.unit, ran.texts)
            seat.lost = ran.lost
            if ran.lost is not None:
                self._withdraw(turn.contender, ran.lost)
        self._watch.advance(self._size(turn.unit))

    def _share(self, turn: Turn, ran: Ran) -> None:
        """A run of the baseline is one of the plans that are the same, too."""
        results = self.results
        for number, contender in enumerate(results.contenders):
            if contender.planned and turn.unit in results.shared:
                same = replace(turn, contender=number)
                results.samples.append(Sample(same, len(results.samples), ran))
                results.unit_lanes[turn.unit] = ran.counters.lanes
                results.lanes[number] = ran.counters.lanes

    def _run(self, engines: Engines, contender: int, unit: int) -> Ran:
        results = self.results
        entrant, work = results.entrant(contender, unit), results.units[unit]
        windows = self._recordings.windows(work)
        seat = self._seat(engines, contender, unit)
        if entrant.drafter == ORACLE:
            seat.engine.replay(dict(enumerate(self._said(engines, unit))))
        ran = run_unit(seat, entrant, work, windows, self._target)
        results.lanes[contender] = ran.counters.lanes
        if entrant.planned:
            results.unit_lanes[unit] = ran.counters.lanes
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
        for number in range(len(results.contenders)):
            for unit in results.texts:
                entrant = results.entrant(number, unit)
                drafter = entrant.drafter
                if entrant.method != "as2d" or drafter not in self._drafters or drafter is None:
                    continue
                if number in results.withdrawn or not results.takes_part(number, unit):
                    continue
                if not (self._request.alignment or predictable(entrant, models)):
                    continue
                traces = results.traces.setdefault(drafter, {})
                if unit not in traces:
                    self._watch.doing(f"{drafter}: drafts of {results.units[unit].name}")
                    traces[unit] = self._traced(self._seat(engines, number, unit), unit)

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
        entrant = results.entrant(contender, unit)
        plan = results.planned[unit].plan if entrant.planned else engines.plan(entrant)
        self._watch.doing(f"{entrant.label}: memory")
        try:
            results.peak_memory[contender] = peak_memory(
                entrant,
                self._target,
                self._drafters.get(entrant.drafter or ""),
                plan,
                results.units[unit],
                results.texts[unit] if entrant.drafter == ORACLE else (),
            )
        except As2dError as error:
            self._watch.line(f"{entrant.label}: no peak memory: {error}")


class _Ear:
    """Passes on what goes wrong while a recording is heard."""

    def __init__(self, watch: Watch) -> None:
        self.warning = self.error = watch.line

    def info(self, text: str) -> None:
        """Not of interest here."""

    def notice(self, text: str) -> None:
        """Neither."""

    def progress(self, progress: Progress) -> None:
        """Neither."""

    def finished(self, transcript: Transcript) -> None:
        """Neither."""
