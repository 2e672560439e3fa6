"""Training: that it learns, that it can be interrupted, and which weights it keeps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from as2d_cli.catalog.vocabulary import Vocabulary
from as2d_cli.distill.cache import Cache
from as2d_cli.distill.pieces import Pieces
from as2d_cli.errors import As2dError, ExitStatus
from tests.distill.material import ENCODING_WIDTH, init_whisper, windows

torch = pytest.importorskip("torch")

from as2d_cli.distill import batches  # noqa: E402
from as2d_cli.distill.batches import NO_TEXT, Text  # noqa: E402
from as2d_cli.distill.drafting import draft_by_adapter  # noqa: E402
from as2d_cli.distill.network import AdapterNetwork, CtcNetwork  # noqa: E402
from as2d_cli.distill.training import Point, Schedule, Trainer  # noqa: E402

IDS = (*range(60, 70), 259, 265, 258)
VOCABULARY = Vocabulary((*(b"x" for _ in range(10)), b"", b"", b""), merge_ranks=False)
PIECES = Pieces(IDS, VOCABULARY, tuple(range(10)))
WINDOWS = 12

Weights = dict[str, Any]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three batches a pass."""
    monkeypatch.setattr(batches, "_MOST_WINDOWS", 4)


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    """Windows whose encodings spell one of ten tokens after another."""
    texts = [[(3 * w + 7 * p * p + p) % 10 for p in range(6)] for w in range(WINDOWS)]
    return windows(tmp_path, texts, vocabulary=10)


def weights_of(network: Any) -> Weights:
    return {name: value.detach().clone() for name, value in network.state_dict().items()}


def same(one: Weights, other: Weights) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@dataclass
class Judging:
    """A judge that finds what it is told to, and what it was shown.

    Attributes:
        worth: by pass, of the middle budget; the others say the opposite. Without it, the worth is
            a number that changes with the weights' last bits.
    """

    worth: tuple[float, ...] = ()
    shown: list[Weights] = field(default_factory=list)

    def tokens_per_step(self, draft: Any) -> dict[int, float]:
        if callable(draft):  # the sketch's
            return {8: 0.5}
        self.shown.append(draft)
        if self.worth:
            found = self.worth[(len(self.shown) - 1) % len(self.worth)]
        else:
            found = 1 + float(sum(w.double().abs().sum() for w in draft.values())) % 1
        return {16: -found, 8: found, 4: -found}


def trainer(
    cache: Cache,
    folder: Path,
    judge: Any,
    schedule: Schedule,
    *,
    seed: int = 0,
    ctc: bool = False,
    draft: Callable[[Any], Any] = weights_of,
    facts: Any = None,
    entries: Any = None,
) -> Trainer:
    torch.manual_seed(7)
    folder.mkdir(exist_ok=True)
    network: Any = AdapterNetwork(
        ENCODING_WIDTH, init_whisper(folder), IDS, 10, [0, 1], blocks=1, context=24
    )
    if ctc:
        network = CtcNetwork(network.adapter, network.sketch)
    entries = cache.entries if entries is None else entries
    texts = [Text([*PIECES.prompt, *entry.tokens, PIECES.end], entry.tokens) for entry in entries]
    return Trainer(
        network, PIECES, cache, entries, texts, judge, draft, schedule, folder, seed, facts or {}
    )


def without_seconds(curve: list[Point]) -> list[str]:
    return [repr(replace(point, seconds=0.0)) for point in curve]


SCHEDULE = Schedule(2, 3)


@dataclass
class Whole:
    """A run that was not interrupted."""

    folder: Path
    told: list[Point]
    curve: list[str]
    final: Weights
    shown: list[Weights]

    def is_as(self, folder: Path, run: Trainer) -> bool:
        """The other run ended at the same curve, the same best weights and the same last ones."""
        here, there = (
            torch.load(f / "checkpoint.pt", weights_only=True) for f in (self.folder, folder)
        )
        return (
            without_seconds(run.curve) == self.curve
            and same(weights_of(run.network), self.final)
            and same(here["network"], there["network"])
            and same(here["mean"], there["mean"])
        )


def whole_run(cache: Cache, folder: Path, **more: Any) -> Whole:
    judge = Judging()
    told: list[Point] = []
    run = trainer(cache, folder, judge, SCHEDULE, **more)
    run.train(told.append)
    return Whole(folder, told, without_seconds(run.curve), weights_of(run.network), judge.shown)


def test_every_pass_is_told(cache: Cache, tmp_path: Path) -> None:
    whole = whole_run(cache, tmp_path / "a")
    assert [(p.passes, p.stage) for p in whole.told] == [
        (0, "ridge"),
        (1, "adapter"),
        (2, "adapter"),
        (3, "tune"),
        (4, "tune"),
        (5, "tune"),
    ]
    assert math.isnan(whole.told[0].loss)
    assert all(math.isfinite(point.loss) for point in whole.told[1:])
    seconds = [point.seconds for point in whole.told]
    assert seconds[0] == 0 < seconds[1]
    assert seconds == sorted(seconds)
    assert without_seconds(whole.told) == whole.curve


