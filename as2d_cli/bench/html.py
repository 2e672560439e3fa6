"""A bench document as one page that needs nothing else: no network, no other file."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import resources
from itertools import groupby
from statistics import fmean
from string import Template
from typing import Any

from as2d_cli.bench.page.charts import (
    Bar,
    Curve,
    Dot,
    Lane,
    Mark,
    Steps,
    candidate_bars,
    lane_timeline,
    phase_bars,
    ratio_dots,
    speed_curves,
    swatch,
)
from as2d_cli.bench.page.marks import number, percent, text
from as2d_cli.bench.page.methods import methods
from as2d_cli.bench.page.reading import COLOURS, Contender, Reading, Unit
from as2d_cli.bench.page.table import summary_table
from as2d_cli.bench.page.words import count, finding, headline, interval, speed, text_verdict

__all__ = ["page"]

WIDE, NARROW = 960, 340
"""Widths that charts are drawn for; the page shows the one that fits."""

ACTIVITIES = {
    "encoding": "the encoder of the lane\u2019s model",
    "prompting": "the prompt, before the first token",
    "verifying": "target steps with candidates",
    "alone": "target steps without candidates",
    "drafting": "decoder steps of the drafter",
}


_PHASES = {
    "encoding": "encode",
    "prompting": "prompt",
    "verifying": "decode with candidates",
    "alone": "decode alone",
    "drafting": "draft",
    "rest": "the rest of the wall time",
}


def page(document: Mapping[str, Any]) -> str:
    """The page; `document` is what ``as2d bench --json`` writes."""
    reading = Reading(document)
    template = resources.files("as2d_cli.bench.page").joinpath("template.html").read_text("utf-8")
    script = template.partition("<script>")[2].partition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    sections = (
        _verdicts(reading),
        _table(reading),
        _speed(reading),
        _phases(reading),
        _timelines(reading),
        _candidates(reading),
        _flagged(reading),
        _section("Methods", methods(reading), "methods"),
    )
    return Template(template).substitute(
        title=text(headline(reading)), digest=digest, head=_head(reading), body="".join(sections)
    )


def _head(reading: Reading) -> str:
    document = reading.document
    machine, settings = document["machine"], document["settings"]
    cores = len(machine["cores"])
    where = ", ".join(
        text(part)
        for part in (
            machine["cpu"],
            count(cores, "core"),
            f"kernels {machine['kernels']}",
            machine["system"],
        )
    )
    complete = document["complete"]
    state = "complete" if complete else "interrupted"
    times = settings["repeat"]
    how = f"Measured {'once' if times == 1 else f'{times} times'} per {text(settings['by'])}."
    notice = (
        ""
        if complete
        else f'<p class="notice"><strong>Interrupted.</strong> These are the figures of the '
        f"{len(document['samples'])} samples that were done by then.</p>"
    )
    return (
        f'<p class="eyebrow">as2d {text(document["as2d"])} bench '
        f"<span>{text(_moment(document['created']))}</span> "
        f'<span class="state {state}">{state}</span></p>'
        f"<h1>{text(headline(reading))}</h1>"
        f'<p class="finding">{text(finding(reading))}</p>'
        f'<p class="where">{where}. {how}</p>{notice}'
    )


def _moment(created: object) -> str:
    return re.sub(r"(\.\d+)?(\+00:00|Z)$", " UTC", str(created).replace("T", " "))


def _verdicts(reading: Reading) -> str:
    dots = [
        Dot(c.label, c.style, c.figures["ratio"], None if c.baseline else interval(c.figures))
        for c in reading.contenders
        if isinstance(c.figures.get("ratio"), int | float) and c.figures["ratio"] > 0
    ]
    base = f" of {reading.baseline.label}" if reading.baseline else ""
    chart = _figure(
        lambda width: ratio_dots(dots, width),
        f"Speed as a multiple{base}, all units pooled, on a logarithmic axis. Whiskers are "
        "95\u202f% bootstrap intervals over units: one that crosses 1\u00d7 shows no clear "
        "difference.",
    )
    items = "".join(_verdict(c, reading) for c in reading.contenders)
    return _section("Is it faster?", (chart if dots else "") + f'<ul class="verdicts">{items}</ul>')


def _verdict(contender: Contender, reading: Reading) -> str:
    kind, words, rest = speed(contender, reading)
    same, text_sentence = text_verdict(contender, reading)
    notes = []
    if contender.ceiling:
        notes.append("A ceiling, not a way to go: its drafter knows what the target will say.")
    lost = [s["lost"] for s in reading.samples(contender, reading.units) if s["lost"]]
    if lost:
        notes.append(f"The drafter was lost in {count(len(lost), 'sample')}: {lost[0]}.")
    extra = "".join(f" <span>{text(note)}</span>" for note in notes)
    return (
        f"<li><strong>{swatch(contender.style)}{text(contender.label)}</strong> "
        f'<span class="speed"><b class="{kind}">{words}</b> {text(rest)}</span> '
        f'<span class="{"same" if same else "differs"}">{text(text_sentence)}</span>{extra}</li>'
    )


def _table(reading: Reading) -> str:
    note = "Ratios above 1 are faster than the baseline."
    if reading.flagged:
        left = len(reading.flagged)
        units = "One flagged unit is" if left == 1 else f"{left} flagged units are"
        note += f" {units} left out and listed below."
    return _section(
        "All figures", summary_table(reading.contenders) + f'<p class="caption">{note}</p>'
    )


def _speed(reading: Reading) -> str:
    if reading.baseline is None:
        return ""
    curves = [
        (c, Curve(c.label, c.style, [Mark(r, u.name) for r, u in reading.ratios(c)]))
        for c in reading.contenders
        if not c.baseline
    ]
    curves = [(c, curve) for c, curve in curves if curve.marks]
    if not any(len(curve.marks) > 1 for _, curve in curves):
        return ""
    if len(curves) > COLOURS:
        charts = _speed_panels(curves)
    else:
        lines = [curve for _, curve in curves]
        charts = _legend(c for c, _ in curves) + _drawing(
            lambda width: speed_curves(lines, width, 260 if width == NARROW else 320)
        )
    return _section(
        "Where is it faster?",
        f"<figure>{charts}<figcaption>Each line is one contender; each mark is one unit, at the "
        "baseline\u2019s seconds over its own (medians of the repeats), sorted. A line "
        "above 1\u00d7 from end to end is faster on every unit; where it crosses is the share of "
        "slower units. Point at a line for the unit there; of more than 60 units, 60 can be "
        "pointed at.</figcaption></figure>",
    )


def _speed_panels(curves: Sequence[tuple[Contender, Curve]]) -> str:
    """More lines than colours: a chart for each method and drafter, all with the same axes."""
    reach = [m.ratio for _, curve in curves for m in curve.marks]
    panels = []
    for _, pairs in groupby(curves, key=lambda pair: pair[0].family):
        group = list(pairs)
        chart = speed_curves([curve for _, curve in group], NARROW, 230, reach)
        panels.append(f'<div class="panel">{_legend(c for c, _ in group)}{chart}</div>')
    return f'<div class="panels">{"".join(panels)}</div>'


def _phases(reading: Reading) -> str:
    lanes = [lane for c in reading.contenders if (lane := _phase_lane(c, reading))]
    if not lanes:
        return ""
    drawn = {bar.kind for lane in lanes for bar in (*lane.target, *lane.draft)}
    chart = _figure(
        lambda width: phase_bars(lanes, width),
        "Seconds summed over the units, at the median time of each. Thick: the "
        "target lane, up to the wall time. Thin: the draft lane, which runs at the same time and "
        "does not add to it. Bars show sums, not an order of time.",
        legend=_kinds({kind: name for kind, name in _PHASES.items() if kind in drawn}),
    )
    return _section("Where does the time go?", chart)


def _phase_lane(contender: Contender, reading: Reading) -> Lane | None:
    measured = [m for unit in reading.clean if (m := reading.middle(contender, unit))]
    if not measured:
        return None
    sums = {
        phase: sum(fmean(s["phases"].get(phase) or 0.0 for s in middle) for middle in measured)
        for phase in ("encode", "prompt", "decode", "draft_encode", "draft_decode")
    }
    wall = sum(fmean(s["seconds"] for s in middle) for middle in measured)
    rest = max(wall - sums["encode"] - sums["prompt"] - sums["decode"], 0.0)
    kind = "verifying" if any(s["steps"]["verify"] for m in measured for s in m) else "alone"
    target = (
        ("encoding", "encode", sums["encode"]),
        ("prompting", "prompt", sums["prompt"]),
        (kind, "decode", sums["decode"]),
        ("rest", "the rest", rest),
    )
    draft = (
        ("encoding", "draft encode", sums["draft_encode"]),
        ("drafting", "draft decode", sums["draft_decode"]),
    )
    note = f"{number(wall)} s"
    if len(measured) < len(reading.clean):
        note += f" on {len(measured)} of {len(reading.clean)} units"
    return Lane(
        contender.label,
        contender.style,
        note,
        _stacked(contender, target),
        _stacked(contender, draft),
        wall,
    )


def _stacked(contender: Contender, parts: Iterable[tuple[str, str, float]]) -> list[Bar]:
    bars, begin = [], 0.0
    for kind, name, seconds in parts:
        if seconds > 0:
            title = f"{contender.label}\n{name}: {number(seconds, 3)} s"
            bars.append(Bar(kind, begin, begin + seconds, title))
            begin += seconds
    return bars


def _timelines(reading: Reading) -> str:
    if not reading.document.get("spans"):
        return _section(
            "What do the lanes do?",
            '<p class="caption">This document has no spans. <code>as2d bench</code> keeps them '
            "when <code>--html</code> or <code>--trace</code> is given.</p>",
        )
    leader = reading.leader() or next(iter(reading.contenders), None)
    chosen: list[tuple[str, Unit]] = []
    if leader and (timed := reading.with_spans(leader)):
        chosen.append(("A typical unit", timed[(len(timed) - 1) // 2][1]))
        if timed[0][1] is not chosen[0][1]:
            chosen.append(("The worst unit", timed[0][1]))
    if leader is None or not chosen:
        return ""
    legend = _kinds(ACTIVITIES)
    figures = "".join(_timeline(name, unit, leader, reading) for name, unit in chosen)
    return _section("What do the lanes do?", legend + figures)


def _timeline(name: str, unit: Unit, leader: Contender, reading: Reading) -> str:
    lanes = [lane for c in reading.contenders if (lane := _timeline_lane(c, unit, reading))]
    ratio = number(reading.ratio(leader, unit))
    which = "median" if name == "A typical unit" else "lowest"
    return f"<h3>{name}: {text(unit.name)}</h3>" + _figure(
        lambda width: lane_timeline(lanes, width),
        f"Of all units, {leader.label} has its {which} ratio ({ratio}, over all repeats) on this. "
        "Each contender is shown in its sample with the median time. Thick: target lane. Thin: "
        "draft lane. The line marks the end. Where activities change faster than pixels, the one "
        "that fills most of a pixel is shown. Milliseconds since the sample began.",
    )


def _timeline_lane(contender: Contender, unit: Unit, reading: Reading) -> Lane | None:
    spans = reading.spans(contender, unit)
    if not spans:
        return None
    end = reading.middle(contender, unit)[0]["seconds"] * 1000
    bars: dict[str, list[Bar]] = {"target": [], "draft": []}
    for span in spans:
        begin, end = span["begin"] * 1000, span["end"] * 1000
        title = (
            f"{contender.label}, {span['lane']} lane, window {span['window']}\n{span['activity']}: "
            f"{number(begin, 1)}\u2013{number(end, 1)} ms ({number(end - begin, 1)} ms)"
        )
        kind = span["activity"] if span["activity"] in ACTIVITIES else "rest"
        bars.setdefault(span["lane"], []).append(Bar(kind, begin, end, title))
    note = f"{number(end, 0)} ms"
    return Lane(contender.label, contender.style, note, bars["target"], bars["draft"], end)


def _candidates(reading: Reading) -> str:
    found = [s for c in reading.contenders if any((s := _steps(c, reading)).counts)]
    if not found:
        return ""
    most = max(max(steps.counts) for steps in found)
    share = max(n / sum(steps.counts.values()) for steps in found for n in steps.counts.values())
    panels = "".join(
        f'<div class="panel"><h3>{swatch(steps.style)}{text(steps.label)}</h3>'
        f"{candidate_bars(steps, max(most, 1), share, 330, 190)}</div>"
        for steps in found
    )
    return _section(
        "How much is drafted, how much accepted?",
        f'<figure><div class="panels">{panels}</div><figcaption>Bars: the share of the '
        "target\u2019s steps, over all samples, that had so many candidates to verify; alone steps "
        "(hollow) had none. Steps of 64 candidates and more count as 64. Line: how many candidates "
        "a verify step accepted in the mean. Only this mean is known; the bars are not the "
        "distribution of accepted lengths.</figcaption></figure>",
    )


def _steps(contender: Contender, reading: Reading) -> Steps:
    counts: dict[int, int] = {}
    accepted = 0
    for sample in reading.samples(contender, reading.clean):
        if sample["lost"]:
            continue
        steps = sample["steps"]
        accepted += sample["accepted"]
        for candidates, made in (("0", steps["alone"]), *steps["verify"].items()):
            if made:
                counts[int(candidates)] = counts.get(int(candidates), 0) + made
    verify = sum(made for candidates, made in counts.items() if candidates)
    return Steps(contender.label, contender.style, counts, accepted / verify if verify else None)


def _flagged(reading: Reading) -> str:
    if not reading.flagged:
        return ""
    rows = [c.figures.get("flagged") for c in reading.contenders]
    lines = "".join(
        f'<tr><th scope="row">{swatch(c.style)}<span>{text(c.label)}</span></th>'
        f"<td>{number(row.get('windows'), 0)}</td><td>{number(row.get('differing'), 0)}</td>"
        f"<td>{number(row.get('ratio'))}</td><td>{number(row.get('seconds'))}</td>"
        f"<td>{percent(row.get('wer'), 1)}</td></tr>"
        for c, row in zip(reading.contenders, rows, strict=True)
        if row
    )
    table = (
        '<div class="scroll"><table class="figures"><thead><tr><th scope="col">contender</th>'
        '<th scope="col">windows</th><th scope="col">differ</th><th scope="col">ratio</th>'
        f'<th scope="col">seconds</th><th scope="col">WER</th></tr></thead><tbody>{lines}</tbody>'
        "</table></div>"
        if lines
        else ""
    )
    items = "".join(_flagged_unit(unit, reading) for unit in reading.flagged)
    return _section(
        "Left out of the figures",
        '<p class="caption">A text that repeats itself in a loop is easy to draft and says nothing '
        "of speech: these units are in none of the figures and charts above.</p>"
        f'{table}<ul class="flagged">{items}</ul>',
    )


def _flagged_unit(unit: Unit, reading: Reading) -> str:
    said = (reading.texts.get(unit.index) or {}).get("text")
    right = unit.entry.get("reference_text")
    quotes = "".join(
        f'<div><span class="tag">{name}</span> <q dir="auto">{text(words)}</q></div>'
        for name, words in (("target", said), ("reference", right))
        if words
    )
    flags = "".join(f' <span class="tag">{text(flag)}</span>' for flag in unit.flags)
    return f"<li><strong>{text(unit.name)}</strong>{flags}{quotes}</li>"


def _section(title: str, body: str, style: str = "") -> str:
    return f'<section class="{style}"><h2>{title}</h2>{body}</section>'


def _figure(draw: Callable[[float], str], caption: str, legend: str = "") -> str:
    drawing = _drawing(draw)
    return f"<figure>{legend}{drawing}<figcaption>{text(caption)}</figcaption></figure>"


def _drawing(draw: Callable[[float], str]) -> str:
    return f'<div class="wide">{draw(WIDE)}</div><div class="narrow">{draw(NARROW)}</div>'


def _legend(contenders: Iterable[Contender]) -> str:
    items = "".join(f"<li>{swatch(c.style)}{text(c.label)}</li>" for c in contenders)
    return f'<ul class="legend">{items}</ul>'


def _kinds(names: Mapping[str, str]) -> str:
    items = "".join(
        '<li><svg class="swatch" viewBox="0 0 12 12" width="12" height="12" aria-hidden="true">'
        f'<rect class="bar {kind}" width="12" height="12"/></svg>'
        + (f"{kind}: " if names is ACTIVITIES else "")
        + f"{text(name)}</li>"
        for kind, name in names.items()
    )
    return f'<ul class="legend">{items}</ul>'
