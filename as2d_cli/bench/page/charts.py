"""Charts as SVG text: pure functions from figures to drawings, styled by the page's classes.

Each takes its width in pixels. The page draws most of them twice, for wide and for narrow screens,
because a drawing that is scaled down takes its letters with it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from as2d_cli.bench.page.marks import fit, number, percent, point, span_text, svg, text
from as2d_cli.bench.page.scales import Linear, Log

__all__ = [
    "Bar",
    "Curve",
    "Dot",
    "Lane",
    "Mark",
    "Steps",
    "candidate_bars",
    "lane_timeline",
    "phase_bars",
    "ratio_dots",
    "speed_curves",
    "swatch",
]

NARROW = 600
"""Below this width labels stand above what they name instead of before it."""

LABELS = 216
FEW_MARKS, MOST_MARKS = 30, 60


@dataclass(frozen=True)
class Mark:
    """A ratio, and the name of what has it."""

    ratio: float
    name: str


@dataclass(frozen=True)
class Curve:
    """The ratios of one contender, the slowest first."""

    label: str
    style: str
    marks: Sequence[Mark]


@dataclass(frozen=True)
class Dot:
    """A ratio with its interval, which is None where it is not known."""

    label: str
    style: str
    ratio: float
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class Bar:
    """What happened from `begin` to `end`, in the unit of the chart's axis."""

    kind: str
    begin: float
    end: float
    title: str


@dataclass(frozen=True)
class Lane:
    """Bars of one contender: those of its target lane and those of its draft lane.

    Attributes:
        note: a figure: after the target lane, or where it is narrow at the end of the label's line.
        end: where the contender was done, marked by a line; None for no mark.
    """

    label: str
    style: str
    note: str
    target: Sequence[Bar]
    draft: Sequence[Bar] = field(default=())
    end: float | None = None


@dataclass(frozen=True)
class Steps:
    """How many steps had how many candidates; 0 candidates are alone steps."""

    label: str
    style: str
    counts: Mapping[int, int]
    accepted: float | None


def swatch(style: str) -> str:
    """The colour and line pattern of a contender, to stand before its name."""
    return (
        f'<svg class="swatch {style}" viewBox="0 0 22 10" width="22" height="10" '
        'aria-hidden="true"><path class="line" d="M0 5H22"/>'
        '<circle class="dot" cx="11" cy="5" r="3.2"/></svg>'
    )


def speed_curves(
    curves: Sequence[Curve], width: float, height: float, reach: Sequence[float] = ()
) -> str:
    """One line per contender over its units in order of speed, the line of ratio 1 among them.

    The horizontal axis is the share of units, so that contenders that ran on different numbers of
    units can be compared. Many marks are not drawn, but tell what they are when pointed at; of very
    many units only some have one, the first and last among them.

    Args:
        reach: ratios that the axis shall hold too, for charts to be compared.
    """
    left, right, top, bottom = 40.0, width - 46, 10.0, height - 38
    x = Linear(1, left, right)
    y = Log.around([*reach, *(m.ratio for curve in curves for m in curve.marks)], bottom, top)
    return svg(
        width,
        height,
        "Speed-up per unit, sorted: " + "; ".join(_curve_summary(curve) for curve in curves),
        _ratio_grid(y, left, right),
        _axis_label(width, y(1) - 5, "faster", "end"),
        _axis_label(width, y(1) + 13, "slower", "end"),
        *(_share_tick(x, share, bottom) for share in (0, 0.25, 0.5, 0.75, 1)),
        _axis_label((left + right) / 2, height - 4, "share of units, slowest first", "middle"),
        *(_curve(curve, x, y) for curve in curves),
    )


def _curve_summary(curve: Curve) -> str:
    if not curve.marks:
        return f"{curve.label} has no units"
    ratios = [m.ratio for m in curve.marks]
    return f"{curve.label} {span_text(ratios[0], ratios[-1])}"


