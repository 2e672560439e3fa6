"""A stream of blocks -> windows of at most half a minute, cut where it is quiet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from as2d_cli.audio.downmix import Samples

__all__ = ["RATE", "SILENCE", "WINDOW", "AudioWindow", "is_silent", "quiet_cut", "windows"]

RATE = 16_000
WINDOW = 30 * RATE
"""Most samples in a window."""

_SEARCH = 3 * RATE
"""A cut is looked for in this many samples before the latest possible one."""

_LEAST_REST = 2 * RATE
"""What follows the last cut is at least this long: a model invents words for a sliver of sound."""

_HOP = RATE // 50  # 20 ms
_SPAN = 10
"""Hops over which quietness is judged: 0.2 s, longer than the closure of a plosive, is a pause."""

_LEAST_REMAINDER = 3 * RATE // 10
"""A word, and not the end of the last one."""

_LEAST_WORD = RATE // 10
"""Nobody says a word in less, but a model hears one."""

SILENCE = 2.0**-14
"""Peak of digital silence: two steps of a 16-bit sample, which is dither and no microphone."""


@dataclass(frozen=True)
class AudioWindow:
    """One stretch of audio.

    Attributes:
        index: counts from 0.
        first: samples before this window in the input.
        samples: float32[n], 1 <= n <= WINDOW, not padded.
        speech: (from, to) of what is spoken, in samples of the input, in order; empty where nobody
            looked for it.
    """

    index: int
    first: int
    samples: Samples
    speech: tuple[tuple[int, int], ...] = ()

    @property
    def start(self) -> float:
        """Seconds from the beginning of the input."""
        return self.first / RATE

    @property
    def end(self) -> float:
        """Seconds from the beginning of the input."""
        return (self.first + len(self.samples)) / RATE

    @property
    def spoken(self) -> tuple[tuple[float, float], ...]:
        """Seconds of what is spoken; the whole window where nobody looked for it."""
        spans = self.speech or ((self.first, self.first + len(self.samples)),)
        return tuple((a / RATE, b / RATE) for a, b in spans)

    def rest(self, after: float) -> AudioWindow | None:
        """What is left of it after so many seconds; None where too little is spoken in that, or it
        would be all of the window.
        """
        cut = round(after * RATE)
        first, last = self.first + cut, self.first + len(self.samples)
        speech = tuple((max(a, first), b) for a, b in self.speech if b > first)
        spoken = sum(b - a for a, b in speech) if self.speech else last - first
        if cut < RATE // 2 or spoken < _LEAST_REMAINDER:
            return None
        return AudioWindow(self.index, first, self.samples[cut:], speech)


def windows(blocks: Iterable[Samples], first: int = 0) -> Iterator[AudioWindow]:
    """Cuts a stream into windows; put together again they are the stream, sample for sample.

    While more than WINDOW samples are left, the cut falls into the middle of the quietest 0.2 s
    (least energy, in steps of 20 ms; the latest of equals) whose middle lies in the last 3 s of
    the window. Near the end of the stream the search moves to the front, so that the last window
    has at least 2 s: 30.01 s become 25 to 28 s and the rest. Depends on the samples alone, not on
    how they were cut into blocks.

    Args:
        blocks: float32[n] each, 16 kHz mono.
        first: samples of the input before the first block.
    """
    held: list[Samples] = []
    count = 0
    index = 0
    position = first
    enough = WINDOW + _LEAST_REST
    for block in blocks:
        held.append(block)
        count += len(block)
        while count > enough:
            joined = np.concatenate(held)
            cut = _cut(joined[:enough])
            yield AudioWindow(index, position, joined[:cut].copy())
            held, count = [joined[cut:]], count - cut
            index, position = index + 1, position + cut
    if count == 0:
        return
    rest = np.concatenate(held)
    while len(rest) > WINDOW:
        cut = _cut(rest)
        yield AudioWindow(index, position, rest[:cut])
        rest, index, position = rest[cut:], index + 1, position + cut
    yield AudioWindow(index, position, rest)


def is_silent(samples: Samples) -> bool:
    """No word can be in it: digital silence, or no more than 0.1 s."""
    return len(samples) <= _LEAST_WORD or float(np.abs(samples).max()) <= SILENCE


def _cut(samples: Samples) -> int:
    """Where to cut `samples`, which are more than WINDOW and all that is known of the rest."""
    return quiet_cut(samples, min(WINDOW, len(samples) - _LEAST_REST))


def quiet_cut(samples: Samples, latest: int) -> int:
    """The middle of the quietest 0.2 s whose middle lies in the 3 s before `latest`.

    Args:
        samples: at least 0.1 s more than `latest`, which is at least 3.1 s.
    """
    hops = _SEARCH // _HOP
    half = _SPAN * _HOP // 2
    # Middle i lies at latest - (hops - i) * _HOP; its span is half before and half after.
    first = latest - hops * _HOP - half
    stretch = samples[first : latest + half].astype(np.float64)
    energy = np.add.reduceat(np.square(stretch), np.arange(0, len(stretch), _HOP))
    spans = np.convolve(energy, np.ones(_SPAN), "valid")
    quietest = len(spans) - 1 - int(spans[::-1].argmin())
    return first + half + quietest * _HOP
