"""The live display: what it says, in how much room, and that it goes away."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.cells import cell_len
from rich.console import Console

from as2d_cli.environment import Environment, Output
from as2d_cli.output.dashboard import Dashboard, SharedTerminal
from as2d_cli.tasks.transcript import Progress, SourceInfo, Transcript
from tests.fakes import FakeCounters

INFO = SourceInfo("talks/a.wav", 75.0, "whisper-base", "moonshine-tiny-en", "as2d", 8)
COUNTERS = FakeCounters(
    committed=90, verify_steps={8: 20}, alone_steps=5, proposed=160, accepted=80, lead_total=100
)
LANES = {"target": ("verifying", 1), "draft": ("drafting", 2)}


def _progress(info: SourceInfo = INFO, counters: FakeCounters | None = COUNTERS) -> Progress:
    return Progress(info, 28.0, "Before.", "now it goes on", 42, 90, 3.5, LANES, counters)


def _made(
    columns: int, *, words: bool = False, variables: dict[str, str] | None = None
) -> tuple[Dashboard, Environment, io.BytesIO]:
    raw = io.BytesIO()
    environment = Environment(
        None,
        Output(raw, is_terminal=True),
        Output(raw, is_terminal=True),
        variables or {"TERM": "xterm"},
        shared_terminal=True,
        columns=columns,
    )
    return Dashboard(environment, words=words), environment, raw


def _lines(dashboard: Dashboard, progress: Progress, width: int) -> list[str]:
    console = Console(width=width, file=io.StringIO())
    with console.capture() as captured:
        console.print(dashboard.picture(progress, width))
    return captured.get().splitlines()


@pytest.mark.parametrize("width", [20, 80, 160])
@pytest.mark.parametrize("name", ["a.wav", "日本語の長い名前" * 20 + ".wav"])
def test_fits(width: int, name: str) -> None:
    info = SourceInfo(name, 7500.0, "whisper-base", "moonshine-tiny-en", "as2d", 8)
    lines = _lines(_made(width)[0], _progress(info), width)
    assert all(cell_len(line) <= width for line in lines)


def test_says_it_all_at_80_columns() -> None:
    shown = "\n".join(_lines(_made(80, words=True)[0], _progress(), 80))
    for fact in (
        "talks/a.wav",
        "0:28 / 1:15",
        "Before. now it goes on",
        "42 words",
        "90 tokens",
        "26 tokens/s",
        "8.0 x real time",
        "drafter moonshine-tiny-en",
        "budget 8",
        "exact",
        "acceptance 50%",
        "accepted per step 4.0",
        "lead 5.0 tokens",
        "alone 20% of steps",
        "verifying window 2",
        "cores 0-2,5",
        "drafting window 3",
        "cores 3",
    ):
        assert fact in shown


def test_says_when_drafting_was_dropped() -> None:
    dashboard = _made(80)[0]
    shown = "\n".join(_lines(dashboard, replace(_progress(), drafting=False), 80))
    assert "drafter moonshine-tiny-en   resting   budget 8" in shown
    assert "resting" not in "\n".join(_lines(dashboard, _progress(), 80))


def test_without_drafter_length_and_counters() -> None:
    info = SourceInfo("<stdin>", None, "whisper-base", None, "target", 8)
    shown = "\n".join(_lines(_made(80)[0], _progress(info, None), 80))
    assert "drafter none" in shown and "0:28" in shown and "/" not in shown.splitlines()[1]


def test_goes_away_and_the_cursor_comes_back() -> None:
    dashboard, _, raw = _made(80)
    dashboard.progress(_progress())
    assert b"acceptance" in raw.getvalue()
    before = len(raw.getvalue())
    dashboard.finished(Transcript(INFO, duration=75, wall=5))
    after = raw.getvalue()[before:].decode()
    assert "\x1b[2K" in after and "\x1b[?25h" in after
    assert after.endswith("75.0 s of audio in 5.0 s (15 x real time)\n")


def test_no_colour() -> None:
    dashboard, _, raw = _made(80, variables={"NO_COLOR": "1"})
    dashboard.progress(_progress())
    dashboard.close()
    assert b"\x1b[32m" not in raw.getvalue()


def test_shared_terminal_writes_whole_lines_once() -> None:
    dashboard, environment, raw = _made(80)
    out = SharedTerminal(environment.stdout, dashboard)
    dashboard.progress(_progress())
    out.write("half")
    out.flush()
    assert b"half" not in raw.getvalue()
    out.write(" a line " + "x" * 300 + "\nrest")
    assert raw.getvalue().count(b"half a line " + b"x" * 300 + b"\n") == 1
    assert b"rest" not in raw.getvalue()
