"""Reading and writing ``head.npz``, good and hostile."""

from __future__ import annotations

import io
import json
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from as2d_cli.catalog.graphs.blocks import quantise_outputs
from as2d_cli.catalog.graphs.head import POOL
from as2d_cli.catalog.weights.ctranslate2 import WeightsError
from as2d_cli.catalog.weights.head import HeadFile, read_head, write_head
from tests.catalog.heads import CONTEXT, WIDTH, adapter_head, ctc_head
from tests.catalog.material import WIDTH as ENCODING_WIDTH

Arrays = dict[str, npt.NDArray[Any]]


@pytest.fixture(params=[adapter_head, ctc_head])
def file(request: pytest.FixtureRequest) -> HeadFile:
    made: HeadFile = request.param()
    return made


def arrays_of(file: HeadFile, folder: Path) -> Arrays:
    write_head(folder / "whole.npz", file)
    with np.load(folder / "whole.npz", allow_pickle=False) as archive:
        return dict(archive)


def saved(path: Path, arrays: Arrays) -> Path:
    np.savez_compressed(path, allow_pickle=False, **arrays)
    return path


def described(arrays: Arrays, **changes: object) -> Arrays:
    values = {**json.loads(arrays["about"].tobytes()), **changes}
    kept = {key: value for key, value in values.items() if value is not None}
    return {**arrays, "about": np.frombuffer(json.dumps(kept).encode(), dtype=np.uint8)}


def test_what_was_written_is_read(tmp_path: Path, file: HeadFile) -> None:
    write_head(tmp_path / "head.npz", file)
    found = read_head(tmp_path / "head.npz")
    assert (found.id, found.target, found.licence) == (file.id, file.target, file.licence)
    assert (found.kind, found.languages, found.pieces) == (file.kind, file.languages, file.pieces)
    assert found.encoding_width == ENCODING_WIDTH
    assert type(found.head) is type(file.head)
    join, wanted = found.head.adapter.join, file.head.adapter.join
    _, scales = quantise_outputs(wanted.weight, 31)
    assert (np.abs(join.weight - wanted.weight) <= scales[:, None] * 0.501).all()
    np.testing.assert_array_equal(join.bias, wanted.bias)
    np.testing.assert_array_equal(found.head.adapter.norm.beta, file.head.adapter.norm.beta)


def test_a_head_that_was_read_gives_the_same_file(tmp_path: Path, file: HeadFile) -> None:
    first, second = tmp_path / "first.npz", tmp_path / "second.npz"
    write_head(first, file)
    write_head(second, read_head(first))
    assert first.read_bytes() == second.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first.npz", "second.npz"]


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 1 << 32))
def test_weights_are_quantised_to_the_same_integers_again(seed: int) -> None:
    random = np.random.default_rng(seed)
    rows = random.standard_normal((64, 16)) * 10.0 ** random.integers(-20, 20, (64, 1))
    weight, scales = quantise_outputs(rows.astype(np.float32), 31)
    assert np.abs(weight).max(axis=1).tolist() == [31] * 64
    again, same = quantise_outputs(weight * scales[:, None], 31)
    np.testing.assert_array_equal(again, weight)
    np.testing.assert_array_equal(same, scales)


def test_layers_and_their_names(tmp_path: Path) -> None:
    arrays = arrays_of(adapter_head(), tmp_path)
    assert arrays["adapter.join.weight"].shape == (WIDTH, POOL * ENCODING_WIDTH)
    assert arrays["adapter.blocks.0.convolution.weight"].shape == (WIDTH, 3 * WIDTH)
    assert arrays["decoder.layers.1.attention.query_key_value.weight"].dtype == np.int8
    assert arrays["decoder.layers.1.cross.key_value.scale"].shape == (2 * WIDTH,)
    assert "decoder.layers.0.cross.query.bias" not in arrays
    assert arrays["decoder.positions"].dtype == np.float16
    assert arrays["decoder.positions"].shape == (CONTEXT, WIDTH)
    assert arrays["piece_lengths"][-3:].tolist() == [0, 0, 0]


