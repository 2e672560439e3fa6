"""From the name of a model to a bundle on disk that the engine can load.

Importing this package loads neither numpy nor ONNX Runtime.
"""

from __future__ import annotations

from as2d_cli.catalog.bundle import Bundle, BundleError
from as2d_cli.catalog.entries import Catalogue, ModelEntry, load_catalogue
from as2d_cli.catalog.progress import (
    OnProblem,
    OnStart,
    OnWait,
    Progress,
    Silent,
    fetching,
    no_start,
    no_talk,
    terms,
    waiting,
)
from as2d_cli.catalog.store import Listeners, State, Store, default_store

__all__ = [
    "Bundle",
    "BundleError",
    "Catalogue",
    "Listeners",
    "ModelEntry",
    "Progress",
    "Silent",
    "State",
    "Store",
    "default_store",
    "ensure_bundle",
    "fetching",
    "find_bundle",
    "load_catalogue",
    "terms",
    "waiting",
]


def find_bundle(name_or_path: str) -> Bundle | None:
    """The bundle of a catalogue id or of a user's own folder; never asks the network.

    Returns:
        None for a catalogue model whose bundle is missing or outdated.

    Raises:
        As2dError: no such id or folder, or a folder that cannot be converted.
    """
    return default_store().find(name_or_path)


def ensure_bundle(
    name_or_path: str,
    *,
    progress: Progress | None = None,
    on_start: OnStart = no_start,
    on_wait: OnWait = no_talk,
    on_problem: OnProblem = no_talk,
    offline: bool | None = None,
) -> Bundle:
    """The bundle of a catalogue id or of a user's own folder, pulled and built if need be.

    Args:
        name_or_path: an id of the catalogue, or a folder.
        progress: shows bytes fetched.
        on_start: is told what is about to be fetched, how large it is and where it goes.
        on_wait: is told when another process is pulling the model.
        on_problem: is told of sources that could not deliver, one line each.
        offline: never ask the network; by the environment variable AS2D_OFFLINE if left out.

    Raises:
        As2dError: the model cannot be had.
    """
    listeners = Listeners(progress or Silent(), on_start, on_wait, on_problem)
    return default_store(offline=offline).ensure(name_or_path, listeners)
