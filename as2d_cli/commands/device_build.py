"""``as2d device build``."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from as2d_cli.environment import Environment
from as2d_cli.errors import one_line

__all__ = ["add_build"]


def add_build(group: typer.Typer) -> None:
    """Adds the command to the group ``device``."""
    group.command("build")(_build)


def _build(
    ctx: typer.Context,
    force: Annotated[bool, typer.Option("--force", help="Build again what is there.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Nothing on standard error but errors.")
    ] = False,
) -> None:
    """Make what runs on a device of 64-bit ARM, and list it: digest, bytes, licence, file.

    It is compiled here with Debian's cross compiler, whose loader and C library travel along, or
    with the Android NDK that ANDROID_NDK_HOME names. ONNX Runtime's library is a published one.
    It is kept until the sources or the compiler change; the other commands make it when needed.
    """
    environment: Environment = ctx.obj
    from as2d_cli.catalog import default_store
    from as2d_cli.device.build import ensure_built
    from as2d_cli.output.talk import Talk

    talk = Talk(environment, quiet=quiet)
    store = default_store(variables=environment.variables.get)
    built = ensure_built(store.cache, environment.variables, talk.notice, force=force)
    if as_json:
        text = json.dumps(asdict(built) | {"folder": str(built.folder)}, indent=2)
        environment.stdout.write(text + "\n")
        return
    for file in built.files:
        cells = (file.sha256, str(file.size), file.licence, file.name, file.origin)
        environment.stdout.write("\t".join(map(one_line, cells)) + "\n")
    talk.notice(f"in {built.folder}, for {built.system}, started by {' '.join(built.start)}")
