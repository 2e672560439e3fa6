"""Text -> token ids for byte-level BPE vocabularies, by tiktoken.

Example::

    encoder = BpeEncoder(vocabulary.pieces, "qwen2", merge_ranks=vocabulary.merge_ranks)
    ids = encoder.encode("as2d <|im_end|>")  # what looks like a control token is plain text
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from as2d_cli.errors import As2dError, ExitStatus

__all__ = ["PRE_TOKENIZERS", "BpeEncoder", "pre_tokenizer_of"]


@dataclass(frozen=True)
class _PreTokenizer:
    """How text is cut before merging: no token reaches over such a cut."""

    pattern: str
    normal_form: bool = False
    """Text is brought into Unicode's normal form C first."""


_GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"  # openai/gpt-2
_QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# meta-llama/Llama-3: words as Qwen's, numbers in groups of three.
_LLAMA3 = _QWEN2.replace(r"|\p{N}|", r"|\p{N}{1,3}|")
# mistralai's Tekken: a word ends where a capital begins another one.
_TEKKEN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# Digits are set apart before GPT-2's pattern is used on what lies between them, so that white space
# before a digit ends such a stretch as it would end the text.
_SMOLLM = r"\p{N}|'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+(?![^\s\p{N}])|\s+"

_PRE_TOKENIZERS = {
    "gpt2": _PreTokenizer(_GPT2),
    "qwen2": _PreTokenizer(_QWEN2, normal_form=True),
    "smollm": _PreTokenizer(_SMOLLM),
    "llama-bpe": _PreTokenizer(_LLAMA3),
    "tekken": _PreTokenizer(_TEKKEN),
}

PRE_TOKENIZERS = tuple(_PRE_TOKENIZERS)
"""The known ways to cut text, by the names that GGUF files give them; Whisper's is GPT-2's."""


def pre_tokenizer_of(pattern: str, *, normal_form: bool) -> str | None:
    """The name of a way to cut text, or None for one that is not known.

    Args:
        pattern: a regular expression, letter for letter as the model's publisher has it.
        normal_form: text is brought into Unicode's normal form C first.
    """
    wanted = _PreTokenizer(pattern, normal_form)
    return next((name for name, how in _PRE_TOKENIZERS.items() if how == wanted), None)


class BpeEncoder:
    """Ids of a text. Special tokens are never among them, however they are written."""

    def __init__(
        self,
        pieces: Sequence[bytes],
        pre_tokenizer: str,
        *,
        merge_ranks: bool,
        merges: Sequence[int] = (),
    ) -> None:
        """`pieces` are the bytes that each id stands for; nothing for specials.

        Args:
            pre_tokenizer: one of `PRE_TOKENIZERS`.
            merge_ranks: the ids are in the order of the merges that make them.
            merges: the ids in that order, where they are not.

        Raises:
            As2dError: status UNAVAILABLE; text cannot be cut into these tokens.
        """
        how = _PRE_TOKENIZERS.get(pre_tokenizer)
        if how is None:
            raise _unusable(f"its way to cut text, '{pre_tokenizer}', is not known")
        if not merge_ranks and not merges:
            raise _unusable("the order of its merges is not known")
        # Id by rank: letters first, which nothing makes, then what is merged.
        self._ids: Sequence[int] = range(len(pieces))
        if not merge_ranks:
            letters = (token for token, piece in enumerate(pieces) if len(piece) == 1)
            self._ids = list(dict.fromkeys([*letters, *merges]))
        ranks: dict[bytes, int] = {}
        for rank, token in enumerate(self._ids):
            if pieces[token]:
                ranks.setdefault(pieces[token], rank)
        # Some vocabularies lack bytes that their text never had; what is not there says nothing.
        for byte in range(256):
            ranks.setdefault(bytes([byte]), len(self._ids) + byte)
        import tiktoken

        self._normal_form = how.normal_form
        self._encoding = tiktoken.Encoding(
            "as2d", pat_str=how.pattern, mergeable_ranks=ranks, special_tokens={}
        )

    def encode(self, text: str) -> list[int]:
        """The ids that stand for `text`; what is no Unicode in it becomes U+FFFD."""
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if self._normal_form:
            text = unicodedata.normalize("NFC", text)
        ids, end = self._ids, len(self._ids)
        return [ids[rank] for rank in self._encoding.encode_ordinary(text) if rank < end]


def _unusable(problem: str) -> As2dError:
    return As2dError(
        f"the model's vocabulary cannot take text: {problem}",
        remedy="choose another model",
        status=ExitStatus.UNAVAILABLE,
    )
