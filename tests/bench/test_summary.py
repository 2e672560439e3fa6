"""Rows of known runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from as2d_cli.bench.advice import advice
from as2d_cli.bench.contenders import Contender
from as2d_cli.bench.dataset import Clip
from as2d_cli.bench.measure import Ran, Sample, Texts, Turn
from as2d_cli.bench.results import Results
from as2d_cli.bench.summary import summarise
from as2d_cli.bench.units import Piece, Unit
from as2d_cli.decoding import Counters
from tests.fakes import LANGUAGES, FakeModel, tokens_of

RIGHT: Texts = (tokens_of("right"),)
CONTENDERS = [
    Contender("target", reference=True, baseline=True),
    Contender("as2d", "x", 4),
    Contender("as2d", "x", 8),
    Contender("as2d", "oracle", 8, ceiling=True),
]


def counters(wall: float, **figures: Any) -> Counters:
    phases = dict.fromkeys(("encode", "prompt", "decode", "draft_encode", "draft_decode"), 0.0)
    known: dict[str, Any] = {
        "windows": 1,
        "committed": 5,
        "verify_steps": {},
        "alone_steps": 5,
        "proposed": 0,
        "accepted": 0,
        "realignments": 0,
        "drafted": 0,
        "stale_drafts": 0,
        "lead_total": 0,
        "seconds": phases | {"wall": wall},
        "lanes": {},
        "exact": True,
    }
    return Counters(**(known | figures))


class Bench:
    """Results that are filled by hand: one window of 10 s a unit, unit i is recording i."""

    def __init__(self, units: int, languages: dict[int, str] | None = None) -> None:
        target = FakeModel("big", tuple(LANGUAGES), LANGUAGES)
        self.results = Results(
            target,
            {"x": FakeModel("x")},
            CONTENDERS,
            [
                Unit(
                    Clip(Path(f"{i}.wav"), text="right"),
                    i,
                    (Piece(0, 0, 160_000),),
                    False,
                    (languages or {}).get(i, "en"),
                )
                for i in range(units)
            ],
            "window",
            1,
        )
        for unit in range(units):
            self.results.hear(unit, RIGHT)

    def ran(
        self,
        contender: int,
        unit: int,
        wall: float,
        texts: Texts = RIGHT,
        lost: str | None = None,
        repeat: int = 0,
        **figures: Any,
    ) -> None:
        samples = self.results.samples
        run = Ran(texts, counters(wall, **figures), lost, ())
        samples.append(Sample(Turn(repeat, unit, contender), len(samples), run))


def test_figures_of_one_row() -> None:
    bench = Bench(2)
    for unit, seconds in enumerate((4.0, 2.0)):
        bench.ran(0, unit, seconds)
    for unit, seconds in enumerate((1.0, 4.0)):
        bench.ran(
            1,
            unit,
            seconds,
            committed=20,
            verify_steps={4: 3, 2: 1},
            alone_steps=1,
            proposed=14,
            accepted=7,
            realignments=2,
            lead_total=10,
        )
    row = summarise(bench.results)[1]
    assert (row.windows, row.audio_seconds, row.seconds, row.tokens) == (2, 20.0, 5.0, 40)
    assert row.tokens_per_second == 8.0
    assert row.real_time == 4.0
    assert row.ratio == 6.0 / 5.0
    assert row.geometric_mean == pytest.approx((4.0 * 0.5) ** 0.5)
    assert row.ratio_interval == (0.5, 4.0)
    assert row.geometric_mean_interval == pytest.approx((0.5, 4.0))
    assert row.p50 == 2.5
    assert row.p95 == pytest.approx(3.85)
    assert row.slower_share == 0.5
    assert row.tokens_per_step == 40 / 10
    assert row.accepted_length == 14 / 8
    assert row.acceptance == 0.5
    assert row.alone_share == 2 / 10
    assert row.lead == 20 / 8
    assert row.realignments == 4
    assert row.differing == row.looped == 0
    assert row.flagged is None


def test_repeats_are_medians_first() -> None:
    bench = Bench(1)
    for repeat, (base, own) in enumerate(((1.0, 2.0), (1.0, 0.5), (100.0, 0.5))):
        bench.ran(0, 0, base, repeat=repeat)
        bench.ran(1, 0, own, repeat=repeat, realignments=repeat)
    row = summarise(bench.results)[1]
    assert row.ratio == 1.0 / 0.5
    assert (row.windows, row.tokens, row.realignments) == (1, 5, 1)
    assert row.ratio_interval is None


def test_who_sat_out_is_compared_on_what_both_have() -> None:
    bench = Bench(2, {1: "de"})
    bench.ran(0, 0, 2.0)
    bench.ran(0, 1, 100.0)
    bench.ran(1, 0, 1.0)
    assert bench.results.takes_part(1, 0)
    assert not bench.results.takes_part(1, 1)
    assert bench.results.takes_part(0, 1) and bench.results.takes_part(3, 1)
    row = summarise(bench.results)[1]
    assert row.ratio == 2.0
    assert row.windows == 1
    assert row.oracle_share == 1.0


def test_the_oracle_chooses_per_unit_among_budgets_and_the_target_but_no_ceiling() -> None:
    bench = Bench(3)
    for contender, times in enumerate(
        ((2.0, 2.0, 1.0), (1.0, 4.0, 4.0), (4.0, 1.0, 4.0), (0.1, 0.1, 0.1))
    ):
        for unit, seconds in enumerate(times):
            bench.ran(contender, unit, seconds)
    shares = [row.oracle_share for row in summarise(bench.results)]
    assert shares == [None, 3.0 / 9.0, 3.0 / 9.0, None]


def test_what_differs_in_any_repeat_counts_once() -> None:
    bench = Bench(2)
    wrong: Texts = (tokens_of("wrong"),)
    for unit in (0, 1):
        bench.ran(0, unit, 1.0)
    bench.ran(1, 0, 1.0)
    bench.ran(1, 0, 1.0, wrong, repeat=1)
    bench.ran(1, 0, 1.0, wrong, repeat=2)
    bench.ran(1, 1, 1.0)
    assert [row.differing for row in summarise(bench.results)] == [0, 1, 0, 0]


def test_loops_are_reported_apart() -> None:
    bench = Bench(1)
    bench.results.units = [*bench.results.units, *bench.results.units]
    loop: Texts = (tokens_of("la la " * 30),)
    bench.results.hear(1, loop)
    assert bench.results.flags[1] == ["compression", "loop"]
    for unit, (base, own) in enumerate(((1.0, 2.0), (8.0, 1.0))):
        bench.ran(0, unit, base, loop if unit else RIGHT)
        bench.ran(1, unit, own, loop if unit else RIGHT)
    row = summarise(bench.results)[1]
    assert (row.ratio, row.windows, row.looped) == (0.5, 1, 1)
    assert row.flagged is not None
    assert (row.flagged.ratio, row.flagged.windows, row.flagged.looped) == (8.0, 1, 0)
    assert row.as_json()["flagged"]["ratio"] == 8.0


def test_a_run_that_lost_its_drafter_is_no_time() -> None:
    bench = Bench(1)
    bench.ran(0, 0, 1.0)
    bench.ran(1, 0, 9.0, lost="it died")
    row = summarise(bench.results)[1]
    assert (row.windows, row.ratio, row.p50) == (0, None, None)
    assert row.tokens_per_second is None


def test_a_unit_whose_reference_is_unknown_is_left_out() -> None:
    bench = Bench(2)
    bench.ran(0, 0, 1.0)
    bench.ran(1, 0, 1.0)
    bench.ran(1, 1, 1.0)
    del bench.results.texts[1]
    assert summarise(bench.results)[1].windows == 1


def test_silence_has_no_rates() -> None:
    bench = Bench(1)
    for contender in (0, 1):
        bench.ran(contender, 0, 1.0, ((),), committed=0, alone_steps=0)
    row = summarise(bench.results)[1]
    assert (row.tokens, row.tokens_per_second, row.ratio) == (0, 0.0, 1.0)
    assert row.tokens_per_step is row.acceptance is row.alone_share is row.lead is None


def test_word_errors_are_of_recordings_that_are_complete() -> None:
    bench = Bench(2)
    first, second = bench.results.units
    # The second recording has another window, which contender 1 did not run.
    bench.results.units = [first, second, second]
    bench.results.hear(2, RIGHT)
    asked: list[list[tuple[str, str, str]]] = []

    def rate(texts: object) -> float:
        asked.append(list(texts))  # type: ignore[call-overload]
        return 0.25

    for unit in range(3):
        bench.ran(0, unit, 1.0)
    for unit in range(2):
        bench.ran(1, unit, 1.0)
    rows = summarise(bench.results, rate)
    assert rows[0].wer == 0.25
    assert asked[0] == [("en", "right", "right"), ("en", "right", "right right")]
    assert asked[1] == [("en", "right", "right")]


# Advice


def advised(own: float, **figures: Any) -> list[str]:
    bench = Bench(2)
    for unit in range(2):
        seconds = {"wall": 1.0, "encode": 0.5, "decode": 0.4, "prompt": 0.1}
        bench.ran(0, unit, 1.0, seconds=seconds)
        bench.ran(1, unit, own, **figures)
    bench.results.lanes = {0: {"target": {"cores": [0, 1]}}, 1: {"target": {"cores": [0]}}}
    return advice(bench.results, summarise(bench.results))


def phases(wall: float, encode: float, decode: float, draft_encode: float) -> dict[str, float]:
    return {
        "wall": wall,
        "encode": encode,
        "decode": decode,
        "draft_encode": draft_encode,
        "draft_decode": 0.1,
        "prompt": 0.1,
    }


def test_nothing_is_said_of_what_is_faster() -> None:
    assert advised(0.5) == []


def test_encoders_that_share_cores() -> None:
    assert advised(2.0, seconds=phases(2.0, 1.25, 0.4, 0.75)) == [
        "as2d with x 4 is slower here (0.50 x): its drafter's encoder takes 0.75 s a window and "
        "the target's encoder takes 1.25 s instead of 0.50 s on 1 core instead of 2; "
        "use --method target"
    ]


def test_late_and_wrong_drafters() -> None:
    figures: dict[str, Any] = {
        "alone_steps": 6,
        "verify_steps": {4: 4},
        "proposed": 16,
        "accepted": 4,
    }
    assert advised(2.0, seconds=phases(2.0, 0.5, 1.4, 0.0), **figures) == [
        "as2d with x 4 is slower here (0.50 x): 60% of the steps found no candidates and "
        "only 25% of the candidates are right; use --method target"
    ]


def test_drafts_that_do_not_pay() -> None:
    figures: dict[str, Any] = {
        "alone_steps": 0,
        "verify_steps": {4: 4},
        "proposed": 16,
        "accepted": 16,
    }
    (line,) = advised(2.0, seconds=phases(2.0, 0.5, 1.4, 0.0), **figures)
    assert "verifying costs more than the accepted candidates save" in line


def test_what_cannot_be_told_apart_is_not_called_slower() -> None:
    bench = Bench(2)
    for unit, own in enumerate((0.5, 2.0)):
        bench.ran(0, unit, 1.0)
        bench.ran(1, unit, own)
    (line,) = advice(bench.results, summarise(bench.results))
    assert line.startswith("as2d with x 4 is as fast as target-only here, as far as can be told")


def test_a_faster_neighbour_is_the_advice() -> None:
    bench = Bench(2)
    for unit in range(2):
        bench.ran(0, unit, 1.0)
        bench.ran(1, unit, 2.0)
        bench.ran(2, unit, 0.5)
        bench.ran(3, unit, 4.0)
    slow, oracle = advice(bench.results, summarise(bench.results))
    assert slow.endswith("; use --method as2d --drafter x --budget 8")
    assert "no drafter can win with as2d 8 here" in oracle
