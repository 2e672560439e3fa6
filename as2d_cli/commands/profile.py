"""``as2d profile``."""

from __future__ import annotations

import json as json_module
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from as2d_cli.commands.device_options import (
    FOLDER,
    SECONDS,
    Folder,
    Keep,
    OnDevice,
    Seconds,
    Serial,
    device_request,
)
from as2d_cli.environment import Environment
from as2d_cli.errors import As2dError, ExitStatus

if TYPE_CHECKING:
    from rich.console import Console

    from as2d_cli.catalog import Bundle, Listeners, Store
    from as2d_cli.device.opened import DeviceRequest
    from as2d_cli.machine import Conditions, MachineFacts
    from as2d_cli.output.file import ResultFile
    from as2d_cli.output.talk import Talk
    from as2d_cli.profile.session import Findings, ProfileRequest

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("profile", cls=OnDevice)(_profile)


def _profile(
    ctx: typer.Context,
    *,
    target: Annotated[str, typer.Option(metavar="ID|PATH", help="The target.")] = "whisper-base",
    drafter: Annotated[
        str,
        typer.Option(
            metavar="ID|PATH|auto|none",
            help="The drafter; auto: what transcribe or ask would take.",
        ),
    ] = "auto",
    quick: Annotated[bool, typer.Option("--quick", help="Under 10 seconds, and rough.")] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Minutes: more ways to share the cores, more repeats.")
    ] = False,
    saved: Annotated[
        bool, typer.Option("--saved", help="Measure nothing: show what was measured before.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show all plans, and why the first one won.")
    ] = False,
    alignment: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Plan for audio like that of as2d bench --alignment."),
    ] = None,
    device_file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|NAME",
            help="Estimate for a device that is described by a file, and measure nothing.",
        ),
    ] = None,
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the plan here, for --plan.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="All of it as one JSON object.")] = False,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page with charts here.")
    ] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Never ask the network for a model.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Nothing on standard error but errors.")
    ] = False,
    device: Serial = None,
    device_dir: Folder = FOLDER,
    device_seconds: Seconds = SECONDS,
    keep: Keep = True,
) -> None:
    """Measure this machine with a pair of models, and plan how transcribe uses its cores; with a
    language model, how ask does.

    Takes about a minute. What is measured is kept, and planned by for as long as machine, models
    and versions are the same.
    """
    from as2d_cli.output.file import result_files

    environment: Environment = ctx.obj
    _one_of({"--quick": quick, "--full": full, "--saved": saved})
    _one_of({"--device": device is not None, "--device-file": device_file is not None})
    there = device_request(ctx, device, device_dir, device_seconds, keep=keep)
    with ExitStack() as stack:
        files = result_files(stack, {"--save": save, "--html": html})
        if device_file is not None:
            _one_of({"--device-file": True, "--saved": saved, "--save": save is not None})
            _device(environment, device_file, alignment, explain=explain, json=json, files=files)
            return
        from as2d_cli.catalog.bundle import LLAMA
        from as2d_cli.profile.measure import FULL, QUICK, USUAL
        from as2d_cli.profile.session import ProfileRequest

        request = ProfileRequest(
            target=target,
            drafter=None if drafter == "none" else drafter,
            effort=QUICK if quick else FULL if full else USUAL,
            saved=saved,
            alignment=alignment,
        )
        talk, store, bundle = _target(environment, target, offline=offline, quiet=quiet)
        if bundle.family == LLAMA:
            _one_of({f"the language model {bundle.id}": True, "--html": html is not None})
            _one_of({f"the language model {bundle.id}": True, "--device": there is not None})
            _one_of({f"the language model {bundle.id}": True, "--alignment": alignment is not None})
            _answers(environment, request, bundle, store, talk, json=json, files=files, quiet=quiet)
            return
        found = _found(environment, request, bundle, store, talk, there, quiet=quiet)
        _show(environment, *found, explain=explain, json=json)
        _write(files, found[0])


def _target(
    environment: Environment, name: str, *, offline: bool, quiet: bool
) -> tuple[Talk, _Models, Bundle]:
    """Gets the target."""
    from as2d_cli.catalog import Listeners, Silent, default_store, fetching, waiting
    from as2d_cli.output.talk import Talk

    store = default_store(
        offline=offline, variables=environment.variables.get, cache=environment.cache_dir
    )
    talk = Talk(environment, quiet=quiet)
    listeners = Listeners(
        Silent(),
        on_start=lambda entry, folder: talk.notice(fetching(entry, folder)),
        on_wait=lambda other: talk.notice(waiting(other)),
    )
    models = _Models(store, listeners)
    return talk, models, store.ensure(name, listeners)


@dataclass(frozen=True)
class _Models:
    """The bundles of this machine, and who hears what while one is made."""

    store: Store
    listeners: Listeners

    def drafter(self, asked: str | None, default: Callable[[Store], str | None]) -> Bundle | None:
        """The drafter that is asked for; with ``auto`` the default."""
        from as2d_cli.tasks.models import AUTO

        name = default(self.store) if asked == AUTO else asked
        return None if name is None else self.store.ensure(name, self.listeners)


