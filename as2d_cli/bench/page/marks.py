"""Text, numbers and tags, such that nothing in a document can break the page."""

from __future__ import annotations

import math
import re
import unicodedata
from html import escape

__all__ = ["NOTHING", "duration", "fit", "number", "percent", "point", "span_text", "svg", "text"]

NOTHING = "\u2013"
"""Stands where a figure is not known."""

_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")


def text(value: object) -> str:
    """`value` for element content and for quoted attributes.

    File names may hold bytes that are no text and controls that turn a line around: what HTML or
    UTF-8 cannot carry is replaced, what would reorder the text about it is left out.
    """
    return escape(_BIDI.sub("", _UNPRINTABLE.sub("\ufffd", str(value))), quote=True)


def number(value: object, digits: int = 2, unit: str = "") -> str:
    """Fixed-point with thousands set apart, or NOTHING for what is no finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return NOTHING
    shown = f"{value:,.{digits}f}".replace(",", "\u202f")
    if shown.startswith("-") and not shown.strip("-0.\u202f"):
        shown = shown[1:]
    return shown + unit


def percent(value: object, digits: int = 0) -> str:
    """A share of 1 as a percentage."""
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return number(value * 100 if known else None, digits, "\u202f%")  # type: ignore[operator]


def duration(seconds: float) -> str:
    """For people: ``41 s``, ``9 min 40 s``, ``2 h 5 min``, with spaces that do not break."""
    if round(seconds) < 60:
        return number(seconds, 0 if seconds >= 10 else 1, "\u00a0s")
    minutes, rest = divmod(round(seconds), 60)
    first = f"{minutes // 60}\u00a0h" if minutes >= 60 else ""
    second = f"{minutes % 60}\u00a0min" if minutes % 60 else ""
    third = f"{rest}\u00a0s" if rest and not first else ""
    return "\u00a0".join(part for part in (first, second, third) if part)


def span_text(low: object, high: object, digits: int = 2) -> str:
    """A range: ``1.20-1.45`` with a proper dash."""
    return f"{number(low, digits)}\u2013{number(high, digits)}"


def point(value: float) -> str:
    """A coordinate: a tenth of a pixel is finer than any screen shows."""
    shown = f"{value:.1f}".removesuffix(".0")
    return "0" if shown == "-0" else shown


def fit(value: str, width: float, size: float = 12) -> str:
    """`value` cut with an ellipsis so that it takes at most about `width` pixels.

    Widths are those of a wide sans-serif: a page cannot ask which font it will get.
    """
    used = 0.0
    for index, letter in enumerate(value):
        used += size * (1.0 if unicodedata.east_asian_width(letter) in "WF" else 0.62)
        if used > width:
            return value[: max(index - 1, 0)].rstrip() + "\u2026"
    return value


def svg(width: float, height: float, label: str, *parts: str) -> str:
    """A drawing; `label` is what a screen reader says instead of it."""
    return (
        f'<svg viewBox="0 0 {point(width)} {point(height)}" width="{point(width)}" '
        f'height="{point(height)}" role="img" aria-label="{text(label)}">{"".join(parts)}</svg>'
    )
