"""A question about a recording -> the conversation that a language model is to go on with.

The transcript, or the audio, comes before the question: then several questions share their
beginning, which the engine computes once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from as2d_cli.text.chat import Message

__all__ = [
    "AUDIO_SYSTEM",
    "SYSTEM",
    "about_audio",
    "about_audio_part",
    "about_part",
    "about_transcript",
    "from_notes",
]

SYSTEM = (
    "You are given the transcript of a recording. Do what the user asks with it, in plain text and "
    "without comments. Use only what the transcript says. If asked for something that the "
    "transcript does not contain, say that there is none. If asked to correct it, repeat all of it "
    "with its mistakes corrected."
)
"""What the model is told unless the user says something else. Chosen by what Qwen2.5-Coder 1.5B
makes of it: without the third sentence it invents tasks and names, and with a stricter one it finds
nothing at all; without the last it says that the transcript is correct.
"""


AUDIO_SYSTEM = (
    "You hear a recording. Do what the user asks with it, in plain text and without comments. Use "
    "only what is said in it. If asked for something that it does not contain, say that there is "
    "none. If asked for a transcript, write down all that is said."
)
"""The same for a model that hears the recording itself. Not tried on any yet."""


def about_transcript(system: str, transcript: str, question: str) -> list[Message]:
    """The whole transcript, and the question."""
    return _conversation(system, f"Transcript:\n{transcript}", question)


def about_part(system: str, part: str, question: str, number: int, count: int) -> list[Message]:
    """One of several parts of a transcript that is too long; `number` counts from 1."""
    return _conversation(system, f"Part {number} of {count} of the transcript:\n{part}", question)


def from_notes(system: str, notes: Sequence[str], question: str) -> list[Message]:
    """What was answered about the parts, to be made one answer."""
    listed = "\n\n".join(f"Part {i}: {note}" for i, note in enumerate(notes, 1))
    source = f"Answers from the parts of a transcript, to be made one:\n{listed}"
    return _conversation(system, source, question)


def _conversation(system: str, source: str, question: str) -> list[Message]:
    return [*_told(system), Message("user", f"{source}\n\nRequest: {question}")]


def about_audio(system: str, question: Message) -> list[Message]:
    """A question about a recording that the model hears itself."""
    return [*_told(system), question]


def about_audio_part(
    system: str, ask: Callable[[str], Message], question: str, number: int, count: int
) -> list[Message]:
    """The same about one of several parts of a recording that is too long; `number` counts from 1.

    Args:
        ask: the user's message with the audio, from its text.
    """
    return about_audio(system, ask(f"Part {number} of {count} of the recording.\n\n{question}"))


def _told(system: str) -> list[Message]:
    return [Message("system", system)] if system else []
