"""``as2d transcribe``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from as2d_cli.environment import Environment
from as2d_cli.errors import As2dError, ExitStatus
from as2d_cli.limits import MAX_BUDGET, MAX_THREADS, MAX_WINDOWS
from as2d_cli.methods import TOGETHER
from as2d_cli.output.formats import Format, renderer

if TYPE_CHECKING:
    from as2d_cli.catalog import Progress
    from as2d_cli.output.renderer import Writer
    from as2d_cli.output.talk import Talk
    from as2d_cli.tasks.models import ModelRequest
    from as2d_cli.tasks.transcription import TranscribeOptions

__all__ = ["register"]

_MOST_TOKENS = 1_000_000
"""Beyond any model's context, which is the limit that counts."""


class Method(StrEnum):
    """What ``--method`` takes: those of `as2d_cli.methods`, and to leave it to the cores."""

    AUTO = "auto"
    TARGET = "target"
    AS2D = "as2d"
    BATCHED = "batched"
    COUPLED = "coupled"
    ADAPTIVE = "adaptive"
    PEARL = "pearl"
    MULTI = "multi"
    LOOKUP = "lookup"


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("transcribe")(_transcribe)


def _transcribe(
    ctx: typer.Context,
    *,
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="Audio or video files; - reads standard input."),
    ],
    format: Annotated[
        Format, typer.Option("--format", "-f", help="txt: a line per window; json: all there is.")
    ] = Format.TXT,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write here, whole or not at all; - is standard output.",
        ),
    ] = None,
    target: Annotated[
        str, typer.Option(metavar="ID|PATH", help="Model whose text you get.")
    ] = "whisper-base",
    drafter: Annotated[
        str,
        typer.Option(
            metavar="ID|PATH|auto|none",
            help="Small model that runs ahead of the target; auto: what suits target and language; "
            "none: no drafts.",
        ),
    ] = "auto",
    method: Annotated[
        Method,
        typer.Option(
            help="as2d: the target verifies drafts; target: it goes alone; batched: alone on "
            "several windows at a time; auto: by the cores. The others are there to compare with.",
        ),
    ] = Method.AUTO,
    budget: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help=f"Most candidates per verify step, or windows of batched, 1 to {MAX_BUDGET}.",
            show_default="8, or 4 windows",
        ),
    ] = None,
    windows: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help=f"Windows of a recording that are decoded in one batch, 1 to {MAX_WINDOWS}; for "
            f"{', '.join(TOGETHER)}.",
            show_default="what suits",
        ),
    ] = None,
    target_cores: Annotated[
        str | None,
        typer.Option(
            metavar="LIST", help="Cores of the target lane, as 0-3,5.", show_default="auto"
        ),
    ] = None,
    draft_cores: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="Cores of the draft lane.", show_default="auto"),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Most threads of both lanes together.", show_default="all cores"
        ),
    ] = None,
    pin: Annotated[
        bool, typer.Option("--pin/--no-pin", help="Bind each thread to its core.")
    ] = True,
    plan: Annotated[
        str,
        typer.Option(
            metavar="auto|FILE",
            help="auto: by what as2d profile measured here, else by rule; or a plan that it wrote. "
            "Options given beside it count.",
        ),
    ] = "auto",
    language: Annotated[
        str,
        typer.Option(metavar="CODE|auto", help="Language spoken; auto: found in the first window."),
    ] = "auto",
    max_tokens: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Most tokens per window.",
            show_default="what the model's context holds",
        ),
    ] = None,
    tokens: Annotated[bool, typer.Option("--tokens", help="Token ids in json.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Nothing on standard error but errors.")
    ] = False,
    offline: Annotated[
        bool, typer.Option("--offline", help="Never ask the network for a model.")
    ] = False,
) -> None:
    """Turn speech into text.

    Words appear on standard output as soon as the target has verified them.
    """
    environment: Environment = ctx.obj
    if files.count("-") > 1:
        raise As2dError(
            "standard input ('-') can be read only once",
            remedy="name it once",
            status=ExitStatus.USAGE,
        )
    if output == "-":
        output = None
    if budget is not None:
        _within("--budget", budget, 1, MAX_WINDOWS if method is Method.BATCHED else MAX_BUDGET)
    if windows is not None:
        _within("--windows", windows, 1, MAX_WINDOWS)
    if threads is not None:
        _within("--threads", threads, 1, MAX_THREADS)
    if max_tokens is not None:
        _within("--max-tokens", max_tokens, 1, _MOST_TOKENS)
    if output is None and environment.stdout.raw is None:
        raise As2dError("standard output is closed", remedy="give --output FILE")

    from as2d_cli.profile.plan_file import by_plan
    from as2d_cli.tasks.models import AUTO, ModelRequest
    from as2d_cli.tasks.transcription import TranscribeOptions

    # Whoever names a drafter wants it used.
    named = drafter not in (AUTO, "none")
    request = ModelRequest(
        target=target,
        drafter=None if drafter == "none" else drafter,
        method="as2d" if method is Method.AUTO and named else method.value,
        budget=budget,
        target_cores=target_cores,
        draft_cores=draft_cores,
        windows=windows,
        threads=threads,
        pin=pin,
        offline=offline,
    )
    request = by_plan(request, plan)
    options = TranscribeOptions(
        language=None if language == "auto" else language.lower(), max_tokens=max_tokens
    )
    failures = _run(
        environment,
        files,
        format=format,
        output=output,
        tokens=tokens,
        quiet=quiet,
        request=request,
        options=options,
    )
    if failures:
        raise typer.Exit(ExitStatus.FAILURE)


