"""Loops in what a model says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from as2d_cli.text.repeats import Repeat, compression_ratio, longest_repeat, suspicions


@pytest.mark.parametrize(
    ("tokens", "found"),
    [
        ([], None),
        ([1], None),
        ([1, 2, 3], None),
        ([1, 1], Repeat(0, 1, 2)),
        ([9, 1, 1, 1, 8], Repeat(1, 1, 3)),
        ([1, 2, 1, 2, 1, 2], Repeat(0, 2, 3)),
        ([7, 1, 2, 3, 1, 2, 3, 1, 9], Repeat(1, 3, 2)),  # the third time is not whole
        ([1, 1, 5, 2, 3, 2, 3], Repeat(3, 2, 2)),  # the longer one
        ([1, 1, 1, 1], Repeat(0, 1, 4)),  # not (1, 1) twice
        ([5, 5, 0, 6, 6], Repeat(0, 1, 2)),  # the first of equals
    ],
)
def test_longest_repeat(tokens: list[int], found: Repeat | None) -> None:
    assert longest_repeat(tokens) == found


def test_a_long_repeat_of_few_times_does_not_hide_one_of_many() -> None:
    twice = list(range(20)) * 2
    four_times = [90, 91] * 4
    assert longest_repeat(twice + four_times) == Repeat(0, 20, 2)
    assert longest_repeat(twice + four_times, 4) == Repeat(40, 2, 4)


@given(st.lists(st.integers(0, 3), max_size=40))
def test_what_is_found_is_there_and_nothing_longer_is(tokens: list[int]) -> None:
    def is_repeat(start: int, period: int, times: int) -> bool:
        once = tokens[start : start + period]
        return tokens[start : start + period * times] == once * times

    found = longest_repeat(tokens)
    everything = [
        period * times
        for start in range(len(tokens))
        for period in range(1, len(tokens) + 1)
        for times in range(2, (len(tokens) - start) // period + 1)
        if is_repeat(start, period, times)
    ]
    assert (found.length if found else 0) == max(everything, default=0)
    if found:
        assert found.times >= 2
        assert is_repeat(found.start, found.period, found.times)


def test_compression_is_that_of_whispers_own_check() -> None:
    # len(text.encode()) / len(zlib.compress(text.encode()))
    assert compression_ratio("") == 0.0
    assert compression_ratio("a") == 1 / 9
    assert compression_ratio("Thank you. " * 20) == 220 / 22
    assert compression_ratio("\ud800") > 0  # no text, but no reason to fail


SPEECH = (
    "Hope is the thing with feathers that perches in the soul, and sings the tune without the "
    "words, and never stops at all, and sweetest in the gale is heard."
)


@pytest.mark.parametrize(
    ("tokens", "text", "found"),
    [
        ([], "", []),
        (list(range(50)), SPEECH, []),
        ([1, 2] * 4, "No, no, no, no!", []),  # people do say that
        ([1, 2, 3, 4] * 4, "short", ["loop"]),
        ([1, 2, 3, 4] * 3 + [1, 2, 3], "short", []),
        ([*range(10, 40), *([1] * 16)], SPEECH, ["loop"]),
        (list(range(60)), "Thank you for watching. " * 12, ["compression"]),
        ([1, 2, 3, 4, 5] * 20, "Thank you for watching. " * 20, ["loop", "compression"]),
    ],
)
def test_suspicions(tokens: list[int], text: str, found: list[str]) -> None:
    assert suspicions(tokens, text) == found
