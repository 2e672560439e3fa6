"""The language model's part of a question that can be done while the recording is still heard.

The transcript comes before the question, so that the beginning of the prompt is known as soon as
it was said. Wherever the speech stage leaves room, the model is loaded and computes it; what is
answered is the same, only sooner.

Example::

    with Ahead(opening, AskOptions(), "summarize", monitor) as ahead:
        transcript = hear(source, request, options, monitor=ahead.watcher, sink=ahead.listener, ...)
        answers = ask(transcript, ["summarize"], ahead.models(), ..., ahead=ahead.computed)
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from types import TracebackType
from typing import Self

import numpy as np

from as2d_cli.decoding import Window
from as2d_cli.decoding.events import RunFinished, WindowFinished
from as2d_cli.errors import As2dError
from as2d_cli.tasks.models import Models, RunFace
from as2d_cli.tasks.prompting import AskOptions, Prompter
from as2d_cli.tasks.transcript import Monitor, Progress, Segment, SourceInfo, Transcript

__all__ = ["Ahead", "Opening", "shared"]

Opening = Callable[[Monitor], AbstractContextManager[Models]]
"""Opens the language model; what there is to say of that, the monitor hears."""

_QUIET = 0.3
"""Seconds for which the speech stage has had nothing to do before it counts as idle: between two
windows that are there already it is idle for less.
"""

_BLOCK = 96
"""Tokens computed before another look at the speech stage: what the engine takes in one go."""

_TICK = 0.02
"""Seconds between looks at the speech stage while a block is computed."""


class Ahead:
    """Works in a thread of its own from the first words on.

    Where both stages have the same cores it works while the speech stage waits for somebody to
    speak, and gives way when they do; a file that is read faster than it is understood leaves no
    such time, and then nothing is done ahead. A core that the speech stage leaves unused is enough
    to load the model; cores that are the language model's alone, to compute as well.

    Attributes:
        watcher: the monitor for the speech stage, to see what that does.
        listener: the sink for the speech stage, to learn what is said.
        computed: the beginning of the prompt that the model has computed, in its tokens.
    """

    def __init__(
        self,
        opening: Opening,
        options: AskOptions,
        question: str,
        monitor: Monitor,
        *,
        own_cores: Sequence[int] = (),
        cores: int = 0,
    ) -> None:
        """
        Args:
            question: any of those that will be asked.
            monitor: hears of the speech stage, and of what goes wrong here.
            own_cores: those that the language model is pinned to; empty where it is not.
            cores: that can be kept busy on this machine; 0 where that is not known.
        """
        self._opening, self._options, self._question = opening, options, question
        self._monitor = monitor
        self._notes = _Notes()
        self.watcher: Monitor = _Watcher(self)
        self.listener = _Listener(self)
        self.computed: Sequence[int] = ()
        self._changed = threading.Condition()
        self._speech = _Speech(frozenset(own_cores), cores)
        self._lines: list[str] = []
        self._over = False  # no more speech comes
        self._given_up = False
        self._stack = ExitStack()
        self._models: Models | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._changed:
            self._over = self._given_up = True
            self._changed.notify()
        if self._thread is not None and (error is None or isinstance(error, Exception)):
            # A thread inside a native call must not see the interpreter end. Whoever interrupts
            # does not wait for it; it closes what it opened by itself.
            self._thread.join()
        if self._thread is None or not self._thread.is_alive():
            self._stack.close()

    def models(self) -> Models:
        """The open models: those that were opened ahead, else they are opened now. What is being
        computed is completed first.

        Raises:
            As2dError: they cannot be had.
        """
        with self._changed:
            self._over = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()
        self._notes.pass_on(self._monitor)
        if self._models is None:
            self._models = self._stack.enter_context(self._opening(self._monitor))
        elif self.computed:
            self._monitor.info(
                f"{len(self.computed)} tokens of the prompt were computed while listening"
            )
        else:
            self._monitor.info(f"{self._models.target.id} was loaded while listening")
        return self._models

    # In the thread of the speech stage

    def said(self, line: str) -> None:
        """One line more of the transcript."""
        with self._changed:
            self._lines.append(line)
            self._changed.notify()
        if self._thread is None:
            # Daemon: whoever interrupts does not wait until a model is loaded.
            self._thread = threading.Thread(target=self._work, name="as2d-ahead", daemon=True)
            self._thread.start()

    def sees(self, progress: Progress) -> None:
        """What the speech stage does now."""
        with self._changed:
            self._speech.sees(progress)
            self._changed.notify()
        self._notes.pass_on(self._monitor)

    # In its own thread

    def _work(self) -> None:
        try:
            if self._wait(self._speech.leaves_a_core):
                self._models = self._stack.enter_context(self._opening(self._notes))
                self._prefill(self._models)
        except Exception as e:  # what still stands in the way afterwards is told then
            self._notes.warning(f"nothing more is computed while listening: {e}")
        finally:
            if self._given_up:
                self._stack.close()

    def _wait(self, room: Callable[[], bool], known: int = -1) -> bool:
        """Until there are more than `known` lines and `room`; False when it is too late."""
        with self._changed:
            self._changed.wait_for(lambda: self._over or (len(self._lines) > known and room()))
            return not self._over

    def _prefill(self, models: Models) -> None:
        prompter = Prompter(models.target, self._options)
        known = 0
        while self._wait(self._speech.leaves_cores, known):
            lines = list(self._lines)
            prompt = prompter.about(lines, self._question)
            if not prompter.fits(prompt):
                return  # it will be asked about in parts, which begin otherwise
            # What comes next may change how the last words are cut into tokens.
            more = prompter.about([*lines, lines[-1]], self._question)
            if self._compute(models, prompt.ids[: shared(prompt.ids, more.ids)]):
                known = len(lines)

    def _compute(self, models: Models, ids: Sequence[int]) -> bool:
        """Computes `ids` block by block; False where it had to give way."""
        run = models.engine.start(draft=False)
        ended: RunFinished | None = None
        try:
            done = shared(self.computed, ids)
            for number, at in enumerate(range(done, len(ids), _BLOCK)):
                if self._over or not self._speech.leaves_cores():
                    return False
                until = min(at + _BLOCK, len(ids))
                # One token is said, as no engine stops before that; nobody hears it.
                run.submit(Window(number, 0.0, np.empty(0, np.float32), ids[:until], 1))
                ended = self._block(run)
                if ended is not None:
                    return False
                self.computed = ids[:until]
            return True
        finally:
            run.finish()
            while ended is None:
                ended = next((e for e in run.poll(_TICK) if isinstance(e, RunFinished)), None)
            if ended.error:
                raise As2dError(ended.error)

    def _block(self, run: RunFace) -> RunFinished | None:
        """Until a window is computed; or the run ended, since the speech stage needs the cores."""
        while True:
            if self._given_up or not (self._over or self._speech.leaves_cores()):
                run.cancel()
            for event in run.poll(_TICK):
                if isinstance(event, RunFinished):
                    return event
                if isinstance(event, WindowFinished) and event.reason != "cancelled":
                    return None


class _Speech:
    """What the speech stage does, and which cores it leaves."""

    def __init__(self, own: frozenset[int], cores: int) -> None:
        self._own, self._cores = own, cores
        self._taken: frozenset[int] = frozenset()
        self._idle_since: float | None = None

    def sees(self, progress: Progress) -> None:
        """How it is now."""
        idle = bool(progress.lanes) and all(
            activity in ("idle", "done") for activity, _ in progress.lanes.values()
        )
        if not idle:
            self._idle_since = None
        elif self._idle_since is None:
            self._idle_since = time.monotonic()
        if progress.counters is not None:
            lanes = progress.counters.lanes.values()
            self._taken = frozenset(core for lane in lanes for core in lane.get("cores", ()))

    def leaves_a_core(self) -> bool:
        """Enough to load a model."""
        return 0 < len(self._taken) < self._cores or self._idle()

    def leaves_cores(self) -> bool:
        """All that the language model is to have."""
        apart = self._own and self._taken and not self._own & self._taken
        return bool(apart and len(self._own | self._taken) <= self._cores) or self._idle()

    def _idle(self) -> bool:
        since = self._idle_since
        return since is not None and time.monotonic() - since >= _QUIET


class _Watcher:
    """The monitor in front of the speech stage's own."""

    def __init__(self, ahead: Ahead) -> None:
        self._ahead = ahead
        monitor = ahead._monitor
        self.info, self.notice = monitor.info, monitor.notice
        self.warning, self.error = monitor.warning, monitor.error
        self.finished = monitor.finished
        self._progress = monitor.progress

    def progress(self, progress: Progress) -> None:
        self._ahead.sees(progress)
        self._progress(progress)


