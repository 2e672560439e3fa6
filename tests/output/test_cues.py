"""Cues: all of the text, in its time, in lines that fit."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from as2d_cli.output.cues import CueRules, cues
from as2d_cli.tasks.transcript import Segment

RULES = CueRules()
SPEECH = (
    "And so my fellow Americans, ask not what your country can do for you, ask what you can do for "
    "your country. My fellow citizens of the world: ask not what America will do for you, but what "
    "together we can do for the freedom of man."
)


def _segment(text: str, start: float = 10.0, end: float = 40.0, **more: object) -> Segment:
    return Segment(start, end, text, (), **more)  # type: ignore[arg-type]


def test_a_speech() -> None:
    found = cues(_segment(SPEECH, 0, 20), RULES)
    assert [cue.lines for cue in found] == [
        ("And so my fellow Americans, ask not", "what your country can do for you,"),
        ("ask what you can do for your country.",),
        ("My fellow citizens of the world: ask", "not what America will do for you,"),
        ("but what together we can", "do for the freedom of man."),
    ]
    assert found[0].start == 0 and found[-1].end == 20


WORDS = st.text(st.sampled_from("aé日本。」「、.,?-'\u0301<&"), min_size=1, max_size=60)


@settings(max_examples=150, deadline=None)
@given(
    words=st.lists(WORDS, min_size=1, max_size=60),
    length=st.sampled_from([0.11, 3.0, 30.0]),
    spans=st.sampled_from([(), ((0.0, 0.3), (0.5, 1.0)), ((0.2, 0.25),)]),
    rules=st.sampled_from([RULES, CueRules(line_length=10, lines=1), CueRules(lines=3)]),
)
def test_nothing_is_lost_and_nothing_overlaps(
    words: list[str], length: float, spans: tuple[tuple[float, float], ...], rules: CueRules
) -> None:
    text = " ".join(words)
    spoken = tuple((10 + a * length, 10 + b * length) for a, b in spans)
    found = cues(_segment(text, 10, 10 + length, spoken=spoken), rules)
    joined = "".join("".join(cue.lines) for cue in found)
    assert joined.replace(" ", "") == text.replace(" ", "")
    assert all(10 <= cue.start < cue.end <= 10 + length + 1e-9 for cue in found)
    assert all(a.end < b.start for a, b in pairwise(found))
    for cue in found:
        assert all(line == line.strip() and line for line in cue.lines)
        # A word that is longer than a line stays whole, and may leave too few lines for the rest.
        if max(map(len, words)) <= rules.line_length // 2:
            assert len(cue.lines) <= rules.lines
            assert all(len(line) <= rules.line_length for line in cue.lines)


def test_a_long_word_stays_whole() -> None:
    (cue,) = cues(_segment("x" * 500, 0, 5), RULES)
    assert cue.lines == ("x" * 500,)


def test_scripts_without_spaces_are_divided_and_no_sign_begins_a_line() -> None:
    text = "日本語の字幕は、一行に入る文字の数が限られている。" * 4
    found = cues(_segment(text, 0, 60), RULES)
    lines = [line for cue in found for line in cue.lines]
    assert "".join(lines) == text
    assert all(2 * len(line) <= RULES.line_length for line in lines)
    assert not [line for line in lines if line[0] in "、。"]


def test_times_follow_what_is_spoken() -> None:
    spoken = ((0.0, 5.0), (25.0, 30.0))
    first, second = "aaaa " * 14 + "aaaa.", "bbbb " * 14 + "bbbbb."
    a, b = cues(_segment(f"{first} {second}", 0, 30, spoken=spoken), CueRules(longest=9))
    assert (" ".join(a.lines), " ".join(b.lines)) == (first, second)
    assert a.end == pytest.approx(5, abs=0.1)
    assert b.start == 25


def test_cues_of_slow_speech_are_shorter() -> None:
    found = cues(_segment(SPEECH, 0, 40), RULES)
    assert all(len(cue.lines) == 1 or cue.end - cue.start <= RULES.longest for cue in found)
    (cue,) = cues(_segment("one two three", 0, 28), RULES)
    assert (cue.start, cue.end) == (0, 28)


def test_no_text_is_no_cue() -> None:
    assert cues(_segment("  "), RULES) == []
