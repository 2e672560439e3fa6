"""The trace: one place for everything, in order, with sums that agree with the document."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise
from typing import Any

import pytest

from as2d_cli.bench.trace import chrome_trace
from tests.bench.document import document, tiny

Event = dict[str, Any]


def events(trace: dict[str, Any], phase: str) -> list[Event]:
    return [event for event in trace["traceEvents"] if event["ph"] == phase]


def by_hand() -> dict[str, Any]:
    """Two contenders on one unit; the second was measured first, and its drafter ran on."""
    made = tiny()
    made["contenders"] = [made["contenders"][1], made["contenders"][2]]
    made["units"] = made["units"][:1]
    target, mine = made["samples"][0], made["samples"][2]
    mine |= {"contender": 1, "order": 0, "seconds": 0.5, "tokens": 7, "lost": "gone"}
    mine["phases"] |= {"encode": 0.2, "prompt": 0.0, "decode": 0.3}
    target |= {"contender": 0, "order": 1, "seconds": 1.0, "tokens": 7, "differs": True}
    made["samples"] = [target, mine]
    steps = (
        ("target", "encoding", 0.0, 0.2),
        ("target", "verifying", 0.2, 0.35),
        ("target", "alone", 0.35, 0.4),
        ("target", "verifying", 0.4, 0.5),
        ("draft", "drafting", 0.1, 0.6),
    )
    made["spans"] = [
        {"contender": 1, "unit": 0, "repeat": 0, "lane": lane, "activity": activity}
        | {"window": 0, "begin": begin, "end": end}
        for lane, activity, begin, end in steps
    ]
    return made


def test_samples_follow_one_another_in_the_order_of_measuring() -> None:
    trace = chrome_trace(by_hand())
    samples = [event for event in events(trace, "X") if event["cat"] == "sample"]
    # The second begins when the first one's draft lane has ended.
    assert [(e["pid"], e["ts"], e["dur"]) for e in samples] == [
        (2, 0, 500_000),
        (1, 600_000, 1_000_000),
    ]
    assert samples[0]["name"] == "reading.flac window 0"


def test_spans_carry_what_they_are() -> None:
    trace = chrome_trace(by_hand())
    assert next(e for e in events(trace, "X") if e["name"] == "alone") == {
        "name": "alone",
        "cat": "target",
        "ph": "X",
        "ts": 350_000,
        "dur": 50_000,
        "pid": 2,
        "tid": 2,
        "args": {
            "unit": 0,
            "clip": "reading.flac",
            "window": 0,
            "activity": "alone",
            "repeat": 0,
        },
    }


def test_every_contender_is_a_process_and_every_lane_a_thread() -> None:
    names = {
        (e["name"], e["pid"], e["tid"]): e["args"].get("name")
        for e in events(chrome_trace(by_hand()), "M")
    }
    assert names["process_name", 1, 0] == "target (one row)"
    assert names["process_name", 2, 0] == "as2d mine 4"
    assert names["thread_name", 2, 3] == "draft lane"
    assert ("thread_name", 1, 3) not in names


def test_what_went_wrong_is_marked_where_the_sample_ends() -> None:
    marks = [(e["name"], e["ts"]) for e in events(chrome_trace(by_hand()), "i")]
    assert marks == [
        ("drafter lost: gone", 500_000),
        ("text differs from the reference", 1_600_000),
    ]


def test_the_counter_shows_the_tokens_of_a_sample_while_it_lasts() -> None:
    counts = [(e["pid"], e["ts"], e["args"]) for e in events(chrome_trace(by_hand()), "C")]
    assert counts == [
        (2, 0, {"tokens": 7}),
        (2, 500_000, {"tokens": 0}),
        (1, 600_000, {"tokens": 7}),
        (1, 1_600_000, {"tokens": 0}),
    ]


def test_the_spans_of_a_sample_sum_up_to_its_phases() -> None:
    made = document(units=4)
    sums: dict[tuple[int, int, int, str], int] = defaultdict(int)
    for event in events(chrome_trace(made), "X"):
        if event["cat"] != "sample":
            args = event["args"]
            phase = {
                ("target", "encoding"): "encode",
                ("target", "prompting"): "prompt",
                ("draft", "encoding"): "draft_encode",
                ("draft", "drafting"): "draft_decode",
            }.get((event["cat"], event["name"]), "decode")
            sums[event["pid"] - 1, args["unit"], args["repeat"], phase] += event["dur"]
    assert sums
    for sample in made["samples"]:
        for phase, seconds in sample["phases"].items():
            if phase != "wall":
                key = (sample["contender"], sample["unit"], sample["repeat"], phase)
                # Each end of a span is rounded to a microsecond, and there are tens of them.
                assert sums[key] / 1e6 == pytest.approx(seconds, abs=1e-4)


def test_lanes_never_overlap_and_time_only_goes_on() -> None:
    made = document(units=6)
    made["samples"].reverse()
    made["spans"].reverse()
    trace = chrome_trace(made)
    assert all(e["ts"] >= 0 and e.get("dur", 0) >= 0 for e in trace["traceEvents"])
    times = [e["ts"] for e in trace["traceEvents"] if e["ph"] != "M"]
    assert times == sorted(times)
    lanes: dict[tuple[int, int], list[Event]] = defaultdict(list)
    for event in events(trace, "X"):
        lanes[event["pid"], event["tid"]].append(event)
    assert len(lanes) == 2 * 2 + 4 * 3
    for lane in lanes.values():
        assert all(a["ts"] + a["dur"] <= b["ts"] for a, b in pairwise(lane))


def test_without_spans_the_samples_are_there() -> None:
    made = tiny()
    del made["spans"]
    trace = json.loads(json.dumps(chrome_trace(made), allow_nan=False))
    assert len(events(trace, "X")) == len(made["samples"])


def test_a_recording_has_no_window() -> None:
    made = tiny()
    for unit in made["units"]:
        unit["window"] = None
    names = {e["name"] for e in events(chrome_trace(made), "X")}
    assert "reading.flac" in names
