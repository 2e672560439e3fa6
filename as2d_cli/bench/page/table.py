"""The summary as a table whose columns can be sorted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from as2d_cli.bench.page.charts import swatch
from as2d_cli.bench.page.marks import number, percent, span_text, text
from as2d_cli.bench.page.reading import Contender
from as2d_cli.bench.page.words import interval

__all__ = ["summary_table"]

MEGABYTE = 1e6


@dataclass(frozen=True)
class _Column:
    """`value` sorts, `show` is what is read; `hint` is the full name."""

    group: str
    name: str
    hint: str
    value: Callable[[Mapping[str, Any]], Any]
    show: Callable[[Any], str]


def _plain(
    group: str, key: str, name: str, hint: str, show: Callable[[Any], str] = number
) -> _Column:
    return _Column(group, name, hint, lambda row: row.get(key), show)


def _whole(value: Any) -> str:
    return number(value, 0)


def _three(value: Any) -> str:
    return number(value, 3)


def _one(value: Any) -> str:
    return number(value, 1)


def _tenths(value: Any) -> str:
    return percent(value, 1)


def _megabytes(value: Any) -> str:
    return number(None if value is None else value / MEGABYTE, 0)


_COLUMNS = (
    _plain("Speed", "ratio", "ratio", "baseline seconds over own seconds, all units pooled"),
    _Column(
        "Speed",
        "95\u202f% interval",
        "bootstrap interval of the ratio over units",
        interval,
        lambda bounds: span_text(*bounds) if bounds else number(None),
    ),
    _plain("Speed", "geometric_mean", "geo. mean", "geometric mean of the ratios of the units"),
    _plain("Speed", "slower_share", "slower units", "units slower than the baseline", percent),
    _plain("Speed", "oracle_share", "of best choice", "share of a hindsight oracle", percent),
    _plain("Speed", "seconds", "seconds", "over all units"),
    _plain("Speed", "real_time", "\u00d7\u00a0real time", "seconds of audio per second", _one),
    _plain("Speed", "tokens_per_second", "tokens /s", "tokens committed per second", _one),
    _plain("Speed", "p50", "p50 s", "median seconds of a unit", _three),
    _plain("Speed", "p95", "p95 s", "95th percentile of the seconds of a unit", _three),
    _plain("Text", "windows", "win\u00addows", "windows measured", _whole),
    _plain("Text", "differing", "differ", "windows with another text than the reference", _whole),
    _plain("Text", "wer", "WER", "word error rate where a reference text exists", _tenths),
    _plain("Text", "looped", "looped", "units left out of all figures of this row", _whole),
    _plain("Drafting", "tokens_per_step", "tokens /step", "tokens a step commits"),
    _plain("Drafting", "accepted_length", "accepted", "accepted candidates per verify step"),
    _plain("Drafting", "acceptance", "accept\u00adance", "accepted over proposed", percent),
    _plain("Drafting", "alone_share", "alone steps", "steps without candidates", percent),
    _plain("Drafting", "lead", "lead", "mean lead of the drafter in tokens", _one),
    _plain("Drafting", "realignments", "re\u00adaligned", "realignments", _whole),
    _plain("Cost", "load_seconds", "load s", "seconds to load", _one),
    _plain("Cost", "peak_memory_bytes", "peak MB", "peak memory in 10\u2076 bytes", _megabytes),
)


def summary_table(contenders: Sequence[Contender]) -> str:
    """One row each; columns that say nothing are left out."""
    rows = [_row(contender) for contender in contenders]
    columns = [c for c in _COLUMNS if any(_says(c, row) for row in rows)]
    body = "".join(_body(c, row, columns) for c, row in zip(contenders, rows, strict=True))
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="Summary">'
        f'<table class="figures sortable"><thead>{_head(columns)}</thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _row(contender: Contender) -> Mapping[str, Any]:
    known = {"load_seconds", "peak_memory_bytes"}
    own = {key: contender.entry.get(key) for key in known}
    row = own | {k: v for k, v in contender.figures.items() if v is not None}
    return row | {"ratio_interval": None} if contender.baseline else row


def _says(column: _Column, row: Mapping[str, Any]) -> bool:
    value = column.value(row)
    return bool(value) if column.name == "looped" else value is not None


def _head(columns: Sequence[_Column]) -> str:
    spans = "".join(
        f'<th scope="colgroup" class="first" colspan="{len(list(members))}">{group}</th>'
        for group, members in groupby(columns, key=lambda column: column.group)
    )
    heads = "".join(
        f'<th scope="col" class="{_edge(column, columns)}" title="{text(column.hint)}">'
        f"{text(column.name)}</th>"
        for column in columns
    )
    return f'<tr class="groups"><td></td>{spans}</tr><tr><th scope="col">contender</th>{heads}</tr>'


def _body(contender: Contender, row: Mapping[str, Any], columns: Sequence[_Column]) -> str:
    cells = []
    for column in columns:
        value = column.value(row)
        key = value[0] if isinstance(value, tuple) else value
        shown = column.show(value)
        data = "" if key is None or shown == number(None) else f' data-value="{text(key)}"'
        alarm = " alarm" if column.name == "differ" and value else ""
        cells.append(f'<td class="{_edge(column, columns)}{alarm}"{data}>{text(shown)}</td>')
    return (
        f'<tr{" class=baseline" if contender.baseline else ""}><th scope="row">'
        f"{swatch(contender.style)}{text(contender.label)}{_tags(contender)}</th>"
        f"{''.join(cells)}</tr>"
    )


def _edge(column: _Column, columns: Sequence[_Column]) -> str:
    """The first of a group has a line before it."""
    return "first" if next(c for c in columns if c.group == column.group) is column else ""


def _tags(contender: Contender) -> str:
    tags = {
        "baseline": contender.baseline,
        "reference": contender.reference,
        "ceiling": contender.ceiling,
        "not exact": not contender.exact,
    }
    shown = ", ".join(tag for tag, on in tags.items() if on)
    return f"<small>{shown}</small>" if shown else ""
