"""A microphone that hears what it is told to, in real time, from a thread of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


class PortAudioError(Exception):
    """As sounddevice's."""


@dataclass
class FakeStatus:
    input_overflow: bool = False


@dataclass
class FakeSound:
    """What is used of the module sounddevice.

    Attributes:
        samples: what is said, float32[n, channels].
        said: called when all of it was.
        overflows: numbers of blocks at which the device says that it lost some.
    """

    samples: NDArray[np.float32]
    rate: int = 48_000
    said: Callable[[], None] = lambda: None
    overflows: tuple[int, ...] = ()
    opened: dict[str, Any] = field(default_factory=dict)
    closed: bool = False
    PortAudioError = PortAudioError

    def query_devices(self, device: int | str | None, kind: str) -> dict[str, Any]:
        assert kind == "input"
        if device not in (None, 3, "built-in"):
            raise ValueError(f"No input device matching {device!r}")
        return {
            "name": "fake",
            "default_samplerate": float(self.rate),
            "max_input_channels": self.samples.shape[1],
        }

    def RawInputStream(self, *, callback: Any, **how: Any) -> FakeSound:  # noqa: N802
        self.opened = how
        self._thread = threading.Thread(target=self._speak, args=(callback,), daemon=True)
        return self

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self.closed = True

    def _speak(self, callback: Any) -> None:
        size = self.rate // 20
        for number, at in enumerate(range(0, len(self.samples), size)):
            block = self.samples[at : at + size]
            callback(block.tobytes(), len(block), None, FakeStatus(number in self.overflows))
            time.sleep(len(block) / self.rate)
        self.said()
