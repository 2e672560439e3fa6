"""Small made-up draft heads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from as2d_cli.catalog.graphs.blocks import Linear, Norm
from as2d_cli.catalog.graphs.head import (
    PLACES,
    POOL,
    Adapter,
    AdapterBlock,
    AdapterHead,
    CtcHead,
    Sketch,
)
from as2d_cli.catalog.graphs.whisper import (
    CrossAttention,
    Decoder,
    DecoderLayer,
    FeedForward,
    SelfAttention,
)
from as2d_cli.catalog.weights.head import HeadFile, write_head
from tests.catalog.material import WIDTH as ENCODING_WIDTH

WIDTH, HEADS, LAYERS, CONTEXT = 64, 4, 2, 48
LETTERS = 20
TEXT = (*(bytes([byte]) for byte in range(256)), b" the", "é".encode())


class _Maker:
    """Random weights that keep the size of what comes in."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def table(self, *shape: int, scale: float = 1.0) -> npt.NDArray[Any]:
        return (self._random.standard_normal(shape) * scale).astype(np.float32)

    def linear(self, outputs: int, inputs: int, *, bias: bool = True) -> Linear:
        weight = self.table(outputs, inputs, scale=inputs**-0.5)
        return Linear(weight, self.table(outputs, scale=0.1) if bias else None)

    def norm(self, width: int) -> Norm:
        return Norm(1 + self.table(width, scale=0.1), self.table(width, scale=0.1))

    def feed_forward(self) -> FeedForward:
        return FeedForward(
            self.norm(WIDTH), self.linear(2 * WIDTH, WIDTH), self.linear(WIDTH, 2 * WIDTH)
        )

    def adapter(self) -> Adapter:
        joined = POOL * ENCODING_WIDTH
        block = AdapterBlock(self.linear(WIDTH, 3 * WIDTH), self.feed_forward())
        return Adapter(self.norm(joined), self.linear(WIDTH, joined), (block,))

    def sketch(self) -> Sketch:
        return Sketch(
            self.linear(2 * WIDTH, WIDTH),
            self.linear(WIDTH, 2 * WIDTH),
            self.norm(WIDTH),
            self.linear(PLACES * (LETTERS + 1), WIDTH),
            tuple(range(LETTERS)),
        )

    def layer(self) -> DecoderLayer:
        return DecoderLayer(
            SelfAttention(
                self.norm(WIDTH), self.linear(3 * WIDTH, WIDTH), self.linear(WIDTH, WIDTH)
            ),
            CrossAttention(
                self.norm(WIDTH),
                self.linear(WIDTH, WIDTH, bias=False),
                self.linear(2 * WIDTH, WIDTH),
                self.linear(WIDTH, WIDTH),
            ),
            self.feed_forward(),
        )

    def decoder(self, tokens: int) -> Decoder:
        return Decoder(
            self.table(tokens, WIDTH),
            self.table(CONTEXT, WIDTH).astype(np.float16),
            tuple(self.layer() for _ in range(LAYERS)),
            self.norm(WIDTH),
        )


def adapter_head(*, seed: int = 0, target: str = "tiny", sketch: bool = True) -> HeadFile:
    make = _Maker(seed)
    pieces = (*TEXT, b"", b"", b"")
    head = AdapterHead(
        adapter=make.adapter(),
        decoder=make.decoder(len(pieces)),
        decoder_heads=HEADS,
        sketch=make.sketch() if sketch else None,
    )
    return HeadFile("tiny-head", target, ENCODING_WIDTH, ("en", "de"), "MIT", head, pieces)


def ctc_head(*, seed: int = 0, target: str = "tiny") -> HeadFile:
    make = _Maker(seed)
    pieces = (*TEXT, b"", b"", b"")
    head = CtcHead(make.adapter(), make.sketch())
    return HeadFile("tiny-ctc", target, ENCODING_WIDTH, ("en",), "MIT", head, pieces)


def head_bytes(folder: Path, file: HeadFile) -> bytes:
    """What ``write_head`` makes of it."""
    write_head(folder / "made.npz", file)
    try:
        return (folder / "made.npz").read_bytes()
    finally:
        (folder / "made.npz").unlink()
