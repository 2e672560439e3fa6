"""``as2d transcribe``."""

from __future__ import annotations

import contextlib
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from as2d_cli.commands.checks import part as _part
from as2d_cli.commands.checks import usage as _usage
from as2d_cli.commands.checks import within as _within
from as2d_cli.commands.display import bars, streams
from as2d_cli.commands.options import (
    INPUT,
    MODELS,
    OUTPUT,
    End,
    Offline,
    Pin,
    PlanFile,
    Quiet,
    SoundDevice,
    Start,
    Threads,
)
from as2d_cli.commands.panels import PanelCommand
from as2d_cli.environment import Environment
from as2d_cli.errors import As2dError, ExitStatus, one_line
from as2d_cli.limits import MAX_BUDGET, MAX_THREADS, MAX_WINDOWS
from as2d_cli.methods import TOGETHER
from as2d_cli.output.formats import Format

if TYPE_CHECKING:
    from as2d_cli.output.renderer import Writer
    from as2d_cli.output.result import Result
    from as2d_cli.output.talk import Talk
    from as2d_cli.tasks.models import ModelRequest
    from as2d_cli.tasks.sources import Source
    from as2d_cli.tasks.transcript import Sink
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


class RawSamples(StrEnum):
    """What ``--raw`` takes: `as2d_cli.audio.raw.RAW_SAMPLES`, without importing it."""

    S16LE = "s16le"
    S16BE = "s16be"
    S8 = "s8"
    U8 = "u8"
    S24LE = "s24le"
    S24BE = "s24be"
    S32LE = "s32le"
    S32BE = "s32be"
    F32LE = "f32le"
    F32BE = "f32be"
    F64LE = "f64le"
    F64BE = "f64be"
    MULAW = "mulaw"
    ALAW = "alaw"


class Task(StrEnum):
    """What ``--task`` takes."""

    TRANSCRIBE = "transcribe"
    TRANSLATE = "translate"


_TEXT = "Text"
"""A group of options in the help, beside those of `as2d_cli.commands.options`."""

_RATES = (1_000, 768_000)
_MOST_CHANNELS = 64
_LINE_LENGTHS = (10, 1000)
_MOST_LINES = 10
_STDIN = ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("transcribe", cls=PanelCommand)(_transcribe)


