"""Who runs: every strategy with every drafter and budget that it takes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from as2d_cli.methods import TOGETHER, needs_drafter

__all__ = ["ORACLE", "Contender", "contenders"]

ORACLE = "oracle"
"""A drafter that replays the reference's own tokens and costs nothing."""


@dataclass(frozen=True)
class Contender:
    """A strategy with what belongs to it.

    Attributes:
        method: one of `as2d_cli.methods.METHODS`.
        drafter: what the user called it, or None.
        budget: most candidates per verify step; for ``batched``, windows in a batch; 0 for none.
        windows: of a recording in one batch.
        one_row: the target takes one row a step where exact mode would take two.
        exact: its text must be the reference's.
        reference: its text is what the others must equal.
        baseline: its time is what the others are compared with.
        ceiling: no drafter can be better: it is the reference's text, or the target itself.
        planned: all of it as the plan has it, which adapts itself while it runs.
    """

    method: str
    drafter: str | None = None
    budget: int = 0
    windows: int = 1
    one_row: bool = False
    exact: bool = True
    reference: bool = False
    baseline: bool = False
    ceiling: bool = False
    planned: bool = False

    @property
    def label(self) -> str:
        """For people: ``as2d whisper-tiny.en 8``, and ``x4`` for four windows in a batch."""
        parts = [
            "plan:" if self.planned else "",
            self.method,
            self.drafter or "",
            str(self.budget) if self.budget else "",
        ]
        if self.windows > 1:
            parts.append(f"x{self.windows}")
        return " ".join(part for part in parts if part) + (" (one row)" if self.one_row else "")


def contenders(
    methods: Iterable[str],
    drafters: Sequence[str],
    budgets: Sequence[int],
    windows: Sequence[int] = (1,),
    *,
    ceilings: Collection[str],
    row_invariance: str,
) -> list[Contender]:
    """Every combination, none twice; the reference and the baseline come first, whether they were
    asked for or not.

    They are one where the target is the same for any number of rows: exact mode then takes one row
    a step itself. Else the target with one row a step is the faster one, and the honest baseline.

    Args:
        ceilings: the drafters that nothing can be better than.
        row_invariance: the target's (see `as2d_cli.catalog.Bundle`).
    """
    reference = Contender("target", reference=True)
    if row_invariance == "any":
        found = [replace(reference, baseline=True)]
    else:
        found = [reference, Contender("target", one_row=True, exact=False, baseline=True)]
    for method in methods:
        if method != "target":
            together = windows if method in TOGETHER else (1,)
            found += _combinations(method, drafters, budgets, together, ceilings)
    if row_invariance == "none":
        # Whatever is verified in batches may differ, and nobody promised that it does not.
        found = [replace(entry, exact=entry.exact and entry.reference) for entry in found]
    return list(dict.fromkeys(found))


def _combinations(
    method: str,
    drafters: Sequence[str],
    budgets: Sequence[int],
    windows: Sequence[int],
    ceilings: Collection[str],
) -> Iterator[Contender]:
    for drafter in drafters if needs_drafter(method) else (None,):
        for budget in budgets:
            for count in windows:
                yield Contender(method, drafter, budget, count, ceiling=drafter in ceilings)
