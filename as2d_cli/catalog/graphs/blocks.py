"""The pieces ONNX graphs are put together from: constants, norms, quantised linear layers.

Operators of the domain ``as2d`` are the native engine's own (native/include/as2d/kernels).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

Floats = npt.NDArray[np.float32]

MICROSOFT = "com.microsoft"
AS2D = "as2d"
# Old enough for every ONNX Runtime that has the 8-bit kernels, new enough for LayerNormalization.
OPSET = 17
IR_VERSION = 9
LAYER_NORM_EPSILON = 1e-5
# Tensors from this size on go to the data file beside the graph, which ONNX Runtime maps.
_EXTERNAL_BYTES = 1024
# The native kernels take weights in tiles of so many outputs and inputs.
_TILE_OUTPUTS = 16
_TILE_INPUTS = 4
_ONE = np.array(1.0, dtype=np.float32)
_STEP = np.array(1.0 / 127.0, dtype=np.float32)
_MIDDLE = np.array(128, dtype=np.uint8)
_FLAT = np.array([-1], dtype=np.int64)


@dataclass(frozen=True)
class Linear:
    """A linear layer y = x W^T + b: ``weight`` float32 [outputs, inputs], ``bias`` [outputs]."""

    weight: Floats
    bias: Floats | None = None


@dataclass(frozen=True)
class Norm:
    """A layer norm over the last axis: ``gamma`` and ``beta`` float32 [width]."""

    gamma: Floats
    beta: Floats


class GraphBuilder:
    """Collects nodes, constants, inputs and outputs of one graph; values are known by name."""

    def __init__(self, name: str, *, signed_weights: bool = True) -> None:
        """Start an empty graph.

        Args:
            name: the graph's name.
            signed_weights: store integer weights as int8; else as uint8 around 128, which a
                processor without a fused dot product computes right (see ``processor``).
        """
        self._name = name
        self._signed_weights = signed_weights
        self._shared: dict[str, str] = {}
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []
        self._count = 0

    def input(self, name: str, element: int, shape: Sequence[int | str]) -> str:
        """Declare a graph input; a string in ``shape`` is a free dimension."""
        self._inputs.append(helper.make_tensor_value_info(name, element, shape))
        return name

    def output(self, name: str, element: int, shape: Sequence[int | str]) -> str:
        """Declare a graph output that some node produces under this name."""
        self._outputs.append(helper.make_tensor_value_info(name, element, shape))
        return name

    def constant(self, values: npt.NDArray[Any]) -> str:
        """Store ``values`` in the graph."""
        name = self._fresh("constant")
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def shape(self, *dimensions: int) -> str:
        """A constant int64 vector, as shapes and axes are given."""
        return self.constant(np.array(dimensions, dtype=np.int64))

    def scalar(self, value: float) -> str:
        """A constant float32 scalar."""
        return self.constant(np.array(value, dtype=np.float32))

    def node(
        self,
        op: str,
        inputs: Sequence[str],
        outputs: Sequence[str] | None = None,
        *,
        domain: str = "",
        **attributes: Any,
    ) -> str:
        """Add a node; returns its first output, named afresh unless ``outputs`` are given."""
        names = list(outputs) if outputs is not None else [self._fresh(op.lower())]
        self._nodes.append(
            helper.make_node(
                op, list(inputs), names, name=self._fresh(op), domain=domain, **attributes
            )
        )
        return names[0]

    def fresh(self, stem: str) -> str:
        """A value name that is not in use yet."""
        return self._fresh(stem)

    def norm(self, x: str, norm: Norm) -> str:
        """Layer norm of ``x``."""
        return self.node(
            "LayerNormalization",
            [x, self.constant(norm.gamma), self.constant(norm.beta)],
            axis=-1,
            epsilon=LAYER_NORM_EPSILON,
        )

    def add_norm(self, x: str, update: str, norm: Norm) -> tuple[str, str]:
        """Residual add and the layer norm after it: (normed, x + update).

        ``Sum`` in place of ``Add`` keeps the runtime from fusing the two: its fused kernel
        (SkipLayerNormalization) takes eight times as long on a CPU as the norm alone.
        """
        total = self.node("Sum", [x, update])
        return self.norm(total, norm), total

    def gelu(self, x: str) -> str:
        """Exact (erf) GELU."""
        return self.node("Gelu", [x], domain=MICROSOFT)

    def linear(self, x: str, linear: Linear) -> str:
        """int8 layer as the native engine computes it: the form that verifies exactly.

        ``x`` is float32 [1, rows, inputs]. A row is quantised by its own peak alone and products
        are summed in integers, so a row's numbers never depend on the other rows or on how many
        there are.
        """
        weight, scales = quantise_outputs(linear.weight)
        bias = "" if linear.bias is None else self.constant(linear.bias)
        packed = self.constant(pack_tiles(weight))
        return self.node("Linear", [x, packed, self.constant(scales), bias], domain=AS2D)

    def row_linear(self, x: str, linear: Linear) -> str:
        """int8 layer with one activation scale per row, of ONNX Runtime's own operators.

        ``x`` is float32 [1, rows, inputs]. More exact than ``dynamic_linears`` where some rows
        have outliers, and slower: the input is quantised in several steps.
        """
        quantised, scale = self._quantise_rows(x)
        weight, weight_scale, weight_zero = self._integer_weight(linear)
        y = self.node(
            "MatMulIntegerToFloat",
            [
                quantised,
                weight,
                self._once("one", _ONE),
                weight_scale,
                self._once("middle", _MIDDLE),
                *weight_zero,
            ],
            domain=MICROSOFT,
        )
        y = self.node("Mul", [y, scale])
        return y if linear.bias is None else self.node("Add", [y, self.constant(linear.bias)])

    def dynamic_linears(self, x: str, linears: Iterable[Linear]) -> list[str]:
        """int8 layers that share the input ``x``, quantised once with one scale for all of it.

        The fastest form for the many rows of an encoder. It is not row-invariant, which does not
        matter where the input is always whole.
        """
        quantised, scale, zero = (self._fresh(s) for s in ("quantised", "scale", "zero"))
        self.node("DynamicQuantizeLinear", [x], [quantised, scale, zero])
        results = []
        for linear in linears:
            weight, weight_scale, weight_zero = self._integer_weight(linear)
            names = [quantised, weight, scale, weight_scale, zero, *(weight_zero or [""])]
            if linear.bias is not None:
                names.append(self.constant(linear.bias))
            results.append(self.node("MatMulIntegerToFloat", names, domain=MICROSOFT))
        return results

    def save(self, path: Path) -> list[Path]:
        """Write ``path`` and its data file (same stem, ``.data``); returns what was written."""
        graph = helper.make_graph(
            self._nodes, self._name, self._inputs, self._outputs, self._constants
        )
        model = helper.make_model(
            graph,
            producer_name="as2d",
            opset_imports=self._operator_sets(),
            ir_version=IR_VERSION,
        )
        data = path.with_suffix(".data")
        data.unlink(missing_ok=True)
        onnx.save_model(
            model,
            path,
            save_as_external_data=True,
            all_tensors_to_one_file=True,
            location=data.name,
            size_threshold=_EXTERNAL_BYTES,
        )
        # onnx makes the data file readable by its owner only, unlike the graph beside it.
        data.chmod(path.stat().st_mode & 0o777)
        return [path, data]

    def _operator_sets(self) -> list[onnx.OperatorSetIdProto]:
        domains = sorted({node.domain for node in self._nodes} - {""})
        return [helper.make_opsetid("", OPSET), *(helper.make_opsetid(d, 1) for d in domains)]

    def _quantise_rows(self, x: str) -> tuple[str, str]:
        """Bytes around 128 and the scale [1, rows, 1] of each row of ``x`` [1, rows, width]."""
        peak = self.node("ReduceMax", [self.node("Abs", [x])], axes=[-1], keepdims=1)
        # A row of zeros gets scale 0: whatever bytes it becomes, they are multiplied by that 0.
        scale = self.node("Mul", [peak, self._once("step", _STEP)])
        rows = self.node("Reshape", [scale, self._once("flat", _FLAT)])
        # QuantizeLinear wants one zero point for each scale; the layers of a graph share it.
        if "zeros" not in self._shared:
            middle = self._once("middles", np.array([128], dtype=np.uint8))
            self._shared["zeros"] = self.node("Expand", [middle, self.node("Shape", [rows])])
        zeros = self._shared["zeros"]
        return self.node("QuantizeLinear", [x, rows, zeros], axis=1), scale

    def _integer_weight(self, linear: Linear) -> tuple[str, str, list[str]]:
        """Weights, their scales, and their zero point where they need one."""
        by_output, scale = quantise_outputs(linear.weight)
        weight = by_output.T
        if self._signed_weights:
            return self.constant(weight), self.constant(scale), []
        unsigned = (weight.astype(np.int16) + 128).astype(np.uint8)
        return self.constant(unsigned), self.constant(scale), [self._once("middle", _MIDDLE)]

    def _once(self, key: str, values: npt.NDArray[Any]) -> str:
        """A small constant that many nodes share."""
        if key not in self._shared:
            self._shared[key] = self.constant(values)
        return self._shared[key]

    def _fresh(self, stem: str) -> str:
        self._count += 1
        return f"{stem}_{self._count}"


def quantise_outputs(weight: Floats) -> tuple[npt.NDArray[np.int8], Floats]:
    """Symmetric int8 weights with one scale per output, from float32 [outputs, inputs].

    Returns:
        int8 [outputs, inputs] in -127..127, scales [outputs].
    """
    peaks = np.maximum(weight.max(axis=1), -weight.min(axis=1))
    scales = peaks.astype(np.float32) / np.float32(127.0)
    scales[scales == 0.0] = 1.0
    steps = weight / scales[:, None]
    # In place: the table of all tokens is large.
    np.rint(steps, out=steps)
    np.clip(steps, -127, 127, out=steps)
    return steps.astype(np.int8), scales


def pack_tiles(weight: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    """Weights in the order in which the native kernels read them.

    Args:
        weight: int8 [outputs, inputs]; inputs are a multiple of 4.

    Returns:
        int8 [ceil(outputs / 16), inputs / 4, 16, 4]: element [a, b, i, j] is weight
        [16 a + i, 4 b + j], and 0 beyond the last output.
    """
    outputs, inputs = weight.shape
    rows = -(-outputs // _TILE_OUTPUTS)
    whole = np.zeros((rows * _TILE_OUTPUTS, inputs), dtype=np.int8)
    whole[:outputs] = weight
    tiles = whole.reshape(rows, _TILE_OUTPUTS, inputs // _TILE_INPUTS, _TILE_INPUTS)
    return np.ascontiguousarray(tiles.transpose(0, 2, 1, 3))


INT8 = TensorProto.INT8
UINT8 = TensorProto.UINT8
FLOAT = TensorProto.FLOAT
INT32 = TensorProto.INT32
INT64 = TensorProto.INT64
