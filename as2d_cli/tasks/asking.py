"""Questions about a recording: transcript -> prompt -> engine -> answer.

Example::

    transcript = hear(file_source("talk.mp4"), speech, TranscribeOptions(), ...)
    made = plan_answers(answering("qwen2.5-coder-1.5b-instruct"), backend)
    with open_models(made.request, made.plan, backend, monitor, check=check_answerer) as models:
        answers = ask(transcript, ["summarize"], models, AskOptions(), sink=sink, monitor=monitor)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

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
from as2d_cli.profile.recent import RecentAnswers
from as2d_cli.tasks.ahead import shared
from as2d_cli.tasks.answer import NO_SPEECH, Answer, Answers, AnswerSink, Planned
from as2d_cli.tasks.models import AUTO, Backend, ModelRequest, Models, RunFace
from as2d_cli.tasks.prompting import AskOptions, Prompt, Prompter
from as2d_cli.tasks.recording import Recording
from as2d_cli.tasks.sources import Source
from as2d_cli.tasks.subject import Heard, Subject, Written
from as2d_cli.tasks.transcript import (
    Counters,
    Monitor,
    Progress,
    Segment,
    Sink,
    SourceInfo,
    Transcript,
)
from as2d_cli.tasks.transcription import TranscribeOptions, transcribe
from as2d_cli.text.question import from_notes
from as2d_cli.text.repeats import suspicions
from as2d_cli.text.text_stream import TextStream

__all__ = [
    "AskOptions",
    "answering",
    "ask",
    "check_questions",
    "hear",
    "nothing_said",
]

_TICK = 0.05
"""Seconds to wait for events: 20 looks a second at signals and at the display."""

_REPORT = 0.12
"""Seconds between reports of progress: 8 a second look live."""

_USUAL_LANGUAGE = "en"
"""Of what a drafter hears, where nobody says what is spoken."""

_FAREWELL = 0.8
"""Seconds that a cancelled run gets to end."""


def answering(
    model: str,
    *,
    drafter: str | None = AUTO,
    method: str = AUTO,
    budget: int | None = None,
    target_cores: str | None = None,
    draft_cores: str | None = None,
    threads: int | None = None,
    pin: bool = True,
    offline: bool = False,
) -> ModelRequest:
    """The request for a model that answers; see `as2d_cli.tasks.answer_planning`."""
    return ModelRequest(
        target=model,
        drafter=drafter,
        method=method,
        budget=budget,
        target_cores=target_cores,
        draft_cores=draft_cores,
        threads=threads,
        pin=pin,
        offline=offline,
    )


def check_questions(questions: Sequence[str]) -> list[str]:
    """The questions without white space around them.

    Raises:
        As2dError: status USAGE; there is none, or one says nothing.
    """
    asked = [question.strip() for question in questions]
    if not all(asked) or not asked:
        raise As2dError(
            "an empty question" if asked else "no question",
            remedy='ask something, such as "summarize"',
            status=ExitStatus.USAGE,
        )
    return asked


def hear(
    source: Source,
    request: ModelRequest,
    options: TranscribeOptions,
    *,
    monitor: Monitor,
    backend: Backend,
    sink: Sink | None = None,
) -> Transcript | None:
    """The transcript to ask about; None for an input that failed, which `monitor` was told.

    Args:
        sink: reads it while it comes.

    Raises:
        As2dError: the models cannot be had, or the request is impossible.
    """
    made = transcribe(
        [source], request, options, sink=sink or _Unread(), monitor=monitor, backend=backend
    )
    return made[0] if made else None


def nothing_said(transcript: Transcript) -> bool:
    """There is nothing to ask about, and no model is needed to say so."""
    return transcript.written and not transcript.text.strip()


def ask(
    transcript: Transcript,
    questions: Sequence[str],
    models: Models | None,
    options: AskOptions,
    *,
    sink: AnswerSink,
    monitor: Monitor,
    recording: Recording | None = None,
    ahead: Sequence[int] = (),
    why: str = "",
    recent: RecentAnswers | None = None,
) -> Answers:
    """Answers `questions`, in order, about one transcript.

    A transcript that is too long for the model's context is asked about in parts, and the answers
    are made one.

    Args:
        questions: as `check_questions` returns them.
        models: opened for `answering`; None where `nothing_said`.
        recording: what is asked about in the place of the transcript, by a model that hears; it
            has speech in it.
        ahead: the beginning of the prompt, where the model has computed it already.
        why: what the models' plan was made by.
        recent: is told what became of each answer's candidates.

    Raises:
        As2dError: a question is too long, or the engine failed. The sink was told to abandon.
    """
    answers = Answers(
        transcript, system=options.system, temperature=options.temperature, seed=options.seed
    )
    sink.begin(transcript, questions)
    begun = time.monotonic()
    try:
        work = None
        if models is not None and not nothing_said(transcript):
            work = _Answering(answers, models, options, sink, monitor, recording, ahead, recent)
            answers.why = why
        for question in questions:
            sink.question(question)
            if work is None:
                sink.commit(NO_SPEECH)
                answer = Answer(question, NO_SPEECH)
            else:
                answer = work.answer(question)
            answers.answers.append(answer)
            sink.answer(answer)
    except BaseException:
        sink.abandon()
        raise
    answers.wall = time.monotonic() - begun
    sink.end(answers)
    return answers


class _Unread:
    """Who reads the transcript while it comes: nobody."""

    def begin(self, info: SourceInfo) -> None:
        """Nothing."""

    def commit(self, text: str) -> None:
        """Nothing."""

    def segment(self, segment: Segment) -> None:
        """Nothing."""

    def end(self, transcript: Transcript) -> None:
        """Nothing."""

    def abandon(self) -> None:
        """Nothing."""


class _Answering:
    """All questions about one transcript."""

    def __init__(
        self,
        answers: Answers,
        models: Models,
        options: AskOptions,
        sink: AnswerSink,
        monitor: Monitor,
        recording: Recording | None,
        ahead: Sequence[int],
        recent: RecentAnswers | None,
    ) -> None:
        self._answers, self._models, self._options = answers, models, options
        self._sink, self._monitor = sink, monitor
        self._ahead, self._recent = ahead, recent
        target, drafter, plan = models.target, models.drafter, models.plan
        answers.model = target.id
        answers.drafter = drafter.id if drafter is not None else None
        answers.method = plan.method
        answers.plan = Planned(
            plan.budget, tuple(plan.target_cores), tuple(plan.draft_cores), plan.pin
        )
        name = answers.transcript.info.name
        self._info = SourceInfo(name, None, target.id, answers.drafter, plan.method, plan.budget)
        self._pieces = target.vocabulary().pieces
        self._subject: Subject
        if recording is None:
            self._prompter = Prompter(target, options, drafter)
            lines = [segment.text for segment in answers.transcript.segments]
            self._subject = Written(lines, options.system, self._prompter)
        else:
            self._prompter = Prompter(target, options)
            self._subject = Heard(
                recording.samples,
                recording.spoken,
                options.system,
                target,
                self._prompter,
                answers.transcript.language or _USUAL_LANGUAGE,
            )
        # Where the drafter heard something else, it may be what the answer says.
        self._source = self._prompter.source(answers.transcript.drafts)

    def answer(self, question: str) -> Answer:
        """Asks about the whole, or first about parts of it."""
        system = self._options.system
        prompt = self._subject.whole(question)
        with _Conversation(
            self._models, self._options, self._info, self._pieces, self._source, self._monitor
        ) as talk:
            notes: list[str] = []
            if self._prompter.fits(prompt):
                if not self._answers.answers:
                    self._answers.prompt_tokens_ahead = shared(self._ahead, prompt.ids)
            else:
                notes = self._ask_parts(talk, question)
                prompt = self._prompter.prompt(from_notes(system, notes, question))
            talk.heading = f"answering, {self._models.plan.method}"
            said = talk.say(prompt, self._prompter.limit(prompt), self._sink.commit)
            counters = talk.end()
        for text in _doubts(said):
            self._warn(f"the answer to '{question}' {text}")
        answer = Answer(
            question=question,
            text=said.text,
            tokens=said.tokens,
            reason=said.reason,
            prompt_tokens=len(prompt.ids),
            notes=tuple(notes),
            seconds=talk.seconds,
            first_seconds=said.first,
            counters=counters,
        )
        self._monitor.info(_summary(answer))
        if self._recent is not None:
            steps = counters.alone_steps + sum(counters.verify_steps.values())
            self._recent.add(self._models.plan.method, counters.committed, steps)
        return answer

    def _ask_parts(self, talk: _Conversation, question: str) -> list[str]:
        """What is said about the parts of what is too long, and about notes on them as long as
        those are too long.
        """
        system = self._options.system
        prompts = self._subject.parts(question)
        self._monitor.notice(
            f"{self._info.name}: {self._subject.noun} is too long for {self._info.target}: it is "
            f"asked about in {len(prompts)} parts"
        )
        while True:
            notes: list[str] = []
            for i, prompt in enumerate(prompts, 1):
                talk.heading = f"part {i} of {len(prompts)}"
                notes.append(talk.say(prompt, self._prompter.room).text)
            if self._prompter.fits(self._prompter.prompt(from_notes(system, notes, question))):
                return notes
            groups = self._prompter.groups(notes, lambda some: from_notes(system, some, question))
            if len(groups) == len(notes):
                raise self._prompter.too_long()
            prompts = [self._prompter.prompt(from_notes(system, some, question)) for some in groups]

    def _warn(self, text: str) -> None:
        self._answers.warnings.append(text)
        self._monitor.warning(f"{self._info.name}: {text}")


@dataclass(frozen=True)
class _Said:
    """What the model said to one prompt; `first`: seconds from the question to the first word."""

    text: str
    tokens: tuple[int, ...]
    reason: str
    first: float | None


class _Conversation:
    """One run of the engine, which is asked one thing after another. Leaving it early cancels.

    Attributes:
        heading: what goes on, for the display.
        seconds: since it began, or that it took.
    """

    def __init__(
        self,
        models: Models,
        options: AskOptions,
        info: SourceInfo,
        pieces: Sequence[bytes],
        source: Sequence[int],
        monitor: Monitor,
    ) -> None:
        self._options, self._source = options, source
        self._info, self._pieces, self._monitor = info, pieces, monitor
        self._begun = time.monotonic()
        self._run: RunFace = models.engine.start(draft=models.drafter is not None)
        self._ended: RunFinished | None = None
        self._lanes: dict[str, tuple[str, int]] = {}
        self._drafting = True
        self._asked = 0
        self._tokens = 0
        self._next_report = 0.0
        self.heading = ""
        self.seconds = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._ended is None:
            self._run.cancel()
            deadline = time.monotonic() + _FAREWELL
            while self._ended is None and time.monotonic() < deadline:
                for event in self._run.poll(_TICK):
                    self._note(event)

    def say(
        self, prompt: Prompt, limit: int, commit: Callable[[str], None] = lambda text: None
    ) -> _Said:
        """What the model says to `prompt`; `commit` gets it as it comes.

        Raises:
            As2dError: the engine failed.
        """
        index, self._asked = self._asked, self._asked + 1
        self._run.submit(
            Window(
                index,
                0.0,
                prompt.samples,
                prompt.ids,
                limit,
                prompt.language,
                temperature=self._options.temperature,
                # Another one for each part of a long transcript.
                seed=(self._options.seed + index) % 2**32,
                draft_prompt=prompt.draft_ids,
                source=self._source,
            )
        )
        text = _Trimmed(self._pieces)
        first: float | None = None
        while True:
            for event in self._run.poll(_TICK):
                self._note(event)
                if isinstance(event, TokensCommitted):
                    self._tokens += len(event.tokens)
                    if first is None:
                        first = time.monotonic() - self._begun
                    if more := text.push(event.tokens):
                        commit(more)
                elif isinstance(event, WindowFinished):
                    if more := text.finish():
                        commit(more)
                    tokens = tuple(event.tokens)
                    return _Said(text.all, tokens, event.reason, first)
                elif isinstance(event, RunFinished):
                    raise self._failure(event)
            self._report(text.all)

    def end(self) -> Counters:
        """Nothing more is asked.

        Raises:
            As2dError: the engine failed.
        """
        self._run.finish()
        while self._ended is None:
            for event in self._run.poll(_TICK):
                self._note(event)
        if self._ended.error:
            raise self._failure(self._ended)
        self.seconds = time.monotonic() - self._begun
        return self._run.counters()

    def _failure(self, ended: RunFinished) -> As2dError:
        return As2dError(f"{self._info.name}: answering failed: {ended.error}")

    def _note(self, event: object) -> None:
        match event:
            case LaneChanged(lane=lane, activity=activity, window=index):
                self._lanes[lane] = (activity, index)
            case DraftingChanged(on=on):
                self._drafting = on
            case DrafterLost(message=message):
                self._monitor.warning(
                    f"{self._info.name}: the drafter failed, the target goes alone: {message}"
                )
            case RunFinished():
                self._ended = event
            case _:
                pass  # words, or events for other watchers

    def _report(self, text: str) -> None:
        now = time.monotonic()
        if now < self._next_report:
            return
        self._next_report = now + _REPORT
        self._monitor.progress(
            Progress(
                info=self._info,
                position=0.0,
                settled="",
                # Lines that are whole are on the terminal already, if that is where they go.
                current=text.rpartition("\n")[2],
                words=len(text.split()),
                tokens=self._tokens,
                elapsed=now - self._begun,
                lanes=self._lanes,
                counters=self._run.counters(),
                drafting=self._drafting,
                heading=self.heading,
            )
        )


class _Trimmed:
    """Text of tokens as they come, without white space before and after the whole.

    Attributes:
        all: what was handed out.
    """

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._stream = TextStream(pieces)
        self._held = ""
        self.all = ""

    def push(self, tokens: Sequence[int]) -> str:
        return self._take(self._stream.push(tokens))

    def finish(self) -> str:
        return self._take(self._stream.finish())

    def _take(self, more: str) -> str:
        text = self._held + more
        if not self.all:
            text = text.lstrip()
        new = text.rstrip()
        self._held = text[len(new) :]
        self.all += new
        return new


def _doubts(said: _Said) -> list[str]:
    """What is wrong with an answer."""
    if "loop" in suspicions(said.tokens, said.text):
        return ["goes round in circles"]
    if said.reason == "context":
        return ["fills the model's context and is cut off"]
    if said.reason == "limit":
        return [f"is cut off after {len(said.tokens)} tokens (--max-tokens)"]
    return [] if said.text else ["says nothing"]


def _summary(answer: Answer) -> str:
    """``43 tokens in 2.1 s, the first after 0.8 s, 3.1 accepted per step``."""
    parts = [f"{len(answer.tokens)} tokens in {answer.seconds:.1f} s"]
    if answer.first_seconds is not None:
        parts.append(f"the first after {answer.first_seconds:.1f} s")
    counters = answer.counters
    steps = sum(counters.verify_steps.values()) if counters is not None else 0
    if counters is not None and steps:
        parts.append(f"{counters.accepted / steps:.1f} accepted per step")
    return ", ".join(parts)
