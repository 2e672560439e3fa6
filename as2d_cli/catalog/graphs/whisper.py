"""Whisper as two ONNX graphs: PCM to cross-attention keys and values, and one decoder step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from as2d_cli.catalog.graphs import mel
from as2d_cli.catalog.graphs.blocks import (
    AS2D,
    FLOAT,
    INT8,
    INT32,
    INT64,
    MICROSOFT,
    UINT8,
    Floats,
    GraphBuilder,
    Linear,
    Norm,
)

_MIN_POWER = 1e-10
_DYNAMIC_RANGE = 8.0


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


@dataclass(frozen=True)
class Whisper:
    """A Whisper model's weights and the two facts that no shape tells."""

    encoder: Encoder
    decoder: Decoder
    encoder_heads: int
    decoder_heads: int

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

    @property
    def audio_positions(self) -> int:
        """Encoder positions of a full window."""
        return int(self.encoder.positions.shape[0])


def write_encoder(model: Whisper, path: Path, *, signed_weights: bool = True) -> list[Path]:
    """Write the encoder graph; returns the files written.

    Input ``audio`` float32 [1, 480000], 16 kHz, zero padded. Outputs for every decoder layer the
    8-bit keys and values of the audio in tiles, and their scales, as ``audio_tensors`` lists them.
    """
    graph = GraphBuilder("whisper_encoder", signed_weights=signed_weights)
    audio = graph.input("audio", FLOAT, [1, mel.WINDOW_SAMPLES])
    bands = model.encoder.convolutions[0].weight.shape[1]
    x = _subsample(graph, log_mel(graph, audio, bands), model.encoder)
    x = _encoder_layers(graph, x, model)
    _cross_projections(graph, x, model)
    return graph.save(path)


def write_decoder(model: Whisper, path: Path, language_tokens: Sequence[int]) -> list[Path]:
    """Write the graph of one decoder step over R rows; returns the files written.

    Inputs: ``tokens`` int64 [1, R], ``positions`` int64 [R] (where a row stands in its text),
    ``places`` int32 [R, 4] (where it stands in the caches: slot, at, shared, begin, see
    native/include/as2d/kernels/operators.h), ``suppress`` float32 [vocabulary] (added to the
    logits), ``past_k_{l}``/``past_v_{l}`` float32 [slots, heads, context, head size], and
    ``audio_tensors`` as the encoder gives them with slots in front. Outputs: ``next`` int64
    [1, R], ``log_prob`` float32 [1, R] of it, ``language_logits`` float32
    [1, R, len(language_tokens)] before suppression (only with language tokens),
    ``present_k_{l}``/``present_v_{l}``, to be bound on the past buffers.

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
    logits = graph.linear(x, Linear(embeddings))
    if language_tokens:
        graph.node(
            "Gather",
            [logits, graph.constant(np.array(language_tokens, dtype=np.int64))],
            ["language_logits"],
            axis=-1,
        )
    graph.node("Choose", [logits, suppress], ["next", "log_prob"], domain=AS2D)
    graph.output("next", INT64, [1, "rows"])
    graph.output("log_prob", FLOAT, [1, "rows"])
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


def audio_tensors(model: Whisper, layer: int) -> list[tuple[str, int, list[int]]]:
    """What the encoder hands to one slot of a decoder layer: names, ONNX element types, shapes.

    ``cross_k_{l}`` uint8 [heads, P, head size / 4, 16, 4] with P = ceil(positions / 16), and
    ``cross_v_{l}`` int8 [heads, head size / 16, 4 P, 16, 4], each with the scale of every
    dimension of a head, ``cross_k_scale_{l}`` and ``cross_v_scale_{l}`` float32 [heads, head size].
    Keys have 128 added. Positions beyond the last are never looked at.
    """
    heads, size = model.decoder_heads, model.head_size
    tiles = -(-model.audio_positions // 16)
    return [
        (f"cross_k_{layer}", UINT8, [heads, tiles, size // 4, 16, 4]),
        (f"cross_k_scale_{layer}", FLOAT, [heads, size]),
        (f"cross_v_{layer}", INT8, [heads, size // 16, 4 * tiles, 16, 4]),
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


def log_mel(graph: GraphBuilder, audio: str, bands: int) -> str:
    """Whisper's log-mel features of ``audio`` [1, 480000] as [1, bands, 3000]; see ``mel``."""
    half = mel.FFT_SIZE // 2
    padded = graph.node("Pad", [audio, graph.shape(0, half, 0, half)], mode="reflect")
    padded = graph.node("Unsqueeze", [padded, graph.shape(1)])
    # The Fourier transform as a strided convolution. It makes one frame more than Whisper keeps.
    basis = graph.constant(mel.fourier_basis()[:, None, :])
    spectrum = graph.node("Conv", [padded, basis], strides=[mel.HOP], kernel_shape=[mel.FFT_SIZE])
    spectrum = graph.node(
        "Slice", [spectrum, graph.shape(0), graph.shape(mel.FRAMES), graph.shape(2)]
    )
    squares = graph.node("Mul", [spectrum, spectrum])
    real, imaginary = graph.fresh("real"), graph.fresh("imaginary")
    graph.node("Split", [squares, graph.shape(mel.BINS, mel.BINS)], [real, imaginary], axis=1)
    power = graph.node("Add", [real, imaginary])
    energy = graph.node("MatMul", [graph.constant(mel.mel_filters(bands)), power])
    energy = graph.node("Max", [energy, graph.scalar(_MIN_POWER)])
    # ONNX has the natural logarithm only.
    logs = graph.node("Mul", [graph.node("Log", [energy]), graph.scalar(float(1 / np.log(10.0)))])
    peak = graph.node("ReduceMax", [logs], axes=[0, 1, 2], keepdims=1)
    logs = graph.node("Max", [logs, graph.node("Sub", [peak, graph.scalar(_DYNAMIC_RANGE)])])
    quarter = graph.scalar(0.25)
    return graph.node("Add", [graph.node("Mul", [logs, quarter]), graph.scalar(1.0)])


