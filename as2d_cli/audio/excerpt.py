"""From one time of an input to another."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Protocol, Self

from as2d_cli.audio.downmix import Samples
from as2d_cli.audio.windows import RATE

__all__ = ["AudioInput", "Excerpt"]


class AudioInput(Protocol):
    """What is read once from front to back; see `as2d_cli.audio.decode.AudioFile`."""

    @property
    def name(self) -> str: ...
    @property
    def duration(self) -> float | None: ...
    @property
    def warnings(self) -> list[str]: ...
    def __iter__(self) -> Iterator[Samples]: ...
    def close(self) -> None: ...


class Excerpt:
    """The part of an input between two times; the input is closed with it.

    Attributes:
        first: samples of the input before the first one of this.
        duration: seconds of the input up to its end, None where that is not known.
    """

    def __init__(self, audio: AudioInput, start: float = 0.0, end: float | None = None) -> None:
        """`start` and `end` are seconds of `audio`; `end` None for all of it."""
        self._audio = audio
        self._end = None if end is None else round(end * RATE)
        self.first = round(start * RATE)
        self.name = audio.name
        self.warnings = audio.warnings
        known = [t for t in (audio.duration, end) if t is not None]
        self.duration = min(known) if known else None

    @property
    def length(self) -> float | None:
        """Seconds from its beginning to its end, None where that is not known."""
        return None if self.duration is None else max(0.0, self.duration - self.first / RATE)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the input."""
        self._audio.close()

    def __iter__(self) -> Iterator[Samples]:
        position = 0
        for block in self._audio:
            begin, position = position, position + len(block)
            stop = len(block) if self._end is None else self._end - begin
            part = block[max(0, self.first - begin) : max(0, stop)]
            if len(part):
                yield part
            if self._end is not None and position >= self._end:
                return
        if position < self.first:
            self.warnings.append(f"is over at {position / RATE:.1f} s, before the asked-for part")
