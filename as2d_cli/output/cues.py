"""A segment's text -> cues: what stands on the screen together, for how long, in which lines."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from as2d_cli.tasks.transcript import Segment
from as2d_cli.text.words import QUOTES, SENTENCE_ENDS

__all__ = ["Cue", "CueRules", "cues"]


@dataclass(frozen=True)
class CueRules:
    """What subtitles may be; the figures are those that broadcasters ask for.

    Attributes:
        line_length: most cells of a line; a wide character takes two. A longer word stays whole.
        lines: most lines of a cue.
        longest: seconds that a cue of more than one line stays at most.
        shortest: seconds that a cue stays at least, where the next one leaves room.
        gap: seconds between two cues, so that a change is seen.
    """

    line_length: int = 42
    lines: int = 2
    longest: float = 7.0
    shortest: float = 1.0
    gap: float = 0.08


@dataclass(frozen=True)
class Cue:
    """Seconds from the beginning of the input, and the lines."""

    start: float
    end: float
    lines: tuple[str, ...]


def cues(segment: Segment, rules: CueRules) -> list[Cue]:
    """The cues of `segment`, in order, inside its time and without overlap.

    Where a word is spoken in it is not known: its text is spread over the time in which somebody
    speaks, by its length. A cue ends with a sentence where that makes it at least half full.
    """
    units = _units(segment.text)
    if not units:
        return []
    time = _Time(segment, sum(unit.cells for unit in units))
    groups = list(_groups(units, rules, time))
    edges = [0]
    for group in groups:
        edges.append(edges[-1] + sum(unit.cells for unit in group))
    starts = [time.after(edge) for edge in edges[:-1]]
    found = []
    for i, group in enumerate(groups):
        latest = segment.end
        if i + 1 < len(groups):
            # In a hurry the gap is what gives way.
            latest = max(starts[i + 1] - rules.gap, (starts[i] + starts[i + 1]) / 2)
        end = min(max(time.before(edges[i + 1]), starts[i] + rules.shortest), latest)
        found.append(Cue(starts[i], end, _lines(group, rules)))
    return found


@dataclass(frozen=True)
class _Unit:
    """What no line break may divide: a word, or a character of a script without spaces."""

    text: str
    spaced: bool  # a space follows it

    @property
    def cells(self) -> int:
        return max(1, _cells(self.text)) + self.spaced


class _Time:
    """Length of text so far -> time: along the words, or along what is spoken of a segment."""

    def __init__(self, segment: Segment, cells: int) -> None:
        if segment.words:
            lengths = [float(max(1, _cells(word.text))) for word in segment.words]
            self._spans = tuple((word.start, word.end) for word in segment.words)
        else:
            self._spans = segment.spoken or ((segment.start, segment.end),)
            lengths = [b - a for a, b in self._spans]
        whole = sum(lengths)
        # The cells of text that are said in each span.
        self._shares = [cells * length / whole if whole else 0.0 for length in lengths]

    def after(self, cells: float) -> float:
        """When what follows that much begins."""
        for (a, b), share in zip(self._spans, self._shares, strict=True):
            if cells < share - 1e-9:
                return a + (b - a) * cells / share
            cells -= share
        return self._spans[-1][1]

    def before(self, cells: float) -> float:
        """When that much is said."""
        for (a, b), share in zip(self._spans, self._shares, strict=True):
            if cells <= share + 1e-9:
                return min(a + (b - a) * cells / share, b) if share else b
            cells -= share
        return self._spans[-1][1]


_CLAUSE = (",", ";", ":", "\u2014", "\u2013", "\u3001", "\uff0c", "\uff1b", "\uff1a", "\u060c")
_OPENING = "([\u300c\u300e\uff08\u00ab\u201c"
_LEAST_REST = 12
"""Cells: less than this is not left alone in a cue of its own."""


def _groups(units: Sequence[_Unit], rules: CueRules, time: _Time) -> Iterator[Sequence[_Unit]]:
    """Units that make a cue together."""
    rest = list(units)
    said = 0
    while rest:
        count = _most(rest, rules, time, said)
        if count < len(rest):
            count = _break(rest, count)
        yield rest[:count]
        said += sum(unit.cells for unit in rest[:count])
        rest = rest[count:]


def _most(units: Sequence[_Unit], rules: CueRules, time: _Time, said: int) -> int:
    """How many fit into one cue after `said` cells of text; at least one."""
    lines, width, cells = 1, 0, said
    start = time.after(said)
    for i, unit in enumerate(units):
        size = _cells(unit.text)
        cells += unit.cells
        if width and width + size > rules.line_length:
            lines, width = lines + 1, 0
        width += unit.cells
        if i and lines > rules.lines:
            return i
        # A line's worth may stay longer: dividing it would be guessing, and look like it.
        if cells - said > rules.line_length and time.before(cells) - start > rules.longest:
            return max(1, i)
    return len(units)


def _break(units: Sequence[_Unit], most: int) -> int:
    """Where to end a cue that could hold `most` units of them, which are more."""
    least = max(1, most // 2)
    for marks in (SENTENCE_ENDS, _CLAUSE):
        for i in range(most, least - 1, -1):
            if units[i - 1].text.rstrip(QUOTES).endswith(marks):
                return i
    if sum(unit.cells for unit in units[most:]) < _LEAST_REST:
        return min(most, (len(units) + 1) // 2)
    return most


def _lines(units: Sequence[_Unit], rules: CueRules) -> tuple[str, ...]:
    """One line if it is short enough, else as even as can be without another line."""
    total = sum(unit.cells for unit in units)
    least = max(_cells(unit.text) for unit in units)
    for width in range(max(least, -(-total // rules.lines)), rules.line_length + 1):
        if total - units[-1].spaced <= rules.line_length:
            break
        lines = _filled(units, width)
        if len(lines) <= rules.lines:
            return lines
    return _filled(units, rules.line_length)


def _filled(units: Sequence[_Unit], width: int) -> tuple[str, ...]:
    lines = [""]
    for unit in units:
        if lines[-1] and _cells(lines[-1]) + _cells(unit.text) > width:
            lines.append("")
        lines[-1] += unit.text + " " * unit.spaced
    return tuple(line.rstrip(" ") for line in lines)


def _units(text: str) -> list[_Unit]:
    found: list[_Unit] = []
    for word in re.findall(r"\S+", text):
        part = ""
        for i, c in enumerate(word):
            part += c
            following = word[i + 1 : i + 2]
            if following and _divides(c, following):
                found.append(_Unit(part, False))
                part = ""
        found.append(_Unit(part, True))
    if found:
        found[-1] = _Unit(found[-1].text, False)
    return found


def _divides(before: str, after: str) -> bool:
    """A line may end between these two characters of a word."""
    if not (_wide(before) or _wide(after)) or before in _OPENING:
        return False
    category = unicodedata.category(after)
    # A mark belongs to what it stands on; closing signs and small kana begin no line.
    return category[0] not in "MP" and category not in ("Lm", "Cf", "Sk")


def _wide(c: str) -> bool:
    return unicodedata.east_asian_width(c) in "WF"


def _cells(text: str) -> int:
    return sum(0 if unicodedata.combining(c) else 2 if _wide(c) else 1 for c in text)
