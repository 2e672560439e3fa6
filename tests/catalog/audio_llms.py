"""Small made-up audio language models in the layout that others publish: three graphs of ONNX's own
operators, and one of features.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto

from as2d_cli.catalog.graphs.blocks import GraphBuilder

Array = npt.NDArray[Any]

WIDTH, HEADS, KV_HEADS, HEAD_SIZE, LAYERS, FEED = 64, 4, 2, 16, 2, 128
CONTEXT = 256
HOP, BANDS, STACK = 160, 16, 10
SAMPLES_PER_POSITION = HOP * STACK
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
_BLOCK = 32
_END = np.iinfo(np.int64).max


class _Graph(GraphBuilder):
    """A graph with random weights in it."""

    def __init__(self, name: str, seed: int, four_bits: bool = False) -> None:
        super().__init__(name)
        self._random = np.random.default_rng(seed)
        self._four_bits = four_bits

    def numbers(self, *values: int) -> str:
        return self.constant(np.array(values, dtype=np.int64))

    def number(self, value: int) -> str:
        return self.constant(np.array(value, dtype=np.int64))

    def float(self, value: float) -> str:
        return self.constant(np.array(value, dtype=np.float32))

    def dense(self, x: str, inputs: int, outputs: int, scale: float = 1.0) -> str:
        """A linear layer that keeps the size of what comes in, but for ``scale``."""
        size = scale * inputs**-0.5
        if self._four_bits:
            blocks = inputs // _BLOCK
            weight = self._random.integers(0, 256, (outputs, blocks, _BLOCK // 2), dtype=np.uint8)
            scales = np.full(outputs * blocks, size / 4.6, dtype=np.float32)
            return self.node(
                "MatMulNBits",
                [x, self.constant(weight), self.constant(scales)],
                domain="com.microsoft",
                K=inputs,
                N=outputs,
                bits=4,
                block_size=_BLOCK,
                accuracy_level=4,
            )
        weight = self._random.standard_normal((inputs, outputs)) * size
        return self.node("MatMul", [x, self.constant(weight.astype(np.float32))])

    def norm(self, x: str) -> str:
        mean = self.node("ReduceMean", [self.node("Mul", [x, x])], axes=[-1])
        root = self.node("Sqrt", [self.node("Add", [mean, self.float(1e-5)])])
        return self.node("Div", [x, root])

    def size(self, x: str, axis: int) -> str:
        return self.node("Gather", [self.node("Shape", [x]), self.number(axis)])


def write_features(path: Path) -> None:
    """Samples [1, n] to features [1, BANDS, n / HOP]."""
    graph = _Graph("features", 1)
    graph.input("audio", FLOAT, [1, "samples"])
    graph.output("features", FLOAT, [1, BANDS, "frames"])
    frames = graph.node("Reshape", [_whole("audio", HOP, graph), graph.numbers(1, -1, HOP)])
    bands = graph.node("Tanh", [graph.dense(frames, HOP, BANDS, 20.0)])
    graph.node("Transpose", [bands], ["features"], perm=[0, 2, 1])
    graph.save(path)


def write_encoder(path: Path, seed: int, *, flat: bool) -> None:
    """Features to a line for each STACK frames; flat: without the dimension of the batch."""
    graph = _Graph("audio_encoder", seed)
    graph.input("audio_values", FLOAT, ["batch", BANDS, "frames"])
    graph.output("audio_features", FLOAT, ["lines", WIDTH] if flat else ["batch", "lines", WIDTH])
    frames = graph.node("Transpose", ["audio_values"], perm=[0, 2, 1])
    wide = BANDS * STACK
    stacked = graph.node("Reshape", [_whole(frames, STACK, graph), graph.numbers(1, -1, wide)])
    lines = graph.node("Tanh", [graph.dense(stacked, wide, WIDTH, 2.0)])
    shape = (-1, WIDTH) if flat else (1, -1, WIDTH)
    graph.node("Reshape", [lines, graph.numbers(*shape)], ["audio_features"])
    graph.save(path)


def write_embedding(path: Path, seed: int, vocabulary: int) -> None:
    """Tokens [1, n] to lines [1, n, WIDTH]."""
    graph = _Graph("embed_tokens", seed)
    graph.input("input_ids", INT64, ["batch", "rows"])
    graph.output("inputs_embeds", FLOAT, ["batch", "rows", WIDTH])
    table = np.random.default_rng(seed).standard_normal((vocabulary, WIDTH))
    graph.node("Gather", [graph.constant(table.astype(np.float32)), "input_ids"], ["inputs_embeds"])
    graph.save(path)


def write_decoder(
    path: Path, seed: int, vocabulary: int, *, positions: bool, kept: bool, four_bits: bool
) -> None:
    """Lines to logits, with caches that grow.

    Args:
        positions: with an input of positions; they follow from the mask without.
        kept: with an input that says of how many last rows logits are wanted.
        four_bits: linear layers are MatMulNBits.
    """
    graph = _Graph("decoder_model_merged", seed, four_bits)
    x = graph.input("inputs_embeds", FLOAT, ["batch", "rows", WIDTH])
    graph.input("attention_mask", INT64, ["batch", "total"])
    total, rows = graph.size("attention_mask", 1), graph.size(x, 1)
    past = graph.node("Sub", [total, rows])
    one = graph.number(1)
    seen = graph.node("Range", [graph.number(0), total, one])
    seeing = graph.node("Range", [past, total, one])
    after = graph.node("Greater", [seen, graph.node("Unsqueeze", [seeing, graph.numbers(1)])])
    hidden = graph.node("Equal", ["attention_mask", graph.number(0)])
    mask = graph.node(
        "Where", [graph.node("Or", [after, hidden]), graph.float(-1e9), graph.float(0)]
    )
    place = "position_ids"
    if positions:
        graph.input(place, INT64, ["batch", "rows"])
    else:
        place = graph.node("Unsqueeze", [seeing, graph.numbers(0)])
    angles = np.outer(np.arange(CONTEXT), 100.0 ** -(np.arange(HEAD_SIZE // 2) / HEAD_SIZE * 2))
    turns = [_turn(graph, function(angles), place) for function in (np.cos, np.sin)]
    for layer in range(LAYERS):
        heard = _attention(graph, graph.norm(x), turns, mask, layer)
        x = graph.node("Add", [x, heard])
        wide = graph.node("Tanh", [graph.dense(graph.norm(x), WIDTH, FEED, 2.0)])
        x = graph.node("Add", [x, graph.dense(wide, FEED, WIDTH, 2.0)])
    if kept:
        graph.input("num_logits_to_keep", INT64, [])
        start = graph.node("Reshape", ["num_logits_to_keep", graph.numbers(1)])
        ends = [graph.node("Neg", [start]), graph.numbers(_END), graph.numbers(1)]
        x = graph.node("Slice", [x, *ends])
    logits = graph.dense(graph.norm(x), WIDTH, vocabulary, 4.0)
    graph.node("Identity", [logits], [graph.output("logits", FLOAT, ["batch", "kept", vocabulary])])
    graph.save(path)


def _whole(x: str, size: int, graph: _Graph) -> str:
    """Without what is left at the end of axis 1 beyond a multiple of ``size``."""
    count = graph.node("Div", [graph.size(x, 1), graph.number(size)])
    end = graph.node("Mul", [count, graph.numbers(size)])
    return graph.node("Slice", [x, graph.numbers(0), end, graph.numbers(1)])


def _turn(graph: _Graph, table: Array, place: str) -> str:
    rows = graph.node("Gather", [graph.constant(table.astype(np.float32)), place])
    return graph.node("Unsqueeze", [rows, graph.numbers(2)])


def _attention(graph: _Graph, x: str, turns: list[str], mask: str, layer: int) -> str:
    cosine, sine = turns

    def heads(count: int) -> str:
        return graph.node(
            "Reshape",
            [graph.dense(x, WIDTH, count * HEAD_SIZE), graph.numbers(1, -1, count, HEAD_SIZE)],
        )

    def turned(value: str) -> str:
        halves = [graph.fresh("half"), graph.fresh("half")]
        graph.node("Split", [value], halves, axis=-1)
        low, high = halves
        left = graph.node(
            "Sub", [graph.node("Mul", [low, cosine]), graph.node("Mul", [high, sine])]
        )
        right = graph.node(
            "Add", [graph.node("Mul", [high, cosine]), graph.node("Mul", [low, sine])]
        )
        return graph.node("Concat", [left, right], axis=-1)

    def cached(value: str, kind: str) -> str:
        """For every query head."""
        shape: list[int | str] = ["batch", KV_HEADS, "past", HEAD_SIZE]
        past = graph.input(f"past_key_values.{layer}.{kind}", FLOAT, shape)
        present = graph.output(f"present.{layer}.{kind}", FLOAT, [*shape[:2], "all", HEAD_SIZE])
        fresh = graph.node("Transpose", [value], perm=[0, 2, 1, 3])
        graph.node("Concat", [past, fresh], [present], axis=2)
        shared = graph.numbers(*(head * KV_HEADS // HEADS for head in range(HEADS)))
        return graph.node("Gather", [present, shared], axis=1)

    query = graph.node("Transpose", [turned(heads(HEADS))], perm=[0, 2, 1, 3])
    key = cached(turned(heads(KV_HEADS)), "key")
    value = cached(heads(KV_HEADS), "value")
    scores = graph.node("MatMul", [query, graph.node("Transpose", [key], perm=[0, 1, 3, 2])])
    scores = graph.node("Mul", [scores, graph.float(HEAD_SIZE**-0.5)])
    weights = graph.node("Softmax", [graph.node("Add", [scores, mask])], axis=-1)
    mixed = graph.node("Transpose", [graph.node("MatMul", [weights, value])], perm=[0, 2, 1, 3])
    flat = graph.node("Reshape", [mixed, graph.numbers(1, -1, HEADS * HEAD_SIZE)])
    return graph.dense(flat, HEADS * HEAD_SIZE, WIDTH)
