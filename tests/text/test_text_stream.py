"""Text as it comes: never half a character, never another text than the whole."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from as2d_cli.text.text_stream import TextStream
from tests.fakes import PIECES, tokens_of


@given(st.text(st.characters(exclude_categories=["Cs"])), st.lists(st.integers(1, 5), min_size=1))
def test_any_cut_gives_the_same_text(text: str, sizes: list[int]) -> None:
    stream = TextStream(PIECES)
    tokens = tokens_of(text)
    shown = ""
    at = turn = 0
    while at < len(tokens):
        size = sizes[turn % len(sizes)]
        piece = stream.push(tokens[at : at + size])
        assert text.startswith(shown + piece)
        shown += piece
        at, turn = at + size, turn + 1
    assert shown + stream.finish() == text


@given(st.binary())
def test_invalid_bytes_are_replaced_as_in_one_go(data: bytes) -> None:
    stream = TextStream(PIECES)
    shown = "".join(stream.push([1 + b]) for b in data)
    assert shown + stream.finish() == data.decode("utf-8", "replace")


def test_half_a_character_waits_and_is_replaced_only_at_the_end() -> None:
    stream = TextStream(PIECES)
    euro = tokens_of("€")
    assert stream.push(euro[:2]) == ""
    assert stream.push(euro[2:]) == "€"
    assert stream.push(euro[:2]) == ""
    assert stream.finish() == "\ufffd"
    assert stream.push(euro) == "€"


def test_specials_and_ids_beyond_the_vocabulary_stand_for_nothing() -> None:
    assert TextStream(PIECES).push([0, 257, 258, 259, 99_999, -1]) == " Hello world"
