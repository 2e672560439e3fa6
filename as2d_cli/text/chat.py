"""A conversation -> the ids that a language model answers, by the model's own template.

Example::

    chat = Chat.of(bundle)
    ids = chat.prompt([Message("system", "Be brief."), Message("user", "Who speaks?")])
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn, Protocol, Self

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from as2d_cli.catalog.build import CHAT_TEMPLATE
from as2d_cli.errors import As2dError, ExitStatus
from as2d_cli.text.bpe import BpeEncoder

__all__ = ["Chat", "ChatModel", "Message"]

_BREAK = "\ufdd0"
"""A code point that is no character, put into what looks like a special token and taken out again
after the template was filled in.
"""


@dataclass(frozen=True)
class Message:
    """What one side says: ``system``, ``user`` or ``assistant``.

    Attributes:
        content: text, though it may look like a special token.
        audio: the special token that stands for audio, which is heard before `content`; empty for
            none.
        in_parts: the template writes that token itself, where a part of the content is audio.
    """

    role: str
    content: str
    audio: str = ""
    in_parts: bool = False


class _Pieces(Protocol):
    @property
    def pieces(self) -> Sequence[bytes]: ...
    @property
    def merge_ranks(self) -> bool: ...
    @property
    def merges(self) -> Sequence[int]: ...


class ChatModel(Protocol):
    """What is used of a bundle."""

    @property
    def id(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def path(self) -> Path: ...
    @property
    def tokens(self) -> Mapping[str, int]: ...
    @property
    def pre_tokenizer(self) -> str: ...
    @property
    def special(self) -> Mapping[int, str]: ...
    def vocabulary(self) -> _Pieces: ...


class Chat:
    """How one model is talked to."""

    def __init__(
        self,
        template: str,
        encoder: BpeEncoder,
        special_tokens: Mapping[str, int],
        *,
        name: str = "the model",
        knows_system: bool = True,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """Args:
            template: in Jinja; it is not trusted.
            special_tokens: ids of what is a token of its own where the template writes it.
            name: whose template it is, for messages.
            knows_system: the model was taught to heed a system; else the user says the same.
            variables: for the template, such as ``bos_token``.

        Raises:
            As2dError: status UNAVAILABLE; it is no template.
        """
        self._name, self._encoder, self._knows_system = name, encoder, knows_system
        self._specials = dict(special_tokens)
        # The longest first: one may begin as another does.
        longest = sorted((t for t in self._specials if len(t) > 1), key=len, reverse=True)
        self._special = re.compile("|".join(map(re.escape, longest)) or r"(?!)")
        self._variables = dict(variables or {})
        self._template = self._compiled(template)

    @classmethod
    def of(cls, model: ChatModel) -> Self:
        """How the model of a bundle is talked to.

        Raises:
            As2dError: status UNAVAILABLE; the bundle is broken, or its vocabulary unknown.
        """
        path = model.path / CHAT_TEMPLATE
        try:
            template = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as e:
            raise As2dError(
                f"{path}: cannot be read ({getattr(e, 'strerror', None) or 'it is not text'})",
                remedy="pull the model again with --force",
                status=ExitStatus.UNAVAILABLE,
            ) from None
        vocabulary = model.vocabulary()
        encoder = BpeEncoder(
            vocabulary.pieces,
            model.pre_tokenizer,
            merge_ranks=vocabulary.merge_ranks,
            merges=vocabulary.merges,
        )
        special_tokens = {text: token for token, text in model.special.items()}
        named = {"bos_token": "start", "eos_token": "end"}
        variables = {
            variable: model.special.get(model.tokens.get(name, -1), "")
            for variable, name in named.items()
        }
        return cls(
            template,
            encoder,
            special_tokens,
            name=model.id,
            # Some templates of Voxtral write what a system says, which the model was not taught.
            knows_system=model.kind != "voxtral",
            variables=variables,
        )

    def prompt(self, messages: Sequence[Message]) -> list[int]:
        """The ids after which the model's answer begins. What is written in `messages` is text,
        though it may look like a special token.

        Raises:
            As2dError: the template refuses the conversation.
        """
        if not self._knows_system:
            messages = _without_system(messages)
        try:
            text = self._render(messages)
        except Exception as e:  # a template may fail in any way that Python knows
            self._fail(f"refuses the conversation: {str(e) or type(e).__name__}")
        ids: list[int] = []
        at = 0
        for special in self._special.finditer(text):
            ids += self._plain(text[at : special.start()])
            ids.append(self._specials[special[0]])
            at = special.end()
        return ids + self._plain(text[at:])

    def _render(self, messages: Sequence[Message]) -> str:
        said = [{"role": m.role, "content": self._content(m)} for m in messages]
        text: str = self._template.render(
            messages=said, add_generation_prompt=True, **self._variables
        )
        return text

    def _content(self, message: Message) -> str | list[dict[str, str]]:
        text = self._broken(message.content)
        if not message.audio:
            return text
        if message.in_parts:
            return [{"type": "audio"}, {"type": "text", "text": text}]
        return f"{message.audio}\n{text}"

    def count(self, text: str) -> int:
        """How many ids `text` is, by itself."""
        return len(self._encoder.encode(text))

    def ids(self, text: str) -> list[int]:
        """Those of `text` by itself."""
        return self._encoder.encode(text)

    def _plain(self, text: str) -> list[int]:
        return self._encoder.encode(text.replace(_BREAK, "")) if text else []

    def _broken(self, content: str) -> str:
        """`content` without anything that is taken for a special token."""
        content = content.replace(_BREAK, "\N{REPLACEMENT CHARACTER}")
        while self._special.search(content):  # one may hold another
            content = self._special.sub(lambda f: f"{f[0][:1]}{_BREAK}{f[0][1:]}", content)
        return content

    def _compiled(self, template: str) -> Any:
        # As huggingface/transformers sets it up, for which templates are written.
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )

        def refuse(message: str) -> NoReturn:
            raise jinja2.TemplateError(message)

        environment.globals["raise_exception"] = refuse
        try:
            return environment.from_string(template)
        except Exception as e:  # a template may be too much for Python's own compiler, too
            self._fail(f"is not understood: {e}")

    def _fail(self, problem: str) -> NoReturn:
        raise As2dError(
            f"the chat template of {self._name} {problem}",
            remedy="choose another model",
            status=ExitStatus.UNAVAILABLE,
        ) from None


def _without_system(messages: Sequence[Message]) -> Sequence[Message]:
    """The same, but that the user says what the system would have."""
    match messages:
        case [Message("system") as system, Message("user") as user, *others]:
            content = f"{system.content}\n\n{user.content}"
            return [replace(user, content=content), *others]
    return messages
