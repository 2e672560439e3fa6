"""The live display on standard error: where the work is, how fast, and what each lane does."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from rich.cells import cell_len
from rich.console import Group
from rich.live import Live
from rich.text import Text

from as2d_cli.environment import Environment, Output
from as2d_cli.output.console import terminal_console
from as2d_cli.output.talk import Talk, rate
from as2d_cli.tasks.transcript import Counters, Progress, Transcript

__all__ = ["Dashboard", "SharedTerminal"]

_KEY = "bold"
_GOOD = "green"
"""Only the terminal's own palette, and nothing dim: readable on dark and on light themes."""

_LANES = ("target", "draft")


class Dashboard(Talk):
    """A monitor that keeps a few lines at the bottom of the terminal, and takes them away.

    It draws only when told of progress, in the caller's thread: no thread of its own, nothing to
    lock.
    """

    live = True

    def __init__(self, environment: Environment, *, words: bool) -> None:
        """`words`: show the latest words, because the result goes elsewhere."""
        super().__init__(environment, quiet=False)
        self._words = words
        self._console = terminal_console(environment)
        self._ascii = "utf" not in environment.stderr.encoding.lower()
        self._live: Live | None = None
        self._unbroken = ""

    def progress(self, progress: Progress) -> None:
        if self._live is None:
            # "visible" would leave lines behind that are cut off by a small terminal.
            self._live = Live(
                console=self._console,
                auto_refresh=False,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
                vertical_overflow="crop",
            )
            self._live.start()
        self._live.update(self.picture(progress, self._console.width), refresh=True)

    def close(self) -> None:
        """Takes the display away; the next `progress` brings it back."""
        live, self._live = self._live, None
        if live is not None:
            live.stop()

    def line(self, text: str) -> None:
        with self.away():
            super().line(text)

    def finished(self, transcript: Transcript) -> None:
        self.close()
        super().finished(transcript)

    @contextlib.contextmanager
    def away(self) -> Iterator[None]:
        """The display is away in the body, and the cursor is at the start of a line."""
        self.close()
        yield

    # The picture

    def picture(self, p: Progress, width: int) -> Group:
        """What is shown for `p`; no line is longer than `width` cells."""
        rows: list[Text] = []
        words = _tail(f"{p.settled} {p.current}" if self._words else p.current, width * 2 - 2)
        if words:
            rows.append(Text(words, overflow="fold"))
        rows.append(self._headline(p, width))
        rows += [_clipped(row, width) for row in self._figures(p)]
        rows += [_clipped(row, width) for row in self._lane_rows(p)]
        return Group(*rows)

    def _headline(self, p: Progress, width: int) -> Text:
        total = p.info.duration
        known = total is not None and total > 0
        where = p.heading or _clock(p.position) + (f" / {_clock(total)}" if known and total else "")
        tail = f"  {where}"
        bar_width = 24 if width >= 120 else 14
        bar = Text()
        if known and total:
            done = min(1.0, p.position / total)
            full = round(done * bar_width)
            on, off = ("#", ".") if self._ascii else ("\u2501", "\u2508")
            bar = Text.assemble("  ", (on * full, _GOOD), off * (bar_width - full))
        room = width - cell_len(tail) - bar.cell_len - 1
        return Text.assemble((_shortened(p.info.name, room), _KEY), bar, tail, no_wrap=True)

    def _figures(self, p: Progress) -> Iterator[Text]:
        facts: list[tuple[str, str]] = [("words", str(p.words)), ("tokens", str(p.tokens))]
        if p.elapsed > 0 and p.tokens:
            facts.append(("tokens/s", rate(p.tokens / p.elapsed)))
        if p.elapsed > 0 and p.position:
            facts.append(("x real time", rate(p.position / p.elapsed)))
        yield _row(facts, value_first=True)
        c = p.counters
        exact = "exact" if c is None or c.exact else "not exact"
        if p.info.drafter is None:
            row = [("target", p.info.target), ("drafter", "none"), ("", exact)]
            if p.info.method == "batched":
                row.insert(2, ("windows at a time", str(p.info.budget)))
            yield _row(row)
            return
        row = [("drafter", p.info.drafter), ("budget", str(p.info.budget)), ("", exact)]
        if not p.drafting:
            row.insert(1, ("", "resting"))
        yield _row(row)
        yield _row(_speculation(c))

    def _lane_rows(self, p: Progress) -> Iterator[Text]:
        for lane in _LANES:
            activity, window = p.lanes.get(lane, ("", -1))
            if not activity:
                continue
            cores = _cores(p.counters, lane)
            what = activity if activity in ("idle", "done") else f"{activity} window {window + 1}"
            where = f"cores {cores}" if cores else ""
            yield Text.assemble(
                (f"{lane} lane".ljust(11), _KEY), f"  {what.ljust(22)}", f"  {where}"
            )