def test_a_file_that_cannot_be_written_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(out: Any, **arrays: Any) -> None:
        out.write(b"half")
        raise OSError(28, "No space left on device")

    (tmp_path / "head.npz").write_bytes(b"the one before")
    monkeypatch.setattr(np, "savez_compressed", broken)
    with pytest.raises(OSError, match="No space"):
        write_head(tmp_path / "head.npz", adapter_head())
    assert [path.name for path in tmp_path.iterdir()] == ["head.npz"]
    assert (tmp_path / "head.npz").read_bytes() == b"the one before"


def without(name: str) -> Callable[[Arrays], Arrays]:
    return lambda arrays: {key: value for key, value in arrays.items() if key != name}


def with_array(name: str, change: Callable[[Any], Any]) -> Callable[[Arrays], Arrays]:
    return lambda arrays: {**arrays, name: change(arrays.get(name))}


def saying(**changes: object) -> Callable[[Arrays], Arrays]:
    return lambda arrays: described(arrays, **changes)


def set_first(value: float) -> Callable[[Any], Any]:
    def change(values: Any) -> Any:
        values = values.copy()
        values[0] = value
        return values

    return change


JOIN, NORM = "adapter.join", "decoder.layers.0.cross.norm.gamma"


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (saying(format=2), "is of format 2"),
        (saying(format=None), "is of format None"),
        (saying(kind="medusa"), "kind 'medusa', which as2d does not know"),
        (saying(kind="ctc", heads=None), "which is no part of a head"),
        (saying(kind=["adapter"]), "does not say 'kind'"),
        (saying(target=None), "does not say 'target'"),
        (saying(id="x\nencoder: ../secret"), "does not say 'id' in one short line"),
        (saying(licence=" MIT"), "does not say 'licence'"),
        (saying(licence="M" * 1000), "does not say 'licence'"),
        (saying(languages=[]), "'languages'"),
        (saying(languages=["en de"]), "'languages'"),
        (saying(encoding_width=ENCODING_WIDTH + 4), "not [72]"),
        (saying(encoding_width=True), "'encoding_width'"),
        (saying(encoding_width=1e999), "'encoding_width'"),
        (saying(heads=None), "'heads'"),
        (saying(heads=3), "has 3 heads for a width of 64"),
        (saying(heads=8), "heads of 8 dimensions"),
        (saying(heads=10**30), "heads for a width"),
        (without("about"), "holds no 'about'"),
        (with_array("about", lambda _: np.frombuffer(b"{", np.uint8)), "not JSON"),
        (with_array("about", lambda _: np.frombuffer(b"[" * 60_000, np.uint8)), "not JSON"),
        (with_array("about", lambda _: np.frombuffer(b"\xff\xfe", np.uint8)), "not JSON"),
        (with_array("about", lambda _: np.frombuffer(b"[1]", np.uint8)), "no JSON object"),
        (with_array("about", lambda _: np.zeros(70_000, np.uint8)), "too long"),
        (with_array("about", lambda _: np.array(1, np.uint8)), "of shape []"),
        (without(f"{JOIN}.weight"), f"holds no '{JOIN}.weight'"),
        (without(f"{JOIN}.scale"), f"holds no '{JOIN}.scale'"),
        (without(NORM), f"holds no '{NORM}'"),
        (without("decoder.layers.0.feed_forward.narrow.bias"), "narrow.bias"),
        (without("decoder.layers.0.attention.norm.gamma"), "has no decoder layers"),
        (without("decoder.layers.1.attention.norm.gamma"), "is no part of a head"),
        (with_array("extra", lambda _: np.zeros(3, np.int8)), "'extra', which is no part"),
        (with_array(f"{JOIN}.weight", lambda v: v.astype(np.int16)), "as int16, not int8"),
        (with_array(f"{JOIN}.weight", lambda v: v[:, :-1]), "of shape [64, 63], not [n, 64]"),
        (with_array(f"{JOIN}.weight", lambda v: v[:0]), "of shape [0, 64]"),
        (with_array(f"{JOIN}.weight", lambda v: v[None]), "of shape [1, 64, 64]"),
        (with_array(f"{JOIN}.scale", lambda v: v[:-1]), "of shape [63], not [64]"),
        (with_array(f"{JOIN}.scale", lambda v: v.astype(">f4")), "as >f4"),
        (with_array(f"{JOIN}.scale", set_first(0)), "not above 0"),
        (with_array(f"{JOIN}.scale", set_first(np.nan)), "not finite"),
        (with_array(NORM, set_first(np.inf)), "not finite"),
        (with_array(NORM, lambda v: v.astype(np.float64)), "as float64"),
        (with_array("decoder.positions", lambda v: v[:3]), "context of only 3"),
        (with_array("decoder.positions", lambda v: v.astype(np.float32)), "as float32"),
        (with_array("piece_lengths", lambda v: v[1:]), "'piece_lengths' of shape"),
        (with_array("piece_lengths", set_first(60_000)), "not as long as it says"),
        (with_array("piece_lengths", lambda v: np.roll(v, 3)), "three special tokens"),
        (with_array("pieces", lambda v: v[:-1]), "not as long as it says"),
    ],
)
def test_broken_heads_are_named_and_explained(
    tmp_path: Path, damage: Callable[[Arrays], Arrays], said: str
) -> None:
    path = saved(tmp_path / "head.npz", damage(arrays_of(adapter_head(), tmp_path)))
    assert_refused(path, said)


