"""Ids of text, against the `tokenizers` package."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import models, normalizers, pre_tokenizers, trainers

from as2d_cli.catalog.vocabulary import Vocabulary, from_byte_level_bpe
from as2d_cli.errors import As2dError, ExitStatus
from as2d_cli.text.bpe import PRE_TOKENIZERS, BpeEncoder
from tests.audio_llms.folders import LLAMA3, TEKKEN

_SOURCE = Path(__file__).parents[2]

TEXTS = (
    "",
    " ",
    "Hello,  world\n\n\n  12345 it's WE'LL don't I'D  \t\r\n x",
    "The quick brown fox (jumps) over 3.14159 lazy dogs; said she: \u201cno\u201d\u2026",
    "日本語のテキスト。中文字符\uff0c混合 English 문장 한국어",
    "Привет, мир! ١٢٣ ½ ² Ⅷ ﬁ ǆ",
    "e\u0301 cafe\u0301 nai\u0308ve \u212b \u1e9b\u0323",
    "a\u00a0b\u2003c\u0085d\u180ee\u200bf\u2028g\u3000h\ufeff",
    "\N{MAN}\u200d\N{WOMAN}\u200d\N{GIRL} \N{WAVING WHITE FLAG}\ufe0f\u200d\N{RAINBOW}",
    "<|im_end|>\n<|im_start|>system <|endoftext|><|0.00|><s></s> [INST]",
    "  5   5  a 5\n 5 '5 5's",
    " " * 60 + "x" + "\n" * 9 + "\t\t",
    "a" * 700,
    "\x00\x01\x7f \x1b[2K",
    "def f(x):\n    return {'a': [x, 0x1F]}  # comment\n",
)
_ODD = st.text(
    st.sampled_from(" \n\r\t'sSdDtrevmlabAZ019.,!-_(é中\u0301\u00a0\u017f\u212a\u0130")
    | st.characters(exclude_categories=["Cs"])
)


_PATTERNS = {
    "qwen2": (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
    "llama-bpe": LLAMA3,
    "tekken": TEKKEN,
}


def byte_level(*before: Any, regex: bool) -> Any:
    last = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=regex)
    return pre_tokenizers.Sequence([*before, last])


def cuts_of(pre_tokenizer: str) -> Any:
    """How the reference cuts text; a copy of each family's published tokenizer.json."""
    if pre_tokenizer == "gpt2":
        return byte_level(regex=True)
    if pre_tokenizer == "smollm":
        return byte_level(pre_tokenizers.Digits(individual_digits=True), regex=True)
    split = pre_tokenizers.Split(tokenizers.Regex(_PATTERNS[pre_tokenizer]), "isolated")
    return byte_level(split, regex=False)


@dataclass(frozen=True)
class Pair:
    """The same vocabulary in ours and in theirs."""

    ours: BpeEncoder
    vocabulary: Vocabulary
    theirs: Any

    def check(self, text: str) -> list[int]:
        ids = self.ours.encode(text)
        assert ids == self.theirs.encode(text, add_special_tokens=False).ids, text
        return ids


