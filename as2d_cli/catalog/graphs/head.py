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

POOL = 2
"""Lines of the target's encoder output that become one position of the head."""

PLACES = POOL
"""Places of a position in which a sketch may tell a letter."""

TILE = 16 * POOL
"""Lines are filled up with zeros to a multiple of this: a tile of 16 positions."""

WINDOW_POSITIONS = -(-1500 // TILE) * 16
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


@dataclass(frozen=True)
class Sketch:
    """A first guess at the whole text: for every place the likeliest letter, or the blank.

    Connectionist temporal classification (Graves et al. 2006). Sees ``x`` + ``narrow``(GELU(
    ``widen``(``x``))); ``output`` [PLACES * (letters + 1), width] sees its ``norm``, and tells of
    one place after the other, the blank last.

    Attributes:
        letters: which token, of a single byte, each letter is.
    """

    widen: Linear
    narrow: Linear
    norm: Norm
    output: Linear
    letters: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class AdapterHead(SpeechDecoder):
    """A small decoder that looks at the target's encoder output through an adapter.

    It takes its sketch, if there is one, for candidates, as the target takes what the head says.
    """

    adapter: Adapter
    sketch: Sketch | None

    @property
    def audio_positions(self) -> int:
        """Positions of a full window."""
        return WINDOW_POSITIONS


@dataclass(frozen=True)
class CtcHead:
    """A sketch alone."""

    adapter: Adapter
    sketch: Sketch


def lines_for(samples: int, lines: int) -> int:
    """How many of a window's ``lines`` of encoder output a head is given, for so many samples."""
    return min(lines, -(-samples // 320) + SILENCE_LINES)


def write_adapter_encoder(head: AdapterHead, path: Path) -> list[Path]:
    """Write the graph from the encoder output to keys and values; returns the files written.

    Input ``encoding`` float32 [1, frames, encoding width], frames a multiple of ``TILE``. Outputs
    as those of Whisper's encoder for ``head``'s own decoder, whose graph ``write_decoder`` writes,
    and with a sketch ``sketch`` int64 [1, places], ``PLACES`` for a position: the likeliest tokens
    of a single byte, the blank after the last one of all tokens.
    """
    graph = GraphBuilder("adapter_encoder")
    x = _adapt(graph, head.adapter)
    if head.sketch is not None:
        _sketch(graph, x, head.sketch, head.vocabulary_size)
    cross_projections(graph, x, head, None)
    return graph.save(path)


def write_ctc_encoder(head: CtcHead, blank: int, path: Path) -> list[Path]:
    """Write the graph from the encoder output to a sketch; returns the files written.

    Input and output ``sketch`` as those of ``write_adapter_encoder``; ``blank`` is a token, too.
    """
    graph = GraphBuilder("ctc_encoder")
    _sketch(graph, _adapt(graph, head.adapter), head.sketch, blank)
    return graph.save(path)


def _sketch(graph: GraphBuilder, x: str, sketch: Sketch, blank: int) -> None:
    x = graph.linear(graph.linear(x, sketch.widen, gelu=True), sketch.narrow, residual=x)
    logits = graph.linear(x, sketch.output, norm=sketch.norm)
    tokens = np.array([*sketch.letters, blank], dtype=np.int64)
    apart = graph.constant(np.array([1, -1, len(tokens)], dtype=np.int64))
    logits = graph.node("Reshape", [logits, apart])
    nothing = graph.constant(np.zeros(len(tokens), dtype=np.float32))
    letters = graph.fresh("letters")
    graph.node("Choose", [logits, nothing], [letters, graph.fresh("log_prob")], domain=AS2D)
    graph.node("Gather", [graph.constant(tokens), letters], ["sketch"])
    graph.output("sketch", INT64, [1, "places"])


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
