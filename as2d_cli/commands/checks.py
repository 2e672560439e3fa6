"""What several commands demand of their options."""

from __future__ import annotations

from as2d_cli.commands.times import seconds_of
from as2d_cli.errors import As2dError, ExitStatus

__all__ = ["part", "usage", "within"]


def part(start: str | None, end: str | None) -> tuple[float, float | None]:
    """What --start and --end leave of an input, in seconds.

    Raises:
        As2dError: status USAGE; one is no time, or nothing is left.
    """
    begin = 0.0 if start is None else seconds_of("--start", start)
    stop = None if end is None else seconds_of("--end", end)
    if stop is not None and stop <= begin:
        raise usage(f"--end {end} is not after --start {start or 0}", "choose a later --end")
    return begin, stop


def within(option: str, value: int | None, least: int, most: int) -> None:
    """Raises As2dError (status USAGE) when `value` is out of range."""
    # Not Typer's own check: its words change from version to version.
    if value is not None and not least <= value <= most:
        raise usage(f"{option} {value} is out of range", f"choose {least} to {most}")


def usage(message: str, remedy: str) -> As2dError:
    """An error of status USAGE."""
    return As2dError(message, remedy=remedy, status=ExitStatus.USAGE)
