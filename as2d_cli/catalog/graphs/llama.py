"""Language models of the llama and qwen2 families as one ONNX graph: a step over some rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from as2d_cli.catalog.graphs.block_weights import Matrix, interleave, stack
from as2d_cli.catalog.graphs.blocks import AS2D, FLOAT, INT32, INT64, Floats, GraphBuilder


@dataclass(frozen=True)
class Layer:
    """One transformer layer; the biases, float32 [outputs], may be missing.

    Queries and keys are those of rotary positions that turn dimension i of a head together with
    dimension i + size / 2.
    """

    attention_norm: Floats
    query: Matrix
    key: Matrix
    value: Matrix
    query_bias: Floats | None
    key_bias: Floats | None
    value_bias: Floats | None
    output: Matrix
    feed_norm: Floats
    gate: Matrix
    up: Matrix
    down: Matrix


@dataclass(frozen=True, kw_only=True)
class Llama:
    """A model's weights and what no shape tells.

    Attributes:
        epsilon: of the norms.
        context: positions that the caches are to hold.
        frequencies: float64 [head size / 2], radians for each position.
        head: None where it is the table of embeddings.
    """

    embeddings: Matrix
    layers: tuple[Layer, ...]
    norm: Floats
    head: Matrix | None
    heads: int
    kv_heads: int
    epsilon: float
    context: int
    frequencies: np.ndarray[tuple[int], np.dtype[np.float64]]

    @property
    def width(self) -> int:
        """Model dimension."""
        return self.embeddings.inputs

    @property
    def head_size(self) -> int:
        """Dimension of a head."""
        return 2 * len(self.frequencies)

    @property
    def vocabulary_size(self) -> int:
        """Rows of the embedding table."""
        return self.embeddings.outputs


def write_decoder(model: Llama, path: Path) -> list[Path]:
    """Write the graph of one step over R rows; returns the files written.

    Inputs: ``tokens`` int64 [1, R], ``positions`` int64 [R], ``places`` int32 [R, 4] as Whisper's
    decoder has them, ``select`` int64 [N], the rows after which a token is wanted, ``choices``
    int32 [N, 6] and ``temperatures`` float32 [N], what it may be (see the operator Choose),
    ``suppress`` float32 [vocabulary], and ``past_k_{l}``/``past_v_{l}`` float32 [slots, key heads,
    context, head size], whose context is left open: positions are those of the model. Outputs:
    ``next`` int64 [1, N], ``log_prob`` float32 [1, N] of it, ``present_k_{l}``/``present_v_{l}``,
    to be bound on the past buffers.

    A row's numbers are the same whatever R is, whatever the other rows are and wherever in the
    caches it and what it sees lie.
    """
    builder = _Builder(GraphBuilder("llama", path), model)
    builder.build()
    return builder.graph.save(path)


class _Builder:
    def __init__(self, graph: GraphBuilder, model: Llama) -> None:
        self.graph = graph
        self._model = model

    def build(self) -> None:
        graph, model = self.graph, self._model
        vocabulary = model.vocabulary_size
        tokens = graph.input("tokens", INT64, [1, "rows"])
        graph.input("positions", INT64, ["rows"])
        graph.input("places", INT32, ["rows", 4])
        select = graph.input("select", INT64, ["selected"])
        suppress = graph.input("suppress", FLOAT, [vocabulary])
        angles = np.arange(model.context)[:, None] * model.frequencies
        turns = [
            graph.constant(table.astype(np.float32)) for table in (np.cos(angles), np.sin(angles))
        ]
        table = graph.constant(model.embeddings.pack())
        bits = model.embeddings.bits
        x = graph.node("BlockRows", [tokens, table], domain=AS2D, bits=bits, width=model.width)
        for index, layer in enumerate(model.layers):
            x = self._layer(index, layer, x, turns)
        wanted = graph.node("Gather", [x, select], axis=1)
        head = table if model.head is None else None
        logits = self._linear(wanted, model.head or model.embeddings, norm=model.norm, packed=head)
        graph.choose(logits, suppress, "selected")

    def _layer(self, index: int, layer: Layer, x: str, turns: Sequence[str]) -> str:
        graph, model = self.graph, self._model
        cache: list[int | str] = ["slots", model.kv_heads, "context", model.head_size]
        past = [graph.input(f"past_{kind}_{index}", FLOAT, cache) for kind in "kv"]
        present = [graph.output(f"present_{kind}_{index}", FLOAT, cache) for kind in "kv"]
        biases = [b for b in (layer.query_bias, layer.key_bias) if b is not None]
        query_key = self._linear(
            x,
            stack([layer.query, layer.key]),
            norm=layer.attention_norm,
            bias=np.concatenate(biases) if biases else None,
        )
        value = self._linear(x, layer.value, norm=layer.attention_norm, bias=layer.value_bias)
        attended = graph.fresh("attended")
        graph.node(
            "GroupedAttention",
            [query_key, value, *past, "places", "positions", *turns],
            [attended, *present],
            domain=AS2D,
            heads=model.heads,
            kv_heads=model.kv_heads,
        )
        x = self._linear(attended, layer.output, residual=x)
        feed = interleave(layer.gate, layer.up)
        wide = self._linear(x, feed, norm=layer.feed_norm, gated=layer.gate.outputs)
        return self._linear(wide, layer.down, residual=x)

    def _linear(
        self,
        x: str,
        matrix: Matrix,
        *,
        norm: Floats | None = None,
        bias: Floats | None = None,
        residual: str = "",
        gated: int = 0,
        packed: str | None = None,
    ) -> str:
        """A layer; with ``gated``, a number of outputs, half of its weights gate the others."""
        graph = self.graph
        inputs = [x, packed or graph.constant(matrix.pack())]
        inputs += ["" if v is None else graph.constant(v) for v in (bias, norm)]
        return graph.node(
            "BlockLinear",
            [*inputs, residual],
            domain=AS2D,
            bits=matrix.bits,
            width=gated or matrix.outputs,
            gated=int(gated > 0),
            # Attributes of our operators are whole numbers.
            epsilon=round(self._model.epsilon * 1e9),
        )
