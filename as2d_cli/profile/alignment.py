"""What a drafter's texts were worth to a target, window by window, without the texts."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from as2d_cli.decoding.plan import windows_of
from as2d_cli.errors import As2dError

__all__ = [
    "FORMAT",
    "Recordings",
    "Tracer",
    "WindowTrace",
    "as_json",
    "of_any_length",
    "of_length",
    "perfect",
    "read_traces",
    "recordings_from_json",
    "recordings_json",
    "shipped",
    "trace_of",
]

FORMAT = "as2d-alignment-1"

_NEAREST = 12
"""Windows that stand for all of about their length: enough for chance to even out."""

_ENOUGH = 32
"""Windows that stand for all: a plan is made before a run begins, and must not keep it waiting."""

_SHIPPED = Path(__file__).with_name("alignments.json")


@dataclass(frozen=True)
class WindowTrace:
    """A window with its text and its whole draft, both in the target's tokens.

    Attributes:
        seconds: of audio.
        tokens: in the text; its end is one more.
        drafted: in the draft; likewise.
        place: for each number of committed tokens from 1 on, how many tokens of the draft they
            stand for: candidates begin after these.
        run: how many candidates from there are what the target says, the end among them.
    """

    seconds: float
    tokens: int
    drafted: int
    place: tuple[int, ...]
    run: tuple[int, ...]


class Tracer(Protocol):
    """See `as2d_cli._native.Replay`."""

    def trace(
        self, text: Sequence[int], draft: Sequence[int], end_token: int, /
    ) -> list[tuple[int, int]]: ...


def trace_of(
    tracer: Tracer, seconds: float, text: Sequence[int], draft: Sequence[int], end_token: int
) -> WindowTrace:
    """The trace of one window; `text` and `draft` without their ends."""
    found = tracer.trace(text, draft, end_token)
    return WindowTrace(
        seconds,
        len(text),
        len(draft),
        tuple(place for place, _ in found),
        tuple(run for _, run in found),
    )


def perfect(seconds: float, tokens: int) -> WindowTrace:
    """Of a draft that is the text."""
    places = range(1, tokens + 1)
    return WindowTrace(
        seconds, tokens, tokens, tuple(places), tuple(tokens + 1 - place for place in places)
    )


Recordings = Sequence[Sequence[WindowTrace]]
"""The windows of each recording."""


def of_length(recordings: Recordings, seconds: float) -> Recordings:
    """Windows of the same audio as recordings of about so many seconds each: what drafts are worth
    depends on how much is said in a window, and on how many windows there are. What is left over
    is left out, unless it is all there is.
    """
    count = windows_of(seconds)
    wanted = max(1.0, seconds / count)
    found = [window for recording in recordings for window in recording]
    near = sorted(found, key=lambda window: abs(math.log(max(1.0, window.seconds) / wanted)))
    near = near[: max(_NEAREST, count)]
    pieces = [near[first : first + count] for first in range(0, len(near), count)]
    return [piece for piece in pieces if len(piece) == count] or pieces


def of_any_length(recordings: Recordings) -> Recordings:
    """So many of them, evenly spread, that they have some `_ENOUGH` windows."""
    windows = sum(map(len, recordings))
    every = max(1, round(windows / _ENOUGH))
    return recordings[::every]


def shipped(target: str, drafter: str | None) -> Recordings:
    """The traces of a pair that came with as2d; none for most pairs.

    Args:
        drafter: None for any, where only the texts count.
    """
    pairs = _pairs(json.loads(_SHIPPED.read_text(encoding="utf-8")))
    if drafter is None:
        return next((found for (other, _), found in pairs.items() if other == target), [])
    return pairs.get((target, drafter), [])


def read_traces(path: Path, target: str, drafter: str | None) -> Recordings:
    """The traces of a pair in a file that ``as2d bench --alignment`` wrote.

    Args:
        drafter: None for any, where only the texts count.

    Raises:
        As2dError: the file cannot be read, is none, or has none of this pair.
    """
    try:
        pairs = _pairs(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise As2dError(f"cannot read {path}: {error.strerror}", remedy="check the path") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise As2dError(
            f"{path}: is no alignment file", remedy="make one with as2d bench --alignment"
        ) from error
    for (of_target, of_drafter), found in pairs.items():
        if of_target == target and drafter in (None, of_drafter):
            return found
    raise As2dError(
        f"{path}: has nothing of {target}" + (f" with {drafter}" if drafter else ""),
        remedy="record it with as2d bench --alignment",
    )


def as_json(pairs: Mapping[tuple[str, str], Recordings]) -> dict[str, Any]:
    """All traces, by ids of target and drafter, as values that JSON knows."""
    return {
        "format": FORMAT,
        "pairs": [
            {"target": target, "drafter": drafter, "recordings": recordings_json(found)}
            for (target, drafter), found in sorted(pairs.items())
        ],
    }


def recordings_json(recordings: Recordings) -> list[Any]:
    """Seconds, draft tokens, places and runs of each window of each recording."""
    return [
        [[w.seconds, w.drafted, list(w.place), list(w.run)] for w in windows]
        for windows in recordings
    ]


def recordings_from_json(data: Any) -> Recordings:
    """The reverse. Raises ValueError or TypeError for anything else."""
    return [
        [
            WindowTrace(float(seconds), len(place), int(drafted), tuple(place), tuple(run))
            for seconds, drafted, place, run in windows
        ]
        for windows in data
    ]


def _pairs(data: Mapping[str, Any]) -> dict[tuple[str, str], Recordings]:
    if data.get("format") != FORMAT:
        raise ValueError("another format")
    return {
        (pair["target"], pair["drafter"]): recordings_from_json(pair["recordings"])
        for pair in data["pairs"]
    }
