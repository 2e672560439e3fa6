"""From what the user says of a device to a runner that is ready on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Protocol

from as2d_cli.device.adb import Adb
from as2d_cli.device.phone import PhoneFacts, PhoneHeat, read_heat, read_phone
from as2d_cli.device.place import Parcel, Place, Sent
from as2d_cli.device.results import DeviceMachine
from as2d_cli.device.runner import Kit, Runner
from as2d_cli.errors import As2dError, ExitStatus

__all__ = ["DeviceRequest", "DeviceWatch", "Opened", "open_device", "open_place"]

_ABI = "arm64-v8a"
_ARCHITECTURE = "aarch64"


@dataclass(frozen=True)
class DeviceRequest:
    """What is asked of a device.

    Attributes:
        serial: None for $ANDROID_SERIAL or the only one there is.
        folder: on the device, for all that is copied.
        seconds: that a run may take in all.
        keep: leave there what was copied.
        cool: degrees Celsius that no sensor may be above when a turn begins; None for any.
    """

    serial: str | None
    folder: str
    seconds: float
    keep: bool = True
    cool: float | None = None


class DeviceWatch(Protocol):
    """Who is told of the way to the device."""

    def copying(self, parcel: Parcel, left: int) -> None:
        """See `as2d_cli.device.place.Watch`."""

    def copied(self, sent: Sent) -> None:
        """A delivery is complete."""


@dataclass(frozen=True)
class Opened:
    """A device with a runner on it. All calls block."""

    phone: PhoneFacts
    place: Place
    runner: Runner
    watch: DeviceWatch

    def send(self, parcels: Sequence[Parcel]) -> None:
        """See `Place.send`."""
        self.watch.copied(self.place.send(parcels, self.watch))

    def facts(self) -> DeviceMachine:
        """What the runner says of the machine.

        Raises:
            As2dError: it cannot run there, or cannot load its library.
        """
        machine = self.runner.facts()
        if machine.problem is not None:
            raise As2dError(
                f"ONNX Runtime cannot be loaded on {self.phone.name}: {machine.problem}",
                status=ExitStatus.UNAVAILABLE,
            )
        return machine

    def heat(self) -> PhoneHeat:
        """How warm it is."""
        return read_heat(self.place.device)


def open_place(request: DeviceRequest, variables: Mapping[str, str]) -> tuple[PhoneFacts, Place]:
    """The device that is meant, and its folder, which is there afterwards.

    Raises:
        As2dError: there is no such device, it cannot be used, or is not 64-bit ARM.
    """
    device = Adb.find(variables).device(request.serial)
    phone = read_phone(device)
    if _ABI not in phone.abis and phone.architecture != _ARCHITECTURE:
        what = ", ".join(phone.abis) or phone.architecture or "of an unknown kind"
        raise As2dError(
            f"device {phone.name} is {what}",
            remedy="take one of 64-bit ARM",
            status=ExitStatus.UNAVAILABLE,
        )
    place = Place(device, request.folder)
    place.make()
    return phone, place


@contextmanager
def open_device(
    request: DeviceRequest,
    variables: Mapping[str, str],
    kit: Callable[[], Kit],
    watch: DeviceWatch,
) -> Iterator[Opened]:
    """Sends the runner. Afterwards its place is cleaned, unless it is to be kept.

    Args:
        kit: makes what is sent; called when the device is there.

    Raises:
        As2dError: as `open_place` and `kit`, or it cannot be sent.
    """
    phone, place = open_place(request, variables)
    made = kit()
    opened = Opened(phone, place, Runner(place, made), watch)
    try:
        opened.send(made.parcels)
        yield opened
    finally:
        if not request.keep:
            # What went wrong before matters more.
            with suppress(As2dError):
                place.clean()
