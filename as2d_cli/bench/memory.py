"""Peak memory of a contender: a process of its own that runs it once.

``python -m as2d_cli.bench.memory`` reads a job from standard input and prints bytes.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

from as2d_cli.bench.contenders import ORACLE, Contender
from as2d_cli.bench.units import Asked, Unit, heard
from as2d_cli.errors import As2dError, one_line
from as2d_cli.tasks.models import Model

__all__ = ["peak_memory"]


def peak_memory(
    contender: Contender,
    target: Model,
    drafter: Model | None,
    plan: Any,
    unit: Unit,
    texts: Sequence[Sequence[int]],
) -> int:
    """Most bytes that a process held which loads the models and runs one unit, Python included.

    Args:
        plan: a `as2d_cli.decoding.Plan`.
        texts: what the oracle says, by window.

    Raises:
        As2dError: the process failed.
    """
    job = {
        "contender": asdict(contender),
        "target": str(target.path),
        "drafter": str(drafter.path) if drafter is not None else None,
        "plan": asdict(replace(plan, costs=None)),
        "file": str(unit.clip.path),
        "windows": [piece.index for piece in unit.pieces],
        "language": unit.language,
        "asked": _asked(unit.asked),
        "texts": [list(tokens) for tokens in texts],
    }
    package = str(Path(__file__).parents[2])
    path = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
    ran = subprocess.run(
        [sys.executable, "-m", "as2d_cli.bench.memory"],
        input=json.dumps(job).encode(),
        capture_output=True,
        env=os.environ | {"PYTHONPATH": path},
        check=False,
    )
    if ran.returncode != 0:
        last = ran.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise As2dError(one_line(last[0]) if last else f"it ended with status {ran.returncode}")
    return int(ran.stdout)


def _asked(asked: Asked | None) -> dict[str, Any] | None:
    """Without the samples, which are many, and in the file."""
    if asked is None:
        return None
    size = None if asked.samples is None else len(asked.samples)
    return {"prompt": asked.prompt, "limit": asked.limit, "span": asked.span, "size": size}


def _peak() -> int:
    """Of this process. Not ru_maxrss where there is another way: a child inherits its parent's."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
    return (
        int(cast(re.Match[str], re.search(r"^VmHWM:\s*(\d+) kB$", status, re.MULTILINE))[1]) * 1024
    )


def _run(job: dict[str, Any]) -> None:
    from as2d_cli.audio.decode import AudioFile
    from as2d_cli.audio.windows import windows
    from as2d_cli.bench.measure import answer, decode
    from as2d_cli.catalog import Bundle
    from as2d_cli.decoding import Engine, Plan

    contender = Contender(**job["contender"])
    target = Bundle.read(Path(job["target"]))
    drafter = Bundle.read(Path(job["drafter"])) if job["drafter"] is not None else None
    cores = {key: tuple(job["plan"][key]) for key in ("target_cores", "draft_cores")}
    plan = Plan(**(job["plan"] | cores))
    with Engine.open(target, drafter, plan) as engine:
        if contender.drafter == ORACLE:
            engine.replay(dict(enumerate(job["texts"])))
        if (about := job["asked"]) is not None:
            asked = Asked(0, "", tuple(about["prompt"]), about["limit"])
            if about["span"] is not None:
                begin, end = about["span"]
                given = heard(Path(job["file"]), begin, end, about["size"])
                asked = replace(asked, samples=given)
            answer(engine, contender, asked, job["language"])
            return
        with AudioFile(Path(job["file"])) as audio:
            samples = [w.samples for w in windows(audio) if w.index in job["windows"]]
        decode(engine, contender, samples, target, job["language"])


if __name__ == "__main__":
    try:
        _run(json.load(sys.stdin))
    except As2dError as error:
        sys.exit(str(error))
    print(_peak())
