"""A bench whose runs are made on a device. Data, models and figures are as of one made here."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any, cast

from as2d_cli.audio.decode import RATE
from as2d_cli.bench.contenders import ORACLE, Contender
from as2d_cli.bench.engines import Engines
from as2d_cli.bench.prediction import predict, predictable
from as2d_cli.bench.session import BenchRequest, Session, Watch
from as2d_cli.bench.units import Unit
from as2d_cli.decoding.plan import Machine, Plan, PlanRequest
from as2d_cli.device import job as jobs
from as2d_cli.device.deliver import bundle_folder, bundle_parcels, clip_parcel
from as2d_cli.device.known import Known
from as2d_cli.device.opened import DeviceRequest, Opened
from as2d_cli.device.phone import PhoneHeat
from as2d_cli.device.place import Parcel
from as2d_cli.device.profile import where_of
from as2d_cli.device.results import (
    Cooled,
    DeviceMachine,
    Doing,
    Draft,
    End,
    Loaded,
    Moment,
    Result,
    Sampled,
    Verified,
    Widths,
    Withdrawn,
)
from as2d_cli.profile.alignment import trace_of
from as2d_cli.profile.profiles import Where
from as2d_cli.tasks.models import Backend, Model
from as2d_cli.text.whisper_prompt import prompt

__all__ = ["DeviceSession", "is_throttled"]

_COOLING = 300.0
"""Seconds that a turn waits for the device to cool down, and no longer."""

_LIMITED = 0.99
"""Of a cluster's highest frequency; kernels round."""


@dataclass(frozen=True)
class _Entry:
    """A contender of the runner.

    Attributes:
        number: of ours that it stands for.
        contender: what it is on `units`.
    """

    number: int
    contender: Contender
    plan: Plan
    units: list[int]


