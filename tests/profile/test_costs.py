"""Cost models: interpolation, lines, and the way to JSON and back."""

from __future__ import annotations

import json

import pytest

from as2d_cli.profile.costs import CostModel, Line, TargetCosts
from tests.profile.material import costs


def test_a_line_goes_through_its_points() -> None:
    line = Line.through({5.0: 0.15, 10.0: 0.20, 20.0: 0.30})
    assert line(0) == pytest.approx(0.1)
    assert line(30) == pytest.approx(0.4)
    assert Line.through({10.0: 0.3}) == Line(0.3, 0.0)


def test_noise_makes_no_line_that_falls_or_begins_below_zero() -> None:
    falling = Line.through({5.0: 0.30, 28.0: 0.20})
    assert falling.per_second == 0.0
    assert falling(5) == falling(28) == pytest.approx(0.25)
    steep = Line.through({5.0: 0.01, 20.0: 0.40})
    assert steep.base == 0.0
    assert steep.per_second > 0


def test_steps_lie_on_lines_between_what_was_measured() -> None:
    target = TargetCosts(Line(0, 0), {1: 0.010, 4: 0.013, 8: 0.021}, window=0.002)
    assert target.step(1) == pytest.approx(0.010)
    assert target.step(2) == pytest.approx(0.011)
    assert target.step(6) == pytest.approx(0.017)
    assert target.step(10) == pytest.approx(0.025), "beyond by the last line"
    assert target.step(4, windows=3) == pytest.approx(0.017)
    assert TargetCosts(Line(0, 0), {4: 0.013}).step(1) == 0.013


def test_noise_makes_no_step_cheaper_beyond_what_was_measured() -> None:
    noisy = TargetCosts(Line(0, 0), {2: 0.005, 9: 0.015, 16: 0.013})
    assert noisy.step(16) == noisy.step(17) == noisy.step(200) == 0.013
    assert noisy.step(1) == 0.005


def test_contention_is_of_all_rows() -> None:
    model = costs(slower=1.5)
    assert model.lanes[0].contention is None
    assert model.lanes[1].contention == pytest.approx(1.5)


def test_the_engine_gets_both_tables() -> None:
    found = costs(slower=2.0).lanes[1].run_costs()
    assert found.alone_steps == {1: 0.010, 32: 0.010}
    assert found.drafted_steps == {1: 0.020, 32: 0.020}
    assert (found.encode_base, found.encode_per_second) == (0.1, 0.0)


def test_json_brings_back_the_same() -> None:
    model = costs()
    assert CostModel.from_json(json.loads(json.dumps(model.as_json()))) == model


@pytest.mark.parametrize(
    "change",
    [
        {"format": "as2d-costs-0"},
        {"lanes": [{}]},
        {"lanes": 3},
        {"lanes": [{"target_cores": [0], "draft_cores": [], "alone": {"steps": {}}}]},
    ],
)
def test_what_is_no_cost_model_is_refused(change: dict[str, object]) -> None:
    data = costs().as_json() | change
    with pytest.raises(ValueError, match="is "):
        CostModel.from_json(json.loads(json.dumps(data)))


def test_a_step_that_takes_no_time_is_refused() -> None:
    data = json.loads(json.dumps(costs().as_json()))
    data["lanes"][0]["alone"]["steps"]["1"] = 0
    with pytest.raises(ValueError, match="steps that cannot be"):
        CostModel.from_json(data)


def test_a_missing_entry_is_told() -> None:
    data = costs().as_json()
    del data["noise"]
    with pytest.raises(ValueError, match="noise"):
        CostModel.from_json(data)