def _run(
    environment: Environment,
    files: list[str],
    *,
    format: Format,
    output: str | None,
    tokens: bool,
    quiet: bool,
    request: ModelRequest,
    options: TranscribeOptions,
) -> int:
    """Puts the parts together; returns how many inputs failed."""
    from as2d_cli.output.file import ResultFile
    from as2d_cli.tasks.models import default_backend
    from as2d_cli.tasks.transcription import transcribe

    shared = output is None and environment.shared_terminal
    with contextlib.ExitStack() as stack:
        result = None
        if output is not None:
            _refuse_input(output, files)
            result = stack.enter_context(ResultFile(Path(output)))
        talk, out = stack.enter_context(
            _streams(environment, quiet, shared, format, result.out if result else None)
        )
        backend = environment.backend or default_backend(talk, _bars(environment, talk))
        done = transcribe(
            files,
            request,
            options,
            sink=renderer(format, out, tokens=tokens),
            monitor=talk,
            backend=backend,
            stdin=environment.stdin,
        )
        if result is not None and done:
            result.keep()
    return talk.failures


@contextlib.contextmanager
def _streams(
    environment: Environment, quiet: bool, shared: bool, format: Format, file: Writer | None
) -> Iterator[tuple[Talk, Writer]]:
    """Who talks, and where the result goes."""
    from as2d_cli.output.talk import Talk

    out: Writer = file if file is not None else environment.stdout
    if quiet or not environment.stderr.is_terminal or environment.dumb:
        yield Talk(environment, quiet=quiet), out
        return
    from as2d_cli.output.dashboard import Dashboard, SharedTerminal

    streamed_here = shared and format is Format.TXT
    dashboard = Dashboard(environment, words=not streamed_here)
    try:
        yield dashboard, SharedTerminal(environment.stdout, dashboard) if shared else out
    finally:
        dashboard.close()


def _within(option: str, value: int, least: int, most: int) -> None:
    # Not Typer's own check: its words change from version to version.
    if not least <= value <= most:
        raise As2dError(
            f"{option} {value} is out of range",
            remedy=f"choose {least} to {most}",
            status=ExitStatus.USAGE,
        )


def _bars(environment: Environment, talk: Talk) -> Progress | None:
    """Download bars, where a live display is welcome."""
    if not talk.live:
        return None
    from as2d_cli.output.download_bars import DownloadBars

    return DownloadBars(environment)


def _refuse_input(output: str, files: list[str]) -> None:
    for name in files:
        with contextlib.suppress(OSError, ValueError):
            if name != "-" and Path(name).samefile(output):
                raise As2dError(
                    f"--output {output} is an input as well",
                    remedy="choose another name",
                    status=ExitStatus.USAGE,
                )
