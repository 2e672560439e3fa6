"""What as2d finds on this machine, and what it would run."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from as2d_cli import __version__
from as2d_cli.environment import Environment
from as2d_cli.errors import As2dError

__all__ = ["Finding", "examine"]


@dataclass(frozen=True)
class Finding:
    """One line.

    Attributes:
        topic: what was looked at.
        text: what was found.
        ok: False where transcription cannot work with it.
    """

    topic: str
    text: str
    ok: bool = True


def examine(environment: Environment) -> Iterator[Finding]:
    """Looks at one thing after another; nothing is fetched, loaded or changed."""
    yield Finding("as2d", f"{__version__}, Python {platform.python_version()}, {sys.executable}")
    yield Finding("system", f"{platform.system()} {platform.release()}, {platform.machine()}")
    yield from _cores()
    yield from _libraries()
    yield _microphone(environment)
    yield _folder(environment.cache_dir)
    yield _settings(environment)
    yield from _models(environment)
    yield from _plan()


def _cores() -> Iterator[Finding]:
    from as2d_cli import _native
    from as2d_cli.decoding.plan import this_machine

    machine = this_machine()
    clusters = "; ".join(" ".join(map(str, cluster)) for cluster in machine.clusters)
    notes = [f"{len(machine.cores)} of {os.cpu_count()}: {clusters}"]
    if machine.quota:
        notes.append(f"a quota of {machine.quota:g} cores")
    if not machine.can_pin:
        notes.append("threads cannot be pinned")
    yield Finding("cores", ", ".join(notes))
    yield Finding("kernels", _native.kernel_name())


def _libraries() -> Iterator[Finding]:
    from importlib.metadata import PackageNotFoundError, version

    from as2d_cli.decoding.ort_library import ort_library

    try:
        yield Finding("onnxruntime", f"{version('onnxruntime')}, {ort_library()}")
    except (As2dError, PackageNotFoundError) as e:
        yield Finding("onnxruntime", str(e), ok=False)
    import av

    library = ".".join(map(str, av.library_versions["libavcodec"]))
    yield Finding("av", f"{av.__version__}, libavcodec {library}")


def _microphone(environment: Environment) -> Finding:
    from as2d_cli.audio.microphone import default_microphone

    try:
        return Finding("microphone", default_microphone(environment.sound))
    except As2dError as e:
        return Finding("microphone", e.message)  # all but --mic goes without


def _folder(path: Path) -> Finding:
    """The cache, or the folder that it would be made in."""
    there = path
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir() or not os.access(there, os.W_OK):
        return Finding("cache", f"{path} cannot be written; set AS2D_CACHE_DIR", ok=False)
    size = 0
    for root, _, names in os.walk(path):
        for name in names:
            with suppress(OSError):
                size += (Path(root) / name).lstat().st_size
    free = os.statvfs(there)
    return Finding(
        "cache", f"{path}, {size / 1e6:.0f} MB, {free.f_bavail * free.f_frsize / 1e9:.0f} GB free"
    )


def _settings(environment: Environment) -> Finding:
    path = environment.config_file
    names = sorted(name for name in environment.variables if name.startswith("AS2D_"))
    there = str(path) if path.exists() else f"no {path}"
    return Finding("settings", ", ".join([there, *names]))


def _models(environment: Environment) -> Iterator[Finding]:
    from as2d_cli.catalog import default_store

    store = default_store(variables=environment.variables.get, cache=environment.cache_dir)
    voice = store.catalogue.voice("transcribe")
    wanted = [*store.catalogue.defaults("transcribe"), *([voice] if voice is not None else [])]
    for entry in wanted:
        yield Finding(f"model {entry.id}", f"{entry.role}, {store.state(entry).value}")


def _plan() -> Iterator[Finding]:
    from as2d_cli import catalog, decoding

    target, *_ = catalog.load_catalogue().defaults("transcribe")
    drafter = catalog.load_catalogue().default_drafter("transcribe", target.id)
    shares = drafter is not None and bool(drafter.target)
    plan = decoding.make_plan("auto", shares_encoder=shares)
    lanes = f"target {target.id} on cores {' '.join(map(str, plan.target_cores))}"
    if plan.draft_cores and drafter is not None:
        lanes += f", drafter {drafter.id} on {' '.join(map(str, plan.draft_cores))}"
    yield Finding("would run", f"{plan.method}, budget {plan.budget}, {lanes}")
