"""What was built for a device: files with digests and licences, and how the runner is started."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

__all__ = ["MANIFEST", "Built", "BuiltFile"]

MANIFEST = "manifest.json"
_FORMAT = "as2d-device-1"
_CHUNK = 1 << 20


@dataclass(frozen=True)
class BuiltFile:
    """A file that goes to the device.

    Attributes:
        name: its path, here below the built folder, there in the place of as2d.
        licence: SPDX expression.
        origin: where it is from, for people.
    """

    name: str
    sha256: str
    size: int
    licence: str
    origin: str

    @classmethod
    def of(cls, folder: Path, name: str, licence: str, origin: str) -> BuiltFile:
        """A file that is there."""
        path = folder / name
        return cls(name, _sha256(path), path.stat().st_size, licence, origin)


@dataclass(frozen=True)
class Built:
    """A folder with everything that a device needs beside models.

    Attributes:
        system: "glibc", whose loader travels along, or "bionic".
        start: words that start the runner, in the place of as2d.
        library: ONNX Runtime's, there.
        onnxruntime: its version.
    """

    folder: Path
    system: str
    files: Sequence[BuiltFile]
    start: tuple[str, ...]
    library: str
    onnxruntime: str

    def write(self) -> None:
        """Writes the manifest, which makes the folder whole."""
        data = {"format": _FORMAT, **asdict(self)}
        del data["folder"]
        text = json.dumps(data, indent=2) + "\n"
        (self.folder / MANIFEST).write_text(text, encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> Built | None:
        """What a folder holds; None where a file is missing or is another than it was."""
        try:
            data = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
            if data.pop("format") != _FORMAT:
                return None
            files = tuple(BuiltFile(**entry) for entry in data.pop("files"))
            start = tuple(data.pop("start"))
            built = cls(folder=folder, files=files, start=start, **data)
            whole = all(_sha256(folder / file.name) == file.sha256 for file in files)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        return built if whole else None


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
