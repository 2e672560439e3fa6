"""Whisper as two ONNX graphs: PCM to cross-attention keys and values, and one decoder step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from as2d_cli.catalog.graphs import mel
from as2d_cli.catalog.graphs.blocks import (
    AS2D,
    CHOICE_COLUMNS,
    FLOAT,
    INT8,
    INT32,
    INT64,
    UINT8,
    Floats,
    GraphBuilder,
    Linear,
    Norm,
)

ENCODING = "encoding"


@dataclass(frozen=True)
class FeedForward:
    """Norm, widening layer, GELU, narrowing layer."""

    norm: Norm
    widen: Linear
    narrow: Linear


@dataclass(frozen=True)
class SelfAttention:
    """Norm, the stacked query/key/value layer [3 * width, width], output layer."""

    norm: Norm
    query_key_value: Linear
    output: Linear


@dataclass(frozen=True)
class CrossAttention:
    """Norm, query layer, the stacked key/value layer [2 * width, width] over audio, output."""

    norm: Norm
    query: Linear
    key_value: Linear
    output: Linear


@dataclass(frozen=True)
class EncoderLayer:
    """One transformer layer of the encoder."""

    attention: SelfAttention
    feed_forward: FeedForward


@dataclass(frozen=True)
class DecoderLayer:
    """One transformer layer of the decoder."""

    attention: SelfAttention
    cross: CrossAttention
    feed_forward: FeedForward


@dataclass(frozen=True)
class Convolution:
    """A one-dimensional convolution: ``weight`` [channels out, channels in, 3], ``bias``."""

    weight: Floats
    bias: Floats


@dataclass(frozen=True)
class Encoder:
    """Encoder weights; ``positions`` float32 [1500, width]."""

    convolutions: tuple[Convolution, Convolution]
    positions: Floats
    layers: tuple[EncoderLayer, ...]
    norm: Norm


@dataclass(frozen=True)
class Decoder:
    """Decoder weights.

    ``embeddings`` [vocabulary, width] and ``positions`` [context, width] keep the type they were
    published in: they are only looked up, and float16 tables load in half the time.
    """

    embeddings: npt.NDArray[np.floating]
    positions: npt.NDArray[np.floating]
    layers: tuple[DecoderLayer, ...]
    norm: Norm


@dataclass(frozen=True, kw_only=True)
class SpeechDecoder(ABC):
    """Something with a decoder like Whisper's."""

    decoder: Decoder
    decoder_heads: int
    # (layer, head) of those whose cross-attention follows the audio.
    alignment_heads: tuple[tuple[int, int], ...] = ()

    @property
    @abstractmethod
    def audio_positions(self) -> int:
        """Most positions of the audio that the decoder looks at."""

    @property
    def width(self) -> int:
        """Model dimension."""
        return int(self.decoder.embeddings.shape[1])

    @property
    def head_size(self) -> int:
        """Dimension of one decoder head."""
        return self.width // self.decoder_heads

    @property
    def vocabulary_size(self) -> int:
        """Rows of the embedding table."""
        return int(self.decoder.embeddings.shape[0])

    @property
    def context(self) -> int:
        """Positions of the decoder."""
        return int(self.decoder.positions.shape[0])


@dataclass(frozen=True, kw_only=True)
class Whisper(SpeechDecoder):
    """A Whisper model's weights and the two facts that no shape tells."""

    encoder: Encoder
    encoder_heads: int

    @property
    def audio_positions(self) -> int:
        """Encoder positions of a full window."""
        return int(self.encoder.positions.shape[0])


def write_encoder(model: Whisper, path: Path) -> list[Path]:
    """Write the encoder graph; returns the files written.

    Input ``audio`` float32 [1, samples], 16 kHz: 480000 samples, zero padded, are a window as
    Whisper was trained on. Less, a multiple of 5120, is good enough for a drafter, and cheaper.
    Outputs for every decoder layer the 8-bit keys and values of the audio in tiles, and their
    scales, as ``audio_tensors`` lists them; and ``encoding`` float32 [1, positions, width], what
    the last layer says before the final norm, for drafters that share this encoder.
    """
    graph = GraphBuilder("whisper_encoder")
    audio = graph.input("audio", FLOAT, [1, "samples"])
    bands = model.encoder.convolutions[0].weight.shape[1]
    x = _subsample(graph, log_mel(graph, audio, bands), model.encoder)
    x = _encoder_layers(graph, x, model)
    cross_projections(graph, x, model, model.encoder.norm)
    return graph.save(path)


