"""A stream of blocks -> windows of what is spoken in it, cut at pauses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

import numpy as np

from as2d_cli.audio.downmix import Samples
from as2d_cli.audio.windows import RATE, SILENCE, WINDOW, AudioWindow, quiet_cut

__all__ = ["FRAME", "PAUSE", "Listen", "speech_windows"]

FRAME = 512
"""Samples of a frame, 32 ms: what the voice-activity model judges at a time."""

Listen = Callable[[Samples], Samples]
"""float32[n * FRAME], the next of one stream -> float32[n]: how likely each frame is spoken."""

PAUSE = 2.0
"""Seconds of silence that end a window. Shorter ones stay in it, because a window costs as much as
half a minute of audio whatever is in it; after longer ones a model may take what was said for all
there is, or invent."""

_STEP = 32 * FRAME
"""Judged at a time: one second."""

_ON, _OFF = 0.5, 0.35
"""Speech begins at the one and ends below the other (the defaults of Silero's own tools)."""

_PAD = round(0.4 * RATE)
"""Kept on both sides of speech: a first consonant or a last breath is not noticed."""

_LEAST_PAUSE = 4
"""Frames: 0.13 s, so that the closure of a plosive does not end anything."""

_LEAST_SPEECH = 3
"""Frames: 0.1 s. A click is likely speech for less; a word never."""

_SEARCHES = (5 * RATE, 12 * RATE)
"""A window that must be cut is cut in the longest pause of the first of these before its end that
has one."""

_LEAST_REST = 2 * RATE
"""What follows such a cut is at least this long: a model invents words for a sliver of sound."""

_QUIET, _LOUD, _MOST_GAIN = 0.03, 0.1, 100.0
"""A recording whose peaks stay below the first (-30 dB of full scale) is brought up to the second,
by at most 40 dB: the model does not hear whispers that Whisper, which has no scale, understands."""

_FADE = 0.93
"""How much of the loudest peak is remembered after a second: half of it after ten."""


def speech_windows(
    blocks: Iterable[Samples], listen: Listen, *, first: int = 0, pause: float = PAUSE
) -> Iterator[AudioWindow]:
    """Cuts a stream into windows with speech in them; the rest is left out.

    A window begins 0.4 s before speech and ends 0.4 s after it; the next one begins after a pause
    of `pause` seconds, or, when there is speech for more than half a minute, in the longest pause
    near its end. Memory does not depend on the length of the stream.

    Args:
        blocks: float32[n] each, 16 kHz mono.
        listen: the voice-activity model at the start of a stream.
        first: samples of the input before the first block.
        pause: seconds.
    """
    stretch = _Stretch(listen, first, round(pause * RATE))
    for block in blocks:
        stretch.push(block)
        # Step by step, so that nothing depends on how the stream is cut into blocks.
        while stretch.step():
            yield from stretch.windows()
    stretch.finish()
    yield from stretch.windows()


class _Stretch:
    """What was heard and is not in a window yet. Positions are samples of the input."""

    def __init__(self, listen: Listen, first: int, pause: int) -> None:
        self._listen = listen
        self._pause = pause
        self._samples = np.zeros(0, np.float32)  # from _base on
        self._base = first
        self._floor = first  # end of the last window
        self._now = first  # judged so far; whole frames
        self._activity = _Activity(first)
        self._loudest = 0.0
        self._ended = False
        self._count = 0

    def push(self, block: Samples) -> None:
        self._samples = np.concatenate([self._samples, block])

    def step(self) -> bool:
        """Judges the next second; False when it is not here yet."""
        begin = self._now - self._base
        if len(self._samples) - begin < _STEP:
            return False
        self._judge(self._samples[begin : begin + _STEP])
        self._now += _STEP
        self._forget()
        return True

    def finish(self) -> None:
        """Judges what is left, which is less than a step."""
        rest = self._samples[self._now - self._base :]
        if len(rest):
            self._judge(np.pad(rest, (0, -len(rest) % FRAME)))
            self._now += len(rest)
        self._activity.close(self._now)
        self._ended = True

    def windows(self) -> Iterator[AudioWindow]:
        """Those whose ends are known by now."""
        while (window := self._take()) is not None:
            yield window

    def _take(self) -> AudioWindow | None:
        """The next window, as soon as it is known where it ends."""
        spans = self._activity.spans
        if not spans:
            return None
        start = max(self._floor, spans[0][0] - _PAD)
        count = self._together()
        over = count < len(spans) or self._ended or self._now - spans[count - 1][1] >= self._pause
        stop = min(spans[count - 1][1] + _PAD, self._now)
        if stop - start <= WINDOW:
            return self._window(start, stop, count) if over else None
        if not over and self._now - start < WINDOW + _LEAST_REST:
            return None
        latest = min(start + WINDOW, (stop if over else self._now) - _LEAST_REST)
        return self._cut(start, latest, count)

    def _together(self) -> int:
        """How many spans follow each other without a pause that ends a window."""
        for i, (a, b) in enumerate(pairwise(self._activity.spans), 1):
            if b[0] - a[1] >= self._pause:
                return i
        return len(self._activity.spans)

    def _cut(self, start: int, latest: int, count: int) -> AudioWindow:
        """The window from `start` on, which `count` spans are too long for."""
        spans = self._activity.spans
        for search in _SEARCHES:
            best: tuple[int, int] | None = None  # (length of the pause, spans before it)
            for i, (a, b) in enumerate(pairwise(spans[:count]), 1):
                if latest - search <= a[1] < latest and a[1] > start:
                    best = max(best or (0, 0), (b[0] - a[1], i))
            if best is not None:
                before, after = spans[best[1] - 1][1], spans[best[1]][0]
                cut = min((before + after) // 2, latest)
                window = self._window(start, min(before + _PAD, cut), best[1])
                self._floor = cut
                return window
        cut = start + quiet_cut(self._samples[start - self._base :], latest - start)
        inside = sum(a < cut for a, _ in spans)
        # What is spoken goes on after the cut.
        if spans[inside - 1][1] > cut:
            spans.insert(inside, (cut, spans[inside - 1][1]))
            spans[inside - 1] = (spans[inside - 1][0], cut)
        return self._window(start, cut, inside)

    def _window(self, start: int, stop: int, count: int) -> AudioWindow:
        spans = self._activity.spans
        taken = tuple(spans[:count])
        del spans[:count]
        self._floor = stop
        samples = self._samples[start - self._base : stop - self._base].copy()
        self._forget()
        self._count += 1
        return AudioWindow(self._count - 1, start, samples, taken)

    def _forget(self) -> None:
        """Drops the samples that no window can need any more."""
        spans = self._activity.spans
        begin = max((spans[0][0] if spans else self._activity.since) - _PAD, self._floor)
        if begin - self._base > RATE:
            self._samples = self._samples[begin - self._base :].copy()
            self._base = begin

    def _judge(self, frames: Samples) -> None:
        if float(np.abs(frames).max()) <= SILENCE:
            likely = np.zeros(len(frames) // FRAME, np.float32)
        else:
            likely = self._listen(self._audible(frames))
        self._activity.push(likely)

    def _audible(self, piece: Samples) -> Samples:
        """As the model needs it: no constant part, and a quiet recording made louder."""
        piece = piece - piece.mean(dtype=np.float64).astype(np.float32)
        peak = float(np.abs(piece).max())
        self._loudest = max(peak, self._loudest * _FADE)
        if self._loudest >= _QUIET:
            return piece
        return piece * np.float32(min(_LOUD / self._loudest, _MOST_GAIN))


class _Activity:
    """Likelihoods of frames -> spans of speech.

    Attributes:
        spans: (from, to) in samples, in order; the last may still grow.
    """

    def __init__(self, first: int) -> None:
        self.spans: list[tuple[int, int]] = []
        self._now = first
        self._begun: int | None = None  # where the speech that is heard now began
        self._heard = first  # where it was heard last
        self._quiet = 0  # frames since then

    @property
    def since(self) -> int:
        """What is before it and in no span is no speech."""
        return self._now if self._begun is None else self._begun

    def push(self, likely: Samples) -> None:
        """Takes the next frames' likelihoods."""
        for p in likely.tolist():
            self._now += FRAME
            if p >= (_ON if self._begun is None else _OFF):
                if self._begun is None:
                    self._begun = self._now - FRAME
                self._heard, self._quiet = self._now, 0
                self._note(self._begun)
            elif self._begun is not None:
                self._quiet += 1
                if self._quiet >= _LEAST_PAUSE:
                    self._begun = None

    def close(self, end: int) -> None:
        """The stream ends at `end`, which may be inside the last frame."""
        if self.spans and self.spans[-1][1] > end:
            self.spans[-1] = (self.spans[-1][0], end)

    def _note(self, begun: int) -> None:
        if self._heard - begun < _LEAST_SPEECH * FRAME:
            return
        # A cut may have divided it since it began.
        if self.spans and self.spans[-1][1] > begun:
            self.spans[-1] = (self.spans[-1][0], self._heard)
        else:
            self.spans.append((begun, self._heard))