class DeviceSession(Session):
    """See `Session`. The runner of `opened` does the work.

    Attributes:
        machine: what the runner says of it.
    """

    def __init__(
        self,
        request: BenchRequest,
        backend: Backend,
        watch: Watch,
        opened: Opened,
        device: DeviceRequest,
        known: Known,
    ) -> None:
        """Raises As2dError: as `Session`, or the runner or its library cannot run there."""
        self._opened, self._device = opened, device
        self.machine = opened.facts()
        self._ended: End | None = None
        self._entries: Sequence[_Entry] = ()
        where = where_of(self.machine, opened)
        super().__init__(request, _elsewhere(backend, self.machine.machine, where, known), watch)

    def run(self) -> None:
        """Sends what is needed, and has everything measured; may be interrupted at any time.

        Raises:
            As2dError: the device went away, its time is over, or the target failed.
        """
        results = self.results
        heat = [self._opened.heat()]
        self._describe(heat)
        job = self._send()
        audio = sum(self._size(unit) for _, unit in self._entered())
        self._watch.begin(
            f"{self._summary()}, on {self._opened.phone.name}", audio * (1 + results.repeat)
        )
        with closing(self._opened.runner.run(job.text(), self._device.seconds)) as told:
            for result in told:
                self._take_in(result)
        heat.append(self._opened.heat())
        self._describe(heat)
        predict(results, self._models())
        results.complete = True

    # What is sent

    def _entered(self) -> Sequence[tuple[int, int]]:
        """Contenders and units."""
        results = self.results
        return [
            (contender, unit)
            for contender in range(len(results.contenders))
            for unit in range(len(results.units))
            if results.takes_part(contender, unit)
        ]

    def _send(self) -> jobs.BenchJob:
        results = self.results
        names = list(self._drafters)
        self._entries = self._enter()  # before anything is sent: cores may be wrong
        count = len(results.units)
        models = [self._target, *self._drafters.values()]
        with tempfile.TemporaryDirectory(prefix="as2d-") as folder:
            clips, units = self._material(Path(folder))
            parcels = [parcel for model in models for parcel in bundle_parcels(model)]
            self._opened.send([*parcels, *clips])
        return jobs.BenchJob(
            library=self._opened.runner.library,
            target=bundle_folder(self._target),
            clips=[jobs.JobClip(clip.name) for clip in clips],
            units=units,
            contenders=[_contender(entry, names, count) for entry in self._entries],
            drafters=[jobs.JobDrafter(n, bundle_folder(self._drafters[n])) for n in names],
            repeats=results.repeat,
            deadline=self._device.seconds,
            spans=self._request.spans,
            drafts=self._wants_drafts(),
            cool_celsius=self._device.cool or 0.0,
            cool_seconds=_COOLING if self._device.cool else 0.0,
        )

    def _wants_drafts(self) -> bool:
        """What drafts are worth is needed for a file, or for a prediction."""
        models = self._models()
        drafting = (entry.contender for entry in self._entries if entry.contender.method == "as2d")
        return self._request.alignment or any(
            c.drafter in self._drafters and predictable(c, models) for c in drafting
        )

    def _material(self, folder: Path) -> tuple[list[Parcel], list[jobs.JobUnit]]:
        """Each recording as a file with the windows of its units, one after the other."""
        clips: list[Parcel] = []
        found: list[jobs.JobUnit] = []
        for _, units in groupby(self.results.units, lambda unit: unit.recording):
            samples = []
            first = 0
            for unit in units:
                windows = [window.samples for window in self._recordings.windows(unit)]
                found.append(self._unit(unit, len(clips), first))
                first += sum(map(len, windows))
                samples += windows
            clips.append(clip_parcel(samples, folder))
        return clips, found

    def _unit(self, unit: Unit, clip: int, first: int) -> jobs.JobUnit:
        ids = prompt(self._target, unit.language)
        windows = []
        for piece in unit.pieces:
            windows.append(jobs.JobWindow(first, piece.count))
            first += piece.count
        room = self._target.context - len(ids)
        return jobs.JobUnit(clip, unit.language, ids, room, windows)

    def _enter(self) -> list[_Entry]:
        """The runner's contenders, in its order: ours, and one for each plan of one of them."""
        results = self.results
        entries: list[_Entry] = []
        with ExitStack() as stack:
            engines = Engines(
                stack, self._backend, self._target, self._drafters, self._request.asked
            )
            for number, contender in enumerate(results.contenders):
                if not contender.planned:
                    entries.append(_Entry(number, contender, engines.plan(contender), []))
        for number, unit in self._entered():
            contender = results.entrant(number, unit)
            plan = cast(Plan, results.planned[unit].plan) if contender.planned else None
            for entry in entries:
                same = entry.number == number and entry.contender == contender
                if same and plan in (None, entry.plan):
                    entry.units.append(unit)
                    break
            else:
                assert plan is not None  # all others have their entry
                entries.append(_Entry(number, contender, plan, [unit]))
        return entries

    # What comes back

    def _take_in(self, result: Result) -> None:
        results = self.results
        match result:
            case Doing(what, entry, unit):
                self._watch.doing(_doing(what, self._label(entry), self._name(unit)))
            case Loaded(entry, seconds, _):
                results.load_seconds[self._entries[entry].number] = seconds
            case Verified(entry, unit, texts, differing):
                contender = self._entries[entry].number
                if results.contenders[contender].reference:
                    results.hear(unit, texts)
                pieces = results.units[unit].pieces
                results.untimed |= {(contender, unit, pieces[i].index) for i in differing}
                self._ran_on(contender, unit, result.lanes)
                self._watch.advance(self._size(unit))
            case Sampled():
                self._sampled(result)
            case Widths(widths, _):
                results.widths = dict(widths)
            case Cooled(waited, _):
                self._watch.line(f"waited {waited:.0f} s for the device to cool down")
            case Withdrawn(entry, why):
                self._withdraw(self._entries[entry].number, why)
            case Draft(drafter, unit, window, tokens):
                self._trace_in(list(self._drafters)[drafter], unit, window, tokens)
            case End():
                self._ended = result

    def _sampled(self, result: Sampled) -> None:
        results, turn = self.results, result.sample.turn
        contender = self._entries[turn.contender].number
        self._watch.advance(self._size(turn.unit))
        if contender in results.withdrawn:
            return  # another of its plans goes on there
        sample = replace(result.sample, turn=replace(turn, contender=contender))
        results.samples.append(sample)
        self._ran_on(contender, turn.unit, sample.ran.counters.lanes)
        results.moments[sample.order] = self._moments(contender, result.before, result.after)

    def _ran_on(self, contender: int, unit: int, lanes: Mapping[str, Any]) -> None:
        self.results.lanes[contender] = lanes
        if self.results.contenders[contender].planned:
            self.results.unit_lanes[unit] = lanes

    def _trace_in(self, drafter: str, unit: int, window: int, tokens: Sequence[int]) -> None:
        results = self.results
        text = results.texts[unit][window]
        seconds = results.units[unit].pieces[window].count / RATE
        end = self._target.tokens["end"]
        traces = results.traces.setdefault(drafter, {})
        trace = trace_of(self._tracer, seconds, text, tokens, end)
        traces[unit] = [*traces.get(unit, []), trace]

    def _moments(self, contender: int, before: Moment, after: Moment) -> dict[str, Any]:
        cores = {c for lane in self.results.lanes[contender].values() for c in lane["cores"]}
        hot = any(is_throttled(self.machine, cores, moment) for moment in (before, after))
        return {"before": asdict(before), "after": asdict(after), "throttled": hot}

    def _describe(self, heat: Sequence[PhoneHeat]) -> None:
        """Fills in `results.machine`, in the words of a bench's JSON."""
        machine, facts = self.machine, self.machine.facts
        ended = self._ended
        self.results.machine = {
            "cpu": machine.cpu,
            "system": machine.system,
            "kernels": facts.kernels,
            "cores": sorted(facts.cores),
            "clusters": machine.raw["clusters"],
            "quota": facts.quota or 0.0,
            "onnxruntime": machine.onnxruntime,
            "phone": self._opened.phone.as_json(),
            "heat": [one.as_json() for one in heat],
            "peak_memory_bytes": ended.peak_memory_bytes if ended is not None else None,
        }

    def _label(self, entry: int | None) -> str:
        return "" if entry is None else self._entries[entry].contender.label

    def _name(self, unit: int | None) -> str:
        return "" if unit is None else self.results.units[unit].name


