"""What a window's decoding says -> segments with their times."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from as2d_cli.audio.windows import AudioWindow
from as2d_cli.tasks.transcript import Segment
from as2d_cli.text.judgement import Attempt
from as2d_cli.text.text_stream import TextStream
from as2d_cli.text.timestamps import TimedTokens, timed_tokens
from as2d_cli.text.words import Word, sentences, timed_words

__all__ = ["segments_of"]

_SHORTEST = 0.02
"""Seconds; a subtitle or a player needs some."""


def segments_of(
    window: AudioWindow,
    attempt: Attempt,
    *,
    pieces: Sequence[bytes],
    first_timestamp: int | None,
    language: str,
    left_out: Collection[int] = (),
    after: float = 0.0,
) -> list[Segment]:
    """The segments of a window, in order, without overlap, inside it and not before `after`.

    Where it is known when words were spoken, they are sentences and have the times of their words;
    else what the model divides the text into, with its times; else the window, with those of the
    speech in it.

    Args:
        pieces: bytes of every token of the vocabulary.
        first_timestamp: see `timed_tokens`.
        left_out: places among the words that are not to be in the text.
        after: seconds, end of the last segment.
    """
    parts = [
        (timed, part)
        for timed in timed_tokens(attempt.tokens, first_timestamp, left_out)
        for part in _parts(_words(window, attempt, timed, pieces, language))
    ]
    segments: list[Segment] = []
    for i, (timed, words) in enumerate(parts):
        raw = "".join(word.text for word in words) if words else _text(timed.tokens, pieces)
        if not raw.strip():
            continue
        start, end = _times(window, timed, words)
        # Those that follow need some of the window, too.
        last = window.end - _SHORTEST * (len(parts) - 1 - i)
        start = min(max(start, after), last - _SHORTEST)
        end = after = min(max(end, start + _SHORTEST), last)
        segments.append(
            Segment(
                start,
                end,
                raw.lstrip(" "),
                tuple(t for word in words for t in word.tokens) if words else timed.tokens,
                _spoken(window, start, end),
                raw=raw,
                words=tuple(
                    replace(w, start=_in(w.start, start, end), end=_in(w.end, start, end))
                    for w in words
                ),
            )
        )
    return segments


def _parts(words: Sequence[Word]) -> list[list[Word]]:
    """Sentences; one part of no words where those are not known."""
    return list(sentences(words)) if words else [[]]


def _text(tokens: Sequence[int], pieces: Sequence[bytes]) -> str:
    stream = TextStream(pieces)
    return stream.push(tokens) + stream.finish()


def _times(window: AudioWindow, timed: TimedTokens, words: Sequence[Word]) -> tuple[float, float]:
    if words:
        return words[0].start, words[-1].end
    spoken = window.spoken
    start = spoken[0][0] if timed.start is None else window.start + timed.start
    end = spoken[-1][1] if timed.end is None else window.start + timed.end
    return start, end


def _words(
    window: AudioWindow,
    attempt: Attempt,
    timed: TimedTokens,
    pieces: Sequence[bytes],
    language: str,
) -> list[Word]:
    if not attempt.times:
        return []
    times = [attempt.times[place] for place in timed.places]
    times.append(attempt.times[timed.places[-1] + 1])
    found = timed_words(timed.tokens, times, pieces, language)
    moved = (
        replace(word, start=window.start + word.start, end=window.start + word.end)
        for word in found
    )
    return [_trimmed(word, window) for word in moved]


def _trimmed(word: Word, window: AudioWindow) -> Word:
    """Without the pause before or after it: attention wanders off into silence."""
    best: tuple[float, float] | None = None
    for a, b in window.spoken:
        start, end = max(word.start, a), min(word.end, b)
        if end > start and (best is None or end - start > best[1] - best[0]):
            best = start, end
    return word if best is None else replace(word, start=best[0], end=best[1])


def _spoken(window: AudioWindow, start: float, end: float) -> tuple[tuple[float, float], ...]:
    """What is spoken of the window between two seconds, or all of that."""
    if not window.speech:
        return ((start, end),)
    spans = ((max(a, start), min(b, end)) for a, b in window.spoken)
    return tuple((a, b) for a, b in spans if b > a) or ((start, end),)


def _in(seconds: float, low: float, high: float) -> float:
    return min(max(seconds, low), high)
