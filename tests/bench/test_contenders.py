"""Who runs."""

from __future__ import annotations

import pytest

from as2d_cli.bench.contenders import Contender, contenders


def labels(
    methods: list[str], drafters: list[str], budgets: list[int], rows: str = "any"
) -> list[str]:
    found = contenders(methods, drafters, budgets, ceilings=["oracle", "big"], row_invariance=rows)
    return [contender.label for contender in found]


def test_the_reference_is_always_there_and_first() -> None:
    assert labels(["as2d"], ["x"], [4, 8]) == ["target", "as2d x 4", "as2d x 8"]
    assert labels(["target"], ["x"], [4]) == ["target"]


def test_each_method_takes_what_it_needs() -> None:
    assert labels(["lookup", "pearl", "batched"], ["x", "y"], [4, 8]) == [
        "target",
        "lookup 4",
        "lookup 8",
        "pearl x 4",
        "pearl x 8",
        "pearl y 4",
        "pearl y 8",
        "batched 4",
        "batched 8",
    ]


def test_windows_are_of_methods_that_can() -> None:
    found = contenders(
        ["as2d", "pearl", "batched"], ["x"], [8], [1, 3], ceilings=[], row_invariance="any"
    )
    labels = [contender.label for contender in found]
    assert labels == ["target", "as2d x 8", "as2d x 8 x3", "pearl x 8", "batched 8"]
    assert [contender.windows for contender in found] == [1, 1, 3, 1, 1]


def test_nothing_is_run_twice() -> None:
    assert labels(["as2d", "as2d"], ["x", "x"], [4, 4]) == ["target", "as2d x 4"]


def test_a_target_that_is_the_same_for_any_rows_is_reference_and_baseline() -> None:
    (only,) = contenders(["target"], [], [], ceilings=["oracle", "big"], row_invariance="any")
    assert only == Contender("target", reference=True, baseline=True)


@pytest.mark.parametrize("rows", ["even", "none"])
def test_else_one_row_a_step_is_the_honest_baseline(rows: str) -> None:
    first, second, *_ = contenders(
        ["as2d"], ["x"], [8], ceilings=["oracle", "big"], row_invariance=rows
    )
    assert (first.label, first.reference, first.baseline) == ("target", True, False)
    assert (second.label, second.reference, second.baseline) == ("target (one row)", False, True)
    assert first.exact and not second.exact


def test_nobody_promises_exactness_where_rows_matter() -> None:
    *_, last = contenders(["as2d"], ["x"], [8], ceilings=["oracle", "big"], row_invariance="none")
    assert not last.exact
    *_, last = contenders(["as2d"], ["x"], [8], ceilings=["oracle", "big"], row_invariance="even")
    assert last.exact


def test_ceilings_are_the_oracle_and_the_target_itself() -> None:
    found = contenders(
        ["as2d"], ["x", "oracle", "big"], [8], ceilings=["oracle", "big"], row_invariance="any"
    )
    assert [contender.ceiling for contender in found] == [False, False, True, True]
