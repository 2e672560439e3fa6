"""The machine as a person wants to see it: a table on a terminal, plain lines on a pipe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from as2d_cli.environment import Environment
from as2d_cli.errors import one_line
from as2d_cli.machine.facts import Conditions, MachineFacts
from as2d_cli.machine.words import CLUSTER_COLUMNS, UNKNOWN, cluster_words, machine_words

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["machine_lines", "print_machine", "write_machine"]


def write_machine(facts: MachineFacts, conditions: Conditions, environment: Environment) -> None:
    """To standard output, by what that is."""
    if not environment.stdout.is_terminal:
        for line in machine_lines(facts, conditions):
            environment.stdout.write(line + "\n")
        return
    from as2d_cli.output.console import print_page

    print_page(environment, lambda console: print_machine(facts, conditions, console))


def machine_lines(facts: MachineFacts, conditions: Conditions) -> list[str]:
    """Name and value of each fact, then ``cluster`` and its cells, separated by tabs."""
    rows = [list(row) for row in machine_words(facts, conditions)]
    rows += [["cluster", *row] for row in cluster_words(facts, conditions)]
    return ["\t".join(one_line(cell) for cell in row) for row in rows]


def print_machine(facts: MachineFacts, conditions: Conditions, console: Console) -> None:
    """Two tables: the clusters, the fastest first, and what is true of all."""
    from rich.table import Table
    from rich.text import Text

    clusters = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    rows = cluster_words(facts, conditions)
    # A column of which nothing is known has nothing to say in the width of a terminal.
    told = [i for i in range(len(CLUSTER_COLUMNS)) if any(row[i] != UNKNOWN for row in rows)]
    for i in told:
        clusters.add_column(CLUSTER_COLUMNS[i], overflow="fold")
    for row in rows:
        clusters.add_row(*(Text(one_line(row[i])) for i in told))
    console.print(clusters)
    console.print()
    whole = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    whole.add_column(style="bold", no_wrap=True)
    whole.add_column(overflow="fold")
    for name, value in machine_words(facts, conditions):
        whole.add_row(name, Text(one_line(value)))
    console.print(whole)