def _curve(curve: Curve, x: Linear, y: Log) -> str:
    count = len(curve.marks)
    if not count:
        return ""
    places = [(x((n + 0.5) / count), y(m.ratio)) for n, m in enumerate(curve.marks)]
    path = "M" + "L".join(f"{point(a)} {point(b)}" for a, b in places)
    kept = min(count, MOST_MARKS)
    chosen = sorted({round(n * (count - 1) / max(kept - 1, 1)) for n in range(kept)})
    # Many marks would hide the line and its pattern: those are felt by the pointer, not seen.
    kind, radius = ("dot", "3.2") if count <= FEW_MARKS else ("hit", "5")
    dots = (
        f'<circle class="{kind}" cx="{point(places[n][0])}" cy="{point(places[n][1])}" '
        f'r="{radius}">'
        f"<title>{text(_mark_title(curve, n))}</title></circle>"
        for n in chosen
    )
    return f'<g class="{curve.style}"><path class="line" d="{path}"/>{"".join(dots)}</g>'


def _mark_title(curve: Curve, n: int) -> str:
    mark = curve.marks[n]
    return f"{curve.label}\n{mark.name}\nratio {number(mark.ratio, 3)}"


def ratio_dots(dots: Sequence[Dot], width: float) -> str:
    """A dot at each contender's pooled ratio, a whisker for its interval."""
    narrow = width < NARROW
    row, top, gap = (38.0, 22.0, 44.0) if narrow else (28.0, 22.0, 72.0)
    left, right = (6.0, width - 44) if narrow else (LABELS + 8.0, width - 108)
    bottom = top + row * len(dots)
    reach = [edge for dot in dots for edge in (dot.ratio, *(dot.interval or ()))]
    x = Log.around([edge for edge in reach if edge > 0], left, right)
    parts = [_ratio_heads(x, gap, top)]
    for index, dot in enumerate(dots):
        begin = top + row * index
        middle = begin + (26 if narrow else row / 2)
        value = number(dot.ratio)
        span = f" [{span_text(*dot.interval)}]" if dot.interval else ""
        whisker = ""
        if dot.interval:
            low, high = (point(x(edge)) for edge in dot.interval)
            y = point(middle)
            whisker = f'<path class="whisker" d="M{low} {y}H{high}"/>'
        # Beside labels that stand above, rules would run through the letters.
        parts.append(_ratio_rules(x, gap, begin + (17 if narrow else 0), begin + row))
        parts.append(
            f'<g class="{dot.style}">{_row_label(dot.label, dot.style, begin, row, width)}'
            f"{whisker}"
            f'<circle class="dot" cx="{point(x(dot.ratio))}" cy="{point(middle)}" r="5"/>'
            f'<rect class="hit" x="0" y="{point(begin)}" width="{point(width)}" '
            f'height="{point(row)}"><title>{text(_dot_title(dot))}</title></rect></g>'
        )
        if narrow:
            parts.append(_words(width, middle + 4, value, "value", "end"))
        else:
            parts.append(
                f'<text class="value" x="{point(width)}" y="{point(middle + 4)}" '
                f'text-anchor="end">{text(value)}<tspan class="muted">{text(span)}</tspan></text>'
            )
    label = "Ratio and interval: " + "; ".join(_dot_title(d).replace("\n", " ") for d in dots)
    return svg(width, bottom + 6, label, *parts)


def _dot_title(dot: Dot) -> str:
    interval = f", interval {span_text(*dot.interval, 3)}" if dot.interval else ""
    return f"{dot.label}\nratio {number(dot.ratio, 3)}{interval}"


def phase_bars(lanes: Sequence[Lane], width: float, unit: str = "s") -> str:
    """Bars that stand for sums: the target lane's on top, the draft lane's, which ran beside it."""
    return _lanes(lanes, width, unit, "Time by phase")


def lane_timeline(lanes: Sequence[Lane], width: float, unit: str = "ms") -> str:
    """What the lanes did when; all contenders on one axis of time."""
    return _lanes(lanes, width, unit, "Lanes over time")


def _lanes(lanes: Sequence[Lane], width: float, unit: str, label: str) -> str:
    narrow = width < NARROW
    left, right = (0.0, width - 4) if narrow else (LABELS + 8.0, width - 104)
    reach = [b.end for lane in lanes for b in (*lane.target, *lane.draft)]
    reach += [lane.end for lane in lanes if lane.end is not None]
    x = Linear(max([*reach, 1e-9]), left, right)
    top = 24.0
    rows: list[str] = []
    y = top
    for lane in lanes:
        head = 18.0 if narrow else 0.0
        body = 16.0 + (12.0 if lane.draft else 0.0)
        rows.append(_lane(lane, x, y, y + head, body, width))
        y += head + body + (12 if narrow else 10)
    axis = [_time_tick(x, tick, y, unit) for tick in x.ticks(52 if narrow else 76)]
    summary = "; ".join(f"{lane.label} {lane.note}" for lane in lanes)
    return svg(width, y + 2, f"{label}: {summary}", *axis, *rows)


