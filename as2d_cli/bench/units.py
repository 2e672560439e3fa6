"""What is timed as one piece: a window, or a recording with all its windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from as2d_cli.audio.decode import RATE, AudioFile
from as2d_cli.audio.downmix import Samples
from as2d_cli.audio.windows import AudioWindow, is_silent, windows
from as2d_cli.bench.dataset import Clip
from as2d_cli.errors import As2dError

__all__ = ["Asked", "Piece", "Recordings", "Unit", "heard", "load_units"]


@dataclass(frozen=True)
class Piece:
    """A window without its samples.

    Attributes:
        index: counts the windows of the recording, silent ones included.
        first, count: samples before it, and in it.
    """

    index: int
    first: int
    count: int


@dataclass(frozen=True)
class Asked:
    """A question about a recording, as the language model gets it.

    Attributes:
        number: of the question.
        prompt: the model's tokens, transcript included.
        limit: most tokens of the answer.
        span: (from, to) in samples of the recording: what a model hears that needs no transcript;
            None for one that reads.
        samples: these, as the model is given them.
    """

    number: int
    text: str
    prompt: tuple[int, ...]
    limit: int
    span: tuple[int, int] | None = None
    samples: Samples | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Unit:
    """One piece of work: of transcribing, or a question to answer.

    Attributes:
        clip: the recording.
        recording: its number.
        pieces: the windows that are given to the engine; one of them where windows are timed.
        whole: all of the recording's windows are in it, and it is timed as a recording.
        language: code of what is spoken.
        asked: what is to be answered; the pieces then only say how much audio it is about.
    """

    clip: Clip
    recording: int
    pieces: tuple[Piece, ...]
    whole: bool
    language: str
    asked: Asked | None = None

    @property
    def start(self) -> float:
        """Seconds from the beginning of the recording."""
        return self.pieces[0].first / RATE

    @property
    def audio_seconds(self) -> float:
        """Silent windows left out."""
        return sum(piece.count for piece in self.pieces) / RATE

    @property
    def name(self) -> str:
        """For people: ``talk.wav`` or ``talk.wav window 3``."""
        name = self.clip.path.name
        if self.asked is not None:
            return f"{name} '{self.asked.text}'"
        return name if self.whole else f"{name} window {self.pieces[0].index}"


def load_units(
    clips: Sequence[Clip],
    *,
    whole: bool,
    language: Callable[[Clip, AudioWindow], str],
    left_out: Callable[[As2dError], None],
) -> list[Unit]:
    """Goes through all recordings once. Silent windows are no work, and no part of a unit.

    Args:
        whole: a unit is a recording, not a window.
        language: of a clip whose first window that is not silent is given. Raises As2dError for
            one that cannot be used.
        left_out: is told of clips that cannot be used; the others go on.
    """
    units: list[Unit] = []
    for recording, clip in enumerate(clips):
        try:
            pieces: list[Piece] = []
            code = ""
            for window in _windows(clip):
                code = code or language(clip, window)
                pieces.append(Piece(window.index, window.first, len(window.samples)))
        except As2dError as error:
            left_out(error)
            continue
        groups = [tuple(pieces)] if whole and pieces else [(piece,) for piece in pieces]
        units += [Unit(clip, recording, group, whole, code) for group in groups]
    return units


class Recordings:
    """Samples of units; those of one recording are kept, which is what the next unit needs."""

    def __init__(self) -> None:
        self._recording = -1
        self._windows: dict[int, AudioWindow] = {}

    def windows(self, unit: Unit) -> list[AudioWindow]:
        """The windows of a unit; none of a question.

        Raises:
            As2dError: the file is not what it was.
        """
        if unit.asked is not None:
            return []
        if unit.recording != self._recording:
            self._windows = {window.index: window for window in _windows(unit.clip)}
            self._recording = unit.recording
        try:
            return [self._windows[piece.index] for piece in unit.pieces]
        except KeyError:
            raise As2dError(f"{unit.clip.path}: changed while it was measured") from None


def heard(path: Path, begin: int, end: int, size: int) -> Samples:
    """Samples [begin, end) of a file, and silence after them up to `size`.

    Raises:
        As2dError: it cannot be read.
    """
    with AudioFile(path) as audio:
        samples = np.concatenate([np.empty(0, np.float32), *audio])[begin:end]
    return np.pad(samples, (0, size - len(samples)))


def _windows(clip: Clip) -> list[AudioWindow]:
    with AudioFile(clip.path) as audio:
        return [window for window in windows(audio) if not is_silent(window.samples)]
