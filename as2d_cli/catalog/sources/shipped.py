"""Files that came with as2d: nothing is fetched."""

from __future__ import annotations

from pathlib import Path

from as2d_cli.catalog.entries import ModelEntry, ShippedSource
from as2d_cli.catalog.sources import is_whole
from as2d_cli.errors import As2dError, ExitStatus

_PACKAGE = Path(__file__).resolve().parents[2]


def find(entry: ModelEntry) -> dict[str, Path] | None:
    """The files of ``entry`` by name where they are installed; None for a model that is fetched.

    Raises:
        As2dError: one of them is missing or is not what it should be.
    """
    source = next((s for s in entry.sources if isinstance(s, ShippedSource)), None)
    if source is None:
        return None
    found = {file.name: _PACKAGE / source.paths[file.name] for file in entry.files}
    for file in entry.files:
        path = found[file.name]
        if not is_whole(file, path):
            problem = "is damaged" if path.exists() else "is missing"
            raise As2dError(
                f"{path}: {problem}", remedy="install as2d again", status=ExitStatus.UNAVAILABLE
            )
    return found
