"""The tokenizer of a published language model: ``tokenizer.json`` and what lies beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from as2d_cli.catalog.vocabulary import (
    MOST_PIECE,
    Vocabulary,
    VocabularyError,
    added_tokens,
    from_byte_level_bpe,
)
from as2d_cli.text.bpe import pre_tokenizer_of

TOKENIZER, TOKENIZER_CONFIG = "tokenizer.json", "tokenizer_config.json"
TEMPLATES = ("chat_template.jinja", "chat_template.json")
"""Files that hold a chat template of their own; else it is in `TOKENIZER_CONFIG`."""


_MOST_TOKENS = 1 << 24
"""Beyond any model, and what the engine takes."""

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
"""Half of a character, which is text only beside the other half."""

PLACEHOLDERS = {"ultravox": "<|audio|>", "voxtral": "[AUDIO]"}
"""What stands for audio in the text of a prompt, by kind of model."""


@dataclass(frozen=True)
class PublishedTokenizer:
    """What the files say of a model's tokens.

    Attributes:
        vocabulary: of the tokens that the model can say.
        special: texts of tokens that are no text, by id; some cannot be said.
        pre_tokenizer: name of the rule that cuts text into words before it is encoded.
        chat_template: Jinja source.
        start, end: ids of the tokens that templates call ``bos_token`` and ``eos_token``, or None.
    """

    vocabulary: Vocabulary
    special: Mapping[int, str]
    pre_tokenizer: str
    chat_template: str
    start: int | None
    end: int | None


def read_published_tokenizer(files: Mapping[str, Path], size: int) -> PublishedTokenizer:
    """Read a tokenizer for a model that says ``size`` tokens.

    Args:
        files: paths by the names above; only ``tokenizer.json`` and one place for the template
            must be there.
        size: numbers in a line of the model's logits.

    Raises:
        VocabularyError: a file is missing, broken, of another model, or of a kind that is not
            known.
    """
    path = files[TOKENIZER]
    tokenizer = read_json(path)
    added = added_tokens(path, tokenizer)
    if max(added.values(), default=0) >= _MOST_TOKENS:
        raise VocabularyError(path, f"has token {max(added.values())}, which cannot be")
    pre_tokenizer = _pre_tokenizer(path, tokenizer)
    vocabulary = _vocabulary(path, tokenizer, added, size)
    config = read_json(files[TOKENIZER_CONFIG]) if TOKENIZER_CONFIG in files else {}
    return PublishedTokenizer(
        vocabulary=vocabulary,
        special={
            token["id"]: token["content"]
            for token in tokenizer["added_tokens"]
            if not _is_text(token) and token["content"].split() == [token["content"]]
        },
        pre_tokenizer=pre_tokenizer,
        chat_template=_template(files, config),
        start=added.get(_text_of(config.get("bos_token"))),
        end=added.get(_text_of(config.get("eos_token"))),
    )


def read_json(path: Path) -> dict[str, Any]:
    """An object.

    Raises:
        VocabularyError: the file is missing or holds something else.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
        value = json.loads(text)
        if _SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except OSError as error:
        raise VocabularyError(path, f"cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError):
        raise VocabularyError(path, "is not JSON") from None
    if not isinstance(value, dict):
        raise VocabularyError(path, "is no JSON object")
    return value


def _vocabulary(
    path: Path, tokenizer: Mapping[str, Any], added: Mapping[str, int], size: int
) -> Vocabulary:
    """Of the tokens below `size`. There may be more, as long as they are no text."""
    whole = from_byte_level_bpe(path, tokenizer, max(size, *added.values(), -1) + 1)
    pieces = list(whole.pieces)
    for token in tokenizer["added_tokens"]:
        if _is_text(token) and token["id"] < size:
            pieces[token["id"]] = token["content"].encode()
            if len(pieces[token["id"]]) > MOST_PIECE:
                raise VocabularyError(path, f"token {token['id']} is too long")
    if any(pieces[size:]):
        raise VocabularyError(
            path, f"has text beyond the model's {size} tokens, so they are no pair"
        )
    return replace(whole, pieces=tuple(pieces[:size]))


def _is_text(token: Mapping[str, Any]) -> bool:
    """Of an added token: it is text, which is never cut, and no control token."""
    return token.get("special") is False and token["content"] not in PLACEHOLDERS.values()


def _pre_tokenizer(path: Path, tokenizer: Mapping[str, Any]) -> str:
    """The name of the way to cut text: a regular expression, then letters for bytes."""
    normalizer = tokenizer.get("normalizer")
    kinds = [step.get("type") for step in _steps(normalizer, "normalizers")]
    steps = _steps(tokenizer.get("pre_tokenizer"), "pretokenizers")
    name = None
    if kinds in ([], ["NFC"]):
        match [step.get("type") for step in steps]:
            case ["Split", "ByteLevel"]:
                pattern = steps[0].get("pattern")
                regex = pattern.get("Regex") if isinstance(pattern, dict) else None
                whole = steps[0].get("behavior") == "Isolated" and not steps[0].get("invert")
                plain = steps[1].get("use_regex") is False
                if isinstance(regex, str) and whole and plain:
                    name = pre_tokenizer_of(regex, normal_form=bool(kinds))
            case ["ByteLevel"] if steps[0].get("use_regex", True) and not kinds:
                name = "gpt2"
    if name is None or any(step.get("add_prefix_space") for step in steps):
        raise VocabularyError(path, "cuts text in a way that is not known")
    return name


def _steps(value: object, many: str) -> list[dict[str, Any]]:
    """One step, or those of a sequence; what is no step is one of no type."""
    if value is None:
        return []
    if isinstance(value, dict) and value.get("type") == "Sequence":
        inner = value.get(many)
        listed = inner if isinstance(inner, list) else [None]
    else:
        listed = [value]
    return [step if isinstance(step, dict) else {} for step in listed]


def _template(files: Mapping[str, Path], config: Mapping[str, Any]) -> str:
    jinja, as_json = TEMPLATES
    if jinja in files:
        try:
            return files[jinja].read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise VocabularyError(files[jinja], "is not text that can be read") from None
    if as_json in files:
        found = read_json(files[as_json]).get("chat_template")
    else:
        found = config.get("chat_template")
    if isinstance(found, list):  # Several of them, by name.
        named = (t for t in found if isinstance(t, dict) and t.get("name") == "default")
        found = next(named, {}).get("template")
    if not isinstance(found, str):
        raise VocabularyError(files[TOKENIZER], "has no chat template beside it")
    return found


def _text_of(token: object) -> str:
    """Of a token that is written as its text, or as an object with it."""
    if isinstance(token, dict):
        token = token.get("content")
    return token if isinstance(token, str) else ""
