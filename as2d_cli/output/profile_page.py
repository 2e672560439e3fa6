"""A profile as one page that needs nothing else: no network, no other file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import resources
from string import Template

from as2d_cli.bench.page.marks import number, percent, point, svg, text
from as2d_cli.bench.page.scales import Linear
from as2d_cli.machine.cores import core_list
from as2d_cli.output.profile_report import cost_rows, length_lines, notes
from as2d_cli.profile.costs import CostModel
from as2d_cli.profile.device import Device
from as2d_cli.profile.growth import Growth
from as2d_cli.profile.planner import Ranked
from as2d_cli.profile.session import Findings

__all__ = ["growth_page", "page"]

_WIDTH, _HEIGHT = 900, 300
_LEFT, _BOTTOM = 60, 34
_COLOURS = 6
_BARS = 15
_BAR_HEIGHT = 22


def page(findings: Findings) -> str:
    """What the work costs, and the plans compared."""
    costs = findings.costs
    pair = costs.target + (f" with {costs.drafter}" if costs.drafter else "")
    first = findings.chosen.candidate.label
    body = [
        f"<h1>{text(first)}: {number(findings.chosen.ratio)} x the target alone</h1>",
        f'<p class="soft">{text(pair)}, {text(costs.key.get("machine", ""))}, '
        f"{text(costs.created)}</p>",
        *(f"<p>{text(line)}</p>" for line in findings.reasons),
        *(f"<p>{text(line)}</p>" for line in length_lines(findings)),
        "<h2>The plans</h2>",
        _ratios([(r.candidate.label, r.ratio) for r in _shown(findings)]),
        _caption(f"Predicted throughput over {findings.windows} windows; the target alone is 1."),
        _ranking(findings),
        "<h2>What a step of the target costs</h2>",
        _steps(costs),
        _caption("Seconds of a forward by its rows: one, and one for each candidate."),
        "<h2>All costs</h2>",
        _table(cost_rows(costs), left=(0, 1)),
        *(f'<p class="soft">{text(line)}</p>' for line in notes(costs)),
    ]
    return _whole(pair, body)


def growth_page(device: Device, found: Sequence[Growth]) -> str:
    """What drafting would gain on a device as its target grows."""
    rows = [("target", "with drafts", "gain", "best", "gain", "cores")]
    gains = []
    for entry in found:
        target, chosen, drafting = (
            entry.findings.costs.target,
            entry.findings.chosen,
            entry.drafting,
        )
        rows.append(
            (
                target,
                drafting.candidate.label if drafting else "",
                number(drafting.ratio) if drafting else "",
                chosen.candidate.label,
                number(chosen.ratio),
                core_list(chosen.candidate.lane.target_cores),
            )
        )
        if drafting:
            gains.append((target, drafting.ratio))
    cores = "; ".join(f"{count} x {core} at {ghz:g} GHz" for core, count, ghz in device.clusters)
    body = [
        f"<h1>{text(device.name)}</h1>",
        f"<p>{text(cores)}</p>",
        '<p class="soft">Estimated from clocks, vector width and memory, not measured.</p>',
        "<h2>What drafting would gain as the target grows</h2>",
        _ratios(gains),
        _caption("Predicted throughput with the best plan that drafts; the target alone is 1."),
        _table(rows, left=(0, 1, 3, 5)),
    ]
    return _whole(device.name, body)


def _whole(title: str, body: Iterable[str]) -> str:
    template = resources.files(__package__).joinpath("profile_page.html")
    page = Template(template.read_text(encoding="utf-8"))
    return page.substitute(title=text(title), body="\n".join(body))


def _shown(findings: Findings) -> list[Ranked]:
    """The first ones, and the best of every other method."""
    shown = list(findings.ranking[:_BARS])
    methods = {r.candidate.method for r in shown}
    for ranked in findings.ranking[_BARS:]:
        if ranked.candidate.method not in methods:
            methods.add(ranked.candidate.method)
            shown.append(ranked)
    return shown


def _ranking(findings: Findings) -> str:
    rows = [("plan", "target", "drafter", "tokens/s", "ratio", "at least", "slower")]
    rows += [
        (
            r.candidate.label,
            core_list(r.candidate.lane.target_cores),
            core_list(r.candidate.lane.draft_cores) if r.candidate.drafter else "",
            number(r.tokens_per_second, 0),
            number(r.ratio),
            number(r.least) if r.ratio > 1 else "",
            percent(r.slower),
        )
        for r in _shown(findings)
    ]
    return _table(rows, left=(0,))


def _ratios(values: Sequence[tuple[str, float]]) -> str:
    """A bar each, the line at 1 through them."""
    if not values:
        return ""
    left, height = 260, _BAR_HEIGHT * len(values) + 8
    scale = Linear(max(1.2, *(ratio for _, ratio in values)), left, _WIDTH - 60)
    parts = []
    for place, (label, ratio) in enumerate(values):
        y = place * _BAR_HEIGHT + 4
        parts.append(
            f'<text x="0" y="{point(y + 14)}">{text(label)}</text>'
            f'<rect class="column c0" x="{left}" y="{point(y + 3)}" height="14" '
            f'width="{point(scale(ratio) - left)}"/>'
            f'<text x="{point(scale(ratio) + 6)}" y="{point(y + 14)}">{number(ratio)}</text>'
        )
    one = point(scale(1))
    parts.append(f'<line class="grid" x1="{one}" x2="{one}" y1="0" y2="{height}"/>')
    return f"<figure>{svg(_WIDTH, height, 'throughput of each plan', *parts)}</figure>"


def _steps(costs: CostModel) -> str:
    """A curve for each lane, alone and beside a working drafter."""
    curves = []
    for lane in costs.lanes:
        cores = core_list(lane.target_cores)
        if not lane.draft_cores:
            curves.append((f"on {cores}", lane.alone.steps))
        elif lane.beside is not None:
            curves.append(
                (f"on {cores}, drafter works on {core_list(lane.draft_cores)}", lane.beside.steps)
            )
    curves = curves[:_COLOURS]
    most_rows = max(max(steps) for _, steps in curves)
    most = max(max(steps.values()) for _, steps in curves) * 1e3
    across = Linear(most_rows, _LEFT, _WIDTH - 20)
    up = Linear(most, _HEIGHT - _BOTTOM, 10)
    parts = [
        f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - 20}" y1="{point(up(tick))}" '
        f'y2="{point(up(tick))}"/><text class="muted" x="{_LEFT - 8}" y="{point(up(tick) + 4)}" '
        f'text-anchor="end">{tick:g} ms</text>'
        for tick in up.ticks(50)
    ]
    parts += [
        f'<text class="muted" x="{point(across(tick))}" y="{_HEIGHT - 14}" '
        f'text-anchor="middle">{tick:g}</text>'
        for tick in across.ticks(80)
    ]
    for place, (_, steps) in enumerate(curves):
        dots = [(across(rows), up(seconds * 1e3)) for rows, seconds in sorted(steps.items())]
        line = " ".join(f"{point(x)},{point(y)}" for x, y in dots)
        parts.append(f'<polyline class="line c{place}" points="{line}"/>')
        parts += [
            f'<circle class="dot c{place}" cx="{point(x)}" cy="{point(y)}" r="3"/>' for x, y in dots
        ]
    names = "".join(
        f'<li class="c{place}">{text(name)}</li>' for place, (name, _) in enumerate(curves)
    )
    drawing = svg(_WIDTH, _HEIGHT, "milliseconds of a step by its rows", *parts)
    return f'<ul class="legend">{names}</ul><figure>{drawing}</figure>'


def _table(rows: Sequence[Sequence[str]], left: Sequence[int]) -> str:
    def line(cells: Sequence[str], tag: str) -> str:
        return "".join(
            f"<{tag}{' class=left' if place in left else ''}>{text(cell)}</{tag}>"
            for place, cell in enumerate(cells)
        )

    body = "".join(f"<tr>{line(cells, 'td')}</tr>" for cells in rows[1:])
    head = f"<thead><tr>{line(rows[0], 'th')}</tr></thead>"
    return f'<div class="scroll"><table>{head}<tbody>{body}</tbody></table></div>'


def _caption(words: str) -> str:
    return f'<p class="soft">{text(words)}</p>'
