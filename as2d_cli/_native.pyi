"""The native engine as plain Python values; `as2d_cli.decoding` makes classes of them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

class NativeError(Exception):
    """Anything that the engine cannot do; one line."""

class NativeCancelledError(Exception):
    """A call that was ended from another thread."""

def kernel_name() -> str: ...
def topology(root: Path | None = None, allowed: str | None = None) -> dict[str, Any]:
    """The machine as this process may use it.

    Args:
        root: folder with a machine's `sys` and `proc` in place of this one's.
        allowed: cores such as "0-3,5" in place of the calling thread's own.
    """

def temperatures(root: Path | None = None) -> list[tuple[str, float]]:
    """Sensors and degrees Celsius, of those that can be read."""

def draft_alone(
    ort_library: Path,
    drafter: Path,
    samples: npt.NDArray[np.float32],
    language: str,
    target: Path | None = None,
) -> tuple[list[int], bytes]:
    """What a drafter says of a window, in its own tokens, and as text; a head needs the bundle of
    its target for that.
    """

class Run:
    def submit(
        self,
        index: int,
        samples: npt.NDArray[np.float32],
        prompt: Sequence[int],
        max_tokens: int,
        language: str = "",
        translate: bool = False,
        timestamps: bool = False,
        token_times: bool = False,
        temperature: float = 0.0,
        seed: int = 0,
        draft_prompt: Sequence[int] = ...,
        source: Sequence[int] = ...,
    ) -> None: ...
    def finish(self) -> None: ...
    def cancel(self) -> None: ...
    def poll(self, timeout: float) -> list[dict[str, Any]]: ...
    def counters(self) -> dict[str, Any]: ...

class Retokenizer:
    """Cuts a whole text in the tokens of one vocabulary file into those of another."""

    def __init__(self, source: Path, target: Path) -> None: ...
    def cut(self, tokens: Sequence[int]) -> list[int]: ...

class Replay:
    """What a draft would have been worth to a target with this vocabulary file."""

    def __init__(self, vocabulary: Path) -> None: ...
    def steps(
        self, text: Sequence[int], draft: Sequence[int], end_token: int, budget: int
    ) -> int: ...
    def trace(
        self, text: Sequence[int], draft: Sequence[int], end_token: int
    ) -> list[tuple[int, int]]:
        """Place in the draft and right candidates after it, for each prefix of `text`."""

class ScriptedDrafter:
    def __init__(
        self,
        script: Mapping[int, Sequence[int]],
        ending: str = "end",
        token_seconds: float = 0.0,
        encode_seconds: float = 0.0,
    ) -> None: ...
    def release(self) -> None: ...

class Engine:
    def __init__(
        self, ort_library: Path, target: Path, cores: Sequence[int], threads: int
    ) -> None: ...
    @staticmethod
    def scripted(
        script: Mapping[int, Sequence[int]],
        step_seconds: float = 0.0,
        encode_seconds: float = 0.0,
    ) -> Engine: ...
    def load_drafter(self, drafter: Path, cores: Sequence[int], threads: int) -> None: ...
    def set_drafter(self, drafter: ScriptedDrafter) -> None: ...
    def has_drafter(self) -> bool: ...
    def start(
        self,
        method: str,
        budget: int,
        exact: bool,
        tell_encodings: bool = False,
        windows: int = 1,
        adaptive: bool = False,
        costs: Mapping[str, Any] | None = None,
    ) -> Run: ...
    def language_probabilities(
        self, samples: npt.NDArray[np.float32]
    ) -> list[tuple[str, float]]: ...
    def time_encode(
        self,
        seconds_of_audio: float,
        repeats: int,
        lend: bool = True,
        most_seconds: float = 30.0,
    ) -> list[float]:
        """Seconds of each of `repeats` passes of the target's encoder.

        The same for all that measures: `lend` lets the cores of the lane that rests help, as in a
        run; no more samples are taken after `most_seconds`, but one of each kind in any case. They
        raise `NativeError` while a run is not over, and `NativeCancelledError` after
        `cancel_timing`.
        """
    def time_steps(
        self,
        rows: Sequence[int],
        repeats: int,
        exact: bool = True,
        lend: bool = True,
        most_seconds: float = 30.0,
    ) -> list[list[float]]:
        """Seconds of the target's forwards, a list for each number of rows.

        `exact`: an odd number is padded where a run in exact mode would do so.
        """
    def time_draft(
        self,
        samples: npt.NDArray[np.float32],
        language: str = "",
        lend: bool = True,
        most_seconds: float = 30.0,
    ) -> dict[str, Any]:
        """A draft of one window: seconds of ``encode`` and of the ``steps`` after it, the target's
        ``tokens`` of it without the end, and whether it is ``complete``."""
    def time_together(
        self,
        rows: Sequence[int],
        seconds: float,
        samples: npt.NDArray[np.float32],
        language: str = "",
        exact: bool = True,
    ) -> dict[str, Any]:
        """The target's ``steps``, as `time_steps`, while the drafter drafts the window over and
        over: ``drafts``, each as `time_draft`, the last of which was perhaps stopped."""
    def cancel_timing(self) -> None:
        """Any thread: ends a measurement that goes on soon, and every later one at once."""
    def lanes(self) -> dict[str, Any]: ...
