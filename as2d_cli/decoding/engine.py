"""A target and a drafter, loaded and ready to run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from as2d_cli import _native
from as2d_cli.decoding.costs import RunCosts
from as2d_cli.decoding.counters import Counters
from as2d_cli.decoding.events import Event, event_from_native
from as2d_cli.decoding.ort_library import ort_library
from as2d_cli.decoding.pinning import misplaced
from as2d_cli.decoding.plan import Plan
from as2d_cli.errors import As2dError, ExitStatus
from as2d_cli.methods import needs_drafter

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["Engine", "Run", "Window"]

T = TypeVar("T")


class ModelFolder(Protocol):
    """What the engine needs to know of a bundle."""

    @property
    def id(self) -> str: ...
    @property
    def path(self) -> Path: ...
    @property
    def row_invariance(self) -> str: ...


@dataclass(frozen=True)
class Window:
    """One stretch of audio together with the request.

    Attributes:
        index: counts up from 0 within a run.
        start: seconds from the beginning of the input; not used by the engine.
        samples: float32 [n], 16 kHz mono, n at most the target's window length, or as many of them
            as a language model takes that hears; copied.
        prompt: the target's tokens before the first committed one.
        max_tokens: commits at most this many.
        language: code of the spoken language, for drafters.
        translate: the text is wanted in English.
        timestamps: the target says when its segments begin and end.
        token_times: `WindowFinished` is to tell when each token was spoken.
        temperature: above 0, tokens are drawn from the distribution at this temperature, and from
            `seed`; the same ones whatever the method.
        draft_prompt: the request in the tokens of a drafter with another vocabulary; empty for one
            that takes `prompt` itself. For language models.
        source: text, in the target's tokens, that an answer may repeat and that `prompt` has not.
    """

    index: int
    start: float
    samples: npt.NDArray[np.float32]
    prompt: Sequence[int]
    max_tokens: int
    language: str = ""
    translate: bool = False
    timestamps: bool = False
    token_times: bool = False
    temperature: float = 0.0
    seed: int = 0
    draft_prompt: Sequence[int] = ()
    source: Sequence[int] = ()


class Run:
    """Windows in, events out. Used by one thread, but `cancel`, which any thread may call.

    Dropping it cancels what still goes on.
    """

    def __init__(self, native: _native.Run, engine: _native.Engine, exact: bool) -> None:
        self._native = native
        self._engine = engine
        self._exact = exact

    def submit(self, window: Window) -> None:
        """Queues a window; never blocks.

        Raises:
            As2dError: the request cannot be served.
        """
        try:
            self._native.submit(
                window.index,
                window.samples,
                list(window.prompt),
                window.max_tokens,
                window.language,
                window.translate,
                window.timestamps,
                window.token_times,
                window.temperature,
                window.seed,
                list(window.draft_prompt),
                list(window.source),
            )
        except _native.NativeError as error:
            raise As2dError(str(error)) from error

    def finish(self) -> None:
        """No more windows will come."""
        self._native.finish()

    def cancel(self) -> None:
        """Ends the run soon; its last event still comes."""
        self._native.cancel()

    def poll(self, timeout: float) -> list[Event]:
        """Takes the events so far; waits up to `timeout` seconds for the first, without the GIL."""
        return [event_from_native(event) for event in self._native.poll(timeout)]

    def counters(self) -> Counters:
        """What the run has done so far."""
        return Counters(**self._native.counters(), lanes=self._engine.lanes(), exact=self._exact)


class Engine:
    """Models on their lanes; one run at a time. Use it in a ``with`` statement.

    Attributes:
        warnings: one line for a drafter that could not be loaded; the target then goes alone.
        notices: one line if threads are not on the cores that they were to be bound to.
    """

    def __init__(
        self,
        native: _native.Engine,
        plan: Plan,
        warnings: Sequence[str] = (),
        *,
        can_be_exact: bool = True,
    ) -> None:
        self._native: _native.Engine | None = native
        self._plan = plan
        self._can_be_exact = can_be_exact
        self.warnings = list(warnings)
        elsewhere = misplaced(native.lanes())
        self.notices = [] if elsewhere is None else [elsewhere]

    @classmethod
    def open(cls, target: ModelFolder, drafter: ModelFolder | None, plan: Plan) -> Self:
        """Loads both bundles.

        Raises:
            As2dError: status UNAVAILABLE; the target cannot be loaded.
        """
        try:
            native = _native.Engine(ort_library(), target.path, *_lane(plan.target_cores, plan.pin))
        except _native.NativeError as error:
            raise As2dError(str(error), status=ExitStatus.UNAVAILABLE) from error
        warnings = []
        if drafter is not None and needs_drafter(plan.method):
            try:
                native.load_drafter(drafter.path, *_lane(plan.draft_cores, plan.pin))
            except _native.NativeError as error:
                warnings.append(f"no drafter, the target goes alone: {error}")
        return cls(native, plan, warnings, can_be_exact=target.row_invariance != "none")

    @classmethod
    def scripted(
        cls,
        target: Mapping[int, Sequence[int]],
        drafter: _native.ScriptedDrafter | None,
        plan: Plan,
        *,
        step_seconds: float = 0.0,
        encode_seconds: float = 0.0,
    ) -> Self:
        """An engine without models: in a window the target says `target[round(samples[0])]`."""
        script = {index: list(tokens) for index, tokens in target.items()}
        native = _native.Engine.scripted(script, step_seconds, encode_seconds)
        if drafter is not None:
            native.set_drafter(drafter)
        return cls(native, plan)

    def set_drafter(self, drafter: _native.ScriptedDrafter) -> None:
        """Puts a drafter that replays known tokens of the target in the place of the one loaded."""
        self._open().set_drafter(drafter)

    def replay(self, script: Mapping[int, Sequence[int]]) -> None:
        """Puts a drafter in place that says `script[index]` of a window, and then its end."""
        self.set_drafter(_native.ScriptedDrafter(script))

    def detect_language(self, samples: npt.NDArray[np.float32]) -> tuple[str, float]:
        """Code and probability of the likeliest language of float32 [n], at most one window.

        Blocks for one encoder pass, which decoding the same window then saves.

        Raises:
            As2dError: the target knows one language only.
        """
        try:
            found: list[tuple[str, float]] = self._open().language_probabilities(samples)
        except _native.NativeError as error:
            raise As2dError(str(error)) from error
        return max(found, key=lambda entry: entry[1])

    def time_encode(
        self,
        seconds_of_audio: float,
        repeats: int,
        *,
        lend: bool = True,
        most_seconds: float = 30.0,
    ) -> list[float]:
        """Seconds of each of `repeats` passes of the target's encoder.

        Of this and what follows: it blocks; the lane that rests lends its cores, as in a run,
        unless `lend` is False; and no more samples are taken after `most_seconds`, but one of each
        kind in any case.

        Raises:
            As2dError: it cannot be measured.
        """
        return self._timed(
            lambda native: native.time_encode(seconds_of_audio, repeats, lend, most_seconds)
        )

    def time_steps(
        self,
        rows: Sequence[int],
        repeats: int,
        *,
        lend: bool = True,
        most_seconds: float = 30.0,
    ) -> list[list[float]]:
        """Seconds of `repeats` forwards of the target for each number of rows, made in turn."""
        return self._timed(
            lambda native: native.time_steps(rows, repeats, lend=lend, most_seconds=most_seconds)
        )

    def time_draft(
        self, samples: npt.NDArray[np.float32], language: str, *, lend: bool = True
    ) -> dict[str, Any]:
        """A draft of a window: seconds of ``encode`` and of ``steps``, its ``tokens`` as the
        target's, and whether it is ``complete``.
        """
        return self._timed(lambda native: native.time_draft(samples, language, lend=lend))

    def time_together(
        self,
        rows: Sequence[int],
        seconds: float,
        samples: npt.NDArray[np.float32],
        language: str,
    ) -> dict[str, Any]:
        """``steps`` as `time_steps` has them, and ``drafts``, each as `time_draft` has it, of both
        lanes at work.
        """
        return self._timed(lambda native: native.time_together(rows, seconds, samples, language))

    def start(
        self,
        draft: bool = True,
        *,
        method: str | None = None,
        budget: int | None = None,
        exact: bool | None = None,
        windows: int | None = None,
        tell_encodings: bool = False,
        adaptive: bool = True,
        costs: RunCosts | None = None,
    ) -> Run:
        """Starts a run; the one before must be over.

        Args:
            draft: False lets the target go alone where the method needs a drafter.
            method, budget, exact, windows, costs: other ones than the plan's.
            tell_encodings: tell `WindowEncoded` of each window, 3 MB of it.
            adaptive: draft only while it pays, and with as many candidates as pay where the plan
                knows the costs; the text is the same. Off, the method is what the plan says
                throughout. It is off where the lanes are coupled, and drafts go on in any case
                where encodings are told.

        Raises:
            As2dError: the plan's costs cannot be.
        """
        native = self._open()
        exact = self._plan.exact if exact is None else exact
        budget = self._plan.budget if budget is None else budget
        method = self._plan.method if method is None else method
        windows = self._plan.windows if windows is None else windows
        if not draft and needs_drafter(method):
            method, budget = ("batched", windows) if windows > 1 else ("target", budget)
        costs = self._plan.costs if costs is None else costs
        known = costs.as_native() if adaptive and costs else None
        try:
            run = native.start(method, budget, exact, tell_encodings, windows, adaptive, known)
        except _native.NativeError as error:
            raise As2dError(str(error)) from error
        return Run(run, native, exact and self._can_be_exact)

    def close(self) -> None:
        """Frees the models once no run uses them."""
        self._native = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _timed(self, measure: Callable[[_native.Engine], T]) -> T:
        try:
            return measure(self._open())
        except _native.NativeError as error:
            raise As2dError(str(error)) from error

    def _open(self) -> _native.Engine:
        if self._native is None:
            raise RuntimeError("the engine is closed")
        return self._native


def _lane(cores: Sequence[int], pin: bool) -> tuple[list[int], int]:
    """Cores to pin to, and the number of threads where they are not pinned."""
    return (list(cores) if pin else [], max(1, len(cores)))
