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


def fourier_basis() -> npt.NDArray[np.float32]:
    """Rows of the windowed discrete Fourier transform, float32 [2 * BINS, FFT_SIZE].

    First the cosine (real) rows, then the sine (imaginary) rows, each times the periodic Hann
    window; the sign of the imaginary part is of no matter for power.
    """
    sample = np.arange(FFT_SIZE)
    window = 0.5 - 0.5 * np.cos(2.0 * np.pi * sample / FFT_SIZE)
    # The product is reduced modulo the period first: large angles would lose digits.
    angle = 2.0 * np.pi * (np.outer(np.arange(BINS), sample) % FFT_SIZE) / FFT_SIZE
    return np.concatenate([np.cos(angle) * window, np.sin(angle) * window]).astype(np.float32)


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
