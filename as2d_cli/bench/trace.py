"""A bench document as Chrome trace events, to be opened in Perfetto or chrome://tracing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

__all__ = ["chrome_trace"]

Event = dict[str, Any]

_THREADS = {"sample": 1, "target": 2, "draft": 3}
_THREAD_NAMES = {"sample": "samples", "target": "target lane", "draft": "draft lane"}


def chrome_trace(document: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON object format; `document` is what ``as2d bench --json`` writes.

    A process per contender, with a thread for each lane and one for its samples. Samples follow
    one another in the order in which they were measured, without the pauses between them. Times
    are whole microseconds, so that what ends when the next begins still does.
    """
    spans: dict[tuple[int, int, int], list[Mapping[str, Any]]] = defaultdict(list)
    for span in document.get("spans") or ():
        spans[span["contender"], span["unit"], span["repeat"]].append(span)
    events: list[Event] = []
    clock = 0
    for sample in sorted(document["samples"], key=lambda sample: sample["order"]):
        own = spans.get((sample["contender"], sample["unit"], sample["repeat"]), [])
        # A draft lane may be at work a little longer than the target; the next sample waits for it.
        end = clock + max([_micro(sample["seconds"]), *(_micro(span["end"]) for span in own)])
        events += _sample(document, sample, clock)
        events += (_span(document, span, clock) for span in own)
        clock = end
    events.sort(key=lambda event: event["ts"])
    return {
        "traceEvents": [*_names(document), *events],
        "displayTimeUnit": "ms",
        "otherData": {
            "as2d": document["as2d"],
            "created": document["created"],
            "cpu": document["machine"]["cpu"],
            "system": document["machine"]["system"],
            "complete": document["complete"],
        },
    }


def _names(document: Mapping[str, Any]) -> Iterator[Event]:
    for index, contender in enumerate(document["contenders"]):
        pid = index + 1
        yield _metadata("process_name", pid, 0, name=contender["label"])
        yield _metadata("process_sort_index", pid, 0, sort_index=index)
        for thread, tid in _THREADS.items():
            if thread == "sample" or thread in contender["lanes"]:
                yield _metadata("thread_name", pid, tid, name=_THREAD_NAMES[thread])
                yield _metadata("thread_sort_index", pid, tid, sort_index=tid)


def _metadata(kind: str, pid: int, tid: int, **args: Any) -> Event:
    return {"name": kind, "ph": "M", "ts": 0, "pid": pid, "tid": tid, "args": args}


def _sample(document: Mapping[str, Any], sample: Mapping[str, Any], begin: int) -> Iterable[Event]:
    unit = document["units"][sample["unit"]]
    end = begin + _micro(sample["seconds"])
    at = {"pid": sample["contender"] + 1, "tid": _THREADS["sample"]}
    window = "" if unit["window"] is None else f" window {unit['window']}"
    told = ("repeat", "tokens", "proposed", "accepted", "realignments", "drafted", "stale_drafts")
    yield {
        "name": f"{unit['clip']}{window}",
        "cat": "sample",
        "ph": "X",
        "ts": begin,
        "dur": end - begin,
        **at,
        "args": {"unit": sample["unit"], "clip": unit["clip"], "window": unit["window"]}
        | {key: sample[key] for key in told}
        | {"steps": sample["steps"], "phases": sample["phases"]},
    }
    # The track shows a sample's tokens while it lasts.
    yield _tokens(begin, at, sample["tokens"])
    yield _tokens(end, at, 0)
    if sample["differs"]:
        yield _mark("text differs from the reference", end, at)
    if sample["lost"]:
        yield _mark(f"drafter lost: {sample['lost']}", end, at)


def _tokens(moment: int, at: Mapping[str, int], tokens: int) -> Event:
    args = {"tokens": tokens}
    return {"name": "committed tokens", "ph": "C", "ts": moment, **at, "args": args}


def _mark(name: str, moment: int, at: Mapping[str, int]) -> Event:
    return {"name": name, "cat": "sample", "ph": "i", "s": "p", "ts": moment, **at}


def _span(document: Mapping[str, Any], span: Mapping[str, Any], offset: int) -> Event:
    begin, end = _micro(span["begin"]), _micro(span["end"])
    return {
        "name": span["activity"],
        "cat": span["lane"],
        "ph": "X",
        "ts": offset + begin,
        "dur": end - begin,
        "pid": span["contender"] + 1,
        "tid": _THREADS[span["lane"]],
        "args": {
            "unit": span["unit"],
            "clip": document["units"][span["unit"]]["clip"],
            "window": span["window"],
            "activity": span["activity"],
            "repeat": span["repeat"],
        },
    }


def _micro(seconds: float) -> int:
    return round(seconds * 1e6)
