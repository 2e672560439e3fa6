"""Writes the small graphs that the runtime tests load: make_models.py (into its own folder).

The graphs are checked in; this script says what they are and makes them again. Needs `onnx`.
"""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 18
IR_VERSION = 9


def types_graph() -> onnx.GraphProto:
    """Every element type in and out: y = 2 x with columns reversed, and simple maps of the rest."""
    weights = 2 * np.eye(4, dtype=np.float32)[::-1].copy()
    return helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "weights"], ["y"]),
            helper.make_node("Add", ["ids", "one"], ["next"]),
            helper.make_node("Add", ["counts", "counts"], ["doubled"]),
            helper.make_node("Not", ["flags"], ["unset"]),
            helper.make_node("BitwiseNot", ["bytes"], ["inverted"]),
        ],
        "types",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 4]),
            helper.make_tensor_value_info("ids", TensorProto.INT64, ["rows"]),
            helper.make_tensor_value_info("counts", TensorProto.INT32, ["rows"]),
            helper.make_tensor_value_info("flags", TensorProto.BOOL, ["rows"]),
            helper.make_tensor_value_info("bytes", TensorProto.UINT8, ["rows"]),
        ],
        [
            helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", 4]),
            helper.make_tensor_value_info("next", TensorProto.INT64, ["rows"]),
            helper.make_tensor_value_info("doubled", TensorProto.INT32, ["rows"]),
            helper.make_tensor_value_info("unset", TensorProto.BOOL, ["rows"]),
            helper.make_tensor_value_info("inverted", TensorProto.UINT8, ["rows"]),
        ],
        [
            numpy_helper.from_array(weights, "weights"),
            numpy_helper.from_array(np.array([1], np.int64), "one"),
        ],
    )


def loop_graph() -> onnx.GraphProto:
    """result = state multiplied by step, `trips` times over: a run as long as the caller likes."""
    body = helper.make_graph(
        [
            helper.make_node("MatMul", ["before", "step"], ["after"]),
            helper.make_node("Identity", ["go"], ["go_on"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("trip", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("before", TensorProto.FLOAT, ["n", "n"]),
        ],
        [
            helper.make_tensor_value_info("go_on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("after", TensorProto.FLOAT, ["n", "n"]),
        ],
    )
    return helper.make_graph(
        [helper.make_node("Loop", ["trips", "", "state"], ["result"], body=body)],
        "loop",
        [
            helper.make_tensor_value_info("trips", TensorProto.INT64, []),
            helper.make_tensor_value_info("state", TensorProto.FLOAT, ["n", "n"]),
            helper.make_tensor_value_info("step", TensorProto.FLOAT, ["n", "n"]),
        ],
        [helper.make_tensor_value_info("result", TensorProto.FLOAT, ["n", "n"])],
    )


def half_graph() -> onnx.GraphProto:
    """An output of a type that the engine does not move: float16, of `x`'s own shape."""
    return helper.make_graph(
        [helper.make_node("Cast", ["x"], ["half"], to=TensorProto.FLOAT16)],
        "half",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows"])],
        [helper.make_tensor_value_info("half", TensorProto.FLOAT16, ["rows"])],
    )


def main() -> None:
    folder = Path(__file__).parent
    for graph in (types_graph(), loop_graph(), half_graph()):
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
        model.ir_version = IR_VERSION
        onnx.checker.check_model(model, full_check=True)
        onnx.save(model, folder / f"{graph.name}.onnx")


if __name__ == "__main__":
    main()