def is_throttled(machine: DeviceMachine, cores: Collection[int], moment: Moment) -> bool:
    """A cluster with one of these cores may not reach its highest frequency."""
    for cluster, limit in zip(machine.facts.clusters, moment.limits, strict=False):
        if limit is None or cluster.max_khz is None or not set(cluster.cores) & set(cores):
            continue
        if limit < _LIMITED * cluster.max_khz:
            return True
    return False


def _elsewhere(backend: Backend, machine: Machine, where: Where, known: Known) -> Backend:
    """The same models, and plans for another machine. What is opened is opened here."""

    def opened(target: Model, drafter: Model | None, plan: Any) -> Any:
        here = backend.plan(PlanRequest("target", budget=0, target=target.id))
        return backend.open(target, None, here)

    return replace(
        backend,
        plan=lambda request: known.plan(request, machine, where),
        open=opened,
        costs=lambda target, drafter: known.costs(target, drafter, where),
    )


def _contender(entry: _Entry, drafters: Sequence[str], units: int) -> jobs.JobContender:
    contender, plan = entry.contender, entry.plan
    drafter: int | str | None = contender.drafter
    if contender.drafter is not None and contender.drafter != ORACLE:
        drafter = drafters.index(contender.drafter)
    alone = not contender.planned and contender.drafter in (None, ORACLE)
    return jobs.JobContender(
        method=contender.method,
        lanes=jobs.Lanes(plan.target_cores, plan.draft_cores, plan.pin),
        drafter=drafter,
        budget=contender.budget,
        windows=contender.windows,
        exact=not contender.one_row,
        promised=contender.exact,
        reference=contender.reference,
        baseline=contender.baseline,
        adaptive=contender.planned,
        costs=plan.costs if contender.planned else None,
        calibrated=alone,
        units=None if len(entry.units) == units else entry.units,
    )


def _doing(what: str, contender: str, unit: str) -> str:
    return ": ".join(part for part in (what, contender, unit) if part)
