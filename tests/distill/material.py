"""Small made-up models and windows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from as2d_cli.catalog import Bundle
from as2d_cli.catalog.graphs.head import POOL
from as2d_cli.catalog.graphs.whisper import Whisper
from as2d_cli.catalog.vocabulary import Vocabulary
from as2d_cli.catalog.weights.whisper import read_whisper
from as2d_cli.distill.cache import Cache
from tests.catalog.material import WIDTH, ct2_bytes, tokenizer, whisper_variables

Array = npt.NDArray[Any]

ENCODING_WIDTH = 64
"""Of targets; initial drafters are `WIDTH` wide, and so are their heads."""

END = 258
"""Of the tokenizer in `tests.catalog.material`; start is the next one."""

WORDS = (b" the", b" cat", b" sat", b" on", b" a", b" mat", b"th", b"at")


@dataclass
class Words:
    """What is looked at of a bundle where texts are cut."""

    path: Path
    pieces: tuple[bytes, ...]
    tokens: Mapping[str, int]
    vocabulary_file: str = "vocabulary.bin"
    id: str = "words"
    texts: dict[bytes, int] = field(init=False)

    def __post_init__(self) -> None:
        self.path.mkdir()
        self.vocabulary().write(self.path / self.vocabulary_file)
        self.texts = {piece: token for token, piece in enumerate(self.pieces) if piece}

    def vocabulary(self) -> Vocabulary:
        return Vocabulary(self.pieces, merge_ranks=False)

    def cut(self, *pieces: str) -> list[int]:
        """The tokens of these pieces."""
        return [self.texts[piece.encode()] for piece in pieces]

    def text(self, tokens: Sequence[int]) -> bytes:
        return b"".join(self.pieces[token] for token in tokens)

    @property
    def bundle(self) -> Bundle:
        return cast(Bundle, self)


def target_words(folder: Path) -> Words:
    """Specials first, so that no id is the same as of the other one."""
    single = tuple(bytes([b]) for b in range(256))
    return Words(folder / "target", (b"", b"", *WORDS, b" catch", *single), {"end": 1})


def init_words(folder: Path) -> Words:
    """Bytes, words, and specials in an order of their own."""
    single = tuple(bytes([b]) for b in range(256))
    tokens = {"end": 264, "start": 265, "no_timestamps": 267}
    return Words(folder / "init", (*single, *reversed(WORDS), b"", b"", b"", b"", b" q"), tokens)


def init_whisper(folder: Path, seed: int = 0) -> Whisper:
    """Random weights, as read from a file."""
    path = folder / "model.bin"
    path.write_bytes(ct2_bytes(whisper_variables(seed=seed)))
    return read_whisper(path)


def speaking_files(tokens: int, *, width: int = WIDTH, seed: int = 0) -> dict[str, bytes]:
    """The files of a small Whisper that says so many tokens of any window, or a few less."""
    variables = whisper_variables(seed=seed, width=width)
    # From that position on, all that the last layer norm leaves points to the end.
    towards_end = np.where(np.arange(width) % 2, 0.5, -0.5)
    variables["decoder/embeddings/weight"][END] = towards_end
    variables["decoder/position_encodings/encodings"][tokens + 1 :] += (60 * towards_end).astype(
        np.float16
    )
    return {
        "model.bin": ct2_bytes(variables),
        "config.json": json.dumps({"suppress_ids": [1], "suppress_ids_begin": [END]}).encode(),
        "tokenizer.json": json.dumps(tokenizer()).encode(),
    }


def windows(
    folder: Path,
    texts: Sequence[Sequence[int]],
    *,
    vocabulary: int,
    held_out: Sequence[int] = (),
    lines: Sequence[int] = (64,),
    width: int = WIDTH,
) -> Cache:
    """A cache of windows in which the encoder spells ``texts``, a token in every four lines.

    Args:
        texts: tokens below ``vocabulary``, the target's.
        held_out: which windows are.
        lines: how many there are of each, in turns.
    """
    random = np.random.default_rng(0)
    table = random.standard_normal((vocabulary, 4, ENCODING_WIDTH))
    linear = random.standard_normal((ENCODING_WIDTH, width)) * ENCODING_WIDTH**-0.5
    cache = Cache(folder / "cache", ENCODING_WIDTH, width, {})
    for index, text in enumerate(texts):
        count = lines[index % len(lines)]
        encoding = random.standard_normal((count, ENCODING_WIDTH)) * 0.1
        for place, token in enumerate(text):
            encoding[4 * place : 4 * place + 4] += table[token]
        hints = encoding[: count // POOL * POOL].reshape(-1, POOL, ENCODING_WIDTH).mean(1) @ linear
        cache.add(
            f"{index:03}.wav#0",
            index in held_out,
            count / 50,
            text,
            encoding.astype(np.float16),
            hints.astype(np.float16),
        )
    return cache
