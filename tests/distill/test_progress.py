"""How far a distillation is, on a terminal and elsewhere."""

from __future__ import annotations

import io
import re
from typing import BinaryIO, cast

import pytest

pytest.importorskip("torch")

from as2d_cli.distill.training import Point
from as2d_cli.environment import Environment, Output
from as2d_cli.output import distill_progress
from as2d_cli.output.distill_progress import DistillProgress

RIDGE = Point(0, "ridge", float("nan"), {4: 1.5, 8: 1.75, 16: 2.0}, {4: 1.25}, 0.0)
POINT = Point(4, "tune", 1.5, {4: 2.5, 8: 3.25, 16: 3.506}, {4: 1.5, 8: 1.625}, 240.0)
LAST = Point(24, "tune", 1.5, {4: 2.5, 8: 3.25, 16: 3.5}, {4: 1.5}, 240.0)


def made(
    *, terminal: bool = False, quiet: bool = False, term: str = "xterm"
) -> tuple[DistillProgress, io.BytesIO, io.BytesIO]:
    out, err = io.BytesIO(), io.BytesIO()
    environment = Environment(
        None,
        Output(cast(BinaryIO, out)),
        Output(cast(BinaryIO, err), "standard error", terminal),
        {"TERM": term},
        columns=160,
    )
    return DistillProgress(environment, quiet=quiet), out, err


def all_of_it(progress: DistillProgress) -> None:
    with progress:
        progress.stage("models")
        progress.stage("7 recordings")
        progress.warning("not an audio file: a\x1b[2J[red]b.wav")
        progress.collected(3600.0, 36_000.0)
        progress.collected(7200.0, None)
        progress.stage("training")
        progress.point(RIDGE, 24)
        progress.point(POINT, 24)
        progress.point(LAST, 24)


LINES = [
    "as2d: models",
    "as2d: 7 recordings",
    r"as2d: warning: not an audio file: a\x1b[2J[red]b.wav",
    "as2d: training",
    "as2d: pass 0 of 24 (ridge): 1.50 / 1.75 / 2.00 tokens a step at budget 4/8/16, "
    "of the sketch 1.25",
    "as2d: pass 4 of 24 (tune): 2.50 / 3.25 / 3.51 tokens a step at budget 4/8/16, "
    "of the sketch 1.50 / 1.62, 20 min left",
    "as2d: pass 24 of 24 (tune): 2.50 / 3.25 / 3.50 tokens a step at budget 4/8/16, "
    "of the sketch 1.50",
]


@pytest.mark.parametrize("term", ["xterm", "dumb"])
def test_lines_where_no_bar_can_be_drawn(term: str) -> None:
    progress, out, err = made(terminal=term == "dumb", term=term)
    all_of_it(progress)
    assert err.getvalue().decode().splitlines() == [
        *LINES[:3],
        "as2d: collecting: 1.00 h",
        *LINES[3:],
    ]
    assert out.getvalue() == b""


def test_collecting_is_told_of_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    progress, _, err = made()
    clock = iter([100.0, 100.0, 120.0, 129.0, 131.0, 131.0, 140.0])
    monkeypatch.setattr(f"{distill_progress.__name__}.time.monotonic", lambda: next(clock))
    with progress:
        for hours in range(5):
            progress.collected(hours * 3600.0, 36_000.0)
    assert err.getvalue().decode().splitlines() == [
        "as2d: collecting: 0.00 h",
        "as2d: collecting: 3.00 h",
    ]


def test_hours_are_told_as_hours() -> None:
    progress, _, err = made()
    progress.point(Point(1, "adapter", 1.0, {8: 1.0}, {8: 1.5}, 600.0), 20)
    assert err.getvalue().decode() == (
        "as2d: pass 1 of 20 (adapter): 1.00 tokens a step at budget 8, of the sketch 1.50, "
        "3 h 10 min left\n"
    )


def test_quiet_is_quiet() -> None:
    for terminal in (False, True):
        progress, out, err = made(terminal=terminal, quiet=True)
        all_of_it(progress)
        assert out.getvalue() == err.getvalue() == b""


def test_a_terminal_has_bars_and_keeps_the_lines() -> None:
    progress, out, err = made(terminal=True)
    all_of_it(progress)
    text = err.getvalue().decode()
    assert out.getvalue() == b""
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    kept = [line.strip() for line in plain.replace("\r", "\n").splitlines()]
    assert [line for line in kept if line.startswith("as2d:")] == LINES
    assert "training: 2.50 / 3.25 / 3.50 tokens a step" in plain
    # The bar goes away, and the cursor comes back.
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1
    assert "\x1b[2K" in text[text.rindex("tokens a step") :]


def test_a_terminal_shows_how_much_is_collected() -> None:
    progress, _, err = made(terminal=True)
    with progress:
        progress.collected(3600.0, 36_000.0)
        shown = progress._progress
        assert shown is not None
        (task,) = shown.tasks
        assert (task.description, task.percentage) == ("collecting: 1.00 h", 10.0)
        progress.stage("training")
        assert shown.tasks == []
        progress.point(POINT, 24)
        assert (shown.tasks[0].completed, shown.tasks[0].total) == (4, 24)
        progress.stage("again")
        progress.collected(7200.0, None)
        assert (shown.tasks[0].completed, shown.tasks[0].total) == (0, None)
    assert err.getvalue()


def test_an_interruption_gives_the_cursor_back() -> None:
    progress, _, err = made(terminal=True)

    def interrupted() -> None:
        with progress:
            progress.collected(3600.0, None)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert b"\x1b[?25h" in err.getvalue()
