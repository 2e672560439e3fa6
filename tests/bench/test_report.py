"""Outcomes as they are shown."""

from __future__ import annotations

import io
import json

from rich.console import Console

from as2d_cli.bench.compare import REFERENCE, Contender, Outcome, contenders
from as2d_cli.bench.report import as_json, print_table


def test_the_reference_is_always_there_and_first() -> None:
    assert contenders(["as2d"], ["x"], [4, 8]) == [
        REFERENCE,
        Contender("as2d", "x", 4),
        Contender("as2d", "x", 8),
    ]
    both = contenders(["target", "as2d"], ["x", "y"], [8])
    assert [c.label for c in both] == ["target", "target (one row)", "as2d x 8", "as2d y 8"]


def test_a_target_that_is_the_same_for_any_rows_needs_no_second_row_of_the_table() -> None:
    assert contenders(["target"], [], [], "any") == [REFERENCE]


def outcome() -> Outcome:
    return Outcome(
        Contender("as2d", "x", 8),
        windows=2,
        differing=[("clip.wav", 1)],
        audio_seconds=60.0,
        wall_seconds=2.0,
        baseline_seconds=3.0,
        committed=100,
        proposed=80,
        accepted=60,
        alone_steps=10,
    )


def test_the_table_shows_ratios_and_differences() -> None:
    page = io.StringIO()
    print_table([Outcome(REFERENCE), outcome()], Console(file=page, width=200))
    lines = [" ".join(line.split()) for line in page.getvalue().splitlines()]
    assert lines == [
        "method windows differing x real time ratio tokens/s tokens/step accepted alone steps "
        "realigned",
        "target 0 0 - - - - - - 0",
        "as2d x 8 2 1 30.0 1.50 50 10.00 75% 100% 0",
    ]


def test_no_heading_is_cut_off_at_80_columns() -> None:
    page = io.StringIO()
    longest = Outcome(Contender("as2d", "moonshine-tiny-en", 16))
    print_table([longest, outcome()], Console(file=page, width=80))
    assert "\u2026" not in page.getvalue()
    assert "differing" in page.getvalue() and "realigned" not in page.getvalue()


def test_json_is_strict_and_whole() -> None:
    rows = json.loads(json.dumps(as_json([Outcome(REFERENCE), outcome()]), allow_nan=False))
    assert rows[0]["ratio"] is None
    assert rows[1]["ratio"] == 1.5
    assert rows[1]["differing"] == [{"clip": "clip.wav", "window": 1}]
