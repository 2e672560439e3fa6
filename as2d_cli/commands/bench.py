"""``as2d bench``."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from as2d_cli.environment import Environment
from as2d_cli.errors import As2dError, ExitStatus
from as2d_cli.limits import MAX_BUDGET

if TYPE_CHECKING:
    from as2d_cli.bench.compare import Outcome

__all__ = ["register"]

_METHODS = ("target", "as2d")


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("bench")(_bench)


def _bench(
    ctx: typer.Context,
    sources: Annotated[
        list[Path],
        typer.Argument(metavar="MANIFEST|FILE|DIR", help="What to run on."),
    ],
    target: Annotated[str, typer.Option(metavar="ID|PATH", help="The target.")] = "whisper-base",
    methods: Annotated[
        str, typer.Option(metavar="LIST", help=f"Of {', '.join(_METHODS)}.")
    ] = "target,as2d",
    drafters: Annotated[
        str, typer.Option(metavar="LIST", help="Ids or paths of drafters.")
    ] = "whisper-tiny.en,moonshine-tiny-en",
    budgets: Annotated[str, typer.Option(metavar="LIST", help="Budgets of verify steps.")] = "8",
    language: Annotated[
        str | None,
        typer.Option(metavar="CODE", help="Only clips in this language; of clips that do not say."),
    ] = None,
    repeat: Annotated[int, typer.Option(min=1, help="Go through all clips this often.")] = 1,
    json: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write everything counted here.")
    ] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Never ask the network for a model.")
    ] = False,
) -> None:
    """Compare strategies on the same audio, and check that all of them say the same.

    The reference is the target alone in exact mode. Status 1 when any window of a strategy that
    must be exact differs from it.
    """
    environment: Environment = ctx.obj
    names = _list("--methods", methods, _METHODS)
    sizes = [_budget(text) for text in _list("--budgets", budgets)]
    outcomes = _run(
        environment,
        sources,
        target,
        names,
        _list("--drafters", drafters),
        sizes,
        language,
        repeat,
        offline,
    )
    if json is not None:
        _write_json(json, outcomes)
    differing = [o for o in outcomes if o.contender.exact and (o.differing or o.lost)]
    for outcome in differing:
        for clip, window in outcome.differing:
            environment.talk(f"{outcome.contender.label}: {clip} window {window} differs")
        for message in outcome.lost:
            environment.talk(f"{outcome.contender.label}: the drafter failed: {message}")
    if differing:
        raise typer.Exit(ExitStatus.FAILURE)


def _run(
    environment: Environment,
    sources: list[Path],
    target: str,
    methods: list[str],
    drafters: list[str],
    budgets: list[int],
    language: str | None,
    repeat: int,
    offline: bool,
) -> list[Outcome]:
    from rich.console import Console

    from as2d_cli.bench.compare import compare, contenders
    from as2d_cli.bench.dataset import Clip, load_clips
    from as2d_cli.bench.report import print_table
    from as2d_cli.output.talk import Talk
    from as2d_cli.tasks.models import default_backend

    clips = load_clips(sources)
    if language is not None:
        clips = [clip for clip in clips if (clip.language or language) == language]
        if not clips:
            raise As2dError(f"no clips in language {language}", status=ExitStatus.USAGE)
    backend = environment.backend or default_backend(Talk(environment, quiet=False))
    bundle = backend.ensure(target, offline)
    wanted = drafters if "as2d" in methods else []
    drafter_bundles = {name: backend.ensure(name, offline) for name in wanted}
    entrants = contenders(methods, wanted, budgets, bundle.row_invariance)
    outcomes: list[Outcome] = []

    def report(done: int, of: int, clip: Clip) -> None:
        if environment.stderr.is_terminal:
            environment.stderr.say(f"\r\x1b[K{done + 1} of {of}: {clip.path.name}")

    try:
        for outcomes in compare(  # noqa: B007 -- the last ones are what is wanted
            clips,
            entrants,
            bundle,
            drafter_bundles,
            repeat=repeat,
            default_language=language or "en",
            report=report,
            skipped=lambda error: environment.talk(f"left out: {error}"),
        ):
            pass
    except KeyboardInterrupt:
        environment.talk("interrupted: what follows is of the clips that were done")
        if not outcomes:
            raise
    finally:
        if environment.stderr.is_terminal:
            environment.stderr.say("\r\x1b[K")
    width = environment.width if environment.stdout.is_terminal else 200
    page = io.StringIO()
    print_table(outcomes, Console(file=page, width=width, highlight=False))
    environment.stdout.write(page.getvalue())
    return outcomes


def _list(option: str, text: str, known: tuple[str, ...] | None = None) -> list[str]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    for part in parts:
        if known is not None and part not in known:
            raise As2dError(
                f"{option} {part}: there is no such method",
                remedy=f"choose from {', '.join(known)}",
                status=ExitStatus.USAGE,
            )
    if not parts:
        raise As2dError(f"{option} is empty", status=ExitStatus.USAGE)
    return parts


def _budget(text: str) -> int:
    if text.isascii() and text.isdigit() and 1 <= int(text) <= MAX_BUDGET:
        return int(text)
    raise As2dError(
        f"--budgets {text}: not a number from 1 to {MAX_BUDGET}", status=ExitStatus.USAGE
    )


def _write_json(path: Path, outcomes: list[Outcome]) -> None:
    import json as json_module

    from as2d_cli.bench.report import as_json
    from as2d_cli.output.file import ResultFile

    with ResultFile(path, "--json") as result:
        result.out.write(json_module.dumps(as_json(outcomes), indent=1, allow_nan=False) + "\n")
        result.keep()
