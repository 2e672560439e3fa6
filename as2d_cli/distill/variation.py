"""Makes recordings sound as recordings do: other voices, noise, rooms, telephones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from as2d_cli.audio.decode import AudioFile
from as2d_cli.audio.downmix import Samples
from as2d_cli.distill.chance import chance_of
from as2d_cli.errors import As2dError, ExitStatus

__all__ = ["Variation"]

_RATE = 16_000
_SPEEDS = (0.9, 1.12)
_NOISE_DB = (3.0, 25.0)
_TELEPHONE = (300.0, 3400.0)  # Hz, the band of ITU-T G.712
_PEAK = 0.99


class Variation:
    """Varies windows, each in its own way, the same in every run."""

    def __init__(self, folder: Path | None, seed: int) -> None:
        """Take noises and room responses from ``folder``; files named ``*rir*`` are the latter.

        Raises:
            As2dError: there is no such folder, or a file there is no audio.
        """
        self._seed = seed
        files = _files(folder) if folder is not None else []
        self._rooms = [_read(f) for f in files if "rir" in f.name]
        self._noises = [_read(f) for f in files if "rir" not in f.name]

    def apply(self, samples: Samples, name: str) -> Samples:
        """Of float32 [n] a version of about the same length, as ``name`` and the seed decide.

        A third get another speed, and with it another pitch; half stay without noise, room or
        telephone.
        """
        random = chance_of(name, self._seed)
        if random.random() < 1 / 3:
            samples = _at_speed(samples, random.uniform(*_SPEEDS))
        kind = random.random()
        if kind < 0.25 and self._noises:
            samples = _with_noise(samples, self._noises, random)
        elif kind < 0.4 and self._rooms:
            samples = _in_room(samples, self._rooms[int(random.integers(len(self._rooms)))])
        elif kind < 0.5:
            samples = _by_telephone(samples)
        peak = float(np.abs(samples).max(initial=0.0))
        return samples if peak <= _PEAK else _floats(samples * (_PEAK / peak))


def _files(folder: Path) -> list[Path]:
    files = sorted(folder.glob("*.wav"))
    if not files:
        raise As2dError(
            f"{folder}: holds no WAV files to mix with",
            remedy="name another folder with --noise, or none",
            status=ExitStatus.USAGE,
        )
    return files


def _read(path: Path) -> Samples:
    with AudioFile(path) as audio:
        blocks = list(audio)
    if not blocks:
        raise As2dError(f"{path}: holds no sound", remedy="remove it", status=ExitStatus.USAGE)
    return np.concatenate(blocks)


def _at_speed(samples: Samples, speed: float) -> Samples:
    count = int(len(samples) / speed)
    # Never longer than a window may be.
    count = min(count, max(len(samples), 1))
    at = np.arange(count) * speed
    return _floats(np.interp(at, np.arange(len(samples)), samples))


def _with_noise(
    samples: Samples, noises: Sequence[Samples], random: np.random.Generator
) -> Samples:
    noise = noises[int(random.integers(len(noises)))]
    noise = np.resize(np.roll(noise, int(random.integers(len(noise)))), len(samples))
    power = float(np.mean(np.square(samples))) / max(float(np.mean(np.square(noise))), 1e-12)
    gain = np.sqrt(power * 10 ** (-random.uniform(*_NOISE_DB) / 10))
    return _floats(samples + gain * noise)


def _in_room(samples: Samples, room: Samples) -> Samples:
    size = 1 << (len(samples) + len(room) - 1).bit_length()
    sound = np.fft.irfft(np.fft.rfft(samples, size) * np.fft.rfft(room, size), size)
    start = int(np.abs(room).argmax())  # the direct sound: no delay
    sound = sound[start : start + len(samples)]
    scale = np.sqrt(np.mean(np.square(samples)) / max(float(np.mean(np.square(sound))), 1e-12))
    return _floats(sound * scale)


def _by_telephone(samples: Samples) -> Samples:
    spectrum = np.fft.rfft(samples)
    frequency = np.fft.rfftfreq(len(samples), 1 / _RATE)
    spectrum[(frequency < _TELEPHONE[0]) | (frequency > _TELEPHONE[1])] = 0
    return _floats(np.fft.irfft(spectrum, len(samples)))


def _floats(values: npt.NDArray[np.floating]) -> Samples:
    return np.asarray(values, dtype=np.float32)
