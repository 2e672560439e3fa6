"""Lets a network draft as the engine would let it, and counts what the drafts are worth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from as2d_cli import _native
from as2d_cli.catalog.bundle import Bundle
from as2d_cli.catalog.graphs.head import PLACES
from as2d_cli.distill.batches import NO_TEXT, Batch, make_batch
from as2d_cli.distill.cache import Cache, Entry
from as2d_cli.distill.network import AdapterNetwork, CtcNetwork, TextCache
from as2d_cli.distill.pieces import Cutter, Pieces

__all__ = ["BUDGETS", "Judge", "draft_by_adapter", "draft_by_sketch", "most_tokens"]

BUDGETS = (4, 8, 16)
"""Most candidates of a verify step, for which a checkpoint is judged; the middle one chooses."""

# As native/src/models/whisper.cc ends a draft.
_TOKENS_PER_SECOND = 7
_SPARE_TOKENS = 12


def most_tokens(seconds: float) -> int:
    """Of a text of so much audio: one that says more is in a loop."""
    return int(_SPARE_TOKENS + _TOKENS_PER_SECOND * seconds)


Draft = Callable[[Batch, Sequence[float]], list[list[int]]]
"""Pieces drafted for every window of a batch, given its seconds."""


@dataclass(frozen=True)
class Judge:
    """Held-out windows, what the target says in them, and what it takes to judge drafts of them."""

    cache: Cache
    entries: Sequence[Entry]
    cutter: Cutter
    target: Bundle
    windows_at_once: int = 50

    def tokens_per_step(self, draft: Draft) -> dict[int, float]:
        """Tokens that the target commits in a verify step, by budget, with drafts all ready."""
        replay = _native.Replay(self.target.path / self.target.vocabulary_file)
        end = self.target.tokens["end"]
        steps = dict.fromkeys(BUDGETS, 0)
        committed = 0
        ordered = sorted(self.entries, key=lambda entry: entry.lines)
        for start in range(0, len(ordered), self.windows_at_once):
            entries = ordered[start : start + self.windows_at_once]
            batch = make_batch(self.cache, entries, [NO_TEXT] * len(entries))
            drafts = draft(batch, [entry.seconds for entry in entries])
            for entry, pieces in zip(entries, drafts, strict=True):
                committed += len(entry.tokens)
                tokens = self.cutter.target_tokens(pieces)
                for budget in BUDGETS:
                    steps[budget] += replay.steps(list(entry.tokens), tokens, end, budget)
        return {budget: committed / max(count, 1) for budget, count in steps.items()}


def draft_by_adapter(network: AdapterNetwork, pieces: Pieces) -> Draft:
    """Greedy decoding, every window after its own history."""

    def draft(batch: Batch, seconds: Sequence[float]) -> list[list[int]]:
        network.eval()
        windows = len(batch.mask)
        most = [most_tokens(s) for s in seconds]
        said: list[list[int]] = [[] for _ in range(windows)]
        open_ = set(range(windows))
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            audio = network.audio(network.memory(batch.encoding, batch.mask))
            tokens = torch.tensor([pieces.prompt] * windows)
            past: TextCache | None = None
            while open_ and len(said[0]) + 2 < len(network.positions):
                logits, past = _text(network, tokens, audio, batch.mask, past)
                # The prompt's tokens are never said.
                logits[:, -1, pieces.start : pieces.end] = -torch.inf
                chosen = logits[:, -1].argmax(-1)
                for window in range(windows):
                    token = int(chosen[window])
                    said[window].append(token)
                    if window not in open_:
                        continue
                    if token == pieces.end or len(said[window]) >= most[window]:
                        open_.discard(window)
                tokens = chosen[:, None]
        return [_until(text, pieces.end, most[i]) for i, text in enumerate(said)]

    return draft


def draft_by_sketch(network: AdapterNetwork | CtcNetwork, pieces: Pieces) -> Draft:
    """The likeliest letter of every place: repeats are one, blanks are none."""

    def draft(batch: Batch, seconds: Sequence[float]) -> list[list[int]]:
        network.eval()
        sketch = network.sketch
        assert sketch is not None
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            chosen = sketch(network.memory(batch.encoding, batch.mask)).argmax(-1)
        texts = []
        for line, mask in zip(chosen, batch.mask, strict=True):
            merged = torch.unique_consecutive(line[: int(mask.sum()) * PLACES]).tolist()
            texts.append([pieces.letters[n] for n in merged if n < len(pieces.letters)])
        return texts

    return draft


def _text(
    network: AdapterNetwork,
    tokens: torch.Tensor,
    audio: list[tuple[torch.Tensor, torch.Tensor]],
    mask: torch.Tensor,
    past: TextCache | None,
) -> tuple[torch.Tensor, TextCache]:
    logits, cache = network.text(tokens, audio, mask, past)
    return logits.float(), cache


def _until(text: list[int], end: int, most: int) -> list[int]:
    text = text[:most]
    return text[: text.index(end)] if end in text else text
