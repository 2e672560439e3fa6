"""The facts of a machine in a person's words."""

from __future__ import annotations

from collections.abc import Sequence

from as2d_cli.machine.cores import core_list
from as2d_cli.machine.facts import Cluster, Conditions, MachineFacts

__all__ = ["CLUSTER_COLUMNS", "UNKNOWN", "cluster_words", "machine_words"]

UNKNOWN = "unknown"

CLUSTER_COLUMNS = ("cores", "model", "capacity", "frequency", "features", "caches", "governor")
"""What `cluster_words` tells of each."""

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


def machine_words(facts: MachineFacts, conditions: Conditions) -> list[tuple[str, str]]:
    """Name and value of what is true of all cores."""
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


def cluster_words(facts: MachineFacts, conditions: Conditions) -> list[tuple[str, ...]]:
    """A row for each cluster, the fastest first, with a cell for each of `CLUSTER_COLUMNS`."""
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
