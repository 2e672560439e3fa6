"""A profile of language models for people: what the work costs, and each method's answers."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from as2d_cli.errors import one_line
from as2d_cli.machine.cores import core_list
from as2d_cli.output.profile_report import milliseconds, print_table
from as2d_cli.profile.answer_costs import FREE, SOURCE, AnswerCosts
from as2d_cli.profile.answer_session import AnswerFindings

__all__ = ["print_answers"]


def print_answers(findings: AnswerFindings, console: Console) -> None:
    """All of it; the choice last."""
    costs, choice = findings.costs, findings.choice
    pair = costs.target + (f" with {costs.drafter}" if costs.drafter else "")
    console.print(Text(one_line(f"{pair}, {costs.created}"), style="bold"))
    print_table(list(_steps(costs)), console)
    console.print()
    for line in _other_work(costs):
        console.print(line, soft_wrap=True)
    console.print()
    print_table(list(_trials(costs)), console, left=(0,))
    console.print()
    text = one_line(f"best: --method {choice.method} ({choice.why})")
    console.print(Text(text, style="bold green"), soft_wrap=True)


def _steps(costs: AnswerCosts) -> Iterator[tuple[str, ...]]:
    rows = sorted(costs.steps)
    yield ("a step of", "cores", *(f"{n} rows" if n > 1 else "1 row" for n in rows))
    yield (
        "target, drafter rests" if costs.drafter else "target",
        core_list(costs.cores),
        *(milliseconds(costs.steps[n]) for n in rows),
    )
    if costs.split is not None and costs.beside:
        yield (
            "target, drafter works",
            core_list(costs.split[0]),
            *(milliseconds(costs.beside[n]) for n in rows),
        )


def _other_work(costs: AnswerCosts) -> Iterator[str]:
    """What steps are not."""
    yield f"a token of a prompt takes {milliseconds(costs.prompt)}"
    found = (
        ("of a prompt takes the drafter", costs.draft_prompt),
        ("of a draft takes", costs.draft_token),
        ("of a draft, while the target works, takes", costs.draft_beside),
    )
    for what, seconds in found:
        if seconds is not None:
            yield f"a token {what} {milliseconds(seconds)}"


def _trials(costs: AnswerCosts) -> Iterator[tuple[str, ...]]:
    yield ("method", *(f"{k} {what}" for k in (FREE, SOURCE) for what in ("s", "ratio", "length")))
    alone = costs.trials["target"]
    for method, kinds in costs.trials.items():
        cells: list[str] = []
        for kind in (FREE, SOURCE):
            trial = kinds[kind]
            ratio = alone[kind].seconds / trial.seconds
            cells += [f"{trial.seconds:.2f}", f"{ratio:.2f}", f"{trial.length:.1f}"]
        yield (method, *cells)
