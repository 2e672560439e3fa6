"""The options that commands have in common which can work on a device."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from as2d_cli.errors import As2dError, ExitStatus

if TYPE_CHECKING:
    from as2d_cli.device.opened import DeviceRequest

__all__ = [
    "FOLDER",
    "SECONDS",
    "Cool",
    "Folder",
    "Keep",
    "OnDevice",
    "Seconds",
    "Serial",
    "device_request",
]

FOLDER = "/data/local/tmp/as2d"
"""Where the shell of every Android device may write, and run programs from."""

SECONDS = 3600.0

_OPTION = "--device"
_BELONGING = ("device_dir", "device_seconds", "keep", "cool_down")

Serial = Annotated[
    str | None,
    typer.Option(
        metavar="[SERIAL]",
        help="Run on a phone or board that adb knows; without SERIAL, ANDROID_SERIAL or the only "
        "one.",
    ),
]
Folder = Annotated[
    str, typer.Option(metavar="DIR", help="With --device: its folder for all that is copied.")
]
Seconds = Annotated[
    float,
    typer.Option(min=1, metavar="N", help="With --device: seconds that all of it may take."),
]
Keep = Annotated[
    bool,
    typer.Option("--keep/--no-keep", help="With --device: leave there what was copied."),
]
Cool = Annotated[
    float | None,
    typer.Option(
        min=1,
        metavar="CELSIUS",
        help="With --device: before each run wait, for 5 minutes at most, until no sensor says "
        "more.",
    ),
]


class OnDevice(TyperCommand):
    """A command whose option ``--device`` may stand without a value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        given: list[str] = []
        for word, following in zip(args, [*args[1:], None], strict=True):
            given.append(word)
            if word == "--":
                return super().parse_args(ctx, given + args[len(given) :])
            if word == _OPTION and (following is None or following.startswith("-")):
                given.append("")
        return super().parse_args(ctx, given)


def device_request(
    ctx: typer.Context,
    serial: str | None,
    folder: str,
    seconds: float,
    *,
    keep: bool = True,
    cool: float | None = None,
) -> DeviceRequest | None:
    """What is asked of a device; None where the work is done here.

    Raises:
        As2dError: status USAGE; an option for a device is given without one, or a file is taken
            for a device.
    """
    from as2d_cli.device.opened import DeviceRequest

    if serial is None:
        for name in _BELONGING:
            source = ctx.get_parameter_source(name)
            if source is not None and source.name == "COMMANDLINE":
                raise As2dError(
                    f"--{name.replace('_', '-')} is for a device",
                    remedy=f"give {_OPTION}, too, or leave it out",
                    status=ExitStatus.USAGE,
                )
        return None
    if serial and ("/" in serial or Path(serial).exists()):
        raise As2dError(
            f"{_OPTION} {serial} is a file and no device",
            remedy=f"put {_OPTION} behind it, or write {_OPTION} SERIAL",
            status=ExitStatus.USAGE,
        )
    return DeviceRequest(serial or None, folder, seconds, keep=keep, cool=cool)
