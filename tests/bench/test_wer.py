"""Word error rates of known texts."""

from __future__ import annotations

import pytest

from as2d_cli.bench.wer import can_count, word_error_rate

pytestmark = pytest.mark.skipif(not can_count(), reason="needs the extra 'bench'")


def test_words_are_pooled_over_all_texts() -> None:
    texts = [("en", "cats sit on mats", "cats sit mats"), ("en", "big dogs", "big dogs bark")]
    assert word_error_rate(texts) == pytest.approx(2 / 6)


def test_what_is_written_another_way_is_no_error() -> None:
    assert word_error_rate([("en", "It's Mr. Brown: colour!", "it is mister brown color")]) == 0.0
    assert word_error_rate([("de", "Straße, ja!", "straße ja")]) == 0.0
    assert word_error_rate([("de", "colour", "color")]) == 1.0, "English rules are English"


def test_letters_are_counted_where_nothing_parts_the_words() -> None:
    assert word_error_rate([("ja", "日本語だ", "日本語")]) == pytest.approx(1 / 4)


def test_nothing_spoken_has_no_rate() -> None:
    assert word_error_rate([]) is None
    assert word_error_rate([("en", "(laughs)", "hello")]) is None


def test_silence_understood_is_all_words_missing() -> None:
    assert word_error_rate([("en", "hello there", "")]) == 1.0
