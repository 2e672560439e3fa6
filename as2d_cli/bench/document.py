"""The document that ``--json`` writes, and that pages and traces are made of."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

from as2d_cli import __version__, _native
from as2d_cli.bench.categories import by_category
from as2d_cli.bench.measure import Sample
from as2d_cli.bench.results import Results
from as2d_cli.bench.session import BenchRequest
from as2d_cli.bench.summary import Row
from as2d_cli.cpu import cpu_name
from as2d_cli.errors import one_line
from as2d_cli.tasks.models import Model

__all__ = ["document"]


def document(
    results: Results, rows: Sequence[Row], request: BenchRequest, command: Sequence[str]
) -> dict[str, Any]:
    """Everything about a bench as values that JSON knows.

    Args:
        rows: see `summarise`.
        command: what was typed, for a reader who wants to do the same.
    """
    heard = [sample for sample in results.samples if sample.turn.unit in results.texts]
    return {
        "as2d": __version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": [one_line(word) for word in command],
        "complete": results.complete,
        "machine": _machine() if results.machine is None else dict(results.machine),
        "models": [
            _model(results.target, "target"),
            *(_model(drafter, "drafter") for drafter in results.drafters.values()),
        ],
        "settings": {
            "methods": list(request.methods),
            "drafters": [one_line(name) for name in request.drafters],
            "budgets": list(request.budgets),
            "windows": list(request.windows),
            "repeat": request.repeat,
            "by": request.noun,
            "language": request.language,
            "baseline": results.contenders[results.baseline].label,
        },
        "contenders": [_contender(results, i) for i in range(len(results.contenders))],
        "units": [_unit(results, i) for i in range(len(results.units))],
        "samples": [_sample(results, sample) for sample in heard],
        "texts": [
            {
                "unit": unit,
                "text": results.text(windows),
                "tokens": [token for tokens in windows for token in tokens],
            }
            for unit, windows in sorted(results.texts.items())
        ],
        "summary": [row.as_json() for row in rows],
        "categories": [category.as_json() for category in by_category(results)],
        "spans": [span for sample in heard for span in _spans(results, sample)],
    }


def _machine() -> dict[str, Any]:
    topology = _native.topology()
    return {
        "cpu": cpu_name(),
        "system": platform.platform(),
        "kernels": _native.kernel_name(),
        "cores": sorted(os.sched_getaffinity(0)),
        "clusters": topology["clusters"],
        "quota": topology["quota"],
        "python": platform.python_version(),
        "onnxruntime": metadata.version("onnxruntime"),
        "numpy": metadata.version("numpy"),
    }


def _model(model: Model, role: str) -> dict[str, Any]:
    files = [
        {"name": record.name, "sha256": record.sha256, "bytes": record.size}
        for record in getattr(model, "files", ())
    ]
    return {"id": model.id, "role": role, "files": files}


def _contender(results: Results, number: int) -> dict[str, Any]:
    contender = results.contenders[number]
    return {
        "label": one_line(contender.label),
        "method": contender.method,
        "drafter": contender.drafter and one_line(contender.drafter),
        "budget": contender.budget,
        "windows": contender.windows,
        "exact": contender.exact,
        "reference": contender.reference,
        "baseline": contender.baseline,
        "ceiling": contender.ceiling,
        "lanes": results.lanes.get(number, {}),
        "load_seconds": results.load_seconds.get(number),
        "peak_memory_bytes": results.peak_memory.get(number),
    }


def _unit(results: Results, number: int) -> dict[str, Any]:
    unit, planned = results.units[number], results.planned.get(number)
    return {
        "clip": one_line(unit.clip.path.name),
        "window": None if unit.whole else unit.pieces[0].index,
        "start": unit.start,
        "question": None if unit.asked is None else one_line(unit.asked.text),
        "audio_seconds": unit.audio_seconds,
        "language": unit.language,
        "category": unit.clip.category,
        "reference_text": unit.clip.text,
        "flags": list(results.flags.get(number, [])),
        "plan": planned and one_line(planned.entrant.label),
        "plan_is_baseline": number in results.shared,
    }


def _sample(results: Results, sample: Sample) -> dict[str, Any]:
    counters = sample.ran.counters
    return {
        "contender": sample.turn.contender,
        "unit": sample.turn.unit,
        "repeat": sample.turn.repeat,
        "order": sample.order,
        "seconds": sample.seconds,
        "phases": dict(counters.seconds),
        "tokens": counters.committed,
        "differs": bool(results.differing(sample)),
        "steps": {
            "alone": counters.alone_steps,
            "verify": {str(k): counters.verify_steps[k] for k in sorted(counters.verify_steps)},
        },
        "proposed": counters.proposed,
        "accepted": counters.accepted,
        "realignments": counters.realignments,
        "drafted": counters.drafted,
        "stale_drafts": counters.stale_drafts,
        "lead_total": counters.lead_total,
        "lost": sample.ran.lost,
    } | dict(results.moments.get(sample.order, {}))


def _spans(results: Results, sample: Sample) -> list[dict[str, Any]]:
    pieces = results.units[sample.turn.unit].pieces
    return [
        {
            "contender": sample.turn.contender,
            "unit": sample.turn.unit,
            "repeat": sample.turn.repeat,
            "lane": span.lane,
            "activity": span.activity,
            "window": pieces[span.window].index,
            "begin": span.begin,
            "end": span.end,
        }
        for span in sample.ran.spans
    ]
