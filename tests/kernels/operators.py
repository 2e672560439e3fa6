"""One-node models of the native operators, and what the operators mean in plain numpy, float64."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from as2d_cli.catalog.graphs.blocks import AS2D, IR_VERSION, OPSET
from as2d_cli.catalog.runtime import open_session

Array = npt.NDArray[Any]

# Operator -> its inputs and outputs: name, element type, number of dimensions.
_FACES = {
    "Linear": ("x:f3 weight:b4 scale:f1 bias:f1 gamma:f1 beta:f1 residual:f3", "y:f3"),
    "SelfAttention": (
        "query_key_value:f3 past_k:f4 past_v:f4 places:i2",
        "y:f3 present_k:f4 present_v:f4",
    ),
    "LogMel": ("audio:f2 basis:f4 filters:f2", "mel:f3"),
    "FeedForward": (
        "x:f3 gamma:f1 beta:f1 widen:b4 widen_scale:f1 widen_bias:f1"
        " narrow:b4 narrow_scale:f1 narrow_bias:f1",
        "y:f3",
    ),
    "Attention": ("query_key_value:f3", "y:f3"),
    "QuantizeCross": ("key_value:f3", "k:u5 k_scale:f2 v:b5 v_scale:f2"),
    "CrossAttention": ("query:f3 k:u6 k_scale:f3 v:b6 v_scale:f3 places:i2", "y:f3"),
    "Choose": ("logits:f3 suppress:f1 choices:i2 temperatures:f1", "next:l2 log_prob:f2"),
}
_ELEMENTS = {
    "f": TensorProto.FLOAT,
    "b": TensorProto.INT8,
    "u": TensorProto.UINT8,
    "i": TensorProto.INT32,
    "l": TensorProto.INT64,
}


class Operator:
    """A model of one node, all shapes free."""

    def __init__(
        self,
        folder: Path,
        name: str,
        constants: Mapping[str, Array] | None = None,
        *,
        without: Sequence[str] = (),
        threads: int = 1,
        **attributes: Any,
    ) -> None:
        """Load the model.

        Args:
            folder: where the model is written.
            constants: inputs that are part of the model.
            without: optional inputs that are left out.
        """
        constants = constants or {}
        inputs, outputs = ([_value(v) for v in side.split()] for side in _FACES[name])
        names = ["" if value.name in without else value.name for value in inputs]
        node = helper.make_node(
            name, names, [value.name for value in outputs], domain=AS2D, **attributes
        )
        graph = helper.make_graph(
            [node],
            name,
            [value for value in inputs if value.name in names and value.name not in constants],
            outputs,
            [numpy_helper.from_array(values, key) for key, values in constants.items()],
        )
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(AS2D, 1)]
        path = folder / f"{name}.onnx"
        onnx.save_model(helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION), path)
        self.session = open_session(path, threads)

    def __call__(self, **feeds: Array) -> list[Array]:
        """All outputs."""
        return list(self.session.run(None, feeds))


def _value(text: str) -> onnx.ValueInfoProto:
    name, face = text.split(":")
    dimensions = [f"{name}_{axis}" for axis in range(int(face[1]))]
    return helper.make_tensor_value_info(name, _ELEMENTS[face[0]], dimensions)


def attend(query: Array, key: Array, value: Array, *, causal: bool) -> Array:
    """Softmax attention of query [R, W] over key and value [heads, T, d]; causal: rows are last."""
    heads, positions, size = key.shape
    split = query.astype(np.float64).reshape(len(query), heads, size).transpose(1, 0, 2)
    scores = split @ key.astype(np.float64).transpose(0, 2, 1) * size**-0.5
    if causal:
        last = positions - len(query) + np.arange(len(query))
        scores[:, np.arange(positions)[None] > last[:, None]] = -np.inf
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    mixed = shares @ value.astype(np.float64)
    return np.asarray(mixed.transpose(1, 0, 2).reshape(len(query), -1))


def unpack_key(tiles: Array, scale: Array, positions: int) -> Array:
    """Keys [heads, positions, d] that ``QuantizeCross`` packed."""
    heads, _, fours, _, _ = tiles.shape
    flat = tiles.transpose(0, 1, 3, 2, 4).reshape(heads, -1, 4 * fours)[:, :positions]
    return np.asarray((flat.astype(np.float64) - 128) * scale[:, None])


def unpack_value(tiles: Array, scale: Array, positions: int) -> Array:
    """Values [heads, positions, d] that ``QuantizeCross`` packed."""
    heads, sixteens, _, _, _ = tiles.shape
    flat = tiles.transpose(0, 2, 4, 1, 3).reshape(heads, -1, 16 * sixteens)[:, :positions]
    return np.asarray(flat * scale[:, None].astype(np.float64))


def by_head(flat: Array, heads: int) -> Array:
    """[1, T, W] as [heads, T, d]."""
    return np.asarray(flat[0].reshape(flat.shape[1], heads, -1).transpose(1, 0, 2))
