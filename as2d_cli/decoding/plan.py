"""How the two lanes share the cores, fixed for a run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from as2d_cli.decoding.costs import RunCosts
from as2d_cli.errors import As2dError, ExitStatus
from as2d_cli.limits import MAX_THREADS
from as2d_cli.machine import MachineFacts, read_machine
from as2d_cli.methods import IN_TURN, SPLIT, TOGETHER, default_budget

__all__ = [
    "WINDOW_SECONDS",
    "Machine",
    "Plan",
    "PlanRequest",
    "machine_of",
    "make_plan",
    "named_cores",
    "rounded",
    "this_machine",
    "windows_of",
]

WINDOW_SECONDS = 30
"""Most in a window, as `as2d_cli.audio.windows.WINDOW`."""

_MANY = 4
"""From so many cores on the target leaves one to a drafter."""

_TOGETHER = 3
"""Windows in a batch, with drafts, where cores are few: measured on two."""

_ENOUGH = 12.0
"""Seconds of a recording from which on a head is worth its steps where cores are few: measured on
two, it gained nothing on less than 8, some 5 % up to 16, and 11 to 14 % on more."""

_EXACT_LENGTHS = 120
"""Seconds up to which plans differ by the second."""

MOST_TARGET_CORES = 8
"""More cores than this no longer speed up a step of a small model: each gets too little work."""


@dataclass(frozen=True)
class Plan:
    """Cores, method and budget of a run.

    Attributes:
        method: one of `as2d_cli.methods.METHODS`.
        target_cores: core of each thread of the target lane, the lane's own thread first.
        draft_cores: the same of the draft lane; empty when there is none.
        budget: most candidates per verify step; with ``batched``, windows in a batch.
        exact: commit exactly what the target alone would.
        pin: bind threads to their cores; False where the platform cannot.
        windows: of one recording that the target decodes in one batch, where the lanes are not
            coupled.
        costs: what the target's steps cost with these cores, or None where it was not measured.
        least_seconds: a shorter recording is the target's alone: it would gain nothing by drafts.
        why: what the plan was made by, for people.
    """

    method: str
    target_cores: tuple[int, ...]
    draft_cores: tuple[int, ...]
    budget: int
    exact: bool = True
    pin: bool = True
    windows: int = 1
    costs: RunCosts | None = None
    least_seconds: float = 0.0
    why: str = ""

    def drafts(self, seconds: float | None) -> bool:
        """Whether a drafter is of use for a recording of so many seconds, or of unknown length."""
        return seconds is None or seconds >= self.least_seconds


@dataclass(frozen=True)
class PlanRequest:
    """What is asked of a plan; None is for what suits.

    Attributes:
        method: ``auto`` or one of `as2d_cli.methods.METHODS`.
        budget: most candidates per verify step, windows of ``batched``.
        target_cores, draft_cores: lists such as "0-3,5".
        windows: of a recording in a batch, for methods that can.
        shares_encoder: the drafter has no encoder of its own.
        threads: most threads of both lanes together.
        pin: bind threads to cores, where the platform can.
        target, drafter: ids, paths or None, for what was measured of them.
        costs: what is known of the lanes that are asked for.
        seconds: of each recording, where that is known.
    """

    method: str = "auto"
    budget: int | None = None
    target_cores: str | None = None
    draft_cores: str | None = None
    windows: int | None = None
    shares_encoder: bool = False
    threads: int | None = None
    pin: bool = True
    target: str = ""
    drafter: str | None = None
    costs: RunCosts | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Machine:
    """The cores that this process may use.

    Attributes:
        clusters: core ids of each group of equal cores, the fastest group first; one of each
            physical core.
        siblings: further threads of these cores. No rule uses them: kernels that keep a core's
            multipliers, or its way to the memory, busy gain little by a second thread that does the
            same, and an operator ends when its last thread does. (oneMKL and ONNX Runtime start one
            for each physical core, too.) A drafter does something else, and may find room there:
            that is for a measurement to say.
        quota: cores' worth of time that the container grants, 0 without a limit.
        can_pin: the platform can bind threads to cores.
    """

    clusters: tuple[tuple[int, ...], ...]
    quota: float = 0.0
    can_pin: bool = True
    siblings: tuple[int, ...] = ()

    @property
    def cores(self) -> tuple[int, ...]:
        """All of them but siblings, the fastest first."""
        return tuple(core for cluster in self.clusters for core in cluster)

    @property
    def granted(self) -> int:
        """Cores that can be kept busy: threads beyond the quota only wait for each other."""
        return self._within_quota(len(self.cores))

    @property
    def most_threads(self) -> int:
        """The same with siblings."""
        return self._within_quota(len(self.cores) + len(self.siblings))

    def _within_quota(self, count: int) -> int:
        return max(1, min(count, math.floor(self.quota))) if self.quota > 0 else count

    def with_threads(self, most: int) -> Machine:
        """The same with no more threads than this: a quota by another name."""
        return replace(self, quota=min(self.quota, most) if self.quota > 0 else float(most))


def windows_of(seconds: float) -> int:
    """The fewest windows that a recording is cut into; pauses make more."""
    return max(1, math.ceil(seconds / WINDOW_SECONDS))


def rounded(seconds: float) -> float:
    """A length that is as good for a plan, of which there are few."""
    return float(
        round(seconds) if seconds < _EXACT_LENGTHS else windows_of(seconds) * WINDOW_SECONDS
    )


def this_machine() -> Machine:
    """The machine this runs on."""
    return machine_of(read_machine())


def machine_of(facts: MachineFacts) -> Machine:
    """What a plan needs to know of a machine."""
    single = set(facts.one_per_core)
    clusters = (tuple(core for core in c.cores if core in single) for c in facts.clusters)
    return Machine(
        clusters=tuple(cluster for cluster in clusters if cluster),
        quota=facts.quota or 0.0,
        can_pin=facts.can_pin,
        siblings=tuple(core for core in facts.cores if core not in single),
    )


def make_plan(request: PlanRequest, machine: Machine | None = None) -> Plan:
    """Shares the cores between the lanes by rule, where nothing was measured.

    A drafter with an encoder of its own is worth a core only where the target leaves one, so the
    method ``auto`` is ``as2d`` from four cores on and ``batched`` below, with its own number of
    windows; whoever names cores for the draft lane wants ``as2d``. One that shares the target's
    encoder is worth its steps everywhere; below four cores where a recording is long enough, with
    several windows of it at a time.
    Of equal cores the target gets the first, the drafter the rest: a quarter of them, at most two.
    Where cores differ the target gets the fastest, and the drafter the last of those when there are
    three or more, otherwise the slowest cluster. No more cores are used than a container's quota
    grants, or `threads` are asked for.

    Args:
        machine: another machine than this one.

    Raises:
        As2dError: status USAGE; a list is wrong or names a core that may not be used.
    """
    machine = machine or this_machine()
    if not machine.cores:
        raise As2dError("no core may be used by this process", remedy="see taskset(1)")
    named_target = named_cores(request.target_cores, "--target-cores", machine)
    named_draft = named_cores(request.draft_cores, "--draft-cores", machine)
    if request.threads is not None:
        _check_threads(request.threads, named_target, named_draft)
        machine = machine.with_threads(request.threads)
    count = machine.granted
    method, budget, windows = request.method, request.budget, request.windows
    least = 0.0
    if method == "auto":
        suits = named_draft or count >= _MANY or request.shares_encoder
        method = "as2d" if suits else "batched"
        if suits and not named_draft and count < _MANY:
            least = _ENOUGH
            if request.seconds is not None and request.seconds < least:
                method = "target"
        budget = budget if method == "as2d" else None
        if windows is None and request.shares_encoder and count < _MANY:
            windows = _TOGETHER
    plan = Plan(
        method=method,
        target_cores=(),
        draft_cores=(),
        budget=default_budget(method) if budget is None else budget,
        pin=machine.can_pin and request.pin,
        windows=windows if windows is not None and method in TOGETHER else 1,
        costs=request.costs,
        least_seconds=least if method == "as2d" else 0.0,
        why="by rule, not by measurement",
    )
    if method not in SPLIT:
        whole = _without_little(machine)[: min(count, MOST_TARGET_CORES)]
        draft = (named_draft or whole) if method in IN_TURN else ()
        return replace(plan, target_cores=named_target or whole, draft_cores=draft)
    target, draft = _split(machine, count)
    if named_target and not named_draft:
        room = min(len(draft), count - len(named_target))
        draft = _leave_out(machine.cores, named_target)[-room:] if room > 0 else ()
        draft = draft or named_target[-1:]
    if named_draft and not named_target:
        left = _leave_out(_without_little(machine), named_draft) or _leave_out(
            machine.cores, named_draft
        )
        room = max(0, min(count - len(named_draft), MOST_TARGET_CORES))
        target = left[:room] or named_draft[:1]
    return replace(plan, target_cores=named_target or target, draft_cores=named_draft or draft)


def named_cores(text: str | None, option: str, machine: Machine) -> tuple[int, ...]:
    """The cores of a list such as "0-3,5"; none where there is no list.

    Raises:
        As2dError: status USAGE, naming `option`; it is no list, or names a core that is not there.
    """
    if text is None:
        return ()
    cores: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not (first.isascii() and first.isdigit()) or (
            dash and not (last.isascii() and last.isdigit())
        ):
            raise _wrong(option, text, f"'{part}' is not a core or a range of cores", machine)
        low, high = int(first), int(last) if dash else int(first)
        if high < low:
            raise _wrong(option, text, f"the range {part} runs backwards", machine)
        if high >= MAX_THREADS:
            raise _wrong(option, text, f"there is no core {high}", machine)
        cores.extend(range(low, high + 1))
    for core in cores:
        if core not in machine.cores + machine.siblings:
            raise _wrong(option, text, f"core {core} may not be used here", machine)
        if cores.count(core) > 1:
            raise _wrong(option, text, f"core {core} is named twice", machine)
    return tuple(cores)


def _without_little(machine: Machine) -> tuple[int, ...]:
    """The cores of all clusters but the slowest, or of the only one.

    A slow core makes the others wait for its part of every step.
    """
    clusters = machine.clusters[:-1] or machine.clusters
    return tuple(core for cluster in clusters for core in cluster)


def _split(machine: Machine, count: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Cores of the target and of the drafter."""
    fast = _without_little(machine)
    if len(machine.clusters) > 1 and len(fast) < 3 and count > 1:
        target = fast[: count - 1]
        return target, machine.clusters[-1][: min(2, count - len(target))]
    fast = fast[:count]
    if len(fast) < 2:
        return fast, fast  # one core: both lanes take turns on it
    drafters = min(2, max(1, len(fast) // 4)) if len(machine.clusters) == 1 else 1
    return fast[:-drafters][:MOST_TARGET_CORES], fast[-drafters:]


def _leave_out(cores: Sequence[int], taken: Sequence[int]) -> tuple[int, ...]:
    return tuple(core for core in cores if core not in taken)


def _check_threads(most: int, target: Sequence[int], draft: Sequence[int]) -> None:
    named = len(target) + len(draft)
    if named > most:
        raise As2dError(
            f"--threads {most} is less than the {named} cores named",
            remedy="name fewer cores, or leave --threads out",
            status=ExitStatus.USAGE,
        )


def _wrong(option: str, text: str, problem: str, machine: Machine) -> As2dError:
    usable = ",".join(str(core) for core in sorted(machine.cores + machine.siblings))
    return As2dError(
        f"{option} {text}: {problem}", remedy=f"choose from {usable}", status=ExitStatus.USAGE
    )