def _transcribe(
    ctx: typer.Context,
    *,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE",
            help="Audio or video files; - reads standard input.",
            show_default=False,
        ),
    ] = None,
    recursive: Annotated[
        bool,
        typer.Option(
            "--recursive", "-r", help="Folders stand for the files in them.", rich_help_panel=INPUT
        ),
    ] = False,
    raw: Annotated[
        RawSamples | None,
        typer.Option(
            help="Inputs are samples of this kind, without a header.", rich_help_panel=INPUT
        ),
    ] = None,
    rate: Annotated[
        int,
        typer.Option(
            metavar="HZ", help="Samples per second of --raw input.", rich_help_panel=INPUT
        ),
    ] = 16_000,
    channels: Annotated[
        int,
        typer.Option(metavar="N", help="Channels of --raw input.", rich_help_panel=INPUT),
    ] = 1,
    start: Start = None,
    end: End = None,
    mic: Annotated[
        bool,
        typer.Option(
            "--mic",
            help="Write down what is said into the microphone, until Ctrl-C.",
            rich_help_panel=INPUT,
        ),
    ] = False,
    device: SoundDevice = None,
    language: Annotated[
        str,
        typer.Option(
            metavar="CODE|auto",
            help="Language spoken; auto: found in the first window.",
            rich_help_panel=_TEXT,
        ),
    ] = "auto",
    task: Annotated[
        Task,
        typer.Option(
            help="translate: English, whatever is spoken; for multilingual targets.",
            rich_help_panel=_TEXT,
        ),
    ] = Task.TRANSCRIBE,
    timestamps: Annotated[
        bool,
        typer.Option(
            "--timestamps/--no-timestamps",
            help="Segments as the model divides the text, by timestamps that it puts into it; "
            "without them, sentences by when their words were spoken. The text can differ.",
            rich_help_panel=_TEXT,
        ),
    ] = False,
    word_timestamps: Annotated[
        bool,
        typer.Option(
            "--word-timestamps",
            help="When each word was spoken, in json and jsonl.",
            rich_help_panel=_TEXT,
        ),
    ] = False,
    prompt: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="Text that could have come before; names and spelling are taken from it.",
            show_default=False,
            rich_help_panel=_TEXT,
        ),
    ] = None,
    hotwords: Annotated[
        str | None,
        typer.Option(
            metavar="WORDS",
            help="Words to expect; the same in front of every window.",
            show_default=False,
            rich_help_panel=_TEXT,
        ),
    ] = None,
    condition: Annotated[
        bool,
        typer.Option(
            "--condition/--no-condition",
            help="Each window goes on from the text of the one before: one style throughout, but "
            "a mistake can spread, and windows wait for one another.",
            rich_help_panel=_TEXT,
        ),
    ] = False,
    fallback: Annotated[
        bool,
        typer.Option(
            "--fallback/--no-fallback",
            help="Decode a window whose text goes round in circles, or is unlikely, once more at "
            "rising temperatures. Without it, words appear before their window is done.",
            rich_help_panel=_TEXT,
        ),
    ] = True,
    vad: Annotated[
        bool,
        typer.Option(
            "--vad/--no-vad",
            help="Only what a voice-activity model takes for speech, cut at pauses; or all there "
            "is, cut where it is quiet.",
            rich_help_panel=_TEXT,
        ),
    ] = True,
    max_tokens: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Most tokens per window.",
            show_default="what the model's context holds",
            rich_help_panel=_TEXT,
        ),
    ] = None,
    formats: Annotated[
        list[Format] | None,
        typer.Option(
            "--format",
            "-f",
            help="txt: a line per window; srt, vtt: subtitles; tsv: times and texts; json: all "
            "there is; jsonl: the same, each segment when it is known. Several make several files.",
            show_default="by --output, else txt",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE|DIR/",
            help="Write here, whole or not at all; with a folder, a file for each input; - is "
            "standard output.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Replace result files that exist.", rich_help_panel=OUTPUT),
    ] = False,
    line_length: Annotated[
        int,
        typer.Option(
            metavar="N", help="Most columns of a subtitle's line.", rich_help_panel=OUTPUT
        ),
    ] = 42,
    lines: Annotated[
        int,
        typer.Option(metavar="N", help="Most lines of a subtitle.", rich_help_panel=OUTPUT),
    ] = 2,
    tokens: Annotated[
        bool, typer.Option("--tokens", help="Token ids in json and jsonl.", rich_help_panel=OUTPUT)
    ] = False,
    quiet: Quiet = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose",
            "-v",
            help="Say more: languages, models, what was left out, how fast it was.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    target: Annotated[
        str,
        typer.Option(metavar="ID|PATH", help="Model whose text you get.", rich_help_panel=MODELS),
    ] = "whisper-base",
    drafter: Annotated[
        str,
        typer.Option(
            metavar="ID|PATH|auto|none",
            help="Small model that runs ahead of the target; auto: what suits target and language; "
            "none: no drafts.",
            rich_help_panel=MODELS,
        ),
    ] = "auto",
    method: Annotated[
        Method,
        typer.Option(
            help="as2d: the target verifies drafts; target: it goes alone; batched: alone on "
            "several windows at a time; auto: by the cores. The others are there to compare with.",
            rich_help_panel=MODELS,
        ),
    ] = Method.AUTO,
    budget: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help=f"Most candidates per verify step, or windows of batched, 1 to {MAX_BUDGET}.",
            show_default="8, or 4 windows",
            rich_help_panel=MODELS,
        ),
    ] = None,
    windows: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help=f"Windows of a recording that are decoded in one batch, 1 to {MAX_WINDOWS}; for "
            f"{', '.join(TOGETHER)}.",
            show_default="what suits",
            rich_help_panel=MODELS,
        ),
    ] = None,
    target_cores: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Cores of the target lane, as 0-3,5.",
            show_default="auto",
            rich_help_panel=MODELS,
        ),
    ] = None,
    draft_cores: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Cores of the draft lane.",
            show_default="auto",
            rich_help_panel=MODELS,
        ),
    ] = None,
    threads: Threads = None,
    pin: Pin = True,
    plan: PlanFile = "auto",
    offline: Offline = False,
) -> None:
    """Turn speech into text.

    Text appears on standard output as soon as it is final.
    """
    environment: Environment = ctx.obj
    _within("--budget", budget, 1, MAX_WINDOWS if method is Method.BATCHED else MAX_BUDGET)
    _within("--windows", windows, 1, MAX_WINDOWS)
    _within("--threads", threads, 1, MAX_THREADS)
    _within("--max-tokens", max_tokens, 1, _MOST_TOKENS)
    _within("--rate", rate, *_RATES)
    _within("--channels", channels, 1, _MOST_CHANNELS)
    _within("--line-length", line_length, *_LINE_LENGTHS)
    _within("--lines", lines, 1, _MOST_LINES)
    if quiet and verbose:
        raise _usage("--quiet and --verbose contradict each other", "give one of them")
    from as2d_cli.output.cues import CueRules
    from as2d_cli.output.result import Result

    result = Result.of(
        output,
        formats or [],
        force=force,
        tokens=tokens,
        words=word_timestamps,
        rules=CueRules(line_length, lines),
    )
    if result.path is None and environment.stdout.raw is None:
        raise As2dError("standard output is closed", remedy="give --output FILE")

    from as2d_cli.profile.plan_file import by_plan
    from as2d_cli.tasks.models import AUTO, ModelRequest
    from as2d_cli.tasks.transcription import TranscribeOptions

    part = _part(start, end)
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
        language=None if language == "auto" else language.lower(),
        max_tokens=max_tokens,
        everything=not vad,
        translate=task is Task.TRANSLATE,
        timestamps=timestamps,
        times=result.shows_times,
        word_times=word_timestamps,
        fallback=fallback,
        condition=condition,
        prompt=prompt or "",
        hotwords=hotwords or "",
    )
    job = _Job(environment, request, options, result, quiet=quiet, verbose=verbose)
    if mic:
        if files or raw is not None:
            raise _usage("--mic takes neither files nor --raw", "give one or the other")
        failures = job.run_microphone(part, device)
    else:
        if not files:
            raise _usage("missing argument 'FILE'", "see 'as2d transcribe --help'")
        if sum(name in _STDIN for name in files) > 1:
            raise _usage("standard input ('-') can be read only once", "name it once")
        kind = None if raw is None else (raw.value, rate, channels)
        failures = job.run_files(files, part, kind, recursive=recursive)
    if failures:
        raise typer.Exit(ExitStatus.FAILURE)


