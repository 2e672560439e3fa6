"""``as2d distill``."""

from __future__ import annotations

import math
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from as2d_cli.environment import Environment
from as2d_cli.errors import As2dError, ExitStatus

__all__ = ["register"]


_MOST_SEED = 2**32 - 1


class Method(StrEnum):
    """What ``--method`` takes."""

    ADAPTER = "adapter"
    CTC = "ctc"


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("distill")(_distill)


def _distill(
    ctx: typer.Context,
    *,
    audio: Annotated[
        list[Path],
        typer.Option(
            metavar="DIR", help="Recordings of English speech, without transcripts; repeatable."
        ),
    ],
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Gets head.npz and report.json; also the head's id.")
    ],
    target: Annotated[
        str, typer.Option(metavar="ID|PATH", help="The target to draft for.")
    ] = "whisper-base",
    init: Annotated[
        str, typer.Option(metavar="ID|PATH", help="The small Whisper to begin from.")
    ] = "whisper-tiny.en",
    held_out: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR", help="Judge by these; else some folders of --audio are held out."
        ),
    ] = None,
    hours: Annotated[
        float | None, typer.Option(min=0.01, metavar="N", help="Train on no more audio than this.")
    ] = None,
    method: Annotated[
        Method,
        typer.Option(help="adapter: before a small decoder; ctc: a whole draft in one pass."),
    ] = Method.ADAPTER,
    layers: Annotated[
        str, typer.Option(metavar="LIST", help="Which decoder layers of --init to take.")
    ] = "0,1,2,3",
    blocks: Annotated[int, typer.Option(min=0, max=8, help="Blocks of the adapter.")] = 4,
    pieces: Annotated[
        int, typer.Option(min=512, max=50_000, help="Tokens that the head knows.")
    ] = 16384,
    sketch: Annotated[
        bool,
        typer.Option(
            "--sketch/--no-sketch",
            help="Also a first guess at the letters, in one pass, that the head then verifies; "
            "takes many hours of audio to be of use.",
        ),
    ] = False,
    passes: Annotated[
        str, typer.Option(metavar="A,B", help="Passes of the adapter alone, and of the whole.")
    ] = "8,2",
    noise: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Noises, and room responses (*rir*), as WAV, to mix with."
        ),
    ] = None,
    vary: Annotated[
        bool, typer.Option("--vary/--no-vary", help="Vary speed, noise, room and telephone band.")
    ] = True,
    work: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="What is collected, and checkpoints; OUT/work by default."
        ),
    ] = None,
    cache_gb: Annotated[
        float, typer.Option(min=0.01, metavar="N", help="Collect no more than this on disk.")
    ] = 20.0,
    seed: Annotated[
        int,
        typer.Option(min=0, max=_MOST_SEED, metavar="N", help="Of everything random."),
    ] = 0,
    threads: Annotated[
        int, typer.Option(min=0, metavar="N", help="Of training; 0 for one a core.")
    ] = 0,
    offline: Annotated[bool, typer.Option("--offline", help="Never ask the network.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Nothing on standard error but errors.")
    ] = False,
) -> None:
    """Train a drafter that shares the target's encoder, from recordings alone.

    Interrupted and run again, it goes on where it was. Needs PyTorch: pip install 'as2d[distill]'.
    """
    environment: Environment = ctx.obj
    chosen = _numbers("--layers", layers)
    schedule = _numbers("--passes", passes)
    if len(schedule) != 2 or sum(schedule) == 0:
        raise As2dError(
            f"--passes {passes}: is not two numbers, one of them above 0",
            remedy="give A,B, such as 8,2",
            status=ExitStatus.USAGE,
        )
    for option, value in (("--hours", hours), ("--cache-gb", cache_gb)):
        if value is not None and not math.isfinite(value):
            raise As2dError(
                f"{option} {value}: is no number", remedy="give one", status=ExitStatus.USAGE
            )
    _require_torch()
    from as2d_cli.catalog import default_store
    from as2d_cli.distill.request import DistillRequest
    from as2d_cli.distill.session import distill
    from as2d_cli.output.distill_progress import DistillProgress

    request = DistillRequest(
        target=target,
        init=init,
        audio=tuple(audio),
        held_out=tuple(held_out or ()),
        variation=noise,
        vary=vary,
        out=out,
        work=work or out / "work",
        hours=hours,
        most_bytes=round(cache_gb * 2**30),
        method=method,
        layers=chosen,
        blocks=blocks,
        pieces=pieces,
        sketch=sketch,
        passes=(schedule[0], schedule[1]),
        seed=seed,
        threads=threads,
    )
    store = default_store(offline=offline or None)
    with DistillProgress(environment, quiet=quiet) as watch:
        distill(request, store, watch)
    environment.stdout.write(f"{out}\n")


def _numbers(option: str, text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise As2dError(
            f"{option} {text}: is not a list of numbers",
            remedy="give them with commas between, such as 0,1,2,3",
            status=ExitStatus.USAGE,
        )
    return tuple(int(part) for part in parts)


def _require_torch() -> None:
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise As2dError(
            "distill needs PyTorch, which is not installed",
            remedy="run: pip install 'as2d[distill]'",
            status=ExitStatus.UNAVAILABLE,
        ) from error
