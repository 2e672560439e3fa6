"""What the runner tells, a JSON object a line, as typed results.

Names are those of ``as2d bench --json`` where it has the same thing. Each line has a "kind", and
"at": seconds since the runner began. Its other fields are those of the class of that kind, and of
what is in it; of a "sample" they are those of a bench's JSON. What is unknown is null.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from as2d_cli.bench.measure import Ran, Sample, Span, Texts, Turn
from as2d_cli.decoding.counters import Counters
from as2d_cli.decoding.plan import Machine
from as2d_cli.machine.facts import MachineFacts
from as2d_cli.machine.reading import machine_facts
from as2d_cli.profile.visit import TargetTimes, TimedDraft, Visit

__all__ = [
    "FORMAT",
    "Bandwidth",
    "Battery",
    "Begun",
    "Cooled",
    "DeviceMachine",
    "Doing",
    "Draft",
    "End",
    "HeardRun",
    "Loaded",
    "Moment",
    "MomentTold",
    "Result",
    "Sampled",
    "Verified",
    "Visited",
    "Widths",
    "Withdrawn",
    "read_result",
]

FORMAT = "as2d-result-1"


@dataclass(frozen=True)
class Begun:
    """Kind "begin", the first line. `job` is its kind, or "facts"."""

    format: str
    job: str


@dataclass(frozen=True)
class DeviceMachine:
    """Kind "machine".

    Attributes:
        cpu, system: in the kernel's words.
        onnxruntime: version of the library; None where none was named, or it cannot be loaded.
        problem: why it cannot, or None.
        facts: as of this machine.
        raw: the line, with what `as2d_cli._native.topology` gives here.
    """

    cpu: str
    system: str
    onnxruntime: str | None
    problem: str | None
    facts: MachineFacts
    raw: Mapping[str, Any]

    @property
    def machine(self) -> Machine:
        """As plans are made of it."""
        return Machine(
            clusters=tuple(cluster.cores for cluster in self.facts.clusters),
            quota=self.facts.quota or 0.0,
            can_pin=self.facts.can_pin,
        )


@dataclass(frozen=True)
class Battery:
    """As the kernel says, if it does."""

    percent: int | None
    celsius: float | None
    status: str | None


@dataclass(frozen=True)
class Moment:
    """What changes while a job runs.

    Attributes:
        temperatures: sensor and degrees Celsius.
        limits: kHz that each cluster may reach now, in the order of the clusters; less than its
            highest frequency where it is throttled.
        frequencies: kHz that each cluster's fastest core has now.
        governors: of each cluster.
    """

    temperatures: Sequence[tuple[str, float]]
    limits: Sequence[int | None]
    frequencies: Sequence[int | None]
    governors: Sequence[str]
    battery: Battery | None

    @property
    def hottest(self) -> tuple[str, float] | None:
        """The sensor that says most."""
        return max(self.temperatures, key=lambda entry: entry[1], default=None)


@dataclass(frozen=True)
class MomentTold:
    """Kind "moment": before the first piece of work, and after the last."""

    moment: Moment


@dataclass(frozen=True)
class Doing:
    """Kind "doing": this comes next.

    Attributes:
        what: "load", "calibrate", "verify", "time", "draft" or "measure".
        contender, unit: numbers, where it is of one.
    """

    what: str
    contender: int | None
    unit: int | None


@dataclass(frozen=True)
class Loaded:
    """Kind "loaded": what opening the engine of a contender took, told of each contender.

    Attributes:
        lost: why its drafter is of no use, or None.
    """

    contender: int
    load_seconds: float
    lost: str | None


@dataclass(frozen=True)
class Widths:
    """Kind "widths": seconds of the target alone by number of cores, and the best number."""

    widths: Mapping[int, float]
    best: int


@dataclass(frozen=True)
class Verified:
    """Kind "verified": one run that nobody timed.

    Attributes:
        texts: ids by window.
        differing: windows, by their place in the unit, whose ids are not the reference's.
        unexpected: those whose ids are not what the job said.
        lost: why the drafter failed, or None.
        lanes: cores and threads, as a bench's JSON has them.
    """

    contender: int
    unit: int
    texts: Texts
    differing: Sequence[int]
    unexpected: Sequence[int]
    lost: str | None
    lanes: Mapping[str, Any]


@dataclass(frozen=True)
class Sampled:
    """Kind "sample": a run that was timed, and how the machine was before and after."""

    sample: Sample
    differing: Sequence[int]
    before: Moment
    after: Moment


@dataclass(frozen=True)
class Cooled:
    """Kind "cooled": so long it was waited, until the hottest sensor said this."""

    waited: float
    celsius: float


@dataclass(frozen=True)
class Withdrawn:
    """Kind "withdrawn": the contender does not go on."""

    contender: int
    why: str


@dataclass(frozen=True)
class Draft:
    """Kind "draft": what a drafter says of a window all by itself.

    Attributes:
        tokens: the target's; of kind drafts the drafter's own.
    """

    drafter: int
    unit: int
    window: int
    tokens: Sequence[int]


@dataclass(frozen=True)
class HeardRun:
    """Kind "heard": a run of the target alone over so many windows at a time.

    Attributes:
        steps: forwards after the prompts.
        seconds: by phase; "phases" of the line.
    """

    windows: int
    texts: Texts
    steps: int
    seconds: Mapping[str, float]


@dataclass(frozen=True)
class Visited:
    """Kind "visit": what one visit to a layout, by its number, timed."""

    layout: int
    visit: Visit


@dataclass(frozen=True)
class Bandwidth:
    """Kind "bandwidth": bytes that one core reads and writes in a second."""

    bytes_per_second: float


@dataclass(frozen=True)
class End:
    """Kind "end", the last line.

    Attributes:
        status: "done"; "differs": done, but a text that was promised or expected is another;
            "deadline", "interrupted", "failed".
        message: one line where it failed.
        peak_memory_bytes: of the runner.
    """

    status: str
    message: str | None
    peak_memory_bytes: int | None


Result = (
    Begun
    | DeviceMachine
    | MomentTold
    | Doing
    | Loaded
    | Widths
    | Verified
    | Sampled
    | Cooled
    | Withdrawn
    | Draft
    | HeardRun
    | Visited
    | Bandwidth
    | End
)


def read_result(line: str | bytes) -> Result:
    """One line of the runner.

    Raises:
        ValueError: it is not one; loaders of devices are known to talk in between.
    """
    try:
        found = json.loads(line)
        return _READERS[found["kind"]](found)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(f"no line of the runner ({error})") from error


def _machine(line: Mapping[str, Any]) -> DeviceMachine:
    return DeviceMachine(
        cpu=line["cpu"],
        system=line["system"],
        onnxruntime=line["onnxruntime"],
        problem=line["problem"],
        facts=machine_facts(line, line["architecture"], line["kernels"]),
        raw=line,
    )


def _moment(found: Mapping[str, Any]) -> Moment:
    battery = found["battery"]
    return Moment(
        temperatures=tuple((sensor, celsius) for sensor, celsius in found["temperatures"]),
        limits=tuple(found["limits"]),
        frequencies=tuple(found["frequencies"]),
        governors=tuple(found["governors"]),
        battery=Battery(**battery) if battery is not None else None,
    )


def _sampled(line: Mapping[str, Any]) -> Sampled:
    steps = line["steps"]
    counters = Counters(
        windows=line["windows"],
        committed=line["tokens"],
        verify_steps={int(count): times for count, times in steps["verify"].items()},
        alone_steps=steps["alone"],
        proposed=line["proposed"],
        accepted=line["accepted"],
        realignments=line["realignments"],
        drafted=line["drafted"],
        stale_drafts=line["stale_drafts"],
        lead_total=line["lead_total"],
        seconds=line["phases"],
        lanes=line["lanes"],
        exact=line["exact"],
    )
    spans = tuple(
        Span(s["lane"], s["activity"], s["window"], s["begin"], s["end"]) for s in line["spans"]
    )
    ran = Ran(_texts(line["texts"]), counters, line["lost"], spans)
    turn = Turn(line["repeat"], line["unit"], line["contender"])
    return Sampled(
        Sample(turn, line["order"], ran),
        tuple(line["differing"]),
        _moment(line["before"]),
        _moment(line["after"]),
    )


def _texts(found: Sequence[Sequence[int]]) -> Texts:
    return tuple(tuple(tokens) for tokens in found)


def _steps(found: Mapping[str, Sequence[float]]) -> dict[int, Sequence[float]]:
    return {int(rows): seconds for rows, seconds in found.items()}


def _target(found: Mapping[str, Any]) -> TargetTimes:
    return TargetTimes(_steps(found["steps"]), found["audio"], found["encode"])


def _visited(line: Mapping[str, Any]) -> Visited:
    own, draft, beside = line["own"], line["draft"], line["beside"]
    visit = Visit(
        alone=_target(line["alone"]),
        own=_target(own) if own is not None else None,
        draft=TimedDraft(**draft) if draft is not None else None,
        beside=_steps(beside) if beside is not None else None,
        drafts=[TimedDraft(**found) for found in line["drafts"]],
    )
    return Visited(line["layout"], visit)


_READERS: Mapping[str, Callable[[Mapping[str, Any]], Result]] = {
    "begin": lambda line: Begun(line["format"], line["job"]),
    "machine": _machine,
    "moment": lambda line: MomentTold(_moment(line["moment"])),
    "doing": lambda line: Doing(line["what"], line["contender"], line["unit"]),
    "loaded": lambda line: Loaded(line["contender"], line["load_seconds"], line["lost"]),
    "widths": lambda line: Widths(
        {int(width): seconds for width, seconds in line["widths"].items()}, line["best"]
    ),
    "verified": lambda line: Verified(
        line["contender"],
        line["unit"],
        _texts(line["texts"]),
        tuple(line["differing"]),
        tuple(line["unexpected"]),
        line["lost"],
        line["lanes"],
    ),
    "sample": _sampled,
    "cooled": lambda line: Cooled(line["waited"], line["celsius"]),
    "withdrawn": lambda line: Withdrawn(line["contender"], line["why"]),
    "draft": lambda line: Draft(
        line["drafter"], line["unit"], line["window"], tuple(line["tokens"])
    ),
    "heard": lambda line: HeardRun(
        line["windows"], _texts(line["texts"]), line["steps"], line["phases"]
    ),
    "visit": _visited,
    "bandwidth": lambda line: Bandwidth(line["bytes_per_second"]),
    "end": lambda line: End(line["status"], line["message"], line["peak_memory_bytes"]),
}
