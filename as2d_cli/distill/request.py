"""What a distillation is asked for, and what it tells on its way."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from as2d_cli.distill.training import Point

__all__ = ["METHODS", "DistillRequest", "Watch"]

METHODS = ("adapter", "ctc")


@dataclass(frozen=True)
class DistillRequest:
    """Everything that decides the result.

    Attributes:
        target, init: catalogue ids or folders; ``init`` is a small English Whisper.
        audio, held_out: folders of recordings to train on and to judge by; without the latter some
            of the former are held out.
        variation: folder of noises and room responses, or None.
        vary: make other voices, noises, rooms and telephones of the recordings.
        out: folder that gets ``head.npz`` and ``report.json``; its name is the head's id.
        work: folder for what is collected and for checkpoints.
        hours: train on so much audio at most; None for all.
        most_bytes: of what is collected.
        method: one of `METHODS`.
        layers: of ``init``'s decoder, by number; adapter only.
        blocks: of the adapter.
        pieces: tokens that the head has.
        sketch: the head makes a sketch of the text first (see `network.Sketch`); a ctc head always
            does.
        passes: times over all windows, of the adapter alone and of the whole.
    """

    target: str
    init: str
    audio: tuple[Path, ...]
    held_out: tuple[Path, ...]
    variation: Path | None
    vary: bool
    out: Path
    work: Path
    hours: float | None = None
    most_bytes: int = 20 << 30
    method: str = "adapter"
    layers: tuple[int, ...] = (0, 1, 2, 3)
    blocks: int = 4
    pieces: int = 16384
    sketch: bool = False
    passes: tuple[int, int] = (8, 2)
    seed: int = 0
    threads: int = 0
    offline: bool = False


class Watch(Protocol):
    """Who is told of the progress."""

    def stage(self, text: str) -> None:
        """Something else begins."""

    def collected(self, seconds: float, wanted: float | None) -> None:
        """So much audio is there now; ``wanted`` None: as much as there is."""

    def point(self, point: Point, passes: int) -> None:
        """A pass of so many is over."""

    def warning(self, text: str) -> None:
        """One line."""
