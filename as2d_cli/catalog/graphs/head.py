"""Draft heads as ONNX graphs: the target's encoder output to what a small decoder looks at."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from as2d_cli.catalog.graphs.blocks import AS2D, FLOAT, INT64, GraphBuilder, Linear, Norm
from as2d_cli.catalog.graphs.whisper import (
    ENCODING,
    FeedForward,
    SpeechDecoder,
    cross_projections,
)

POOL = 4
"""Lines of the target's encoder output that become one position of the head."""

TILE = 64
"""Lines are filled up with zeros to a multiple of this: a tile of 16 positions."""

WINDOW_POSITIONS = 384
"""Positions of a full window: 1500 lines, filled up."""

SILENCE_LINES = 50
"""Lines of silence that a head is given after the audio: 1 s, as far as the window goes."""


@dataclass(frozen=True)
class AdapterBlock:
    """``x`` + GELU(convolution of ``x`` with 3 taps), then ``x`` + feed-forward.

    ``convolution`` has a weight [width, 3 * width], that of the position before first.
    """

    convolution: Linear
    feed_forward: FeedForward


@dataclass(frozen=True)
class Adapter:
    """From ``POOL`` joined lines of the encoder output to the width of the head.

    ``join`` [width, POOL * encoding width] sees the layer norm of the joined lines.
    """

    norm: Norm
    join: Linear
    blocks: tuple[AdapterBlock, ...]


@dataclass(frozen=True, kw_only=True)
class AdapterHead(SpeechDecoder):
    """A small decoder that looks at the target's encoder output through an adapter."""

    adapter: Adapter

    @property
    def audio_positions(self) -> int:
        """Positions of a full window."""
        return WINDOW_POSITIONS


@dataclass(frozen=True)
class CtcHead:
    """An adapter and one layer of its norm, which tells ``per_position`` tokens of every position.

    Connectionist temporal classification (Graves et al. 2006). ``output`` is [per_position *
    (pieces + 1), width]; the last token is the blank.
    """

    adapter: Adapter
    norm: Norm
    output: Linear
    per_position: int = 2

    @property
    def tokens(self) -> int:
        """The blank among them."""
        return len(self.output.weight) // self.per_position


def lines_for(samples: int, lines: int) -> int:
    """How many of a window's ``lines`` of encoder output a head is given, for so many samples."""
    return min(lines, -(-samples // 320) + SILENCE_LINES)


def write_adapter_encoder(head: AdapterHead, path: Path) -> list[Path]:
    """Write the graph from the encoder output to keys and values; returns the files written.

    Input ``encoding`` float32 [1, frames, encoding width], frames a multiple of ``TILE``. Outputs
    as those of Whisper's encoder for ``head``'s own decoder, whose graph ``write_decoder`` writes.
    """
    graph = GraphBuilder("adapter_encoder")
    x = _adapt(graph, head.adapter)
    cross_projections(graph, x, head, None)
    return graph.save(path)


def write_ctc_encoder(head: CtcHead, path: Path) -> list[Path]:
    """Write the graph from the encoder output to tokens; returns the files written.

    Input as that of ``write_adapter_encoder``. Output ``tokens`` int64 [1, positions *
    per_position]: the likeliest ones, the blank being the last one of the vocabulary.
    """
    graph = GraphBuilder("ctc_encoder")
    logits = graph.linear(_adapt(graph, head.adapter), head.output, norm=head.norm)
    apart = graph.constant(np.array([1, -1, head.tokens], dtype=np.int64))
    logits = graph.node("Reshape", [logits, apart])
    nothing = graph.constant(np.zeros(head.tokens, dtype=np.float32))
    graph.node("Choose", [logits, nothing], ["tokens", graph.fresh("log_prob")], domain=AS2D)
    graph.output("tokens", INT64, [1, "places"])
    return graph.save(path)


def _adapt(graph: GraphBuilder, adapter: Adapter) -> str:
    joined_width = len(adapter.norm.gamma)
    lines = graph.input(ENCODING, FLOAT, [1, "frames", joined_width // POOL])
    shape = graph.constant(np.array([1, -1, joined_width], dtype=np.int64))
    x = graph.linear(graph.node("Reshape", [lines, shape]), adapter.join, norm=adapter.norm)
    for block in adapter.blocks:
        x = graph.linear(x, block.convolution, gelu=True, taps=3, residual=x)
        feed = block.feed_forward
        x = graph.feed_forward(x, feed.norm, feed.widen, feed.narrow)
    return x
