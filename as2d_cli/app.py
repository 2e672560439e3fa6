"""The command line: its commands, and the one place where errors become a line and a status."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

import typer

from as2d_cli.environment import Environment
from as2d_cli.errors import As2dError, ExitStatus
from as2d_cli.settings import defaults_of

__all__ = ["COMMANDS", "Terminated", "build_app", "run"]

COMMANDS = ("transcribe", "ask", "models", "profile", "bench", "device", "distill", "doctor")
"""In the order of `--help`; each is a module of `as2d_cli.commands` with ``register(app)``."""

_STATUSES = """\b
Exit status:
  0    done
  1    an input could not be processed (the others were)
  2    bad option or argument
  3    a model or a library cannot be had
  70   a bug in as2d (AS2D_DEBUG=1 shows where)
  129  the terminal went away
  130  interrupted (Ctrl-C)
  141  the reader of the output went away
  143  terminated
"""

# The base of every usage error is not exported under one name by all versions of Typer.
_UsageError: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")


class Terminated(BaseException):
    """SIGTERM or SIGHUP arrived; unwinds like KeyboardInterrupt so that temporary files go away."""

    def __init__(self, status: ExitStatus = ExitStatus.TERMINATED) -> None:
        super().__init__(status)
        self.status = status


def build_app(*, completion: bool = False) -> typer.Typer:
    """The Typer app with all commands of `COMMANDS`; `completion`: able to answer a shell."""
    app = typer.Typer(
        name="as2d",
        add_completion=completion,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        epilog=_STATUSES,
    )

    @app.callback()
    def _root(
        version: Annotated[
            bool,
            typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
        ] = False,
    ) -> None:
        """Turn speech into text on the cores you have: a small drafter runs ahead, a target
        verifies.
        """

    for name in COMMANDS:
        module = f"as2d_cli.commands.{name}"
        try:
            import_module(module).register(app)
        except ModuleNotFoundError as e:
            if e.name != module:  # a slimmed-down package may leave a command out, nothing else
                raise
    return app


def run(args: Sequence[str], environment: Environment) -> int:
    """Runs one command line in `environment` and returns the exit status. Never raises.

    Args:
        args: without the program's name; none at all shows the help.
    """
    try:
        status = _invoke(list(args) or ["--help"], environment)
        if environment.stdout.raw is not None:
            environment.stdout.flush()
        return status
    except As2dError as e:
        environment.talk(str(e))
        return e.status
    except BrokenPipeError:
        return ExitStatus.BROKEN_PIPE
    except KeyboardInterrupt:
        return ExitStatus.INTERRUPTED
    except Terminated as e:
        return e.status
    except Exception as e:
        if environment.debug:
            import traceback

            environment.stderr.say(traceback.format_exc())
        if isinstance(e, OSError) and e.filename is not None:
            # What the system refuses is no bug: too long a name, a folder that must not be entered.
            environment.talk(f"{e.filename}: {e.strerror}; check the name")
            return ExitStatus.FAILURE
        environment.talk(
            f"internal error: {type(e).__name__}: {e}; this is a bug: run again with AS2D_DEBUG=1 "
            "and report what it shows"
        )
        return ExitStatus.INTERNAL


def _invoke(args: list[str], environment: Environment) -> int:
    if "_AS2D_COMPLETE" in environment.variables:
        build_app(completion=True)(args, prog_name="as2d")  # answers the shell and exits
    command = typer.main.get_command(build_app())
    try:
        # Not command.main(): that one prints errors in its own way and turns Ctrl-C into an echo.
        settled = defaults_of(command, environment)
        with command.make_context("as2d", args, obj=environment, default_map=settled) as context:
            command.invoke(context)
    except typer.Exit as e:
        return e.exit_code
    except typer.Abort:
        return ExitStatus.INTERRUPTED
    except _UsageError as e:
        if type(e).__name__ == "NoArgsIsHelpError":  # a group alone: as for the program alone
            typer.echo(e.ctx.get_help())
            return ExitStatus.OK
        raise _usage(e) from None
    except OSError as e:  # what Typer itself prints (help, version), and the cache
        if e.errno != errno.ENOSPC:
            raise
        raise As2dError("no space left on device", remedy="make room, or write elsewhere") from e
    return ExitStatus.OK


def _usage(e: Any) -> As2dError:
    path = e.ctx.command_path if getattr(e, "ctx", None) is not None else "as2d"
    text = " ".join(e.format_message().split()).rstrip(".").replace("Value error, ", "")
    return As2dError(
        text[:1].lower() + text[1:], remedy=f"see '{path} --help'", status=ExitStatus.USAGE
    )


def _version(wanted: bool) -> None:
    if wanted:
        from as2d_cli import __version__

        typer.echo(f"as2d {__version__}")
        raise typer.Exit
