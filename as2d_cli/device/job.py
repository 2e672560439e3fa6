"""What the runner is asked to do, as the text it reads; native/runner/job.h tells what it means.

Paths are the runner's: of the folder that it is started in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from as2d_cli.decoding.costs import RunCosts
from as2d_cli.errors import As2dError, ExitStatus

__all__ = [
    "ORACLE",
    "BenchJob",
    "DraftsJob",
    "JobClip",
    "JobContender",
    "JobDrafter",
    "JobLayout",
    "JobUnit",
    "JobWindow",
    "Lanes",
    "ProfileJob",
]

FORMAT = "as2d-job 1"

ORACLE = "oracle"
"""In the place of a drafter's number: it says what the reference says."""

Lines = Iterator[tuple[str, str]]
"""Keys and values; a key in brackets, without a value, begins a section."""


@dataclass(frozen=True)
class JobDrafter:
    """A bundle, and what people call it."""

    name: str
    folder: str


@dataclass(frozen=True)
class JobClip:
    """16 kHz mono PCM, little-endian: `f32`, or `s16`."""

    file: str
    format: str = "f32"


@dataclass(frozen=True)
class JobWindow:
    """Samples of the clip, and the ids that the target must say, where that is known."""

    first: int
    count: int
    expected: Sequence[int] | None = None


@dataclass(frozen=True)
class JobUnit:
    """What is timed as one piece.

    Attributes:
        clip: number.
        prompt: the target's tokens before each window's text.
        max_tokens: of a window.
    """

    clip: int
    language: str
    prompt: Sequence[int]
    max_tokens: int
    windows: Sequence[JobWindow]


@dataclass(frozen=True)
class Lanes:
    """Cores of both lanes' threads; bound to them with `pin`, else as many anywhere."""

    target_cores: Sequence[int]
    draft_cores: Sequence[int] = ()
    pin: bool = True


@dataclass(frozen=True)
class JobContender:
    """A method with what belongs to it.

    Attributes:
        drafter: number, or `ORACLE`, or None.
        windows: in a batch.
        exact: as the engine's `start` takes it: not `one_row` of a bench's contender.
        promised: its text must be the reference's: `exact` of a bench's contender.
        adaptive, costs: as the engine's `start` takes them.
        calibrated: of the target's cores only the first, as many as the baseline is best on.
        units: numbers of those that it takes part in; None for all.
    """

    method: str
    lanes: Lanes
    drafter: int | str | None = None
    budget: int = 0
    windows: int = 1
    exact: bool = True
    promised: bool = True
    reference: bool = False
    baseline: bool = False
    adaptive: bool = False
    costs: RunCosts | None = None
    calibrated: bool = False
    units: Sequence[int] | None = None


@dataclass(frozen=True)
class BenchJob:
    """Everything is verified once, then timed `repeats` times in alternating order.

    Attributes:
        library: of ONNX Runtime.
        target: folder of a bundle.
        deadline: seconds until it ends in any case; 0 for never.
        spans: tell what the lanes did when.
        drafts: tell each drafter's own draft of each unit.
        cool_celsius, cool_seconds: before each turn wait until no sensor says more, but no longer
            than this; 0 degrees for never.
    """

    library: str
    target: str
    clips: Sequence[JobClip]
    units: Sequence[JobUnit]
    contenders: Sequence[JobContender]
    drafters: Sequence[JobDrafter] = ()
    repeats: int = 1
    deadline: float = 0.0
    spans: bool = False
    drafts: bool = False
    cool_celsius: float = 0.0
    cool_seconds: float = 0.0

    def text(self) -> str:
        """The job as the runner reads it.

        Raises:
            As2dError: a name has a line break in it.
        """
        return _text(self._lines())

    def _lines(self) -> Lines:
        yield from _head("bench", self.library, self.target, self.deadline)
        yield "repeats", str(self.repeats)
        yield "spans", _truth(self.spans)
        yield "drafts", _truth(self.drafts)
        yield "cool_celsius", str(self.cool_celsius)
        yield "cool_seconds", str(self.cool_seconds)
        yield from _material(self.drafters, self.clips, self.units)
        for contender in self.contenders:
            yield from _contender(contender)


@dataclass(frozen=True)
class JobLayout(Lanes):
    """A way to share the cores that is measured."""


