"""What goes to a device beside the runner: bundles and clips, as files with digests."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from as2d_cli.audio.downmix import Samples
from as2d_cli.catalog.bundle import DESCRIPTION, record_file
from as2d_cli.device.place import Parcel
from as2d_cli.tasks.models import Model

__all__ = ["bundle_folder", "bundle_parcels", "clip_parcel"]


def bundle_folder(model: Model) -> str:
    """Its folder in the place."""
    return f"bundles/{model.id}"


def bundle_parcels(model: Model) -> list[Parcel]:
    """All files of a bundle."""
    folder = bundle_folder(model)
    records = [record_file(model.path / DESCRIPTION), *getattr(model, "files", ())]
    licence = getattr(model, "licence", "")
    return [
        Parcel(f"{folder}/{r.name}", model.path / r.name, r.size, r.sha256, licence)
        for r in records
    ]


def clip_parcel(windows: Iterable[Samples], folder: Path) -> Parcel:
    """Windows of a recording, one after the other, as raw samples in a file of `folder`."""
    digest = hashlib.sha256()
    size = 0
    path = folder / "clip"
    with path.open("wb") as file:
        for samples in windows:
            data = np.ascontiguousarray(samples, "<f4").tobytes()
            digest.update(data)
            file.write(data)
            size += len(data)
    name = f"{digest.hexdigest()[:32]}.f32"
    return Parcel(f"clips/{name}", path.replace(folder / name), size, digest.hexdigest())
