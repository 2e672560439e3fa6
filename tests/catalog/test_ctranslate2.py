"""Reading CTranslate2 files, good and hostile."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from as2d_cli.catalog.weights.ctranslate2 import CTranslate2Weights, WeightsError
from as2d_cli.catalog.weights.whisper import read_whisper
from tests.catalog.material import ct2_bytes, ct2_string, whisper_variables

GOOD = ct2_bytes(
    {
        "half": np.arange(6, dtype=np.float16).reshape(2, 3),
        "single": np.array([1.5, -2.5], dtype=np.float32),
        "number": np.array(8, dtype=np.int16),
        "small": np.array([[127, -64], [10, 20]], dtype=np.int8),
        "small_scale": np.array([254.0, 10.0], dtype=np.float32),
    },
    aliases={"other": "half"},
)


def written(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "model.bin"
    path.write_bytes(content)
    return path


def test_reads_variables_of_all_types(tmp_path: Path) -> None:
    weights = CTranslate2Weights(written(tmp_path, GOOD))
    assert (weights.spec, weights.revision) == ("WhisperSpec", 3)
    assert weights["half"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert weights["other"] is weights["half"]
    assert weights.floats("single").tolist() == [1.5, -2.5]
    assert weights.integer("number") == 8
    expected = np.array([[0.5, -64 / 254], [1, 2]], dtype=np.float32)
    assert np.abs(weights.floats("small") - expected).max() < 1e-6


def test_reads_bfloat16(tmp_path: Path) -> None:
    header = struct.pack("<I", 6) + ct2_string("WhisperSpec") + struct.pack("<II", 3, 1)
    values = np.array([1.0, -3.5], dtype=np.float32).view(np.uint32) >> 16
    body = ct2_string("x") + struct.pack("<BIBI", 1, 2, 5, 4) + values.astype("<u2").tobytes()
    weights = CTranslate2Weights(written(tmp_path, header + body + struct.pack("<I", 0)))
    assert weights.floats("x").tolist() == [1.0, -3.5]


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 14\n"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (POINTER, "git-lfs pointer"),
        (b"\n<!DOCTYPE html><html>", "web page"),
        (b"PK\x03\x04" + b"\0" * 100, "binary version"),
        (ct2_bytes({}, version=5), "binary version 5"),
        (GOOD[: len(GOOD) // 2], "cut short"),
        (GOOD[:-1], "cut short"),
        (GOOD + b"\0", "1 bytes after its end"),
        (GOOD[:4] + b"\xff\xff" + GOOD[6:], "cut short in model specification"),
    ],
)
def test_broken_files_are_named_and_explained(tmp_path: Path, content: bytes, said: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(WeightsError) as error:
        CTranslate2Weights(path)
    assert str(path) in str(error.value)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="No such file"):
        CTranslate2Weights(tmp_path / "model.bin")


def variable(rank: int, shape: tuple[int, ...], type_id: int, size: int) -> bytes:
    head = struct.pack("<I", 6) + ct2_string("WhisperSpec") + struct.pack("<II", 3, 1)
    dimensions = b"".join(struct.pack("<I", d) for d in shape)
    return (
        head
        + ct2_string("x")
        + struct.pack("<B", rank)
        + dimensions
        + struct.pack("<BI", type_id, size)
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (variable(255, (), 0, 0), "rank 255"),
        (variable(1, (4,), 9, 4), "unknown type 9"),
        # Dimensions whose product is 0 modulo 2^64.
        (variable(4, (65536,) * 4, 0, 0), "do not agree"),
        (variable(1, (1 << 28,), 0, 1 << 30), "cut short"),
        (struct.pack("<I", 6) + ct2_string("W") + struct.pack("<II", 3, 1 << 31), "claims"),
    ],
)
def test_hostile_headers(tmp_path: Path, content: bytes, said: str) -> None:
    with pytest.raises(WeightsError, match=said):
        CTranslate2Weights(written(tmp_path, content))


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_damage_is_an_error_or_harmless(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    content = bytearray(GOOD)
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = written(tmp_path_factory.mktemp("damage"), bytes(content))
    try:
        weights = CTranslate2Weights(path)
    except WeightsError:
        return
    for name in weights:
        assert weights[name].nbytes <= len(content)


def test_whisper_by_parts(tmp_path: Path) -> None:
    model = read_whisper(written(tmp_path, ct2_bytes(whisper_variables())))
    assert (len(model.encoder.layers), len(model.decoder.layers)) == (2, 2)
    assert (model.width, model.head_size, model.context) == (32, 16, 448)
    assert model.decoder.embeddings.dtype == np.float16


def test_a_whisper_without_a_part_names_it(tmp_path: Path) -> None:
    variables = whisper_variables()
    lost = random.Random(3).choice([name for name in variables if "layer_1" not in name])
    del variables[lost]
    with pytest.raises(WeightsError, match=lost.split("/")[0]):
        read_whisper(written(tmp_path, ct2_bytes(variables)))


def test_another_kind_of_model(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="TransformerSpec"):
        read_whisper(written(tmp_path, ct2_bytes({}, spec="TransformerSpec")))


@pytest.mark.parametrize(
    ("heads", "said"),
    [(0, "0 decoder heads"), (3, "3 decoder heads"), (4, "heads of 8 dimensions")],
)
def test_heads_that_do_not_fit_the_width(tmp_path: Path, heads: int, said: str) -> None:
    variables = whisper_variables()
    variables["decoder/num_heads"] = np.array(heads, dtype=np.int16)
    with pytest.raises(WeightsError, match=said):
        read_whisper(written(tmp_path, ct2_bytes(variables)))
