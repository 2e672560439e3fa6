"""JSON: one object per input, each on a line of its own."""

from __future__ import annotations

import json
import math
from typing import Any

from as2d_cli import __version__
from as2d_cli.output.renderer import Renderer, Writer
from as2d_cli.tasks.transcript import Segment, Transcript

__all__ = ["JsonRenderer", "as_json", "clean", "ratio", "segment_as_json", "strict"]


class JsonRenderer(Renderer):
    """Strict JSON (no NaN, no duplicate keys), one object per input, separated by newlines."""

    def __init__(self, out: Writer, *, tokens: bool = False, words: bool = False) -> None:
        """`tokens`, `words`: add the ids of each segment's tokens, and each word's times."""
        super().__init__(out)
        self._tokens, self._words = tokens, words

    def end(self, transcript: Transcript) -> None:
        data = as_json(transcript, tokens=self._tokens, words=self._words)
        self.out.write(strict(data) + "\n")
        self.out.flush()


def strict(data: dict[str, Any]) -> str:
    """As JSON has it, without NaN, on one line."""
    return json.dumps(data, ensure_ascii=False, allow_nan=False)


def segment_as_json(
    segment: Segment, *, tokens: bool = False, words: bool = False
) -> dict[str, Any]:
    """A segment as plain data; `tokens`: with their ids; `words`: with each word's times."""
    entry: dict[str, Any] = {
        "start": round(segment.start, 3),
        "end": round(segment.end, 3),
        "text": segment.text,
    }
    if words:
        entry["words"] = [
            {"word": w.text, "start": round(w.start, 3), "end": round(w.end, 3)}
            for w in segment.words
        ]
    if tokens:
        entry["tokens"] = list(segment.tokens)
    return entry


def as_json(transcript: Transcript, *, tokens: bool = False, words: bool = False) -> dict[str, Any]:
    """The transcript as plain data. Seconds are floats; what is not known is None."""
    info = transcript.info
    counters = transcript.counters
    return {
        "file": info.name,
        "duration": round(transcript.duration, 3),
        "language": transcript.language,
        "language_probability": _finite(transcript.language_probability),
        "model": info.target,
        "drafter": info.drafter,
        "method": info.method,
        "text": transcript.text,
        "segments": [segment_as_json(s, tokens=tokens, words=words) for s in transcript.segments],
        "warnings": list(transcript.warnings),
        "decisions": [
            {"at": round(d.at, 3), "drafting": d.drafting, "reason": d.reason}
            for d in transcript.decisions
        ],
        "seconds": round(transcript.wall, 3),
        "rates": _rates(transcript),
        "counters": clean(counters.as_json()) if counters is not None else None,
        "version": __version__,
    }


def _rates(transcript: Transcript) -> dict[str, float | None]:
    wall, counters = transcript.wall, transcript.counters
    steps = sum(counters.verify_steps.values()) if counters is not None else 0
    return {
        "real_time": ratio(transcript.duration, wall) if transcript.duration else None,
        "tokens_per_second": ratio(counters.committed, wall) if counters else None,
        "acceptance": ratio(counters.accepted, counters.proposed) if counters else None,
        "accepted_per_step": ratio(counters.accepted, steps) if counters else None,
    }


def ratio(a: float, b: float) -> float | None:
    """`a` over `b` with four digits, or None where there is none."""
    return round(a / b, 4) if b > 0 else None


def _finite(x: float | None) -> float | None:
    return round(x, 4) if x is not None and math.isfinite(x) else None


def clean(value: Any) -> Any:
    """`value` with numbers that JSON has no word for as None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(k): clean(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [clean(v) for v in value]
    return value