@dataclass(frozen=True)
class ProfileJob:
    """Measures what the work of both lanes costs, as `as2d_cli.profile.measure` does it here.

    Attributes:
        unit: known speech; its first window is what is measured with.
        layouts: measured in their order, as many as there is time for, but two in any case.
        seconds: for all of them.
        rows: of the forwards that are timed.
        batches: rounds with a run of `batch` windows at a time.
        audio: seconds of audio that the encoder is timed with, in turn.
    """

    library: str
    target: str
    clip: JobClip
    unit: JobUnit
    layouts: Sequence[JobLayout]
    seconds: float
    rows: Sequence[int]
    batches: int
    batch: int
    audio: Sequence[float]
    drafter: JobDrafter | None = None
    deadline: float = 0.0

    def text(self) -> str:
        """As `BenchJob.text`."""
        return _text(self._lines())

    def _lines(self) -> Lines:
        yield from _head("profile", self.library, self.target, self.deadline)
        yield "seconds", str(self.seconds)
        yield "rows", _list(self.rows)
        yield "batches", str(self.batches)
        yield "batch", str(self.batch)
        yield "audio", _list(self.audio)
        yield from _material([self.drafter] if self.drafter else [], [self.clip], [self.unit])
        for layout in self.layouts:
            yield "[layout]", ""
            yield from _lanes(layout)


@dataclass(frozen=True)
class DraftsJob:
    """Tells what drafters say of windows, all by themselves.

    Attributes:
        target: folder of the bundle that a head listens through; "" where there is no head.
    """

    library: str
    drafters: Sequence[JobDrafter]
    clips: Sequence[JobClip]
    units: Sequence[JobUnit]
    target: str = ""
    deadline: float = 0.0

    def text(self) -> str:
        """As `BenchJob.text`."""
        return _text(self._lines())

    def _lines(self) -> Lines:
        yield from _head("drafts", self.library, self.target, self.deadline)
        yield from _material(self.drafters, self.clips, self.units)


def _text(lines: Lines) -> str:
    made = [FORMAT]
    for key, value in lines:
        if any(c in value for c in "\r\n\0"):
            raise As2dError(
                f"{key} {value!r}: a line break in a name cannot be sent to a device",
                remedy="rename it",
                status=ExitStatus.USAGE,
            )
        made.append(key if key.startswith("[") else f"{key}: {value}")
    return "\n".join(made) + "\n"


def _head(kind: str, library: str, target: str, deadline: float) -> Lines:
    yield "kind", kind
    yield "library", library
    if target:
        yield "target", target
    yield "deadline", str(deadline)


def _material(
    drafters: Iterable[JobDrafter], clips: Iterable[JobClip], units: Iterable[JobUnit]
) -> Lines:
    for drafter in drafters:
        yield "[drafter]", ""
        yield "name", drafter.name
        yield "folder", drafter.folder
    for clip in clips:
        yield "[clip]", ""
        yield "file", clip.file
        yield "format", clip.format
    for unit in units:
        yield "[unit]", ""
        yield "clip", str(unit.clip)
        yield "language", unit.language
        yield "prompt", _list(unit.prompt)
        yield "max_tokens", str(unit.max_tokens)
        for window in unit.windows:
            yield "window", f"{window.first} {window.count}"
            if window.expected is not None:
                yield "expected", _list(window.expected)


def _contender(contender: JobContender) -> Lines:
    yield "[contender]", ""
    yield "method", contender.method
    if contender.drafter is not None:
        yield "drafter", str(contender.drafter)
    yield "budget", str(contender.budget)
    yield "windows", str(contender.windows)
    for name in ("exact", "promised", "reference", "baseline", "adaptive", "calibrated"):
        yield name, _truth(getattr(contender, name))
    if contender.costs is not None:
        for name in ("alone_steps", "drafted_steps"):
            steps = getattr(contender.costs, name)
            yield name, " ".join(f"{rows}={seconds}" for rows, seconds in steps.items())
        costs = contender.costs
        yield "encode", _list([costs.encode_base, costs.encode_per_second])
    yield from _lanes(contender.lanes)
    if contender.units is not None:
        yield "units", _list(contender.units)


def _lanes(lanes: Lanes) -> Lines:
    yield "target_cores", _list(lanes.target_cores)
    yield "draft_cores", _list(lanes.draft_cores)
    yield "pin", _truth(lanes.pin)


def _list(values: Iterable[float]) -> str:
    return " ".join(map(str, values))


def _truth(value: bool) -> str:
    return "yes" if value else "no"
