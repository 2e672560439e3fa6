"""Where the ONNX Runtime library is."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

from as2d_cli.errors import As2dError, ExitStatus

__all__ = ["ort_library"]

_PATTERNS = ("libonnxruntime.so*", "libonnxruntime*.dylib")


def ort_library() -> Path:
    """The library that the installed `onnxruntime` package carries; the package is not imported.

    ``AS2D_ORT_LIBRARY`` names another one.

    Raises:
        As2dError: status UNAVAILABLE; there is none.
    """
    if named := os.environ.get("AS2D_ORT_LIBRARY"):
        return Path(named)
    spec = importlib.util.find_spec("onnxruntime")
    if spec is not None and spec.origin is not None:
        folder = Path(spec.origin).parent / "capi"
        for pattern in _PATTERNS:
            # The longest name is the versioned file itself, the others are links to it.
            for found in sorted(folder.glob(pattern), key=lambda p: -len(p.name)):
                return found
    raise As2dError(
        "the ONNX Runtime library is not installed",
        remedy="run 'pip install onnxruntime', or set AS2D_ORT_LIBRARY to its path",
        status=ExitStatus.UNAVAILABLE,
    )
