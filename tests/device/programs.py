"""The runner as a program, and small jobs for it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest

from as2d_cli.device.job import (
    BenchJob,
    DraftsJob,
    JobClip,
    JobContender,
    JobDrafter,
    JobUnit,
    JobWindow,
    Lanes,
    ProfileJob,
)
from as2d_cli.device.results import Result, read_result

__all__ = ["CLIP", "Ended", "bench_job", "contender", "host_runner", "put_clip", "run", "tiny"]

ROOT = Path(__file__).parents[2]
CLIP = "clip.f32"
START = [259, 265]
"""Of the tiny models: start, and no timestamps."""

T = TypeVar("T")
Job = BenchJob | DraftsJob | ProfileJob


def host_runner() -> list[str]:
    """Starts the runner that was built for this machine: AS2D_RUNNER, or the newest build."""
    if named := os.environ.get("AS2D_RUNNER"):
        return [named]
    built = [
        path
        for preset in ("dev", "release", "debug")
        for path in (ROOT / "native" / "build" / preset).glob("runner/as2d-runner")
    ]
    if not built:
        pytest.skip("as2d-runner is not built; cmake --build --preset release in native")
    return [str(max(built, key=lambda path: path.stat().st_mtime))]


def tiny(folder: Path) -> Path:
    """Small random bundles: the targets ``one`` and ``two``."""
    script = ROOT / "native" / "tests" / "data" / "make_tiny_bundles.py"
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, str(script), str(folder)], env=variables, check=True)
    return folder


def put_clip(folder: Path, seconds: float = 2.0) -> None:
    """A sound that is not the same twice."""
    time = np.arange(int(seconds * 16_000)) / 16_000
    sound = 0.1 * np.sin(2 * np.pi * (200 + 150 * time) * time)
    (folder / CLIP).write_bytes(sound.astype("<f4").tobytes())


def contender(method: str, drafter: int | str | None = None, **more: object) -> JobContender:
    """Target lane on core 0, draft lane on core 1 if there is one."""
    last = max(os.sched_getaffinity(0))
    lanes = Lanes([min(os.sched_getaffinity(0))], [last] if drafter is not None else [])
    return JobContender(method, lanes, drafter, budget=4, **more)  # type: ignore[arg-type]


def bench_job(
    library: str,
    bundles: str,
    contenders: Sequence[JobContender] = (),
    *,
    expected: Sequence[int] | None = None,
    drafter: str = "two",
    repeats: int = 1,
    deadline: float = 0.0,
    drafts: bool = False,
    spans: bool = False,
) -> BenchJob:
    """Two units of the clip, the first of two windows; the target alone comes first."""
    alone = contender("target", reference=True, baseline=True)
    windows = [JobWindow(0, 16_000), JobWindow(16_000, 16_000, expected)]
    return BenchJob(
        library=library,
        target=f"{bundles}/one",
        clips=[JobClip(CLIP)],
        units=[JobUnit(0, "en", START, 12, windows), JobUnit(0, "en", START, 12, windows[:1])],
        contenders=[alone, *contenders],
        drafters=[JobDrafter(drafter, f"{bundles}/{drafter}")],
        repeats=repeats,
        deadline=deadline,
        drafts=drafts,
        spans=spans,
    )


@dataclass(frozen=True)
class Ended:
    """What became of a runner."""

    status: int
    results: Sequence[Result]
    errors: str

    def of(self, kind: type[T]) -> list[T]:
        """Results of a kind."""
        return [result for result in self.results if isinstance(result, kind)]


def run(
    start: Sequence[str],
    folder: Path,
    job: Job,
    meanwhile: Callable[[subprocess.Popen[bytes]], None] = lambda process: None,
    *,
    ignored: Sequence[int] = (),
) -> Ended:
    """Does a job in `folder`; `meanwhile` may look at the program while it runs.

    Args:
        ignored: signals.
    """
    (folder / "job.txt").write_text(job.text(), encoding="utf-8")
    command = [*start, "run", "job.txt"]
    if ignored:
        names = " ".join(str(number) for number in ignored)
        command = ["sh", "-c", f"trap '' {names}; exec \"$@\"", "sh", *command]
    with subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            meanwhile(process)
            out, errors = process.communicate(timeout=300)
        finally:
            process.kill()
    with pytest.raises(ProcessLookupError):  # nothing of it is left
        os.killpg(process.pid, 0)
    results = [read_result(line) for line in (out or b"").splitlines()]
    return Ended(process.returncode, results, errors.decode())
