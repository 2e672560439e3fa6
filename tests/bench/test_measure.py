"""Runs of the real engine over scripted models, and the order of turns."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np

from as2d_cli.audio.windows import AudioWindow
from as2d_cli.bench.contenders import Contender
from as2d_cli.bench.dataset import Clip
from as2d_cli.bench.measure import Turn, decode, schedule
from as2d_cli.bench.units import Piece, Unit
from as2d_cli.decoding import Engine, Plan
from tests.fakes import LANGUAGES, FakeModel

TEXT = {0: tuple(range(10, 60)), 1: tuple(range(100, 130))}
TARGET = FakeModel("big", tuple(LANGUAGES), LANGUAGES)
AS2D = Contender("as2d", "oracle", 8)


def test_turns_alternate_by_unit_and_by_round() -> None:
    entered = {0: [0, 1, 2], 1: [0, 1, 2], 2: [0, 2]}
    assert list(schedule(3, 2, entered)) == [
        *(Turn(0, 0, c) for c in (0, 1, 2)),
        *(Turn(0, 1, c) for c in (2, 1, 0)),
        *(Turn(0, 2, c) for c in (0, 2)),
        *(Turn(1, 0, c) for c in (2, 1, 0)),
        *(Turn(1, 1, c) for c in (0, 1, 2)),
        *(Turn(1, 2, c) for c in (2, 0)),
    ]


def scripted() -> Engine:
    """A target that encodes for so long that a drafter which replays is done before it begins."""
    return Engine.scripted(TEXT, None, Plan("as2d", (0,), (0,), budget=4), encode_seconds=0.1)


def samples(index: int) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    return np.array([index], np.float32)


def test_a_replayed_text_is_accepted_whole() -> None:
    with scripted() as engine:
        engine.replay(TEXT)
        ran = decode(engine, AS2D, [samples(0), samples(1)], TARGET, "en")
    assert ran.texts == (TEXT[0], TEXT[1])
    assert ran.lost is None
    assert ran.counters.accepted == ran.counters.proposed
    assert ran.counters.exact


def test_the_method_and_the_budget_are_the_contenders() -> None:
    with scripted() as engine:
        engine.replay(TEXT)
        ran = decode(engine, Contender("target"), [samples(0)], TARGET, "en")
        assert ran.counters.verify_steps == {}
        ran = decode(engine, Contender("as2d", "oracle", 2), [samples(0)], TARGET, "en")
        assert max(ran.counters.verify_steps) <= 2
        ran = decode(engine, Contender("as2d", "oracle", 2, one_row=True), [], TARGET, "en")
        assert not ran.counters.exact


def test_spans_are_what_lanes_did_and_do_not_overlap() -> None:
    with scripted() as engine:
        engine.replay(TEXT)
        ran = decode(engine, AS2D, [samples(0), samples(1)], TARGET, "en")
    assert {span.lane for span in ran.spans} == {"target", "draft"}
    assert "idle" not in {span.activity for span in ran.spans}
    for lane in ("target", "draft"):
        spans = [span for span in ran.spans if span.lane == lane]
        assert {span.window for span in spans} == {0, 1}
        for before, after in pairwise(spans):
            assert before.begin <= before.end <= after.begin


def unit(*indexes: int) -> Unit:
    pieces = tuple(Piece(index, 100 * index, 10 + index) for index in indexes)
    return Unit(Clip(Path("a.wav")), 0, pieces, False, "en")


def windows(work: Unit) -> list[AudioWindow]:
    return [AudioWindow(p.index, p.first, np.full(p.count, 0.5, np.float32)) for p in work.pieces]
