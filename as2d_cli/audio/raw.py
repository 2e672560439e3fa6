"""Samples without a header: what they are has to be told."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["RAW_SAMPLES", "RawFormat"]

RAW_SAMPLES = (
    "s16le",
    "s16be",
    "s8",
    "u8",
    "s24le",
    "s24be",
    "s32le",
    "s32be",
    "f32le",
    "f32be",
    "f64le",
    "f64be",
    "mulaw",
    "alaw",
)
"""Kinds of samples, by the names that FFmpeg has for them."""


@dataclass(frozen=True)
class RawFormat:
    """What raw samples are.

    Attributes:
        samples: one of `RAW_SAMPLES`.
        rate: samples per second and channel.
        channels: interleaved.
    """

    samples: str
    rate: int
    channels: int

    @property
    def options(self) -> dict[str, str]:
        """As FFmpeg's demuxer of raw samples takes them."""
        return {"sample_rate": str(self.rate), "ch_layout": f"{self.channels}C"}
