"""Words and sentences out of tokens with times."""

from __future__ import annotations

import pytest

from as2d_cli.text.words import sentences, timed_words

PIECES = (
    b" The", b" end", b".", b" 3", b".", b"14", b" \xe2\x80\x9c", b"Yes", b"!\xe2\x80\x9d",
    b"\xe6\x97", b"\xa5", b"\xe6\x9c\xac", b"\xe3\x80\x82", b" Nin", b"ety",
)  # fmt: skip


def _words(tokens: list[int], language: str = "en") -> list[tuple[str, float, float]]:
    times = [float(i) for i in range(len(tokens) + 1)]
    return [(w.text, w.start, w.end) for w in timed_words(tokens, times, PIECES, language)]


@pytest.mark.parametrize(
    ("tokens", "language", "found"),
    [
        ([0, 1, 2], "en", [(" The", 0, 1), (" end.", 1, 2)]),
        ([13, 14], "en", [(" Ninety", 0, 2)]),
        ([6, 7, 8], "en", [(" \u201cYes!\u201d", 0, 3)]),
        ([6, 13, 14], "en", [(" \u201c Ninety", 1, 3)]),
        ([9, 10, 11, 12], "ja", [("\u65e5", 0, 2), ("\u672c\u3002", 2, 3)]),
        ([0, 6], "en", [(" The", 0, 1), (" \u201c", 1, 2)]),
        ([9], "ja", [("\ufffd", 0, 1)]),
        ([], "en", []),
    ],
)
def test_words(tokens: list[int], language: str, found: list[tuple[str, float, float]]) -> None:
    assert _words(tokens, language) == found


def test_words_are_the_text_and_all_of_its_tokens() -> None:
    tokens = [6, 0, 1, 2, 3, 4, 5, 6, 7, 8, 13, 14, 2, 9, 10]
    times = [0.5 * i for i in range(len(tokens) + 1)]
    words = timed_words(tokens, times, PIECES, "en")
    assert "".join(w.text for w in words) == b"".join(PIECES[t] for t in tokens).decode()
    assert [t for w in words for t in w.tokens] == tokens


def test_sentences_end_with_their_mark_and_long_pauses() -> None:
    tokens, times = [0, 1, 2, 3, 4, 5, 0, 1], [0, 1, 2, 2.5, 3, 3.2, 4, 9, 10]
    words = timed_words(tokens, times, PIECES, "en")
    texts = ["".join(w.text for w in part) for part in sentences(words)]
    assert texts == [" The end.", " 3.14 The end"]
    # The same with a pause of more than a second in the second one.
    words = [w if w.text != " end" else type(w)(w.text, 11, 12) for w in words]
    assert len(list(sentences(words))) == 3
