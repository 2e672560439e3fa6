"""Token ids -> text as they come, never splitting a character."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Sequence

__all__ = ["TextStream"]


class TextStream:
    """Decodes tokens into text. A character whose bytes are not all there yet is held back."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        """`pieces` are the bytes that each id stands for; nothing for specials and timestamps."""
        self._pieces = pieces
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, tokens: Iterable[int]) -> str:
        """The text that `tokens` complete; may be empty.

        Bytes that no later byte can make whole become U+FFFD. An id beyond the vocabulary (padded
        models have them) stands for nothing.
        """
        pieces = self._pieces
        data = b"".join(pieces[t] for t in tokens if 0 <= t < len(pieces))
        return self._decoder.decode(data)

    def finish(self) -> str:
        """U+FFFD for what was held back and will never be whole; the stream starts anew."""
        text = self._decoder.decode(b"", final=True)
        self._decoder.reset()
        return text
