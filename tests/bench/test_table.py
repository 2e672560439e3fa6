"""The table's columns and widths."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from as2d_cli.bench.summary import Row
from as2d_cli.bench.table import print_table


def row(label: str, **figures: object) -> Row:
    known: dict[str, object] = {
        "label": label,
        "windows": 100,
        "differing": 0,
        "audio_seconds": 3000.0,
        "seconds": 100.0,
        "tokens": 12345,
        "tokens_per_second": 123.45,
        "real_time": 30.04,
        "ratio": 1.234,
        "ratio_interval": (1.1, 1.345),
        "geometric_mean": 1.3,
        "geometric_mean_interval": (1.2, 1.4),
        "p50": 0.52,
        "p95": 1.87,
        "slower_share": 0.254,
        "oracle_share": 0.917,
        "tokens_per_step": 4.0,
        "accepted_length": 3.14,
        "acceptance": 0.6,
        "alone_share": 0.05,
        "lead": 12.3,
        "realignments": 17.5,
        "wer": 0.0854,
        "peak_memory_bytes": 376_123_456,
        "looped": 0,
        "phases": {},
    }
    return Row(**(known | figures))  # type: ignore[arg-type]


def page(*rows: Row, columns: int, all_columns: bool = False, colour: bool = False) -> list[str]:
    text = io.StringIO()
    console = Console(
        file=text,
        width=columns,
        force_terminal=colour,
        color_system="standard" if colour else None,
    )
    print_table(rows, console, all_columns=all_columns)
    return [line.rstrip() for line in text.getvalue().splitlines()]


LONG = row("as2d moonshine-tiny-en 16")


def test_all_columns() -> None:
    heading, line = page(LONG, columns=1000, all_columns=True)
    assert " ".join(heading.split()) == (
        "method tokens/s real time ratio 95 % mean p50 p95 slower of best length accepted "
        "alone lead realigned WER error exact memory"
    )
    assert " ".join(line.split()) == (
        "as2d moonshine-tiny-en 16 123 30.0x 1.23 1.10-1.34 1.30 (1.20-1.40) 0.52 1.87 25% 92% "
        "3.1 60% 5% 12.3 18 8.5% - yes 376 MB"
    )


@pytest.mark.parametrize(
    ("columns", "headings"),
    [
        (40, ["ratio", "real time"]),
        (80, ["tokens/s", "real time", "ratio", "95 %", "slower", "exact"]),
    ],
)
def test_narrow_terminals_get_what_matters_most(columns: int, headings: list[str]) -> None:
    heading, line = page(LONG, columns=columns)
    assert all(name in heading for name in headings)
    assert "realigned" not in heading
    assert max(len(heading), len(line)) <= columns
    assert "\u2026" not in heading + line


def test_nothing_is_wrapped_at_any_width() -> None:
    for columns in range(20, 240):
        lines = page(LONG, row("target"), columns=columns)
        assert len(lines) == 3
        assert columns < 40 or max(map(len, lines)) <= columns


def test_wider_terminals_lose_no_column() -> None:
    before: set[str] = set()
    for columns in range(40, 240):
        heading = page(LONG, columns=columns)[0]
        headings = {part.strip() for part in heading.split("  ")} - {""}
        assert before <= headings
        before = headings


def test_a_path_as_label_keeps_its_end() -> None:
    label = "as2d /home/somebody/models/a-very-long-name/of-a-drafter 8"
    _, line = page(row(label), columns=80)
    assert line.startswith("...")
    assert "of-a-drafter 8" in line


def test_what_cannot_be_told_is_a_dash() -> None:
    empty = row(
        "as2d x 8",
        windows=0,
        tokens_per_second=None,
        ratio=None,
        ratio_interval=None,
        geometric_mean=None,
        wer=None,
        peak_memory_bytes=None,
    )
    cells = page(empty, columns=1000, all_columns=True)[1].split()
    assert cells[3] == cells[5] == cells[6] == cells[7] == "-"
    assert "None" not in cells


def test_a_column_without_a_figure_takes_no_room_on_a_terminal() -> None:
    silent = row("x", peak_memory_bytes=None, wer=None)
    assert "memory" not in page(silent, columns=200)[0]
    assert "memory" in page(silent, LONG, columns=200)[0]
    assert "memory" in page(silent, columns=1000, all_columns=True)[0], "pipes like it steady"


def test_differences_in_what_was_left_out_are_counted() -> None:
    _, line = page(row("x", differing=1, flagged=row("x", differing=2)), columns=80)
    assert "3 differ" in line


@pytest.mark.parametrize(
    ("interval", "colour"),
    [((1.1, 1.2), "\x1b[32m"), ((0.8, 0.9), "\x1b[31m"), ((0.9, 1.1), None), (None, None)],
)
def test_colour_is_for_what_is_certain(
    interval: tuple[float, float] | None, colour: str | None
) -> None:
    _, line = page(row("x", ratio_interval=interval), columns=80, colour=True)
    found = [code for code in ("\x1b[31m", "\x1b[32m") if code in line]
    assert found == ([colour] if colour else [])
