"""Constants of Whisper's log-mel front end.

The front end is ``log_mel_spectrogram`` of openai/whisper (whisper/audio.py): 16 kHz audio, Hann
window of 400 samples (periodic), hop 160, reflect padding, power spectrum, Slaney mel filters,
log10 clamped to 8 below the maximum, then (x + 4) / 4.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

SAMPLE_RATE = 16_000
WINDOW_SAMPLES = 480_000
FFT_SIZE = 400
HOP = 160
FRAMES = WINDOW_SAMPLES // HOP
BINS = FFT_SIZE // 2 + 1
_PANEL = 16
_PANELS = -(-BINS // _PANEL)


def fourier_tiles() -> npt.NDArray[np.float32]:
    """The windowed discrete Fourier transform, float32 [2, panels, FFT_SIZE / 2, 16].

    The native operator ``LogMel`` folds a frame upon itself first: the cosine (real) part applies
    to frame[i] + frame[FFT_SIZE - i], the sine (imaginary) part to their difference, i from 1 to
    FFT_SIZE / 2. Each is times the periodic Hann window, which is symmetric; the sign of the
    imaginary part is of no matter for power. Bins lie in panels of 16, zero beyond the last.
    """
    sample = np.arange(1, FFT_SIZE // 2 + 1)
    window = 0.5 - 0.5 * np.cos(2.0 * np.pi * sample / FFT_SIZE)
    window[-1] /= 2  # The middle sample is its own mirror image and comes twice.
    # The product is reduced modulo the period first: large angles would lose digits.
    angle = 2.0 * np.pi * (np.outer(sample, np.arange(BINS)) % FFT_SIZE) / FFT_SIZE
    whole = np.zeros((2, FFT_SIZE // 2, _PANELS * _PANEL))
    whole[:, :, :BINS] = np.stack([np.cos(angle), np.sin(angle)]) * window[:, None]
    tiles = whole.reshape(2, FFT_SIZE // 2, _PANELS, _PANEL).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(tiles, dtype=np.float32)


def filter_rows(bands: int) -> npt.NDArray[np.float32]:
    """``mel_filters`` as ``LogMel`` reads them: [16 * panels, bands], zero beyond the last bin."""
    rows = np.zeros((_PANELS * _PANEL, bands), dtype=np.float32)
    rows[:BINS] = mel_filters(bands).T
    return rows


def mel_filters(bands: int) -> npt.NDArray[np.float32]:
    """Triangular filters of Slaney's Auditory Toolbox, float32 [bands, BINS].

    The same as ``librosa.filters.mel(sr=16000, n_fft=400, n_mels=bands)`` (htk=False,
    norm="slaney"), which made the table that openai/whisper ships.
    """
    # Below 1 kHz the scale is linear, 200/3 Hz a mel; above, 27 mels make a factor of 6.4.
    linear_step = 200.0 / 3.0
    corner_hz = 1000.0
    corner_mel = corner_hz / linear_step
    log_step = np.log(6.4) / 27.0

    top_mel = corner_mel + np.log(SAMPLE_RATE / 2.0 / corner_hz) / log_step
    mels = np.linspace(0.0, top_mel, bands + 2)
    edges = np.where(
        mels < corner_mel,
        mels * linear_step,
        corner_hz * np.exp(log_step * (mels - corner_mel)),
    )
    frequencies = np.linspace(0.0, SAMPLE_RATE / 2.0, BINS)
    slopes = edges[:, None] - frequencies[None, :]
    widths = np.diff(edges)
    rising = -slopes[:-2] / widths[:-1, None]
    falling = slopes[2:] / widths[1:, None]
    filters = np.maximum(0.0, np.minimum(rising, falling))
    area = 2.0 / (edges[2:] - edges[:-2])
    return np.asarray(filters * area[:, None], dtype=np.float32)
