"""JSON lines: an object per segment as soon as it is known, and one that closes the input."""

from __future__ import annotations

from typing import Any

from as2d_cli.output.json_format import as_json, segment_as_json, strict
from as2d_cli.output.renderer import Renderer, Writer
from as2d_cli.tasks.transcript import Segment, SourceInfo, Transcript

__all__ = ["JsonLinesRenderer"]


class JsonLinesRenderer(Renderer):
    """``type`` is ``segment``, or ``end`` with what is known of the whole; each names its file."""

    def __init__(self, out: Writer, *, tokens: bool = False, words: bool = False) -> None:
        """`tokens`, `words`: add the ids of each segment's tokens, and each word's times."""
        super().__init__(out)
        self._tokens, self._words = tokens, words
        self._file = ""

    def begin(self, info: SourceInfo) -> None:
        self._file = info.name

    def segment(self, segment: Segment) -> None:
        self._line("segment", segment_as_json(segment, tokens=self._tokens, words=self._words))

    def end(self, transcript: Transcript) -> None:
        whole = as_json(transcript)
        for key in ("file", "text", "segments"):
            del whole[key]
        self._line("end", whole)

    def _line(self, kind: str, data: dict[str, Any]) -> None:
        self.out.write(strict({"type": kind, "file": self._file, **data}) + "\n")
        self.out.flush()
