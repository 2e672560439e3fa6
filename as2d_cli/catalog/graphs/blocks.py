"""The pieces ONNX graphs are put together from: constants, nodes, quantised linear layers.

Operators of the domain ``as2d`` are the native engine's own (native/include/as2d/kernels).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

Floats = npt.NDArray[np.float32]

AS2D = "as2d"
OPSET = 17
IR_VERSION = 9
CHOICE_COLUMNS = 6
# Tensors from this size on go to the data file beside the graph, which ONNX Runtime maps.
_EXTERNAL_BYTES = 1024
_EXTERNAL_ALIGNMENT = 4096  # A page: what is mapped begins with one.
# The native kernels take weights in tiles of so many outputs and inputs.
_TILE_OUTPUTS = 16
_TILE_INPUTS = 4


@dataclass(frozen=True)
class Linear:
    """A linear layer y = x W^T + b: ``weight`` float32 [outputs, inputs], ``bias`` [outputs]."""

    weight: Floats
    bias: Floats | None = None


@dataclass(frozen=True)
class Norm:
    """A layer norm over the last axis, epsilon 1e-5: ``gamma``, ``beta`` float32 [width]."""

    gamma: Floats
    beta: Floats


class GraphBuilder:
    """Collects nodes, constants, inputs and outputs of one graph; values are known by name."""

    def __init__(self, name: str, path: Path | None = None) -> None:
        """Start an empty graph of this name.

        Args:
            path: what the graph is to be saved as. Large constants go to the file beside it as they
                come, for models of which memory would not hold several copies.
        """
        self._data = None if path is None else path.with_suffix(".data")
        if self._data is not None:
            self._data.unlink(missing_ok=True)
        self._name = name
        self._norms: dict[int, list[str]] = {}
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
        values = np.ascontiguousarray(values)
        if self._data is None or values.nbytes < _EXTERNAL_BYTES:
            self._constants.append(numpy_helper.from_array(values, name))
        else:
            self._constants.append(_external(values, name, self._data))
        return name

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

    def linear(
        self,
        x: str,
        linear: Linear,
        *,
        norm: Norm | None = None,
        gelu: bool = False,
        residual: str = "",
        taps: int = 1,
        stride: int = 1,
    ) -> str:
        """int8 layer as the native engine computes it, with what goes before and after it.

        ``x`` is float32 [1, rows, inputs]. A row is quantised by its own peak alone and products
        are summed in integers, so a row's numbers never depend on the other rows or on how many
        there are.

        Args:
            norm: layer norm of ``x`` before the layer.
            gelu: exact (erf) GELU after it.
            residual: a value that is added to the result.
            taps: neighbouring rows that the layer sees at once, zero beyond the ends: a
                convolution along the rows, its weight [outputs, taps * width].
            stride: take only every so many rows.
        """
        weight, scales = quantise_outputs(linear.weight)
        inputs = [x, self.constant(pack_tiles(weight)), self.constant(scales)]
        inputs.append("" if linear.bias is None else self.constant(linear.bias))
        inputs += ["", ""] if norm is None else self._norm(norm)
        inputs.append(residual)
        return self.node("Linear", inputs, domain=AS2D, taps=taps, stride=stride, gelu=int(gelu))

    def feed_forward(
        self, x: str, norm: Norm, widen: Linear, narrow: Linear, name: str | None = None
    ) -> str:
        """``x`` plus, of its layer norm, two layers as ``linear`` has them with GELU between.

        Args:
            name: of the result; None for a fresh one.
        """
        inputs = [x, *self._norm(norm)]
        for linear in (widen, narrow):
            weight, scales = quantise_outputs(linear.weight)
            assert linear.bias is not None
            inputs += [self.constant(v) for v in (pack_tiles(weight), scales, linear.bias)]
        return self.node("FeedForward", inputs, None if name is None else [name], domain=AS2D)

    def choose(self, logits: str, suppress: str, rows: str) -> None:
        """The end of a decoder: outputs ``next`` and ``log_prob`` of ``logits``, and the inputs
        ``choices`` and ``temperatures`` that say what a row may be, for ``rows`` rows.
        """
        self.input("choices", INT32, [rows, CHOICE_COLUMNS])
        self.input("temperatures", FLOAT, [rows])
        inputs = [logits, suppress, "choices", "temperatures"]
        self.node("Choose", inputs, ["next", "log_prob"], domain=AS2D)
        self.output("next", INT64, [1, rows])
        self.output("log_prob", FLOAT, [1, rows])

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
        if self._data is not None:
            onnx.save_model(model, path)
            return [path, data]
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

    def _norm(self, norm: Norm) -> list[str]:
        """Its two tables; layers after one norm share them."""
        if id(norm) not in self._norms:
            self._norms[id(norm)] = [self.constant(norm.gamma), self.constant(norm.beta)]
        return self._norms[id(norm)]

    def _fresh(self, stem: str) -> str:
        self._count += 1
        return f"{stem}_{self._count}"


def _external(values: npt.NDArray[Any], name: str, data: Path) -> onnx.TensorProto:
    """Append ``values`` to the file; returns the constant that stands for them."""
    constant = onnx.TensorProto(
        name=name,
        data_type=helper.np_dtype_to_tensor_dtype(values.dtype),
        dims=values.shape,
        data_location=TensorProto.EXTERNAL,
    )
    with data.open("ab") as file:
        file.write(b"\0" * (-file.tell() % _EXTERNAL_ALIGNMENT))
        facts = {"location": data.name, "offset": file.tell(), "length": values.nbytes}
        file.write(values.data)
    for key, value in facts.items():
        constant.external_data.add(key=key, value=str(value))
    return constant


def quantise_outputs(weight: Floats, most: int = 127) -> tuple[npt.NDArray[np.int8], Floats]:
    """Symmetric int8 weights with one scale per output, from float32 [outputs, inputs].

    Returns:
        int8 [outputs, inputs] in -most..most, scales [outputs].
    """
    peaks = np.maximum(weight.max(axis=1), -weight.min(axis=1))
    scales = peaks.astype(np.float32) / np.float32(most)
    scales[scales == 0.0] = 1.0
    steps = weight / scales[:, None]
    # In place: the table of all tokens is large.
    np.rint(steps, out=steps)
    np.clip(steps, -most, most, out=steps)
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
