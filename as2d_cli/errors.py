"""The one error type that reaches a user, and the exit statuses of the program."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["As2dError", "ExitStatus", "one_line"]


class ExitStatus(IntEnum):
    """Every status the program ends with; the same table is printed by ``as2d --help``."""

    OK = 0
    FAILURE = 1
    """An input could not be processed."""
    USAGE = 2
    """A bad option or argument."""
    UNAVAILABLE = 3
    """A model or a library cannot be had."""
    INTERNAL = 70
    """A bug in as2d (EX_SOFTWARE of sysexits.h)."""
    HUNG_UP = 129
    """The terminal went away: 128 + SIGHUP."""
    INTERRUPTED = 130
    """Ctrl-C: 128 + SIGINT."""
    BROKEN_PIPE = 141
    """The reader of the output went away (``| head``): 128 + SIGPIPE."""
    TERMINATED = 143
    """128 + SIGTERM."""


class As2dError(Exception):
    """Something a user can act on: what is wrong with which thing, and what to do about it.

    ``str(error)`` is always one line, "message; remedy": whatever a file name or a library's
    message carries in it (newlines, escape sequences, undecodable bytes) is shown escaped.
    """

    def __init__(
        self,
        message: str,
        *,
        remedy: str | None = None,
        status: ExitStatus = ExitStatus.FAILURE,
    ) -> None:
        text = message if not remedy else f"{message}; {remedy}"
        super().__init__(one_line(text))
        self.message = one_line(message)
        self.remedy = one_line(remedy) if remedy else None
        self.status = status


def one_line(text: str) -> str:
    """Returns `text` with every unprintable character escaped, so that it is one line and inert.

    Escape sequences would let a file name move the cursor or colour a terminal; lone surrogates
    (how Python carries undecodable bytes of a file name) could not be written at all.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def _escaped(c: str) -> str:
    code = ord(c)
    if c in _SHORT:
        return _SHORT[c]
    if 0xDC80 <= code <= 0xDCFF:  # surrogateescape: the byte itself
        return f"\\x{code - 0xDC00:02x}"
    if c.isspace() and code > 0xA0:  # an ideographic or a narrow space is harmless and readable
        return c if c not in "\u2028\u2029" else f"\\u{code:04x}"
    return (
        f"\\x{code:02x}"
        if code < 0x100
        else f"\\u{code:04x}"
        if code < 0x10000
        else f"\\U{code:08x}"
    )