def write_decoder(model: SpeechDecoder, path: Path, language_tokens: Sequence[int]) -> list[Path]:
    """Write the graph of one decoder step over R rows; returns the files written.

    Inputs: ``tokens`` int64 [1, R], ``positions`` int64 [R] (where a row stands in its text),
    ``places`` int32 [R, 4] (where it stands in the caches: slot, at, shared, begin), ``choices``
    int32 [R, 6] (what may come after it: first, timestamps, low, high, score, seed; for both see
    native/include/as2d/kernels/operators.h), ``temperatures`` float32 [R], ``suppress`` float32
    [vocabulary] (added to the logits), ``past_k_{l}``/``past_v_{l}`` float32 [slots, heads,
    context, head size], and ``audio_tensors`` as the encoder gives them with slots in front.
    Outputs: ``next`` int64 [1, R], ``log_prob`` float32 [1, R] of it, ``language_logits`` float32
    [1, R, len(language_tokens)] before suppression (only with language tokens), ``query_{l}``
    float32 [1, R, width] of the cross-attention of the layers that have one of
    ``model.alignment_heads``, ``present_k_{l}``/``present_v_{l}``, to be bound on the past buffers.

    A row's numbers are the same whatever R is, whatever the other rows are and wherever in the
    caches it and what it sees lie.
    """
    graph = GraphBuilder("whisper_decoder")
    vocabulary = model.vocabulary_size
    tokens = graph.input("tokens", INT64, [1, "rows"])
    positions = graph.input("positions", INT64, ["rows"])
    graph.input("places", INT32, ["rows", 4])
    suppress = graph.input("suppress", FLOAT, [vocabulary])

    x = _embed(graph, model.decoder, tokens, positions)
    x = _decoder_layers(graph, x, model)
    embeddings = np.asarray(model.decoder.embeddings, dtype=np.float32)
    logits = graph.linear(x, Linear(embeddings), norm=model.decoder.norm)
    if language_tokens:
        graph.node(
            "Gather",
            [logits, graph.constant(np.array(language_tokens, dtype=np.int64))],
            ["language_logits"],
            axis=-1,
        )
    graph.choose(logits, suppress, "rows")
    if language_tokens:
        graph.output("language_logits", FLOAT, [1, "rows", len(language_tokens)])
    cache: list[int | str] = ["slots", model.decoder_heads, model.context, model.head_size]
    for layer in range(len(model.decoder.layers)):
        for kind in "kv":
            graph.input(f"past_{kind}_{layer}", FLOAT, cache)
            graph.output(f"present_{kind}_{layer}", FLOAT, cache)
        for name, element, shape in audio_tensors(model, layer):
            graph.input(name, element, ["slots", *shape])
    return graph.save(path)


