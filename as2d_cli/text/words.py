"""Tokens and when each was spoken -> words and when they were."""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from as2d_cli.text.text_stream import TextStream

__all__ = ["Word", "sentences", "timed_words"]

_WITHOUT_SPACES = frozenset(("zh", "ja", "th", "lo", "my", "yue"))
"""Languages in which a space does not divide words."""

SENTENCE_ENDS = (".", "?", "!", "\u2026", "\u3002", "\uff01", "\uff1f", "\u0964", "\u061f")
QUOTES = "\"'\u2019\u201d\u00bb)]\u300d\u300f\uff09"
"""What may stand behind the end of a sentence."""

_LONG_PAUSE = 1.0
"""Seconds."""

_BEFORE = "\"'\u201c\u00bf([{-"
_AFTER = "\"'.\u3002,\uff0c!\uff01?\uff1f:\uff1a\u201d)]}\u3001"


@dataclass(frozen=True)
class Word:
    """Text with the punctuation that belongs to it, as the model said it; seconds; tokens."""

    text: str
    start: float
    end: float
    tokens: tuple[int, ...] = ()


def timed_words(
    tokens: Sequence[int], times: Sequence[float], pieces: Sequence[bytes], language: str
) -> list[Word]:
    """The words of a text; put together again, their texts are the text.

    Args:
        tokens: of text.
        times: the second at which each token begins, and the end of the last: one more.
        pieces: bytes of every token of the vocabulary.
        language: code.
    """
    whole = list(_whole_characters(tokens, times, pieces))
    words: list[Word] = []
    for word in whole:
        joins = (
            words
            and language not in _WITHOUT_SPACES
            and not word.text.startswith(" ")
            and word.text.strip() not in string.punctuation
        )
        if joins:
            words[-1] = _joined(words[-1], word)
        else:
            words.append(word)
    return _with_punctuation(words)


def sentences(words: Sequence[Word]) -> Iterator[list[Word]]:
    """Words that end with a sentence, or where somebody pauses for long; together all of them."""
    held: list[Word] = []
    for word in words:
        ended = held and held[-1].text.rstrip(QUOTES).endswith(SENTENCE_ENDS)
        # In scripts without spaces the mark is enough; elsewhere "3.14" has one, too.
        ended = ended and (word.text.startswith(" ") or not held[-1].text.isascii())
        if held and (ended or word.start - held[-1].end > _LONG_PAUSE):
            yield held
            held = []
        held.append(word)
    if held:
        yield held


def _whole_characters(
    tokens: Sequence[int], times: Sequence[float], pieces: Sequence[bytes]
) -> Iterator[Word]:
    """Tokens, or several of them where a character has its bytes in more than one."""
    stream = TextStream(pieces)
    begin = 0
    for i, token in enumerate(tokens):
        text = stream.push([token])
        if i + 1 == len(tokens):
            text += stream.finish()
        if text:
            yield Word(text, times[begin], times[i + 1], tuple(tokens[begin : i + 1]))
            begin = i + 1


def _with_punctuation(words: Sequence[Word]) -> list[Word]:
    joined: list[Word] = []
    opening: Word | None = None
    for found in words:
        word, mark = found, found.text.strip()
        if opening is not None:
            word, opening = replace(_joined(opening, found), start=found.start), None
        elif mark and mark in _BEFORE and found.text.startswith(" "):
            opening = found
            continue
        if joined and mark and mark in _AFTER and not word.text.startswith(" "):
            joined[-1] = replace(_joined(joined[-1], word), end=joined[-1].end)
        else:
            joined.append(word)
    if opening is not None:
        joined.append(opening)
    return joined


def _joined(a: Word, b: Word) -> Word:
    return Word(a.text + b.text, a.start, b.end, a.tokens + b.tokens)
