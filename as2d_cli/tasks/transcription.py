"""Transcription of files: audio -> windows -> engine -> text, and all that can go wrong on the way.

Example::

    request = ModelRequest("whisper-base", "whisper-tiny.en")
    with open_models(request, make_plan(request, backend), backend, monitor) as models:
        transcript = transcribe_one("talk.mp4", models, TranscribeOptions(), sink=sink,
        monitor=monitor)
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import BinaryIO

from as2d_cli.audio.decode import NotAudioError
from as2d_cli.audio.excerpt import Excerpt
from as2d_cli.audio.speech import PAUSE, speech_windows
from as2d_cli.audio.windows import AudioWindow, is_silent, windows
from as2d_cli.decoding import Window
from as2d_cli.decoding.events import (
    DrafterLost,
    DraftingChanged,
    LaneChanged,
    RunFinished,
    TokensCommitted,
    WindowFinished,
)
from as2d_cli.errors import As2dError
from as2d_cli.tasks.feeder import Cut, Feeder
from as2d_cli.tasks.interrupt import interruptible
from as2d_cli.tasks.models import (
    Backend,
    Model,
    ModelRequest,
    Models,
    RunFace,
    Voice,
    make_plan,
    open_models,
    open_voice,
)
from as2d_cli.tasks.sources import Source, file_source
from as2d_cli.tasks.transcript import (
    Decision,
    Monitor,
    Progress,
    Segment,
    Sink,
    SourceInfo,
    Transcript,
)
from as2d_cli.text.repeats import suspicions
from as2d_cli.text.text_stream import TextStream
from as2d_cli.text.whisper_prompt import check_language, is_multilingual, prompt

__all__ = ["TranscribeOptions", "transcribe", "transcribe_one"]

_AHEAD = 3
"""Windows given to the engine beyond those it works on: the drafter goes ahead, and 3 are 6 MB."""

_TICK = 0.05
"""Seconds to wait for events: 20 looks a second at signals and at the display."""

_REPORT = 0.12
"""Seconds between reports of progress: 8 a second look live."""

_FAREWELL = 0.8
"""Seconds that a cancelled run gets to end."""

_LIVE_PAUSE = 0.8
"""Seconds of silence after which what was said into a microphone is written down."""

_SUSPICIONS = {
    "loop": "goes round in circles",
    "compression": "says little for its length",
}


@dataclass(frozen=True)
class TranscribeOptions:
    """What is asked of the text.

    Attributes:
        language: a code, or None to detect it in the first window that is not silent.
        max_tokens: per window; None for what the model's context holds.
        everything: windows of all there is, and not of what is taken for speech.
    """

    language: str | None = None
    max_tokens: int | None = None
    everything: bool = False


def transcribe(
    sources: Sequence[str | os.PathLike[str] | Source],
    request: ModelRequest,
    options: TranscribeOptions,
    *,
    sink: Sink,
    monitor: Monitor,
    backend: Backend,
    stdin: BinaryIO | None = None,
) -> list[Transcript]:
    """Transcribes `sources` in order. One that fails is an error to `monitor`; the others go on.

    Models are loaded when the first input has turned out to be audio.

    Returns:
        The transcripts of those that did not fail.

    Raises:
        As2dError: the models cannot be had, or the request is impossible.
    """
    results: list[Transcript] = []
    # First: a wrong option is told before any input is looked at.
    one = len(sources) == 1
    plan = make_plan(request, backend, options.language, 0.0 if one else None)
    left_out = 0
    with ExitStack() as stack:
        models: Models | None = None
        voice: Voice | None = None
        for number, given in enumerate(sources):
            source = given if isinstance(given, Source) else file_source(given, stdin)
            try:
                # A pipe that gives nothing blocks in a native call.
                audio = interruptible(source.excerpt)
            except NotAudioError as e:
                left_out += source.optional
                (monitor.info if source.optional else monitor.error)(str(e))
                continue
            except As2dError as e:
                monitor.error(str(e))
                continue
            with audio:
                if source.live:
                    monitor.notice(f"{audio.name}: recording until Ctrl-C")
                if models is None:
                    if one and not source.live:  # what is spoken now comes window by window
                        plan = make_plan(request, backend, options.language, audio.length)
                    opening = open_models(
                        request,
                        plan,
                        backend,
                        monitor,
                        check=lambda model: _check(model, options),
                        language=options.language,
                    )
                    models = stack.enter_context(opening)
                    monitor.info(f"plan: {plan.method}, {plan.why}")
                    if not options.everything:
                        voice = open_voice(backend, monitor, offline=request.offline)
                cut = _cutter(voice, audio, _LIVE_PAUSE if source.live else PAUSE)
                work = _Transcription(audio, cut, number, models, options, sink, monitor)
                try:
                    results.append(work.run())
                except InputError as e:
                    monitor.error(str(e))
    if left_out:
        files = "1 file" if left_out == 1 else f"{left_out} files"
        monitor.notice(f"{files} without audio left out")
    return results


def transcribe_one(
    source: str | os.PathLike[str] | Source,
    models: Models,
    options: TranscribeOptions,
    *,
    sink: Sink,
    monitor: Monitor,
    stdin: BinaryIO | None = None,
    voice: Voice | None = None,
) -> Transcript:
    """Transcribes one input with models that are open already.

    Args:
        voice: tells speech from what is none; None for windows of all there is.

    Raises:
        As2dError: the input is no audio, the language is unknown, or the engine failed.
    """
    _check(models.target, options)
    given = source if isinstance(source, Source) else file_source(source, stdin)
    with given.excerpt() as audio:
        cut = _cutter(voice, audio, _LIVE_PAUSE if given.live else PAUSE)
        return _Transcription(audio, cut, 0, models, options, sink, monitor).run()


def _cutter(voice: Voice | None, audio: Excerpt, pause: float) -> Cut:
    if voice is None:
        return partial(windows, first=audio.first)
    return partial(speech_windows, listen=voice.start(), first=audio.first, pause=pause)


class InputError(As2dError):
    """This input failed; another may not."""


def _check(target: Model, options: TranscribeOptions) -> None:
    if options.language is not None:
        check_language(target, options.language)


@dataclass
class _Pending:
    """A window in the engine."""

    window: AudioWindow
    stream: TextStream
    full: bool
    """Its limit is what the model can hold, and not what the user wants."""
    text: str = ""
    shown: int = 0
    finished: WindowFinished | None = field(default=None)


class _Transcription:
    """One input on its way."""

    def __init__(
        self,
        audio: Excerpt,
        cut: Cut,
        number: int,
        models: Models,
        options: TranscribeOptions,
        sink: Sink,
        monitor: Monitor,
    ) -> None:
        self._audio, self._cut = audio, cut
        self._models, self._options = models, options
        self._sink, self._monitor = sink, monitor
        self._pieces = models.target.vocabulary().pieces
        self._pending: deque[_Pending] = deque()
        self._by_index: dict[int, _Pending] = {}
        self._ends: dict[int, float] = {}
        self._lanes: dict[str, tuple[str, int]] = {}
        self._drafting = True
        self._position = 0.0
        self._settled = ""
        self._tokens = 0
        self._words = 0
        self._raw = ""
        self._begun = time.monotonic()
        self._next_report = 0.0
        self._ended: RunFinished | None = None
        plan, drafter = models.plan, models.drafter
        self._info = SourceInfo(
            name=audio.name,
            duration=audio.duration,
            target=models.target.id,
            drafter=drafter.id if drafter is not None else None,
            method=plan.method,
            budget=plan.budget,
            number=number,
        )
        self._result = Transcript(self._info)

    def run(self) -> Transcript:
        """Does it all. After any exception the sink was told to abandon the input."""
        feeder = Feeder(self._audio, self._cut)
        started = False
        try:
            first = self._first_sound(feeder)
            draft = self._settle_language(first) and self._models.plan.drafts(self._audio.length)
            started = True
            self._sink.begin(self._info)
            if first is not None:
                self._decode(feeder, first, draft)
            self._conclude(feeder)
        except BaseException as e:
            if started:
                self._sink.abandon()
            if isinstance(e, As2dError) and not isinstance(e, InputError):
                raise InputError(str(e), status=e.status) from e
            raise
        finally:
            feeder.close()
        self._sink.end(self._result)
        self._monitor.finished(self._result)
        return self._result

    # Before decoding

    def _first_sound(self, feeder: Feeder) -> AudioWindow | None:
        """The first window with anything in it; silence before it costs its decoding only."""
        while not feeder.ended:
            window = feeder.take(_TICK)
            if window is not None and not is_silent(window.samples):
                return window
            self._report(None)
        return None

    def _settle_language(self, first: AudioWindow | None) -> bool:
        """Sets the language; returns whether the drafter is of use for it."""
        target, drafter = self._models.target, self._models.drafter
        chosen = self._options.language
        if chosen is None and not is_multilingual(target):
            chosen = next(iter(target.languages))
        if first is None:
            return False
        if chosen is None:
            engine = self._models.engine
            code, probability = interruptible(lambda: engine.detect_language(first.samples))
            self._result.language, self._result.language_probability = code, float(probability)
            self._monitor.info(f"{self._info.name}: language {code} ({probability:.0%})")
        else:
            self._result.language = chosen
        if drafter is None:
            return False
        language = self._result.language
        if language in drafter.languages:
            return True
        self._monitor.notice(
            f"{self._info.name}: drafter {drafter.id} does not know language {language}, "
            "the target goes alone"
        )
        return False

    # Decoding

    def _decode(self, feeder: Feeder, first: AudioWindow, draft: bool) -> None:
        run = self._models.engine.start(draft=draft)
        try:
            self._submit(run, first)
            finishing = False
            plan = self._models.plan
            in_flight = _AHEAD + (plan.budget if plan.method == "batched" else plan.windows)
            while self._ended is None:
                while len(self._pending) < in_flight and not finishing:
                    window = feeder.take()
                    if window is not None and not is_silent(window.samples):
                        self._submit(run, window)
                    elif window is None:
                        break
                if feeder.ended and not finishing:
                    run.finish()
                    finishing = True
                for event in run.poll(_TICK):
                    self._handle(event)
                self._report(run)
        except BaseException:
            run.cancel()
            self._let_it_end(run)
            raise
        self._result.counters = run.counters()
        if self._ended.error:
            raise InputError(f"{self._info.name}: decoding failed: {self._ended.error}")

    def _submit(self, run: RunFace, window: AudioWindow) -> None:
        target = self._models.target
        assert self._result.language is not None
        ids = prompt(target, self._result.language)
        room = target.context - len(ids)
        limit = min(self._options.max_tokens or room, room)
        pending = _Pending(window, TextStream(self._pieces), limit == room)
        self._ends[window.index] = window.end
        self._pending.append(pending)
        self._by_index[window.index] = pending
        run.submit(
            Window(window.index, window.start, window.samples, ids, limit, self._result.language)
        )

    def _handle(self, event: object) -> None:
        match event:
            case TokensCommitted(window=index, tokens=tokens):
                self._tokens += len(tokens)
                self._by_index[index].text += self._by_index[index].stream.push(tokens)
                self._show()
            case WindowFinished(window=index):
                pending = self._by_index[index]
                pending.text += pending.stream.finish()
                pending.finished = event
                self._show()
            case LaneChanged(lane=lane, activity=activity, window=index):
                self._lanes[lane] = (activity, index)
            case DraftingChanged(window=index, on=on, message=message):
                self._drafting = on
                self._result.decisions.append(Decision(self._ends[index], on, message))
            case DrafterLost(message=message):
                self._warn(f"the drafter failed, the target goes alone: {message}")
            case RunFinished():
                self._ended = event
            case _:
                pass  # events for other watchers

    def _show(self) -> None:
        """Hands on what is new in the order of the audio, whatever the order of the engine."""
        while self._pending:
            head = self._pending[0]
            text = head.text.lstrip(" ")
            if len(text) > head.shown:
                self._sink.commit(text[head.shown :])
                head.shown = len(text)
            if head.finished is None:
                return
            self._pending.popleft()
            del self._by_index[head.window.index]
            self._settle(head, head.finished)

    def _settle(self, pending: _Pending, finished: WindowFinished) -> None:
        window = pending.window
        self._position = window.end
        text = pending.text.lstrip(" ")
        if text:
            spoken = window.spoken
            tokens = tuple(finished.tokens)
            segment = Segment(spoken[0][0], spoken[-1][1], text, tokens, spoken)
            self._result.segments.append(segment)
            self._raw += pending.text
            self._words += len(text.split())
            self._settled = text
            self._sink.segment(segment)
        if finished.reason == "context" or (finished.reason == "limit" and pending.full):
            self._warn(
                f"the text of {_clock(window.start)} to {_clock(window.end)} fills the model's "
                "context: it may be a loop, or cut off"
            )
        elif found := suspicions(finished.tokens, text):
            what = " and ".join(_SUSPICIONS[name] for name in found)
            self._warn(
                f"the text of {_clock(window.start)} to {_clock(window.end)} {what}: "
                "it may be invented"
            )

    def _let_it_end(self, run: RunFace) -> None:
        deadline = time.monotonic() + _FAREWELL
        while time.monotonic() < deadline:
            if any(isinstance(e, RunFinished) for e in run.poll(_TICK)):
                return

    # After

    def _conclude(self, feeder: Feeder) -> None:
        result = self._result
        result.duration = feeder.heard
        result.text = self._raw.lstrip(" ")
        result.wall = time.monotonic() - self._begun
        for text in self._audio.warnings:
            self._warn(text)
        if not result.segments:
            self._monitor.notice(f"{self._info.name}: no speech")

    def _warn(self, text: str) -> None:
        self._result.warnings.append(text)
        self._monitor.warning(f"{self._info.name}: {text}")

    def _report(self, run: RunFace | None) -> None:
        now = time.monotonic()
        if now < self._next_report:
            return
        self._next_report = now + _REPORT
        current = self._pending[0].text.lstrip(" ") if self._pending else ""
        self._monitor.progress(
            Progress(
                info=self._info,
                position=self._position,
                settled=self._settled,
                current=current,
                words=self._words + len(current.split()),
                tokens=self._tokens,
                elapsed=now - self._begun,
                lanes=self._lanes,
                counters=run.counters() if run is not None else None,
                drafting=self._drafting,
            )
        )


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
