"""The process on the cores that it was given: nothing runs beyond them, idle lanes sleep, limits of
containers are kept. Over small random models, which hear nothing but decode like any other.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from as2d_cli.audio.decode import AudioFile
from as2d_cli.catalog import ensure_bundle
from as2d_cli.decoding.plan import Machine, PlanRequest, make_plan
from as2d_cli.machine import read_machine
from as2d_cli.methods import METHODS
from tests.catalog.material import put, whisper_files
from tests.fakes import tone, write_wav

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/task").exists() or not read_machine().can_pin,
    reason="the kernel does not show threads, or cannot bind them",
)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Options for two models; what these say has no end."""
    folder = tmp_path_factory.mktemp("models")
    target, drafter = (
        str(put(folder / name, whisper_files(seed=seed)))
        for seed, name in enumerate(("target", "drafter"))
    )
    # A tone is no speech: with a voice-activity model nothing would be decoded.
    options = ["--no-vad", "--max-tokens", "40", "--language", "en"]
    return [*options, "--target", target, "--drafter", drafter]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    cache = str(tmp_path_factory.mktemp("cache"))
    return os.environ | {"PYTHONPATH": path, "AS2D_CACHE_DIR": cache}


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_wav(tmp_path_factory.mktemp("clips") / "clip.wav", tone(70))


def program(before: str, *args: str) -> list[str]:
    """The program in a process that runs `before` first."""
    start = f"import os, sys; {before}; os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    return [sys.executable, "-c", start, "-m", "as2d_cli", *args]


def complaints(errors: bytes) -> list[str]:
    """What the program said, except that the text goes round in circles: here it does."""
    lines = errors.decode().splitlines()
    return [line for line in lines if not line.endswith(": it may be invented")]


def on_cores(cores: set[int]) -> str:
    """As taskset(1) does it."""
    return f"os.sched_setaffinity(0, {cores})"


def cores_of(text: str) -> set[int]:
    """Of the kernel's "0-3,5"."""
    cores: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        cores |= set(range(int(first), int(last or first) + 1))
    return cores


def threads(pid: int) -> dict[str, tuple[str, set[int], int]]:
    """By id: name, mask, and processor time in clock ticks."""
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # it has ended
            status = (task / "status").read_text().splitlines()
            fields = dict(line.split(":\t", 1) for line in status if ":\t" in line)
            figures = (task / "stat").read_text().rpartition(") ")[2].split()
            ticks = int(figures[11]) + int(figures[12])
            mask = cores_of(fields["Cpus_allowed_list"])
            found[task.name] = (fields["Name"], mask, ticks)
    return found


def lane_ticks(pid: int) -> dict[str, int]:
    ticks = {"as2d-target": 0, "as2d-draft": 0}
    for name, _, spent in threads(pid).values():
        for lane in ticks:
            ticks[lane] += spent if name.startswith(lane) else 0
    return ticks


def wait_for_rest(pid: int) -> dict[str, int]:
    """Ticks of the lanes once both have done something and then nothing for a while."""
    deadline = time.monotonic() + 120
    quiet, before = 0, lane_ticks(pid)
    while quiet < 10:
        assert time.monotonic() < deadline, "the lanes do not come to rest"
        time.sleep(0.1)
        now = lane_ticks(pid)
        quiet = quiet + 1 if now == before and min(now.values()) > 0 else 0
        before = now
    return before


def test_one_core_and_a_pipe_that_gives_nothing_more(
    models: list[str], environment: dict[str, str], clip: Path, tmp_path: Path
) -> None:
    core = max(os.sched_getaffinity(0))
    args = ("transcribe", "-", *models, "--method", "as2d")
    with (
        (tmp_path / "errors").open("w+b") as errors,
        subprocess.Popen(
            program(on_cores({core}), *args),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment,
        ) as process,
    ):
        assert process.stdin is not None
        sound = clip.read_bytes()
        given = 65 * 32_000  # two windows and a part
        process.stdin.write(sound[:given])
        process.stdin.flush()
        before = wait_for_rest(process.pid)
        seconds = 3
        time.sleep(seconds)
        after = lane_ticks(process.pid)
        placed = threads(process.pid)
        process.communicate(sound[given:], timeout=60)
        assert process.returncode == 0
        errors.seek(0)
        said = complaints(errors.read())
    assert said == [], "nothing of ONNX Runtime either"
    assert {"as2d-target-0", "as2d-draft-0"} <= {name for name, _, _ in placed.values()}
    for name, mask, _ in placed.values():
        assert mask == {core}, name
    most = 0.02 * seconds * os.sysconf("SC_CLK_TCK")
    for lane, ticks in after.items():
        assert ticks - before[lane] < most, lane


