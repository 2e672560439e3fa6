"""Vocabularies and special tokens."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from as2d_cli.catalog.tokens import read_alignment_heads, read_tokens
from as2d_cli.catalog.vocabulary import (
    Vocabulary,
    VocabularyError,
    from_byte_level_bpe,
    from_moonshine,
)
from tests.catalog.material import VOCABULARY, tokenizer


@settings(deadline=None)
@given(st.lists(st.binary(max_size=300), max_size=30), st.booleans())
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], ranks: bool
) -> None:
    path = tmp_path_factory.mktemp("v") / "vocabulary.bin"
    Vocabulary(tuple(pieces), ranks).write(path)
    assert Vocabulary.read(path) == Vocabulary(tuple(pieces), ranks)


def test_the_layout_is_the_one_documented(tmp_path: Path) -> None:
    Vocabulary((b"", b"ab"), True).write(tmp_path / "v")
    expected = b"A2DV" + b"\1\0\0\0" + b"\2\0\0\0" + b"\1\0\0\0" + b"\0\0" + b"\2\0ab"
    assert (tmp_path / "v").read_bytes() == expected


@pytest.mark.parametrize("damage", ["short", "long", "magic", "empty"])
def test_damage(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "vocabulary.bin"
    Vocabulary((b"one", b"two"), False).write(path)
    raw = path.read_bytes()
    broken = {"short": raw[:-1], "long": raw + b"\0", "magic": b"X" + raw[1:], "empty": b""}
    path.write_bytes(broken[damage])
    with pytest.raises(VocabularyError, match=r"vocabulary\.bin"):
        Vocabulary.read(path)


def test_byte_level_pieces_are_bytes() -> None:
    vocabulary = from_byte_level_bpe(Path("t"), tokenizer(), VOCABULARY)
    assert len(vocabulary.pieces) == VOCABULARY
    assert vocabulary.pieces[0] == b"!"
    assert vocabulary.pieces[256:258] == (b" t", b" th")
    assert not any(vocabulary.pieces[258:])
    assert {p[0] for p in vocabulary.pieces[:256]} == set(range(256))
    assert vocabulary.merge_ranks


def test_ids_of_fewer_letters_than_bytes_are_ranks() -> None:
    vocab = {"a": 0, "b": 1, "ab": 2}
    data = {"model": {"vocab": vocab, "merges": ["a b"]}, "added_tokens": []}
    assert from_byte_level_bpe(Path("t"), data, 3).merge_ranks


def test_merges_out_of_order_are_no_ranks() -> None:
    data = tokenizer()
    data["model"]["merges"].reverse()
    assert not from_byte_level_bpe(Path("t"), data, VOCABULARY).merge_ranks


def test_a_tokenizer_larger_than_the_model() -> None:
    with pytest.raises(VocabularyError, match="they are no pair"):
        from_byte_level_bpe(Path("t"), tokenizer(extra=9), VOCABULARY)


@pytest.mark.parametrize("content", [{}, {"model": []}, {"model": {"vocab": {}, "merges": []}}])
def test_other_json(content: dict[str, Any]) -> None:
    with pytest.raises(VocabularyError, match="byte-level BPE"):
        from_byte_level_bpe(Path("t"), content, 10)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**70) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)
PLACES = [
    ("model",),
    ("model", "vocab"),
    ("model", "vocab", "a"),
    ("model", "vocab", "\u0120t"),
    ("model", "merges"),
    ("model", "merges", 0),
    ("added_tokens",),
    ("added_tokens", 0),
    ("added_tokens", 0, "id"),
    ("added_tokens", 1, "content"),
]


@settings(deadline=None, derandomize=True, max_examples=100)
@given(st.sampled_from(PLACES), JSON, st.booleans())
@example(("model", "merges", 0), "ab", False)
@example(("model", "vocab", "a"), "64", False)
@example(("model", "vocab", "a"), 64.5, False)
@example(("model", "vocab", "a"), -1, False)
@example(("added_tokens", 1, "content"), None, True)
def test_a_tokenizer_of_any_other_shape_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, place: tuple[str | int, ...], value: Any, gone: bool
) -> None:
    data = tokenizer()
    holder: Any = data
    for key in place[:-1]:
        holder = holder[key]
    if gone:
        del holder[place[-1]]
    else:
        holder[place[-1]] = value
    paths = special_files(tmp_path_factory.mktemp("t"), {}, data)
    with contextlib.suppress(VocabularyError):
        pieces = read_tokens(*paths, VOCABULARY).vocabulary.pieces
        assert len(pieces) == VOCABULARY
        assert {len(piece) for piece in pieces[:256]} <= {0, 1}


def moonshine_file(pieces: list[bytes]) -> bytes:
    def length(n: int) -> bytes:
        return bytes([n]) if n < 128 else bytes([n % 128 + 128, n // 128])

    return b"".join(length(len(piece)) + piece for piece in pieces)


def test_moonshine_pieces(tmp_path: Path) -> None:
    long = b"x" * 300
    pieces = [b"<unk>", b"<s>", b"</s>", b"<0x0A>", "\u2581the".encode(), long, b"<<ST_7>>", b""]
    (tmp_path / "tokenizer.bin").write_bytes(moonshine_file(pieces))
    found = from_moonshine(tmp_path / "tokenizer.bin")
    assert found.pieces == (b"", b"", b"", b"\n", b" the", long, b"", b"")
    assert not found.merge_ranks


@pytest.mark.parametrize("content", [b"", b"\x05<un", b"\x85", b"\x85\x01abc"])
def test_broken_moonshine_files(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "tokenizer.bin").write_bytes(content)
    with pytest.raises(VocabularyError, match=r"tokenizer\.bin"):
        from_moonshine(tmp_path / "tokenizer.bin")


def special_files(tmp_path: Path, config: Any, tokens: Any) -> tuple[Path, Path]:
    paths = tmp_path / "tokenizer.json", tmp_path / "config.json"
    paths[0].write_text(json.dumps(tokens))
    paths[1].write_text(json.dumps(config))
    return paths


def test_english_only_tokens_come_by_name(tmp_path: Path) -> None:
    config = {"suppress_ids": [1], "suppress_ids_begin": [2, 3]}
    tokens = read_tokens(*special_files(tmp_path, config, tokenizer()), VOCABULARY)
    assert tokens.names == {
        "start": 259,
        "end": 258,
        "no_timestamps": 265,
        "no_speech": 264,
        "previous": 263,
        "timestamp_begin": 266,
    }
    assert not tokens.languages
    assert (tokens.suppress, tokens.begin_suppress) == ((1,), (2, 3))


def test_a_vocabulary_may_have_no_timestamps(tmp_path: Path) -> None:
    tokens = read_tokens(*special_files(tmp_path, {}, tokenizer()), 266)
    assert "timestamp_begin" not in tokens.names


def test_alignment_heads_are_those_of_the_configuration(tmp_path: Path) -> None:
    _, path = special_files(tmp_path, {"alignment_heads": [[1, 0], [0, 1]]}, tokenizer())
    assert read_alignment_heads(path, 2, 2) == ((1, 0), (0, 1))
    _, path = special_files(tmp_path, {}, tokenizer())
    assert read_alignment_heads(path, 2, 2) == ()


@pytest.mark.parametrize("heads", [[[2, 0]], [[0, 2]], [[0]], [0], "x", [[0, -1]], [["0", 0]], {}])
def test_heads_that_a_model_has_not_are_refused(tmp_path: Path, heads: Any) -> None:
    _, path = special_files(tmp_path, {"alignment_heads": heads}, tokenizer())
    with pytest.raises(VocabularyError, match="alignment_heads"):
        read_alignment_heads(path, 2, 2)


def test_a_large_vocabulary_is_multilingual(tmp_path: Path) -> None:
    tokens = read_tokens(*special_files(tmp_path, {}, tokenizer()), 51865)
    assert tokens.languages == {"en": 260}
    assert (tokens.names["transcribe"], tokens.names["translate"]) == (262, 261)


def test_suppressed_ids_must_exist(tmp_path: Path) -> None:
    paths = special_files(tmp_path, {"suppress_ids": [VOCABULARY]}, tokenizer())
    with pytest.raises(VocabularyError, match="suppress_ids"):
        read_tokens(*paths, VOCABULARY)


def test_a_tokenizer_without_whispers_tokens(tmp_path: Path) -> None:
    data = tokenizer()
    del data["added_tokens"][0]
    with pytest.raises(VocabularyError, match="endoftext"):
        read_tokens(*special_files(tmp_path, {}, data), VOCABULARY)


def test_no_json(tmp_path: Path) -> None:
    paths = special_files(tmp_path, {}, tokenizer())
    paths[0].write_bytes(b"<html>")
    with pytest.raises(VocabularyError, match="is not JSON"):
        read_tokens(*paths, VOCABULARY)
