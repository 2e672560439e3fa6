"""``as2d bench``."""

from __future__ import annotations

import json as json_module
from contextlib import ExitStack
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from as2d_cli.commands.checks import usage
from as2d_cli.commands.device_options import (
    FOLDER,
    SECONDS,
    Cool,
    Folder,
    Keep,
    OnDevice,
    Seconds,
    Serial,
    device_request,
)
from as2d_cli.environment import Environment
from as2d_cli.errors import As2dError, ExitStatus
from as2d_cli.limits import MAX_BUDGET, MAX_THREADS, MAX_WINDOWS
from as2d_cli.methods import METHODS, TOGETHER

if TYPE_CHECKING:
    from as2d_cli.bench.results import Results
    from as2d_cli.bench.session import BenchRequest
    from as2d_cli.bench.summary import Row
    from as2d_cli.decoding.plan import PlanRequest
    from as2d_cli.device.opened import DeviceRequest
    from as2d_cli.output.file import ResultFile
    from as2d_cli.tasks.models import ModelRequest

__all__ = ["register"]


class By(StrEnum):
    """What ``--by`` takes."""

    WINDOW = "window"
    RECORDING = "recording"


class Task(StrEnum):
    """What ``--task`` takes."""

    TRANSCRIBE = "transcribe"
    ASK = "ask"


@dataclass(frozen=True)
class _Usual:
    """What a task runs with unless told otherwise."""

    target: str
    methods: str
    drafters: str


_USUAL = {
    Task.TRANSCRIBE: _Usual(
        "whisper-base", "target,as2d", "whisper-tiny.en,moonshine-tiny-en,oracle"
    ),
    Task.ASK: _Usual("qwen2.5-coder-1.5b-instruct", "target,lookup", "oracle"),
}


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("bench", cls=OnDevice)(_bench)