@pytest.mark.parametrize("count", [1, None])
def test_every_method_runs_cleanly_on_the_cores_given(
    models: list[str], environment: dict[str, str], clip: Path, count: int | None
) -> None:
    cores = set(sorted(os.sched_getaffinity(0))[:count])
    for method in ("auto", "target", "coupled", "as2d"):
        args = ("transcribe", str(clip), *models, "--method", method, "--format", "json")
        ran = subprocess.run(
            program(on_cores(cores), *args), capture_output=True, env=environment, check=False
        )
        assert (ran.returncode, complaints(ran.stderr)) == (0, []), method
        lanes = json.loads(ran.stdout)["counters"]["lanes"]
        used = {core for lane in lanes.values() for core in lane["cores"]}
        assert used and used <= cores, method
        reported = [thread for lane in lanes.values() for thread in lane["threads"]]
        assert {thread["refused"] for thread in reported} == {""}, method
        assert all(cores_of(thread["actual"]) <= cores for thread in reported), method


@pytest.mark.model
def test_voice_activity_keeps_to_the_cores_given(
    models: list[str], environment: dict[str, str], tmp_path: Path
) -> None:
    with AudioFile(ROOT / "tests" / "data" / "jfk.flac") as audio:
        speech = np.concatenate(list(audio))
    clip = write_wav(tmp_path / "speech.wav", np.tile(speech, 6))
    core = max(os.sched_getaffinity(0))
    options = [option for option in models if option != "--no-vad"]
    args = ("transcribe", str(clip), *options, "--format", "json")
    voice = ensure_bundle("silero-vad").path
    shutil.copytree(voice, Path(environment["AS2D_CACHE_DIR"]) / "bundles" / voice.name)
    seen: dict[str, set[int]] = {}
    with (
        (tmp_path / "result").open("w+b") as result,
        subprocess.Popen(
            program(on_cores({core}), *args), stdout=result, env=environment
        ) as process,
    ):
        while process.poll() is None:
            found = threads(process.pid).values()
            if any(name.startswith("as2d-target") for name, _, _ in found):
                for name, mask, _ in found:
                    seen.setdefault(name, set()).update(mask)
            time.sleep(0.02)
        result.seek(0)
        said = json.loads(result.read())
    assert process.returncode == 0
    assert said["segments"], "something was taken for speech"
    assert seen and all(mask == {core} for mask in seen.values()), seen


@pytest.mark.parametrize("quota", [0.5, 1.0, 1.9])
def test_a_container_with_less_than_two_cores_gets_one_thread_a_lane(quota: float) -> None:
    machine = Machine(((0, 1, 2, 3),), quota=quota)
    for method in ("auto", *METHODS):
        plan = make_plan(PlanRequest(method), machine)
        assert len(plan.target_cores) == 1, method
        assert set(plan.draft_cores) <= set(plan.target_cores), method
    assert make_plan(PlanRequest("auto"), machine).draft_cores == ()


@contextlib.contextmanager
def half_a_core() -> Iterator[Path]:
    """A cgroup below this process's own with half a core's time; skips where it cannot be had."""
    name = f"as2d-test-{os.getpid()}"
    mount = Path("/sys/fs/cgroup")
    group = None
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, own = line.split(":", 2)
        if not controllers:
            place, files = mount / own.lstrip("/"), {"cpu.max": "50000 100000"}
        elif "cpu" in controllers.split(","):
            named = mount / controllers
            place = (named if named.exists() else mount / "cpu") / own.lstrip("/")
            files = {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "50000"}
        else:
            continue
        try:
            (place / name).mkdir()
        except OSError:
            continue
        try:
            for file, text in files.items():
                (place / name / file).write_text(text)
        except OSError:  # the controller is not passed on to groups here
            (place / name).rmdir()
            continue
        group = place / name
        break
    if group is None:
        pytest.skip("no cgroup can be made here")
    try:
        yield group
    finally:
        group.rmdir()


def test_half_a_core_in_a_cgroup(
    models: list[str], environment: dict[str, str], clip: Path
) -> None:
    with half_a_core() as group:
        enter = f"open({str(group / 'cgroup.procs')!r}, 'w').write(str(os.getpid()))"
        args = ("transcribe", str(clip), *models, "--method", "batched", "--format", "json")
        ran = subprocess.run(
            program(enter, *args), capture_output=True, env=environment, check=False
        )
    assert (ran.returncode, complaints(ran.stderr)) == (0, [])
    lanes = json.loads(ran.stdout)["counters"]["lanes"]
    assert len(lanes["target"]["cores"]) == 1
    assert lanes["draft"]["cores"] == []
