"""Ctrl-C during a long native call."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

__all__ = ["interruptible"]

T = TypeVar("T")


def interruptible(call: Callable[[], T]) -> T:
    """Returns `call()`, made in a thread of its own, so that a signal is heard while it runs.

    Python runs signal handlers between byte codes of the main thread; a model that loads for two
    seconds inside one native call would not hear Ctrl-C. After an interruption the call goes on in
    the background, unheard.
    """
    done = threading.Event()
    results: list[T] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            results.append(call())
        except BaseException as e:  # handed to the caller below
            errors.append(e)
        finally:
            done.set()

    threading.Thread(target=work, name="as2d-call", daemon=True).start()
    done.wait()
    if errors:
        raise errors[0]
    return results[0]
