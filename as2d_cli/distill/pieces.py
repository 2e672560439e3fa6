"""The head's own vocabulary: a part of the initial drafter's, and texts cut into it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from as2d_cli import _native
from as2d_cli.catalog.bundle import Bundle
from as2d_cli.catalog.vocabulary import Vocabulary

__all__ = ["Cutter", "Pieces", "Speller", "choose_pieces"]

_LEAST_WRITTEN = 3
"""Times that a letter is in the texts for the sketch to learn it."""


@dataclass(frozen=True)
class Pieces:
    """What the head can say.

    Attributes:
        ids: of the initial drafter's tokens, in the head's order: text first, then start, no
            timestamps and end.
        vocabulary: the bytes of each.
        letters: those of single bytes that texts are made of, by their ids among these.
    """

    ids: tuple[int, ...]
    vocabulary: Vocabulary
    letters: tuple[int, ...]

    @property
    def start(self) -> int:
        """Id of the first token of every prompt."""
        return len(self.ids) - 3

    @property
    def no_timestamps(self) -> int:
        """Id of the last token of every prompt."""
        return len(self.ids) - 2

    @property
    def end(self) -> int:
        """Id of the token after the last one."""
        return len(self.ids) - 1

    @property
    def prompt(self) -> list[int]:
        """What every text begins after."""
        return [self.start, self.no_timestamps]


def choose_pieces(
    texts: Iterable[Sequence[int]], target: Bundle, init: Bundle, count: int
) -> Pieces:
    """The ``count`` tokens of ``init`` that say the most of the texts, and all single bytes.

    Tokens that no text has come after those in them, the earliest merges first: they are the most
    frequent ones of the language.

    Args:
        texts: tokens of ``target``.
    """
    cross = _native.Retokenizer(*(m.path / m.vocabulary_file for m in (target, init)))
    whole = target.vocabulary().pieces
    uses: Counter[int] = Counter()
    written: Counter[int] = Counter()
    for text in texts:
        uses.update(cross.cut(list(text)))
        written.update(b"".join(whole[token] for token in text))
    pieces = init.vocabulary().pieces
    text_ids = [i for i, piece in enumerate(pieces) if piece]
    ranked = sorted(text_ids, key=lambda i: (len(pieces[i]) > 1, -uses[i], i))
    special = [init.tokens[name] for name in ("start", "no_timestamps", "end")]
    # In the initial drafter's order, so that the choice is easy to compare with another.
    chosen = (*sorted(ranked[: count - len(special)]), *special)
    vocabulary = tuple(b"" if i in special else pieces[i] for i in chosen)
    letters = tuple(
        i
        for i, piece in enumerate(vocabulary)
        if len(piece) == 1 and written[piece[0]] >= _LEAST_WRITTEN
    )
    return Pieces(chosen, Vocabulary(vocabulary, merge_ranks=False), letters)


class Speller:
    """Says some pieces of a text by shorter ones.

    The pieces were chosen so that the texts to train on consist of whole ones; of other texts one
    token in thirty is not there, and a head that never saw a word spelled out loses the thread at
    each (the idea of BPE-dropout, Provilkov et al. 2020).
    """

    _SPELLED = 0.12  # share of the pieces that are
    _AGAIN = 0.2  # of their parts that are spelled out themselves

    def __init__(self, pieces: Pieces) -> None:
        self._text = pieces.vocabulary.pieces[: pieces.start]
        self._ids = {piece: i for i, piece in enumerate(self._text)}
        self._parts = [self._cut(p) if len(p) > 1 else [i] for i, p in enumerate(self._text)]

    def vary(self, tokens: Sequence[int], random: Random) -> list[int]:
        """A text of pieces, its prompt and end as they are."""
        said: list[int] = []
        for token in tokens:
            for part in self._spelled(token, self._SPELLED, random):
                said += [part] if part == token else self._spelled(part, self._AGAIN, random)
        return said

    def _spelled(self, token: int, chance: float, random: Random) -> list[int]:
        if token >= len(self._parts) or len(self._text[token]) == 1 or random.random() >= chance:
            return [token]
        return self._parts[token]

    def _cut(self, whole: bytes) -> list[int]:
        """The longest piece that begins it, but is not all of it; and so on to single bytes."""
        parts: list[int] = []
        left = whole
        while left:
            most = len(left) - (left == whole)
            length = next(n for n in range(most, 0, -1) if left[:n] in self._ids)
            parts.append(self._ids[left[:length]])
            left = left[length:]
        return parts


class Cutter:
    """Cuts the target's texts into pieces, and pieces into the target's tokens."""

    def __init__(self, pieces: Pieces, target: Bundle, folder: Path) -> None:
        """Write the head's vocabulary into ``folder`` and take both from their files."""
        path = folder / "pieces.bin"
        pieces.vocabulary.write(path)
        whole = target.path / target.vocabulary_file
        self._bytes = target.vocabulary().pieces
        self._letters = {pieces.vocabulary.pieces[i]: n for n, i in enumerate(pieces.letters)}
        self._there = _native.Retokenizer(whole, path)
        self._back = _native.Retokenizer(path, whole)

    def pieces(self, text: Sequence[int]) -> list[int]:
        """Pieces of a text of the target's."""
        return self._there.cut(list(text))

    def letters(self, text: Sequence[int]) -> list[int]:
        """The sketch's letters of a text of the target's; those it does not know are left out."""
        whole = b"".join(self._bytes[token] for token in text)
        found = (self._letters.get(whole[i : i + 1]) for i in range(len(whole)))
        return [letter for letter in found if letter is not None]

    def target_tokens(self, text: Sequence[int]) -> list[int]:
        """The target's tokens of a text of pieces."""
        return self._back.cut(list(text))
