"""The head's own vocabulary, and texts cut into it."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from as2d_cli.catalog.vocabulary import Vocabulary
from as2d_cli.distill.pieces import Cutter, Pieces, Speller, choose_pieces
from tests.distill.material import Words, init_words, target_words


@pytest.fixture
def target(tmp_path: Path) -> Words:
    return target_words(tmp_path)


@pytest.fixture
def init(tmp_path: Path) -> Words:
    return init_words(tmp_path)


def chosen(target: Words, init: Words, count: int, *texts: list[int]) -> Pieces:
    return choose_pieces(texts, target.bundle, init.bundle, count)


def words_of(pieces: Pieces) -> list[bytes]:
    return [piece for piece in pieces.vocabulary.pieces if len(piece) > 1]


def test_bytes_are_always_there_and_specials_come_last(target: Words, init: Words) -> None:
    for count in (259, 262, 300):
        pieces = chosen(target, init, count, target.cut(" the", " cat"))
        assert {bytes([b]) for b in range(256)} <= set(pieces.vocabulary.pieces)
        assert pieces.ids[-3:] == (265, 267, 264)
        assert pieces.vocabulary.pieces[-3:] == (b"", b"", b"")
        assert all(pieces.vocabulary.pieces[:-3])
        assert not pieces.vocabulary.merge_ranks
        size = len(pieces.ids)
        assert (pieces.start, pieces.no_timestamps, pieces.end) == (size - 3, size - 2, size - 1)
        assert pieces.prompt == [pieces.start, pieces.no_timestamps]


def test_pieces_stand_for_the_ids_they_come_of(target: Words, init: Words) -> None:
    pieces = chosen(target, init, 264, target.cut(" mat"))
    for token, piece in zip(pieces.ids[:-3], pieces.vocabulary.pieces[:-3], strict=True):
        assert init.pieces[token] == piece
    assert list(pieces.ids[:-3]) == sorted(pieces.ids[:-3])


def test_the_count_is_kept_to(target: Words, init: Words) -> None:
    # 256 bytes, nine words, three specials.
    for count, expected in ((259, 259), (263, 263), (268, 268), (900, 268)):
        assert len(chosen(target, init, count).ids) == expected


def test_what_says_the_most_is_chosen(target: Words, init: Words) -> None:
    often, seldom = target.cut(" mat", " mat", " on"), target.cut(" cat", " on")
    assert set(words_of(chosen(target, init, 259 + 2, often, seldom))) == {b" mat", b" on"}
    assert set(words_of(chosen(target, init, 259 + 3, often, seldom))) == {
        b" mat",
        b" on",
        b" cat",
    }


def test_what_no_text_has_comes_by_its_merge(target: Words, init: Words) -> None:
    # In the order of the initial drafter: " q" is its last one.
    assert words_of(chosen(target, init, 259 + 2)) == [b"at", b"th"]
    assert set(words_of(chosen(target, init, 259 + 3, target.cut(" the")))) == {
        b"at",
        b"th",
        b" the",
    }


def test_texts_are_counted_in_the_initial_drafters_cut(target: Words, init: Words) -> None:
    # It has no " catch": it says " cat", "c", "h".
    assert words_of(chosen(target, init, 260, target.cut(" catch"))) == [b" cat"]


def test_the_same_texts_give_the_same_pieces(target: Words, init: Words) -> None:
    texts = [target.cut(" a", " cat"), target.cut(" on"), target.cut(" mat")]
    first = chosen(target, init, 261, *texts)
    assert first == chosen(target, init, 261, *reversed(texts))


def test_texts_are_cut_there_and_back(target: Words, init: Words, tmp_path: Path) -> None:
    pieces = chosen(target, init, 262, target.cut(" cat", " cat", " the", " mat"))
    cutter = Cutter(pieces, target.bundle, tmp_path)
    text = target.cut(" the", " catch", " sat", " on", " a", " mat", "!", "\n")
    cut = cutter.pieces(text)
    assert max(cut) < pieces.start
    assert b"".join(pieces.vocabulary.pieces[p] for p in cut) == target.text(text)
    assert target.text(cutter.target_tokens(cut)) == target.text(text)
    # In as few as there are for it.
    assert len(cutter.pieces(target.cut(" cat"))) == 1
    assert cutter.target_tokens(cutter.pieces(target.cut(" the", " mat"))) == target.cut(
        " the", " mat"
    )
    assert cutter.pieces([]) == cutter.target_tokens([]) == []


def test_letters_are_the_single_bytes_that_texts_are_made_of(
    target: Words, init: Words, tmp_path: Path
) -> None:
    texts = [target.cut(" cat", " sat"), target.cut(" mat", "!"), target.cut("!", "z", "z", "!")]
    pieces = chosen(target, init, 262, *texts)
    # " " and "a" three times, "t" in three words, "!" alone; the others less than that.
    assert {pieces.vocabulary.pieces[i] for i in pieces.letters} == {b" ", b"a", b"t", b"!"}
    cutter = Cutter(pieces, target.bundle, tmp_path)
    letters = cutter.letters(target.cut(" catch", "!"))
    said = b"".join(pieces.vocabulary.pieces[pieces.letters[letter]] for letter in letters)
    assert said == b" at!"
    assert cutter.letters([0, 1]) == []


def test_specials_say_nothing(target: Words, init: Words, tmp_path: Path) -> None:
    pieces = chosen(target, init, 262)
    cutter = Cutter(pieces, target.bundle, tmp_path)
    text = [*pieces.prompt, *cutter.pieces(target.cut(" a")), pieces.end]
    assert cutter.target_tokens(text) == target.cut(" a")


def test_every_byte_can_be_said(target: Words, init: Words, tmp_path: Path) -> None:
    pieces = chosen(target, init, 259)
    cutter = Cutter(pieces, target.bundle, tmp_path)
    single = [target.texts[bytes([b])] for b in range(256)]
    cut = cutter.pieces(single)
    assert b"".join(pieces.vocabulary.pieces[p] for p in cut) == bytes(range(256))
    assert target.text(cutter.target_tokens(cut)) == bytes(range(256))
    assert Vocabulary.read(tmp_path / "pieces.bin") == pieces.vocabulary


def spelling(*pieces: bytes) -> Speller:
    """Of all single bytes and these."""
    whole = (*(bytes([byte]) for byte in range(256)), *pieces, b"", b"", b"")
    ids = tuple(range(len(whole)))
    return Speller(Pieces(ids, Vocabulary(whole, merge_ranks=False), ()))


def test_what_is_spelled_says_the_same() -> None:
    speller = spelling(b"the", b"th", b"heart", b"he", b"art", b" heart")
    whole = [*(bytes([byte]) for byte in range(256)), b"the", b"th", b"heart", b"he", b"art"]
    whole += [b" heart"]
    text = [262, 256, 257, 261, 258, 65, 263] * 50  # with a prompt's token and the end
    said = speller.vary(text, Random(0))
    assert b"".join(whole[n] for n in said if n < 262) == b"".join(
        whole[n] for n in text if n < 262
    )
    assert said.count(262) == said.count(263) == 50
    assert said == speller.vary(text, Random(0)) != speller.vary(text, Random(1))
    assert len(text) < len(said) < 2 * len(text)


def test_the_longest_parts_are_taken() -> None:
    speller = spelling(b"the", b"th", b"heart", b"he", b"art", b"hea")

    class Always(Random):
        """Takes every chance: pieces are spelled, and their parts once more."""

        def random(self) -> float:
            return 0.1

    said = {piece: bytes(speller.vary([piece], Always())) for piece in (ord("t"), 256, 257)}
    assert said == {ord("t"): b"t", 256: b"the", 257: b"th"}
    # hea, r, t; and hea as he, a.
    assert speller.vary([258], Always()) == [259, *b"art"]