def _bench(
    ctx: typer.Context,
    *,
    sources: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="MANIFEST|FILE|DIR", help="What to run on; nothing for a few known clips."
        ),
    ] = None,
    task: Annotated[
        Task,
        typer.Option(help="ask: questions about the clips, which a language model answers."),
    ] = Task.TRANSCRIBE,
    questions: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Questions of --task ask, one a line, a category before a tab.",
            show_default="six of two kinds",
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="ID|PATH", help="The target.", show_default=_USUAL[Task.TRANSCRIBE].target
        ),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help=f"Of {', '.join(METHODS)}.",
            show_default=_USUAL[Task.TRANSCRIBE].methods,
        ),
    ] = None,
    drafters: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Ids or paths; oracle replays the target's own text, the most there is to gain.",
            show_default=_USUAL[Task.TRANSCRIBE].drafters,
        ),
    ] = None,
    budgets: Annotated[
        str, typer.Option(metavar="LIST", help=f"Budgets of verify steps, 1 to {MAX_BUDGET}.")
    ] = "8",
    windows: Annotated[
        str,
        typer.Option(
            metavar="LIST",
            help=f"Windows of a recording in a batch, 1 to {MAX_WINDOWS}, for "
            f"{', '.join(TOGETHER)}; with --by recording.",
        ),
    ] = "1",
    by: Annotated[
        By,
        typer.Option(help="Time each window alone, or recordings, so that lanes may work ahead."),
    ] = By.WINDOW,
    repeat: Annotated[int, typer.Option(min=1, metavar="N", help="Rounds over all clips.")] = 1,
    language: Annotated[
        str | None,
        typer.Option(metavar="CODE", help="Only clips in this language; of clips that do not say."),
    ] = None,
    memory: Annotated[
        bool, typer.Option("--memory/--no-memory", help="Measure peak memory at the end.")
    ] = True,
    json: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write everything measured here.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page with charts here.")
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write what the lanes did when, for a trace viewer."),
    ] = None,
    alignment: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write what drafts are worth here, for as2d profile."),
    ] = None,
    plan: Annotated[
        str | None,
        typer.Option(
            metavar="auto|FILE",
            help="One more contender: what transcribe would do, or a plan of as2d profile.",
        ),
    ] = None,
    target_cores: Annotated[
        str | None, typer.Option(metavar="LIST", help="Cores of all target lanes, as 0-3,5.")
    ] = None,
    draft_cores: Annotated[
        str | None, typer.Option(metavar="LIST", help="Cores of all draft lanes.")
    ] = None,
    threads: Annotated[
        int | None, typer.Option(metavar="N", help="Most threads of both lanes together.")
    ] = None,
    pin: Annotated[
        bool, typer.Option("--pin/--no-pin", help="Bind each thread to its core.")
    ] = True,
    offline: Annotated[
        bool, typer.Option("--offline", help="Never ask the network for a model.")
    ] = False,
    device: Serial = None,
    device_dir: Folder = FOLDER,
    device_seconds: Seconds = SECONDS,
    keep: Keep = True,
    cool_down: Cool = None,
) -> None:
    """Compare strategies on the same audio, and check that all of them say the same.

    With --task ask the default models are those of as2d ask, methods target,lookup and drafters
    oracle; each question is timed alone, prompt included.

    The reference is the target alone in exact mode. Status 1 when any window of a strategy that
    must be exact differs from it, or a drafter fails.

    \b
    Columns; a narrow terminal shows the first ones that fit:
      ratio, 95 %       seconds of the target alone over own ones, above 1 is faster;
                        bounds for other audio of the kind
      real time         seconds of audio a second
      exact             yes, or how many windows differ from the reference
      slower            windows that took longer than the target alone
      accepted, length  candidates accepted: of all, and in a verify step
      alone             steps of the target without candidates
      memory            peak of a process that does nothing else
      of best           throughput over that of knowing, window by window, what is fastest
      WER               word error rate, where texts are known
      p50, p95          seconds a window
      mean              geometric mean of the windows' ratios
      error             seconds that as2d profile predicts, over those measured
      lead              drafted tokens that are ready at a verify step
      realigned         times that candidates began elsewhere than the last left off
    """
    from as2d_cli.bench.questions import load_questions
    from as2d_cli.bench.session import BenchRequest
    from as2d_cli.decoding.plan import PlanRequest
    from as2d_cli.output.file import result_files
    from as2d_cli.profile.plan_file import by_plan
    from as2d_cli.tasks.models import AUTO, ModelRequest

    environment: Environment = ctx.obj
    if threads is not None:
        _number("--threads", str(threads), MAX_THREADS)
    asked = PlanRequest(
        target_cores=target_cores, draft_cores=draft_cores, threads=threads, pin=pin
    )
    usual = _USUAL[task]
    target = target or usual.target
    if task is not Task.ASK and questions is not None:
        raise usage("--questions are of --task ask", "add it")
    if task is Task.ASK and by is By.RECORDING:
        raise usage("--by recording: each question is timed alone", "leave it out")
    if task is Task.ASK and alignment is not None:
        raise usage("--alignment: answers are not aligned with audio", "leave it out")
    if task is Task.ASK and device is not None:
        raise usage("--device: questions are answered on this machine only", "leave it out")
    speech = ModelRequest(
        _USUAL[Task.TRANSCRIBE].target,
        AUTO,
        method=AUTO,
        threads=threads,
        pin=pin,
        offline=offline,
    )
    request = BenchRequest(
        sources=sources or [],
        target=target,
        methods=_list("--methods", methods or usual.methods, METHODS),
        drafters=_list("--drafters", drafters or usual.drafters),
        budgets=[_number("--budgets", text, MAX_BUDGET) for text in _list("--budgets", budgets)],
        windows=[_number("--windows", text, MAX_WINDOWS) for text in _list("--windows", windows)],
        repeat=repeat,
        whole=by is By.RECORDING,
        language=language,
        offline=offline,
        spans=html is not None or trace is not None,
        memory=memory,
        asked=asked,
        planned=None if plan is None else by_plan(_planned(task, target, asked, offline), plan),
        alignment=alignment is not None,
        questions=load_questions(questions) if task is Task.ASK else None,
        speech=speech if task is Task.ASK else None,
    )
    there = device_request(ctx, device, device_dir, device_seconds, keep=keep, cool=cool_down)
    wanted = {"--json": json, "--html": html, "--trace": trace, "--alignment": alignment}
    with ExitStack() as stack:
        files = result_files(stack, wanted)
        _run(environment, request, there, _command_line(ctx), files)


def _planned(task: Task, target: str, asked: PlanRequest, offline: bool) -> ModelRequest:
    """What the task's own command would ask for."""
    from as2d_cli.tasks.asking import answering
    from as2d_cli.tasks.models import AUTO, ModelRequest

    own = ModelRequest(target, AUTO, AUTO) if task is Task.TRANSCRIBE else answering(target)
    return replace(
        own,
        target_cores=asked.target_cores,
        draft_cores=asked.draft_cores,
        threads=asked.threads,
        pin=asked.pin,
        offline=offline,
    )


