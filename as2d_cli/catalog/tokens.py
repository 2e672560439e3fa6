"""Whisper's special tokens, read from the tokenizer's own names and the model's configuration.

Nothing is mapped by number: English-only and multilingual vocabularies are shifted by one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from as2d_cli.catalog.tokenizer_json import read_json
from as2d_cli.catalog.vocabulary import (
    Vocabulary,
    VocabularyError,
    added_tokens,
    from_byte_level_bpe,
)

# From this size on a Whisper vocabulary is multilingual (openai/whisper: ``is_multilingual``).
_MULTILINGUAL_SIZE = 51865
_LANGUAGE = re.compile(r"<\|([a-z]{2,3})\|>")
_NAMES = {
    "start": ("<|startoftranscript|>",),
    "end": ("<|endoftext|>",),
    "transcribe": ("<|transcribe|>",),
    "translate": ("<|translate|>",),
    "no_timestamps": ("<|notimestamps|>",),
    # Both names are in use for the same token.
    "no_speech": ("<|nospeech|>", "<|nocaptions|>"),
    "previous": ("<|startofprev|>",),
}


@dataclass(frozen=True)
class WhisperTokens:
    """Everything about a Whisper vocabulary that decoding needs.

    Attributes:
        names: ids of special tokens by their name in ``bundle.txt``.
        languages: id by language code, in token order; empty for English-only models.
        suppress, begin_suppress: ids never chosen; ids never chosen first.
    """

    vocabulary: Vocabulary
    names: Mapping[str, int]
    languages: Mapping[str, int]
    suppress: tuple[int, ...]
    begin_suppress: tuple[int, ...]


def read_tokens(tokenizer_path: Path, config_path: Path, size: int) -> WhisperTokens:
    """Read the tokenizer and configuration of a CTranslate2 Whisper model of ``size`` tokens.

    Raises:
        VocabularyError: a file is missing, broken, or of another model.
    """
    tokenizer = read_json(tokenizer_path)
    config = read_json(config_path)
    vocabulary = from_byte_level_bpe(tokenizer_path, tokenizer, size)
    by_text = added_tokens(tokenizer_path, tokenizer)
    multilingual = size >= _MULTILINGUAL_SIZE
    names = _special(tokenizer_path, by_text)
    if not multilingual:
        # An English-only model has these tokens in its table but was never trained with them.
        for name in ("transcribe", "translate"):
            names.pop(name)
    if names["timestamp_begin"] >= size:  # a vocabulary that was made without them
        names.pop("timestamp_begin")
    first = names["start"] + 1
    languages = {
        match[1]: token
        for text, token in sorted(by_text.items(), key=lambda item: item[1])
        if (match := _LANGUAGE.fullmatch(text)) and token >= first
    }
    return WhisperTokens(
        vocabulary=vocabulary,
        names=names,
        languages=languages if multilingual else {},
        suppress=_ids(config_path, config, "suppress_ids", size),
        begin_suppress=_ids(config_path, config, "suppress_ids_begin", size),
    )


def read_alignment_heads(path: Path, layers: int, heads: int) -> tuple[tuple[int, int], ...]:
    """The decoder's (layer, head) whose cross-attention follows the audio, as the configuration of
    a CTranslate2 Whisper model lists them; none where it does not.

    Raises:
        VocabularyError: the file is broken, or of another model.
    """
    pairs = read_json(path).get("alignment_heads", [])
    possible = [[layer, head] for layer in range(layers) for head in range(heads)]
    if not isinstance(pairs, list) or any(pair not in possible for pair in pairs):
        raise VocabularyError(path, "'alignment_heads' are not heads of this model")
    return tuple((layer, head) for layer, head in pairs)


def _special(path: Path, by_text: Mapping[str, int]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, texts in _NAMES.items():
        ids = [by_text[text] for text in texts if text in by_text]
        if not ids:
            raise VocabularyError(path, f"has no token '{texts[0]}', so it is not Whisper's")
        found[name] = ids[0]
    # Timestamps come last, after the token that forbids them; only some files name them.
    found["timestamp_begin"] = by_text.get("<|0.00|>", found["no_timestamps"] + 1)
    return found


def _ids(path: Path, config: Mapping[str, Any], key: str, size: int) -> tuple[int, ...]:
    values = config.get(key, [])
    if not isinstance(values, list) or not all(
        isinstance(v, int) and 0 <= v < size for v in values
    ):
        raise VocabularyError(path, f"'{key}' is no list of ids below {size}")
    return tuple(values)
