"""Answers as text, and as JSON."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from as2d_cli import __version__
from as2d_cli.errors import As2dError, one_line
from as2d_cli.output.answer_format import AnswerFormat
from as2d_cli.output.json_format import clean, ratio, strict
from as2d_cli.output.renderer import Writer
from as2d_cli.tasks.answer import Answer, Answers
from as2d_cli.tasks.transcript import Transcript

__all__ = ["AnswerRenderer", "answer_renderer"]


class AnswerRenderer(ABC):
    """Turns answers into one format; see `as2d_cli.tasks.answer.AnswerSink` for the calls."""

    def __init__(self, out: Writer) -> None:
        self.out = out

    def begin(  # noqa: B027 - most formats have nothing to do in these
        self, transcript: Transcript, questions: Sequence[str]
    ) -> None:
        """A recording has been heard."""

    def question(self, question: str) -> None:  # noqa: B027
        """What comes is the answer to this."""

    def commit(self, text: str) -> None:  # noqa: B027
        """More text of the current answer; final, never empty."""

    def answer(self, answer: Answer) -> None:  # noqa: B027
        """The current answer is complete."""

    @abstractmethod
    def end(self, answers: Answers) -> None:
        """All answers are complete."""

    def abandon(self) -> None:
        """It ends in the middle; what is visible is left in good order. Never fails."""
        with contextlib.suppress(As2dError, OSError):
            self._abandon()

    def _abandon(self) -> None:  # noqa: B027
        """`abandon` of the format."""


def answer_renderer(format: AnswerFormat, out: Writer, *, transcript: bool) -> AnswerRenderer:
    """The renderer of `format`; `transcript`: with its text in the text format."""
    match format:
        case AnswerFormat.TEXT:
            return _TextAnswers(out, transcript=transcript)
        case AnswerFormat.JSON:
            return _JsonAnswers(out)
        case AnswerFormat.JSONL:
            return _JsonLinesAnswers(out)


class _TextAnswers(AnswerRenderer):
    """The answers, streamed. Where there is more than one thing to read, each has a heading."""

    def __init__(self, out: Writer, *, transcript: bool) -> None:
        super().__init__(out)
        self._with_transcript = transcript
        self._headings = False
        self._blank = False
        self._open = False

    def begin(self, transcript: Transcript, questions: Sequence[str]) -> None:
        self._headings = len(questions) > 1 or self._with_transcript
        if self._with_transcript:
            self._heading("transcript")
            for segment in transcript.segments:
                self.out.write(f"{segment.text}\n")
            self.out.flush()

    def question(self, question: str) -> None:
        if self._headings:
            self._heading(one_line(question))

    def commit(self, text: str) -> None:
        self.out.write(text)
        self._open = True
        if self.out.is_terminal:
            self.out.flush()

    def answer(self, answer: Answer) -> None:
        self.out.write("\n")
        self._open = False
        self.out.flush()

    def end(self, answers: Answers) -> None:
        self.out.flush()

    def _heading(self, text: str) -> None:
        self.out.write(f"\n> {text}\n" if self._blank else f"> {text}\n")
        self._blank = True

    def _abandon(self) -> None:
        if self._open:
            self.out.write("\n")
        self.out.flush()


class _JsonAnswers(AnswerRenderer):
    """One object."""

    def end(self, answers: Answers) -> None:
        data = {
            **_heard(answers.transcript),
            **_asked(answers),
            "answers": [_answer(answer) for answer in answers.answers],
            **_closing(answers),
        }
        self.out.write(strict(data) + "\n")
        self.out.flush()


class _JsonLinesAnswers(AnswerRenderer):
    """``type`` is ``transcript``, ``answer`` or ``end``; each names its file."""

    def __init__(self, out: Writer) -> None:
        super().__init__(out)
        self._file = ""

    def begin(self, transcript: Transcript, questions: Sequence[str]) -> None:
        self._file = transcript.info.name
        self._line("transcript", _heard(transcript))

    def answer(self, answer: Answer) -> None:
        self._line("answer", _answer(answer))

    def end(self, answers: Answers) -> None:
        self._line("end", {**_asked(answers), **_closing(answers)})

    def _line(self, kind: str, data: dict[str, Any]) -> None:
        self.out.write(strict({"type": kind, "file": self._file, **data}) + "\n")
        self.out.flush()


def _heard(transcript: Transcript) -> dict[str, Any]:
    """The speech stage as plain data; none of it where the model itself hears."""
    info = transcript.info
    about = {
        "file": info.name,
        "duration": round(transcript.duration, 3),
        "language": transcript.language,
    }
    if not transcript.written:
        return {**about, "transcript": None, "speech": None}
    return {
        **about,
        "transcript": transcript.text,
        "speech": {
            "model": info.target,
            "drafter": info.drafter,
            "method": info.method,
            "warnings": list(transcript.warnings),
            "seconds": round(transcript.wall, 3),
        },
    }


def _asked(answers: Answers) -> dict[str, Any]:
    return {
        "model": answers.model,
        "drafter": answers.drafter,
        "method": answers.method,
        "plan": None if answers.plan is None else asdict(answers.plan),
        "why": answers.why,
        "system": answers.system,
        "temperature": answers.temperature,
        "seed": answers.seed,
        "prompt_tokens_ahead": answers.prompt_tokens_ahead,
    }


def _answer(answer: Answer) -> dict[str, Any]:
    counters = answer.counters
    steps = sum(counters.verify_steps.values()) if counters is not None else 0
    first = answer.first_seconds
    return {
        "question": answer.question,
        "answer": answer.text,
        "reason": answer.reason,
        "parts": len(answer.notes) or 1,
        "notes": list(answer.notes),
        "prompt_tokens": answer.prompt_tokens,
        "tokens": len(answer.tokens),
        "seconds": round(answer.seconds, 3),
        "first_seconds": None if first is None else round(first, 3),
        "rates": {
            "tokens_per_second": ratio(counters.committed, answer.seconds) if counters else None,
            "acceptance": ratio(counters.accepted, counters.proposed) if counters else None,
            "accepted_per_step": ratio(counters.accepted, steps) if counters else None,
        },
        "counters": clean(counters.as_json()) if counters is not None else None,
    }


def _closing(answers: Answers) -> dict[str, Any]:
    return {
        "warnings": list(answers.warnings),
        "seconds": round(answers.wall, 3),
        "version": __version__,
    }
