"""The machine as a person wants to see it: a table on a terminal, plain lines on a pipe."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from as2d_cli.environment import Environment
from as2d_cli.errors import one_line
from as2d_cli.machine.cores import core_list
from as2d_cli.machine.facts import Cluster, Conditions, MachineFacts

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["machine_lines", "print_machine", "write_machine"]

UNKNOWN = "unknown"

_COLUMNS = ("cores", "model", "capacity", "frequency", "features", "caches", "governor")

# The best first; what others imply is not told.
_FEATURES = {
    "amx_int8": "AMX",
    "avx512_vnni": "AVX-512 VNNI",
    "avx512_fp16": "AVX-512 fp16",
    "avx512f": "AVX-512",
    "avx_vnni": "AVX VNNI",
    "avx2": "AVX2",
    "sme2": "SME2",
    "sme": "SME",
    "sve2": "SVE2",
    "sve": "SVE",
    "i8mm": "i8mm",
    "bf16": "bf16",
    "asimddp": "dotprod",
    "asimdhp": "fp16",
    "asimd": "NEON",
}

_KINDS = {"data": "d", "instruction": "i", "unified": ""}


def write_machine(facts: MachineFacts, conditions: Conditions, environment: Environment) -> None:
    """To standard output, by what that is."""
    if not environment.stdout.is_terminal:
        for line in machine_lines(facts, conditions):
            environment.stdout.write(line + "\n")
        return
    from as2d_cli.output.console import print_page

    print_page(environment, lambda console: print_machine(facts, conditions, console))


def machine_lines(facts: MachineFacts, conditions: Conditions) -> list[str]:
    """Name and value of each fact, then ``cluster`` and its cells, separated by tabs."""
    rows = [list(row) for row in _facts(facts, conditions)]
    rows += [["cluster", *row] for row in _clusters(facts, conditions)]
    return ["\t".join(one_line(cell) for cell in row) for row in rows]


def print_machine(facts: MachineFacts, conditions: Conditions, console: Console) -> None:
    """Two tables: the clusters, the fastest first, and what is true of all."""
    from rich.table import Table
    from rich.text import Text

    clusters = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    rows = _clusters(facts, conditions)
    # A column of which nothing is known has nothing to say in the width of a terminal.
    told = [i for i in range(len(_COLUMNS)) if any(row[i] != UNKNOWN for row in rows)]
    for i in told:
        clusters.add_column(_COLUMNS[i], overflow="fold")
    for row in rows:
        clusters.add_row(*(Text(one_line(row[i])) for i in told))
    console.print(clusters)
    console.print()
    whole = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    whole.add_column(style="bold", no_wrap=True)
    whole.add_column(overflow="fold")
    for name, value in _facts(facts, conditions):
        whole.add_row(name, Text(one_line(value)))
    console.print(whole)


def _facts(facts: MachineFacts, conditions: Conditions) -> list[tuple[str, str]]:
    return [
        ("architecture", facts.architecture or UNKNOWN),
        ("kernels", facts.kernels),
        ("allowed cores", _cores(facts.allowed)),
        ("offline cores", _cores(facts.offline)),
        ("threads", _threads(facts.siblings)),
        ("CPU quota", _quota(facts.quota)),
        ("pinning", "yes" if facts.can_pin else "the platform cannot"),
        ("clusters by", facts.source if facts.source != "none" else UNKNOWN),
        ("temperature", _temperature(conditions)),
    ]


def _clusters(facts: MachineFacts, conditions: Conditions) -> list[tuple[str, ...]]:
    governors: Sequence[str] = conditions.governors or [""] * len(facts.clusters)
    return [
        (
            core_list(cluster.cores),
            cluster.model or UNKNOWN,
            UNKNOWN if cluster.capacity is None else str(cluster.capacity),
            UNKNOWN if cluster.max_khz is None else f"{cluster.max_khz / 1e6:.2f} GHz",
            _features(cluster),
            _caches(cluster, facts),
            governor or UNKNOWN,
        )
        for cluster, governor in zip(facts.clusters, governors, strict=True)
    ]


def _cores(cores: Sequence[int] | None) -> str:
    return UNKNOWN if cores is None else core_list(cores) or "none"


def _threads(siblings: Sequence[Sequence[int]] | None) -> str:
    if siblings is None:
        return UNKNOWN
    if not siblings:
        return "one a core"
    return "of one core: " + ", ".join("+".join(map(str, group)) for group in siblings)


def _quota(quota: float | None) -> str:
    if quota is None:
        return UNKNOWN
    return f"time of {quota:g} cores" if quota else "none"


def _temperature(conditions: Conditions) -> str:
    hottest = conditions.hottest
    if hottest is None:
        return UNKNOWN
    sensor, celsius = hottest
    count = len(conditions.temperatures)
    among = f", the hottest of {count} sensors" if count > 1 else ""
    return f"{celsius:.0f} °C ({sensor}{among})"


def _features(cluster: Cluster) -> str:
    if cluster.features is None:
        return UNKNOWN
    return ", ".join(_FEATURES[name] for name in _FEATURES if name in cluster.features) or "none"


def _caches(cluster: Cluster, facts: MachineFacts) -> str:
    """Each kind once: "L1d 48 KiB, L2 2 MiB, L3 16 MiB for 8 cores"."""
    texts: list[str] = []
    for cache in facts.caches:
        if not set(cache.cores) & set(cluster.cores):
            continue
        size = cache.bytes / 1024
        amount = f"{size:g} KiB" if size < 1024 else f"{size / 1024:g} MiB"
        shared = f" for {len(cache.cores)} cores" if len(cache.cores) > 1 else ""
        text = f"L{cache.level}{_KINDS.get(cache.kind, '')} {amount}{shared}"
        if text not in texts:
            texts.append(text)
    return ", ".join(texts) or UNKNOWN
