"""A recording for a model that hears: all of its samples, and where somebody speaks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from as2d_cli.audio.downmix import Samples
from as2d_cli.audio.speech import speech_windows
from as2d_cli.audio.windows import RATE, is_silent, windows
from as2d_cli.errors import As2dError
from as2d_cli.tasks.interrupt import interruptible
from as2d_cli.tasks.models import Backend, open_voice
from as2d_cli.tasks.sources import Source
from as2d_cli.tasks.subject import Span
from as2d_cli.tasks.transcript import Monitor, SourceInfo, Transcript

__all__ = ["Recording", "record"]

_BLOCK = RATE
"""Samples of a block of what is read again."""


@dataclass(frozen=True)
class Recording:
    """What was heard.

    Attributes:
        name: as the user named it, printable.
        samples: float32[n], 16 kHz.
        spoken: stretches with speech, of at most half a minute, in order; none where nobody speaks.
        warnings: about the input.
    """

    name: str
    samples: Samples
    spoken: Sequence[Span]
    warnings: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """Of all of it."""
        return len(self.samples) / RATE

    def unwritten(self, language: str | None = None) -> Transcript:
        """What stands in the place of a transcript where none was made."""
        info = SourceInfo(self.name, self.seconds, "", None, "", 0)
        return Transcript(
            info,
            duration=self.seconds,
            language=language,
            warnings=list(self.warnings),
            written=False,
        )

    def again(self) -> Source:
        """The same as an input of its own, for those who write down what is said."""
        return Source(lambda: _Again(self))


def record(
    source: Source, *, monitor: Monitor, backend: Backend, offline: bool = False
) -> Recording | None:
    """Reads all of `source`; None for an input that failed, which `monitor` was told.

    Raises:
        As2dError: the models cannot be had.
    """
    voice = open_voice(backend, monitor, offline=offline)
    cut = windows if voice is None else partial(speech_windows, listen=voice.start())
    try:
        # A pipe that gives nothing blocks in a native call.
        with interruptible(source.excerpt) as audio:
            if source.live:
                monitor.notice(f"{audio.name}: recording until Ctrl-C")
            blocks = list(audio)
            warnings = tuple(audio.warnings)
    except As2dError as e:
        monitor.error(str(e))
        return None
    for text in warnings:
        monitor.warning(f"{audio.name}: {text}")
    found = [window for window in cut(blocks) if not is_silent(window.samples)]
    spoken = [(window.first, window.first + len(window.samples)) for window in found]
    if not spoken:
        monitor.notice(f"{audio.name}: no speech")
    samples = np.concatenate(blocks) if blocks else np.empty(0, np.float32)
    return Recording(audio.name, samples, spoken, warnings)


class _Again:
    """An input that was read before."""

    def __init__(self, recording: Recording) -> None:
        self._samples = recording.samples
        self.name = recording.name
        self.duration: float | None = recording.seconds
        self.warnings: list[str] = []

    def __iter__(self) -> Iterator[Samples]:
        for at in range(0, len(self._samples), _BLOCK):
            yield self._samples[at : at + _BLOCK]

    def close(self) -> None:
        """Nothing is open."""
