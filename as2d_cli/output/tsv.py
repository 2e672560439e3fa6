"""Tab-separated: a line per segment, times in milliseconds."""

from __future__ import annotations

from as2d_cli.output.renderer import Renderer
from as2d_cli.tasks.transcript import Segment, SourceInfo, Transcript

__all__ = ["TsvRenderer"]

_BLANKS = str.maketrans("\t\n\r", "   ")
"""The format has no escapes."""


class TsvRenderer(Renderer):
    """The columns of Whisper's own: start, end, text."""

    def begin(self, info: SourceInfo) -> None:
        self.out.write("start\tend\ttext\n")

    def segment(self, segment: Segment) -> None:
        start, end = round(segment.start * 1000), round(segment.end * 1000)
        self.out.write(f"{start}\t{end}\t{segment.text.translate(_BLANKS)}\n")
        self.out.flush()

    def end(self, transcript: Transcript) -> None:
        self.out.flush()
