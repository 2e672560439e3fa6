"""What questions are about: a transcript, or a recording that the model hears itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from as2d_cli.audio.downmix import Samples
from as2d_cli.tasks.models import Model
from as2d_cli.tasks.prompting import Prompt, Prompter
from as2d_cli.text.audio_chat import AudioChat, padded
from as2d_cli.text.chat import Message
from as2d_cli.text.question import about_audio, about_audio_part, about_part

__all__ = ["Heard", "Span", "Subject", "Written"]

Span = tuple[int, int]
"""(from, to) in samples."""


class Subject(Protocol):
    """What is asked about.

    Attributes:
        noun: what it is called.
    """

    noun: str

    def whole(self, question: str) -> Prompt:
        """A question about all of it, which may be too much for the model."""

    def parts(self, question: str) -> list[Prompt]:
        """The question about each of as few parts as the model can take.

        Raises:
            As2dError: the question is too long.
        """


class Written:
    """A transcript, in lines."""

    noun = "the transcript"

    def __init__(self, lines: Sequence[str], system: str, prompter: Prompter) -> None:
        self._lines, self._system, self._prompter = lines, system, prompter

    def whole(self, question: str) -> Prompt:
        """See `Subject`."""
        return self._prompter.about(self._lines, question)

    def parts(self, question: str) -> list[Prompt]:
        """See `Subject`."""

        def about(lines: list[str], i: int, count: int) -> list[Message]:
            return about_part(self._system, "\n".join(lines), question, i, count)

        number = 99  # as wide as any number of parts
        parts = self._prompter.groups(self._lines, lambda lines: about(lines, number, number))
        return [
            self._prompter.prompt(about(lines, i, len(parts))) for i, lines in enumerate(parts, 1)
        ]


class Heard:
    """A recording, from the first to the last that is spoken in it."""

    noun = "the recording"

    def __init__(
        self,
        samples: Samples,
        spoken: Sequence[Span],
        system: str,
        model: Model,
        prompter: Prompter,
        language: str = "",
    ) -> None:
        """Args:
            samples: float32[n], 16 kHz.
            spoken: stretches of it with speech, none longer than a window of the model; at least
                one. What is between two of them is heard with them, unless a part ends there.
            language: code of what is spoken, for a drafter.

        Raises:
            As2dError: the model cannot be talked to.
        """
        self._samples, self._spoken, self._system = samples, spoken, system
        self._chat, self._prompter, self._language = AudioChat.of(model), prompter, language
        self._window = model.window_samples
        self._last: tuple[Span, Samples] | None = None

    def whole(self, question: str) -> Prompt:
        """See `Subject`."""
        return self._prompt((self._spoken[0][0], self._spoken[-1][1]), question)

    def parts(self, question: str) -> list[Prompt]:
        """See `Subject`."""
        number = 99  # as wide as any number of parts
        parts: list[Span] = []
        for start, end in self._spoken:
            if parts and self._prompter.fits(
                self._prompt((parts[-1][0], end), question, number, number)
            ):
                parts[-1] = (parts[-1][0], end)
            elif self._prompter.fits(self._prompt((start, end), question, number, number)):
                parts.append((start, end))
            else:
                raise self._prompter.too_long()
        return [self._prompt(part, question, i, len(parts)) for i, part in enumerate(parts, 1)]

    def _prompt(self, part: Span, question: str, number: int = 1, count: int = 1) -> Prompt:
        """`number` of `count` parts."""
        ask = self._chat.message
        if count == 1:
            messages = about_audio(self._system, ask(question))
        else:
            messages = about_audio_part(self._system, ask, question, number, count)
        samples = self._heard(part)
        ids = self._chat.prompt(messages, len(samples))
        return Prompt(ids, samples=samples, span=part, language=self._language)

    def _heard(self, part: Span) -> Samples:
        """What the model is given of a part; one array for several questions about it."""
        if self._last is None or self._last[0] != part:
            heard = self._samples[part[0] : part[1]]
            more = padded(len(heard), self._window) - len(heard)
            self._last = part, np.pad(heard, (0, more))
        return self._last[1]
