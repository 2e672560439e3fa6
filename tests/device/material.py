"""Runners that say what a test wants, as programs of an emulated phone."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, cast

from as2d_cli.app import run
from as2d_cli.catalog.bundle import sha256_of
from as2d_cli.device.place import Parcel
from as2d_cli.device.results import FORMAT
from as2d_cli.device.runner import Kit
from as2d_cli.environment import Environment, Output
from as2d_cli.tasks.models import Backend
from tests.fakes import Ran

__all__ = [
    "CLUSTERS",
    "END",
    "MACHINE",
    "line",
    "moment",
    "parcel",
    "run_on",
    "sample",
    "shell_kit",
    "verified",
]

CLUSTERS = [
    {
        "cores": [6, 7],
        "capacity": 1024,
        "max_khz": 2_840_000,
        "model": "0x41:0xd44",
        "governor": "schedutil",
        "features": ["asimd", "asimddp"],
    },
    {
        "cores": [0, 1, 2, 3, 4, 5],
        "capacity": 325,
        "max_khz": 1_800_000,
        "model": "0x41:0xd05",
        "governor": "schedutil",
        "features": ["asimd", "asimddp"],
    },
]
"""Of a phone with two fast and six slow cores."""


def line(kind: str, **fields: Any) -> str:
    """One line of a runner."""
    return json.dumps({"kind": kind, "at": 0.0, **fields})


MACHINE = {
    "cpu": "emulated",
    "system": "Linux 5.10",
    "architecture": "aarch64",
    "kernels": "NEON_DOTPROD",
    "onnxruntime": "1.32.0",
    "problem": None,
    "clusters": CLUSTERS,
    "source": "capacity",
    "quota": 0,
    "quota_known": True,
    "can_pin": True,
    "allowed": list(range(8)),
    "offline": [],
    "siblings": [],
    "caches": [],
}

END = line("end", status="done", message=None, peak_memory_bytes=123_000_000)


def moment(limit: int = 2_840_000) -> dict[str, Any]:
    """The fast cores may have `limit` kHz."""
    return {
        "temperatures": [["skin", 33.5]],
        "limits": [limit, 1_800_000],
        "frequencies": [limit, 1_800_000],
        "governors": ["schedutil", "schedutil"],
        "battery": {"percent": 80, "celsius": 30.1, "status": "Charging"},
    }


def lanes(*cores: int) -> dict[str, Any]:
    threads = [
        {"name": f"t{core}", "requested": str(core), "actual": str(core), "refused": ""}
        for core in cores
    ]
    return {"target": {"cores": list(cores), "threads": threads}}


def verified(
    contender: int, unit: int, tokens: Iterable[int], differing: Iterable[int] = ()
) -> str:
    return line(
        "verified",
        contender=contender,
        unit=unit,
        texts=[list(tokens)],
        differing=list(differing),
        unexpected=[],
        lost=None,
        lanes=lanes(6, 7),
    )


def sample(
    order: int,
    contender: int,
    unit: int,
    seconds: float,
    tokens: Iterable[int],
    *,
    repeat: int = 0,
    limit: int = 2_840_000,
) -> str:
    """A run that was timed, on a phone whose fast cores may have `limit` kHz afterwards."""
    said = list(tokens)
    phases = ("encode", "prompt", "decode", "draft_encode", "draft_decode")
    return line(
        "sample",
        contender=contender,
        unit=unit,
        repeat=repeat,
        order=order,
        seconds=seconds,
        phases=dict.fromkeys(phases, 0.1) | {"wall": seconds},
        tokens=len(said),
        windows=1,
        steps={"alone": 1, "verify": {"8": 2}},
        proposed=8,
        accepted=4,
        realignments=0,
        drafted=8,
        stale_drafts=0,
        lead_total=6,
        exact=True,
        texts=[said],
        differs=False,
        differing=[],
        lost=None,
        lanes=lanes(6, 7),
        spans=[],
        before=moment(),
        after=moment(limit),
    )


def parcel(name: str, path: Path) -> Parcel:
    """An existing file."""
    return Parcel(name, path, path.stat().st_size, sha256_of(path))


def shell_kit(
    folder: Path,
    *,
    machine: Mapping[str, Any] = MACHINE,
    then: str = "",
    says: Iterable[str] = (),
) -> Kit:
    """A runner in the phone's shell: tells of `machine`; a job is kept in the file "job" of its
    folder, then comes what it `says`, and `then` is done.
    """
    folder.mkdir(exist_ok=True)
    files = {
        "facts": [line("begin", format=FORMAT, job="facts"), line("machine", **machine), END],
        "says": [line("begin", format=FORMAT, job="bench"), *says],
        "runner": [
            "#!/bin/sh",
            'if [ "$1" = facts ]; then cat runner/facts; exit 0; fi',
            "cat >job",
            "cat runner/says",
            then,
        ],
        "library.so": ["a library"],
    }
    parcels = []
    for name, lines in files.items():
        path = folder / name
        path.write_text("\n".join(lines) + "\n")
        path.chmod(0o755 if name == "runner" else 0o644)
        parcels.append(parcel(f"runner/{name}", path))
    return Kit(parcels, ("./runner/runner",), "runner/library.so")


def run_on(
    *args: str,
    variables: Mapping[str, str],
    backend: Backend | None = None,
    kit: Kit | None = None,
) -> Ran:
    """Runs ``as2d`` with a device in `variables`; with what is built for it where `kit` is None."""
    out, err = io.BytesIO(), io.BytesIO()
    environment = Environment(
        stdin=None,
        stdout=Output(cast(BinaryIO, out)),
        stderr=Output(cast(BinaryIO, err), "standard error"),
        variables={"AS2D_CONFIG": os.devnull, **variables},
        backend=backend,
        kit=kit,
    )
    status = run(args, environment)
    return Ran(status, out.getvalue().decode(), err.getvalue().decode())
