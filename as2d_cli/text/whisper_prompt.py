"""The tokens a window's text starts from, and which languages a model takes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from as2d_cli.errors import As2dError, ExitStatus

__all__ = ["ModelFacts", "check_language", "is_multilingual", "prompt"]


class ModelFacts(Protocol):
    """What a prompt needs to know of a bundle."""

    @property
    def id(self) -> str: ...
    @property
    def family(self) -> str: ...
    @property
    def languages(self) -> Collection[str]: ...
    @property
    def tokens(self) -> Mapping[str, int]: ...
    @property
    def language_tokens(self) -> Mapping[str, int]: ...


def is_multilingual(model: ModelFacts) -> bool:
    """The model is told its language by a token; the others know one language only."""
    return bool(model.language_tokens)


def check_language(model: ModelFacts, code: str) -> None:
    """Refuses a language that `model` does not know.

    Raises:
        As2dError: status USAGE; lists the codes that would do.
    """
    known = model.language_tokens or model.languages
    if code in known:
        return
    if is_multilingual(model):
        message = f"unknown language '{code}' for --language"
        remedy = f"{model.id} knows: auto {' '.join(sorted(known))}"
    else:
        message = f"{model.id} knows only {' '.join(sorted(known))}, not '{code}' of --language"
        remedy = "leave --language out, or choose a multilingual --target"
    raise As2dError(message, remedy=remedy, status=ExitStatus.USAGE)


def prompt(model: ModelFacts, language: str) -> list[int]:
    """Start, language, task and no-timestamps where the model has them.

    Whisper multilingual: <|startoftranscript|><|xx|><|transcribe|><|notimestamps|>; English-only
    models have neither language nor task; Moonshine has the start token alone. (Radford et al.
    2022, figure 1.)
    """
    tokens = model.tokens
    ids = [tokens["start"]]
    if is_multilingual(model):
        ids += [model.language_tokens[language], tokens["transcribe"]]
    if "no_timestamps" in tokens:
        ids.append(tokens["no_timestamps"])
    return ids
