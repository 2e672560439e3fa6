"""What became of the candidates of recent answers: which kind of answers is asked for here."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from as2d_cli.errors import As2dError
from as2d_cli.profile.profiles import write_whole

__all__ = ["RecentAnswer", "RecentAnswers"]

_KEPT = 32
"""Answers: what somebody asked months ago says little of what is asked now."""


@dataclass(frozen=True)
class RecentAnswer:
    """One answer.

    Attributes:
        method: by which it was made.
        length: tokens committed in a step.
    """

    method: str
    length: float


class RecentAnswers:
    """Of one model, kept in a file. What cannot be read or written is forgotten: it is a hint."""

    def __init__(self, file: Path | None) -> None:
        """`file`: None to remember for this process only."""
        self._file = file
        self._answers = self._read()

    @property
    def answers(self) -> Sequence[RecentAnswer]:
        """The oldest first."""
        return tuple(self._answers)

    def add(self, method: str, tokens: int, steps: int) -> None:
        """An answer of so many tokens that took so many steps."""
        if not steps:
            return
        self._answers = [*self._answers, RecentAnswer(method, tokens / steps)][-_KEPT:]
        if self._file is None:
            return
        with contextlib.suppress(As2dError):
            write_whole(self._file, [vars(answer) for answer in self._answers])

    def _read(self) -> list[RecentAnswer]:
        if self._file is None:
            return []
        try:
            data: Any = json.loads(self._file.read_text(encoding="utf-8"))
            found = [RecentAnswer(str(d["method"]), float(d["length"])) for d in data]
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return []
        return found[-_KEPT:]
