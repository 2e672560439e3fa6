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
from as2d_cli.errors import As2dError, ExitStatus
from as2d_cli.tasks.feeder import Cut, Feeder
from as2d_cli.tasks.interrupt import interruptible
from as2d_cli.tasks.models import (
    Backend,
    Model,
    ModelRequest,
    Models,
    RunFace,
    Voice,
    check_listener,
    make_plan,
    open_models,
    open_voice,
)
from as2d_cli.tasks.segments import segments_of
from as2d_cli.tasks.sources import Source, file_source
from as2d_cli.tasks.transcript import (
    Decision,
    Monitor,
    Progress,
    Sink,
    SourceInfo,
    Transcript,
)
from as2d_cli.text.judgement import TEMPERATURES, Attempt, best_of, invented_loop
from as2d_cli.text.text_stream import TextStream
from as2d_cli.text.timestamps import STEP
from as2d_cli.text.whisper_prompt import (
    check_language,
    check_translation,
    has_timestamps,
    has_word_times,
    is_multilingual,
    prompt,
    takes_text_before,
)

__all__ = ["TranscribeOptions", "transcribe", "transcribe_one"]

_AHEAD = 3
"""Windows given to the engine beyond those it works on: the drafter goes ahead, and 3 are 6 MB."""

_TICK = 0.05
"""Seconds to wait for events: 20 looks a second at signals and at the display."""

_REPORT = 0.12
"""Seconds between reports of progress: 8 a second look live."""

_FAREWELL = 0.8
"""Seconds that a cancelled run gets to end."""

_MOST_CONDITIONED = 0.5
"""Temperature up to which a window is decoded after the text before it, as in Whisper's decoder."""

_LIVE_PAUSE = 0.8
"""Seconds of silence after which what was said into a microphone is written down."""

_FLAWS = {
    "loop": "goes round in circles",
    "compression": "says little for its length",
    "unlikely": "is unlikely to the model itself",
}


@dataclass(frozen=True)
class TranscribeOptions:
    """What is asked of the text.

    Attributes:
        language: a code, or None to detect it in the first window that is not silent.
        max_tokens: per window; None for what the model's context holds.
        everything: windows of all there is, and not of what is taken for speech.
        translate: the text is wanted in English.
        timestamps: segments begin and end where the model says so; a window is one without.
        times: segments are sentences, by when their words were spoken; of a model that cannot tell,
            what `timestamps` makes them, if it can tell that.
        word_times: tell when each word was spoken.
        fallback: a window whose text is not to be believed is decoded again, at rising
            temperatures (see `as2d_cli.text.judgement`). Words are told when their window is done;
            without it, as soon as they are committed.
        condition: the text of the window before is what comes before a window's text.
        prompt: text that comes before that of the first window; with `condition` of that alone.
        hotwords: words to expect; text that comes before every window's, as far as there is room.
        seed: of what is drawn at a temperature.
    """

    language: str | None = None
    max_tokens: int | None = None
    everything: bool = False
    translate: bool = False
    timestamps: bool = False
    times: bool = False
    word_times: bool = False
    fallback: bool = True
    condition: bool = False
    prompt: str = ""
    hotwords: str = ""
    seed: int = 0


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
    check_listener(target)
    if options.language is not None:
        check_language(target, options.language)
    if options.translate:
        check_translation(target)
    wanted = (
        ("--timestamps", options.timestamps and not has_timestamps(target)),
        ("--word-timestamps", options.word_times and not has_word_times(target)),
        ("--prompt", bool(options.prompt) and not takes_text_before(target)),
        ("--hotwords", bool(options.hotwords) and not takes_text_before(target)),
        ("--condition", options.condition and not takes_text_before(target)),
    )
    for option, missing in wanted:
        if missing:
            raise As2dError(
                f"{target.id} knows nothing of {option}",
                remedy="leave it out, or choose a Whisper for --target",
                status=ExitStatus.USAGE,
            )


