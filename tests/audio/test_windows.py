"""Windows: nothing lost, nothing too long, cut in the quiet."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from as2d_cli.audio.windows import WINDOW, AudioWindow, is_silent, windows

RATE = 16_000


def _noise(samples: int, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).uniform(-0.5, 0.5, samples).astype(np.float32)


def _cut(samples: NDArray[np.float32], block: int = RATE) -> list[AudioWindow]:
    return list(windows(samples[i : i + block] for i in range(0, len(samples), block)))


@settings(max_examples=25, deadline=None)
@given(
    samples=st.one_of(
        st.integers(0, 2 * RATE),
        st.integers(WINDOW - 400, WINDOW + 3 * RATE),
        st.integers(2 * WINDOW - 4 * RATE, 2 * WINDOW + 3 * RATE),
    ),
    block=st.sampled_from([999, RATE, 7 * RATE, 100 * RATE]),
    seed=st.integers(0, 3),
)
def test_windows_are_the_stream(samples: int, block: int, seed: int) -> None:
    stream = _noise(samples, seed)
    found = _cut(stream, block)
    joined = np.concatenate([w.samples for w in found]) if found else np.zeros(0, np.float32)
    np.testing.assert_array_equal(joined, stream)
    assert [w.index for w in found] == list(range(len(found)))
    assert all(1 <= len(w.samples) <= WINDOW for w in found)
    assert all(a.end == b.start for a, b in pairwise(found))
    if len(found) > 1:
        assert all(len(w.samples) >= 2 * RATE for w in found)
    same = _cut(stream, RATE)
    assert [len(w.samples) for w in same] == [len(w.samples) for w in found]


@pytest.mark.parametrize(("seconds", "count"), [(29.99, 1), (30.0, 1), (30.01, 2), (60.01, 3)])
def test_number_of_windows(seconds: float, count: int) -> None:
    assert len(_cut(_noise(round(seconds * RATE)))) == count


def test_cut_falls_into_the_pause() -> None:
    stream = _noise(40 * RATE)
    stream[int(28.1 * RATE) : int(28.5 * RATE)] *= 0.01  # a pause
    stream[int(29.0 * RATE) : int(29.06 * RATE)] = 0  # the closure of a plosive
    first = _cut(stream)[0]
    assert 28.2 <= first.end <= 28.4


def test_equally_quiet_is_cut_late() -> None:
    assert _cut(np.zeros(40 * RATE, np.float32))[0].end == 30.0


@pytest.mark.parametrize(
    ("level", "silent"), [(0.0, True), (2.0**-15, True), (3 * 2.0**-15, False), (1e-3, False)]
)
def test_silence(level: float, silent: bool) -> None:
    assert is_silent(np.full(1601, level, np.float32)) is silent


def test_too_short_for_a_word_is_silent() -> None:
    assert is_silent(np.full(1600, 0.5, np.float32))
    assert is_silent(np.zeros(0, np.float32))