@pytest.mark.parametrize("ctc", [False, True])
def test_the_adapter_alone_is_trained_first(cache: Cache, tmp_path: Path, ctc: bool) -> None:
    shown = whole_run(cache, tmp_path / "a", ctc=ctc).shown
    changed = [
        {name for name in before if not torch.equal(before[name], after[name])}
        for before, after in pairwise(shown)
    ]
    assert changed[0] and all(name.startswith("adapter.") for name in changed[0] | changed[1])
    assert any(name.startswith("sketch.") for name in changed[2])
    known = [name for name in changed[2] if not name.startswith(("adapter.", "sketch."))]
    assert ctc or known


@pytest.mark.parametrize("ctc", [False, True])
def test_an_interrupted_run_ends_at_the_same_weights(
    cache: Cache, tmp_path: Path, ctc: bool
) -> None:
    whole = whole_run(cache, tmp_path / "whole", ctc=ctc)
    folder = tmp_path / "parts"

    def interrupt(_: Point) -> None:
        raise KeyboardInterrupt

    # After every pass: each run does one.
    for done in range(6):
        run = trainer(cache, folder, Judging(), SCHEDULE, ctc=ctc)
        assert without_seconds(run.curve) == whole.curve[:done]
        with pytest.raises(KeyboardInterrupt):
            run.train(interrupt)
    run = trainer(cache, folder, Judging(), SCHEDULE, ctc=ctc)
    told: list[Point] = []
    run.train(told.append)
    assert told == []
    assert whole.is_as(folder, run)


