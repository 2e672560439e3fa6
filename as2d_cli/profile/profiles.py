"""Profiles that were measured before: where they are kept, and whether they still hold."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol, TypeVar

from as2d_cli import __version__
from as2d_cli.cpu import cpu_name
from as2d_cli.errors import As2dError
from as2d_cli.machine import MachineFacts, read_machine
from as2d_cli.profile.alignment import (
    Recordings,
    recordings_from_json,
    recordings_json,
    shipped,
)
from as2d_cli.profile.costs import CostModel

__all__ = [
    "BundleFolder",
    "Profile",
    "Profiles",
    "Where",
    "file_name",
    "here",
    "key_of",
    "read_kept",
    "write_whole",
]


_Kept = TypeVar("_Kept")


class BundleFolder(Protocol):
    """What is used of a bundle."""

    @property
    def id(self) -> str: ...
    @property
    def path(self) -> Path: ...


@dataclass(frozen=True)
class Profile:
    """What is known of a machine with a pair of models.

    Attributes:
        heard: traces of what was heard while it was measured; for pairs that none came with.
    """

    costs: CostModel
    heard: Recordings = ()

    def recordings(self) -> Recordings:
        """Traces to plan by."""
        return shipped(self.costs.target, self.costs.drafter) or self.heard


class Profiles:
    """The profiles of one cache folder, a file for each machine and pair of models."""

    def __init__(self, cache: Path) -> None:
        self._folder = cache / "profiles"

    def save(self, profile: Profile) -> Path:
        """Keeps it, whole or not at all, in the place of the one before.

        Raises:
            As2dError: there is no room, or no permission.
        """
        data = profile.costs.as_json() | {"heard": recordings_json(profile.heard)}
        path = self._path(profile.costs.key)
        write_whole(path, data)
        return path

    def load(self, key: Mapping[str, Any]) -> tuple[Profile | None, str]:
        """The profile of a machine and a pair, and if there is none that holds, why not.

        For a target alone any profile with it will do.
        """
        why = "nothing was measured here"
        for path in self._paths(key):
            profile, why = read_kept(path, key, _profile)
            if profile is not None:
                return profile, ""
        return None, why

    def _paths(self, key: Mapping[str, Any]) -> list[Path]:
        if key["drafter"] is not None:
            return [self._path(key)]
        stem = self._path(key).stem.removesuffix("none")
        return sorted(self._folder.glob(f"{stem}*.json"))

    def _path(self, key: Mapping[str, Any]) -> Path:
        return self._folder / file_name(key)


def file_name(key: Mapping[str, Any]) -> str:
    """Of what was measured, by what it belongs to."""
    # Cores are no part of the name: a smaller mask is the same machine, and stale.
    names = (key["machine"], key["target"], key["drafter"] or "none")
    return "-".join(_plain(str(name)) for name in names) + ".json"


def write_whole(path: Path, data: Mapping[str, Any] | Sequence[Any]) -> None:
    """Writes JSON, whole or not at all, in the place of what was there.

    Raises:
        As2dError: there is no room, or no permission.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        raise As2dError(
            f"cannot write {path}: {error.strerror}",
            remedy="make room there or set AS2D_CACHE_DIR to another folder",
        ) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def read_kept(
    path: Path, key: Mapping[str, Any], parse: Callable[[Any], tuple[_Kept, Mapping[str, Any]]]
) -> tuple[_Kept | None, str]:
    """What a file keeps for `key`, and if that is nothing that holds, why not.

    Args:
        parse: makes of JSON what is kept, and the key that it belongs to; whatever it raises for
            what is no such thing.
    """
    try:
        found, belongs_to = parse(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None, "nothing was measured here"
    except OSError as error:
        return None, f"{path.name} cannot be read ({error.strerror})"
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None, f"{path.name} is broken"
    why = _stale(belongs_to, key)
    return (None, why) if why else (found, "")


def _profile(data: Any) -> tuple[Profile, Mapping[str, Any]]:
    costs = CostModel.from_json(data)
    return Profile(costs, recordings_from_json(data["heard"])), costs.key


def _stale(found: Mapping[str, Any], key: Mapping[str, Any]) -> str:
    """Why what belongs to `found` says nothing of `key`, or an empty text.

    Where the latter has no drafter, any will do.
    """
    # Through JSON, so that both sides have lists where one had tuples.
    wanted = json.loads(json.dumps(dict(key)))
    names = [n for n in wanted if key["drafter"] is not None or not n.startswith("drafter")]
    changed = [name for name in names if wanted[name] != found.get(name)]
    return f"what was measured is stale: {_listed(changed)} changed since" if changed else ""


@dataclass(frozen=True)
class Where:
    """A machine that is measured.

    Attributes:
        name: of its processor, or of all of it.
        onnxruntime: version.
    """

    name: str
    facts: MachineFacts
    onnxruntime: str


def here() -> Where:
    """This machine."""
    return Where(cpu_name(), read_machine(), metadata.version("onnxruntime"))


def key_of(
    target: BundleFolder, drafter: BundleFolder | None, where: Where | None = None
) -> dict[str, Any]:
    """What a measurement with these models, there and now, belongs to."""
    where = where or here()
    return {
        "machine": where.name,
        "cores, or what limits them": where.facts.fingerprint(),
        "kernels": where.facts.kernels,
        "as2d": __version__,
        "onnxruntime": where.onnxruntime,
        "target": target.id,
        "target's files": _digest(target),
        "drafter": drafter.id if drafter is not None else None,
        "drafter's files": _digest(drafter) if drafter is not None else None,
    }


def _digest(bundle: BundleFolder) -> str:
    """Of the description, which has the digest of every file."""
    try:
        return hashlib.sha256((bundle.path / "bundle.txt").read_bytes()).hexdigest()
    except OSError:
        return ""


def _plain(name: str) -> str:
    """As part of a file name: short, and not the same for two names."""
    short = re.sub(r"[^A-Za-z0-9.]+", "_", name).strip("_.")[:40]
    return short if short == name else f"{short}_{hashlib.sha256(name.encode()).hexdigest()[:6]}"


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + f" and {names[-1]}"
