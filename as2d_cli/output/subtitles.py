"""SubRip and WebVTT: cues, as they are known."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace

from as2d_cli.output.cues import Cue, CueRules, cues
from as2d_cli.output.renderer import Renderer, Writer
from as2d_cli.tasks.transcript import Segment, SourceInfo, Transcript

__all__ = ["SrtRenderer", "VttRenderer"]


class _SubtitleRenderer(Renderer):
    """Writes each cue when the next one is known, which it must not touch."""

    def __init__(self, out: Writer, rules: CueRules) -> None:
        super().__init__(out)
        self._rules = rules
        self._held: Cue | None = None
        self._number = 0

    def begin(self, info: SourceInfo) -> None:
        self._held, self._number = None, 0
        self.out.write(self._head())

    def segment(self, segment: Segment) -> None:
        for cue in cues(segment, self._rules):
            self._release(cue.start)
            self._held = cue
        self.out.flush()

    def end(self, transcript: Transcript) -> None:
        self._release(None)
        self.out.flush()

    def _abandon(self) -> None:
        self._release(None)
        self.out.flush()

    def _release(self, following: float | None) -> None:
        """Writes the cue that is held; the next one starts at `following`."""
        held, self._held = self._held, None
        if held is None:
            return
        if following is not None:
            latest = max(following - self._rules.gap, (held.start + following) / 2)
            held = replace(held, end=min(held.end, latest))
        self._number += 1
        self.out.write(self._cue(self._number, held))

    @abstractmethod
    def _head(self) -> str: ...

    @abstractmethod
    def _cue(self, number: int, cue: Cue) -> str: ...


class SrtRenderer(_SubtitleRenderer):
    """SubRip. It has no way to escape; only its arrow is changed, as Whisper does."""

    def _head(self) -> str:
        return ""

    def _cue(self, number: int, cue: Cue) -> str:
        text = "\n".join(cue.lines).replace("-->", "->")
        return f"{number}\n{_time(cue.start, ',')} --> {_time(cue.end, ',')}\n{text}\n\n"


class VttRenderer(_SubtitleRenderer):
    """WebVTT, whose text has the escapes of HTML."""

    def _head(self) -> str:
        return "WEBVTT\n\n"

    def _cue(self, number: int, cue: Cue) -> str:
        text = "\n".join(cue.lines)
        for sign, escape in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
            text = text.replace(sign, escape)
        return f"{_time(cue.start, '.')} --> {_time(cue.end, '.')}\n{text}\n\n"


def _time(seconds: float, point: str) -> str:
    whole = round(seconds * 1000)
    hours, rest = divmod(whole, 3_600_000)
    minutes, rest = divmod(rest, 60_000)
    return f"{hours:02d}:{minutes:02d}:{rest // 1000:02d}{point}{rest % 1000:03d}"
