"""Proves that a device can do what is asked of it, step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from as2d_cli.device.adb import words
from as2d_cli.device.opened import DeviceRequest, DeviceWatch, open_place
from as2d_cli.device.phone import PhoneHeat, read_heat
from as2d_cli.device.place import Place
from as2d_cli.device.runner import Kit, Runner
from as2d_cli.errors import As2dError
from as2d_cli.machine.cores import core_list

__all__ = ["Check", "check_device"]

_TOOLS = ("setsid", "sha256sum", "df", "mv", "rm", "mkdir", "kill", "sleep", "uname")
"""Programs of the device that are called; all of them are in Android's toybox."""


@dataclass(frozen=True)
class Check:
    """One step: what was looked at, whether it is good, and what was found or why not."""

    name: str
    ok: bool
    detail: str


def check_device(
    request: DeviceRequest,
    variables: Mapping[str, str],
    kit: Callable[[], Kit],
    watch: DeviceWatch,
) -> Iterator[Check]:
    """Goes on for as long as the next step makes sense. Sends the runner.

    Args:
        kit: builds what is sent, if need be.
    """
    name = "device"
    try:
        phone, place = open_place(request, variables)
        android = f", Android {phone.android}" if phone.android else ""
        yield Check(name, True, f"{phone.name}{android}, {phone.kernel}, {phone.architecture}")
        name = "shell"
        yield _shell(place)
        name = "folder"
        free = place.free()
        room = "room unknown" if free is None else f"{free / 1e6:.0f} MB free"
        yield Check(name, True, f"{place.folder}, {room}")
        name = "runner"
        made = kit()
        place.send(made.parcels, watch)
        runner = Runner(place, made)
        machine = runner.facts()
        yield Check(name, True, f"starts; kernels {machine.facts.kernels}")
        library = machine.problem or f"ONNX Runtime {machine.onnxruntime}"
        yield Check("library", machine.problem is None, library)
        clusters = "; ".join(
            f"{core_list(cluster.cores)} {cluster.model or 'unknown'}"
            for cluster in machine.facts.clusters
        )
        yield Check("cores", bool(machine.facts.clusters), clusters)
        pins = (
            "threads can be bound to them" if machine.facts.can_pin else "threads cannot be bound"
        )
        yield Check("pinning", machine.facts.can_pin, pins)
        name = "sensors"
        yield Check(name, True, _heat(read_heat(place.device)))
    except As2dError as error:
        yield Check(name, False, str(error))


def _shell(place: Place) -> Check:
    """Statuses, standard error and the programs that are needed."""
    ran = place.device.shell(
        "; ".join(f"command -v {tool} >/dev/null || echo {tool}" for tool in _TOOLS)
        + "; echo said >&2; "
        + words("sh", "-c", "exit 7")
    )
    if ran.out:
        return Check("shell", False, f"these programs are missing: {', '.join(ran.out)}")
    if ran.status != 7 or list(ran.err) != ["said"]:
        return Check("shell", False, f"statuses and standard error do not come back: {ran.why}")
    return Check("shell", True, "statuses and standard error come back")


def _heat(heat: PhoneHeat) -> str:
    told = []
    if heat.battery_celsius is not None:
        told.append(f"battery {heat.battery_celsius:.1f} °C")
    if heat.battery_percent is not None:
        told.append(f"{heat.battery_percent} % full")
    if heat.throttling is not None:
        told.append(f"throttling {heat.throttling}")
    told += [f"{name} {celsius:.1f} °C" for name, celsius in heat.sensors]
    return ", ".join(told) or "Android tells of none"