def test_a_pass_that_was_cut_off_is_done_again(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = whole_run(cache, tmp_path / "whole")
    made = batches.make_batch
    for stop in (2, 11):  # the second batch of the first pass, and of the last one but one
        left = iter(range(stop))

        def interrupted(*args: Any, left: Iterator[int] = left) -> Any:
            if next(left, None) is None:
                raise KeyboardInterrupt
            return made(*args)

        with monkeypatch.context() as patch:
            patch.setattr(batches, "make_batch", interrupted)
            with pytest.raises(KeyboardInterrupt):
                trainer(cache, tmp_path / "parts", Judging(), SCHEDULE).train(lambda _: None)
    run = trainer(cache, tmp_path / "parts", Judging(), SCHEDULE)
    run.train(lambda _: None)
    assert whole.is_as(tmp_path / "parts", run)


def test_cut_off_while_the_checkpoint_is_written(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = whole_run(cache, tmp_path / "whole")
    save = torch.save

    def cut_off(values: Any, path: Path) -> None:
        if "checkpoint" in path.name and values["passes"] == 2:
            path.write_bytes(b"half")
            raise KeyboardInterrupt
        save(values, path)

    with monkeypatch.context() as patch:
        patch.setattr(torch, "save", cut_off)
        with pytest.raises(KeyboardInterrupt):
            trainer(cache, tmp_path / "parts", Judging(), SCHEDULE).train(lambda _: None)
    run = trainer(cache, tmp_path / "parts", Judging(), SCHEDULE)
    run.train(lambda _: None)
    assert whole.is_as(tmp_path / "parts", run)


def test_another_seed_trains_otherwise(cache: Cache, tmp_path: Path) -> None:
    whole = whole_run(cache, tmp_path / "a")
    assert same(whole_run(cache, tmp_path / "b").shown[-1], whole.shown[-1])
    assert not same(whole_run(cache, tmp_path / "c", seed=1).shown[-1], whole.shown[-1])


@pytest.mark.parametrize("best", [0, 2, 5])
def test_the_best_at_the_middle_budget_is_kept(cache: Cache, tmp_path: Path, best: int) -> None:
    worth = [1.0, 1.5, 1.5, 1.2, 1.4, 1.1]
    worth[best] = 2.0
    judge = Judging(tuple(worth))
    run = trainer(cache, tmp_path / "a", judge, SCHEDULE)
    run.train(lambda _: None)
    assert same(weights_of(run.network), judge.shown[best])
    assert [point.tokens_per_step[8] for point in run.curve] == worth


def test_of_equals_the_first_is_kept(cache: Cache, tmp_path: Path) -> None:
    judge = Judging((1.0, 2.0, 1.5, 2.0, 2.0, 1.0))
    run = trainer(cache, tmp_path / "a", judge, SCHEDULE)
    run.train(lambda _: None)
    assert same(weights_of(run.network), judge.shown[1])


def test_the_best_of_an_earlier_run_is_kept(cache: Cache, tmp_path: Path) -> None:
    def until_second(point: Point) -> None:
        if point.passes == 2:
            raise KeyboardInterrupt

    first, rest = Judging((1.0, 3.0, 1.0)), Judging((2.0,))
    with pytest.raises(KeyboardInterrupt):
        trainer(cache, tmp_path / "a", first, SCHEDULE).train(until_second)
    run = trainer(cache, tmp_path / "a", rest, SCHEDULE)
    run.train(lambda _: None)
    assert same(weights_of(run.network), first.shown[1])


def test_what_is_judged_is_the_running_mean(cache: Cache, tmp_path: Path) -> None:
    judge, tuned = Judging(), []
    run = trainer(cache, tmp_path / "a", judge, SCHEDULE)
    run.train(lambda point: tuned.append(weights_of(run.network)))
    assert same(judge.shown[0], tuned[0])
    for index in range(1, 6):
        assert not same(judge.shown[index], tuned[index])
        # It lies between where it was and where the weights are.
        name = "norm.weight" if index > 2 else "adapter.join.weight"
        before, mean, now = judge.shown[index - 1][name], judge.shown[index][name], tuned[index]
        assert (mean - before).abs().sum() < (now[name] - before).abs().sum() * 1.5


def test_it_learns(cache: Cache, tmp_path: Path) -> None:
    said: list[int] = []
    measured: list[int] = []
    batch = batches.make_batch(cache, cache.entries, [NO_TEXT] * WINDOWS)

    class Counting:
        """Tokens of all windows that are drafted right."""

        def tokens_per_step(self, draft: Any) -> dict[int, float]:
            measured.append(0)
            if len(measured) % 2 == 0:  # the sketch's
                return {8: 0.5}
            drafts = draft(batch, [0.0] * WINDOWS)
            right = sum(
                a == b
                for text, entry in zip(drafts, cache.entries, strict=True)
                for a, b in zip(text, entry.tokens, strict=False)
            )
            said.append(right)
            return {4: 1.0, 8: 1.0 + right, 16: 1.0}

    run = trainer(
        cache,
        tmp_path / "a",
        Counting(),
        Schedule(3, 12, adapter_rate=3e-3, tune_rate=3e-3),
        draft=lambda network: draft_by_adapter(network, PIECES),
    )
    run.train(lambda _: None)
    loss = [point.loss for point in run.curve]
    assert loss[3] < loss[1]
    assert loss[15] < 0.8 * loss[4]
    # Of 72; by chance there are seven.
    assert said[0] < 15
    assert said[-1] > 2 * said[0]


def test_a_ctc_head_learns(cache: Cache, tmp_path: Path) -> None:
    run = trainer(
        cache,
        tmp_path / "a",
        Judging(),
        Schedule(2, 8, adapter_rate=3e-3, tune_rate=3e-3),
        ctc=True,
    )
    run.train(lambda _: None)
    loss = [point.loss for point in run.curve]
    assert loss[2] < loss[1]
    assert loss[10] < 0.8 * loss[3]


def test_a_checkpoint_of_something_else_is_refused(cache: Cache, tmp_path: Path) -> None:
    folder = tmp_path / "a"
    trainer(cache, folder, Judging(), Schedule(1, 0)).train(lambda _: None)
    for other in ({"facts": {"layers": [1]}}, {"entries": cache.entries[1:]}):
        with pytest.raises(As2dError) as caught:
            trainer(cache, folder, Judging(), SCHEDULE, **other)
        assert str(caught.value) == (
            f"{folder / 'checkpoint.pt'}: is of another head or of other recordings; "
            "name another --work folder, or remove it to train anew"
        )
        assert caught.value.status == ExitStatus.USAGE


@pytest.mark.parametrize("file", ["checkpoint.pt", "best.pt"])
@pytest.mark.parametrize("content", [b"", b"no weights", None])
def test_a_damaged_checkpoint_is_told_of(
    cache: Cache, tmp_path: Path, file: str, content: bytes | None
) -> None:
    folder = tmp_path / "a"
    trainer(cache, folder, Judging(), Schedule(1, 0)).train(lambda _: None)
    path = folder / file
    path.write_bytes(path.read_bytes()[:-100] if content is None else content)
    with pytest.raises(As2dError) as caught:
        trainer(cache, folder, Judging(), Schedule(1, 0)).train(lambda _: None)
    assert str(caught.value) == (f"{path}: cannot be read; remove {folder / '*.pt'} to train anew")


def test_more_passes_go_on_from_the_checkpoint(cache: Cache, tmp_path: Path) -> None:
    trainer(cache, tmp_path / "a", Judging(), Schedule(1, 1)).train(lambda _: None)
    told: list[Point] = []
    trainer(cache, tmp_path / "a", Judging(), Schedule(1, 3)).train(told.append)
    assert [point.passes for point in told] == [3, 4]
