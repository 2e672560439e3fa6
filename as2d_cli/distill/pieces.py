"""The head's own vocabulary: a part of the initial drafter's, and texts cut into it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from as2d_cli import _native
from as2d_cli.catalog.bundle import Bundle
from as2d_cli.catalog.vocabulary import Vocabulary

__all__ = ["Pieces", "choose_pieces"]


@dataclass(frozen=True)
class Pieces:
    """What the head can say.

    Attributes:
        ids: of the initial drafter's tokens, in the head's order: text first, then start, no
            timestamps and end.
        vocabulary: the bytes of each.
    """

    ids: tuple[int, ...]
    vocabulary: Vocabulary

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
    uses = Counter(token for text in texts for token in cross.cut(list(text)))
    pieces = init.vocabulary().pieces
    text_ids = [i for i, piece in enumerate(pieces) if piece]
    ranked = sorted(text_ids, key=lambda i: (len(pieces[i]) > 1, -uses[i], i))
    special = [init.tokens[name] for name in ("start", "no_timestamps", "end")]
    # In the initial drafter's order, so that the choice is easy to compare with another.
    chosen = (*sorted(ranked[: count - len(special)]), *special)
    vocabulary = tuple(b"" if i in special else pieces[i] for i in chosen)
    return Pieces(chosen, Vocabulary(vocabulary, merge_ranks=False))


class Cutter:
    """Cuts the target's texts into pieces, and pieces into the target's tokens."""

    def __init__(self, pieces: Pieces, target: Bundle, folder: Path) -> None:
        """Write the head's vocabulary into ``folder`` and take both from their files."""
        path = folder / "pieces.bin"
        pieces.vocabulary.write(path)
        whole = target.path / target.vocabulary_file
        self._there = _native.Retokenizer(whole, path)
        self._back = _native.Retokenizer(path, whole)

    def pieces(self, text: Sequence[int]) -> list[int]:
        """Pieces of a text of the target's."""
        return self._there.cut(list(text))

    def target_tokens(self, text: Sequence[int]) -> list[int]:
        """The target's tokens of a text of pieces."""
        return self._back.cut(list(text))