class _Listener:
    """Takes the transcript's lines as they come."""

    def __init__(self, ahead: Ahead) -> None:
        self._ahead = ahead

    def begin(self, info: SourceInfo) -> None:
        """Nothing."""

    def commit(self, text: str) -> None:
        """Nothing: words may still go back on what the segment says."""

    def segment(self, segment: Segment) -> None:
        self._ahead.said(segment.text)

    def end(self, transcript: Transcript) -> None:
        """Nothing."""

    def abandon(self) -> None:
        """Nothing."""


class _Notes:
    """A monitor that keeps what it hears, for a thread that may talk."""

    def __init__(self) -> None:
        self._kept: list[tuple[str, str]] = []
        self._lock = threading.Lock()

    def info(self, text: str) -> None:
        self._keep("info", text)

    def notice(self, text: str) -> None:
        self._keep("notice", text)

    def warning(self, text: str) -> None:
        self._keep("warning", text)

    def error(self, text: str) -> None:
        self._keep("error", text)

    def progress(self, progress: Progress) -> None:
        """Nothing."""

    def finished(self, transcript: Transcript) -> None:
        """Nothing."""

    def pass_on(self, monitor: Monitor) -> None:
        """In the thread of `monitor`."""
        with self._lock:
            kept, self._kept = self._kept, []
        for level, text in kept:
            getattr(monitor, level)(text)

    def _keep(self, level: str, text: str) -> None:
        with self._lock:
            self._kept.append((level, text))


def shared(one: Sequence[int], other: Sequence[int]) -> int:
    """How long the beginning is that both have."""
    for at, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return at
    return min(len(one), len(other))
