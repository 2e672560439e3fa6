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
) -> bytes:
    """What a drafter says of a window; a head needs the bundle of its target for that."""

class Run:
    def submit(
        self,
        index: int,
        samples: npt.NDArray[np.float32],
        prompt: Sequence[int],
        max_tokens: int,
        language: str = "",
        translate: bool = False,
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
    ) -> Run: ...
    def language_probabilities(
        self, samples: npt.NDArray[np.float32]
    ) -> list[tuple[str, float]]: ...
    def lanes(self) -> dict[str, Any]: ...
