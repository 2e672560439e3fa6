"""Weights in blocks of 32 inputs, and the order in which the native kernels read them.

The layouts are those of native/src/kernels/blocks-inl.h. A panel is 16 outputs; all of a panel is
one stretch of memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]

BLOCK = 32
PANEL = 16
_PART = 2048  # outputs that are packed at a time: tables of all tokens are large


@dataclass(frozen=True)
class _AsPublished(ABC):
    """Bytes of a GGUF type, kept bit for bit: ``raw`` uint8 [outputs, groups, bytes].

    Attributes:
        bits: of a weight.
        group: inputs that share a stretch of them.
        packed: bytes of a group of a panel, as the kernels read it.
    """

    raw: Bytes
    bits: ClassVar[int]
    group: ClassVar[int] = 256
    packed: ClassVar[int]

    @property
    def outputs(self) -> int:
        """Rows of the matrix."""
        return len(self.raw)

    @property
    def inputs(self) -> int:
        """Columns of the matrix."""
        return int(self.raw.shape[1]) * self.group

    def take(self, rows: npt.NDArray[np.intp] | slice) -> Self:
        """The matrix of these outputs."""
        return type(self)(self.raw[rows])

    def pack(self) -> Bytes:
        """uint8 [panels, groups, packed]."""
        return _in_parts(self.outputs, (self.inputs // self.group, self.packed), self._pack)

    @abstractmethod
    def _pack(self, first: int, last: int) -> Bytes:
        """The panels of outputs [first, last)."""


@dataclass(frozen=True)
class FourBits(_AsPublished):
    """Weights as GGUF's Q4_K has them, kept bit for bit: ``raw`` uint8 [outputs, groups, 144].

    A group is 256 inputs: 16-bit floats d and least, 8 scales and 8 minima of 6 bits in 12 bytes,
    and 128 bytes of nibbles; a weight is d * scale * nibble - least * minimum.
    """

    bits: ClassVar[int] = 4
    packed: ClassVar[int] = 2368

    def _pack(self, first: int, last: int) -> Bytes:
        raw = _padded(self.raw[first:last])
        panels, groups = len(raw) // PANEL, raw.shape[1]
        # [panels, groups, lane, 144]
        lanes = raw.reshape(panels, PANEL, groups, 144).transpose(0, 2, 1, 3)
        halves = lanes[..., :4].reshape(panels, groups, PANEL, 2, 2).transpose(0, 1, 3, 2, 4)
        scales, minima = _six_bits(lanes[..., 4:16])
        # Each 32 bytes hold a block in their lower halves and the next one in their upper ones.
        pairs = lanes[..., 16:].reshape(panels, groups, PANEL, 4, 1, BLOCK)
        nibbles = np.concatenate([pairs & 15, pairs >> 4], axis=4)
        steps = nibbles.reshape(panels, groups, PANEL, 8, 4, 2, 4)
        both = steps[..., 0, :] | (steps[..., 1, :] << 4)
        parts = (
            halves,
            scales.transpose(0, 1, 3, 2),
            minima.transpose(0, 1, 3, 2),
            both.transpose(0, 1, 3, 4, 2, 5),
        )
        return np.concatenate([part.reshape(panels, groups, -1) for part in parts], axis=2)

    def floats(self) -> npt.NDArray[np.float32]:
        """The weights, float32 [outputs, inputs]."""
        halves = np.ascontiguousarray(self.raw[..., :4]).view("<f2").astype(np.float32)
        scales, minima = _six_bits(self.raw[..., 4:16])
        pairs = self.raw[..., 16:].reshape(*self.raw.shape[:2], 4, 1, BLOCK)
        nibbles = np.concatenate([pairs & 15, pairs >> 4], axis=3)
        weights = nibbles.reshape(*self.raw.shape[:2], 8, BLOCK).astype(np.float32)
        weights *= (halves[..., :1] * scales)[..., None]
        weights -= (halves[..., 1:] * minima)[..., None]
        flat: npt.NDArray[np.float32] = weights.reshape(self.outputs, self.inputs)
        return flat


@dataclass(frozen=True)
class SixBits(_AsPublished):
    """Weights as GGUF's Q6_K has them, kept bit for bit: ``raw`` uint8 [outputs, groups, 210].

    A group is 256 inputs: 128 bytes of lower nibbles, 64 of upper two bits, 16 signed scales, and a
    16-bit float d; a weight is d * scale * (number - 32).
    """

    bits: ClassVar[int] = 6
    packed: ClassVar[int] = 3392

    def _pack(self, first: int, last: int) -> Bytes:
        raw = _padded(self.raw[first:last])
        panels, groups = len(raw) // PANEL, raw.shape[1]
        # [panels, groups, lane, 210]
        lanes = raw.reshape(panels, PANEL, groups, 210).transpose(0, 2, 1, 3)
        pairs = _numbers(lanes).reshape(panels, groups, PANEL, 32, 2, 4)
        nibbles = (pairs & 15)[..., 0, :] | (pairs[..., 1, :] << 4)
        fours = pairs.reshape(panels, groups, PANEL, 16, 4, 4) >> 4
        upper = fours << np.arange(0, 8, 2, dtype=np.uint8)[:, None]
        parts = (
            lanes[..., 208:],
            np.zeros((panels, groups, 32), dtype=np.uint8),
            lanes[..., 192:208].transpose(0, 1, 3, 2),
            nibbles.transpose(0, 1, 3, 2, 4),
            np.bitwise_or.reduce(upper, axis=4).transpose(0, 1, 3, 2, 4),
        )
        return np.concatenate([part.reshape(panels, groups, -1) for part in parts], axis=2)

    def floats(self) -> npt.NDArray[np.float32]:
        """The weights, float32 [outputs, inputs]."""
        unit = np.ascontiguousarray(self.raw[..., 208:]).view("<f2").astype(np.float32)
        scales = unit * np.ascontiguousarray(self.raw[..., 192:208]).view(np.int8)
        numbers = _numbers(self.raw).astype(np.float32) - np.float32(32)
        weights = numbers.reshape(*scales.shape, 16) * scales[..., None]
        flat: npt.NDArray[np.float32] = weights.reshape(self.outputs, self.inputs)
        return flat


@dataclass(frozen=True)
class EightBits:
    """Signed bytes, int8 [outputs, inputs], with a float16 scale for each block of 32 inputs."""

    weight: npt.NDArray[np.int8]
    scale: npt.NDArray[np.float16]
    bits: ClassVar[int] = 8
    group: ClassVar[int] = 64

    @classmethod
    def of(cls, weights: npt.NDArray[np.float32]) -> Self:
        """Quantise float32 [outputs, inputs]."""
        blocks = weights.reshape(len(weights), -1, BLOCK)
        peaks = np.maximum(blocks.max(axis=2), -blocks.min(axis=2))
        scale = (peaks / np.float32(127)).astype(np.float16)
        # A scale that was rounded down would leave the largest weight out of range.
        divisor = np.where(scale == 0, np.float32(1), scale.astype(np.float32))
        steps = np.clip(np.rint(blocks / divisor[..., None]), -127, 127)
        return cls(steps.astype(np.int8).reshape(weights.shape), scale)

    @property
    def outputs(self) -> int:
        """Rows of the matrix."""
        return len(self.weight)

    @property
    def inputs(self) -> int:
        """Columns of the matrix."""
        return int(self.weight.shape[1])

    def take(self, rows: npt.NDArray[np.intp] | slice) -> Self:
        """The matrix of these outputs."""
        return type(self)(self.weight[rows], self.scale[rows])

    def pack(self) -> Bytes:
        """uint8 [panels, groups, 1088]."""
        return _in_parts(self.outputs, (self.inputs // self.group, 1088), self._pack)

    def _pack(self, first: int, last: int) -> Bytes:
        weight = _padded(self.weight[first:last]).view(np.uint8)
        scale = _padded(self.scale[first:last]).astype("<f2")
        panels, groups = len(weight) // PANEL, weight.shape[1] // self.group
        scales = scale.reshape(panels, PANEL, groups, 2).transpose(0, 2, 3, 1)
        steps = weight.reshape(panels, PANEL, groups, self.group // 4, 4)
        tiles = steps.transpose(0, 2, 3, 1, 4).reshape(panels, groups, -1)
        raw = np.ascontiguousarray(scales).view(np.uint8).reshape(panels, groups, -1)
        return np.concatenate([raw, tiles], axis=2)

    def floats(self) -> npt.NDArray[np.float32]:
        """The weights, float32 [outputs, inputs]."""
        blocks = self.weight.reshape(self.outputs, -1, BLOCK).astype(np.float32)
        return (blocks * self.scale[..., None].astype(np.float32)).reshape(self.weight.shape)


Matrix = FourBits | SixBits | EightBits


def stack(parts: Sequence[Matrix]) -> Matrix:
    """The matrix with the outputs of all of them, in 8 bits unless all are of one kind."""
    four = [part for part in parts if isinstance(part, FourBits)]
    if len(four) == len(parts):
        return FourBits(np.concatenate([part.raw for part in four]))
    six = [part for part in parts if isinstance(part, SixBits)]
    if len(six) == len(parts):
        return SixBits(np.concatenate([part.raw for part in six]))
    eight = [p if isinstance(p, EightBits) else EightBits.of(p.floats()) for p in parts]
    return EightBits(
        np.concatenate([part.weight for part in eight]),
        np.concatenate([part.scale for part in eight]),
    )


def interleave(gate: Matrix, value: Matrix) -> Matrix:
    """Panels of one and the other in turn; the last of each is filled up with copies."""
    outputs = -(-gate.outputs // PANEL) * PANEL
    filled = np.minimum(np.arange(outputs), gate.outputs - 1).reshape(-1, 1, PANEL)
    order = np.concatenate([filled, filled + gate.outputs], axis=1)
    return stack([gate, value]).take(order.reshape(-1))


def _six_bits(raw: Bytes) -> tuple[Bytes, Bytes]:
    """Scales and minima [..., 8] out of their 12 bytes."""
    low, middle, high = raw[..., :4], raw[..., 4:8], raw[..., 8:]
    scales = np.concatenate([low & 63, (high & 15) | (low >> 6 << 4)], axis=-1)
    minima = np.concatenate([middle & 63, (high >> 4) | (middle >> 6 << 4)], axis=-1)
    return scales, minima


def _numbers(raw: Bytes) -> Bytes:
    """Q6_K's numbers [..., 256], from 0 to 63."""
    lower = raw[..., :128].reshape(*raw.shape[:-1], 2, 2, BLOCK)
    upper = raw[..., 128:192].reshape(*raw.shape[:-1], 2, 1, BLOCK)
    nibbles = np.concatenate([lower & 15, lower >> 4], axis=-2)
    bits = (upper >> np.arange(0, 8, 2, dtype=np.uint8)[:, None]) & 3
    numbers: Bytes = (nibbles | bits << 4).reshape(*raw.shape[:-1], 256)
    return numbers


def _padded(rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    missing = -len(rows) % PANEL
    return np.pad(rows, [(0, missing), *[(0, 0)] * (rows.ndim - 1)]) if missing else rows


def _in_parts(outputs: int, shape: tuple[int, int], pack: Callable[[int, int], Bytes]) -> Bytes:
    packed = np.empty((-(-outputs // PANEL), *shape), dtype=np.uint8)
    for first in range(0, outputs, _PART):
        last = min(first + _PART, outputs)
        packed[first // PANEL : -(-last // PANEL)] = pack(first, last)
    return packed
