"""A question about audio -> the ids that a model which hears answers.

In a prompt, a token of its own stands for each line that the model's encoder makes of the audio.

Example::

    chat = AudioChat.of(bundle)
    ids = chat.prompt([chat.message("Who speaks?")], samples=len(samples))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self

from as2d_cli.errors import As2dError, ExitStatus
from as2d_cli.text.chat import Chat, ChatModel, Message

__all__ = ["AudioChat", "AudioModel", "padded"]

_FRAME = 160
"""Samples of a frame of the features."""

_LEAST = 2 * _FRAME
"""Samples, that the encoder has something to make a line of."""

_BEGIN = "[BEGIN_AUDIO]"
"""What Voxtral's processor writes before the audio."""


class AudioModel(ChatModel, Protocol):
    """What is used of a bundle."""

    @property
    def kind(self) -> str: ...
    @property
    def window_samples(self) -> int: ...
    @property
    def pad_to_window(self) -> bool: ...
    @property
    def samples_per_position(self) -> int: ...
    @property
    def spare_positions(self) -> int: ...


def padded(samples: int, window: int) -> int:
    """How many samples the model is given for so many: whole frames, and enough of them in each
    window of so many samples.
    """
    whole = max(_LEAST, -(-samples // _FRAME) * _FRAME)
    return whole + _FRAME if whole % window == _FRAME else whole


class AudioChat:
    """How one model is talked to about what it hears."""

    def __init__(self, chat: Chat, model: AudioModel) -> None:
        self._chat, self._model = chat, model
        self._audio = model.tokens["audio"]
        begin = (token for token, text in model.special.items() if text == _BEGIN)
        self._begin = next(begin, None)

    @classmethod
    def of(cls, model: AudioModel) -> Self:
        """How the model of a bundle is talked to.

        Raises:
            As2dError: status UNAVAILABLE; the bundle is broken.
        """
        return cls(Chat.of(model), model)

    def message(self, question: str) -> Message:
        """What the user asks about the audio, which comes first: then several questions share the
        beginning of their prompts, which the engine computes once.
        """
        # Voxtral's template takes a list of parts, Ultravox's is that of a Llama.
        parts = self._model.kind == "voxtral"
        return Message("user", question, self._model.special[self._audio], in_parts=parts)

    def prompt(self, messages: Sequence[Message], samples: int) -> list[int]:
        """The ids after which the answer begins.

        Args:
            messages: one of them is `message`.
            samples: of the audio, as `padded` has them.

        Raises:
            As2dError: the template refuses the conversation, or leaves the audio out.
        """
        ids = self._chat.prompt(messages)
        if ids.count(self._audio) != 1:
            raise As2dError(
                f"the chat template of {self._model.id} has no place for audio",
                remedy="choose another model",
                status=ExitStatus.UNAVAILABLE,
            )
        at = ids.index(self._audio)
        begins = self._begin is not None and (at == 0 or ids[at - 1] != self._begin)
        before = [self._begin] if begins and self._begin is not None else []
        return [*ids[:at], *before, *[self._audio] * self.positions(samples), *ids[at + 1 :]]

    def positions(self, samples: int) -> int:
        """Lines that the encoder makes of so many samples, run by run."""
        model = self._model
        whole, rest = divmod(samples, model.window_samples)
        if rest and model.pad_to_window:
            whole, rest = whole + 1, 0
        counts = [model.window_samples] * whole + [rest] * bool(rest)
        return sum(-(-n // model.samples_per_position) + model.spare_positions for n in counts)
