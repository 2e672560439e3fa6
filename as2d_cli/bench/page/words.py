"""Verdicts in plain language."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from as2d_cli.bench.page.marks import duration, number, percent, span_text
from as2d_cli.bench.page.reading import Contender, Reading

__all__ = ["count", "finding", "headline", "interval", "speed", "text_verdict"]


def headline(reading: Reading) -> str:
    """What was measured: ``whisper-base: 6 contenders on 24 windows, 9 min 40 s of audio``."""
    targets = [m["id"] for m in reading.document["models"] if m["role"] == "target"]
    noun = reading.document["settings"]["by"]
    audio = duration(sum(unit.audio_seconds for unit in reading.units))
    return (
        f"{', '.join(targets) or 'as2d'}: {count(len(reading.contenders), 'contender')} on "
        f"{count(len(reading.units), noun)}, {audio} of audio"
    )


def finding(reading: Reading) -> str:
    """What to take home: the fastest, and whether its text is right."""
    leader, base = reading.leader(), reading.baseline
    if base is None or leader is None:
        return "There is nothing to compare: no contender beside the baseline has a figure yet."
    bounds = interval(leader.figures)
    figure = f"{number(leader.figures['ratio'])} times its speed{_interval_words(leader.figures)}"
    if bounds and bounds[0] > 1:
        words = f"{leader.label} is the fastest. It beats {base.label} at {figure}."
    elif bounds and bounds[1] < 1:
        words = f"Nothing beats {base.label}. The next, {leader.label}, reaches {figure}."
    else:
        words = f"Nothing is clearly faster than {base.label}: {leader.label} reaches {figure}."
    return words if leader.reference else f"{words} {text_verdict(leader, reading)[1]}"


def speed(contender: Contender, reading: Reading) -> tuple[str, str, str]:
    """A verdict on speed: its kind for the eye, the words that say it, and the rest."""
    figures = contender.figures
    ratio, bounds = figures.get("ratio"), interval(figures)
    if contender.baseline:
        return "baseline", "Baseline:", "all ratios are to this one."
    if not isinstance(ratio, int | float) or not math.isfinite(ratio):
        return (
            "unclear",
            "Not known:",
            "nothing was measured that the baseline was measured on, too.",
        )
    if bounds is None:
        one = len(reading.ratios(contender)) == 1
        kind, words = "unclear", "Not clear from one unit:" if one else "Not clear, no interval:"
    elif bounds[0] > 1:
        kind, words = "faster", "Faster:"
    elif bounds[1] < 1:
        kind, words = "slower", "Slower:"
    else:
        kind, words = "unclear", "No clear difference:"
    rest = f"{number(ratio)} times the baseline\u2019s speed{_interval_words(figures)}"
    share = figures.get("slower_share")
    if share is not None and bounds is not None:
        rest += f"; slower on {_part(share)}"
    return kind, words, rest + "."


def text_verdict(contender: Contender, reading: Reading) -> tuple[bool, str]:
    """Whether its text is the reference's, and the sentence."""
    if contender.reference:
        return True, "Its text is what all others must equal."
    clean = reading.clean
    samples = reading.samples(contender, clean)
    done, wrong = {s["unit"] for s in samples}, {s["unit"] for s in samples if s["differs"]}
    if not done:
        return True, "It has no text to compare."
    if not wrong:
        where = "in its one unit" if len(done) == 1 else f"in all {len(done)} units"
        return True, f"Same text as the reference, token for token, {where}."
    names = [reading.units[index].name for index in sorted(wrong)]
    listed = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    expected = "" if contender.exact else " It is not in exact mode, so that this may happen."
    share = f"{len(wrong)} of {count(len(done), 'unit')}"
    return False, f"Other text than the reference in {share}: {listed}.{expected}"


def interval(figures: Mapping[str, Any]) -> tuple[float, float] | None:
    """The interval of the pooled ratio, if there is one that says something."""
    bounds = figures.get("ratio_interval")
    if not bounds or any(edge is None or not math.isfinite(edge) for edge in bounds):
        return None
    if figures.get("windows") == 1:
        return None
    return float(bounds[0]), float(bounds[1])


def _part(share: float) -> str:
    if share in (0, 1):
        return "no unit" if share == 0 else "every unit"
    return f"{percent(share)} of the units"


def _interval_words(figures: Mapping[str, Any]) -> str:
    bounds = interval(figures)
    return f" (95\u202f% interval {span_text(*bounds)})" if bounds else ""


def count(n: int, noun: str) -> str:
    """``1 unit``, ``2 units``."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
