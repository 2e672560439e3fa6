"""What a graph itself says, found by loading it with ONNX Runtime."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from as2d_cli.catalog.graphs.whisper import any_choice, run_places
from as2d_cli.catalog.runtime import GraphError, open_session

Array = npt.NDArray[Any]

_ROWS = (1, 2, 3, 5, 8, 16)
_EVEN = tuple(rows for rows in _ROWS if rows % 2 == 0)
_PREFIX = 4
_SLOTS = 2
_THREADS = (1, 2)
_CONTEXT = 64  # of a graph that leaves it open: what the steps below take, and some more
_TILE = 16  # positions of audio


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

    A decoder as ``graphs.whisper`` or ``graphs.llama`` makes it is fed random audio keys and
    values, if it takes some, and one fixed run of tokens, cut into steps of 1, 2, 3, 5, 8 and 16
    rows, with one and with two threads; right neighbours and wrong ones, neighbours in another slot
    and in another run.

    Raises:
        GraphError: the graph does not load or is of another family.
    """
    found = {_same_rows(_Stepper(decoder, threads)) for threads in _THREADS}
    return next(word for word in ("none", "even", "any") if word in found)


def _same_rows(stepper: _Stepper) -> str:
    reference: dict[str, Array] = {}
    for start, step in stepper.alone(_EVEN[0]):
        for name, values in step.items():
            before = reference.get(name, values[:, :0])
            assert before.shape[1] == start - _PREFIX
            reference[name] = np.concatenate([before, values], axis=1)
    for word, counts in (("any", _ROWS), ("even", _EVEN)):
        if all(
            _identical(reference, start - _PREFIX, step)
            for rows in counts
            for steps in (stepper.alone, stepper.beside_wrong, stepper.beside_slot, stepper.in_run)
            for start, step in steps(rows)
        ):
            return word
    return "none"


# Where in the run of tokens a step's rows begin, and their outputs by name.
_Steps = Iterator[tuple[int, dict[str, Array]]]