def _lane(lane: Lane, x: Linear, begin: float, top: float, body: float, width: float) -> str:
    narrow = width < NARROW
    label = _row_label(lane.label, lane.style, begin, 16, width, lane.note)
    if not narrow:
        done = max([bar.end for bar in lane.target], default=0.0) if lane.end is None else lane.end
        label += _words(x(done) + 6, top + 12, lane.note, "value", "start")
    parts = [label, *(_bar(bar, x, top, 16) for bar in _drawable(lane.target, x))]
    if lane.draft:
        parts += [_bar(bar, x, top + 18, 8) for bar in _drawable(lane.draft, x)]
    if lane.end is not None:
        place = point(x(lane.end))
        parts.append(f'<path class="end" d="M{place} {point(top - 3)}V{point(top + body + 1)}"/>')
    return f"<g>{''.join(parts)}</g>"


def _drawable(bars: Sequence[Bar], x: Linear) -> Sequence[Bar]:
    """The bars, or where they are too many to see, one per pixel of what fills most of it."""
    columns = math.ceil(abs(x.end - x.start))
    if len(bars) <= columns / 2:
        return bars
    pixel = x.high / columns
    filled: list[dict[str, float]] = [{} for _ in range(columns)]
    for bar in bars:
        for column in range(int(bar.begin / pixel), min(int(bar.end / pixel) + 1, columns)):
            share = min(bar.end, (column + 1) * pixel) - max(bar.begin, column * pixel)
            filled[column][bar.kind] = filled[column].get(bar.kind, 0) + max(share, 0)
    runs: list[Bar] = []
    for column, shares in enumerate(filled):
        kind = max(shares, key=lambda k: shares[k], default="")
        if not kind or sum(shares.values()) < pixel / 2:
            continue
        if runs and runs[-1].kind == kind and runs[-1].end >= (column - 0.5) * pixel:
            runs[-1] = Bar(kind, runs[-1].begin, (column + 1) * pixel, f"mostly {kind}")
        else:
            runs.append(Bar(kind, column * pixel, (column + 1) * pixel, f"mostly {kind}"))
    return runs


def _bar(bar: Bar, x: Linear, y: float, height: float) -> str:
    begin, end = x(bar.begin), x(bar.end)
    return (
        f'<rect class="bar {bar.kind}" x="{point(begin)}" y="{point(y)}" '
        f'width="{point(max(end - begin, 0.3))}" height="{point(height)}">'
        f"<title>{text(bar.title)}</title></rect>"
    )


def candidate_bars(steps: Steps, most: int, share: float, width: float, height: float) -> str:
    """The steps of one contender by their number of candidates, and the mean that was accepted.

    Args:
        most, share: where the axes end; the same for charts to be compared.
    """
    left, right, top, bottom = 34.0, width - 6, 22.0, height - 34
    y = Linear(share, bottom, top)
    slot = (right - left) / (most + 1)
    total = sum(steps.counts.values())
    parts = []
    for tick in y.ticks(26):
        place = point(y(tick))
        parts.append(f'<path class="grid" d="M{point(left)} {place}H{point(right)}"/>')
        parts.append(_axis_label(left - 5, y(tick) + 4, percent(tick), "end"))
    for candidates in sorted(steps.counts):
        count = steps.counts[candidates]
        begin, tall = left + slot * candidates, bottom - y(count / total if total else 0)
        name = f"{candidates} candidates" if candidates else "alone, no candidates"
        title = f"{steps.label}\n{name}: {count} of {total} steps ({percent(count / total, 1)})"
        parts.append(
            f'<rect class="{"column" if candidates else "column hollow"}" '
            f'x="{point(begin + slot * 0.08)}" y="{point(bottom - tall)}" '
            f'width="{point(slot * 0.84)}" height="{point(tall)}">'
            f"<title>{text(title)}</title></rect>"
        )
    parts.append(f'<path class="axis" d="M{point(left)} {point(bottom)}H{point(right)}"/>')
    parts += [
        _axis_label(left + slot * (n + 0.5), bottom + 14, "alone" if n == 0 else str(n), "middle")
        for n in _slots(most, slot)
    ]
    parts.append(_axis_label((left + right) / 2, height - 4, "candidates in a step", "middle"))
    if steps.accepted is not None:
        mean = left + slot * (min(steps.accepted, most) + 0.5)
        words = f"mean accepted {number(steps.accepted)}"
        aside, anchor = (-5, "end") if mean > right - 130 else (5, "start")
        parts.append(f'<path class="mean" d="M{point(mean)} {point(top - 14)}V{point(bottom)}"/>')
        parts.append(_words(mean + aside, top - 6, words, "value", anchor))
    summary = f"{steps.label}: mean accepted {number(steps.accepted)}"
    return svg(width, height, summary, f'<g class="{steps.style}">{"".join(parts)}</g>')


