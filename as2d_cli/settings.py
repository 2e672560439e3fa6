"""What a user has settled for every run: the configuration file and AS2D_* variables.

A command line goes before a variable, that before the file, and that before the defaults.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import typer

from as2d_cli.environment import Environment
from as2d_cli.errors import As2dError, ExitStatus

__all__ = ["defaults_of"]

_PREFIX = "AS2D_"
_NOT_SETTLED = ("help", "version")


def defaults_of(command: Any, environment: Environment) -> dict[str, Any]:
    """Defaults for the options of `command` and those below it, as its context takes them.

    The file has a table for each command, with its options by their long names::

        [transcribe]
        language = "de"
        format = ["srt", "json"]

    A variable is called by the command and the option: ``AS2D_TRANSCRIBE_LANGUAGE=de``; a list is
    separated by commas, and an empty one is none.

    Raises:
        As2dError: status USAGE; the file is not understood, a name is unknown or a value is wrong.
    """
    context = typer.Context(command)
    settled = _of_file(context, environment)
    for words, options in _commands(command):
        for called, option in options.items():
            variable = _PREFIX + "_".join([*words, called]).upper().replace("-", "_")
            text = environment.variables.get(variable)
            if text:
                table = settled
                for word in words:
                    table = table.setdefault(word, {})
                value = re.split(r"[,\s]+", text.strip(", ")) if option.multiple else text
                table[option.name] = _checked(context, option, value, variable)
    return settled


def _of_file(context: typer.Context, environment: Environment) -> dict[str, Any]:
    path = environment.config_file
    asked = bool(environment.variables.get("AS2D_CONFIG"))
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as e:
        if not asked and isinstance(e, FileNotFoundError | NotADirectoryError):
            return {}
        raise _wrong(f"cannot read {path}: {e.strerror}", "set AS2D_CONFIG to another") from e
    except ValueError as e:
        raise _wrong(f"{path}: {e}", "see a description of TOML") from e
    return _table(context, context.command, data, path, "")


def _table(
    context: typer.Context, command: Any, data: Mapping[str, Any], path: Path, where: str
) -> dict[str, Any]:
    options = _options(command)
    below = getattr(command, "commands", {})
    found: dict[str, Any] = {}
    for key, value in data.items():
        place = f"{path}: {where}{key}"
        option = options.get(key.replace("_", "-"))
        if key in below and isinstance(value, Mapping):
            found[key] = _table(context, below[key], value, path, f"{where}{key}.")
        elif option is not None:
            found[option.name] = _checked(context, option, value, place)
        else:
            known = [*below, *options]
            near = get_close_matches(key, known, n=1)
            remedy = f"did you mean {near[0]}?" if near else f"it may have {', '.join(known)}"
            raise _wrong(f"{place} is no setting", remedy)
    return found


def _commands(
    command: Any, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Each command below, by the words that call it, with its options."""
    for name, below in getattr(command, "commands", {}).items():
        yield (*words, name), _options(below)
        yield from _commands(below, (*words, name))


def _options(command: Any) -> dict[str, Any]:
    """Options by their long names."""
    return {
        next(name for name in p.opts if name.startswith("--"))[2:]: p
        for p in command.params
        if p.param_type_name == "option" and p.name not in _NOT_SETTLED
    }


def _checked(context: typer.Context, option: Any, value: Any, place: str) -> Any:
    """`value` if the option takes it; otherwise the error names its place."""
    if isinstance(value, list) and not option.multiple:
        raise _wrong(f"{place} is a list", "give one value")
    values = value if isinstance(value, list) else [value]
    for one in values:
        if isinstance(one, Mapping | list) or (isinstance(one, bool) and not option.is_flag):
            raise _wrong(f"{place} cannot be {one!r}", "see the option's help")
    # As a command line would have it.
    texts = [one if isinstance(one, bool) else str(one) for one in values]
    given = texts if option.multiple else texts[0]
    try:
        option.process_value(context, given)
    except typer.BadParameter as e:
        raise _wrong(f"{place}: {e.message.rstrip('.')}", "see the option's help") from e
    return given


def _wrong(message: str, remedy: str) -> As2dError:
    return As2dError(message, remedy=remedy, status=ExitStatus.USAGE)
