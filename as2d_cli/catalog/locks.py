"""One process at a time per model."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def model_lock(folder: Path, model_id: str, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold the lock of ``model_id``; ``on_wait`` is called if another process has it.

    The lock goes with the process, however it ends. Its file stays: deleting it would let a third
    process lock a new file while the second waits on the old one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{model_id}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
