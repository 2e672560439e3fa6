"""The base of all formats."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from typing import Protocol

from as2d_cli.errors import As2dError
from as2d_cli.tasks.transcript import Segment, SourceInfo, Transcript

__all__ = ["Renderer", "Writer"]


class Writer(Protocol):
    """Where a format goes: a stream, a file, or a terminal that is shared with a live display."""

    @property
    def is_terminal(self) -> bool: ...
    def write(self, text: str) -> None: ...
    def flush(self) -> None: ...


class Renderer(ABC):
    """Turns what a transcription yields into one format.

    Per input: `begin`, then for each segment any number of `commit` and one `segment`, then `end`;
    or `abandon` at any point after `begin`. A format that can be streamed writes as it is told;
    the others wait for `end`. Text is written as the model said it, escaped only where the format
    demands.
    """

    def __init__(self, out: Writer) -> None:
        self.out = out

    def begin(self, info: SourceInfo) -> None:  # noqa: B027 - most formats have nothing to do here
        """A new input."""

    def commit(self, text: str) -> None:  # noqa: B027
        """More text of the current segment; final, never empty."""

    def segment(self, segment: Segment) -> None:  # noqa: B027
        """The current segment is complete."""

    @abstractmethod
    def end(self, transcript: Transcript) -> None:
        """The input is complete."""

    def abandon(self) -> None:
        """The input ends in the middle; what is visible is left in good order. Never fails."""
        with contextlib.suppress(As2dError, OSError):
            self._abandon()

    def _abandon(self) -> None:  # noqa: B027
        """`abandon` of the format."""
