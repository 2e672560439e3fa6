"""Answers about one recording, and those who receive them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from as2d_cli.tasks.transcript import Counters, Transcript

__all__ = ["NO_SPEECH", "Answer", "AnswerSink", "Answers", "Planned"]

NO_SPEECH = "no speech"
"""The answer to any question about a recording in which nobody speaks."""


@dataclass(frozen=True)
class Answer:
    """What the model says to one question.

    Attributes:
        text: as the model said it, but for white space around it.
        tokens: its ids, specials left out.
        reason: why it ends: ``end`` (the model said so), ``limit``, ``context`` or `NO_SPEECH`.
        prompt_tokens: of the last thing that the model was asked.
        notes: of a transcript that was asked about in parts: what was said to each of them.
        seconds: wall time from the question to the end of the answer, and to its first word.
    """

    question: str
    text: str
    tokens: tuple[int, ...] = ()
    reason: str = NO_SPEECH
    prompt_tokens: int = 0
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    first_seconds: float | None = None
    counters: Counters | None = None

    @property
    def speech(self) -> bool:
        """There was something to ask about."""
        return self.reason != NO_SPEECH


@dataclass(frozen=True)
class Planned:
    """How the model that answers is run; see `as2d_cli.decoding.Plan`."""

    budget: int
    target_cores: tuple[int, ...]
    draft_cores: tuple[int, ...]
    pin: bool


@dataclass
class Answers:
    """All answers about one recording.

    Attributes:
        model: id of the one that answers, or None where there was nothing to ask about.
        drafter, method: of the answers; those of the speech stage are in `transcript`.
        plan, why: how the model is run, and what that was decided by.
        system, temperature, seed: see `as2d_cli.tasks.prompting.AskOptions`.
        prompt_tokens_ahead: of the first question's prompt, computed while the recording was heard.
        wall: seconds that answering took, all questions together.
    """

    transcript: Transcript
    model: str | None = None
    drafter: str | None = None
    method: str | None = None
    plan: Planned | None = None
    why: str = ""
    system: str = ""
    temperature: float = 0.0
    seed: int = 0
    prompt_tokens_ahead: int = 0
    answers: list[Answer] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    wall: float = 0.0


class AnswerSink(Protocol):
    """Who receives the answers. Calls: begin, (question, commit*, answer)*, end; or abandon at any
    point after begin.
    """

    def begin(self, transcript: Transcript, questions: Sequence[str]) -> None: ...
    def question(self, question: str) -> None: ...
    def commit(self, text: str) -> None:
        """More text of the current answer; final, never empty."""

    def answer(self, answer: Answer) -> None:
        """The current answer is complete."""

    def end(self, answers: Answers) -> None: ...
    def abandon(self) -> None:
        """It ends here, in the middle: interrupted or failed."""