def _run(
    environment: Environment,
    request: BenchRequest,
    device: DeviceRequest | None,
    command: list[str],
    files: dict[str, ResultFile],
) -> None:
    from as2d_cli.bench.session import Session
    from as2d_cli.output.bench_progress import BenchProgress
    from as2d_cli.output.talk import Talk
    from as2d_cli.tasks.models import default_backend

    backend = environment.backend or default_backend(Talk(environment, quiet=False))
    watch = BenchProgress(environment)
    stopped: BaseException | None = None
    with ExitStack() as stack:
        if device is None:
            session = Session(request, backend, watch)
        else:
            from as2d_cli.catalog import default_store
            from as2d_cli.commands.device import open_for
            from as2d_cli.device.bench import DeviceSession
            from as2d_cli.device.known import Nothing, Saved

            known = Saved(default_store()) if environment.backend is None else Nothing()
            opened = stack.enter_context(open_for(environment, device))
            session = DeviceSession(request, backend, watch, opened, device, known)
        stack.callback(watch.close)
        try:
            session.run()
        except (KeyboardInterrupt, As2dError) as error:
            if not session.results.samples:
                raise
            stopped = error
    if stopped is not None:
        environment.talk("not complete: what follows is what was measured so far")
    rows = _report(environment, session.results)
    if files:
        _write(files, session.results, rows, request, command)
    if stopped is not None:
        raise stopped
    if _failed(environment, session.results):
        raise typer.Exit(ExitStatus.FAILURE)


def _report(environment: Environment, results: Results) -> list[Row]:
    from as2d_cli.bench.report import print_report
    from as2d_cli.bench.summary import by_kind, summarise
    from as2d_cli.bench.wer import can_count, word_error_rate
    from as2d_cli.output.console import print_page

    counted = can_count()
    rows = summarise(results, word_error_rate if counted else None)
    parts = by_kind(results)
    wide = not environment.stdout.is_terminal
    print_page(
        environment,
        lambda console: print_report(
            results, rows, console, wide=wide, errors=counted, parts=parts
        ),
    )
    return rows


def _write(
    files: dict[str, ResultFile],
    results: Results,
    rows: list[Row],
    request: BenchRequest,
    command: list[str],
) -> None:
    from as2d_cli.bench.document import document
    from as2d_cli.bench.prediction import alignment

    whole = document(results, rows, request, command)
    for option, file in files.items():
        if option == "--alignment":
            file.out.write(json_module.dumps(alignment(results)) + "\n")
        else:
            file.out.write(_written(option, whole))
        file.keep()


def _written(option: str, whole: dict[str, Any]) -> str:
    if option == "--html":
        from as2d_cli.bench.html import page

        return str(page(whole))
    if option == "--trace":
        from as2d_cli.bench.trace import chrome_trace

        return json_module.dumps(chrome_trace(whole), allow_nan=False) + "\n"
    return json_module.dumps(whole, indent=1, allow_nan=False) + "\n"


def _failed(environment: Environment, results: Results) -> bool:
    """Says what went wrong that must not."""
    differing = {
        (sample.turn.contender, sample.turn.unit, window): None
        for sample in results.samples
        for window in results.differing(sample)
    }
    failed = bool(results.withdrawn)
    told = set()
    for number, unit, window in [*differing, *sorted(results.untimed)]:
        contender, entry = results.contenders[number], results.units[unit]
        what = entry.name if entry.asked is not None else f"{entry.clip.path.name} window {window}"
        line = f"{contender.label}: {what} differs"
        if contender.exact and line not in told:
            failed = True
            environment.talk(line)
            told.add(line)
    return failed


def _command_line(ctx: typer.Context) -> list[str]:
    """What was typed, as far as it is not the default; the options first."""
    words = ["as2d", "bench"]
    paths: list[str] = []
    for parameter in ctx.command.params:
        value = ctx.params.get(parameter.name or "")
        if parameter.param_type_name == "argument":
            paths = [str(path) for path in value or ()]
        elif value != parameter.get_default(ctx):
            if isinstance(value, bool):
                names = parameter.opts if value else parameter.secondary_opts
                words.append(names[0])
            else:
                words += [parameter.opts[0], str(value)]
    return words + paths


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


def _number(option: str, text: str, most: int) -> int:
    if text.isascii() and text.isdigit() and 1 <= int(text) <= most:
        return int(text)
    raise As2dError(f"{option} {text}: not a number from 1 to {most}", status=ExitStatus.USAGE)
