"""A profile for people: what the work costs, the plans compared, the one that won."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from as2d_cli.errors import one_line
from as2d_cli.machine.cores import core_list
from as2d_cli.profile.costs import CostModel, LaneCosts, TargetCosts
from as2d_cli.profile.planner import Ranked
from as2d_cli.profile.session import Findings

__all__ = [
    "cost_rows",
    "length_lines",
    "milliseconds",
    "notes",
    "print_costs",
    "print_plan",
    "print_ranking",
    "print_table",
]

_NOISY = 0.1
"""A spread of repeats from which on the figures are called rough."""

_SHOWN = 12
"""Plans in a ranking; and the best of each method, wherever it is."""

_BAR = 30
_EIGHTHS = " ▏▎▍▌▋▊▉"


def print_costs(costs: CostModel, console: Console) -> None:
    """The table of costs, and how a step grows with its rows."""
    pair = costs.target + (f" with {costs.drafter}" if costs.drafter else "")
    origin = "estimated from a description" if costs.estimated else costs.created
    console.print(Text(one_line(f"{pair}, {origin}" if origin else pair), style="bold"))
    print_table(cost_rows(costs), console)
    console.print()
    for line in _plot(costs):
        console.print(Text(line), soft_wrap=True)
    console.print()
    for note in notes(costs):
        console.print(note, soft_wrap=True)


def print_ranking(findings: Findings, console: Console) -> None:
    """The best plans, and why the first of them won."""
    console.print(Text(f"plans, over {findings.windows} windows of speech", style="bold"))
    shown: list[Ranked] = []
    seen: set[object] = set()
    for place, ranked in enumerate(findings.ranking):
        entry = ranked.candidate
        kind = (entry.method, entry.drafter, entry.elastic)
        if place < _SHOWN or kind not in seen or ranked is findings.chosen:
            shown.append(ranked)
        seen.add(kind)
    rows: list[tuple[str, ...]] = [
        ("plan", "target", "drafter", "tokens/s", "ratio", "at least", "slower", "")
    ]
    rows += [_ranked_row(ranked, findings) for ranked in shown]
    print_table(rows, console, left=(0, 7))
    left_out = len(findings.ranking) - len(shown)
    if left_out:
        console.print(f"and {left_out} more")
    console.print()
    for line in [*findings.reasons, *length_lines(findings)]:
        console.print(one_line(line), soft_wrap=True)


def length_lines(findings: Findings) -> Iterator[str]:
    """What transcribe does with recordings whose length it knows."""
    for seconds, ranked in findings.by_length:
        yield f"a recording of {seconds} s: {ranked.candidate.label}, {ranked.ratio:.2f} x"


def print_plan(findings: Findings, console: Console) -> None:
    """What to do."""
    chosen = findings.chosen.candidate
    options = [f"--method {chosen.method}"]
    if chosen.drafter:
        options.append(f"--drafter {chosen.drafter}")
    plan = findings.plan()
    if chosen.method != "target":
        options.append(f"--budget {plan.budget}")
    if plan.windows > 1:
        options.append(f"--windows {plan.windows}")
    options.append(f"--target-cores {core_list(plan.target_cores)}")
    if plan.draft_cores:
        options.append(f"--draft-cores {core_list(plan.draft_cores)}")
    console.print(
        Text(
            f"best: {one_line(' '.join(options))} ({findings.chosen.ratio:.2f} x the target alone)",
            style="bold green",
        ),
        soft_wrap=True,
    )


def _ranked_row(ranked: Ranked, findings: Findings) -> tuple[str, ...]:
    entry = ranked.candidate
    return (
        one_line(entry.label),
        core_list(entry.lane.target_cores),
        core_list(entry.lane.draft_cores) if entry.drafter else "",
        f"{ranked.tokens_per_second:.0f}",
        f"{ranked.ratio:.2f}",
        f"{ranked.least:.2f}" if ranked.ratio > 1 else "",
        f"{ranked.slower:.0%}",
        "chosen" if ranked is findings.chosen else "" if entry.elastic else "lends no cores",
    )


_ROWS = (1, 4, 8, 16, 32)


def cost_rows(costs: CostModel) -> list[tuple[str, ...]]:
    """All lanes, the headings first."""
    steps = tuple(f"{rows} rows" if rows > 1 else "1 row" for rows in _ROWS)
    found = [("lane", "cores", "encoder 10 s", "30 s", *steps, "token")]
    for lane in costs.lanes:
        found += _lane_rows(lane)
    return found


def _lane_rows(lane: LaneCosts) -> Iterator[tuple[str, ...]]:
    cores = core_list(lane.target_cores)
    if not lane.draft_cores:
        yield _target_row("target", cores, lane.alone)
        return
    both = f"{cores} of {cores},{core_list(lane.draft_cores)}"
    yield _target_row("target, drafter rests", both, lane.alone)
    if lane.own is not None:
        yield _target_row("target, nothing lent", cores, lane.own)
    if lane.beside is not None:
        yield _target_row("target, drafter works", cores, lane.beside)
    for name, draft in (
        ("drafter, target rests", lane.draft),
        ("drafter, target works", lane.draft_beside),
    ):
        if draft is not None:
            encode = (milliseconds(draft.encode(10)), milliseconds(draft.encode(30)))
            yield (
                name,
                core_list(lane.draft_cores),
                *encode,
                *[""] * len(_ROWS),
                milliseconds(draft.token),
            )


def _target_row(name: str, cores: str, costs: TargetCosts) -> tuple[str, ...]:
    steps = (milliseconds(costs.step(rows)) if rows <= max(costs.steps) else "" for rows in _ROWS)
    return name, cores, milliseconds(costs.encode(10)), milliseconds(costs.encode(30)), *steps, ""


def _plot(costs: CostModel) -> Iterator[str]:
    """A bar for each number of rows of the first lane, and of the first that is shared."""
    shown = [costs.lanes[0], *(lane for lane in costs.lanes if lane.beside is not None)][:2]
    series = [(f"step on {core_list(shown[0].target_cores)}", shown[0].alone)]
    if len(shown) > 1 and shown[1].beside is not None:
        series.append(
            (f"step on {core_list(shown[1].target_cores)}, drafter works", shown[1].beside)
        )
    most = max(max(target.steps.values()) for _, target in series)
    for name, target in series:
        yield name
        for rows, seconds in sorted(target.steps.items()):
            yield f"  {rows:3d} {_bar(seconds / most)} {milliseconds(seconds)}"


def _bar(share: float) -> str:
    eighths = round(share * _BAR * 8)
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip().ljust(_BAR)


def notes(costs: CostModel) -> Iterator[str]:
    """What the table does not say."""
    if costs.bandwidth:
        yield f"one core copies {costs.bandwidth / 1e9:.1f} GB/s"
    contention = next((c for lane in costs.lanes if (c := lane.contention) is not None), None)
    if contention is not None:
        yield f"beside a working drafter the target's steps take {contention:.2f} x as long"
    if costs.noise > _NOISY:
        yield f"this machine is noisy: repeats spread by +-{costs.noise:.0%}, the figures are rough"
    elif costs.noise:
        yield f"repeats spread by +-{costs.noise:.0%}"
    spreads = [spread for lane in costs.lanes for spread in lane.spreads]
    low, high = min(s.low for s in spreads), max(s.high for s in spreads)
    if low < 1 or high > 1:
        yield (
            f"their medians may be off by {low - 1:+.0%} to {high - 1:+.0%}: a plan is only taken "
            "for faster than the target alone where that leaves something"
        )


def print_table(
    rows: Sequence[Sequence[str]], console: Console, left: Sequence[int] = (0, 1)
) -> None:
    """The headings first; `left`: columns of words."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for number, heading in enumerate(rows[0]):
        table.add_column(heading, justify="left" if number in left else "right", no_wrap=True)
    for row in rows[1:]:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table, crop=False)


def milliseconds(seconds: float) -> str:
    """With the digits that matter."""
    return f"{seconds * 1e3:.1f} ms" if seconds < 0.1 else f"{seconds * 1e3:.0f} ms"
