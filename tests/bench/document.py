"""Bench documents as `as2d bench --json` writes them; every figure in them is made up."""

from __future__ import annotations

import math
import random
import statistics
from collections import defaultdict
from typing import Any

__all__ = ["document", "tiny"]

Json = dict[str, Any]


def document(
    *,
    drafters: tuple[str, ...] = ("whisper-tiny.en", "moonshine-tiny-en"),
    budgets: tuple[int, ...] = (4, 8),
    units: int = 12,
    repeat: int = 3,
    spans: bool = True,
    flagged: int = 1,
    seed: int = 1,
) -> Json:
    """A whole document: two ways of the target alone, and every pair of drafter and budget."""
    chance = random.Random(seed)
    contenders = [_contender("target", reference=True, exact=True)]
    contenders.append(_contender("target (one row)", baseline=True, exact=False))
    contenders += [
        _contender(f"as2d {d} {b}", drafter=d, budget=b) for d in drafters for b in budgets
    ]
    measured = [_unit(index, chance, index >= units - flagged) for index in range(units)]
    samples: list[Json] = []
    kept: list[Json] = []
    for round_ in range(repeat):
        for unit, entry in enumerate(measured):
            for contender in range(len(contenders)):
                sample, lanes = _run(contenders[contender], entry, random.Random(unit * 7 + seed))
                noise = chance.uniform(0.97, 1.06)
                _stretch(sample, lanes, noise)
                where = {"contender": contender, "unit": unit, "repeat": round_}
                samples.append({**where, "order": len(samples), **sample})
                kept += [{**where, **span} for span in lanes]
    return {
        "as2d": "0.1.0",
        "created": "2026-01-02T03:04:05+00:00",
        "command": ["as2d", "bench", "my clips.jsonl", "--html", "bench.html"],
        "complete": True,
        "machine": {
            "cpu": "Example CPU 9000 @ 2.10GHz",
            "system": "Linux 6.1 x86_64",
            "kernels": "avx512vnni",
            "cores": [0, 1, 2, 3],
            "clusters": [{"cores": [0, 1, 2, 3], "capacity": 1024, "max_khz": 2_100_000}],
            "quota": 0.0,
            "python": "3.11.2",
            "onnxruntime": "1.32.0",
            "numpy": "2.3.1",
        },
        "models": [_model("whisper-base", "target")] + [_model(d, "drafter") for d in drafters],
        "settings": {
            "methods": ["target", "as2d"],
            "drafters": list(drafters),
            "budgets": list(budgets),
            "repeat": repeat,
            "by": "window",
            "language": None,
            "baseline": "target (one row)",
        },
        "contenders": contenders,
        "units": measured,
        "samples": samples,
        "texts": [
            {"unit": unit, "text": " ".join(["over and"] * 12 if e["flags"] else ["a word"] * 9)}
            | {"tokens": [unit, 2, 3]}
            for unit, e in enumerate(measured)
        ],
        "summary": summaries(contenders, measured, samples),
        "spans": kept if spans else [],
    }


def tiny() -> Json:
    """Three units, once each: the contender ``mine`` has the ratios 0.5, 1 and 2."""
    made = document(drafters=("mine",), budgets=(4,), units=3, repeat=1, flagged=0)
    seconds = {0: (1.0, 1.0, 1.0), 1: (1.0, 1.0, 1.0), 2: (1.0, 2.0, 0.5)}
    made["spans"] = []
    for sample in made["samples"]:
        sample["seconds"] = seconds[sample["contender"]][sample["unit"]]
        sample["phases"] = {
            "encode": sample["seconds"] / 2,
            "prompt": 0.0,
            "decode": sample["seconds"] / 4,
            "draft_encode": 0.125 if sample["contender"] == 2 else 0.0,
            "draft_decode": 0.25 if sample["contender"] == 2 else 0.0,
            "wall": sample["seconds"],
        }
    made["summary"] = summaries(made["contenders"], made["units"], made["samples"])
    return made