def _subsample(graph: GraphBuilder, features: str, encoder: Encoder) -> str:
    """Two convolutions, the second of stride 2, and positions: [1, audio positions, width]."""
    x = features
    for convolution, stride in zip(encoder.convolutions, (1, 2), strict=True):
        weights = [graph.constant(convolution.weight), graph.constant(convolution.bias)]
        x = graph.gelu(
            graph.node("Conv", [x, *weights], pads=[1, 1], strides=[stride], kernel_shape=[3])
        )
    x = graph.node("Transpose", [x], perm=[0, 2, 1])
    return graph.node("Add", [x, graph.constant(encoder.positions[None])])


def _encoder_layers(graph: GraphBuilder, x: str, model: Whisper) -> str:
    layers = model.encoder.layers
    normed = graph.norm(x, layers[0].attention.norm)
    for index, layer in enumerate(layers):
        parts = graph.dynamic_linears(normed, _rows(layer.attention.query_key_value, 3))
        attended = graph.node(
            "MultiHeadAttention", parts, domain=MICROSOFT, num_heads=model.encoder_heads
        )
        (update,) = graph.dynamic_linears(attended, [layer.attention.output])
        normed, x = graph.add_norm(x, update, layer.feed_forward.norm)
        (wide,) = graph.dynamic_linears(normed, [layer.feed_forward.widen])
        # The widened values have outliers: one scale for all of them would cost half a point of
        # word error rate.
        update = graph.row_linear(graph.gelu(wide), layer.feed_forward.narrow)
        last = index + 1 == len(layers)
        following = model.encoder.norm if last else layers[index + 1].attention.norm
        normed, x = graph.add_norm(x, update, following)
    return normed


def _cross_projections(graph: GraphBuilder, x: str, model: Whisper) -> None:
    linears = [half for d in model.decoder.layers for half in _rows(d.cross.key_value, 2)]
    flat = graph.dynamic_linears(x, linears)
    for layer in range(len(model.decoder.layers)):
        names = [graph.output(*tensor) for tensor in audio_tensors(model, layer)]
        graph.node(
            "QuantizeCross",
            flat[2 * layer : 2 * layer + 2],
            names,
            domain=AS2D,
            heads=model.decoder_heads,
        )


def _embed(graph: GraphBuilder, decoder: Decoder, tokens: str, positions: str) -> str:
    parts = []
    for table, ids in ((decoder.embeddings, tokens), (decoder.positions, positions)):
        rows = graph.node("Gather", [graph.constant(table), ids])
        # The cast comes after the look-up: before it, the runtime would widen the whole table.
        parts.append(graph.node("Cast", [rows], to=FLOAT))
    return graph.node("Add", parts)


def _decoder_layers(graph: GraphBuilder, x: str, model: Whisper) -> str:
    layers = model.decoder.layers
    heads = model.decoder_heads
    normed = graph.norm(x, layers[0].attention.norm)
    for index, layer in enumerate(layers):
        stacked = graph.linear(normed, layer.attention.query_key_value)
        caches = [f"past_k_{index}", f"past_v_{index}"]
        attended = graph.fresh("attended")
        graph.node(
            "SelfAttention",
            [stacked, *caches, "places"],
            [attended, f"present_k_{index}", f"present_v_{index}"],
            domain=AS2D,
            heads=heads,
        )
        update = graph.linear(attended, layer.attention.output)
        normed, x = graph.add_norm(x, update, layer.cross.norm)
        query = graph.linear(normed, layer.cross.query)
        attended = graph.node(
            "CrossAttention",
            [query, *(name for name, _, _ in audio_tensors(model, index)), "places"],
            domain=AS2D,
            heads=heads,
            positions=model.audio_positions,
        )
        update = graph.linear(attended, layer.cross.output)
        normed, x = graph.add_norm(x, update, layer.feed_forward.norm)
        wide = graph.linear(normed, layer.feed_forward.widen)
        update = graph.linear(graph.gelu(wide), layer.feed_forward.narrow)
        last = index + 1 == len(layers)
        following = model.decoder.norm if last else layers[index + 1].attention.norm
        normed, x = graph.add_norm(x, update, following)
    return normed


def _rows(linear: Linear, parts: int) -> list[Linear]:
    """Cut a stacked layer into ``parts`` equal layers."""
    weights = np.split(linear.weight, parts)
    if linear.bias is None:
        return [Linear(weight) for weight in weights]
    return [Linear(w, b) for w, b in zip(weights, np.split(linear.bias, parts), strict=True)]
