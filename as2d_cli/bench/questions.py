"""Questions about recordings as units of a bench."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from as2d_cli.audio.decode import RATE
from as2d_cli.bench.dataset import Clip
from as2d_cli.bench.units import Asked, Piece, Unit
from as2d_cli.errors import As2dError, ExitStatus
from as2d_cli.tasks.asking import nothing_said
from as2d_cli.tasks.models import Model
from as2d_cli.tasks.prompting import AskOptions, Prompter
from as2d_cli.tasks.recording import Recording
from as2d_cli.tasks.subject import Heard, Subject, Written
from as2d_cli.tasks.transcript import Transcript
from as2d_cli.text.question import AUDIO_SYSTEM, SYSTEM

__all__ = [
    "QUESTIONS",
    "About",
    "Question",
    "UnusableError",
    "listened",
    "load_questions",
    "question_units",
    "read",
]

_FREE, _SOURCE = "free-form", "source-repeating"


@dataclass(frozen=True)
class Question:
    """A question and the kind of answer that it asks for, to report on."""

    text: str
    category: str = ""


QUESTIONS = (
    Question("summarize", _FREE),
    Question("what are the action items?", _FREE),
    Question("who speaks, and about what?", _FREE),
    Question("correct the transcript", _SOURCE),
    Question("quote the most important sentence", _SOURCE),
    Question("repeat the transcript, one sentence a line", _SOURCE),
)
"""Half of them have answers in the model's own words, half repeat what was said."""


def load_questions(path: Path | None) -> Sequence[Question]:
    """The questions of a file, one a line, a category before a tab; `QUESTIONS` without one.

    Raises:
        As2dError: status USAGE; it cannot be read, or has none.
    """
    if path is None:
        return QUESTIONS
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as e:
        raise As2dError(f"{path}: cannot be read ({e})", status=ExitStatus.USAGE) from None
    found = []
    for line in filter(None, map(str.strip, lines)):
        category, tab, text = line.rpartition("\t")
        found.append(Question(text.strip(), category.strip() if tab else ""))
    if not found:
        raise As2dError(f"{path}: no question", status=ExitStatus.USAGE)
    return found


class UnusableError(Exception):
    """A clip that cannot be used."""


@dataclass(frozen=True)
class About:
    """What is asked about.

    Attributes:
        subject: for the prompts.
        seconds: of the recording.
    """

    subject: Subject
    seconds: float


def read(transcript: Transcript, prompter: Prompter) -> About | None:
    """A transcript to ask a model about that reads; None where nobody speaks."""
    if nothing_said(transcript):
        return None
    lines = [segment.text for segment in transcript.segments]
    return About(Written(lines, SYSTEM, prompter), transcript.duration)


def listened(recording: Recording, target: Model, prompter: Prompter) -> About | None:
    """A recording to ask a model about that hears; None where nobody speaks."""
    if not recording.spoken:
        return None
    subject = Heard(recording.samples, recording.spoken, AUDIO_SYSTEM, target, prompter)
    return About(subject, recording.seconds)


def question_units(
    clips: Sequence[Clip],
    questions: Sequence[Question],
    target: Model,
    *,
    about: Callable[[Clip, Prompter], About | None],
    left_out: Callable[[str], None],
) -> list[Unit]:
    """A unit for each recording and question.

    Args:
        target: the model that answers.
        about: what is asked about a clip; None where nobody speaks. Raises UnusableError for a
            clip of which somebody was told why.
        left_out: is told of clips that nothing can be asked about.
    """
    prompter = Prompter(target, AskOptions())
    units: list[Unit] = []
    for recording, clip in enumerate(clips):
        try:
            known = about(clip, prompter)
        except UnusableError:
            continue
        if known is None:
            left_out(f"left out: {clip.path}: no speech")
            continue
        audio = Piece(0, 0, round(known.seconds * RATE))
        for asked in _asked(prompter, known.subject, questions):
            if asked is None:
                left_out(f"left out: {clip.path}: too long for {target.id}")
                break
            category = questions[asked.number].category
            # The reference text is the recording's, and no answer's.
            without = replace(clip, text=None, category=category)
            language = clip.language or next(iter(target.languages), "")
            units.append(Unit(without, recording, (audio,), True, language, asked))
    return units


def _asked(
    prompter: Prompter, subject: Subject, questions: Sequence[Question]
) -> Iterator[Asked | None]:
    """Nothing where prompt and answer do not fit the context."""
    for number, question in enumerate(questions):
        prompt = subject.whole(question.text)
        if not prompter.fits(prompt):
            yield None
            return
        span = prompt.span
        yield Asked(
            number,
            question.text,
            tuple(prompt.ids),
            prompter.limit(prompt),
            span,
            None if span is None else prompt.samples,
        )