def assert_refused(path: Path, said: str) -> None:
    with pytest.raises(WeightsError) as error:
        read_head(path)
    assert str(path) in str(error.value)
    assert said in str(error.value)
    assert "\n" not in str(error.value)
    assert error.value.remedy


def test_letters_that_are_none(tmp_path: Path) -> None:
    arrays = arrays_of(ctc_head(), tmp_path)
    for letter in (300, 60_000):
        letters = arrays["sketch.letters"].copy()
        letters[0] = letter
        changed = arrays | {"sketch.letters": letters}
        assert_refused(saved(tmp_path / "head.npz", changed), "not of one byte")


def test_widths_that_the_kernels_cannot_take(tmp_path: Path) -> None:
    arrays = arrays_of(ctc_head(), tmp_path)
    odd = {key: value[:-1] for key, value in arrays.items() if key.startswith(f"{JOIN}.")}
    assert_refused(saved(tmp_path / "head.npz", arrays | odd), "width of 63, not a multiple of 4")
    name = "adapter.blocks.0.widen"
    odd = {key: value[:-1] for key, value in arrays.items() if key.startswith(f"{name}.")}
    assert_refused(saved(tmp_path / "head.npz", arrays | odd), "'adapter.blocks.0' 127 wide")


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 14\n"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (POINTER, "git-lfs pointer"),
        (b"<!DOCTYPE html><html>", "web page"),
        (b"PK\x03\x04" + b"\0" * 100, "no whole npz archive"),
        (b"\x93NUMPY" + b"\0" * 100, "no whole npz archive"),
    ],
)
def test_other_files(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "head.npz").write_bytes(content)
    assert_refused(tmp_path / "head.npz", said)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert_refused(tmp_path / "head.npz", "No such file")
    assert_refused(tmp_path, "Is a directory")


def npy(header: str, content: bytes = b"", version: int = 1) -> bytes:
    raw = header.encode()
    return b"\x93NUMPY" + bytes([version, 0]) + len(raw).to_bytes(2, "little") + raw + content


def shaped(shape: str, descr: str = "'|u1'") -> str:
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}\n"


