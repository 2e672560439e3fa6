"""The width of the baseline."""

from __future__ import annotations

import pytest

from as2d_cli.bench.calibrate import best_width, widths


@pytest.mark.parametrize(
    ("most", "tried"),
    [(1, [1]), (2, [1, 2]), (3, [1, 2, 3]), (4, [1, 2, 4]), (6, [1, 2, 4, 6]), (8, [1, 2, 4, 8])],
)
def test_widths_double_up_to_all(most: int, tried: list[int]) -> None:
    assert widths(most) == tried


def test_of_equals_fewer_cores_win() -> None:
    assert best_width({1: 2.0, 2: 1.0, 4: 1.0}) == 2
