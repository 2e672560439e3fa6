"""Lists of cores as text."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["core_list"]


def core_list(cores: Iterable[int]) -> str:
    """The kernel's way to write them: "0-3,5", "" for none."""
    runs: list[list[int]] = []
    for core in sorted(set(cores)):
        if runs and core == runs[-1][-1] + 1:
            runs[-1][1:] = [core]
        else:
            runs.append([core])
    return ",".join("-".join(map(str, run)) for run in runs)
