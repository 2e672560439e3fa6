"""The published voice-activity graph, run by ONNX Runtime's own package."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from as2d_cli.errors import As2dError, ExitStatus

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["VoiceModel"]

_FRAME = 512
_CONTEXT = 64  # samples of the frame before, in front of each frame
_STATE = (1, 1, 128)


class VoiceModel:
    """Silero's voice-activity detector for many frames at a time (16 kHz, opset 16).

    It is an LSTM over frames of 32 ms, so what it says of one depends on those before.
    """

    def __init__(self, graph: Path) -> None:
        """Loads `graph`.

        Raises:
            As2dError: status UNAVAILABLE; it is not that graph.
        """
        # The package reports to its maker unless it is told not to before it is imported.
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 4  # Its warnings would land on the user's terminal.
        try:
            self._session = onnxruntime.InferenceSession(
                str(graph), options, providers=["CPUExecutionProvider"]
            )
            names = {node.name for node in self._session.get_inputs()}
        except Exception as error:  # The runtime has one exception class for each status code.
            raise _broken(graph, f"ONNX Runtime cannot load it ({error})") from None
        if names != {"input", "h", "c"}:
            raise _broken(graph, f"has the inputs {' '.join(sorted(names))}, not input h c")

    def start(self) -> Stream:
        """A stream from its beginning."""
        return Stream(self._session)


class Stream:
    """What was heard of one stream so far."""

    def __init__(self, session: Any) -> None:
        import numpy as np

        self._session = session
        self._before = np.zeros(_CONTEXT, np.float32)
        self._state = [np.zeros(_STATE, np.float32)] * 2

    def __call__(self, samples: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """The next whole frames, float32[n * 512] -> float32[n]: how likely each is spoken."""
        import numpy as np

        count = len(samples) // _FRAME
        joined = np.concatenate([self._before, samples])
        self._before = joined[-_CONTEXT:]
        frames = np.lib.stride_tricks.sliding_window_view(joined, _CONTEXT + _FRAME)[::_FRAME]
        feed = {"input": np.ascontiguousarray(frames), "h": self._state[0], "c": self._state[1]}
        likely, *self._state = self._session.run(["speech_probs", "hn", "cn"], feed)
        result: npt.NDArray[np.float32] = np.asarray(likely, np.float32).reshape(count)
        return result


def _broken(graph: Path, problem: str) -> As2dError:
    return As2dError(
        f"{graph}: {problem}", remedy="pull the model again", status=ExitStatus.UNAVAILABLE
    )
