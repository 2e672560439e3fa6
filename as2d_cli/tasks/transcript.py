"""The result of a transcription, and what its makers tell those who watch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from as2d_cli.text.words import Word

__all__ = [
    "Counters",
    "Decision",
    "Monitor",
    "Progress",
    "Segment",
    "Sink",
    "SourceInfo",
    "Transcript",
]


class Counters(Protocol):
    """The engine's counters of one run, as far as they are shown."""

    @property
    def committed(self) -> int: ...
    @property
    def verify_steps(self) -> Mapping[int, int]: ...
    @property
    def alone_steps(self) -> int: ...
    @property
    def proposed(self) -> int: ...
    @property
    def accepted(self) -> int: ...
    @property
    def lead_total(self) -> int: ...
    @property
    def lanes(self) -> Mapping[str, Mapping[str, Any]]: ...
    @property
    def exact(self) -> bool: ...
    def as_json(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class SourceInfo:
    """What is known when the work on an input begins.

    Attributes:
        name: the input as the user named it, printable.
        duration: seconds its header promises, or None; only for display.
        target, drafter: ids of the models; `drafter` is None when the target goes alone.
        method: one of `as2d_cli.methods.METHODS`.
        budget: most candidates per verify step; with ``batched``, windows in a batch.
        number: of the input among those of one call, from 0.
    """

    name: str
    duration: float | None
    target: str
    drafter: str | None
    method: str
    budget: int
    number: int = 0


@dataclass(frozen=True)
class Decision:
    """The engine dropped drafting, or took it up again.

    Attributes:
        at: seconds from the beginning of the input, where the window ends by which it was decided.
        drafting: whether windows after that are drafted.
        reason: why, in figures.
    """

    at: float
    drafting: bool
    reason: str


@dataclass(frozen=True)
class Segment:
    """The text of one stretch of audio.

    Attributes:
        start, end: seconds from the beginning of the input.
        text: as the model said it, but for the space that Whisper puts in front.
        tokens: its ids, specials left out.
        spoken: (from, to) of what is spoken in it, in seconds; empty where that is not known.
        raw: the text with that space.
        words: when each was spoken, in seconds from the beginning of the input; empty where that
            was not asked for.
    """

    start: float
    end: float
    text: str
    tokens: tuple[int, ...]
    spoken: tuple[tuple[float, float], ...] = ()
    raw: str = ""
    words: tuple[Word, ...] = ()


@dataclass
class Transcript:
    """Everything about one input. Attributes that are not in `SourceInfo`:

    duration: seconds of audio that were found. language, language_probability: None where no
    speech was, and the latter where the language was given. text: of all segments. decisions:
    about drafting, in their order. drafts: what the drafter said of those windows of which it did
    not say the same. wall: seconds it took. written: False where nobody wrote down what is said,
    since a model that hears it itself is asked; there is no text then.
    """

    info: SourceInfo
    duration: float = 0.0
    language: str | None = None
    language_probability: float | None = None
    text: str = ""
    segments: list[Segment] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    drafts: list[str] = field(default_factory=list)
    counters: Counters | None = None
    wall: float = 0.0
    written: bool = True

    @property
    def tokens(self) -> int:
        """How many tokens were committed."""
        return sum(len(s.tokens) for s in self.segments)


@dataclass(frozen=True)
class Progress:
    """How far a running transcription is.

    Attributes:
        position: seconds of audio whose text is final.
        settled: the text of the last finished segment.
        current: text committed so far of the segment after that.
        words, tokens: committed so far.
        elapsed: wall seconds.
        lanes: lane -> (activity, window).
        drafting: whether windows that begin now are drafted, where there is a drafter.
        heading: what goes on, where that is not on its way through the audio; else empty.
    """

    info: SourceInfo
    position: float
    settled: str
    current: str
    words: int
    tokens: int
    elapsed: float
    lanes: Mapping[str, tuple[str, int]]
    counters: Counters | None
    drafting: bool = True
    heading: str = ""


class Sink(Protocol):
    """Who receives the result. Calls per input: begin, (commit*, segment)*, end or abandon."""

    def begin(self, info: SourceInfo) -> None: ...
    def commit(self, text: str) -> None:
        """More text of the current segment; final."""

    def segment(self, segment: Segment) -> None:
        """The current segment is complete; the next `commit` belongs to another."""

    def end(self, transcript: Transcript) -> None: ...
    def abandon(self) -> None:
        """The input ends here, in the middle: interrupted or failed."""


class Monitor(Protocol):
    """Who hears the talk."""

    def info(self, text: str) -> None:
        """Of interest to a person who watches."""

    def notice(self, text: str) -> None:
        """The result needs this to be understood, though nothing is wrong."""

    def warning(self, text: str) -> None:
        """Something was wrong and was dealt with."""

    def error(self, text: str) -> None:
        """An input failed; the others go on."""

    def progress(self, progress: Progress) -> None:
        """Called some eight times a second."""

    def finished(self, transcript: Transcript) -> None:
        """An input is done."""