def summaries(contenders: list[Json], units: list[Json], samples: list[Json]) -> list[Json]:
    """The rows that belong to these samples; what the page only copies is any number."""
    seconds: dict[tuple[int, int], list[float]] = defaultdict(list)
    for sample in samples:
        seconds[sample["contender"], sample["unit"]].append(sample["seconds"])
    medians = {key: statistics.median(values) for key, values in seconds.items()}
    base = next(index for index, c in enumerate(contenders) if c["baseline"])
    rows = []
    for index, contender in enumerate(contenders):
        row = _row(index, base, [u for u, e in enumerate(units) if not e["flags"]], medians)
        own = [s for s in samples if s["contender"] == index and not units[s["unit"]]["flags"]]
        verify = sum(sum(s["steps"]["verify"].values()) for s in own)
        alone = sum(s["steps"]["alone"] for s in own)
        row |= {
            "differing": len({s["unit"] for s in own if s["differs"]}),
            "accepted_length": sum(s["accepted"] for s in own) / verify if verify else None,
            "acceptance": (
                sum(s["accepted"] for s in own) / sum(s["proposed"] for s in own)
                if verify
                else None
            ),
            "alone_share": alone / (alone + verify),
            "tokens_per_step": sum(s["tokens"] for s in own) / (alone + verify),
            "lead": 7.25 if verify else None,
            "realignments": sum(s["realignments"] for s in own),
            "wer": 0.0854,
            "peak_memory_bytes": contender["peak_memory_bytes"],
            "looped": sum(bool(e["flags"]) for e in units),
            "oracle_share": min(0.93, row["ratio"] * 0.8) if verify else None,
        }
        loops = [u for u, e in enumerate(units) if e["flags"]]
        row["flagged"] = _row(index, base, loops, medians) | {"differing": 0} if loops else None
        rows.append(row)
    return rows


def _row(index: int, base: int, units: list[int], medians: dict[tuple[int, int], float]) -> Json:
    mine = [medians[index, unit] for unit in units]
    others = [medians[base, unit] for unit in units]
    ratios = [b / m for b, m in zip(others, mine, strict=True)]
    spread = 1.96 * statistics.pstdev(ratios) / math.sqrt(len(ratios))
    ratio = sum(others) / sum(mine)
    return {
        "windows": len(units),
        "audio_seconds": 20.0 * len(units),
        "seconds": sum(mine),
        "tokens": 60 * len(units),
        "tokens_per_second": 60 * len(units) / sum(mine),
        "real_time": 20.0 * len(units) / sum(mine),
        "ratio": ratio,
        "ratio_interval": [ratio - spread, ratio + spread],
        "geometric_mean": statistics.geometric_mean(ratios),
        "geometric_mean_interval": [ratio - spread, ratio + spread],
        "p50": statistics.median(mine),
        "p95": max(mine),
        "slower_share": sum(ratio < 1 for ratio in ratios) / len(ratios),
    }


def _contender(
    label: str,
    *,
    drafter: str | None = None,
    budget: int = 0,
    reference: bool = False,
    baseline: bool = False,
    exact: bool = True,
) -> Json:
    lanes = {"target": _lane("target", [0, 1, 2] if drafter else [0, 1, 2, 3])}
    if drafter:
        lanes["draft"] = _lane("draft", [3])
    return {
        "label": label,
        "method": "as2d" if drafter else "target",
        "drafter": drafter,
        "budget": budget,
        "exact": exact,
        "reference": reference,
        "baseline": baseline,
        "ceiling": drafter == "oracle",
        "lanes": lanes,
        "load_seconds": 0.42 if drafter else 0.31,
        "peak_memory_bytes": None if reference else 412_000_000,
    }


def _lane(name: str, cores: list[int]) -> Json:
    threads = [
        {"name": f"{name}-{n}", "requested": str(core), "actual": str(core), "refused": ""}
        for n, core in enumerate(cores)
    ]
    return {"cores": cores, "threads": threads}


