"""``models.toml``: the models that as2d knows, what they are made of, and where to get it."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from as2d_cli.catalog.bundle import LLAMA
from as2d_cli.errors import As2dError, ExitStatus

# Families that a bundle can be built for.
USABLE_FAMILIES = ("whisper", "moonshine", "head", "silero", "llama", "audio-llm")
_FILE_NAME = "models.toml"


@dataclass(frozen=True)
class SourceFile:
    """A file a model is made of; ``size`` in bytes and ``sha256`` in hex where they are known.

    Attributes:
        optional: what is in it may be in another file, and then a source need not have it.
    """

    name: str
    size: int | None = None
    sha256: str | None = None
    optional: bool = False


@dataclass(frozen=True)
class HubSource:
    """A Hugging Face repository at a pinned revision, or at ``main`` where none is known."""

    repo: str
    revision: str


@dataclass(frozen=True)
class PackageSource:
    """Data files inside published wheels.

    Attributes:
        packages: requirements, ``name==version``.
        members: for each file, the archive members that make it when put one after another.
        platform: a wheel's platform tag to fall back on where there is none for this machine.
    """

    packages: tuple[str, ...]
    members: Mapping[str, tuple[str, ...]]
    platform: str | None = None


@dataclass(frozen=True)
class ShippedSource:
    """Files that came with as2d.

    Attributes:
        paths: of each file, below the package's folder.
    """

    paths: Mapping[str, str]


Source = HubSource | PackageSource | ShippedSource


@dataclass(frozen=True)
class ModelEntry:
    """One model of the catalogue.

    Attributes:
        role: ``target``, ``drafter``, ``vad``, ``llm`` or ``audio-llm``.
        languages: language codes; ``("en",)`` means English only; none where it does not matter.
        default_for: the command that uses it unless told otherwise.
        target: of a head: id of the target that it was made for.
    """

    id: str
    role: str
    family: str
    licence: str
    languages: tuple[str, ...]
    files: tuple[SourceFile, ...]
    sources: tuple[Source, ...] = ()
    note: str = ""
    default_for: str = ""
    target: str = ""

    @property
    def bytes(self) -> int:
        """Size of all files as far as it is known."""
        return sum(file.size or 0 for file in self.files)

    @property
    def usable(self) -> bool:
        """Whether this version can make a bundle of it."""
        return self.family in USABLE_FAMILIES and bool(self.sources)


@dataclass(frozen=True)
class Catalogue:
    """All known models, in the order they are listed."""

    models: tuple[ModelEntry, ...]
    _by_id: Mapping[str, ModelEntry] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_id", {entry.id: entry for entry in self.models})

    def get(self, model_id: str) -> ModelEntry | None:
        """The model of this id."""
        return self._by_id.get(model_id)

    def require(self, model_id: str) -> ModelEntry:
        """The model of this id.

        Raises:
            As2dError: there is none; the remedy lists ids like it.
        """
        entry = self.get(model_id)
        if entry is None:
            near = get_close_matches(model_id.lower(), self._by_id, n=3, cutoff=0.5)
            remedy = (
                f"did you mean {' or '.join(near)}?" if near else "'as2d models list' shows all"
            )
            raise As2dError(f"no model '{model_id}'", remedy=remedy, status=ExitStatus.UNAVAILABLE)
        return entry

    def defaults(self, command: str) -> tuple[ModelEntry, ...]:
        """The models that ``command`` uses unless told otherwise: a target and its drafter."""
        found: list[ModelEntry] = []
        for entry in self.models:
            if entry.role == "target" and entry.default_for == command:
                drafter = self.default_drafter(command, entry.id)
                found += [entry] if drafter is None else [entry, drafter]
        return tuple(found)

    def voice(self, command: str) -> ModelEntry | None:
        """The model by which ``command`` tells speech from what is none."""
        found = (e for e in self.models if e.role == "vad" and e.default_for == command)
        return next(found, None)

    def answerer(self, command: str) -> ModelEntry:
        """The language model that ``command`` uses unless told otherwise.

        Raises:
            As2dError: the catalogue has none.
        """
        for entry in self.models:
            if entry.role == "llm" and entry.default_for == command:
                return entry
        raise As2dError(f"no model for {command}", remedy="name one", status=ExitStatus.UNAVAILABLE)

    def default_drafter(
        self, command: str, target: str, language: str | None = None
    ) -> ModelEntry | None:
        """The drafter that ``command`` uses with a target unless told otherwise.

        One that was made for this target goes before one for all of them: it costs no encoder.

        Args:
            command: as ``default_for`` names it.
            target: id of the target's bundle.
            language: code of what is spoken; None where that is found out later.
        """
        usable = [entry for entry in self.models if entry.role == "drafter" and entry.usable]
        for entry in usable:
            if entry.target == target and (language is None or language in entry.languages):
                return entry
        others = (entry for entry in usable if entry.default_for == command and not entry.target)
        return next(others, None)

    def smaller(self, model_id: str, among: Collection[str]) -> str | None:
        """The largest language model that is smaller than this one, which hears nothing either: no
        model that hears is run as a drafter.
        """
        own = self.get(model_id)
        if own is None or own.family != LLAMA:
            return None
        found = [
            entry
            for entry in self.models
            if entry.role == own.role and entry.id in among and entry.bytes < own.bytes
        ]
        return max(found, key=lambda entry: entry.bytes).id if found else None


def load_catalogue(path: Path | None = None) -> Catalogue:
    """Read the catalogue; ``path`` replaces the one that comes with as2d.

    Raises:
        As2dError: the file is missing or not understood.
    """
    path = path or _installed()
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        return Catalogue(tuple(_entry(item) for item in data["model"]))
    except OSError as error:
        problem = f"cannot be read ({error.strerror})"
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        problem = f"is no model catalogue ({error})"
    raise As2dError(f"{path}: {problem}", remedy="install as2d again", status=ExitStatus.INTERNAL)


def _installed() -> Path:
    """In the package when installed, beside it in a source tree."""
    package = Path(__file__).resolve().parent.parent
    inside = package / _FILE_NAME
    return inside if inside.exists() else package.parent / _FILE_NAME


def _entry(item: Mapping[str, Any]) -> ModelEntry:
    return ModelEntry(
        id=item["id"],
        role=item["role"],
        family=item["family"],
        licence=item["licence"],
        languages=tuple(item["languages"].split()),
        files=tuple(
            SourceFile(
                file["name"], file.get("bytes"), file.get("sha256"), file.get("optional", False)
            )
            for file in item["file"]
        ),
        sources=tuple(_source(source) for source in item.get("source", ())),
        note=item.get("note", ""),
        default_for=item.get("default_for", ""),
        target=item.get("target", ""),
    )


def _source(item: Mapping[str, Any]) -> Source:
    if item["kind"] == "hub":
        return HubSource(item["repo"], item["revision"])
    if item["kind"] == "pypi":
        return PackageSource(
            packages=tuple(item["packages"]),
            members={name: tuple(parts) for name, parts in item["members"].items()},
            platform=item.get("platform"),
        )
    if item["kind"] == "package":
        return ShippedSource(dict(item["files"]))
    raise ValueError(f"unknown kind of source '{item['kind']}'")
