"""From the names of a target and a drafter to an open engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from as2d_cli.catalog.bundle import ANSWERING, AUDIO_LLM
from as2d_cli.decoding.costs import RunCosts
from as2d_cli.decoding.plan import PlanRequest, this_machine
from as2d_cli.errors import As2dError, ExitStatus
from as2d_cli.methods import needs_drafter
from as2d_cli.profile.answer_costs import AnswerCosts
from as2d_cli.profile.costs import CostModel
from as2d_cli.profile.recent import RecentAnswers
from as2d_cli.tasks.interrupt import interruptible
from as2d_cli.tasks.transcript import Counters, Monitor
from as2d_cli.text.whisper_prompt import ModelFacts

__all__ = [
    "AUTO",
    "Backend",
    "EngineFace",
    "Model",
    "ModelRequest",
    "Models",
    "RunFace",
    "Voice",
    "check_answerer",
    "check_drafter",
    "check_listener",
    "check_method",
    "default_backend",
    "drafter_name",
    "hears",
    "make_plan",
    "open_models",
    "open_voice",
]


AUTO = "auto"
"""The drafter that suits the target and the language."""


class PiecesFace(Protocol):
    """A vocabulary: the bytes of each token, and whether ids are in the order of their merges."""

    @property
    def pieces(self) -> Sequence[bytes]: ...
    @property
    def merge_ranks(self) -> bool: ...
    @property
    def merges(self) -> Sequence[int]: ...


class Model(ModelFacts, Protocol):
    """What is used of a bundle."""

    @property
    def path(self) -> Path: ...
    @property
    def context(self) -> int: ...
    @property
    def row_invariance(self) -> str: ...
    @property
    def target(self) -> str: ...
    @property
    def vocabulary_file(self) -> str: ...
    @property
    def pre_tokenizer(self) -> str: ...
    @property
    def special(self) -> Mapping[int, str]: ...
    @property
    def kind(self) -> str: ...
    @property
    def window_samples(self) -> int: ...
    @property
    def pad_to_window(self) -> bool: ...
    @property
    def samples_per_position(self) -> int: ...
    @property
    def spare_positions(self) -> int: ...
    def vocabulary(self) -> PiecesFace: ...


class RunFace(Protocol):
    """What is used of a run of the engine (see `as2d_cli.decoding.Run`)."""

    def submit(self, window: Any, /) -> None: ...
    def finish(self) -> None: ...
    def cancel(self) -> None: ...
    def poll(self, timeout: float, /) -> Sequence[Any]: ...
    def counters(self) -> Counters: ...


class EngineFace(Protocol):
    """What is used of the engine (see `as2d_cli.decoding.Engine`)."""

    @property
    def warnings(self) -> Sequence[str]: ...
    @property
    def notices(self) -> Sequence[str]: ...
    def detect_language(self, samples: Any, /) -> tuple[str, float]: ...
    def start(self, draft: bool = True) -> RunFace: ...


class PlanFace(Protocol):
    """What is used of a plan (see `as2d_cli.decoding.Plan`)."""

    @property
    def method(self) -> str: ...
    @property
    def budget(self) -> int: ...
    @property
    def windows(self) -> int: ...
    @property
    def target_cores(self) -> Sequence[int]: ...
    @property
    def draft_cores(self) -> Sequence[int]: ...
    @property
    def pin(self) -> bool: ...
    @property
    def why(self) -> str: ...
    def drafts(self, seconds: float | None, /) -> bool: ...


class Voice(Protocol):
    """What is used of a voice-activity model (see `as2d_cli.decoding.voice.VoiceModel`)."""

    def start(self) -> Callable[[Any], Any]: ...


@dataclass(frozen=True)
class Backend:
    """Catalogue and engine, so that tests can bring their own.

    Attributes:
        ensure: (id or path, offline) -> bundle, pulled and built if need be.
        drafter: (id of a target, language or None) -> id of the drafter that suits both, or None.
        shares_encoder: whether a drafter of this name needs no encoder of its own.
        plan: how the lanes share the cores, as `as2d_cli.decoding.make_plan`.
        open: (target, drafter or None, plan) -> context manager of an engine.
        voice: offline -> the model that tells speech from what is none.
        costs: (target, drafter or None) -> what was measured here and still holds, or None.
        to_fetch: id or path -> what would have to be fetched for it ("1117 MB, licence MIT"), or
            None for nothing.
        cores: that can be kept busy here; 0 where that is not known.
        answer_drafter: id or path of a language model -> id of one that is here and can draft for
            it, or None.
        answer_costs: (language model, drafter or None) -> what was measured here and still holds;
            or None, and why.
        recent: language model -> what became of its recent answers.
    """

    ensure: Callable[[str, bool], Model]
    drafter: Callable[[str, str | None], str | None]
    shares_encoder: Callable[[str], bool]
    plan: Callable[[PlanRequest], PlanFace]
    open: Callable[[Model, Model | None, Any], AbstractContextManager[EngineFace]]
    voice: Callable[[bool], Voice]
    costs: Callable[[Model, Model | None], CostModel | None] = lambda target, drafter: None
    to_fetch: Callable[[str], str | None] = lambda name: None
    cores: Callable[[], int] = lambda: 0
    answer_drafter: Callable[[str], str | None] = lambda target: None
    answer_costs: Callable[[str, str | None], tuple[AnswerCosts | None, str]] = (
        lambda target, drafter: (None, "nothing was measured here")
    )
    recent: Callable[[str], RecentAnswers] = lambda target: RecentAnswers(None)


@dataclass(frozen=True)
class ModelRequest:
    """Which models and how they share the machine.

    Attributes:
        target, drafter: id or path; `drafter` None for none, ``auto`` for what suits.
        method: one of `as2d_cli.methods.METHODS`, or ``auto``: what the cores are enough for.
        budget: most candidates per verify step, windows of ``batched``; None for what suits.
        target_cores, draft_cores: "0-3,5", or None to choose.
        windows: of one recording in a batch, with drafts; None for what suits.
        threads: most threads of both lanes together; None for what suits.
        pin: bind threads to cores, where the platform can.
        costs: what is known of the lanes that are asked for.
        offline: never ask the network.
    """

    target: str
    drafter: str | None
    method: str = "as2d"
    budget: int | None = None
    target_cores: str | None = None
    draft_cores: str | None = None
    windows: int | None = None
    threads: int | None = None
    pin: bool = True
    costs: RunCosts | None = None
    offline: bool = False


@dataclass(frozen=True)
class Models:
    """An open engine with the models in it."""

    engine: EngineFace
    target: Model
    drafter: Model | None
    plan: PlanFace


@contextmanager
def open_models(
    request: ModelRequest,
    plan: PlanFace,
    backend: Backend,
    monitor: Monitor,
    check: Callable[[Model], None] | None = None,
    language: str | None = None,
) -> Iterator[Models]:
    """Opens the engine; a drafter that cannot be had is one warning and the target goes alone.

    Args:
        check: sees the target before anything heavy is loaded and may refuse it.
        language: code of what is spoken, if that is known; for the choice of a drafter.

    Raises:
        As2dError: the target cannot be had or loaded, or the drafter is for another one.
    """
    target = backend.ensure(request.target, request.offline)
    if check is not None:
        check(target)
    drafter: Model | None = None
    if needs_drafter(plan.method):
        name = drafter_name(request.drafter, target.id, language, backend)
        drafter = _drafter(name, target, request.offline, backend, monitor)
    with interruptible(lambda: backend.open(target, drafter, plan)) as engine:
        for text in engine.notices:
            monitor.notice(text)
        for text in engine.warnings:
            monitor.warning(text)
        if engine.warnings:  # a drafter that could not be loaded
            drafter = None
        yield Models(engine, target, drafter, plan)


def _drafter(
    name: str | None, target: Model, offline: bool, backend: Backend, monitor: Monitor
) -> Model | None:
    if name is None:
        return None
    try:
        drafter = backend.ensure(name, offline)
    except As2dError as e:
        monitor.warning(f"no drafter, the target goes alone: {e}")
        return None
    check_drafter(name, drafter, target)
    return drafter


def drafter_name(
    asked: str | None, target: str, language: str | None, backend: Backend
) -> str | None:
    """The drafter that is meant: ``auto`` is the one that suits; None for none."""
    return backend.drafter(target, language) if asked == AUTO else asked


def check_drafter(name: str, drafter: Model, target: Model) -> None:
    """Refuses a head that was made for another target.

    Args:
        name: what the user calls the drafter.

    Raises:
        As2dError: status USAGE.
    """
    if drafter.target not in ("", target.id):
        raise As2dError(
            f"drafter {name} is a head for the target {drafter.target}, not for {target.id}",
            remedy="choose that target or another drafter",
            status=ExitStatus.USAGE,
        )


def check_answerer(model: Model) -> None:
    """Refuses a model that does not answer.

    Raises:
        As2dError: status USAGE.
    """
    if model.family not in ANSWERING:
        raise As2dError(
            f"{model.id} is no language model",
            remedy="choose an llm of 'as2d models list'",
            status=ExitStatus.USAGE,
        )


def hears(model: Model) -> bool:
    """Whether a model that answers hears the recording itself, and needs no transcript."""
    return model.family == AUDIO_LLM


def check_method(model: Model, method: str) -> None:
    """Refuses a method for answers that the model cannot be run with.

    Raises:
        As2dError: status USAGE.
    """
    if method == "multi" and hears(model):
        raise As2dError(
            f"the method multi verifies several runs beside each other, which {model.id} cannot",
            remedy="choose another method",
            status=ExitStatus.USAGE,
        )


def check_listener(model: Model) -> None:
    """Refuses a model that does not write down what it hears.

    Raises:
        As2dError: status USAGE.
    """
    if model.family in ANSWERING:
        what = "writes down nothing" if hears(model) else "hears nothing"
        raise As2dError(
            f"{model.id} is a language model, which {what}",
            remedy="choose a target of 'as2d models list'",
            status=ExitStatus.USAGE,
        )


def open_voice(backend: Backend, monitor: Monitor, *, offline: bool) -> Voice | None:
    """The model that tells speech from what is none; without it, one warning and None."""
    try:
        return backend.voice(offline)
    except As2dError as e:
        monitor.warning(f"noise and music are not told from speech: {e}")
        return None


def make_plan(
    request: ModelRequest,
    backend: Backend,
    language: str | None = None,
    seconds: float | None = None,
) -> PlanFace:
    """How the two lanes share the cores.

    Args:
        language: code of what is spoken, if that is known; for the choice of a drafter.
        seconds: of each recording, if that is known.

    Raises:
        As2dError: status USAGE; the cores asked for are not there.
    """
    name = drafter_name(request.drafter, request.target, language, backend)
    return backend.plan(
        PlanRequest(
            method=request.method,
            budget=request.budget,
            target_cores=request.target_cores,
            draft_cores=request.draft_cores,
            windows=request.windows,
            shares_encoder=name is not None and backend.shares_encoder(name),
            threads=request.threads,
            pin=request.pin,
            target=request.target,
            drafter=name,
            costs=request.costs,
            seconds=seconds,
        )
    )


def default_backend(monitor: Monitor, progress: Any = None) -> Backend:
    """The real catalogue and the native engine.

    Args:
        monitor: hears of downloads before they begin: what, how large, where to.
        progress: shows their bytes (see `as2d_cli.catalog.Progress`), or None.
    """
    from as2d_cli import catalog, decoding
    from as2d_cli.profile.answer_profiles import AnswerProfiles
    from as2d_cli.profile.choose import plan_by_profile
    from as2d_cli.profile.profiles import Profiles, key_of

    def ensure(name: str, offline: bool) -> catalog.Bundle:
        return catalog.ensure_bundle(
            name,
            progress=progress,
            on_start=lambda entry, folder: monitor.notice(catalog.fetching(entry, folder)),
            on_wait=lambda other: monitor.notice(catalog.waiting(other)),
            offline=offline or None,
        )

    def drafter(target: str, language: str | None) -> str | None:
        entry = catalog.load_catalogue().default_drafter("transcribe", target, language)
        return None if entry is None else entry.id

    def shares_encoder(name: str) -> bool:
        entry = catalog.load_catalogue().get(name)
        return entry is not None and bool(entry.target)

    def voice(offline: bool) -> Voice:
        from as2d_cli.decoding.voice import VoiceModel

        entry = catalog.load_catalogue().voice("transcribe")
        assert entry is not None, "models.toml has a model for it"
        return VoiceModel(ensure(entry.id, offline).encoder_path)

    def costs(target: Model, drafter: Model | None) -> CostModel | None:
        profile, _ = Profiles(catalog.default_store().cache).load(key_of(target, drafter))
        return None if profile is None else profile.costs

    def to_fetch(name: str) -> str | None:
        store = catalog.default_store()
        entry = store.catalogue.get(name)
        if entry is None or store.made(name) is not None:
            return None
        return catalog.terms(entry)

    def answer_drafter(target: str) -> str | None:
        store = catalog.default_store()
        here = {entry.id for entry in store.catalogue.models if store.made(entry.id) is not None}
        return store.catalogue.smaller(target, here)

    def there(name: str) -> catalog.Bundle | None:
        """The bundle of this name or in this folder, if it is on this machine."""
        try:
            return catalog.default_store().find(name)
        except As2dError:  # told when it is to be loaded
            return None

    def answer_costs(target: str, drafter: str | None) -> tuple[AnswerCosts | None, str]:
        own = there(target)
        if own is None:
            return None, "nothing was measured here"
        with_drafter = there(drafter) if drafter is not None else None
        profiles = AnswerProfiles(catalog.default_store().cache)
        found, why = profiles.load(key_of(own, with_drafter))
        if found is None and with_drafter is not None:
            return profiles.load(key_of(own, None))[0], why
        return found, why

    def recent(target: str) -> RecentAnswers:
        own = there(target)
        profiles = AnswerProfiles(catalog.default_store().cache)
        return profiles.recent(target if own is None else own.id)

    return Backend(
        ensure=ensure,
        drafter=drafter,
        shares_encoder=shares_encoder,
        plan=lambda request: plan_by_profile(request, catalog.default_store()),
        open=decoding.Engine.open,
        voice=voice,
        costs=costs,
        to_fetch=to_fetch,
        cores=lambda: this_machine().granted,
        answer_drafter=answer_drafter,
        answer_costs=answer_costs,
        recent=recent,
    )