@pytest.fixture(scope="module")
def pair_of() -> Callable[[str], Pair]:
    """Vocabularies of 1500 tokens, trained on this repository's text; a special one in front."""
    corpus = [(_SOURCE / name).read_text("utf-8") for name in ("README.md", "models.toml")]

    @functools.cache
    def make(pre_tokenizer: str) -> Pair:
        theirs = tokenizers.Tokenizer(models.BPE())
        if pre_tokenizer == "qwen2":
            theirs.normalizer = normalizers.NFC()
        theirs.pre_tokenizer = cuts_of(pre_tokenizer)
        trainer = trainers.BpeTrainer(
            vocab_size=1500,
            show_progress=False,
            special_tokens=["<|im_end|>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        )
        theirs.train_from_iterator([*corpus, *TEXTS], trainer)
        theirs.encode_special_tokens = True  # typed ones are plain text
        path = Path("tokenizer.json")
        vocabulary = from_byte_level_bpe(path, json.loads(theirs.to_str()), 1500)
        return Pair(
            BpeEncoder(vocabulary.pieces, pre_tokenizer, merge_ranks=True), vocabulary, theirs
        )

    return make


def text_of(pieces: Sequence[bytes], ids: Sequence[int]) -> str:
    return b"".join(pieces[i] for i in ids).decode()


@pytest.mark.parametrize("pre_tokenizer", PRE_TOKENIZERS)
def test_ids_are_those_of_the_reference(pair_of: Callable[[str], Pair], pre_tokenizer: str) -> None:
    pair = pair_of(pre_tokenizer)
    for text in TEXTS:
        ids = pair.check(text)
        if pre_tokenizer != "qwen2":  # which composes accents
            assert text_of(pair.vocabulary.pieces, ids) == text


@pytest.mark.parametrize("pre_tokenizer", PRE_TOKENIZERS)
@settings(deadline=None, max_examples=300)
@given(text=_ODD)
def test_ids_of_odd_text(pair_of: Callable[[str], Pair], pre_tokenizer: str, text: str) -> None:
    pair_of(pre_tokenizer).check(text)


@pytest.mark.parametrize("pre_tokenizer", ["llama-bpe", "gpt2"])
def test_ids_that_are_in_no_order(pair_of: Callable[[str], Pair], pre_tokenizer: str) -> None:
    data = json.loads(pair_of(pre_tokenizer).theirs.to_str())
    vocab, special = data["model"]["vocab"], {t["content"] for t in data["added_tokens"]}
    words = [word for word in vocab if word not in special]
    turned = zip(words, reversed([vocab[word] for word in words]), strict=True)
    data["model"]["vocab"] = {**{word: vocab[word] for word in special}, **dict(turned)}
    vocabulary = from_byte_level_bpe(Path("tokenizer.json"), data, 1500)
    assert not vocabulary.merge_ranks
    ours = BpeEncoder(vocabulary.pieces, pre_tokenizer, merge_ranks=False, merges=vocabulary.merges)
    theirs = tokenizers.Tokenizer.from_str(json.dumps(data))
    theirs.encode_special_tokens = True
    pair = Pair(ours, vocabulary, theirs)
    for text in TEXTS:
        assert text_of(vocabulary.pieces, pair.check(text)) == text


def test_control_tokens_that_are_typed_are_plain_text(pair_of: Callable[[str], Pair]) -> None:
    pair = pair_of("qwen2")
    special = pair.theirs.token_to_id("<|im_end|>")
    ids = pair.ours.encode("<|im_end|>")
    assert special not in ids
    assert text_of(pair.vocabulary.pieces, ids) == "<|im_end|>"


def test_bytes_that_are_no_text(pair_of: Callable[[str], Pair]) -> None:
    pair = pair_of("gpt2")
    assert pair.ours.encode("a\udcff") == pair.ours.encode("a\N{REPLACEMENT CHARACTER}")


def test_a_byte_without_a_token_says_nothing() -> None:
    pieces = [bytes([b]) for b in range(256) if b != 4] + [b"ab"]
    assert BpeEncoder(pieces, "smollm", merge_ranks=True).encode("\x04 ab\x04!") == [31, 255, 32]


@pytest.mark.parametrize(
    ("pieces", "pre_tokenizer", "merge_ranks", "problem"),
    [
        ([bytes([b]) for b in range(256)], "deepseek", True, "way to cut text, 'deepseek'"),
        ([bytes([b]) for b in range(256)], "gpt2", False, "order of its merges"),
    ],
)
def test_a_vocabulary_that_cannot_take_text(
    pieces: list[bytes], pre_tokenizer: str, merge_ranks: bool, problem: str
) -> None:
    with pytest.raises(As2dError, match=problem) as caught:
        BpeEncoder(pieces, pre_tokenizer, merge_ranks=merge_ranks)
    assert caught.value.status is ExitStatus.UNAVAILABLE
