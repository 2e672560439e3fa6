"""What a person is told of the way to a device."""

from __future__ import annotations

from as2d_cli.device.place import Parcel, Sent
from as2d_cli.environment import Environment

__all__ = ["DeviceTalk"]


class DeviceTalk:
    """See `as2d_cli.device.opened.DeviceWatch`: a line before the first file of a delivery."""

    def __init__(self, environment: Environment, device: str, *, quiet: bool = False) -> None:
        self._environment, self._device, self._quiet = environment, device, quiet
        self._begun = False

    def copying(self, parcel: Parcel, left: int) -> None:
        if not self._begun and not self._quiet:
            self._environment.talk(f"copying {left / 1e6:.1f} MB to {self._device}")
        self._begun = True

    def copied(self, sent: Sent) -> None:
        self._begun = False