class _Stepper:
    """Runs the same tokens through a decoder, in steps of a chosen number of rows.

    There are two slots with the same audio. Each method yields the rows that hold the right tokens.
    """

    def __init__(self, decoder: Path, threads: int) -> None:
        self._session = open_session(decoder, threads)
        inputs = {value.name: value for value in self._session.get_inputs()}
        if "past_k_0" not in inputs:
            raise GraphError(decoder, "is no decoder of as2d")
        hears = any(name.startswith("cross_") for name in inputs)
        open_sizes = _sizes_of_a_window(decoder) if hears else {"context": _CONTEXT}
        self._selects = "select" in inputs
        random = np.random.default_rng(0)
        size = inputs["suppress"].shape[0]
        self._tokens = random.integers(0, size, _PREFIX + max(_ROWS))
        self._wrong = np.flip(self._tokens)
        self._fixed: dict[str, Array] = {"suppress": np.zeros(size, dtype=np.float32)}
        self._caches: dict[str, Array] = {}
        for name, value in inputs.items():
            if name.startswith("cross_"):
                shape = [open_sizes.get(size, size) for size in value.shape[1:]]
                one = _audio(random, value.type, shape)
                self._fixed[name] = np.stack([one] * _SLOTS)
            elif name.startswith("past_"):
                shape = [_SLOTS, *(open_sizes.get(size, size) for size in value.shape[1:])]
                self._caches[name] = np.zeros(shape, dtype=np.float32)
        self._outputs = [value.name for value in self._session.get_outputs()]

    def alone(self, rows: int) -> _Steps:
        """``rows`` right tokens a step."""
        caches = self._begin(0)
        for start in range(_PREFIX, len(self._tokens), rows):
            right = self._right(start, rows)
            yield start, self._step(caches, (right, run_places(start, len(right))))

    def beside_wrong(self, rows: int) -> _Steps:
        """One right token a step, and wrong ones after it."""
        caches = self._begin(0)
        for start in range(_PREFIX, len(self._tokens)):
            tokens = np.concatenate([self._right(start, 1), self._wrong[: rows - 1]])
            step = self._step(caches, (tokens, run_places(start, rows)))
            yield start, {name: values[:, :1] for name, values in step.items()}

    def beside_slot(self, rows: int) -> _Steps:
        """The right tokens are in the second slot, as many wrong ones in the first."""
        caches = self._begin(1)
        half = rows // 2
        for start in range(_PREFIX, len(self._tokens), half) if half else ():
            right = self._right(start, half)
            wrong = self._wrong[: rows - len(right)]
            step = self._step(
                caches,
                (wrong, run_places(start, len(wrong))),
                (right, run_places(start, len(right), slot=1)),
            )
            yield start, {name: values[:, len(wrong) :] for name, values in step.items()}

    def in_run(self, rows: int) -> _Steps:
        """One right token, a run of wrong ones after it, and a run of right ones behind those."""
        caches = self._begin(0)
        half = rows // 2
        for start in range(_PREFIX, len(self._tokens), half) if rows > 2 else ():
            first, right = self._right(start, 1), self._right(start + 1, half - 1)
            wrong = self._wrong[: rows - 1 - len(right)]
            shared = start + 1
            begin = shared + len(wrong)
            step = self._step(
                caches,
                (first, run_places(start, 1)),
                (wrong, run_places(shared, len(wrong))),
                (right, run_places(begin, len(right), shared=shared, begin=begin)),
            )
            yield (
                start,
                {
                    name: np.delete(values, np.s_[1 : 1 + len(wrong)], axis=1)
                    for name, values in step.items()
                },
            )
            # What was accepted of the second run goes to where the first one is.
            right = np.concatenate([right, self._wrong[: rows - len(right)]])
            self._step(caches, (right, run_places(shared, rows)))

    def _begin(self, slot: int) -> dict[str, Array]:
        caches = dict(self._caches)
        self._step(caches, (self._tokens[:_PREFIX], run_places(0, _PREFIX, slot=slot)))
        return caches

    def _right(self, start: int, count: int) -> Array:
        return self._tokens[start : start + count]

    def _step(self, caches: dict[str, Array], *runs: tuple[Array, Array]) -> dict[str, Array]:
        tokens, places = (np.concatenate(parts) for parts in zip(*runs, strict=True))
        # Where a row stands in its text: as many are before it as it sees.
        positions = places[:, 2] + places[:, 1] - places[:, 3]
        feeds = {
            **self._fixed,
            **caches,
            "tokens": tokens[None],
            "positions": positions.astype(np.int64),
            "places": places,
            **any_choice(len(places)),
        }
        if self._selects:
            feeds["select"] = np.arange(len(tokens))
        results = dict(zip(self._outputs, self._session.run(None, feeds), strict=True))
        for name in caches:
            caches[name] = results.pop(name.replace("past_", "present_"))
        return results


def _sizes_of_a_window(decoder: Path) -> dict[str, int]:
    """The dimensions that a decoder leaves open, for a whole window."""
    graph = onnx.load_model(decoder, load_external_data=False).graph
    positions = {
        attribute.i
        for node in graph.node
        if node.op_type == "CrossAttention"
        for attribute in node.attribute
        if attribute.name == "positions"
    }
    if len(positions) != 1:
        raise GraphError(decoder, "does not tell how many positions of audio it looks at")
    tiles = -(-positions.pop() // _TILE)
    return {"tiles": tiles, "value_steps": 4 * tiles}


def _audio(random: np.random.Generator, element: str, shape: Sequence[int]) -> Array:
    """8-bit keys and values, or scales that make them about 1."""
    if element == "tensor(float)":
        return random.uniform(0.005, 0.02, shape).astype(np.float32)
    kind = {"tensor(uint8)": np.uint8, "tensor(int8)": np.int8}[element]
    return random.integers(np.iinfo(kind).min + 1, np.iinfo(kind).max, shape, dtype=kind)


def _identical(reference: dict[str, Array], start: int, step: dict[str, Array]) -> bool:
    return all(
        np.array_equal(reference[name][:, start : start + values.shape[1]], values)
        for name, values in step.items()
    )
