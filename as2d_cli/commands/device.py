"""``as2d device``: phones and boards that adb knows, and what as2d keeps on them."""

from __future__ import annotations

import json as json_module
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from as2d_cli.commands.device_build import add_build
from as2d_cli.commands.device_options import FOLDER, SECONDS
from as2d_cli.environment import Environment
from as2d_cli.errors import ExitStatus, one_line

if TYPE_CHECKING:
    from as2d_cli.device.opened import DeviceRequest, Opened
    from as2d_cli.device.runner import Kit

__all__ = ["device_app", "open_for", "register"]

device_app = typer.Typer(
    name="device", no_args_is_help=True, help="Phones and boards that adb knows, for --device."
)

Serial = Annotated[
    str | None,
    typer.Option("--device", metavar="SERIAL", help="Else ANDROID_SERIAL, or the only one."),
]
Folder = Annotated[
    str, typer.Option("--device-dir", metavar="DIR", help="Its folder for all that is copied.")
]


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.add_typer(device_app)


add_build(device_app)


@device_app.command("list")
def list_devices(
    ctx: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON array.")] = False,
) -> None:
    """List the devices that adb knows, whether or not they can be used."""
    environment: Environment = ctx.obj
    from as2d_cli.device.adb import Adb, remedy
    from as2d_cli.device.phone import read_phone

    adb = Adb.find(environment.variables)
    rows = []
    for one in adb.devices():
        phone = read_phone(adb.device(one.serial)).as_json() if one.ready else None
        rows.append({"serial": one.serial, "state": one.state, "phone": phone})
        if not as_json:
            named = (phone["manufacturer"], phone["model"], phone["soc"]) if phone else ()
            words = " ".join(filter(None, named)) or one.model
            cells = (one.serial, one.state, words)
            environment.stdout.write("\t".join(map(one_line, cells)).rstrip("\t") + "\n")
        if not one.ready:
            environment.talk(f"{one.serial} is {one.state}: {remedy(one.state)}")
    if as_json:
        environment.stdout.write(json_module.dumps(rows, indent=2) + "\n")
    elif not rows:
        environment.talk(f"no device; {remedy('')}")


@device_app.command("push")
def push(
    ctx: typer.Context,
    ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="ID|PATH", help="Models; without, those of transcribe."),
    ] = None,
    *,
    serial: Serial = None,
    folder: Folder = FOLDER,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Nothing on standard error but errors.")
    ] = False,
    offline: Annotated[
        bool, typer.Option("--offline", help="Never ask the network for a model.")
    ] = False,
) -> None:
    """Copy the runner and models to a device; what is there already is left alone.

    Lists all that is there afterwards for as2d: digest, bytes, licence, file.
    """
    environment: Environment = ctx.obj
    from as2d_cli.device.deliver import bundle_parcels
    from as2d_cli.device.opened import DeviceRequest
    from as2d_cli.output.talk import Talk
    from as2d_cli.tasks.models import AUTO, default_backend, drafter_name

    backend = environment.backend or default_backend(Talk(environment, quiet=quiet))
    target = "whisper-base"
    wanted = ids or [target, *filter(None, [drafter_name(AUTO, target, None, backend)])]
    models = [backend.ensure(name, offline) for name in wanted]
    request = DeviceRequest(serial, folder, SECONDS)
    with open_for(environment, request, quiet=quiet) as opened:
        parcels = [parcel for model in models for parcel in bundle_parcels(model)]
        opened.send(parcels)
        for parcel in [*opened.runner.parcels, *parcels]:
            name = opened.place.path(parcel.name)
            cells = (parcel.sha256, str(parcel.size), parcel.licence, name)
            environment.stdout.write("\t".join(map(one_line, cells)) + "\n")


@device_app.command("shell-check")
def shell_check(ctx: typer.Context, *, serial: Serial = None, folder: Folder = FOLDER) -> None:
    """Prove that a device can do what as2d needs: shell, folder, programs, runner, sensors."""
    environment: Environment = ctx.obj
    from as2d_cli.device.check import check_device
    from as2d_cli.device.opened import DeviceRequest
    from as2d_cli.output.device_talk import DeviceTalk

    request = DeviceRequest(serial, folder, SECONDS)
    failed = 0
    talk = DeviceTalk(environment, "the device")
    for result in check_device(request, environment.variables, partial(_kit, environment), talk):
        failed += not result.ok
        cells = (result.name, "ok" if result.ok else "FAILED", one_line(result.detail))
        environment.stdout.write("\t".join(cells) + "\n")
        environment.stdout.flush()
    if failed:
        raise typer.Exit(ExitStatus.FAILURE)


@device_app.command("clean")
def clean(ctx: typer.Context, *, serial: Serial = None, folder: Folder = FOLDER) -> None:
    """Delete all that as2d has copied to a device."""
    environment: Environment = ctx.obj
    from as2d_cli.device.adb import Adb
    from as2d_cli.device.place import Place

    place = Place(Adb.find(environment.variables).device(serial), folder)
    place.clean()
    environment.talk(f"{place.folder} on {place.device.serial} is deleted")


@contextmanager
def open_for(
    environment: Environment, request: DeviceRequest, *, quiet: bool = False
) -> Iterator[Opened]:
    """The device, with what is built for it here.

    Raises:
        As2dError: as `open_device`, or something to build it with is missing.
    """
    from as2d_cli.device.opened import open_device
    from as2d_cli.output.device_talk import DeviceTalk

    talk = DeviceTalk(environment, request.serial or "the device", quiet=quiet)
    make = partial(_kit, environment, quiet=quiet)
    with open_device(request, environment.variables, make, talk) as opened:
        yield opened


def _kit(environment: Environment, *, quiet: bool = False) -> Kit:
    """What a device gets beside models; built here, if need be."""
    if environment.kit is not None:
        return environment.kit
    from as2d_cli.catalog import default_store
    from as2d_cli.device.build import ensure_built
    from as2d_cli.device.runner import kit_of
    from as2d_cli.output.talk import Talk

    talk = Talk(environment, quiet=quiet)
    store = default_store(variables=environment.variables.get)
    return kit_of(ensure_built(store.cache, environment.variables, talk.notice))
