"""Windows of what is spoken: nothing of it lost, nothing else in them, cut at pauses."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from as2d_cli.audio.speech import FRAME, speech_windows
from as2d_cli.audio.windows import WINDOW, AudioWindow

RATE = 16_000


def _listen(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """Loud is speech: louder than what is quiet can be made."""
    return np.asarray(np.abs(samples.reshape(-1, FRAME)).max(axis=1) > 0.2, np.float32)


def _sound(*parts: tuple[float, float]) -> NDArray[np.float32]:
    """Noise of (seconds, level), one after another; silence is 0.001 and not 0."""
    rng = np.random.default_rng(0)
    return np.concatenate(
        [rng.uniform(-x, x, round(s * RATE)).astype(np.float32) for s, x in parts]
    )


def _cut(stream: NDArray[np.float32], block: int = RATE, **options: float) -> list[AudioWindow]:
    blocks = (stream[i : i + block] for i in range(0, len(stream), block))
    return list(speech_windows(blocks, _listen, **options))  # type: ignore[arg-type]


QUIET, LOUD = 0.001, 0.5
GAP = 0.1
"""Tolerance of a time: three frames."""


def _edges(found: list[AudioWindow]) -> list[tuple[float, float]]:
    return [(w.start, w.end) for w in found]


def test_silence_and_noise_are_no_window() -> None:
    assert _cut(_sound((40, QUIET))) == []
    assert _cut(np.zeros(40 * RATE, np.float32)) == []
    assert _cut(np.zeros(0, np.float32)) == []


def test_a_click_is_no_speech_and_a_word_is() -> None:
    assert _cut(_sound((2, QUIET), (0.02, LOUD), (2, QUIET))) == []
    (window,) = _cut(_sound((2, QUIET), (0.2, LOUD), (2, QUIET)))
    assert window.spoken[0] == pytest.approx((2.0, 2.2), abs=GAP)
    assert _edges([window])[0] == pytest.approx((1.6, 2.6), abs=GAP)


def test_speech_from_the_first_to_the_last_sample() -> None:
    stream = _sound((0.5, LOUD))
    (window,) = _cut(stream)
    np.testing.assert_array_equal(window.samples, stream)
    assert window.speech == ((0, 8000),)


def test_short_pauses_stay_inside_and_long_ones_end_a_window() -> None:
    stream = _sound((3, LOUD), (1.8, QUIET), (3, LOUD), (6.2, QUIET), (3, LOUD))
    first, second = _cut(stream)
    assert len(first.spoken) == 2
    assert second.spoken[0][0] == pytest.approx(14, abs=GAP)
    assert [w.index for w in (first, second)] == [0, 1]
    assert len(_cut(stream, pause=1.0)) == 3


def test_a_long_speech_is_cut_in_its_longest_late_pause() -> None:
    stream = _sound(
        (20, LOUD), (0.8, QUIET), (6, LOUD), (0.4, QUIET), (2, LOUD), (0.2, QUIET), (9, LOUD)
    )
    first, second = _cut(stream)
    assert first.end == pytest.approx(27.0, abs=GAP)
    assert second.start == pytest.approx(27.0, abs=GAP)


def test_pauses_further_back_are_better_than_none() -> None:
    first, _ = _cut(_sound((20, LOUD), (0.3, QUIET), (15, LOUD)))
    assert first.end == pytest.approx(20.15, abs=GAP)


def test_speech_without_a_pause_is_cut_where_it_is_quiet() -> None:
    first, second = _cut(_sound((28, LOUD), (0.3, 0.25), (10, LOUD)))
    assert first.end == second.start == pytest.approx(28.15, abs=GAP)
    assert first.speech[-1][1] == second.speech[0][0]


@settings(max_examples=30, deadline=None)
@given(
    parts=st.lists(
        st.tuples(st.sampled_from([0.01, 0.3, 1.7, 5.0, 12.0, 31.0]), st.booleans()), max_size=12
    ),
    block=st.sampled_from([777, RATE, 9 * RATE]),
    first=st.sampled_from([0, 12345]),
)
@example(parts=[(31.0, True), (5.0, False)], block=9 * RATE, first=0)
def test_all_speech_is_in_windows_in_order(
    parts: list[tuple[float, bool]], block: int, first: int
) -> None:
    stream = _sound((0, 0), *((s, LOUD if loud else QUIET) for s, loud in parts))
    found = _cut(stream, block, first=first)
    assert [w.index for w in found] == list(range(len(found)))
    assert all(1 <= len(w.samples) <= WINDOW for w in found)
    assert all(a.first + len(a.samples) <= b.first for a, b in pairwise(found))
    heard = np.zeros(len(stream), bool)
    for window in found:
        begin = window.first - first
        np.testing.assert_array_equal(window.samples, stream[begin : begin + len(window.samples)])
        heard[begin : begin + len(window.samples)] = True
        assert all(
            window.first <= a < b <= window.first + len(window.samples) for a, b in window.speech
        )
    loud = np.abs(stream) > 0.2
    # Only what is too short for a word may be missing.
    missing = np.flatnonzero(loud & ~heard)
    runs = np.split(missing, np.flatnonzero(np.diff(missing) > 4 * FRAME) + 1)
    assert all(len(run) == 0 or run[-1] - run[0] < 3 * FRAME for run in runs)
    assert _edges(_cut(stream, RATE, first=first)) == _edges(found)


def test_whispers_are_made_audible_and_a_constant_is_taken_out() -> None:
    heard: list[float] = []

    def listen(samples: NDArray[np.float32]) -> NDArray[np.float32]:
        heard.append(float(np.abs(samples).max()))
        return np.zeros(len(samples) // FRAME, np.float32)

    for level, offset in ((1e-3, 0.0), (0.4, 0.5), (0.4, 0.0)):
        stream = _sound((1.024, level)) + np.float32(offset)
        list(speech_windows([stream], listen))
    assert heard == pytest.approx([0.1, 0.4, 0.4], rel=0.01)


def test_memory_does_not_grow_with_silence() -> None:
    """An hour of silence is never held, nor is the model asked about digital silence."""

    def refuse(samples: NDArray[np.float32]) -> NDArray[np.float32]:
        raise AssertionError("asked")

    block = np.zeros(RATE, np.float32)
    assert list(speech_windows((block for _ in range(3600)), refuse)) == []
