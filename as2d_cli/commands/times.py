"""Times as people write them on a command line."""

from __future__ import annotations

import re

from as2d_cli.errors import As2dError, ExitStatus

__all__ = ["seconds_of"]

_CLOCK = re.compile(
    r"(?:(?:(?P<h>\d+):(?=[0-5]?\d:))?(?P<m>\d+):)?(?P<s>\d+(?:\.\d*)?|\.\d+)", re.ASCII
)


def seconds_of(option: str, text: str) -> float:
    """``90``, ``1:30``, ``1:30.5`` or ``1:01:30`` in seconds.

    Raises:
        As2dError: status USAGE; `text` is no such time.
    """
    found = _CLOCK.fullmatch(text.strip())
    seconds = float(found["s"]) if found else 0.0
    if found is None or (found["m"] is not None and seconds >= 60):
        raise As2dError(
            f"{option} '{text}' is no time",
            remedy="give seconds, or M:SS, or H:MM:SS",
            status=ExitStatus.USAGE,
        )
    return int(found["h"] or 0) * 3600 + int(found["m"] or 0) * 60 + seconds
