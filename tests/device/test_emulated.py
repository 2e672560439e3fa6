"""The runner as it is built for devices, on an emulated phone."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from as2d_cli import _native
from as2d_cli.catalog import ensure_bundle
from as2d_cli.decoding.ort_library import ort_library
from as2d_cli.device.job import DraftsJob, JobClip, JobDrafter, JobUnit, JobWindow
from as2d_cli.device.manifest import Built
from as2d_cli.device.results import Battery, DeviceMachine, Draft, End, MomentTold, Verified
from as2d_cli.tasks.known_clip import known_clip
from tests.device.emulated import EmulatedPhone
from tests.device.programs import bench_job, contender, put_clip, run, tiny


@pytest.fixture(scope="module")
def phone(tmp_path_factory: pytest.TempPathFactory) -> EmulatedPhone:
    phone = EmulatedPhone(tmp_path_factory.mktemp("phone"))
    phone.lay()
    return phone


@pytest.fixture
def place(built: Built, tmp_path: Path) -> Path:
    """The folder of as2d on the phone."""
    for file in built.files:
        path = tmp_path / file.name
        path.parent.mkdir(exist_ok=True)
        path.symlink_to(built.folder / file.name)
    return tmp_path


def test_the_loader_and_all_libraries_travel_along(built: Built) -> None:
    names = {Path(file.name).name for file in built.files}
    assert {"as2d-runner", "ld-linux-aarch64.so.1", "libc.so.6", "libstdc++.so.6"} <= names
    assert built.library in {file.name for file in built.files}
    assert {file.licence for file in built.files if "libgcc" in file.name} == {
        "GPL-3.0-or-later WITH GCC-exception-3.1"
    }
    assert {p.name for p in (built.folder / "runner").iterdir()} == names


def test_sees_the_phone_and_drafts_change_nothing(
    built: Built, phone: EmulatedPhone, place: Path
) -> None:
    tiny(place / "bundles")
    put_clip(place)
    job = bench_job(built.library, "bundles", [contender("as2d", 0)], drafter="ctc", repeats=0)
    # An emulated encoder takes seconds.
    ended = run(phone.command(built.start), place, replace(job, units=job.units[1:]))
    assert ended.status == 0, ended.errors
    (machine,) = ended.of(DeviceMachine)
    assert machine.facts.architecture == "aarch64" and machine.facts.kernels == "neon-dotprod"
    assert machine.facts.clusters[0].model in ("Cortex-A76", "Cortex-A55")
    assert machine.facts.source == "capacity" or len(machine.facts.cores) == 1
    moment = ended.of(MomentTold)[0].moment
    assert moment.hottest == ("cpu-1-0-usr", 41.5)
    assert moment.battery == Battery(83, 30.5, "Discharging")
    assert (
        moment.frequencies[0] == 900_000 and moment.limits[0] == machine.facts.clusters[0].max_khz
    )
    alone, drafted = ended.of(Verified)
    assert not drafted.differing and sum(map(len, alone.texts)) > 3
    first, last = min(os.sched_getaffinity(0)), max(os.sched_getaffinity(0))
    for lane, core in (("target", first), ("draft", last)):
        assert {t["actual"] for t in drafted.lanes[lane]["threads"]} == {str(core)}


@pytest.mark.model
def test_moonshine_says_the_same_tokens_as_here(
    built: Built, phone: EmulatedPhone, place: Path
) -> None:
    bundle = ensure_bundle("moonshine-tiny-en")
    samples = np.ascontiguousarray(known_clip()[: 3 * 16_000 // 2])
    (place / "moonshine").symlink_to(bundle.path)
    (place / "clip.f32").write_bytes(samples.tobytes())
    job = DraftsJob(
        built.library,
        [JobDrafter(bundle.id, "moonshine")],
        [JobClip("clip.f32")],
        [JobUnit(0, "en", [], 0, [JobWindow(0, len(samples))])],
    )
    ended = run(phone.command(built.start), place, job)
    assert ended.status == 0, ended.errors
    assert isinstance(ended.results[-1], End)
    (draft,) = ended.of(Draft)
    here, _ = _native.draft_alone(ort_library(), bundle.path, samples, "en")
    assert list(draft.tokens) == here and len(here) > 3
