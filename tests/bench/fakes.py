"""A machine whose times and texts are known: an engine that says how long each run took."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

from as2d_cli.app import run
from as2d_cli.audio.decode import RATE
from as2d_cli.decoding import Counters, Plan, PlanRequest, Window
from as2d_cli.decoding.events import (
    DrafterLost,
    Event,
    LaneChanged,
    RunFinished,
    WindowFinished,
)
from as2d_cli.environment import Environment, Output
from as2d_cli.errors import As2dError, ExitStatus
from as2d_cli.profile.costs import CostModel
from as2d_cli.tasks.models import Backend, EngineFace, Model, PlanFace, Voice
from tests.fakes import (
    LANGUAGES,
    FakeModel,
    FakeRun,
    FakeVoice,
    Ran,
    Script,
    answerer,
    listener,
    tokens_of,
)


@dataclass(frozen=True)
class Job:
    """A run that the engine was asked for.

    Attributes:
        drafter: id of the model in the draft lane, or None; a script counts as None.
        cores: of the target.
        seconds: of audio, by window.
        script: what the drafter was told to replay, or None.
        prompt, limit: of the first window.
    """

    drafter: str | None
    cores: int
    method: str
    budget: int
    exact: bool
    seconds: tuple[float, ...]
    script: Mapping[int, Sequence[int]] | None
    prompt: tuple[int, ...] = ()
    limit: int = 0

    @property
    def name(self) -> str:
        """``target``, ``as2d x 8``, ``as2d oracle 8``."""
        if self.method == "target":
            return "target" if self.exact else "target (one row)"
        drafter = self.drafter or ("oracle" if self.script is not None else "?")
        return f"{self.method} {drafter} {self.budget}"


def _hello(job: Job, seconds: float) -> str:
    return f" hello {seconds:g}"


@dataclass
class FakeMachine:
    """What happens when.

    Attributes:
        cores: of the machine.
        says: the text of a window of so many seconds, whoever runs.
        takes: seconds of a run.
        before: called before a run is over; may raise.
        loses: names of jobs whose drafter fails.
        broken: drafters that cannot be loaded.
        row_invariance: of the target.
        folder: of the target, with its vocabulary; only for what drafts are worth.
        costs: what was measured before.
        plan: what is chosen where the choice is free, or None: the target alone.
        drafts: what a drafter says of a window, as tokens of the target.
        speech: what is heard, where it is transcribed to ask about it.
        to_fetch: what would have to be fetched.
        asked, jobs: what was asked for.
        adaptive: of each run, whether it adapts itself.
    """

    cores: int = 2
    says: Callable[[Job, float], str] = _hello
    takes: Callable[[Job], float] = lambda job: 1.0
    before: Callable[[Job], None] = lambda job: None
    loses: Sequence[str] = ()
    broken: Sequence[str] = ()
    row_invariance: str = "any"
    folder: Path = Path("/nowhere")
    costs: CostModel | None = None
    plan: Plan | None = None
    drafts: Sequence[int] = ()
    speech: Script = field(default_factory=Script)
    to_fetch: Mapping[str, str] = field(default_factory=dict)
    asked: list[PlanRequest] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    adaptive: list[bool] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """Of all jobs so far."""
        return [job.name for job in self.jobs]

    def backend(self) -> Backend:
        """Models whisper-base (four languages), x and y (English), heads of another target and
        of whisper-base, and two that answer, on this machine.
        """
        models: dict[str, Model] = {
            "whisper-base": FakeModel(
                "whisper-base",
                tuple(LANGUAGES),
                LANGUAGES,
                row_invariance=self.row_invariance,
                path=self.folder,
            ),
            "x": FakeModel("x"),
            "y": FakeModel("y"),
            "head": FakeModel("head", family="head", target="whisper-small"),
            "mine": FakeModel("mine", family="head", target="whisper-base"),
            "llm": answerer("llm"),
            "tiny-llm": answerer("tiny-llm", context=64),
            "hearing-llm": listener("hearing-llm"),
        }

        def ensure(name: str, offline: bool) -> Model:
            if name not in models:
                raise As2dError(f"no model {name}", status=ExitStatus.UNAVAILABLE)
            return models[name]

        def plan(request: PlanRequest) -> PlanFace:
            self.asked.append(request)
            if request.method == "auto" and self.plan is not None:
                return self.plan
            method, budget, target = request.method, request.budget, request.target_cores
            cores = tuple(map(int, target.split(","))) if target else tuple(range(self.cores))
            if method == "target":
                return Plan(method, cores, (), budget or 0)
            return Plan(method, cores[:-1] or cores, cores[-1:], budget or 0)

        def open_engine(target: Model, drafter: Model | None, plan: Any) -> Any:
            engine = _Engine(self, drafter.id if drafter else None, plan)
            if drafter is not None and drafter.id in self.broken:
                engine.warnings.append(f"no drafter, the target goes alone: {drafter.id} is broken")
            return nullcontext(cast(EngineFace, engine))

        def voice(offline: bool) -> Voice:
            return FakeVoice()

        return Backend(
            ensure,
            lambda target, language: "x" if self.plan is not None else None,
            lambda name: False,
            plan,
            open_engine,
            voice,
            lambda target, drafter: self.costs,
            self.to_fetch.get,
        )


class _Engine:
    def __init__(self, machine: FakeMachine, drafter: str | None, plan: Plan) -> None:
        self.machine, self.drafter, self.plan = machine, drafter, plan
        self.script: Mapping[int, Sequence[int]] | None = None
        self.warnings: list[str] = []
        self.notices: list[str] = []

    def detect_language(self, samples: Any, /) -> tuple[str, float]:
        return ("de", 0.9)

    def time_draft(self, samples: Any, language: str, /, *, lend: bool = True) -> dict[str, Any]:
        return {"encode": 0.1, "steps": 0.1, "tokens": self.machine.drafts, "complete": True}

    def replay(self, script: Mapping[int, Sequence[int]], /) -> None:
        self.script = script

    def start(
        self,
        draft: bool = True,
        *,
        method: str | None = None,
        budget: int | None = None,
        exact: bool | None = None,
        windows: int | None = None,
        adaptive: bool = True,
    ) -> _Run | FakeRun:
        if method is None or budget is None or exact is None:
            return FakeRun(self.machine.speech, draft, 8)
        self.machine.adaptive.append(adaptive)
        return _Run(self, method, budget, exact)


class _Run:
    def __init__(self, engine: _Engine, method: str, budget: int, exact: bool) -> None:
        self._engine, self._asked = engine, (method, budget, exact)
        self._windows: list[Window] = []
        self._job: Job | None = None

    def submit(self, window: Window, /) -> None:
        self._windows.append(window)

    def finish(self) -> None:
        engine = self._engine
        self._job = Job(
            engine.drafter,
            len(engine.plan.target_cores),
            *self._asked,
            tuple(len(window.samples) / RATE for window in self._windows),
            engine.script,
            tuple(self._windows[0].prompt),
            self._windows[0].max_tokens,
        )
        engine.machine.jobs.append(self._job)

    def cancel(self) -> None:
        """Nothing goes on."""

    def poll(self, timeout: float, /) -> list[Event]:
        job, machine = self._job, self._engine.machine
        assert job is not None
        machine.before(job)
        events: list[Event] = []
        if job.name in machine.loses:
            events.append(DrafterLost(0.0, "it died"))
        for window, tokens in zip(self._windows, self._texts(), strict=True):
            events += [
                LaneChanged(0.0, "target", "encoding", window.index),
                LaneChanged(0.5, "target", "idle", -1),
                WindowFinished(0.5, window.index, tokens, "end", 0.5),
            ]
        return [*events, RunFinished(machine.takes(job), False, None)]

    def _texts(self) -> list[tuple[int, ...]]:
        job = self._job
        assert job is not None
        return [
            tokens_of(self._engine.machine.says(job, seconds))[: w.max_tokens]
            for w, seconds in zip(self._windows, job.seconds, strict=True)
        ]

    def counters(self) -> Counters:
        """Half of the tokens are accepted, in steps of the budget."""
        job = self._job
        assert job is not None
        tokens = sum(map(len, self._texts()))
        drafting = job.method != "target"
        phases = ("encode", "prompt", "decode", "draft_encode", "draft_decode")
        return Counters(
            windows=len(self._windows),
            committed=tokens,
            verify_steps={job.budget: 2} if drafting else {},
            alone_steps=1 if drafting else tokens,
            proposed=tokens if drafting else 0,
            accepted=tokens // 2 if drafting else 0,
            realignments=1,
            drafted=tokens if drafting else 0,
            stale_drafts=0,
            lead_total=6 if drafting else 0,
            seconds=dict.fromkeys(phases, 0.1) | {"wall": self._engine.machine.takes(job)},
            lanes={"target": {"cores": list(self._engine.plan.target_cores), "threads": []}},
            exact=job.exact,
        )


class Notes:
    """A watch that only remembers.

    Attributes:
        lines: problems.
        total, done: as begun and advanced.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.total = self.done = 0.0

    def begin(self, summary: str, total: float) -> None:
        self.total = total

    def doing(self, what: str) -> None:
        """Not remembered."""

    def advance(self, amount: float) -> None:
        self.done += amount

    def line(self, text: str) -> None:
        self.lines.append(text)


def silent_environment() -> Environment:
    """Nobody hears what is said in it."""
    return Environment(None, Output(None), Output(None))


def run_bench(machine: FakeMachine, *args: str, terminal: bool = False, columns: int = 80) -> Ran:
    """Runs ``as2d bench`` on a fake machine; `terminal`: stdout and stderr are one."""
    out, err = io.BytesIO(), io.BytesIO()
    environment = Environment(
        stdin=None,
        stdout=Output(cast(BinaryIO, out), "standard output", terminal),
        stderr=Output(cast(BinaryIO, out if terminal else err), "standard error", terminal),
        shared_terminal=terminal,
        columns=columns,
        backend=machine.backend(),
    )
    status = run(["bench", "--no-memory", *args], environment)
    return Ran(status, out.getvalue().decode(), err.getvalue().decode())
