"""What a device tells of itself through Android's own programs; elsewhere they are not there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from as2d_cli.device.adb import Device

__all__ = ["PhoneFacts", "PhoneHeat", "read_heat", "read_phone"]

_PROPERTIES = {
    "manufacturer": "ro.product.manufacturer",
    "model": "ro.product.model",
    "soc": "ro.soc.model",
    "board": "ro.board.platform",
    "android": "ro.build.version.release",
    "sdk": "ro.build.version.sdk",
    "build": "ro.build.fingerprint",
    "abis": "ro.product.cpu.abilist",
}

_NEXT = "as2d-next"

_STATUSES = ("none", "light", "moderate", "severe", "critical", "emergency", "shutdown")
"""How much Android throttles, by its number."""


@dataclass(frozen=True)
class PhoneFacts:
    """What stays as it is; "" where it is unknown.

    Attributes:
        soc: the chip's name, from Android 12 on.
        board: the platform's name, such as "lahaina".
        build: fingerprint of the system.
        abis: that programs may be of, the best first.
        kernel: name and release.
        architecture: of the kernel.
    """

    serial: str
    manufacturer: str = ""
    model: str = ""
    soc: str = ""
    board: str = ""
    android: str = ""
    sdk: str = ""
    build: str = ""
    abis: tuple[str, ...] = ()
    kernel: str = ""
    architecture: str = ""

    @property
    def name(self) -> str:
        """For people: maker and model, or the serial."""
        known = f"{self.manufacturer} {self.model}".strip()
        return f"{known} ({self.serial})" if known else self.serial

    def as_json(self) -> dict[str, Any]:
        """As values that JSON knows."""
        return asdict(self)


@dataclass(frozen=True)
class PhoneHeat:
    """How warm it is, in degrees Celsius, as Android says; None where it does not.

    Attributes:
        battery_percent: how full it is.
        powered: it is being charged, or runs on power from outside.
        throttling: one of "none", "light", "moderate", "severe", "critical", ...
        sensors: by their names.
    """

    battery_celsius: float | None = None
    battery_percent: int | None = None
    powered: bool | None = None
    throttling: str | None = None
    sensors: tuple[tuple[str, float], ...] = ()

    def as_json(self) -> dict[str, Any]:
        """As values that JSON knows."""
        return asdict(self)


def read_phone(device: Device) -> PhoneFacts:
    """Raises As2dError: the device went away."""
    asks = [f'echo "{key}=$(getprop {name} 2>/dev/null)"' for key, name in _PROPERTIES.items()]
    asks += ['echo "kernel=$(uname -sr)"', 'echo "architecture=$(uname -m)"']
    told = dict(line.split("=", 1) for line in device.shell("; ".join(asks)).out if "=" in line)
    known = {key: told.get(key, "") for key in (*_PROPERTIES, "kernel", "architecture")}
    abis = tuple(filter(None, known.pop("abis").split(",")))
    return PhoneFacts(device.serial, abis=abis, **known)


def read_heat(device: Device) -> PhoneHeat:
    """Raises As2dError: the device went away."""
    asks = (f"dumpsys {service} 2>/dev/null" for service in ("battery", "thermalservice"))
    said = "\n".join(device.shell(f"; echo {_NEXT}; ".join(asks)).out)
    battery, _, thermal = said.partition(_NEXT)
    tenths, percent = _number(battery, "temperature"), _number(battery, "level")
    powers = re.findall(r"^ *\w+ powered: (true|false)$", battery, re.MULTILINE)
    status = _number(thermal, "Thermal Status")
    return PhoneHeat(
        battery_celsius=None if tenths is None else tenths / 10,
        battery_percent=percent,
        powered="true" in powers if powers else None,
        throttling=_STATUSES[status] if status is not None and status < len(_STATUSES) else None,
        sensors=tuple(_sensors(thermal.partition("Current temperatures")[2])),
    )


def _number(text: str, key: str) -> int | None:
    found = re.search(rf"^ *{key}: (\d+)$", text, re.MULTILINE)
    return int(found[1]) if found else None


def _sensors(text: str) -> Sequence[tuple[str, float]]:
    current = text.partition("Current cooling")[0]
    found = re.findall(r"mValue=(-?[\d.]+),.*?mName=([^,}]+)", current)
    return [(name, float(value)) for value, name in found]