@pytest.mark.parametrize(
    ("member", "said"),
    [
        (npy(shaped("(4,)"), b"abc"), "3 bytes for a shape of [4]"),
        (npy(shaped("(2,)"), b"abc"), "3 bytes for a shape of [2]"),
        (npy(shaped(f"({1 << 62},)")), "0 bytes"),
        (npy(shaped("(4294967296, 4294967296)")), "0 bytes"),
        (npy(shaped("(-1, -3)"), b"abc"), "3 bytes for a shape of [-1, -3]"),
        (npy(shaped("(1,)", "'|O'"), b"\x80\x04N."), "it holds object"),
        (npy(shaped("(1,)", "[('a', '|u1')]"), b"a"), "it holds"),
        (npy(shaped("(1,)", "('|u1', (1000000000,))"), b"a"), "it holds"),
        (npy("{" * 9000), "cannot be read"),
        (npy("-" * 9000 + "1"), "cannot be read"),
        (npy("'" + "a" * 9000), "cannot be read"),
        (npy(shaped("(1,)") + " " * 20_000, b"a"), "cannot be read"),
        (npy(shaped("(1,)"), b"a", version=3), "another version"),
        (b"", "cannot be read"),
        (b"not an array", "cannot be read"),
    ],
)
def test_hostile_arrays(tmp_path: Path, member: bytes, said: str) -> None:
    path = tmp_path / "head.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("about.npy", member)
    assert_refused(path, said)


def peak_of(path: Path) -> int:
    """Bytes that refusing the file takes."""
    tracemalloc.start()
    try:
        with pytest.raises(WeightsError):
            read_head(path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_an_archive_of_zeros_is_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "head.npz"
    size = 200 << 20
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("pieces.npy", "w") as member,
    ):
        member.write(npy(shaped(f"({size},)")))
        for _ in range(200):
            member.write(bytes(1 << 20))
    assert path.stat().st_size < 1 << 20
    assert peak_of(path) < 8 << 20
    assert_refused(path, "more than any head")
    # Now the archive lies about what the member unpacks to.
    raw = path.read_bytes()
    claimed = (size + len(npy(shaped(f"({size},)")))).to_bytes(4, "little")
    assert claimed in raw
    path.write_bytes(raw.replace(claimed, (1000).to_bytes(4, "little")))
    assert peak_of(path) < 8 << 20


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_compression_without_a_limit_is_refused(tmp_path: Path, method: int) -> None:
    path = tmp_path / "head.npz"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("pieces.npy", npy(shaped("(50000000,)")) + bytes(50_000_000))
    assert peak_of(path) < 8 << 20
    assert_refused(path, "another compression")


def test_a_large_file_is_not_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "head.npz"
    with path.open("wb") as out:
        out.write(b"PK\x03\x04")
        out.truncate(1 << 40)
    assert peak_of(path) < 8 << 20
    assert_refused(path, "more than any head")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("whole")
    saved_again = io.BytesIO()
    # Not compressed: damage then reaches the arrays and what describes them.
    np.savez(saved_again, allow_pickle=False, **arrays_of(ctc_head(), folder))
    return saved_again.getvalue()


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_damage_is_an_error_or_harmless(
    tmp_path_factory: pytest.TempPathFactory, whole: bytes, data: st.DataObject
) -> None:
    content = bytearray(whole)
    # Half of it where the archive's own tables are.
    starts = st.one_of(
        st.integers(0, len(content) - 1), st.integers(len(content) - 1500, len(content) - 1)
    )
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(starts)] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, 3)) == 0
    path = tmp_path_factory.mktemp("damage") / "head.npz"
    path.write_bytes(content[: data.draw(starts)] if cut else content)
    try:
        head = read_head(path)
    except WeightsError as error:
        assert "\n" not in str(error)
        return
    assert head.pieces[-3:] == (b"", b"", b"")
