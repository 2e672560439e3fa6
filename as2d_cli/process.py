"""What belongs to the process: signals, closed descriptors, the way out."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Sequence
from types import FrameType

from as2d_cli.app import Terminated, run
from as2d_cli.environment import Environment
from as2d_cli.errors import ExitStatus
from as2d_cli.leftovers import remove_all

__all__ = ["run_process"]

_SHOW_CURSOR = b"\x1b[?25h"
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_ABRUPT = (*(ExitStatus(128 + number) for number in _SIGNALS), ExitStatus.BROKEN_PIPE)


def run_process(args: Sequence[str]) -> int:
    """Runs `args` in this process's own environment and returns the exit status.

    After an interruption it does not return: a thread may still be inside a native call (loading a
    model, waiting for a pipe), and neither waiting for it nor tearing the interpreter down under it
    would end within a second.
    """
    environment = Environment.of_process()
    _fill_closed_descriptors()
    try:
        _handle(_on_signal)
        status = run(args, environment)
        _handle(_leave)  # nothing is left to unwind
    except KeyboardInterrupt:  # before the command begins, or between its end and here
        status = ExitStatus.INTERRUPTED
    except Terminated as e:
        status = e.status
    remove_all()  # a signal may have come before anybody was there to unwind
    if not _flushed() and status == ExitStatus.OK:
        status = ExitStatus.FAILURE
    if status in _ABRUPT:
        os._exit(status)
    return status


def _handle(handler: Callable[[int, FrameType | None], None]) -> None:
    for number in _SIGNALS:
        # A signal that the parent asked to be ignored (nohup, a background job) stays ignored.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _on_signal(number: int, frame: FrameType | None) -> None:
    # The first unwinds; a second one meanwhile leaves at once, but for a hang-up, which a terminal
    # that is closed sends twice.
    _handle(_leave)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise Terminated(ExitStatus(128 + number))


def _leave(number: int, frame: FrameType | None) -> None:
    remove_all()
    if os.isatty(2):
        os.write(2, _SHOW_CURSOR)  # a live display had hidden it
    os._exit(128 + number)


def _fill_closed_descriptors() -> None:
    """Opens /dev/null on each closed standard descriptor.

    Otherwise the next file opened would become descriptor 1 or 2, and a native library that prints
    would write into it.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number: this one


def _flushed() -> bool:
    """Flushes both streams; drops what cannot be, or the interpreter would complain at its end."""
    good = True
    for stream, number in ((sys.stdout, 1), (sys.stderr, 2)):
        if stream is None:
            continue
        try:
            stream.flush()
        except (OSError, ValueError):
            good = False
            with contextlib.suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), number)
    return good
