"""What a graph itself says, found by loading it with ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from as2d_cli.catalog.runtime import GraphError, open_session

Array = npt.NDArray[Any]

_ROWS = (1, 2, 3, 5, 8, 16)
_EVEN = tuple(rows for rows in _ROWS if rows % 2 == 0)
_PREFIX = 4
_THREADS = (1, 2)


@dataclass(frozen=True)
class MoonshineShapes:
    """Shapes that Moonshine's published graphs declare."""

    layers: int
    heads: int
    head_size: int
    width: int
    vocabulary_size: int


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
    """Numbers of rows with which steps give bit-identical numbers: ``any``, ``even`` or ``none``.

    A decoder as ``graphs.whisper.write_decoder`` makes it is fed random audio keys and values and
    one fixed run of tokens, cut into steps of 1, 2, 3, 5, 8 and 16 rows, with one and with two
    threads; right neighbours and wrong ones.

    Raises:
        GraphError: the graph does not load or is of another family.
    """
    found = {_same_rows(_Stepper(decoder, threads)) for threads in _THREADS}
    return next(word for word in ("none", "even", "any") if word in found)


def _same_rows(stepper: _Stepper) -> str:
    runs = {rows: [stepper.run(rows), stepper.run(rows, wrong=True)] for rows in _ROWS}
    reference, _ = runs[_EVEN[0]]
    for word, counts in (("any", _ROWS), ("even", _EVEN)):
        if all(_identical(reference, run) for rows in counts for run in runs[rows]):
            return word
    return "none"


class _Stepper:
    """Runs the same tokens through a Whisper decoder in steps of a chosen size."""

    def __init__(self, decoder: Path, threads: int) -> None:
        self._session = open_session(decoder, threads)
        inputs = {value.name: value for value in self._session.get_inputs()}
        if "past_k_0" not in inputs:
            raise GraphError(decoder, "is no Whisper decoder of as2d")
        random = np.random.default_rng(0)
        size = inputs["suppress"].shape[0]
        self._tokens = random.integers(0, size, _PREFIX + max(_ROWS))
        self._fixed: dict[str, Array] = {"suppress": np.zeros(size, dtype=np.float32)}
        self._caches: dict[str, Array] = {}
        for name, value in inputs.items():
            if name.startswith("cross_"):
                self._fixed[name] = _audio(random, value.type, value.shape)
            elif name.startswith("past_"):
                self._caches[name] = np.zeros(value.shape, dtype=np.float32)
        self._outputs = [value.name for value in self._session.get_outputs()]

    def run(self, rows: int, *, wrong: bool = False) -> dict[str, Array]:
        """Outputs by name for all tokens, in steps of ``rows``.

        Args:
            rows: rows of each step.
            wrong: take one token a step and fill the other rows with wrong tokens.
        """
        caches = dict(self._caches)
        self._step(caches, self._tokens[:_PREFIX], 0)
        collected: list[dict[str, Array]] = []
        stride = 1 if wrong else rows
        for start in range(_PREFIX, len(self._tokens), stride):
            tokens = self._tokens[start : start + stride]
            others = np.flip(self._tokens)[: rows - stride]
            step = self._step(caches, np.concatenate([tokens, others]), start)
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
            "total_sequence_length": np.array(total, dtype=np.int32),
        }
        results = dict(zip(self._outputs, self._session.run(None, feeds), strict=True))
        for name in caches:
            caches[name] = results.pop(name.replace("past_", "present_"))
        return results


def _audio(random: np.random.Generator, element: str, shape: Sequence[int]) -> Array:
    """8-bit keys and values, or scales that make them about 1."""
    if element == "tensor(float)":
        return random.uniform(0.005, 0.02, shape).astype(np.float32)
    kind = {"tensor(uint8)": np.uint8, "tensor(int8)": np.int8}[element]
    return random.integers(np.iinfo(kind).min + 1, np.iinfo(kind).max, shape, dtype=kind)


def _identical(one: dict[str, Array], other: dict[str, Array]) -> bool:
    return all(np.array_equal(values, other[name]) for name, values in one.items())
