"""Recordings made to sound as other recordings do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from as2d_cli.audio.windows import RATE, WINDOW
from as2d_cli.distill.variation import Variation
from as2d_cli.errors import As2dError, ExitStatus
from tests.fakes import write_wav

Array = npt.NDArray[Any]

NAMES = [f"talks/{n}.wav#0" for n in range(120)]


def sound(seconds: float = 1.0, level: float = 0.2) -> Array:
    """Noise with a tone of 1 kHz in it, quieter towards its end."""
    count = round(seconds * RATE)
    noise = np.random.default_rng(1).standard_normal(count) * 0.3
    tone = np.sin(2 * np.pi * 1000 * np.arange(count) / RATE)
    return ((noise + tone) * np.linspace(level, level / 2, count)).astype(np.float32)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One noise, a steady one, and one room, which repeats everything after 0.1 s."""
    write_wav(tmp_path / "steady.wav", np.full(RATE // 2, 0.25))
    room = np.zeros(RATE // 5)
    room[800], room[800 + RATE // 10] = 0.9, 0.45
    write_wav(tmp_path / "a-rir-b.wav", room)
    return tmp_path


def kinds(variation: Variation, samples: Array) -> dict[str, list[Array]]:
    """What came of the samples under all names, by what has been done to them."""
    found: dict[str, list[Array]] = {}
    for name in NAMES:
        varied = variation.apply(samples, name)
        at_1k = np.abs(np.fft.rfft(samples, RATE))[1000]
        if not np.abs(np.fft.rfft(varied, RATE))[1000] > at_1k / 2:
            kind = "speed"
        elif np.array_equal(varied, samples):
            kind = "none"
        elif np.ptp(varied - samples) < 1e-5:
            kind = "noise"
        elif np.abs(np.fft.rfft(varied))[:299].max() < 1e-2:
            kind = "telephone"
        else:
            kind = "room"
        found.setdefault(kind, []).append(varied)
    return found


def test_the_same_for_the_same_name_and_seed(folder: Path) -> None:
    for name in NAMES[:20]:
        first, again = (Variation(folder, 0).apply(sound(), name) for _ in range(2))
        np.testing.assert_array_equal(first, again)


def test_other_names_and_other_seeds_vary_otherwise(folder: Path) -> None:
    for many in (
        [Variation(folder, 0).apply(sound(), name) for name in NAMES],
        [Variation(folder, seed).apply(sound(), NAMES[0]) for seed in range(120)],
    ):
        # Those that stay as they are, are in the room or on the telephone are one each.
        assert len({varied.tobytes() for varied in many}) > 40


def test_the_samples_given_are_not_changed(folder: Path) -> None:
    samples = sound(level=3.0)
    for name in NAMES:
        Variation(folder, 0).apply(samples, name)
    np.testing.assert_array_equal(samples, sound(level=3.0))


def test_everything_happens_about_as_often_as_told(folder: Path) -> None:
    found = {kind: len(many) for kind, many in kinds(Variation(folder, 0), sound()).items()}
    # Of two thirds of 120 that keep their speed, half are left alone.
    assert 25 <= found["speed"] <= 55
    assert 28 <= found["none"] <= 52
    assert 10 <= found["noise"] <= 30
    assert 4 <= found["room"] <= 20
    assert 2 <= found["telephone"] <= 16


def test_without_a_folder_there_is_neither_noise_nor_room() -> None:
    found = kinds(Variation(None, 0), sound())
    assert set(found) == {"speed", "none", "telephone"}


def test_noise_is_as_loud_as_told(folder: Path) -> None:
    samples = sound()
    power = np.mean(samples**2)
    ratios = [
        10 * np.log10(power / np.mean((varied - samples) ** 2))
        for varied in kinds(Variation(folder, 0), samples)["noise"]
    ]
    assert 3 - 0.01 <= min(ratios) < 10
    assert 18 < max(ratios) <= 25 + 0.01


def test_a_room_keeps_the_loudness_and_does_not_delay(folder: Path) -> None:
    samples = sound()
    for varied in kinds(Variation(folder, 0), samples)["room"]:
        assert np.mean(varied**2) == pytest.approx(np.mean(samples**2), rel=1e-3)
        echo = samples.copy()
        echo[RATE // 10 :] += samples[: -RATE // 10] / 2
        echo *= np.sqrt(np.mean(samples**2) / np.mean(echo**2))
        np.testing.assert_allclose(varied, echo, atol=1e-3)


def test_a_telephone_lets_the_middle_through_alone() -> None:
    samples = sound()
    for varied in kinds(Variation(None, 0), samples)["telephone"]:
        before, after = np.abs(np.fft.rfft(samples)), np.abs(np.fft.rfft(varied))
        np.testing.assert_allclose(after[300:3401], before[300:3401], atol=1e-2)
        assert after[:300].max() < 1e-2 > after[3401:].max()


def test_another_speed_is_another_pitch() -> None:
    pitches = []
    for varied in kinds(Variation(None, 0), sound())["speed"]:
        spectrum = np.abs(np.fft.rfft(varied, RATE))
        pitches.append(int(spectrum[500:1500].argmax()) + 500)
    assert 895 <= min(pitches) < 960
    assert 1040 < max(pitches) <= 1125


@pytest.mark.parametrize("seconds", [0.1, 30.0])
def test_never_longer_than_before(folder: Path, seconds: float) -> None:
    samples = sound(seconds)
    lengths = set()
    variation = Variation(folder, 0)
    for name in NAMES[:60]:
        varied = variation.apply(samples, name)
        assert varied.dtype == np.float32 and varied.ndim == 1
        lengths.add(len(varied))
    assert max(lengths) <= len(samples) <= WINDOW
    assert len(samples) / 1.13 < min(lengths) < len(samples)


@pytest.mark.parametrize(
    "samples", [np.zeros(RATE, np.float32), np.zeros(10, np.float32), sound(level=50.0)]
)
def test_silence_and_what_is_too_loud_stay_sound(folder: Path, samples: Array) -> None:
    write_wav(folder / "silence.wav", np.zeros(100))
    write_wav(folder / "silent-rir.wav", np.zeros(100))
    for name in NAMES:
        varied = Variation(folder, 0).apply(samples, name)
        assert np.isfinite(varied).all()
        assert np.abs(varied).max() <= 0.99 + 1e-6
        assert len(varied) > 0


def test_what_is_not_too_loud_keeps_its_level() -> None:
    samples = sound(level=0.5)
    assert any(np.array_equal(Variation(None, 0).apply(samples, n), samples) for n in NAMES)


def test_a_folder_without_sound_is_refused(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(As2dError) as caught:
            Variation(folder, 0)
        assert str(caught.value) == (
            f"{folder}: holds no WAV files to mix with; name another folder with --noise, or none"
        )
        assert caught.value.status == ExitStatus.USAGE
    write_wav(tmp_path / "a.wav", np.zeros(0))
    with pytest.raises(As2dError, match=r"a\.wav"):
        Variation(tmp_path, 0)
    (tmp_path / "a.wav").write_bytes(b"no sound")
    with pytest.raises(As2dError, match=r"not an audio file: .*a\.wav"):
        Variation(tmp_path, 0)