class SharedTerminal:
    """Standard output on the terminal that the dashboard draws on.

    Whole lines go to standard output above the display; the line that is still growing is shown by
    the display itself until it is whole, so every word is on the screen once and a line copies as
    a line.
    """

    is_terminal = True

    def __init__(self, out: Output, dashboard: Dashboard) -> None:
        self._out, self._dashboard = out, dashboard
        self._held = ""

    def write(self, text: str) -> None:
        """Takes text; what it completes is shown."""
        self._held += text
        at = self._held.rfind("\n") + 1
        if at:
            lines, self._held = self._held[:at], self._held[at:]
            with self._dashboard.away():
                self._out.write(lines)
                self._out.flush()

    def flush(self) -> None:
        """Nothing: whole lines are out already, and the rest is in the display."""


def _speculation(c: Counters | None) -> list[tuple[str, str]]:
    steps = sum(c.verify_steps.values()) if c is not None else 0
    if c is None or steps == 0:
        return [("acceptance", "-"), ("accepted per step", "-"), ("lead", "-")]
    return [
        ("acceptance", f"{c.accepted / c.proposed:.0%}" if c.proposed else "-"),
        ("accepted per step", f"{c.accepted / steps:.1f}"),
        ("lead", f"{c.lead_total / steps:.1f} tokens"),
        ("alone", f"{c.alone_steps / (c.alone_steps + steps):.0%} of steps"),
    ]


def _cores(c: Counters | None, lane: str) -> str:
    """``0-3,5``: runs of neighbours joined."""
    cores = sorted(c.lanes.get(lane, {}).get("cores", ())) if c is not None else []
    runs: list[list[int]] = []
    for core in cores:
        if runs and core == runs[-1][-1] + 1:
            runs[-1].append(core)
        else:
            runs.append([core])
    return ",".join(str(r[0]) if len(r) == 1 else f"{r[0]}-{r[-1]}" for r in runs)


def _row(facts: list[tuple[str, str]], *, value_first: bool = False) -> Text:
    row = Text(no_wrap=True)
    for key, value in facts:
        if row:
            row.append("   ")
        first, second = (value, key) if value_first else (key, value)
        row.append(first, style=_KEY if value_first else "")
        row.append(" " if first else "")
        row.append(second, style="" if value_first else _KEY)
    return row


def _clipped(row: Text, width: int) -> Text:
    row.truncate(width, overflow="crop")
    return row


def _shortened(name: str, room: int) -> str:
    """The end of a long name: the file is told apart by it more often than by its folders."""
    if cell_len(name) <= room:
        return name
    while name and cell_len(name) > room - 3:
        name = name[1:]
    return "..." + name


def _tail(text: str, room: int) -> str:
    """The last words of `text` in at most `room` cells, control characters taken out."""
    text = "".join(c if c.isprintable() else " " for c in text).strip()
    if cell_len(text) <= room:
        return text
    words = text[-room:]
    while cell_len(words) > room:
        words = words[1:]
    _, space, rest = words.partition(" ")
    return rest if space and rest else words


def _clock(seconds: float) -> str:
    whole = int(seconds)
    minutes = f"{whole // 60 % 60:02d}" if whole >= 3600 else f"{whole // 60}"
    hours = f"{whole // 3600}:" if whole >= 3600 else ""
    return f"{hours}{minutes}:{whole % 60:02d}"
