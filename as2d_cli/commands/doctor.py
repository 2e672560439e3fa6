"""``as2d doctor``."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from as2d_cli.environment import Environment
from as2d_cli.errors import ExitStatus, one_line

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("doctor")(_doctor)


def _doctor(
    ctx: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON array.")] = False,
) -> None:
    """Show what is on this machine and what would run: cores, libraries, models, settings."""
    environment: Environment = ctx.obj
    from as2d_cli.tasks.diagnosis import examine

    findings = list(examine(environment))
    if as_json:
        rows = [{"topic": f.topic, "text": f.text, "ok": f.ok} for f in findings]
        environment.stdout.write(json.dumps(rows, ensure_ascii=False, indent=2) + "\n")
    else:
        width = max(len(f.topic) for f in findings)
        for f in findings:
            mark = "" if f.ok else "FAILED: "
            environment.stdout.write(f"{f.topic.ljust(width)}  {mark}{one_line(f.text)}\n")
    if not all(f.ok for f in findings):
        raise typer.Exit(ExitStatus.FAILURE)
