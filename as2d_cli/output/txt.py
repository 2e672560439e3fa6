"""Plain text: a line per segment, streamed."""

from __future__ import annotations

from as2d_cli.output.renderer import Renderer
from as2d_cli.tasks.transcript import Segment, Transcript

__all__ = ["TextRenderer"]


class TextRenderer(Renderer):
    """Writes words as they are committed and ends each segment with a newline.

    On a terminal every word shows at once; elsewhere a line is handed on when it is whole, so that
    ``| head -1`` or ``| while read`` get lines.
    """

    _open = False

    def commit(self, text: str) -> None:
        self.out.write(text)
        self._open = True
        if self.out.is_terminal:
            self.out.flush()

    def segment(self, segment: Segment) -> None:
        self.out.write("\n")
        self._open = False
        self.out.flush()

    def end(self, transcript: Transcript) -> None:
        self.out.flush()

    def _abandon(self) -> None:
        if self._open:
            self._open = False
            self.out.write("\n")
        self.out.flush()
