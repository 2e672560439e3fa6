"""Small made-up audio language models in the layout that others publish: three graphs of ONNX's own
operators, and one of features.
"""

from __future__ import annotations

from collections.abc import Callable
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

    def real(self, value: float) -> str:
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
        root = self.node("Sqrt", [self.node("Add", [mean, self.real(1e-5)])])
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


def write_decoder(path: Path, seed: int, vocabulary: int, *, fused: bool) -> None:
    """Lines to logits, with caches that grow.

    Args:
        fused: as exports for the runtime's own operators are: grouped-query attention in one
            operator, linear layers of 4 bits, positions that follow from the mask, and an input
            that says of how many last rows logits are wanted.
    """
    graph = _Graph("decoder_model_merged", seed, four_bits=fused)
    x = graph.input("inputs_embeds", FLOAT, ["batch", "rows", WIDTH])
    graph.input("attention_mask", INT64, ["batch", "total"])
    if not fused:
        graph.input("position_ids", INT64, ["batch", "rows"])
    attention = _fused_attention(graph) if fused else _attention(graph, x)
    for layer in range(LAYERS):
        normal = graph.norm(x)
        sizes = (HEADS, KV_HEADS, KV_HEADS)
        parts = [graph.dense(normal, WIDTH, count * HEAD_SIZE) for count in sizes]
        x = graph.node("Add", [x, graph.dense(attention(parts, layer), WIDTH, WIDTH)])
        wide = graph.node("Tanh", [graph.dense(graph.norm(x), WIDTH, FEED, 2.0)])
        x = graph.node("Add", [x, graph.dense(wide, FEED, WIDTH, 2.0)])
    if fused:
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


# Query, key and value of a layer to its result.
_Attention = Callable[[list[str], int], str]


def _turns() -> list[Array]:
    angles = np.outer(np.arange(CONTEXT), 100.0 ** -(np.arange(HEAD_SIZE // 2) / HEAD_SIZE * 2))
    return [function(angles).astype(np.float32) for function in (np.cos, np.sin)]


def _caches(graph: _Graph, layer: int) -> tuple[list[str], list[str]]:
    """Inputs and outputs of keys and of values."""
    kinds = [f"{layer}.{kind}" for kind in ("key", "value")]
    shape: list[int | str] = ["batch", KV_HEADS, "past", HEAD_SIZE]
    pasts = [graph.input(f"past_key_values.{kind}", FLOAT, shape) for kind in kinds]
    shape[2] = "all"
    return pasts, [graph.output(f"present.{kind}", FLOAT, shape) for kind in kinds]


def _fused_attention(graph: _Graph) -> _Attention:
    seen = graph.node("ReduceSum", ["attention_mask", graph.numbers(1)], keepdims=0)
    last = graph.node("Cast", [graph.node("Sub", [seen, graph.number(1)])], to=TensorProto.INT32)
    total = graph.node("Cast", [graph.size("attention_mask", 1)], to=TensorProto.INT32)
    turns = [graph.constant(table) for table in _turns()]

    def attention(parts: list[str], layer: int) -> str:
        pasts, presents = _caches(graph, layer)
        return graph.node(
            "GroupQueryAttention",
            [*parts, *pasts, last, total, *turns],
            [graph.fresh("mixed"), *presents],
            domain="com.microsoft",
            num_heads=HEADS,
            kv_num_heads=KV_HEADS,
            do_rotary=1,
        )

    return attention


def _attention(graph: _Graph, x: str) -> _Attention:
    total = graph.size("attention_mask", 1)
    past = graph.node("Sub", [total, graph.size(x, 1)])
    one = graph.number(1)
    seen = graph.node("Range", [graph.number(0), total, one])
    seeing = graph.node("Unsqueeze", [graph.node("Range", [past, total, one]), graph.numbers(1)])
    after = graph.node("Greater", [seen, seeing])
    hidden = graph.node("Equal", ["attention_mask", graph.number(0)])
    hidden = graph.node("Or", [after, hidden])
    mask = graph.node("Where", [hidden, graph.real(-1e9), graph.real(0)])
    tables = [graph.node("Gather", [graph.constant(t), "position_ids"]) for t in _turns()]
    cosine, sine = (graph.node("Unsqueeze", [table, graph.numbers(2)]) for table in tables)

    def heads(x: str, count: int) -> str:
        return graph.node("Reshape", [x, graph.numbers(1, -1, count, HEAD_SIZE)])

    def in_front(x: str) -> str:
        return graph.node("Transpose", [x], perm=[0, 2, 1, 3])

    def turned(value: str) -> str:
        low, high = graph.fresh("half"), graph.fresh("half")
        graph.node("Split", [value], [low, high], axis=-1)

        def mixed(op: str, one: str, other: str) -> str:
            return graph.node(
                op, [graph.node("Mul", [one, cosine]), graph.node("Mul", [other, sine])]
            )

        return graph.node("Concat", [mixed("Sub", low, high), mixed("Add", high, low)], axis=-1)

    def attention(parts: list[str], layer: int) -> str:
        query = in_front(turned(heads(parts[0], HEADS)))
        fresh = in_front(turned(heads(parts[1], KV_HEADS))), in_front(heads(parts[2], KV_HEADS))
        shared = graph.numbers(*(head * KV_HEADS // HEADS for head in range(HEADS)))
        key, value = (
            graph.node("Gather", [graph.node("Concat", [old, new], [out], axis=2), shared], axis=1)
            for old, out, new in zip(*_caches(graph, layer), fresh, strict=True)
        )
        scores = graph.node("MatMul", [query, graph.node("Transpose", [key], perm=[0, 1, 3, 2])])
        scores = graph.node("Mul", [scores, graph.real(HEAD_SIZE**-0.5)])
        weights = graph.node("Softmax", [graph.node("Add", [scores, mask])], axis=-1)
        mixed = in_front(graph.node("MatMul", [weights, value]))
        return graph.node("Reshape", [mixed, graph.numbers(1, -1, HEADS * HEAD_SIZE)])

    return attention