def audio_tensors(model: SpeechDecoder, layer: int) -> list[tuple[str, int, list[int | str]]]:
    """What the encoder hands to one slot of a decoder layer: names, ONNX element types, shapes.

    ``cross_k_{l}`` uint8 [heads, tiles, head size / 4, 16, 4] with a tile for every 16 of the
    audio's positions, of which there is one for 320 samples, and ``cross_v_{l}`` int8 [heads, head
    size / 16, 4 tiles, 16, 4], each with the scale of every dimension of a head,
    ``cross_k_scale_{l}`` and ``cross_v_scale_{l}`` float32 [heads, head size]. Keys have 128 added.
    Positions beyond the last of a window are never looked at.
    """
    heads, size = model.decoder_heads, model.head_size
    return [
        (f"cross_k_{layer}", UINT8, [heads, "tiles", size // 4, 16, 4]),
        (f"cross_k_scale_{layer}", FLOAT, [heads, size]),
        (f"cross_v_{layer}", INT8, [heads, size // 16, "value_steps", 16, 4]),
        (f"cross_v_scale_{layer}", FLOAT, [heads, size]),
    ]


def run_places(
    past: int, rows: int, *, slot: int = 0, shared: int = 0, begin: int = 0
) -> npt.NDArray[np.int32]:
    """The input ``places`` for ``rows`` rows in a run that begins at position ``past``.

    Args:
        shared: positions at the start of the slot that the rows see, if not all before them.
        begin: from where on they see all before them.
    """
    places = np.empty((rows, 4), dtype=np.int32)
    places[:] = slot, 0, shared, begin
    places[:, 1] = past + np.arange(rows)
    return places


def any_choice(rows: int) -> dict[str, npt.NDArray[np.generic]]:
    """Inputs ``choices`` and ``temperatures`` for rows that may be any token."""
    choices = np.full((rows, CHOICE_COLUMNS), np.iinfo(np.int32).max, dtype=np.int32)
    choices[:, 0] = 0
    return {"choices": choices, "temperatures": np.zeros(rows, dtype=np.float32)}


def log_mel(graph: GraphBuilder, audio: str, bands: int) -> str:
    """Whisper's log-mel features of ``audio`` [1, samples], [1, samples / 160, bands]: ``mel``."""
    tables = [graph.constant(mel.fourier_tiles()), graph.constant(mel.filter_rows(bands))]
    return graph.node("LogMel", [audio, *tables], domain=AS2D, hop=mel.HOP)


def _subsample(graph: GraphBuilder, features: str, encoder: Encoder) -> str:
    """Two convolutions, the second of stride 2, and positions: [1, audio positions, width]."""
    first, second = (
        Linear(c.weight.transpose(0, 2, 1).reshape(len(c.weight), -1), c.bias)
        for c in encoder.convolutions
    )
    x = graph.linear(features, first, taps=3, gelu=True)
    positions = graph.constant(encoder.positions)
    return graph.linear(x, second, taps=3, stride=2, gelu=True, residual=positions)


def _encoder_layers(graph: GraphBuilder, x: str, model: Whisper) -> str:
    last = model.encoder.layers[-1]
    for layer in model.encoder.layers:
        attention = layer.attention
        stacked = graph.linear(x, attention.query_key_value, norm=attention.norm)
        attended = graph.node("Attention", [stacked], domain=AS2D, heads=model.encoder_heads)
        x = graph.linear(attended, attention.output, residual=x)
        feed = layer.feed_forward
        name = ENCODING if layer is last else None
        x = graph.feed_forward(x, feed.norm, feed.widen, feed.narrow, name)
    return graph.output(x, FLOAT, [1, "positions", model.encoder.norm.gamma.shape[0]])


def cross_projections(graph: GraphBuilder, x: str, model: SpeechDecoder, norm: Norm | None) -> None:
    """Keys and values of every decoder layer from ``x`` or its layer norm: the graph's outputs."""
    for index, layer in enumerate(model.decoder.layers):
        stacked = graph.linear(x, layer.cross.key_value, norm=norm)
        names = [graph.output(*tensor) for tensor in audio_tensors(model, index)]
        graph.node("QuantizeCross", [stacked], names, domain=AS2D, heads=model.decoder_heads)


def _embed(graph: GraphBuilder, decoder: Decoder, tokens: str, positions: str) -> str:
    parts = []
    for table, ids in ((decoder.embeddings, tokens), (decoder.positions, positions)):
        rows = graph.node("Gather", [graph.constant(table), ids])
        # The cast comes after the look-up: before it, the runtime would widen the whole table.
        parts.append(graph.node("Cast", [rows], to=FLOAT))
    return graph.node("Add", parts)


def _decoder_layers(graph: GraphBuilder, x: str, model: SpeechDecoder) -> str:
    heads = model.decoder_heads
    for index, layer in enumerate(model.decoder.layers):
        stacked = graph.linear(x, layer.attention.query_key_value, norm=layer.attention.norm)
        caches = [f"past_k_{index}", f"past_v_{index}"]
        attended = graph.fresh("attended")
        graph.node(
            "SelfAttention",
            [stacked, *caches, "places"],
            [attended, f"present_k_{index}", f"present_v_{index}"],
            domain=AS2D,
            heads=heads,
        )
        x = graph.linear(attended, layer.attention.output, residual=x)
        query = graph.linear(x, layer.cross.query, norm=layer.cross.norm)
        if any(aligned == index for aligned, _ in model.alignment_heads):
            graph.node("Identity", [query], [f"query_{index}"])
            graph.output(f"query_{index}", FLOAT, [1, "rows", model.width])
        attended = graph.node(
            "CrossAttention",
            [query, *(name for name, _, _ in audio_tensors(model, index)), "places"],
            domain=AS2D,
            heads=heads,
            positions=model.audio_positions,
        )
        x = graph.linear(attended, layer.cross.output, residual=x)
        feed = layer.feed_forward
        x = graph.feed_forward(x, feed.norm, feed.widen, feed.narrow)
    return x
