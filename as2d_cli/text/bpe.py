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

__all__ = ["PRE_TOKENIZERS", "BpeEncoder"]


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
# Digits are set apart before GPT-2's pattern is used on what lies between them, so that white space
# before a digit ends such a stretch as it would end the text.
_SMOLLM = r"\p{N}|'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+(?![^\s\p{N}])|\s+"

_PRE_TOKENIZERS = {
    "gpt2": _PreTokenizer(_GPT2),
    "qwen2": _PreTokenizer(_QWEN2, normal_form=True),
    "smollm": _PreTokenizer(_SMOLLM),
}

PRE_TOKENIZERS = tuple(_PRE_TOKENIZERS)
"""The known ways to cut text, by the names that GGUF files give them; Whisper's is GPT-2's."""


class BpeEncoder:
    """Ids of a text. Special tokens are never among them, however they are written."""

    def __init__(self, pieces: Sequence[bytes], pre_tokenizer: str, *, merge_ranks: bool) -> None:
        """`pieces` are the bytes that each id stands for; nothing for specials.

        Args:
            pre_tokenizer: one of `PRE_TOKENIZERS`.
            merge_ranks: the ids are in the order of the merges that make them.

        Raises:
            As2dError: status UNAVAILABLE; text cannot be cut into these tokens.
        """
        how = _PRE_TOKENIZERS.get(pre_tokenizer)
        if how is None:
            raise _unusable(f"its way to cut text, '{pre_tokenizer}', is not known")
        if not merge_ranks:
            raise _unusable("the order of its merges is not known")
        ranks: dict[bytes, int] = {}
        for token, piece in enumerate(pieces):
            if piece:
                ranks.setdefault(piece, token)
        # Some vocabularies lack bytes that their text never had; what is not there says nothing.
        self._end = len(pieces)
        for byte in range(256):
            ranks.setdefault(bytes([byte]), self._end + byte)
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
        return [token for token in self._encoding.encode_ordinary(text) if token < self._end]


def _unusable(problem: str) -> As2dError:
    return As2dError(
        f"the model's vocabulary cannot take text: {problem}",
        remedy="choose another model",
        status=ExitStatus.UNAVAILABLE,
    )
