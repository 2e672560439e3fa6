"""``as2d models``: what models there are, and which are on this machine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from as2d_cli.environment import Environment
from as2d_cli.errors import As2dError, ExitStatus, one_line

if TYPE_CHECKING:
    from as2d_cli.catalog import Bundle, Listeners, ModelEntry, Progress, Store

__all__ = ["models_app", "register"]

_COLUMNS = ("id", "role", "family", "languages", "size", "licence", "state", "note")
# More codes than this are a number, not a list.
_MOST_CODES = 3
# Columns of a terminal that has room for all columns of the table.
_WIDE = 96

models_app = typer.Typer(
    name="models", no_args_is_help=True, help="List, fetch, check and remove models."
)

Ids = Annotated[list[str] | None, typer.Argument(metavar="ID", show_default=False)]
Offline = Annotated[bool, typer.Option("--offline", help="Never ask the network.")]


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.add_typer(models_app)


@models_app.command("list")
def list_models(
    ctx: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON array.")] = False,
) -> None:
    """List the models that as2d knows, and which of them are ready."""
    environment: Environment = ctx.obj
    store = _store(environment)
    rows = [_row(entry, store) for entry in store.catalogue.models]
    if as_json:
        environment.stdout.write(json.dumps(rows, indent=2) + "\n")
    elif environment.stdout.is_terminal:
        _table(environment, rows)
    else:
        for row in rows:
            environment.stdout.write("\t".join(_cells(row)) + "\n")


@models_app.command("pull")
def pull(
    ctx: typer.Context,
    ids: Ids = None,
    *,
    force: Annotated[bool, typer.Option("--force", help="Make it again if it is there.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Nothing on standard error but errors.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Say which sources fail and why.")
    ] = False,
    offline: Offline = False,
) -> None:
    """Fetch models and make them ready; without ID, those that transcribe uses."""
    environment: Environment = ctx.obj
    store = _store(environment, offline=offline)
    wanted = ids or _of_transcribe(store)
    # A typo in the last must not come out after the first was fetched.
    for model_id in wanted:
        store.catalogue.require(model_id)
    with _listeners(environment, quiet=quiet, verbose=verbose) as listeners:
        for model_id in wanted:
            bundle = store.pull(model_id, listeners, force=force)
            if not quiet:
                environment.talk(f"{model_id} is ready in {bundle.path}")


@models_app.command("check")
def check(ctx: typer.Context, ids: Ids = None) -> None:
    """Prove bundles; without ID, all that are on this machine. ID may be a folder."""
    environment: Environment = ctx.obj
    from as2d_cli.catalog.check import check_bundle
    from as2d_cli.tasks.known_clip import transcribe_known_clip

    store = _store(environment)
    failed = 0
    for name in ids or _pulled(store):
        bundle = _present(store, name)
        target = store.made(bundle.target) if bundle.target else None
        for result in check_bundle(bundle, transcribe_known_clip, target):
            failed += not result.ok
            verdict = "ok" if result.ok else "FAILED"
            line = (name, result.name, verdict, one_line(result.detail))
            environment.stdout.write("\t".join(line) + "\n")
            environment.stdout.flush()
    if failed:
        raise typer.Exit(ExitStatus.FAILURE)


@models_app.command("path")
def path(ctx: typer.Context, model_id: Annotated[str, typer.Argument(metavar="ID")]) -> None:
    """Print the folder of a model that is ready."""
    environment: Environment = ctx.obj
    environment.stdout.write(f"{_present(_store(environment), model_id).path}\n")


@models_app.command("remove")
def remove(ctx: typer.Context, ids: Annotated[list[str], typer.Argument(metavar="ID")]) -> None:
    """Delete models from this machine."""
    environment: Environment = ctx.obj
    store = _store(environment)
    for model_id in ids:
        if store.remove(model_id):
            environment.talk(f"{model_id} is removed")
        else:
            environment.talk(f"{model_id} was not there")


def _store(environment: Environment, *, offline: bool = False) -> Store:
    from as2d_cli.catalog import default_store

    return default_store(
        offline=offline, variables=environment.variables.get, cache=environment.cache_dir
    )


def _of_transcribe(store: Store) -> list[str]:
    voice = store.catalogue.voice("transcribe")
    entries = (*store.catalogue.defaults("transcribe"), *([] if voice is None else [voice]))
    return [entry.id for entry in entries]


def _pulled(store: Store) -> list[str]:
    from as2d_cli.catalog import State

    here = (State.READY, State.OUTDATED)
    return [entry.id for entry in store.catalogue.models if store.state(entry) in here]


def _present(store: Store, name: str) -> Bundle:
    bundle = store.find(name)
    if bundle is None:
        # A damaged or outdated bundle is still one to look at.
        from as2d_cli.catalog import State
        from as2d_cli.catalog.bundle import Bundle as AnyBundle

        if store.state(store.catalogue.require(name)) is State.OUTDATED:
            return AnyBundle.read(store.folder(name))
        raise As2dError(
            f"model '{name}' is not on this machine",
            remedy=f"run 'as2d models pull {name}'",
            status=ExitStatus.UNAVAILABLE,
        )
    return bundle


def _row(entry: ModelEntry, store: Store) -> dict[str, object]:
    return {
        "id": entry.id,
        "role": entry.role,
        "family": entry.family,
        "languages": list(entry.languages),
        "size": entry.bytes,
        "licence": entry.licence,
        "state": store.state(entry).value,
        "default": bool(entry.default_for),
        "note": entry.note,
        "target": entry.target or None,
    }


def _cells(row: dict[str, object]) -> list[str]:
    """The columns of a row as text; sizes in bytes."""
    languages = row["languages"]
    assert isinstance(languages, list)
    return [" ".join(languages) if c == "languages" else str(row[c]) for c in _COLUMNS]


def _table(environment: Environment, rows: list[dict[str, object]]) -> None:
    from rich.console import Console
    from rich.table import Table

    # Notes are too long for a column: they come below.
    left_out = ("note",) if environment.width >= _WIDE else ("note", "family")
    columns = [c for c in _COLUMNS if c not in left_out]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        right = column in ("languages", "size")
        table.add_column(column, justify="right" if right else "left", no_wrap=True)
    for row in rows:
        languages, size = row["languages"], row["size"]
        assert isinstance(languages, list) and isinstance(size, int)
        cells = dict(zip(_COLUMNS, _cells(row), strict=True))
        if len(languages) > _MOST_CODES:
            cells["languages"] = str(len(languages))
        cells["size"] = _megabytes(size)
        table.add_row(
            *(cells[c] for c in columns), style="green" if row["state"] == "ready" else ""
        )
    console = Console(
        width=environment.width,
        force_terminal=True,
        no_color=not environment.colour,
        color_system="standard" if environment.colour else None,
    )
    with console.capture() as captured:
        console.print(table)
    environment.stdout.write(captured.get())
    for row in rows:
        if row["note"]:
            environment.stdout.write(f"{row['id']}: {row['note']}\n")


@contextmanager
def _listeners(environment: Environment, *, quiet: bool, verbose: bool) -> Iterator[Listeners]:
    from as2d_cli.catalog import Listeners, Silent, fetching

    def on_start(entry: ModelEntry, folder: Path) -> None:
        if not quiet:
            environment.talk(fetching(entry, folder))

    def on_wait(model_id: str) -> None:
        if not quiet:
            environment.talk(f"another process is pulling {model_id}, waiting for it")

    def on_problem(line: str) -> None:
        if verbose:
            environment.talk(line)

    if quiet or not environment.stderr.is_terminal or environment.dumb:
        yield Listeners(Silent(), on_start, on_wait, on_problem)
        return
    with _bars(environment) as progress:
        yield Listeners(progress, on_start, on_wait, on_problem)


@contextmanager
def _bars(environment: Environment) -> Iterator[Progress]:
    from as2d_cli.output.download_bars import DownloadBars

    bars = DownloadBars(environment)
    try:
        yield bars
    finally:
        bars.close()


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.0f} MB" if size else "?"
