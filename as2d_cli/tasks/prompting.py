"""What a language model is asked about a transcript, and how much it may answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from as2d_cli.audio.downmix import Samples
from as2d_cli.errors import As2dError
from as2d_cli.tasks.models import Model
from as2d_cli.text.chat import Chat, Message
from as2d_cli.text.question import SYSTEM, about_transcript

__all__ = ["AskOptions", "Prompt", "Prompter", "same_tokens"]

_ROOM = 512
"""Tokens left for an answer, at least, where nobody says how many."""


@dataclass(frozen=True)
class AskOptions:
    """What is asked of the answers.

    Attributes:
        system: what the model is told before the transcript; empty for nothing at all.
        max_tokens: of an answer; None for what suits the transcript's length.
        temperature: 0 for the likeliest words; above, words are drawn by chance.
        seed: what chance comes from, of 32 bits: with the same one the answers are the same.
    """

    system: str = SYSTEM
    max_tokens: int | None = None
    temperature: float = 0.0
    seed: int = 0


@dataclass(frozen=True)
class Prompt:
    """A conversation to go on with.

    Attributes:
        ids: as the model's tokens.
        draft_ids: as those of a drafter with another vocabulary; empty for any other.
        samples: float32[n], 16 kHz: what the model hears; none for a model that reads.
        span: where in the recording they begin and end, in samples; None for no samples.
        language: code of what is spoken in it, for a drafter that hears it.
    """

    ids: Sequence[int]
    draft_ids: Sequence[int] = ()
    samples: Samples = field(default_factory=lambda: np.empty(0, np.float32))
    span: tuple[int, int] | None = None
    language: str = ""


class Prompter:
    """Prompts for one model, and for its drafter.

    Attributes:
        room: tokens that are left for an answer, at least.
    """

    def __init__(self, model: Model, options: AskOptions, drafter: Model | None = None) -> None:
        """Raises As2dError: a model cannot be talked to.

        Args:
            drafter: one that is talked to as well; no listener.
        """
        self._model, self._options = model, options
        self._chat = Chat.of(model)
        self._draft_chat: Chat | None = None
        if drafter is not None and not same_tokens(drafter, model):
            self._draft_chat = Chat.of(drafter)
        self.room = min(options.max_tokens or _ROOM, model.context // 4)

    def about(self, lines: Sequence[str], question: str) -> Prompt:
        """The whole transcript, and the question."""
        return self.prompt(about_transcript(self._options.system, "\n".join(lines), question))

    def prompt(self, messages: Sequence[Message]) -> Prompt:
        """Any conversation."""
        draft = self._draft_chat.prompt(messages) if self._draft_chat is not None else ()
        return Prompt(self._chat.prompt(messages), draft)

    def source(self, texts: Sequence[str]) -> list[int]:
        """`texts` in the model's tokens, to look answers up in."""
        return [token for text in texts for token in self._chat.ids(f" {text}\n")]

    def fits(self, prompt: Prompt) -> bool:
        """The context holds it and an answer."""
        return len(prompt.ids) + self.room <= self._model.context

    def limit(self, prompt: Prompt) -> int:
        """Most tokens of an answer: a transcript that is said again is no longer than itself."""
        room = self._model.context - len(prompt.ids)
        return min(room, self._options.max_tokens or max(_ROOM, 2 * len(prompt.ids)))

    def groups(
        self, texts: Sequence[str], about: Callable[[list[str]], list[Message]]
    ) -> list[list[str]]:
        """`texts` in as few groups as fit the context together with what is asked `about` them.

        Raises:
            As2dError: not even one of them fits.
        """
        groups: list[list[str]] = [[]]
        for text in texts:
            if self.fits(self.prompt(about([*groups[-1], text]))):
                groups[-1].append(text)
            elif not groups[-1] or not self.fits(self.prompt(about([text]))):
                raise self.too_long()
            else:
                groups.append([text])
        return groups

    def too_long(self) -> As2dError:
        """The question, that is."""
        return As2dError(
            f"the question is too long for {self._model.id}, which holds {self._model.context} "
            "tokens",
            remedy="ask something shorter",
        )


def same_tokens(one: Model, other: Model) -> bool:
    """A conversation is the same ids for both."""
    return one.special == other.special and one.vocabulary().pieces == other.vocabulary().pieces
