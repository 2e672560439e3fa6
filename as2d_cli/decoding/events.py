"""What a run tells while it goes on. `seconds` counts from the run's beginning."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = [
    "DraftAdvanced",
    "DrafterLost",
    "DraftingChanged",
    "Event",
    "LaneChanged",
    "RunFinished",
    "TokensCommitted",
    "WindowEncoded",
    "WindowFinished",
    "event_from_native",
]


@dataclass(frozen=True)
class Event:
    """Anything that happened."""

    seconds: float


@dataclass(frozen=True)
class TokensCommitted(Event):
    """The target verified `tokens`: they are final, and come after those before them."""

    window: int
    tokens: tuple[int, ...]


@dataclass(frozen=True)
class WindowEncoded(Event):
    """What the target's encoder says of a window: float32 [positions, width]."""

    window: int
    encoding: npt.NDArray[np.float32]


@dataclass(frozen=True)
class WindowFinished(Event):
    """A window is complete.

    Attributes:
        tokens: all that were committed in it.
        reason: ``end`` (the target said so), ``limit`` (max_tokens), ``context`` (it is full) or
            ``cancelled``.
        duration: seconds that the target lane spent on it.
        log_probability: of all tokens, and of the end where the target said so (natural logarithm).
        no_speech: probability that nobody speaks, by a model that was trained to tell; else 0.
        times: where asked for and known, the second at which each token begins that is no
            timestamp, from the beginning of the window, and then the end of the last one.
        draft: what a drafter that follows its own history had said by then, as the target's tokens.
    """

    window: int
    tokens: tuple[int, ...]
    reason: str
    duration: float
    log_probability: float = 0.0
    no_speech: float = 0.0
    times: tuple[float, ...] = ()
    draft: tuple[int, ...] = ()


@dataclass(frozen=True)
class DraftAdvanced(Event):
    """The drafter has published `tokens` tokens of a window; `finished`: it adds no more."""

    window: int
    tokens: int
    finished: bool


@dataclass(frozen=True)
class LaneChanged(Event):
    """A lane does something else.

    Attributes:
        lane: ``target`` or ``draft``.
        activity: ``idle``, ``encoding``, ``prompting``, ``verifying``, ``alone``, ``drafting`` or
            ``done``.
        window: the one it works on, or -1.
    """

    lane: str
    activity: str
    window: int


@dataclass(frozen=True)
class DrafterLost(Event):
    """The drafter failed; `message` says why. The target goes on alone, with the same result."""

    message: str


@dataclass(frozen=True)
class DraftingChanged(Event):
    """Drafts are dropped or taken up again, by what the windows up to `window` took.

    Attributes:
        on: windows that begin from now on are drafted.
        message: why, in figures.
    """

    window: int
    on: bool
    message: str


@dataclass(frozen=True)
class RunFinished(Event):
    """The last event of every run. `error`: why the target failed, or None."""

    cancelled: bool
    error: str | None


def event_from_native(event: Mapping[str, Any]) -> Event:
    """One event as the native engine hands it over."""
    return _READERS[event["kind"]](event)


_READERS: Mapping[str, Callable[[Mapping[str, Any]], Event]] = {
    "encoded": lambda e: WindowEncoded(e["seconds"], e["window"], e["encoding"]),
    "tokens_committed": lambda e: TokensCommitted(e["seconds"], e["window"], tuple(e["tokens"])),
    "window_finished": lambda e: WindowFinished(
        e["seconds"],
        e["window"],
        tuple(e["tokens"]),
        e["reason"],
        e["duration"],
        e["log_probability"],
        e["no_speech"],
        tuple(e["times"]),
        tuple(e["draft"]),
    ),
    "draft_advanced": lambda e: DraftAdvanced(e["seconds"], e["window"], e["count"], e["finished"]),
    "lane_changed": lambda e: LaneChanged(e["seconds"], e["lane"], e["activity"], e["window"]),
    "drafting_changed": lambda e: DraftingChanged(e["seconds"], e["window"], e["on"], e["message"]),
    "drafter_lost": lambda e: DrafterLost(e["seconds"], e["message"]),
    "run_finished": lambda e: RunFinished(e["seconds"], e["cancelled"], e["message"] or None),
}