def _model(name: str, role: str) -> Json:
    files = [
        {"name": part, "sha256": (f"{n}c4e8b1f" * 8), "bytes": 20_590_144 * (n + 1)}
        for n, part in enumerate(("encoder.onnx", "decoder.onnx"))
    ]
    return {"id": name, "role": role, "files": files}


def _unit(index: int, chance: random.Random, loops: bool) -> Json:
    return {
        "clip": ("reading.flac", "Pr\u00e4sident \u2013 \u8b1b\u6f14.ogg", "street <b>.mp3")[
            index % 3
        ],
        "window": index // 3,
        "start": index // 3 * 28.5,
        "audio_seconds": chance.uniform(8, 29),
        "language": "en",
        "category": ("read", "speech", "noisy")[index % 3],
        "reference_text": "over and out" if loops else None,
        "flags": ["loop"] if loops else [],
    }


def _run(contender: Json, unit: Json, chance: random.Random) -> tuple[Json, list[Json]]:
    """One sample with its spans: the lanes step along until all tokens are committed."""
    budget, drafter = contender["budget"], contender["drafter"]
    tokens = int(unit["audio_seconds"] * 3.2)
    encode, step = 0.26 if not drafter else 0.3, 0.0072 if contender["exact"] else 0.0066
    spans: list[Json] = []
    clock = _spend(spans, "target", "encoding", 0.0, encode)
    clock = _spend(spans, "target", "prompting", clock, 0.012)
    tiny_drafter = bool(drafter) and drafter.startswith("moon")
    drafting, pace = (0.15, 0.0046) if tiny_drafter else (0.3, 0.0034)
    right = chance.uniform(0.55, 0.97)
    alone = proposed = accepted = committed = realigned = 0
    verify: dict[str, int] = defaultdict(int)
    while committed < tokens:
        drafted = (clock - drafting) / pace * (0.85 + 0.2 * math.sin(clock * 60))
        ready = min(budget, int(drafted) - committed) if drafter else 0
        if ready < 1:
            clock = _spend(spans, "target", "alone", clock, step)
            alone += 1
            committed += 1
            continue
        took = 0
        while took < ready and chance.random() < right:
            took += 1
        realigned += took < ready and chance.random() < 0.3
        clock = _spend(spans, "target", "verifying", clock, step + 0.0006 * ready)
        verify[str(ready)] += 1
        proposed += ready
        accepted += took
        committed += took + 1
    if drafter:
        begun = _spend(spans, "draft", "encoding", 0.0, drafting)
        _spend(spans, "draft", "drafting", begun, min(clock - begun, tokens * pace))
    sums: dict[str, float] = defaultdict(float)
    for span in spans:
        sums[f"{span['lane']} {span['activity']}"] += span["end"] - span["begin"]
    return {
        "seconds": clock + 0.002,
        "phases": {
            "encode": sums["target encoding"],
            "prompt": sums["target prompting"],
            "decode": sums["target verifying"] + sums["target alone"],
            "draft_encode": sums["draft encoding"],
            "draft_decode": sums["draft drafting"],
            "wall": clock + 0.002,
        },
        "tokens": tokens,
        "differs": False,
        "steps": {"alone": alone, "verify": dict(verify)},
        "proposed": proposed,
        "accepted": accepted,
        "realignments": realigned,
        "drafted": tokens if drafter else 0,
        "stale_drafts": 0,
        "lead_total": proposed * 2,
        "lost": None,
    }, spans


def _spend(spans: list[Json], lane: str, activity: str, begin: float, seconds: float) -> float:
    """Appends a span; the same activity again makes the last one longer."""
    last = spans[-1] if spans else None
    if last and last["lane"] == lane and last["activity"] == activity:
        last["end"] += seconds
    else:
        spans.append(
            {
                "lane": lane,
                "activity": activity,
                "window": 0,
                "begin": begin,
                "end": begin + seconds,
            }
        )
    return begin + seconds


def _stretch(sample: Json, spans: list[Json], noise: float) -> None:
    sample["seconds"] *= noise
    for phase in sample["phases"]:
        sample["phases"][phase] *= noise
    for span in spans:
        span["begin"] *= noise
        span["end"] *= noise
