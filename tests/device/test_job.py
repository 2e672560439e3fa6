"""Jobs as text, and lines that are none; test_runner has all that the runner reads and tells."""

from __future__ import annotations

import json

import pytest

from as2d_cli.decoding.costs import RunCosts
from as2d_cli.device.job import BenchJob, JobClip, JobContender, JobDrafter, JobUnit, Lanes
from as2d_cli.device.results import Withdrawn, read_result
from as2d_cli.errors import As2dError, ExitStatus


def job(name: str = "x", contender: JobContender | None = None) -> BenchJob:
    return BenchJob(
        library="lib",
        target="one",
        clips=[JobClip("c", "s16")],
        units=[JobUnit(0, "en", [1, 2], 9, [])],
        contenders=[contender] if contender else [],
        drafters=[JobDrafter(name, "two")],
    )


def test_a_name_may_have_anything_in_it_but_a_line_break() -> None:
    assert "name: [a]: b # é\n" in job("[a]: b # é").text()
    with pytest.raises(As2dError, match="line break in a name") as caught:
        job("a\nmethod: x").text()
    assert caught.value.status is ExitStatus.USAGE


def test_what_is_not_known_is_left_out() -> None:
    lines = job("x", JobContender("target", Lanes([3, 1]))).text().splitlines()
    assert "target_cores: 3 1" in lines and "draft_cores: " in lines
    keys = {line.partition(":")[0] for line in lines}
    assert not keys & {"units", "alone_steps", "encode", "expected"}
    costs = RunCosts({1: 0.5}, {}, 0.25, 1e-5)
    lines = job("x", JobContender("as2d", Lanes([0]), costs=costs, units=[])).text().splitlines()
    assert {"alone_steps: 1=0.5", "drafted_steps: ", "encode: 0.25 1e-05", "units: "} <= set(lines)


@pytest.mark.parametrize(
    "line",
    [
        "WARNING: linker: unused DT entry",
        "",
        "3",
        '"text"',
        "[1]",
        "{}",
        '{"kind": "song", "at": 1}',
        '{"kind": "withdrawn", "at": 1, "contender": 0}',
    ],
)
def test_lines_that_are_none(line: str) -> None:
    with pytest.raises(ValueError):
        read_result(line)


def test_a_line() -> None:
    line = json.dumps({"kind": "withdrawn", "at": 1, "contender": 0, "why": "so"})
    assert read_result(line.encode()) == Withdrawn(0, "so")