@dataclass
class _Pending:
    """A window in the engine."""

    window: AudioWindow
    before: list[int]
    """Tokens of text that comes before its own."""
    stream: TextStream
    full: bool = False
    """Its limit is what the model can hold, and not what the user wants."""
    text: str = ""
    shown: int = 0
    attempts: list[Attempt] = field(default_factory=list)
    draft: tuple[int, ...] = ()
    settled: bool = False

    @property
    def temperature(self) -> float:
        """Of the attempt that is made now, or was last."""
        return TEMPERATURES[min(len(self.attempts), len(TEMPERATURES) - 1)]


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
        self._first_timestamp = models.target.tokens.get("timestamp_begin")
        by_words = has_word_times(models.target)
        self._word_times = options.word_times or (options.times and by_words)
        self._timed = options.timestamps or (
            options.times and not by_words and has_timestamps(models.target)
        )
        self._hotwords = self._text_tokens(options.hotwords)
        self._before = self._text_tokens(options.prompt)
        self._pending: deque[_Pending] = deque()
        self._by_index: dict[int, _Pending] = {}
        self._ends: dict[int, float] = {}
        self._submitted = 0
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
        if self._options.translate and "translate" not in drafter.tokens:
            what = "cannot translate"
        elif language not in drafter.languages:
            what = f"does not know language {language}"
        else:
            return True
        self._monitor.notice(
            f"{self._info.name}: drafter {drafter.id} {what}, the target goes alone"
        )
        return False

    # Decoding

    def _decode(self, feeder: Feeder, first: AudioWindow, draft: bool) -> None:
        run = self._models.engine.start(draft=draft)
        try:
            self._add(run, first)
            finishing = False
            plan = self._models.plan
            in_flight = _AHEAD + (plan.budget if plan.method == "batched" else plan.windows)
            if self._options.condition:
                in_flight = 1  # the next one needs to know what this one says
            while self._ended is None:
                while len(self._pending) < in_flight and not finishing:
                    window = feeder.take()
                    if window is not None and not is_silent(window.samples):
                        self._add(run, window)
                    elif window is None:
                        break
                # Those that are not settled yet may have to be decoded once more.
                if feeder.ended and not finishing and not self._unsettled():
                    run.finish()
                    finishing = True
                for event in run.poll(_TICK):
                    self._handle(run, event)
                self._report(run)
        except BaseException:
            run.cancel()
            self._let_it_end(run)
            raise
        self._result.counters = run.counters()
        if self._ended.error:
            raise InputError(f"{self._info.name}: decoding failed: {self._ended.error}")

    def _add(self, run: RunFace, window: AudioWindow) -> None:
        before = [*self._hotwords, *self._before]
        if not self._options.condition:
            self._before = []  # the prompt was the first window's
        pending = _Pending(window, before, TextStream(self._pieces))
        self._pending.append(pending)
        self._submit(run, pending)

    def _submit(self, run: RunFace, pending: _Pending) -> None:
        target, options, window = self._models.target, self._options, pending.window
        assert self._result.language is not None
        temperature = pending.temperature
        ids = prompt(
            target,
            self._result.language,
            translate=options.translate,
            timestamps=self._timed,
            # What came before may be what led astray.
            before=pending.before if temperature <= _MOST_CONDITIONED else self._hotwords,
        )
        room = target.context - len(ids)
        limit = min(options.max_tokens or room, room)
        pending.full = limit == room
        pending.text = ""
        index = self._submitted
        self._submitted += 1
        self._ends[index] = window.end
        self._by_index[index] = pending
        run.submit(
            Window(
                index,
                window.start,
                window.samples,
                ids,
                limit,
                self._result.language,
                translate=options.translate,
                timestamps=self._timed,
                token_times=self._word_times,
                temperature=temperature,
                seed=(options.seed + window.index) % 2**32,
            )
        )

    def _unsettled(self) -> bool:
        return any(not pending.settled for pending in self._pending)

    def _text_tokens(self, text: str) -> list[int]:
        if not text.strip():
            return []
        from as2d_cli.text.bpe import BpeEncoder

        vocabulary = self._models.target.vocabulary()
        encoder = BpeEncoder(vocabulary.pieces, "gpt2", merge_ranks=vocabulary.merge_ranks)
        # A space in front, as every text of these models has one.
        return encoder.encode(f" {text.strip()}")

    def _handle(self, run: RunFace, event: object) -> None:
        match event:
            case TokensCommitted(window=index, tokens=tokens):
                self._tokens += len(tokens)
                pending = self._by_index[index]
                pending.text += pending.stream.push(tokens)
                self._show()
            case WindowFinished(window=index):
                pending = self._by_index.pop(index)
                pending.text += pending.stream.finish()
                self._judge(run, pending, event)
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

    def _judge(self, run: RunFace, pending: _Pending, finished: WindowFinished) -> None:
        """Decodes the window once more if its text is not to be believed."""
        first = self._first_timestamp
        words = tuple(t for t in finished.tokens if first is None or t < first)
        reason = finished.reason
        if reason == "limit" and pending.full:
            reason = "context"
        said = len(finished.tokens) + (reason == "end")
        attempt = Attempt(
            tokens=finished.tokens,
            words=words,
            text=pending.text,
            reason=reason,
            temperature=pending.temperature,
            log_probability=finished.log_probability / max(said, 1),
            no_speech=finished.no_speech,
            times=finished.times,
        )
        pending.attempts.append(attempt)
        pending.draft = finished.draft or pending.draft
        again = self._options.fallback and attempt.flaws and not attempt.nobody_speaks
        # What the user cut short says nothing of the model.
        if again and reason != "limit" and len(pending.attempts) < len(TEMPERATURES):
            self._submit(run, pending)
            return
        pending.settled = True
        rest = self._rest(pending)
        if rest is not None:
            following = _Pending(rest, pending.before, TextStream(self._pieces))
            self._pending.insert(self._pending.index(pending) + 1, following)
            self._submit(run, following)

    def _rest(self, pending: _Pending) -> AudioWindow | None:
        """What the model left of a window: it ends with two timestamps where it wants to go on from
        the second, as it learned from recordings that go on (Radford et al. 2022, section 2.3).
        """
        tokens, first = best_of(pending.attempts).tokens, self._first_timestamp
        if not self._timed or first is None or len(tokens) < 2 or min(tokens[-2:]) < first:
            return None
        return pending.window.rest((tokens[-1] - first) * STEP)

    def _show(self) -> None:
        """Hands on what is new in the order of the audio, whatever the order of the engine."""
        while self._pending:
            head = self._pending[0]
            if not self._options.fallback and not self._timed:
                text = head.text.lstrip(" ")
                if len(text) > head.shown:
                    self._sink.commit(text[head.shown :])
                    head.shown = len(text)
            if not head.settled:
                return
            self._pending.popleft()
            self._settle(head)

    def _settle(self, pending: _Pending) -> None:
        window = pending.window
        self._position = window.end
        attempt = best_of(pending.attempts)
        if attempt.nobody_speaks:
            self._monitor.info(
                f"{self._info.name}: {_clock(window.start)} to {_clock(window.end)}: nobody speaks "
                f"({attempt.no_speech:.0%})"
            )
            return
        loop = None
        if self._options.fallback:
            loop = invented_loop(attempt, sum(b - a for a, b in window.spoken))
        self._warn_of(window, attempt, loop)
        if pending.draft and pending.draft != attempt.words:
            said = b"".join(self._pieces[token] for token in pending.draft)
            self._result.drafts.append(said.decode(errors="replace").strip())
        if self._options.condition:
            self._before = list(attempt.words) if not attempt.flaws else []
        segments = segments_of(
            window,
            attempt,
            pieces=self._pieces,
            first_timestamp=self._first_timestamp,
            language=self._result.language or "",
            left_out=loop or (),
            after=self._result.segments[-1].end if self._result.segments else 0.0,
        )
        for segment in segments:
            if len(segment.text) > pending.shown:
                self._sink.commit(segment.text[pending.shown :])
            pending.shown = 0
            self._result.segments.append(segment)
            self._raw += segment.raw
            self._words += len(segment.text.split())
            self._settled = segment.text
            self._sink.segment(segment)

    def _warn_of(self, window: AudioWindow, attempt: Attempt, loop: range | None) -> None:
        where = f"the text of {_clock(window.start)} to {_clock(window.end)}"
        flaws = " and ".join(_FLAWS[flaw] for flaw in attempt.flaws)
        if loop is not None:
            self._warn(f"{where} went round in circles and is cut where it begins to")
        elif attempt.reason == "context":
            self._warn(f"{where} fills the model's context: it may be a loop, or cut off")
        elif flaws:
            self._warn(f"{where} {flaws}: it may be invented")
        elif attempt.temperature > 0:
            self._warn(
                f"{where} was taken at temperature {attempt.temperature:g}: the likeliest text was "
                "not to be believed"
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
