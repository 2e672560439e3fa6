"""What the work of both lanes costs on a device."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from as2d_cli.audio.decode import RATE
from as2d_cli.catalog import Bundle
from as2d_cli.decoding.plan import Machine
from as2d_cli.device.deliver import bundle_folder, bundle_parcels, clip_parcel
from as2d_cli.device.job import JobClip, JobDrafter, JobLayout, JobUnit, JobWindow, ProfileJob
from as2d_cli.device.opened import DeviceRequest, Opened
from as2d_cli.device.place import Parcel
from as2d_cli.device.results import (
    Bandwidth,
    DeviceMachine,
    HeardRun,
    Moment,
    MomentTold,
    Visited,
)
from as2d_cli.machine.facts import Conditions
from as2d_cli.profile.costs import CostModel
from as2d_cli.profile.fit import BATCH, Heard
from as2d_cli.profile.layouts import Layout
from as2d_cli.profile.measure import Effort, Watch, layout_name
from as2d_cli.profile.profiles import Where
from as2d_cli.profile.reckoning import Measured, Reckoning
from as2d_cli.profile.session import spoken
from as2d_cli.profile.visit import AUDIO
from as2d_cli.tasks.known_clip import known_clip
from as2d_cli.text.whisper_prompt import prompt

__all__ = ["DeviceSite", "where_of"]


class DeviceSite:
    """See `as2d_cli.profile.session.Site`.

    Attributes:
        conditions: how the device was at the end of what was measured; unknown before.
    """

    def __init__(self, opened: Opened, request: DeviceRequest) -> None:
        """Raises As2dError: the runner or its library cannot run there."""
        self._opened, self._request = opened, request
        told = opened.facts()
        self.machine: Machine = told.machine
        self.where = where_of(told, opened)
        self.conditions = Conditions()

    def measure(
        self,
        target: Bundle,
        drafter: Bundle | None,
        layouts: Sequence[Layout],
        effort: Effort,
        watch: Watch,
    ) -> Measured:
        """Sends what is needed, and has it measured.

        Raises:
            As2dError: the device went away, its time is over, or a model cannot be loaded.
        """
        layouts = layouts[: effort.most_layouts]
        clip = known_clip()
        with tempfile.TemporaryDirectory(prefix="as2d-") as folder:
            parcel = clip_parcel([clip], Path(folder))
            models = [target] if drafter is None else [target, drafter]
            self._opened.send([*(p for m in models for p in bundle_parcels(m)), parcel])
        job = self._job(target, drafter, layouts, effort, parcel)
        pair = target.id + (f" with {drafter.id}" if drafter is not None else "")
        ways = f"up to {len(layouts)} ways to share the cores"
        watch.begin(f"measuring {pair} on {self._opened.phone.name}, {ways}", effort.seconds)
        watch.doing("measuring")
        found = Reckoning(len(clip) / RATE)
        bandwidth = 0.0
        told = time.monotonic()
        with closing(self._opened.runner.run(job.text(), self._request.seconds)) as results:
            for result in results:
                match result:
                    case HeardRun(windows, texts, steps, seconds):
                        runs = found.runs if windows == 1 else found.batches
                        runs.append(Heard(texts, steps, seconds))
                    case Visited(layout, visit):
                        found.lane(layouts[layout]).add(visit)
                        watch.doing(layout_name(layouts[layout]))
                        now = time.monotonic()
                        watch.advance(now - told)
                        told = now
                    case Bandwidth(bytes_per_second):
                        bandwidth = bytes_per_second
                    case MomentTold(moment):
                        self.conditions = _conditions(moment)
        return found.measured(
            CostModel(
                target=target.id,
                drafter=drafter.id if drafter is not None else None,
                shares_encoder=drafter is not None and bool(drafter.target),
                lanes=(),
                prompt_rows=len(job.unit.prompt),
                bandwidth=bandwidth,
            )
        )

    def _job(
        self,
        target: Bundle,
        drafter: Bundle | None,
        layouts: Sequence[Layout],
        effort: Effort,
        clip: Parcel,
    ) -> ProfileJob:
        language = spoken(target)
        ids = prompt(target, language)
        window = JobWindow(0, clip.size // 4)
        return ProfileJob(
            library=self._opened.runner.library,
            target=bundle_folder(target),
            clip=JobClip(clip.name),
            unit=JobUnit(0, language, ids, target.context - len(ids), [window]),
            layouts=[JobLayout(own, draft, self.machine.can_pin) for own, draft in layouts],
            seconds=effort.seconds,
            rows=effort.rows,
            batches=effort.batches,
            batch=BATCH,
            audio=AUDIO,
            drafter=None if drafter is None else JobDrafter(drafter.id, bundle_folder(drafter)),
            deadline=self._request.seconds,
        )


def where_of(told: DeviceMachine, opened: Opened) -> Where:
    """The device as profiles know it: of equal phones, one is as good as the other."""
    phone = opened.phone
    name = f"{phone.manufacturer} {phone.model}".strip() or told.cpu
    return Where(name, told.facts, told.onnxruntime or "")


def _conditions(moment: Moment) -> Conditions:
    return Conditions(tuple(moment.governors), tuple(moment.temperatures))