def _answers(
    environment: Environment,
    request: ProfileRequest,
    target: Bundle,
    models: _Models,
    talk: Talk,
    *,
    json: bool,
    files: dict[str, ResultFile],
    quiet: bool,
) -> None:
    """The profile of a language model."""
    from as2d_cli.output.answer_report import print_answers
    from as2d_cli.output.bench_progress import BenchProgress
    from as2d_cli.output.console import print_page
    from as2d_cli.profile.answer_profiles import AnswerProfiles
    from as2d_cli.profile.answer_session import profile_answers
    from as2d_cli.profile.plan_file import SavedPlan, as_json

    def here(store: Store) -> str | None:
        made = {entry.id for entry in store.catalogue.models if store.made(entry.id) is not None}
        return store.catalogue.smaller(target.id, made)

    drafter = models.drafter(request.drafter, here)
    watch = BenchProgress(environment, quiet=quiet)
    try:
        profiles = AnswerProfiles(environment.cache_dir)
        effort, saved = request.effort, request.saved
        found = profile_answers(target, drafter, effort, profiles, watch, saved=saved)
    finally:
        watch.close()
    if found.file is not None:
        talk.notice(f"kept in {found.file}; ask plans by it")
    if json:
        data = {"costs": found.costs.as_json(), "method": found.choice.method}
        whole = json_module.dumps(data | {"why": found.choice.why}, indent=1, allow_nan=False)
        environment.stdout.write(whole + "\n")
    else:
        print_page(environment, lambda console: print_answers(found, console))
    for file in files.values():
        plan = found.plan()
        needs = drafter.id if drafter is not None and plan.draft_cores else None
        saved_plan = as_json(SavedPlan(target.id, needs, plan))
        file.out.write(json_module.dumps(saved_plan, indent=1) + "\n")
        file.keep()


def _found(
    environment: Environment,
    request: ProfileRequest,
    target: Bundle,
    models: _Models,
    talk: Talk,
    device: DeviceRequest | None,
    *,
    quiet: bool,
) -> tuple[Findings, MachineFacts, Conditions]:
    """Gets the drafter, and measures; then tells of the machine."""
    from dataclasses import replace

    from as2d_cli.output.bench_progress import BenchProgress
    from as2d_cli.profile.profiles import Profiles
    from as2d_cli.profile.session import run_profile
    from as2d_cli.tasks.models import AUTO

    def default(store: Store) -> str | None:
        entry = store.catalogue.default_drafter("transcribe", target.id, None)
        return None if entry is None else entry.id

    drafter = models.drafter(request.drafter, default)
    if request.drafter == AUTO:
        request = replace(request, drafter=None if drafter is None else drafter.id)
    store = models.store
    watch = BenchProgress(environment, quiet=quiet)
    profiles = Profiles(environment.cache_dir)
    with ExitStack() as stack:
        site = None
        if device is not None:
            from as2d_cli.commands.device import open_for
            from as2d_cli.device.profile import DeviceSite

            opened = stack.enter_context(open_for(environment, device, quiet=quiet))
            site = DeviceSite(opened, device)
        stack.callback(watch.close)
        findings = run_profile(request, target, drafter, store, profiles, watch, site)
    if findings.file is not None:
        who = "transcribe plans" if site is None else "bench --device --plan auto plans"
        talk.notice(f"kept in {findings.file}; {who} by it")
    if site is not None:
        return findings, site.where.facts, site.conditions
    from as2d_cli.machine import read_conditions, read_machine

    return findings, read_machine(), read_conditions()


def _show(
    environment: Environment,
    findings: Findings,
    facts: MachineFacts,
    conditions: Conditions,
    *,
    explain: bool,
    json: bool,
) -> None:
    if json:
        from as2d_cli.profile.document import document

        whole = json_module.dumps(document(findings), indent=1, allow_nan=False)
        environment.stdout.write(whole + "\n")
        return
    from as2d_cli.output.console import print_page
    from as2d_cli.output.machine_table import write_machine
    from as2d_cli.output.profile_report import print_costs, print_plan, print_ranking

    write_machine(facts, conditions, environment)
    environment.stdout.write("\n")

    def report(console: Console) -> None:
        print_costs(findings.costs, console)
        console.print()
        if explain:
            print_ranking(findings, console)
            console.print()
        print_plan(findings, console)

    print_page(environment, report)


def _device(
    environment: Environment,
    name: str,
    alignment: Path | None,
    *,
    explain: bool,
    json: bool,
    files: dict[str, ResultFile],
) -> None:
    from as2d_cli.profile.device import read_device
    from as2d_cli.profile.growth import growth

    device = read_device(name)
    found = growth(device, alignment)
    if json:
        from as2d_cli.profile.document import growth_document

        whole = json_module.dumps(growth_document(device, found), indent=1, allow_nan=False)
        environment.stdout.write(whole + "\n")
    else:
        from as2d_cli.output.console import print_page
        from as2d_cli.output.growth_table import print_growth

        print_page(
            environment, lambda console: print_growth(device, found, console, explain=explain)
        )
    for option, file in files.items():
        from as2d_cli.output.profile_page import growth_page

        assert option == "--html"
        file.out.write(growth_page(device, found))
        file.keep()


def _write(files: dict[str, ResultFile], findings: Findings) -> None:
    for option, file in files.items():
        file.out.write(_written(option, findings))
        file.keep()


def _written(option: str, findings: Findings) -> str:
    if option == "--html":
        from as2d_cli.output.profile_page import page

        return str(page(findings))
    from as2d_cli.profile.plan_file import SavedPlan, as_json

    chosen = findings.chosen.candidate
    saved = SavedPlan(chosen.costs.target, chosen.drafter, findings.plan())
    return json_module.dumps(as_json(saved), indent=1) + "\n"


def _one_of(options: dict[str, bool]) -> None:
    given = [name for name, value in options.items() if value]
    if len(given) > 1:
        raise As2dError(
            f"{given[0]} and {given[1]} do not go together",
            remedy="leave one out",
            status=ExitStatus.USAGE,
        )
