"""ONNX Runtime's Python package with the native engine's operators in it."""

from __future__ import annotations

import os
from pathlib import Path

from as2d_cli import _native
from as2d_cli.errors import As2dError, ExitStatus

# Its package reports to its maker unless it is told not to before it is imported.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

import onnxruntime


class GraphError(As2dError):
    """A graph that does not load or is not what it should be."""

    def __init__(self, path: Path, problem: str, remedy: str = "pull the model again") -> None:
        super().__init__(f"{path}: {problem}", remedy=remedy, status=ExitStatus.UNAVAILABLE)


def open_session(path: Path, threads: int = 1) -> onnxruntime.InferenceSession:
    """Load a graph, which may use the operators of the domain ``as2d``, on the CPU.

    Raises:
        GraphError: the runtime refuses the file.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4  # Its warnings would land on the user's terminal.
    options.register_custom_ops_library(_native.__file__)
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # The runtime has one exception class for each status code.
        raise GraphError(path, f"ONNX Runtime cannot load it ({error})") from None
