"""How far a cost may be off."""

from __future__ import annotations

import random
import statistics

import pytest

from as2d_cli.profile.spread import (
    Spread,
    relative_deviation,
    spread_of,
    typical_noise,
    undisturbed,
)


def test_rounds_that_agree_have_no_spread() -> None:
    assert spread_of([2.0, 2.0, 2.0], 0.0) == Spread(1.0, 1.0)
    assert typical_noise([[2.0, 2.0], [3.0, 3.0, 3.0]]) == 0.0


def test_what_disturbs_only_adds() -> None:
    assert undisturbed([2.0]) == 2.0
    assert undisturbed([3.0, 1.0]) == 1.5
    assert undisturbed([1.0, 1.01, 1.02, 1.5, 1.9]) == 1.01, "more than half may be disturbed"
    assert undisturbed([0.5, 1.0, 1.0, 1.0, 1.0, 1.0]) == 1.0, "one sample is chance"


def test_few_rounds_are_no_surer_than_rounds_are_elsewhere() -> None:
    alike = spread_of([1.0, 1.0], 0.1)
    assert alike.high - 1 == pytest.approx(1 - alike.low)
    assert 0.08 < alike.high - 1 < 0.1
    assert spread_of([1.0], 0.1).high > alike.high, "one says less"
    assert spread_of([1.0, 1.0], 0.1, fitted=2) == spread_of([1.0], 0.1), "so does a line's point"
    assert spread_of([], 0.1) == spread_of([1.0], 0.1)


def test_of_two_rounds_both_may_be_right() -> None:
    spread = spread_of([0.9, 1.1], 0.0)
    assert 0.8 < spread.low <= 0.9 and 1.1 <= spread.high < 1.2


def test_one_bad_round_of_three_is_not_believed() -> None:
    assert spread_of([1.0, 1.01, 1.9], 0.05).high < 1.05


def test_an_outlier_is_not_believed() -> None:
    spread = spread_of([1.0, 1.01, 0.99, 1.0, 1.01, 0.99, 1.0, 9.0], 0.0)
    assert spread.high < 1.02


def test_nothing_takes_no_time() -> None:
    assert spread_of([1.0], 5.0).low > 0


@pytest.mark.parametrize("count", [2, 3, 5, 9])
def test_the_truth_is_within_the_bounds_two_times_out_of_three(count: int) -> None:
    chance = random.Random(1)
    within = 0
    for _ in range(1000):
        rounds = [chance.lognormvariate(0.0, 0.1) for _ in range(count)]
        spread, middle = spread_of(rounds, 0.1), statistics.median(rounds)
        within += spread.low * middle <= 1.0 <= spread.high * middle
    assert 667 < within < 900


def test_noise_is_a_standard_deviation() -> None:
    chance = random.Random(1)
    costs = [[chance.gauss(5.0, 0.5) for _ in range(12)] for _ in range(99)]
    assert typical_noise(costs) == pytest.approx(0.1, rel=0.15)
    assert relative_deviation([0.9, 1.1]) == pytest.approx(0.2096, rel=0.01)
    assert typical_noise([[1.0], []]) == 0.0
