"""Where a transcription's audio comes from, before it is opened."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO

from as2d_cli.audio.decode import AudioFile
from as2d_cli.audio.excerpt import AudioInput, Excerpt
from as2d_cli.audio.raw import RawFormat

__all__ = ["Source", "file_source"]


@dataclass(frozen=True)
class Source:
    """One input.

    Attributes:
        open: opens it; may block, and raises As2dError.
        start, end: seconds of it that are wanted; `end` None for all the rest.
        optional: one of many in a folder, which need not be audio.
        live: it comes as it is spoken, and a pause is worth more than a full window.
    """

    open: Callable[[], AudioInput]
    start: float = 0.0
    end: float | None = None
    optional: bool = False
    live: bool = False

    def excerpt(self) -> Excerpt:
        """Opens the part that is wanted."""
        return Excerpt(self.open(), self.start, self.end)


def file_source(
    path: str | os.PathLike[str],
    stdin: BinaryIO | None = None,
    *,
    raw: RawFormat | None = None,
    start: float = 0.0,
    end: float | None = None,
    optional: bool = False,
) -> Source:
    """A file, or with ``-`` `stdin`; `raw`: of samples without a header."""
    return Source(lambda: AudioFile(path, stdin, raw), start, end, optional)
