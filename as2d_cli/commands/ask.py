"""``as2d ask``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from as2d_cli.commands.checks import part, usage, within
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
from as2d_cli.errors import As2dError, ExitStatus
from as2d_cli.limits import MAX_BUDGET, MAX_THREADS
from as2d_cli.output.answer_format import AnswerFormat

if TYPE_CHECKING:
    from as2d_cli.output.renderer import Writer
    from as2d_cli.output.talk import Talk
    from as2d_cli.tasks.ahead import Ahead
    from as2d_cli.tasks.answer_planning import AnswerPlan
    from as2d_cli.tasks.asking import AskOptions
    from as2d_cli.tasks.models import Backend, ModelRequest, Models
    from as2d_cli.tasks.recording import Recording
    from as2d_cli.tasks.sources import Source
    from as2d_cli.tasks.transcript import Monitor, Transcript
    from as2d_cli.tasks.transcription import TranscribeOptions

__all__ = ["register"]

_MOST_TOKENS = 1_000_000
"""Beyond any model's context, which is the limit that counts."""

_MOST_TEMPERATURE = 2.0
"""Beyond it any word comes out; a usual limit."""

_MOST_SEED = 2**32 - 1


class AnswerMethod(StrEnum):
    """What ``ask --method`` takes: methods of one text at a time, and to leave it to as2d."""

    AUTO = "auto"
    TARGET = "target"
    LOOKUP = "lookup"
    AS2D = "as2d"
    ANCHORED = "anchored"
    COUPLED = "coupled"
    ADAPTIVE = "adaptive"
    PEARL = "pearl"
    MULTI = "multi"


_ANSWERS = "Answers"
"""A group of options in the help, beside those of `as2d_cli.commands.options`."""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("ask", cls=PanelCommand)(_ask)


