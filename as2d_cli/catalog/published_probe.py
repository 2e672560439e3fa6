"""What the graphs of an audio language model say when ONNX Runtime loads and runs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from as2d_cli.catalog.runtime import GraphError, open_session

Array = npt.NDArray[Any]

_REMEDY = "choose another model"
_PREFIX = 4
_ROWS = (1, 2, 3, 5, 8, 16)
_EVEN = tuple(rows for rows in _ROWS if rows % 2 == 0)
_THREADS = (1, 2)
_FLOAT = "tensor(float)"
_MOST_HEADS, _MOST_WIDTH, _MOST_TOKENS = 1 << 12, 1 << 20, 1 << 24
"""Beyond any model, and what the engine takes."""


@dataclass(frozen=True)
class DecoderShapes:
    """Shapes that a merged decoder declares; `heads` are those that are cached."""

    layers: int
    heads: int
    head_size: int
    width: int
    vocabulary_size: int


def decoder_shapes(decoder: Path) -> DecoderShapes:
    """Shapes of a merged decoder.

    Raises:
        GraphError: it does not load or is of another family.
    """
    session = open_session(decoder)
    inputs = {value.name: value for value in session.get_inputs()}
    outputs = {value.name: value for value in session.get_outputs()}
    try:
        cache, embedded = inputs["past_key_values.0.key"], inputs["inputs_embeds"]
        sizes = (cache.shape[1], cache.shape[3], embedded.shape[2], outputs["logits"].shape[2])
        inputs["attention_mask"]
    except (KeyError, IndexError):
        raise GraphError(decoder, "is no decoder of an audio language model", _REMEDY) from None
    if not all(isinstance(size, int) for size in sizes):
        raise GraphError(decoder, "does not tell its heads, width and vocabulary", _REMEDY)
    most = (_MOST_HEADS, _MOST_WIDTH, _MOST_WIDTH, _MOST_TOKENS)
    if not all(0 < size <= limit for size, limit in zip(sizes, most, strict=True)):
        raise GraphError(decoder, "has heads, width or vocabulary that cannot be", _REMEDY)
    if {cache.type, embedded.type, outputs["logits"].type} != {_FLOAT}:
        raise GraphError(decoder, "takes or gives other numbers than single precision", _REMEDY)
    layers = sum(1 for name in inputs if name.startswith("past_key_values.")) // 2
    caches = [f"{i}.{kind}" for i in range(layers) for kind in ("key", "value")]
    if layers == 0 or not all(
        f"past_key_values.{cache}" in inputs and f"present.{cache}" in outputs for cache in caches
    ):
        raise GraphError(decoder, "does not give back all that it caches", _REMEDY)
    return DecoderShapes(layers, *sizes)


def encoder_lines(encoder: Path, bins: int, frames: Sequence[int], width: int) -> list[int]:
    """How many lines an audio encoder gives for each number of frames of silence.

    Raises:
        GraphError: it does not run, or its lines have not the decoder's width.
    """
    session = open_session(encoder)
    inputs = session.get_inputs()
    if len(inputs) != 1 or inputs[0].type != _FLOAT:
        raise GraphError(encoder, "does not take features and nothing else", _REMEDY)
    found = []
    for count in frames:
        silence = np.full((1, bins, count), -1.5, np.float32)
        try:
            lines = session.run(None, {inputs[0].name: silence})[0]
        except Exception as error:  # The runtime has one exception class for each status code.
            problem = f"does not run on {count} frames of {bins} bins ({error})"
            raise GraphError(encoder, problem, _REMEDY) from None
        if not isinstance(lines, np.ndarray) or lines.dtype != np.float32:
            raise GraphError(encoder, "gives other than lines of single precision", _REMEDY)
        if lines.shape[-1:] != (width,):
            raise GraphError(encoder, f"gives lines that are not {width} wide", _REMEDY)
        found.append(lines.size // width)
    return found


def measure_decoder_rows(decoder: Path) -> str:
    """Numbers of rows with which steps give bit-identical logits: ``any``, ``even`` or ``none``.

    One fixed run of random lines is cut into steps of 1, 2, 3, 5, 8 and 16 rows, with one thread
    and with two; with right rows after the first, and with wrong ones.

    Raises:
        GraphError: the graph does not load or run, or is of another family.
    """
    shapes = decoder_shapes(decoder)
    found = {_same_rows(_Stepper(decoder, shapes, threads)) for threads in _THREADS}
    return next(word for word in ("none", "even", "any") if word in found)


def _same_rows(stepper: _Stepper) -> str:
    reference = stepper.alone(_EVEN[0])
    for word, counts in (("any", _ROWS), ("even", _EVEN)):
        if all(
            np.array_equal(reference, steps(rows))
            for rows in counts
            for steps in (stepper.alone, stepper.beside_wrong)
        ):
            return word
    return "none"


class _Stepper:
    """Runs the same lines through a decoder, in steps of a chosen number of rows. Each method gives
    the logits of the right rows, after a prefix.
    """

    def __init__(self, decoder: Path, shapes: DecoderShapes, threads: int) -> None:
        self._path = decoder
        self._session = open_session(decoder, threads)
        self._names = {value.name for value in self._session.get_inputs()}
        self._outputs = [value.name for value in self._session.get_outputs()]
        random = np.random.default_rng(0)
        size = (1, _PREFIX + max(_ROWS), shapes.width)
        self._lines = random.normal(0, 0.05, size).astype(np.float32)
        self._wrong = np.flip(self._lines, axis=1)
        empty = np.zeros((1, shapes.heads, 0, shapes.head_size), np.float32)
        pasts = (f"past_key_values.{i}.{p}" for i in range(shapes.layers) for p in ("key", "value"))
        self._empty = dict.fromkeys(pasts, empty)

    def alone(self, rows: int) -> Array:
        """`rows` right lines a step."""
        past, found = self._prefix()
        for start in range(_PREFIX, self._lines.shape[1], rows):
            logits, past = self._step(self._lines[:, start : start + rows], past)
            found.append(logits[0])
        return np.concatenate(found)

    def beside_wrong(self, rows: int) -> Array:
        """One right line a step, and wrong ones after it, which are forgotten."""
        past, found = self._prefix()
        for start in range(_PREFIX, self._lines.shape[1]):
            right, wrong = self._lines[:, start : start + 1], self._wrong[:, : rows - 1]
            logits, longer = self._step(np.concatenate([right, wrong], axis=1), past)
            past = {name: values[:, :, : start + 1] for name, values in longer.items()}
            found.append(logits[0, :1])
        return np.concatenate(found)

    def _prefix(self) -> tuple[Mapping[str, Array], list[Array]]:
        _, past = self._step(self._lines[:, :_PREFIX], self._empty)
        return past, []

    def _step(self, lines: Array, past: Mapping[str, Array]) -> tuple[Array, dict[str, Array]]:
        before = next(iter(past.values())).shape[2]
        after = before + lines.shape[1]
        feeds = {
            "inputs_embeds": lines,
            "attention_mask": np.ones((1, after), np.int64),
            "position_ids": np.arange(before, after)[None],
            "num_logits_to_keep": np.array(lines.shape[1]),
            **{name: np.ascontiguousarray(values) for name, values in past.items()},
        }
        feeds = {name: values for name, values in feeds.items() if name in self._names}
        try:
            values = self._session.run(None, feeds)
        except Exception as error:  # The runtime has one exception class for each status code.
            raise GraphError(self._path, f"does not run ({error})", _REMEDY) from None
        results = dict(zip(self._outputs, values, strict=True))
        logits = results["logits"]
        return logits, {name: results[name.replace("past_key_values", "present")] for name in past}
