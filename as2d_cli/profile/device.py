"""A device that is not here: its costs estimated from a description of its cores and memory.

The scaling is stated, not measured. A core multiplies 16 pairs of bytes in a cycle with each 128
bits of its vector pipes (what the dot product instruction does), of which `_REACHED` is reached;
cores of a lane add up. A step reads all weights of the decoder once, as fast as the lane's cores
can read, or multiplies all rows with them, whichever takes longer. Two lanes at work share the
memory in proportion to what each could read alone.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from as2d_cli.decoding.plan import Machine
from as2d_cli.errors import As2dError, ExitStatus
from as2d_cli.profile.costs import CostModel, DraftCosts, LaneCosts, Line, TargetCosts
from as2d_cli.profile.layouts import layouts

__all__ = ["Device", "ModelShape", "costs_on", "read_device", "shapes", "shipped_devices"]

_FOLDER = Path(__file__).with_name("devices")
_MODELS = "models.toml"

_REACHED = 0.4
"""Of what the pipes could multiply: about what well-made kernels reach."""

_MEMORY_REACHED = 0.7
"""Of what the memory could deliver."""

_OVERHEAD = 2e-4
"""Seconds of a step that are neither reading nor multiplying."""

_ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 17, 25, 32)

_WINDOW_ROWS = 0.5
"""What a further window costs a step more, in rows: its own keys and values are read."""


@dataclass(frozen=True)
class _Core:
    multiplies: float  # a second
    reads: float  # bytes a second


@dataclass(frozen=True)
class Device:
    """A description.

    Attributes:
        clusters: kind of core, number and GHz, the fastest first.
        memory: bytes a second.
    """

    name: str
    machine: Machine
    clusters: Sequence[tuple[str, int, float]]
    cores: Mapping[int, _Core]
    memory: float


@dataclass(frozen=True)
class ModelShape:
    """Sizes of a model.

    Attributes:
        encoder: multiplications for a second of audio.
        decoder: weights that a step reads.
        weight: bytes of each.
        prompt: positions of the decoder that a second of audio takes.
    """

    name: str
    encoder: float
    decoder: float
    weight: float
    prompt: float


def shipped_devices() -> list[str]:
    """Names of the descriptions that came with as2d."""
    return sorted(path.stem for path in _FOLDER.glob("*.toml") if path.name != _MODELS)


def read_device(name: str, option: str = "--device-file") -> Device:
    """The description in a file, or one that came with as2d.

    Raises:
        As2dError: status USAGE, naming `option`; it cannot be read, or says something impossible.
    """
    path = _FOLDER / f"{name}.toml" if name in shipped_devices() else Path(name)
    try:
        return _device(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        problem = error.strerror or str(error)
    except KeyError as error:
        problem = f"does not say {error}"
    except (TypeError, AttributeError, ValueError) as error:
        problem = str(error)
    raise As2dError(
        f"{option} {name}: {problem}",
        remedy=f"give a file like the ones of {', '.join(shipped_devices())}, or such a name",
        status=ExitStatus.USAGE,
    )


def shapes() -> tuple[ModelShape, list[ModelShape]]:
    """The drafter, and targets from the smallest on."""
    data = tomllib.loads((_FOLDER / _MODELS).read_text(encoding="utf-8"))
    return _shape(data["drafter"]), [_shape(target) for target in data["target"]]


def costs_on(device: Device, target: ModelShape, drafter: ModelShape) -> CostModel:
    """What both models would cost on it."""
    lanes = [
        _lane(device, target, drafter, cores, draft)
        for cores, draft in layouts(device.machine, drafter=True)
    ]
    return CostModel(target.name, drafter.name, False, tuple(lanes), estimated=True)


def _lane(
    device: Device,
    target: ModelShape,
    drafter: ModelShape,
    cores: tuple[int, ...],
    draft: tuple[int, ...],
) -> LaneCosts:
    if not draft:
        return LaneCosts(cores, (), _target(device, target, cores))
    both = _reads(device, cores) + _reads(device, draft)
    shared = min(1.0, device.memory / both)
    return LaneCosts(
        cores,
        draft,
        alone=_target(device, target, cores + draft),
        own=_target(device, target, cores),
        beside=_target(device, target, cores, shared),
        draft=_draft(device, drafter, draft),
        draft_beside=_draft(device, drafter, draft, shared),
    )


def _target(
    device: Device, shape: ModelShape, cores: Sequence[int], shared: float = 1.0
) -> TargetCosts:
    steps = {rows: _step(device, shape, cores, rows, shared) for rows in _ROWS}
    row = shape.decoder / _multiplies(device, cores)
    return TargetCosts(_encode(device, shape, cores), steps, _WINDOW_ROWS * row)


def _draft(
    device: Device, shape: ModelShape, cores: Sequence[int], shared: float = 1.0
) -> DraftCosts:
    return DraftCosts(_encode(device, shape, cores), _step(device, shape, cores, 1, shared))


def _encode(device: Device, shape: ModelShape, cores: Sequence[int]) -> Line:
    work = shape.encoder + shape.prompt * shape.decoder
    return Line(_OVERHEAD, work / _multiplies(device, cores))


def _step(
    device: Device, shape: ModelShape, cores: Sequence[int], rows: int, shared: float
) -> float:
    reading = shape.decoder * shape.weight / (_reads(device, cores) * shared)
    return max(reading, rows * shape.decoder / _multiplies(device, cores)) + _OVERHEAD


def _multiplies(device: Device, cores: Sequence[int]) -> float:
    return sum(device.cores[core].multiplies for core in cores)


def _reads(device: Device, cores: Sequence[int]) -> float:
    return min(device.memory, sum(device.cores[core].reads for core in cores))


def _device(data: Mapping[str, Any]) -> Device:
    clusters = [_cluster(entry) for entry in data["cluster"]]
    if not clusters:
        raise ValueError("has no cluster")
    clusters.sort(key=lambda entry: -entry[2].multiplies)
    cores: dict[int, _Core] = {}
    groups: list[tuple[int, ...]] = []
    # As on most phones the slowest core is 0.
    first = sum(count for _, count, _, _ in clusters)
    for _, count, core, _ in clusters:
        first -= count
        groups.append(tuple(range(first, first + count)))
        cores |= dict.fromkeys(groups[-1], core)
    return Device(
        name=str(data["name"]),
        machine=Machine(tuple(groups)),
        clusters=[(kind, count, ghz) for kind, count, _, ghz in clusters],
        cores=cores,
        memory=_positive(data, "memory_gb_per_second") * 1e9 * _MEMORY_REACHED,
    )


def _cluster(data: Mapping[str, Any]) -> tuple[str, int, _Core, float]:
    ghz = _positive(data, "ghz")
    pairs = 16 * _positive(data, "simd_bits") / 128
    core = _Core(ghz * 1e9 * pairs * _REACHED, ghz * 1e9 * _positive(data, "bytes_per_cycle"))
    count = data["cores"]
    if not isinstance(count, int) or not 1 <= count <= 1024:
        raise ValueError(f"cores = {count} is not from 1 to 1024")
    return str(data["core"]), count, core, ghz


def _shape(data: Mapping[str, Any]) -> ModelShape:
    return ModelShape(
        name=data["name"],
        encoder=data["encoder_million_per_second"] * 1e6,
        decoder=data["decoder_million"] * 1e6,
        weight=data["bits"] / 8,
        prompt=data.get("audio_tokens_per_second", 0.0),
    )


def _positive(data: Mapping[str, Any], name: str) -> float:
    value = data[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e6:
        raise ValueError(f"{name} = {value} is no positive number")
    return float(value)