def _ask(
    ctx: typer.Context,
    *,
    questions: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="QUESTION",
            help='What to answer, such as "summarize"; several share the work on the audio.',
            show_default=False,
        ),
    ] = None,
    audio: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|-",
            help="Audio or video file; - reads standard input.",
            show_default=False,
            rich_help_panel=INPUT,
        ),
    ] = None,
    mic: Annotated[
        bool,
        typer.Option(
            "--mic",
            help="Ask about what is said into the microphone, until Ctrl-C.",
            rich_help_panel=INPUT,
        ),
    ] = False,
    device: SoundDevice = None,
    start: Start = None,
    end: End = None,
    language: Annotated[
        str,
        typer.Option(
            metavar="CODE|auto",
            help="Language spoken; auto: found in the first window.",
            rich_help_panel=INPUT,
        ),
    ] = "auto",
    system: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="What the model is told before the transcript; empty for nothing.",
            show_default="to answer from the transcript",
            rich_help_panel=_ANSWERS,
        ),
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Most tokens of an answer.",
            show_default="512, or twice the transcript",
            rich_help_panel=_ANSWERS,
        ),
    ] = None,
    temperature: Annotated[
        float,
        typer.Option(
            metavar="T",
            help=f"0: the likeliest words; above, up to {_MOST_TEMPERATURE:g}, words are drawn "
            "by chance, the less likely the hotter.",
            rich_help_panel=_ANSWERS,
        ),
    ] = 0.0,
    seed: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="What chance comes from; the same one draws the same answer, whatever the method.",
            rich_help_panel=_ANSWERS,
        ),
    ] = 0,
    format: Annotated[
        AnswerFormat,
        typer.Option(
            "--format",
            "-f",
            help="text: the answers, as they come; json: all there is; jsonl: the same, each "
            "answer when it is known.",
            rich_help_panel=OUTPUT,
        ),
    ] = AnswerFormat.TEXT,
    show_transcript: Annotated[
        bool,
        typer.Option(
            "--show-transcript",
            help="The transcript before the answers; json and jsonl have it anyway, but for an "
            "audio-llm, which needs none.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    quiet: Quiet = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose", "-v", help="Say more: models, plans, figures.", rich_help_panel=OUTPUT
        ),
    ] = False,
    llm: Annotated[
        str,
        typer.Option(
            metavar="ID|PATH",
            help="Model that answers; an audio-llm hears the recording itself, without a "
            "transcript.",
            rich_help_panel=MODELS,
        ),
    ] = "qwen2.5-coder-1.5b-instruct",
    llm_drafter: Annotated[
        str,
        typer.Option(
            metavar="ID|PATH|auto|none",
            help="Small language model that runs ahead of the one that answers; auto: one that is "
            "here, if it was measured to gain anything. For an audio-llm a model that transcribes, "
            "which hears the same.",
            rich_help_panel=MODELS,
        ),
    ] = "auto",
    method: Annotated[
        AnswerMethod,
        typer.Option(
            help="Of the answers. lookup: candidates are looked up in prompt and answer; target: "
            "none; as2d: by a drafter; anchored: by one that starts again from the answer when it "
            "has lost it; coupled: in turn with one; auto: what as2d profile measured to be the "
            "fastest, else lookup, or as2d where a drafter is named. The others are there to "
            "compare with.",
            rich_help_panel=MODELS,
        ),
    ] = AnswerMethod.AUTO,
    budget: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help=f"Most candidates per verify step of the answers, 1 to {MAX_BUDGET}.",
            show_default="8",
            rich_help_panel=MODELS,
        ),
    ] = None,
    target: Annotated[
        str,
        typer.Option(metavar="ID|PATH", help="Model of the transcript.", rich_help_panel=MODELS),
    ] = "whisper-base",
    drafter: Annotated[
        str,
        typer.Option(
            metavar="ID|PATH|auto|none", help="Drafter of the transcript.", rich_help_panel=MODELS
        ),
    ] = "auto",
    target_cores: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Cores of the model that answers, as 0-3,5.",
            show_default="auto",
            rich_help_panel=MODELS,
        ),
    ] = None,
    draft_cores: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Cores of its drafter.",
            show_default="auto",
            rich_help_panel=MODELS,
        ),
    ] = None,
    threads: Threads = None,
    pin: Pin = True,
    plan: PlanFile = "auto",
    yes: Annotated[
        bool,
        typer.Option(
            "--yes", "-y", help="Fetch what is missing without asking.", rich_help_panel=MODELS
        ),
    ] = False,
    offline: Offline = False,
) -> None:
    """Answer questions about a recording.

    What is said becomes text first, which a language model then answers from; unless that model
    hears the recording itself.
    """
    environment: Environment = ctx.obj
    within("--budget", budget, 1, MAX_BUDGET)
    within("--threads", threads, 1, MAX_THREADS)
    within("--max-tokens", max_tokens, 1, _MOST_TOKENS)
    within("--seed", seed, 0, _MOST_SEED)
    if not 0 <= temperature <= _MOST_TEMPERATURE:
        raise usage(
            f"--temperature {temperature:g} is out of range", f"choose 0 to {_MOST_TEMPERATURE:g}"
        )
    if quiet and verbose:
        raise usage("--quiet and --verbose contradict each other", "give one of them")
    if mic == (audio is not None):
        problem = "--mic and --audio contradict each other" if mic else "nothing to ask about"
        raise usage(problem, "give --audio FILE or --mic")
    if environment.stdout.raw is None:
        raise As2dError("standard output is closed", remedy="leave it open")

    from as2d_cli.profile.plan_file import by_plan
    from as2d_cli.tasks.asking import AskOptions, answering, check_questions
    from as2d_cli.tasks.models import ModelRequest
    from as2d_cli.tasks.transcription import TranscribeOptions
    from as2d_cli.text.question import SYSTEM

    job = _Job(
        environment,
        check_questions(questions or []),
        speech=ModelRequest(
            target=target,
            drafter=None if drafter == "none" else drafter,
            method="auto",
            threads=threads,
            pin=pin,
            offline=offline,
        ),
        listening=TranscribeOptions(language=None if language == "auto" else language.lower()),
        llm=by_plan(
            answering(
                llm,
                drafter=None if llm_drafter == "none" else llm_drafter,
                method=method.value,
                budget=budget,
                target_cores=target_cores,
                draft_cores=draft_cores,
                threads=threads,
                pin=pin,
                offline=offline,
            ),
            plan,
        ),
        options=AskOptions(
            SYSTEM if system is None else system.strip(), max_tokens, temperature, seed
        ),
        format=format,
        show_transcript=show_transcript,
        quiet=quiet,
        verbose=verbose,
    )
    failures = job.run(audio, part(start, end), device, yes=yes)
    if failures:
        raise typer.Exit(ExitStatus.FAILURE)


