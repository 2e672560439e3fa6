"""Who talks while a command works, and where its result goes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from as2d_cli.environment import Environment

if TYPE_CHECKING:
    from as2d_cli.catalog import Progress
    from as2d_cli.output.renderer import Writer
    from as2d_cli.output.talk import Talk

__all__ = ["bars", "streams"]


@contextlib.contextmanager
def streams(
    environment: Environment, out: Writer, *, quiet: bool, verbose: bool, shared: bool, words: bool
) -> Iterator[tuple[Talk, Writer]]:
    """Plain talk, or a live display where that is welcome; and `out`, or what stands for it.

    Args:
        shared: the result goes to the terminal that the display is on.
        words: the display shows them.
    """
    from as2d_cli.output.talk import Talk

    if quiet or not environment.stderr.is_terminal or environment.dumb:
        yield Talk(environment, quiet=quiet, verbose=verbose), out
        return
    from as2d_cli.output.dashboard import Dashboard, SharedTerminal

    dashboard = Dashboard(environment, words=words)
    try:
        yield dashboard, SharedTerminal(environment.stdout, dashboard) if shared else out
    finally:
        dashboard.close()


def bars(environment: Environment, talk: Talk) -> Progress | None:
    """Download bars, where a live display is welcome."""
    if not talk.live:
        return None
    from as2d_cli.output.download_bars import DownloadBars

    return DownloadBars(environment)
