"""The facts of a machine, typed. None, and "" of a text: unknown."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Cache", "Cluster", "Conditions", "MachineFacts"]


@dataclass(frozen=True)
class Cluster:
    """Usable cores of about the same speed.

    Attributes:
        cores: the kernel's ids, ascending.
        capacity: the scheduler's figure of the fastest, 1 to 1024.
        max_khz: highest frequency.
        features: instruction sets for arithmetic that all of the cores have, in the kernel's words.
        model: such as "Cortex-A78"; several joined by ", ".
    """

    cores: tuple[int, ...]
    capacity: int | None = None
    max_khz: int | None = None
    features: tuple[str, ...] | None = None
    model: str = ""


@dataclass(frozen=True)
class Cache:
    """One cache.

    Attributes:
        level: 1 is next to the core.
        kind: "data", "instruction" or "unified".
        cores: that share it, usable or not.
    """

    level: int
    kind: str
    bytes: int
    cores: tuple[int, ...]


@dataclass(frozen=True)
class MachineFacts:
    """What stays as it is while the machine is on, as far as this process may use it.

    Attributes:
        architecture: "x86_64", "aarch64"; of the process.
        kernels: instruction set that the operators run on.
        clusters: the fastest first.
        source: what told the clusters apart: "capacity", "frequency" or "none".
        can_pin: the platform can bind threads to cores.
        allowed: cores that the process may use.
        offline: cores that are there and switched off.
        siblings: usable cores that are threads of one physical core, two or more in each group.
        caches: of the usable cores, the lowest levels first; those of known size.
        quota: cores' worth of time that the cgroups grant; 0 without a limit.
    """

    architecture: str
    kernels: str
    clusters: tuple[Cluster, ...]
    source: str = "none"
    can_pin: bool = True
    allowed: tuple[int, ...] | None = None
    offline: tuple[int, ...] | None = None
    siblings: tuple[tuple[int, ...], ...] | None = None
    caches: tuple[Cache, ...] = ()
    quota: float | None = None

    @property
    def cores(self) -> tuple[int, ...]:
        """All usable ones, the fastest first."""
        return tuple(core for cluster in self.clusters for core in cluster.cores)

    @property
    def features(self) -> tuple[str, ...] | None:
        """Instruction sets that every usable core has."""
        each = [cluster.features for cluster in self.clusters]
        known = [features for features in each if features is not None]
        if not known or len(known) < len(each):
            return None
        return tuple(name for name in known[0] if all(name in features for features in known))

    @property
    def one_per_core(self) -> tuple[int, ...]:
        """The usable cores without second threads of a physical core, the fastest first."""
        second = {core for group in self.siblings or () for core in group[1:]}
        return tuple(core for core in self.cores if core not in second)

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    def fingerprint(self) -> str:
        """A short name of all these facts: measurements under another one are of no use."""
        text = json.dumps(self.as_json(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Conditions:
    """What changes from one moment to the next.

    Attributes:
        governors: of each cluster, in their order; what cpufreq calls them.
        temperatures: sensor and degrees Celsius, of those that can be read.
    """

    governors: tuple[str, ...] = ()
    temperatures: tuple[tuple[str, float], ...] = ()

    @property
    def hottest(self) -> tuple[str, float] | None:
        """The sensor that says most."""
        return max(self.temperatures, key=lambda entry: entry[1], default=None)

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)