@dataclass(frozen=True)
class _Job:
    """One command line, understood."""

    environment: Environment
    questions: list[str]
    speech: ModelRequest
    listening: TranscribeOptions
    llm: ModelRequest
    options: AskOptions
    format: AnswerFormat
    show_transcript: bool
    quiet: bool
    verbose: bool

    def run(
        self,
        audio: str | None,
        excerpt: tuple[float, float | None],
        device: str | None,
        *,
        yes: bool,
    ) -> int:
        """Asks about a file, or without one about the microphone; returns how much failed."""
        from as2d_cli.output.answers import answer_renderer
        from as2d_cli.tasks.ahead import Ahead
        from as2d_cli.tasks.answer_planning import plan_answers
        from as2d_cli.tasks.asking import ask, nothing_said
        from as2d_cli.tasks.models import (
            check_answerer,
            check_method,
            default_backend,
            hears,
            open_models,
        )
        from as2d_cli.tasks.recording import record

        with self._streams() as (talk, out):
            backend = self.environment.backend or default_backend(
                talk, bars(self.environment, talk)
            )
            made = plan_answers(self.llm, backend)
            llm, plan = made.request, made.plan
            # Before anybody listens: a model that cannot be had must not cost a recording.
            for name in (llm.target, llm.drafter):
                if name is not None:
                    self._agree(name, backend, yes=yes)
            model = backend.ensure(llm.target, llm.offline)
            check_answerer(model)
            check_method(model, plan.method)
            if llm.drafter is not None and backend.to_fetch(llm.drafter):
                with contextlib.suppress(As2dError):  # told when it is to be loaded
                    backend.ensure(llm.drafter, llm.offline)
            if hears(model):
                # What answers must not hear of the Ctrl-C that ends a recording, nor use it up.
                with self._source(audio, excerpt, device) as source:
                    recording = record(source, monitor=talk, backend=backend, offline=llm.offline)
                if recording is not None:
                    self._ask_itself(recording, made, talk, backend, out)
                return talk.failures

            def opening(monitor: Monitor) -> AbstractContextManager[Models]:
                return open_models(llm, plan, backend, monitor, check=check_answerer)

            with Ahead(
                opening,
                self.options,
                self.questions[0],
                talk,
                own_cores=(*plan.target_cores, *plan.draft_cores) if plan.pin else (),
                cores=backend.cores(),
            ) as ahead:
                transcript = self._hear(audio, excerpt, device, ahead, backend)
                if transcript is None:
                    return talk.failures
                models = None
                if not nothing_said(transcript):
                    models = ahead.models()
                    talk.info(f"answers: {models.target.id}, {plan.method}, {made.why}")
                ask(
                    transcript,
                    self.questions,
                    models,
                    self.options,
                    sink=answer_renderer(self.format, out, transcript=self.show_transcript),
                    monitor=talk,
                    ahead=ahead.computed,
                    why=made.why,
                    recent=backend.recent(llm.target),
                )
            return talk.failures

    def _ask_itself(
        self, recording: Recording, made: AnswerPlan, talk: Talk, backend: Backend, out: Writer
    ) -> None:
        """Asks a model that hears the recording itself."""
        from as2d_cli.output.answers import answer_renderer
        from as2d_cli.tasks.asking import ask, hear
        from as2d_cli.tasks.models import check_answerer, open_models
        from as2d_cli.text.question import AUDIO_SYSTEM, SYSTEM

        options = self.options
        if options.system == SYSTEM:  # which speaks of a transcript
            options = replace(options, system=AUDIO_SYSTEM)
        llm = made.request
        transcript = recording.unwritten(self.listening.language)
        if self.show_transcript:
            again = recording.again()
            heard = hear(again, self.speech, self.listening, monitor=talk, backend=backend)
            if heard is None:
                return
            transcript = heard
        with contextlib.ExitStack() as stack:
            models = None
            if recording.spoken:
                opening = open_models(llm, made.plan, backend, talk, check=check_answerer)
                models = stack.enter_context(opening)
                talk.info(f"answers: {models.target.id}, {made.plan.method}, {made.why}")
            ask(
                transcript,
                self.questions,
                models,
                options,
                sink=answer_renderer(self.format, out, transcript=self.show_transcript),
                monitor=talk,
                recording=recording,
                why=made.why,
                recent=backend.recent(llm.target),
            )

    def _hear(
        self,
        audio: str | None,
        excerpt: tuple[float, float | None],
        device: str | None,
        ahead: Ahead,
        backend: Backend,
    ) -> Transcript | None:
        from as2d_cli.tasks.asking import hear

        with self._source(audio, excerpt, device) as source:
            return hear(
                source,
                self.speech,
                self.listening,
                monitor=ahead.watcher,
                backend=backend,
                sink=ahead.listener,
            )

    @contextlib.contextmanager
    def _source(
        self, audio: str | None, excerpt: tuple[float, float | None], device: str | None
    ) -> Iterator[Source]:
        """The audio that is meant; a microphone stops at the first Ctrl-C."""
        from as2d_cli.tasks.interrupt import instead_of_interruption
        from as2d_cli.tasks.sources import Source, file_source

        start, end = excerpt
        if audio is not None:
            yield file_source(audio, self.environment.stdin, start=start, end=end)
            return
        from as2d_cli.audio.microphone import Microphone

        microphone = Microphone(device, self.environment.sound)
        with instead_of_interruption(microphone.stop):
            yield Source(microphone.open, start, end, live=True)

    def _agree(self, name: str, backend: Backend, *, yes: bool) -> None:
        """Asks before much is fetched.

        Raises:
            As2dError: status UNAVAILABLE; it must not be fetched, or nobody can be asked.
        """
        what = None if yes or self.llm.offline else backend.to_fetch(name)
        if what is None:
            return
        environment = self.environment
        stdin = environment.stdin
        if stdin is not None and stdin.isatty() and environment.stderr.is_terminal:
            environment.stderr.say(f"as2d: {name} is to be fetched ({what}); go on? [y/N] ")
            if stdin.readline().strip().lower() in (b"y", b"yes"):
                return
        raise As2dError(
            f"{name} is not on this machine ({what})",
            remedy="give --yes to fetch it",
            status=ExitStatus.UNAVAILABLE,
        )

    def _streams(self) -> AbstractContextManager[tuple[Talk, Writer]]:
        """Who talks, and where answers go."""
        environment = self.environment
        return streams(
            environment,
            environment.stdout,
            quiet=self.quiet,
            verbose=self.verbose,
            shared=environment.shared_terminal,
            words=True,
        )
