"""From what the engine reads of the kernel to typed facts."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from as2d_cli.machine.arm_cores import core_name
from as2d_cli.machine.facts import Cache, Cluster, Conditions, MachineFacts

__all__ = ["machine_facts", "read_conditions", "read_machine"]


def read_machine(root: Path | None = None, allowed: str | None = None) -> MachineFacts:
    """The machine as this process may use it.

    Args:
        root: folder with the `sys` and `proc` of another machine.
        allowed: cores such as "0-3" in place of those that this thread may use.
    """
    from as2d_cli import _native

    return machine_facts(_native.topology(root, allowed), platform.machine(), _native.kernel_name())


def machine_facts(found: Mapping[str, Any], architecture: str, kernels: str) -> MachineFacts:
    """What the engine read of a kernel, here or elsewhere (see `as2d_cli._native.topology`)."""
    return MachineFacts(
        architecture=architecture,
        kernels=kernels,
        clusters=tuple(_cluster(entry) for entry in found["clusters"]),
        source=found["source"],
        can_pin=found["can_pin"],
        allowed=_tuple(found["allowed"]),
        offline=_tuple(found["offline"]),
        siblings=_groups(found["siblings"]),
        caches=tuple(
            Cache(entry["level"], entry["kind"], entry["bytes"], tuple(entry["cores"]))
            for entry in found["caches"]
        ),
        quota=found["quota"] if found["quota_known"] else None,
    )


def read_conditions(root: Path | None = None, allowed: str | None = None) -> Conditions:
    """How the machine is right now; `root` and `allowed` as for `read_machine`."""
    from as2d_cli import _native

    return Conditions(
        governors=tuple(c["governor"] for c in _native.topology(root, allowed)["clusters"]),
        temperatures=tuple(_native.temperatures(root)),
    )


def _cluster(entry: Mapping[str, Any]) -> Cluster:
    names = (core_name(model) for model in entry["model"].split(", "))
    return Cluster(
        cores=tuple(entry["cores"]),
        capacity=entry["capacity"] or None,
        max_khz=entry["max_khz"] or None,
        features=None if entry["features"] is None else tuple(entry["features"]),
        model=", ".join(names),
    )


def _tuple(cores: Iterable[int] | None) -> tuple[int, ...] | None:
    return None if cores is None else tuple(cores)


def _groups(groups: Iterable[Iterable[int]] | None) -> tuple[tuple[int, ...], ...] | None:
    return None if groups is None else tuple(tuple(group) for group in groups)
