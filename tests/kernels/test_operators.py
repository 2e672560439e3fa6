"""The native operators through ONNX Runtime, against plain numpy."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from as2d_cli.catalog.graphs.blocks import pack_tiles, quantise_outputs
from as2d_cli.catalog.graphs.whisper import run_places
from tests.kernels.operators import (
    Array,
    Operator,
    attend,
    by_head,
    unpack_key,
    unpack_value,
)

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

import onnxruntime

ROWS = range(1, 34)
MOST = max(ROWS)
# (heads, size of a head, audio positions)
AUDIO = [(1, 16, 37), (2, 16, 1500), (6, 64, 37), (2, 64, 1500), (1, 64, 16), (2, 32, 1)]
CAPACITY = 48


def normal(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def assert_rows_stand_alone(
    operator: Callable[..., list[Array]], argument: str, x: Array, **others: Array
) -> None:
    """Row r has the same bits alone, and first or last of any batch, with other rows around it."""
    whole = operator(**{argument: x}, **others)
    for rows in ROWS:
        start = (7 * rows) % (MOST - rows + 1)
        parts = operator(**{argument: x[:, start : start + rows]}, **others)
        for part, full in zip(parts, whole, strict=True):
            np.testing.assert_array_equal(part, full[:, start : start + rows])
    strangers = x.copy()
    strangers[:, 1:] = 100 * np.flip(x[:, 1:])
    for found, full in zip(operator(**{argument: strangers}, **others), whole, strict=True):
        np.testing.assert_array_equal(found[:, 0], full[:, 0])


# Linear


def linear(
    folder: Path,
    weight: Array,
    bias: Array | None,
    threads: int = 1,
    more: dict[str, Array] | None = None,
    **attributes: int,
) -> Operator:
    quantised, scale = quantise_outputs(weight)
    constants: dict[str, Array] = {"weight": pack_tiles(quantised), "scale": scale}
    optional = {"bias": bias, "gamma": None, "beta": None, "residual": None, **(more or {})}
    constants |= {name: values for name, values in optional.items() if values is not None}
    without = [name for name, values in optional.items() if values is None]
    return Operator(folder, "Linear", constants, without=without, threads=threads, **attributes)


SIZES = [(1, 4), (16, 32), (37, 20), (51, 64), (100, 516), (33, 2048)]


@pytest.mark.parametrize("rows", [1, 2, 3, 8, 33])
@pytest.mark.parametrize(("outputs", "inputs"), SIZES)
@pytest.mark.parametrize("biased", [True, False])
def test_linear_is_near(tmp_path: Path, outputs: int, inputs: int, rows: int, biased: bool) -> None:
    weight, x = normal(1, outputs, inputs), normal(2, 1, rows, inputs)
    bias = normal(3, outputs) if biased else None
    (found,) = linear(tmp_path, weight, bias)(x=x)
    quantised, scale = quantise_outputs(weight)
    near = quantised * scale[:, None].astype(np.float64)
    expected = x[0] @ near.T + (0 if bias is None else bias)
    # Half a step of every input times the weight it meets is the most there can be between them.
    half_steps = np.abs(x[0]).max(-1) / 254
    most = half_steps[:, None] * np.abs(near).sum(-1)[None] * 1.001 + 1e-5
    assert found.shape == (1, rows, outputs)
    assert (np.abs(found[0] - expected) <= most).all()


@pytest.mark.parametrize(("outputs", "inputs"), SIZES)
def test_linear_is_exact_on_the_grid(tmp_path: Path, outputs: int, inputs: int) -> None:
    random = np.random.default_rng(4)
    weight = random.integers(-127, 128, (outputs, inputs)).astype(np.float32)
    steps = random.integers(-127, 128, (9, inputs)).astype(np.float32)
    weight[:, 0] = 127
    steps[:, -1] = np.where(np.arange(9) % 2, 127, -127)
    x = steps * np.exp2(np.arange(-4, 5, dtype=np.float32))[:, None]
    (found,) = linear(tmp_path, weight, None)(x=x[None])
    np.testing.assert_allclose(found[0], x.astype(np.float64) @ weight.T, rtol=1e-6)


@pytest.mark.parametrize("sign", [1, -1])
def test_linear_does_not_saturate(tmp_path: Path, sign: int) -> None:
    weight, x = np.full((17, 4096), 3.0, np.float32), np.full((1, 3, 4096), sign * 5.0, np.float32)
    (found,) = linear(tmp_path, weight, None)(x=x)
    np.testing.assert_allclose(found, sign * 15.0 * 4096, rtol=1e-6)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("outputs", "inputs"), SIZES)
def test_linear_rows_stand_alone(tmp_path: Path, outputs: int, inputs: int, threads: int) -> None:
    operator = linear(tmp_path, normal(1, outputs, inputs), normal(2, outputs), threads)
    assert_rows_stand_alone(operator, "x", normal(3, 1, MOST, inputs))


def test_linear_of_zeros(tmp_path: Path) -> None:
    weight, bias = normal(1, 21, 8), normal(2, 21)
    weight[5] = 0
    x = normal(3, 1, 4, 8)
    x[0, 2] = 0
    (found,) = linear(tmp_path, weight, bias)(x=x)
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found[0, 2], bias)
    np.testing.assert_array_equal(found[0, :, 5], np.repeat(bias[5], 4))


def gelu(x: Array) -> Array:
    return np.asarray(x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2))))


def normed(x: Array, gamma: Array, beta: Array) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    return np.asarray(centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * gamma + beta)


@pytest.mark.parametrize("rows", [3, 200])
@pytest.mark.parametrize("threads", [1, 2])
def test_linear_with_norm_gelu_and_residual(tmp_path: Path, rows: int, threads: int) -> None:
    weight, bias = 0.1 * normal(1, 50, 64), normal(2, 50)
    x, residual = 3 * normal(3, 1, rows, 64) + 5, normal(4, 1, rows, 50)
    norm = {"gamma": normal(5, 64), "beta": normal(6, 64)}
    more = {**norm, "residual": residual}
    (found,) = linear(tmp_path, weight, bias, threads, more, gelu=1)(x=x)
    expected = gelu(normed(x[0].astype(np.float64), **norm) @ weight.T + bias) + residual[0]
    np.testing.assert_allclose(found[0], expected, atol=0.1)
    assert np.abs(found[0] - expected).mean() < 0.01


@pytest.mark.parametrize("rows", [1, 2, 30, 201, 202])
@pytest.mark.parametrize("stride", [1, 2])
def test_linear_over_taps_is_a_convolution(tmp_path: Path, rows: int, stride: int) -> None:
    weight, bias, x = normal(1, 37, 3, 8), normal(2, 37), normal(3, 1, rows, 8)
    operator = linear(tmp_path, weight.reshape(37, -1), bias, 2, taps=3, stride=stride)
    (found,) = operator(x=x)
    padded = np.pad(x[0], [(1, 1), (0, 0)])
    beside = np.concatenate([padded[tap : tap + rows] for tap in range(3)], axis=-1)[::stride]
    (expected,) = linear(tmp_path, weight.reshape(37, -1), bias)(x=beside[None])
    np.testing.assert_array_equal(found, expected)


# FeedForward


@pytest.mark.parametrize("rows", [1, 5, 300])
@pytest.mark.parametrize("threads", [1, 2])
def test_feed_forward_is_its_two_layers(tmp_path: Path, rows: int, threads: int) -> None:
    width, inner = 48, 100
    weights = normal(1, inner, width), normal(2, width, inner)
    biases = normal(3, inner), normal(4, width)
    norm = {"gamma": normal(5, width), "beta": normal(6, width)}
    x = normal(7, 1, rows, width)
    (wide,) = linear(tmp_path, weights[0], biases[0], 1, norm, gelu=1)(x=x)
    (expected,) = linear(tmp_path, weights[1], biases[1], 1, {"residual": x})(x=wide)
    packed: dict[str, Array] = {}
    for part, weight in zip(("widen", "narrow"), weights, strict=True):
        quantised, packed[f"{part}_scale"] = quantise_outputs(weight)
        packed[part] = pack_tiles(quantised)
    packed |= {"widen_bias": biases[0], "narrow_bias": biases[1], **norm}
    (found,) = Operator(tmp_path, "FeedForward", packed, threads=threads)(x=x)
    np.testing.assert_array_equal(found, expected)


# Attention


@pytest.mark.parametrize("sharpness", [0.1, 1, 4])
@pytest.mark.parametrize(("heads", "size", "positions"), [(1, 16, 1), (2, 16, 37), (2, 64, 1500)])
@pytest.mark.parametrize("threads", [1, 2])
def test_attention_is_near(
    tmp_path: Path, heads: int, size: int, positions: int, sharpness: float, threads: int
) -> None:
    rows = normal(1, positions, 3 * heads * size)
    rows[:, : heads * size] *= sharpness
    operator = Operator(tmp_path, "Attention", threads=threads, heads=heads)
    (found,) = operator(query_key_value=rows[None])
    query, key, value = np.split(rows, 3, axis=-1)
    expected = attend(query, by_head(key[None], heads), by_head(value[None], heads), causal=False)
    assert found.shape == (1, *query.shape)
    assert np.abs(found[0] - expected).mean() < 0.01
    np.testing.assert_allclose(found[0], expected, atol=0.3)


def test_attention_keeps_what_many_small_weights_add_up_to(tmp_path: Path) -> None:
    # One position has a weight of 1, and 1999 have weights of 1/1000: 8 bits would lose them.
    positions, size = 2000, 16
    rows = np.zeros((positions, 3 * size), np.float32)
    rows[:, 0] = 1
    rows[0, size] = 4 * math.log(1000)
    rows[0, 2 * size] = 1
    (found,) = Operator(tmp_path, "Attention", heads=1)(query_key_value=rows[None])
    np.testing.assert_allclose(found[0, :, 0], 1 / (1 + 1.999), rtol=0.02)


# SelfAttention


class Caches:
    """Caches that the operator reads and writes in place."""

    def __init__(self, operator: Operator, heads: int, size: int, slots: int = 1) -> None:
        self._operator = operator
        shape = (slots, heads, CAPACITY, size)
        # What nobody wrote may hold anything.
        self._values = {
            f"past_{kind}": onnxruntime.OrtValue.ortvalue_from_numpy(
                np.full(shape, np.nan, dtype=np.float32)
            )
            for kind in "kv"
        }

    def step(self, rows: Array, past: int) -> Array:
        """Attention of rows [R, 3 W] that follow ``past`` positions."""
        return self.place(rows, run_places(past, len(rows)))

    def place(self, rows: Array, places: Array) -> Array:
        """Attention of rows [R, 3 W] at these places."""
        binding = self._operator.session.io_binding()
        binding.bind_cpu_input("query_key_value", rows[None])
        binding.bind_cpu_input("places", places)
        binding.bind_output("y", "cpu")
        for name, value in self._values.items():
            binding.bind_ortvalue_input(name, value)
            binding.bind_ortvalue_output(name.replace("past", "present"), value)
        self._operator.session.run_with_iobinding(binding)
        return np.asarray(binding.get_outputs()[0].numpy()[0])

    def __getitem__(self, name: str) -> Array:
        return np.asarray(self._values[name].numpy())


HEADS = [(1, 16), (2, 16), (6, 64)]


@pytest.mark.parametrize(("heads", "size"), HEADS)
@pytest.mark.parametrize("threads", [1, 2])
def test_self_attention_in_place(tmp_path: Path, heads: int, size: int, threads: int) -> None:
    operator = Operator(tmp_path, "SelfAttention", threads=threads, heads=heads)
    rows = normal(1, MOST, 3 * heads * size)
    caches = Caches(operator, heads, size)
    found = caches.step(rows, 0)
    query, key, value = np.split(rows, 3, axis=-1)
    keys, values = by_head(key[None], heads), by_head(value[None], heads)
    np.testing.assert_allclose(found, attend(query, keys, values, causal=True), atol=1e-5)
    np.testing.assert_array_equal(caches["past_k"][0, :, :MOST], keys)
    np.testing.assert_array_equal(caches["past_v"][0, :, :MOST], values)
    assert np.isnan(caches["past_k"][0, :, MOST:]).all()


@pytest.mark.parametrize(("heads", "size"), HEADS)
@pytest.mark.parametrize("threads", [1, 2])
def test_self_attention_rows_stand_alone(
    tmp_path: Path, heads: int, size: int, threads: int
) -> None:
    operator = Operator(tmp_path, "SelfAttention", threads=threads, heads=heads)
    rows = normal(1, MOST, 3 * heads * size)
    whole = Caches(operator, heads, size).step(rows, 0)
    for count in ROWS:
        caches = Caches(operator, heads, size)
        for start in range(0, MOST, count):
            part = caches.step(rows[start : start + count], start)
            np.testing.assert_array_equal(part, whole[start : start + count])


def test_self_attention_forgets_what_was_rewound(tmp_path: Path) -> None:
    heads, size = 2, 16
    operator = Operator(tmp_path, "SelfAttention", heads=heads)
    rows = normal(1, 12, 3 * heads * size)
    whole = Caches(operator, heads, size).step(rows, 0)
    caches = Caches(operator, heads, size)
    caches.step(rows[:5], 0)
    caches.step(100 * normal(2, 9, rows.shape[1]), 5)  # What a verify step rejected.
    np.testing.assert_array_equal(caches.step(rows[5:6], 5), whole[5:6])
    caches.step(100 * normal(3, 20, rows.shape[1]), 6)
    np.testing.assert_array_equal(caches.step(rows[3:], 3), whole[3:])


def test_self_attention_copies_caches_that_are_not_shared(tmp_path: Path) -> None:
    heads, size = 2, 16
    operator = Operator(tmp_path, "SelfAttention", heads=heads)
    rows = normal(1, 7, 3 * heads * size)
    whole = Caches(operator, heads, size).step(rows, 0)
    past = {f"past_{kind}": np.zeros((1, heads, CAPACITY, size), np.float32) for kind in "kv"}
    for start, stop in ((0, 3), (3, 7)):
        y, past["past_k"], past["past_v"] = operator(
            query_key_value=rows[None, start:stop],
            places=run_places(start, stop - start),
            **past,
        )
        np.testing.assert_array_equal(y[0], whole[start:stop])


def test_self_attention_fills_its_capacity(tmp_path: Path) -> None:
    operator = Operator(tmp_path, "SelfAttention", heads=2)
    rows = normal(1, CAPACITY, 96)
    found = Caches(operator, 2, 16).step(rows, 0)
    query, key, value = np.split(rows, 3, axis=-1)
    expected = attend(query, by_head(key[None], 2), by_head(value[None], 2), causal=True)
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("threads", [1, 2])
def test_self_attention_in_slots_and_runs(tmp_path: Path, threads: int) -> None:
    heads, size = 2, 64
    operator = Operator(tmp_path, "SelfAttention", threads=threads, heads=heads)
    texts = normal(1, 3, 12, 3 * heads * size)
    texts[1, :5] = texts[0, :5]  # Two runs after one past; the third text is in the other slot.
    expected = [Caches(operator, heads, size).step(text, 0) for text in texts]
    caches = Caches(operator, heads, size, slots=2)
    caches.place(
        np.concatenate([texts[2, :3], texts[0, :4]]),
        np.concatenate([run_places(0, 3, slot=1), run_places(0, 4)]),
    )
    found = caches.place(
        np.concatenate([texts[0, 4:], texts[2, 3:], texts[1, 5:]]),
        np.concatenate(
            [
                run_places(4, 8),
                run_places(3, 9, slot=1),
                run_places(30, 7, shared=5, begin=30),
            ]
        ),
    )
    np.testing.assert_array_equal(found[:8], expected[0][4:])
    np.testing.assert_array_equal(found[8:17], expected[2][3:])
    np.testing.assert_array_equal(found[17:], expected[1][5:])


@pytest.mark.parametrize("past", [-1, CAPACITY - 2])
def test_self_attention_refuses_impossible_positions(tmp_path: Path, past: int) -> None:
    operator = Operator(tmp_path, "SelfAttention", heads=2)
    caches = np.zeros((1, 2, CAPACITY, 16), np.float32)
    with pytest.raises(Exception, match="SelfAttention"):
        operator(
            query_key_value=normal(1, 1, 3, 96),
            past_k=caches,
            past_v=caches,
            places=run_places(past, 3),
        )


def test_self_attention_of_zeros_and_large_scores(tmp_path: Path) -> None:
    operator = Operator(tmp_path, "SelfAttention", heads=2)
    rows = normal(1, 6, 96)
    rows[2] = 0
    rows[4, :64] *= 1000
    found = Caches(operator, 2, 16).step(rows, 0)
    query, key, value = np.split(rows, 3, axis=-1)
    expected = attend(query, by_head(key[None], 2), by_head(value[None], 2), causal=True)
    np.testing.assert_allclose(found, expected, atol=1e-5)


# QuantizeCross


def quantised(folder: Path, heads: int, key: Array, value: Array) -> dict[str, Array]:
    key_value = np.concatenate([key, value], axis=-1)
    outputs = Operator(folder, "QuantizeCross", heads=heads)(key_value=key_value)
    return dict(zip(("k", "k_scale", "v", "v_scale"), outputs, strict=True))


@pytest.mark.parametrize(("heads", "size", "positions"), AUDIO)
@pytest.mark.parametrize("threads", [1, 2])
def test_quantize_cross_is_near(
    tmp_path: Path, heads: int, size: int, positions: int, threads: int
) -> None:
    key, value = (
        normal(seed, 1, positions, heads * size) * np.exp2(normal(seed + 2, heads * size))
        for seed in (1, 2)
    )
    operator = Operator(tmp_path, "QuantizeCross", threads=threads, heads=heads)
    k, k_scale, v, v_scale = operator(key_value=np.concatenate([key, value], axis=-1))
    tiles = -(-positions // 16)
    assert (str(k.dtype), k.shape) == ("uint8", (heads, tiles, size // 4, 16, 4))
    assert (str(v.dtype), v.shape) == ("int8", (heads, size // 16, 4 * tiles, 16, 4))
    for found, scale, flat in (
        (unpack_key(k, k_scale, positions), k_scale, key),
        (unpack_value(v, v_scale, positions), v_scale, value),
    ):
        original = by_head(flat, heads)
        np.testing.assert_allclose(scale, np.abs(original).max(1) / 127, rtol=1e-6)
        assert (np.abs(found - original) <= scale[:, None] * 0.501).all()


def test_quantize_cross_of_zeros(tmp_path: Path) -> None:
    zeros = np.zeros((1, 37, 32), np.float32)
    found = quantised(tmp_path, 2, zeros, zeros)
    assert all(np.isfinite(values).all() for values in found.values())
    assert not unpack_key(found["k"], found["k_scale"], 37).any()
    assert not unpack_value(found["v"], found["v_scale"], 37).any()


# CrossAttention


class Cross:
    """The operator over the audio of one slot, or as ``audio_of`` says of each row."""

    def __init__(self, folder: Path, heads: int, positions: int, threads: int = 1) -> None:
        self._operator = Operator(
            folder, "CrossAttention", threads=threads, heads=heads, positions=positions
        )

    def __call__(self, query: Array, **held: Array) -> list[Array]:
        slot = {name: values[None] for name, values in held.items()}
        return self._operator(query=query, places=run_places(0, query.shape[1]), **slot)

    def among(self, query: Array, audio_of: list[int], audios: list[dict[str, Array]]) -> Array:
        """Rows [R, W], row r over the audio ``audio_of[r]``."""
        places = run_places(0, len(query))
        places[:, 0] = audio_of
        slots = {name: np.stack([held[name] for held in audios]) for name in audios[0]}
        return np.asarray(self._operator(query=query[None], places=places, **slots)[0][0])


def audio(folder: Path, heads: int, size: int, positions: int) -> dict[str, Array]:
    shape = 1, positions, heads * size
    return quantised(folder, heads, normal(1, *shape), normal(2, *shape))


def expected_cross(query: Array, held: dict[str, Array], positions: int) -> Array:
    key = unpack_key(held["k"], held["k_scale"], positions)
    value = unpack_value(held["v"], held["v_scale"], positions)
    return attend(query, key, value, causal=False)


@pytest.mark.parametrize("sharpness", [0.1, 1, 4])
@pytest.mark.parametrize(("heads", "size", "positions"), AUDIO)
def test_cross_attention_is_near(
    tmp_path: Path, heads: int, size: int, positions: int, sharpness: float
) -> None:
    held = audio(tmp_path, heads, size, positions)
    query = sharpness * normal(3, MOST, heads * size)
    (found,) = Cross(tmp_path, heads, positions)(query=query[None], **held)
    expected = expected_cross(query, held, positions)
    assert found.shape == (1, *query.shape)
    # Queries and weights have 16 bits: what is lost is lost in keys and values.
    np.testing.assert_allclose(found[0], expected, atol=2e-3)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("heads", "size", "positions"), AUDIO)
def test_cross_attention_rows_stand_alone(
    tmp_path: Path, heads: int, size: int, positions: int, threads: int
) -> None:
    held = audio(tmp_path, heads, size, positions)
    operator = Cross(tmp_path, heads, positions, threads)
    assert_rows_stand_alone(operator, "query", normal(3, 1, MOST, heads * size), **held)


@pytest.mark.parametrize("threads", [1, 2])
def test_cross_attention_takes_each_row_to_its_slot(tmp_path: Path, threads: int) -> None:
    heads, size, positions = 2, 64, 37
    shape = 1, positions, heads * size
    audios = [
        quantised(tmp_path, heads, normal(seed, *shape), normal(seed + 10, *shape))
        for seed in range(3)
    ]
    query = normal(3, MOST, heads * size)
    operator = Cross(tmp_path, heads, positions, threads)
    alone = [operator(query=query[None], **held)[0][0] for held in audios]
    for audio_of in ([2] * MOST, [r % 3 for r in range(MOST)], [r // 7 % 3 for r in range(MOST)]):
        expected = np.stack([alone[slot][row] for row, slot in enumerate(audio_of)])
        np.testing.assert_array_equal(operator.among(query, audio_of, audios), expected)


@pytest.mark.parametrize("positions", [1, 15, 17, 37, 1500])
def test_cross_attention_sees_no_position_beyond_the_last(tmp_path: Path, positions: int) -> None:
    heads, size = 2, 16
    held = audio(tmp_path, heads, size, positions)
    operator = Cross(tmp_path, heads, positions)
    query = normal(3, 1, 5, heads * size)
    (before,) = operator(query=query, **held)
    inside = positions % 16
    # The tail of a packed tensor is its last tile: keys by position, values by four positions.
    held["k"][:, -1, :, inside:] = np.random.default_rng(4).integers(
        0, 256, held["k"][:, -1, :, inside:].shape, dtype=np.uint8
    )
    by_position = held["v"].transpose(0, 2, 4, 1, 3).copy()
    shape = by_position.shape
    flat = by_position.reshape(heads, -1, size)
    flat[:, positions:] = 127
    held["v"] = np.ascontiguousarray(flat.reshape(shape).transpose(0, 3, 1, 4, 2))
    (after,) = operator(query=query, **held)
    np.testing.assert_array_equal(after, before)


def test_cross_attention_does_not_saturate(tmp_path: Path) -> None:
    heads, size, positions = 2, 64, 1500
    signs = np.sign(normal(1, 1, positions, 1)) * np.ones(heads * size, np.float32)
    held = quantised(tmp_path, heads, 0.2 * signs, np.full_like(signs, -3.0))
    query = np.full((3, heads * size), 2.0, np.float32)
    query[1] *= -1
    query[2] *= 0.01
    operator = Cross(tmp_path, heads, positions)
    (found,) = operator(query=query[None], **held)
    np.testing.assert_allclose(found, -3.0, rtol=1e-3)
    # Values that tell the two kinds of position apart.
    held = quantised(tmp_path, heads, 0.2 * signs, signs)
    (found,) = operator(query=query[None], **held)
    np.testing.assert_allclose(found[0], expected_cross(query, held, positions), atol=2e-3)


def test_cross_attention_of_zeros(tmp_path: Path) -> None:
    shape = 1, 37, 32
    operator = Cross(tmp_path, 2, 37)
    held = audio(tmp_path, 2, 16, 37)
    query = normal(3, 1, 3, 32)
    query[0, 1] = 0
    (found,) = operator(query=query, **held)
    mean = unpack_value(held["v"], held["v_scale"], 37).mean(1).reshape(-1)
    np.testing.assert_allclose(found[0, 1], mean, atol=1e-3)
    silent = quantised(tmp_path, 2, np.zeros(shape, np.float32), normal(2, *shape))
    (found,) = operator(query=query, **silent)
    np.testing.assert_allclose(found[0], np.repeat(mean[None], 3, axis=0), atol=1e-3)
    nothing = quantised(tmp_path, 2, normal(1, *shape), np.zeros(shape, np.float32))
    (found,) = operator(query=query, **nothing)
    np.testing.assert_array_equal(found, 0)


# Choose

FREE = ("choices", "temperatures")


@pytest.mark.parametrize("size", [1, 5, 16, 37, 1000, 51865])
def test_choose_is_near(tmp_path: Path, size: int) -> None:
    logits, suppress = 3 * normal(1, 1, 9, size), np.zeros(size, np.float32)
    suppress[1::7] = -np.inf
    suppress[2::5] += 1
    token, log_prob = Operator(tmp_path, "Choose", without=FREE)(logits=logits, suppress=suppress)
    allowed = logits[0] + suppress
    np.testing.assert_array_equal(token, allowed.argmax(-1)[None])
    wide = allowed.astype(np.float64)
    spread = np.log(np.exp(wide - wide.max(-1, keepdims=True)).sum(-1))
    np.testing.assert_allclose(log_prob[0], -spread, atol=1e-5)


def test_choose_takes_the_first_of_equals(tmp_path: Path) -> None:
    logits = np.zeros((1, 40, 101), np.float32)
    for row in range(40):
        logits[0, row, [2 * row + 1, 2 * row + 9, 100]] = 5
    token, _ = Operator(tmp_path, "Choose", without=FREE)(
        logits=logits, suppress=np.zeros(101, np.float32)
    )
    np.testing.assert_array_equal(token[0], 2 * np.arange(40) + 1)


def test_choose_with_one_token_left(tmp_path: Path) -> None:
    suppress = np.full(37, -np.inf, np.float32)
    suppress[29] = 0
    token, log_prob = Operator(tmp_path, "Choose", without=FREE)(
        logits=normal(1, 1, 3, 37), suppress=suppress
    )
    assert token.tolist() == [[29, 29, 29]]
    np.testing.assert_array_equal(log_prob, 0)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("size", [5, 1003])
def test_choose_rows_stand_alone(tmp_path: Path, size: int, threads: int) -> None:
    operator = Operator(tmp_path, "Choose", without=FREE, threads=threads)
    suppress = normal(2, size)
    suppress[::3] = -np.inf
    assert_rows_stand_alone(operator, "logits", normal(1, 1, MOST, size), suppress=suppress)