@dataclass(frozen=True)
class _Job:
    """One command line, understood."""

    environment: Environment
    request: ModelRequest
    options: TranscribeOptions
    result: Result
    quiet: bool
    verbose: bool

    def run_files(
        self,
        names: list[str],
        part: tuple[float, float | None],
        raw: tuple[str, int, int] | None,
        *,
        recursive: bool,
    ) -> int:
        """Returns how many inputs failed."""
        from as2d_cli.audio.inputs import expand
        from as2d_cli.audio.raw import RawFormat
        from as2d_cli.tasks.sources import file_source

        kind = None if raw is None else RawFormat(*raw)
        problems: list[str] = []
        inputs = list(expand(names, recursive=recursive, problem=problems.append))
        if not inputs and not problems:
            raise As2dError(f"no files in {', '.join(map(one_line, names))}")
        self.result.check([given.path for given in inputs])
        stdin = self.environment.stdin
        sources = [
            file_source(
                given.path,
                stdin,
                raw=kind,
                start=part[0],
                end=part[1],
                optional=given.folder is not None and kind is None,
            )
            for given in inputs
        ]
        return self._run(sources, [given.below for given in inputs], problems)

    def run_microphone(self, part: tuple[float, float | None], device: str | None) -> int:
        """Returns how many inputs failed: 1 or 0."""
        from as2d_cli.audio.microphone import Microphone
        from as2d_cli.tasks.interrupt import instead_of_interruption
        from as2d_cli.tasks.sources import Source

        microphone = Microphone(device, self.environment.sound)
        source = Source(microphone.open, *part, live=True)
        with instead_of_interruption(microphone.stop):
            return self._run([source], [Path("microphone")], [])

    def _run(self, sources: list[Source], names: list[Path], problems: list[str]) -> int:
        from as2d_cli.output.file import ResultFile
        from as2d_cli.output.folder import FolderSink, result_names
        from as2d_cli.tasks.models import default_backend
        from as2d_cli.tasks.transcription import transcribe

        result = self.result
        with contextlib.ExitStack() as stack:
            file = None
            if result.path is not None and not result.is_folder:
                file = stack.enter_context(ResultFile(result.path, force=result.force))
            talk, out = stack.enter_context(self._streams(file.out if file else None))
            for problem in problems:
                talk.error(problem)
            sink: Sink
            if result.path is not None and result.is_folder:
                sink = folder = FolderSink(
                    result.path,
                    result_names(names),
                    result.formats,
                    result.renderer,
                    force=result.force,
                )
                done_before = folder.leave_out_done()
                sources = [s for s, path in zip(sources, done_before, strict=True) if path is None]
                for path in filter(None, done_before):
                    talk.error(f"{path} exists; --force replaces it")
            else:
                sink = result.renderer(result.formats[0], out)
            backend = self.environment.backend or default_backend(
                talk, bars(self.environment, talk)
            )
            done = transcribe(
                sources, self.request, self.options, sink=sink, monitor=talk, backend=backend
            )
            if file is not None and done:
                file.keep()
            if sources and not done and not talk.failures:
                talk.error("none of the files has audio in it")
        return talk.failures

    def _streams(self, file: Writer | None) -> AbstractContextManager[tuple[Talk, Writer]]:
        """Who talks, and where a result that is no folder goes."""
        environment, result = self.environment, self.result
        shared = result.path is None and environment.shared_terminal
        streamed_here = shared and result.formats[0] is Format.TXT
        return streams(
            environment,
            file if file is not None else environment.stdout,
            quiet=self.quiet,
            verbose=self.verbose,
            shared=shared,
            words=not streamed_here,
        )
