"""Drafts as the engine would have them, and what they are worth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from as2d_cli.catalog.graphs.head import POOL
from as2d_cli.catalog.vocabulary import Vocabulary
from as2d_cli.distill.cache import Cache
from as2d_cli.distill.pieces import Cutter, Pieces, choose_pieces
from tests.distill.material import ENCODING_WIDTH, init_whisper, init_words, target_words, windows

torch = pytest.importorskip("torch")

from as2d_cli.distill.batches import Batch  # noqa: E402
from as2d_cli.distill.drafting import (  # noqa: E402
    BUDGETS,
    Judge,
    draft_by_adapter,
    draft_by_sketch,
)
from as2d_cli.distill.network import AdapterNetwork, CtcNetwork  # noqa: E402

CONTEXT = 40
IDS = (*range(60, 160), 259, 265, 258)
LETTERS = tuple(range(0, 18, 2))
PIECES = Pieces(
    IDS, Vocabulary((*(b"x" for _ in range(100)), b"", b"", b""), merge_ranks=False), LETTERS
)
POSITIONS = (16, 48, 32)


@pytest.fixture
def network(tmp_path: Path) -> AdapterNetwork:
    torch.manual_seed(0)
    made = AdapterNetwork(
        ENCODING_WIDTH,
        init_whisper(tmp_path),
        IDS,
        len(LETTERS),
        [0, 1],
        blocks=1,
        context=CONTEXT,
    )
    made.embeddings.data[PIECES.end] = 0  # is never the likeliest
    return made


@pytest.fixture(autouse=True)
def whole_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """No bfloat16, of which one order of sums and another give different tokens."""
    monkeypatch.setattr(torch, "autocast", lambda *_: nullcontext())


def batch_of(*positions: int) -> Batch:
    torch.manual_seed(1)
    longest = max(positions)
    mask = torch.arange(longest)[None] < torch.tensor(positions)[:, None]
    encoding = torch.randn(len(positions), POOL * longest, ENCODING_WIDTH)
    nothing = torch.zeros(0)
    filled = encoding * mask.repeat_interleave(POOL, 1)[..., None]
    return Batch(filled, mask, nothing, mask, nothing, nothing, nothing)


def one_of(batch: Batch, index: int) -> Batch:
    count = int(batch.mask[index].sum())
    nothing = torch.zeros(0)
    mask = batch.mask[index : index + 1, :count]
    encoding = batch.encoding[index : index + 1, : POOL * count]
    return Batch(encoding, mask, nothing, mask, nothing, nothing, nothing)


def greedy(network: AdapterNetwork, batch: Batch, most: int) -> list[int]:
    """Without a cache, one window at a time."""
    network.eval()
    said: list[int] = []
    with torch.no_grad():
        audio = network.audio(network.memory(batch.encoding, batch.mask))
        while len(said) < most:
            tokens = torch.tensor([[*PIECES.prompt, *said]])
            last = network.text(tokens, audio, batch.mask)[0][0, -1]
            allowed = [*range(PIECES.start), PIECES.end]
            token = max(allowed, key=lambda piece: float(last[piece]))
            if token == PIECES.end:
                break
            said.append(token)
    return said


def test_drafts_are_greedy_and_each_windows_own(network: AdapterNetwork) -> None:
    batch = batch_of(*POSITIONS)
    network.train()  # Dropout must not draft.
    drafts = draft_by_adapter(network, PIECES)(batch, [2.0, 2.0, 2.0])
    assert drafts == [greedy(network, one_of(batch, index), 26) for index in range(3)]
    assert len({tuple(draft) for draft in drafts}) == 3


def test_a_draft_is_no_longer_than_the_engine_lets_it_be(network: AdapterNetwork) -> None:
    drafts = draft_by_adapter(network, PIECES)(batch_of(*POSITIONS), [0.5, 3.0, 30.0])
    # 12 and 7 a second; and what the context has room for after the prompt.
    assert [len(draft) for draft in drafts] == [15, 33, CONTEXT - 2]


def end_after(network: AdapterNetwork, pieces: int) -> None:
    """From that place on, all that the last layer norm leaves points to the end."""
    towards = torch.where(torch.arange(network.positions.shape[1]) % 2 == 0, 0.5, -0.5)
    network.embeddings.data[PIECES.end] = towards
    network.positions.data[pieces + 1 :] += 60 * towards


def test_a_draft_ends_at_its_end(network: AdapterNetwork) -> None:
    end_after(network, 9)
    batch = batch_of(*POSITIONS)
    drafts = draft_by_adapter(network, PIECES)(batch, [9.0] * 3)
    assert drafts == [greedy(network, one_of(batch, index), 40) for index in range(3)]
    assert max(map(len, drafts)) == 9
    assert not any(PIECES.end in draft for draft in drafts)


def test_nothing_is_drafted_where_nothing_is_said(network: AdapterNetwork) -> None:
    end_after(network, 0)
    assert draft_by_adapter(network, PIECES)(batch_of(16, 16), [9.0, 9.0]) == [[], []]


def test_the_prompts_tokens_are_never_said(network: AdapterNetwork) -> None:
    network.embeddings.data[PIECES.start] = 50 * network.embeddings.data[0]
    network.embeddings.data[PIECES.no_timestamps] = -50 * network.embeddings.data[0]
    batch = batch_of(16)
    (draft,) = draft_by_adapter(network, PIECES)(batch, [1.0])
    assert draft == greedy(network, batch, 19)
    assert not set(draft) & set(PIECES.prompt)


@pytest.mark.parametrize("alone", [False, True])
def test_a_sketch_merges_repeats_and_drops_blanks(
    network: AdapterNetwork, alone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    sketch: Any = network.sketch
    drafter: Any = CtcNetwork(network.adapter, sketch) if alone else network
    said = torch.tensor(
        [[5, 5, 9, 9, 9, 7, 5, 5, 9, 5, 0, 9], [9, 9, 9, 9, 9, 9, 9, 4, 3, 3, 3, 3]]
    )
    logits = torch.nn.functional.one_hot(said, 10).float()
    monkeypatch.setattr(type(drafter.sketch), "forward", lambda *_: logits)
    # Two places a position; the second window ends after eight of them.
    drafts = draft_by_sketch(drafter, PIECES)(batch_of(6, 4), [1.0, 1.0])
    assert drafts == [[LETTERS[n] for n in (5, 7, 5, 5, 0)], [LETTERS[4]]]
    assert not drafter.training


@pytest.fixture
def judged(tmp_path: Path) -> tuple[Cache, Cutter, Any]:
    """Five windows of one to twenty words, with the shortest ones last."""
    target, init = target_words(tmp_path), init_words(tmp_path)
    words = target.cut(*(" the", " cat", " sat", " on", " a", " mat") * 4)
    texts = [words[:count] for count in (20, 13, 6, 2, 1)]
    cache = windows(tmp_path, texts, vocabulary=300, lines=(1280, 640, 320, 128, 64))
    pieces = choose_pieces(texts, target.bundle, init.bundle, 300)
    return cache, Cutter(pieces, target.bundle, tmp_path), target.bundle


def saying(
    cache: Cache, cutter: Cutter, change: Callable[[list[int]], list[int]]
) -> tuple[Callable[[Batch, Sequence[float]], list[list[int]]], list[int]]:
    """A drafter that knows the texts and says what ``change`` makes of them; sizes of batches."""
    texts = {entry.seconds: list(entry.tokens) for entry in cache.entries}
    sizes: list[int] = []

    def draft(batch: Batch, seconds: Sequence[float]) -> list[list[int]]:
        sizes.append(len(batch.mask))
        assert [int(mask.sum()) for mask in batch.mask] == [round(s * 50) // POOL for s in seconds]
        return [cutter.pieces(change(texts[s])) for s in seconds]

    return draft, sizes


@pytest.mark.parametrize("at_once", [1, 2, 24])
def test_a_perfect_draft_is_worth_all_it_may_be(
    judged: tuple[Cache, Cutter, Any], at_once: int
) -> None:
    cache, cutter, target = judged
    draft, sizes = saying(cache, cutter, lambda text: text)
    found = Judge(cache, cache.entries, cutter, target, at_once).tokens_per_step(draft)
    counts = [len(entry.tokens) for entry in cache.entries]
    # The first token is the prompt's; the end is one more. A step says its candidates and one.
    assert found == {b: sum(counts) / sum(-(-n // (b + 1)) for n in counts) for b in BUDGETS}
    assert list(found) == [4, 8, 16]
    assert max(sizes) == min(at_once, 5) and sum(sizes) == 5


def test_no_draft_is_worth_one_token_a_step(judged: tuple[Cache, Cutter, Any]) -> None:
    cache, cutter, target = judged
    judge = Judge(cache, cache.entries, cutter, target)
    assert judge.tokens_per_step(saying(cache, cutter, lambda _: [])[0]) == dict.fromkeys(
        BUDGETS, 1.0
    )


def test_half_a_draft_is_worth_less_than_a_whole(judged: tuple[Cache, Cutter, Any]) -> None:
    cache, cutter, target = judged
    judge = Judge(cache, cache.entries, cutter, target)
    whole = judge.tokens_per_step(saying(cache, cutter, lambda text: text)[0])
    half = judge.tokens_per_step(saying(cache, cutter, lambda text: text[: len(text) // 2])[0])
    for budget in BUDGETS:
        assert 1.0 < half[budget] < whole[budget]


def test_nothing_to_judge_by_is_worth_nothing(judged: tuple[Cache, Cutter, Any]) -> None:
    cache, cutter, target = judged
    draft, sizes = saying(cache, cutter, lambda text: text)
    assert Judge(cache, [], cutter, target).tokens_per_step(draft) == dict.fromkeys(BUDGETS, 0.0)
    assert sizes == []