def _slots(most: int, slot: float) -> list[int]:
    """Which numbers of candidates have room for their label; "alone" takes the place of two."""
    step = next(s for s in (1, 2, 4, 8, 16, 32, 64) if s * slot >= 18)
    first = next((n for n in range(step, most + 1, step) if n * slot >= 32), most)
    return [0, *range(first, most + 1, step)]


def _row_label(
    label: str, style: str, top: float, height: float, width: float, note: str = ""
) -> str:
    """A contender's swatch and name; narrow: on a line of its own, with its note at the end."""
    narrow = width < NARROW
    middle = top + (7 if narrow else height / 2)
    room = width - 22 - (len(note) * 7.5 + 12 if note else 0) if narrow else LABELS - 22
    words = (
        f'<g class="{style}"><path class="line" d="M0 {point(middle)}H16"/>'
        f'<circle class="dot" cx="8" cy="{point(middle)}" r="3"/></g>'
        f'<text x="22" y="{point(middle + 4)}">{text(fit(label, room))}</text>'
    )
    if narrow and note:
        words += _words(width, middle + 4, note, "value", "end")
    return words


def _words(x: float, y: float, words: str, style: str, anchor: str) -> str:
    return (
        f'<text class="{style}" x="{point(x)}" y="{point(y)}" text-anchor="{anchor}">'
        f"{text(words)}</text>"
    )


def _axis_label(x: float, y: float, words: str, anchor: str) -> str:
    return _words(x, y, words, "muted", anchor)


def _ratio_grid(y: Log, left: float, right: float) -> str:
    parts = []
    for tick in y.ticks(36):
        place = point(y(tick))
        kind = "one" if tick == 1 else "grid"
        parts.append(f'<path class="{kind}" d="M{point(left)} {place}H{point(right)}"/>')
        parts.append(_axis_label(left - 6, y(tick) + 4, _ratio_name(tick), "end"))
    return "".join(parts)


def _ratio_heads(x: Log, gap: float, top: float) -> str:
    return "".join(
        _axis_label(x(tick), top - 9, _ratio_name(tick), "middle") for tick in x.ticks(gap)
    )


def _ratio_rules(x: Log, gap: float, top: float, bottom: float) -> str:
    parts = []
    for tick in x.ticks(gap):
        kind = "one" if tick == 1 else "grid"
        parts.append(f'<path class="{kind}" d="M{point(x(tick))} {point(top)}V{point(bottom)}"/>')
    return "".join(parts)


def _ratio_name(ratio: float) -> str:
    return f"{ratio:g}\u00d7"


def _share_tick(x: Linear, share: float, bottom: float) -> str:
    anchor = "start" if share == 0 else "end" if share == 1 else "middle"
    return _axis_label(x(share), bottom + 16, percent(share), anchor)


def _time_tick(x: Linear, tick: float, bottom: float, unit: str) -> str:
    place = point(x(tick))
    anchor = "start" if x(tick) - x.start < 4 else "middle"
    if x(tick) > x.end - 14:
        anchor = "end"
    name = f"{tick:,.6g}".replace(",", "\u202f") + (f" {unit}" if tick == 0 else "")
    return (
        f'<path class="grid" d="M{place} 16V{point(bottom - 6)}"/>'
        f"{_axis_label(x(tick), 11, name, anchor)}"
    )
