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
from as2d_cli.tasks.transcript import Transcript

__all__ = ["QUESTIONS", "Question", "load_questions", "question_units"]

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


def question_units(
    clips: Sequence[Clip],
    questions: Sequence[Question],
    target: Model,
    *,
    hear: Callable[[Clip], Transcript | None],
    left_out: Callable[[str], None],
) -> list[Unit]:
    """A unit for each recording and question.

    Args:
        target: the model that answers.
        hear: the transcript of a clip, or None, of which somebody was told why.
        left_out: is told of clips that nothing can be asked about.
    """
    prompter = Prompter(target, AskOptions())
    units: list[Unit] = []
    for recording, clip in enumerate(clips):
        transcript = hear(clip)
        if transcript is None:
            continue
        if nothing_said(transcript):
            left_out(f"left out: {clip.path}: no speech")
            continue
        lines = [segment.text for segment in transcript.segments]
        audio = Piece(0, 0, round(transcript.duration * RATE))
        for asked in _asked(prompter, lines, questions):
            if asked is None:
                left_out(f"left out: {clip.path}: too long for {target.id}")
                break
            category = questions[asked.number].category
            # The reference text is the recording's, and no answer's.
            about = replace(clip, text=None, category=category)
            language = next(iter(target.languages), "")
            units.append(Unit(about, recording, (audio,), True, language, asked))
    return units


def _asked(
    prompter: Prompter, lines: Sequence[str], questions: Sequence[Question]
) -> Iterator[Asked | None]:
    """Nothing where prompt and answer do not fit the context."""
    for number, question in enumerate(questions):
        prompt = prompter.about(lines, question.text)
        if not prompter.fits(prompt):
            yield None
            return
        yield Asked(number, question.text, tuple(prompt.ids), prompter.limit(prompt))
