"""What a graph itself says, found by loading it with ONNX Runtime."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime

from as2d_cli.errors import As2dError, ExitStatus

Array = npt.NDArray[Any]

_ROWS = (2, 4, 8, 16)
_PREFIX = 4
_THREADS = (1, 2)


class GraphError(As2dError):
    """A graph that does not load or is not what it should be."""

    def __init__(self, path: Path, problem: str, remedy: str = "pull the model again") -> None:
        super().__init__(f"{path}: {problem}", remedy=remedy, status=ExitStatus.UNAVAILABLE)


@dataclass(frozen=True)
class MoonshineShapes:
    """Shapes that Moonshine's published graphs declare."""

    layers: int
    heads: int
    head_size: int
    width: int
    vocabulary_size: int


def open_session(path: Path, threads: int = 1) -> onnxruntime.InferenceSession:
    """Load a graph on the CPU.

    Raises:
        GraphError: the runtime refuses the file.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4  # Its warnings would land on the user's terminal.
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # The runtime has one exception class for each status code.
        raise GraphError(path, f"ONNX Runtime cannot load it ({error})") from None


def moonshine_shapes(encoder: Path, decoder: Path) -> MoonshineShapes:
    """Shapes of a Moonshine pair.

    Raises:
        GraphError: a graph does not load or is of another family.
    """
    inputs = {value.name: value.shape for value in open_session(decoder).get_inputs()}
    outputs = {value.name: value.shape for value in open_session(decoder).get_outputs()}
    try:
        heads, head_size = (inputs["past_key_values.0.decoder.key"][i] for i in (1, 3))
        width = inputs["encoder_hidden_states"][2]
        vocabulary_size = outputs["logits"][2]
    except (KeyError, IndexError):
        raise GraphError(decoder, "is not Moonshine's merged decoder") from None
    layers = sum(1 for n in inputs if n.endswith(".decoder.key"))
    return MoonshineShapes(layers, heads, head_size, width, vocabulary_size)


def measure_row_invariance(decoder: Path) -> str:
    """``even`` if steps of 2, 4, 8 and 16 rows give bit-identical numbers here, else ``none``.

    A decoder as ``graphs.whisper.write_decoder`` makes it is fed random audio keys and values and
    one fixed run of tokens, cut into steps of each size, with one and with two threads; right
    neighbours and wrong ones.

    Raises:
        GraphError: the graph does not load or is of another family.
    """
    for threads in _THREADS:
        stepper = _Stepper(decoder, threads)
        reference = stepper.run(_ROWS[0])
        others = [stepper.run(rows) for rows in _ROWS[1:]]
        others.append(stepper.run(_ROWS[-1], repeat=True))
        if not all(_identical(reference, other) for other in others):
            return "none"
    return "even"


class _Stepper:
    """Runs the same tokens through a Whisper decoder in steps of a chosen size."""

    def __init__(self, decoder: Path, threads: int) -> None:
        self._session = open_session(decoder, threads)
        inputs = {value.name: value.shape for value in self._session.get_inputs()}
        if "past_k_0" not in inputs:
            raise GraphError(decoder, "is no Whisper decoder of as2d")
        random = np.random.default_rng(0)
        size = inputs["suppress"][0]
        self._tokens = random.integers(0, size, _PREFIX + max(_ROWS))
        self._fixed: dict[str, Array] = {"suppress": np.zeros(size, dtype=np.float32)}
        self._caches: dict[str, Array] = {}
        for name, shape in inputs.items():
            if name.startswith("cross_"):
                self._fixed[name] = random.standard_normal(shape, dtype=np.float32)
            elif name.startswith("past_"):
                self._caches[name] = np.zeros(shape, dtype=np.float32)
        self._outputs = [value.name for value in self._session.get_outputs()]

    def run(self, rows: int, *, repeat: bool = False) -> dict[str, Array]:
        """Outputs by name for all tokens, in steps of ``rows``.

        Args:
            rows: rows of each step.
            repeat: take one token a step and fill the other rows with wrong tokens.
        """
        caches = dict(self._caches)
        self._step(caches, self._tokens[:_PREFIX], 0)
        collected: list[dict[str, Array]] = []
        stride = 1 if repeat else rows
        for start in range(_PREFIX, len(self._tokens), stride):
            tokens = self._tokens[start : start + stride]
            wrong = np.flip(self._tokens)[: rows - stride]
            step = self._step(caches, np.concatenate([tokens, wrong]), start)
            collected.append({name: value[:, :stride] for name, value in step.items()})
        return {
            name: np.concatenate([step[name] for step in collected], axis=1)
            for name in collected[0]
        }

    def _step(self, caches: dict[str, Array], tokens: Array, past: int) -> dict[str, Array]:
        total = past + len(tokens)
        feeds = {
            **self._fixed,
            **caches,
            "tokens": tokens[None],
            "positions": np.arange(past, total),
            "seqlens_k": np.array([total - 1], dtype=np.int32),
            "total_sequence_length": np.array(total, dtype=np.int32),
        }
        results = dict(zip(self._outputs, self._session.run(None, feeds), strict=True))
        for name in caches:
            caches[name] = results.pop(name.replace("past_", "present_"))
        return results


def _identical(one: dict[str, Array], other: dict[str, Array]) -> bool:
    return all(np.array_equal(values, other[name]) for name, values in one.items())
