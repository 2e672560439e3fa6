"""The tokens a window's text starts from, and which languages a model takes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from as2d_cli.errors import As2dError, ExitStatus

__all__ = [
    "ModelFacts",
    "check_language",
    "check_translation",
    "has_timestamps",
    "has_word_times",
    "is_multilingual",
    "prompt",
    "takes_text_before",
]


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
    def context(self) -> int: ...
    @property
    def alignment_heads(self) -> Sequence[int]: ...
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


def check_translation(model: ModelFacts) -> None:
    """Refuses to translate with a model that cannot.

    Raises:
        As2dError: status USAGE.
    """
    if is_multilingual(model) and "translate" in model.tokens:
        return
    raise As2dError(
        f"{model.id} cannot translate",
        remedy="choose a multilingual --target for --task translate",
        status=ExitStatus.USAGE,
    )


def has_timestamps(model: ModelFacts) -> bool:
    """The model can say when its segments begin and end."""
    return "timestamp_begin" in model.tokens


def has_word_times(model: ModelFacts) -> bool:
    """It is known which heads of the model follow the audio."""
    return bool(model.alignment_heads)


def takes_text_before(model: ModelFacts) -> bool:
    """The model goes on from text that it did not say itself."""
    return "previous" in model.tokens


def prompt(
    model: ModelFacts,
    language: str,
    *,
    translate: bool = False,
    timestamps: bool = False,
    before: Sequence[int] = (),
) -> list[int]:
    """Start, language, task and no-timestamps where the model has them.

    Args:
        translate: the text is wanted in English.
        timestamps: without the token that forbids them.
        before: tokens of text that came before, or could have; of too many the last are taken.

    Whisper multilingual: <|startoftranscript|><|xx|><|transcribe|><|notimestamps|>; English-only
    models have neither language nor task; Moonshine has the start token alone. (Radford et al.
    2022, figure 1.)
    """
    tokens = model.tokens
    ids = []
    if before and "previous" in tokens:
        ids = [tokens["previous"], *before[-_most_before(model) :]]
    ids.append(tokens["start"])
    if is_multilingual(model):
        ids.append(model.language_tokens[language])
        ids.append(tokens["translate" if translate else "transcribe"])
    if "no_timestamps" in tokens and not timestamps:
        ids.append(tokens["no_timestamps"])
    return ids


def _most_before(model: ModelFacts) -> int:
    """Half of the context is for the text itself, as in Whisper's own decoder."""
    return model.context // 2 - 1
