"""Ctrl-C during a long native call."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TypeVar

__all__ = ["instead_of_interruption", "interruptible"]

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


@contextlib.contextmanager
def instead_of_interruption(stop: Callable[[], None]) -> Iterator[None]:
    """In the body the first Ctrl-C calls `stop`; the next one interrupts as ever.

    Without effect outside the main thread, and where Ctrl-C is to be ignored.
    """
    usual = signal.getsignal(signal.SIGINT)
    main = threading.current_thread() is threading.main_thread()
    if not main or usual in (signal.SIG_IGN, None):
        yield
        return

    def first(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, usual)
        stop()

    signal.signal(signal.SIGINT, first)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
