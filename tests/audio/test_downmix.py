"""Many channels to one."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from as2d_cli.audio.downmix import Downmixer
from tests.fakes import tone

BLOCK = 16_000


def _mixed(data: NDArray[np.float64], cut: int = 1000) -> tuple[NDArray[np.float32], list[str]]:
    warnings: list[str] = []
    mixer = Downmixer(len(data), BLOCK, warnings)
    planar = data.astype(np.float32)
    blocks = [b for i in range(0, data.shape[1], cut) for b in mixer.push(planar[:, i : i + cut])]
    return np.concatenate([*blocks, *mixer.finish()]), warnings


SPEECH = tone(2.5)
NONE = np.zeros_like(SPEECH)


@pytest.mark.parametrize(
    "channels",
    [
        [SPEECH],
        [SPEECH, NONE],
        [NONE, SPEECH],
        [NONE, NONE, SPEECH, NONE, NONE, NONE],
        [SPEECH] * 2,
    ],
)
def test_as_loud_as_mono(channels: list[NDArray[np.float64]]) -> None:
    mixed, warnings = _mixed(np.stack(channels))
    np.testing.assert_allclose(mixed, SPEECH.astype(np.float32), atol=1e-6)
    assert warnings == []


def test_cancellation_is_noticed() -> None:
    mixed, warnings = _mixed(np.stack([SPEECH, -0.999 * SPEECH]))
    np.testing.assert_allclose(mixed, SPEECH.astype(np.float32), atol=1e-6)
    assert warnings == ["the channels cancel each other out; only channel 1 is used"]


def test_frames_do_not_matter() -> None:
    data = np.stack([SPEECH, np.roll(SPEECH, 7) * (np.arange(len(SPEECH)) > 20_000)])
    np.testing.assert_array_equal(_mixed(data, 333)[0], _mixed(data, 40_000)[0])


def test_no_numbers_are_zeros() -> None:
    data = np.stack([SPEECH, SPEECH])
    data[0, 5] = np.nan
    mixed, warnings = _mixed(data)
    assert np.isfinite(mixed).all()
    assert warnings == ["samples that are no numbers were replaced by zero"]
