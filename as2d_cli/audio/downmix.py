"""Many channels -> one, in a stream, without making one-sided recordings quieter."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

__all__ = ["Downmixer", "Samples"]

Samples = NDArray[np.float32]

_SILENT = 1e-4
"""A channel whose peak never passed this (-80 dB of full scale) carries nothing."""

_CANCELLED = 1e-3
"""The mix holds less than this share of the channels' mean power: they are in opposite phase."""


class Downmixer:
    """The mean over those channels that have carried sound so far.

    Speech on one side of a stereo file, or in the centre of six channels, is as loud as in a mono
    file, because silent channels do not count. Channels that cancel each other out are noticed:
    from there on the louder of them is used, with a warning. Decisions are made per block, so they
    do not depend on how the container cuts its frames.
    """

    def __init__(self, channels: int, block: int, warnings: list[str]) -> None:
        """`block` is the number of samples per decision and per output; `warnings` is added to."""
        self.channels = channels
        self._warnings = warnings
        self._block = block
        self._heard = np.zeros(channels, np.bool_)
        self._only: int | None = None
        self._held: list[Samples] = []
        self._count = 0

    def push(self, data: Samples) -> Iterator[Samples]:
        """Takes float32[channels, n] and yields float32[block] as blocks become whole."""
        if data.shape[1] == 0:
            return
        self._held.append(data)
        self._count += data.shape[1]
        if self._count < self._block:
            return
        joined = np.concatenate(self._held, axis=1)
        whole = self._count - self._count % self._block
        for i in range(0, whole, self._block):
            yield self._mix(joined[:, i : i + self._block])
        rest = joined[:, whole:].copy()
        self._held = [rest] if rest.shape[1] else []
        self._count = rest.shape[1]

    def finish(self) -> Iterator[Samples]:
        """Yields what is left: at most one shorter block."""
        if self._count:
            joined = np.concatenate(self._held, axis=1)
            self._held, self._count = [], 0
            yield self._mix(joined)

    def _mix(self, block: Samples) -> Samples:
        if not np.isfinite(block).all():
            block = np.nan_to_num(block, nan=0.0, posinf=0.0, neginf=0.0)
            self._warn_once("samples that are no numbers were replaced by zero")
        if self.channels == 1:
            return np.ascontiguousarray(block[0])
        self._heard |= np.abs(block).max(axis=1) > _SILENT
        if self._only is not None:
            return np.ascontiguousarray(block[self._only])
        used = block[self._heard] if self._heard.any() else block
        mix = used.mean(axis=0, dtype=np.float32)
        power = np.square(used, dtype=np.float64).mean(axis=1)
        left = float(np.square(mix, dtype=np.float64).mean())
        if len(used) > 1 and power.mean() > _SILENT**2 and left < _CANCELLED * power.mean():
            self._only = int(np.flatnonzero(self._heard)[int(power.argmax())])
            self._warn_once(
                f"the channels cancel each other out; only channel {self._only + 1} is used"
            )
            return np.ascontiguousarray(block[self._only])
        return np.asarray(mix, np.float32)

    def _warn_once(self, text: str) -> None:
        if text not in self._warnings:
            self._warnings.append(text)
