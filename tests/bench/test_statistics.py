"""Figures of known seconds."""

from __future__ import annotations

import pytest

from as2d_cli.bench.statistics import (
    bootstrap,
    geometric_mean,
    oracle_share,
    over,
    percentile,
    pooled_ratio,
    slower_share,
)

BASE = [1.0, 2.0, 4.0, 8.0]
OWN = [2.0, 1.0, 4.0, 2.0]


def test_pooled_ratio_weighs_long_units_more() -> None:
    assert pooled_ratio(BASE, OWN) == 15 / 9
    assert pooled_ratio([3.0], [1.5]) == 2.0
    assert pooled_ratio([], []) is None


def test_geometric_mean_weighs_all_units_alike() -> None:
    assert geometric_mean(BASE, OWN) == pytest.approx((0.5 * 2 * 1 * 4) ** 0.25)
    assert geometric_mean([3.0], [1.5]) == 2.0
    assert geometric_mean([], []) is None
    assert geometric_mean([1.0, 0.0], [1.0, 1.0]) is None


def test_bootstrap_gives_the_same_numbers_everywhere() -> None:
    assert bootstrap(pooled_ratio, BASE, OWN) == (0.7142857142857143, 3.3333333333333335)
    interval = bootstrap(geometric_mean, BASE, OWN)
    assert interval == pytest.approx((0.7071067811865476, 2.8284271247461903))


def test_bootstrap_of_equal_ratios_is_a_point() -> None:
    assert bootstrap(pooled_ratio, [1.0, 2.0, 4.0], [2.0, 4.0, 8.0]) == (0.5, 0.5)


def test_one_unit_says_nothing_of_others() -> None:
    assert bootstrap(pooled_ratio, [1.0], [2.0]) is None
    assert bootstrap(pooled_ratio, [], []) is None
    assert bootstrap(pooled_ratio, [1.0, 1.0], [2.0, 0.0]) is None


def test_percentiles_lie_between_neighbours() -> None:
    assert percentile([4.0, 1.0, 2.0, 3.0], 50) == 2.5
    assert percentile([0.0, 10.0, 20.0], 95) == pytest.approx(19.0)
    assert percentile([7.0], 95) == 7.0
    assert percentile([], 50) is None


def test_a_tie_is_not_slower() -> None:
    assert slower_share(BASE, OWN) == 0.25
    assert slower_share([], []) is None


def test_the_oracle_knows_the_fastest_of_each_unit() -> None:
    own = {0: 2.0, 1: 2.0}
    assert oracle_share(own, [own, {0: 1.0, 1: 9.0}]) == 3.0 / 4.0
    assert oracle_share(own, [own]) == 1.0
    # An entry that sat unit 1 out is no choice there, and one that nobody had is left out.
    assert oracle_share(own, [own, {0: 1.0}]) == 3.0 / 4.0
    assert oracle_share(own, [{0: 1.0}]) == 0.5
    assert oracle_share({}, [own]) is None
    assert oracle_share(own, []) is None


def test_over() -> None:
    assert over(3.0, 2.0) == 1.5
    assert over(3.0, 0) is None
