"""What as2d finds on this machine, and what it would run."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from as2d_cli import __version__
from as2d_cli.environment import Environment
from as2d_cli.errors import As2dError

if TYPE_CHECKING:
    from as2d_cli.catalog import Store

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
    yield Finding("system", f"{platform.system()} {platform.release()}")
    yield from _machine()
    yield from _libraries()
    yield _microphone(environment)
    yield _folder(environment.cache_dir)
    yield _settings(environment)
    yield from _models(environment)
    yield from _plan(environment)


def _machine() -> Iterator[Finding]:
    from as2d_cli.machine import read_conditions, read_machine
    from as2d_cli.machine.words import CLUSTER_COLUMNS, UNKNOWN, cluster_words, machine_words

    facts, conditions = read_machine(), read_conditions()
    for name, value in machine_words(facts, conditions):
        yield Finding(name, value)
    for cores, *cells in cluster_words(facts, conditions):
        known = [
            f"{column} {cell}"
            for column, cell in zip(CLUSTER_COLUMNS[1:], cells, strict=True)
            if cell != UNKNOWN
        ]
        yield Finding(f"cores {cores}", "; ".join(known) or UNKNOWN)


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
    store = _store(environment)
    voice = store.catalogue.voice("transcribe")
    wanted = [*store.catalogue.defaults("transcribe"), *([voice] if voice is not None else [])]
    for entry in wanted:
        yield Finding(f"model {entry.id}", f"{entry.role}, {store.state(entry).value}")


def _plan(environment: Environment) -> Iterator[Finding]:
    """As transcribe would make it of the same models."""
    from as2d_cli.decoding.plan import PlanRequest
    from as2d_cli.machine.cores import core_list
    from as2d_cli.profile.choose import plan_by_profile

    store = _store(environment)
    target, *_ = store.catalogue.defaults("transcribe")
    drafter = store.catalogue.default_drafter("transcribe", target.id)
    request = PlanRequest(
        shares_encoder=drafter is not None and bool(drafter.target),
        target=target.id,
        drafter=None if drafter is None else drafter.id,
    )
    plan = plan_by_profile(request, store)
    parts = [plan.method, f"budget {plan.budget}"]
    if plan.windows > 1:
        parts.append(f"{plan.windows} windows at a time")
    parts.append(f"target {target.id} on cores {core_list(plan.target_cores)}")
    if plan.draft_cores and drafter is not None:
        parts.append(f"drafter {drafter.id} on cores {core_list(plan.draft_cores)}")
    yield Finding("would run", ", ".join(parts))
    yield Finding("planned", plan.why)


def _store(environment: Environment) -> Store:
    from as2d_cli.catalog import default_store

    return default_store(variables=environment.variables.get, cache=environment.cache_dir)
