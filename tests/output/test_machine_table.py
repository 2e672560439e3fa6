"""The machine on a terminal and on a pipe."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from as2d_cli.environment import Environment, Output
from as2d_cli.machine import Cluster, Conditions, MachineFacts, read_conditions, read_machine
from as2d_cli.output.machine_table import machine_lines, write_machine
from tests.machine import trees

UNKNOWN = MachineFacts("riscv64", "portable", (Cluster((0, 1)),), can_pin=False)


def shown(
    facts: MachineFacts, conditions: Conditions, *, terminal: bool, columns: int = 160
) -> str:
    out = io.BytesIO()
    environment = Environment(
        stdin=None,
        stdout=Output(out, is_terminal=terminal),
        stderr=Output(None),
        variables={"NO_COLOR": "1"},
        columns=columns,
    )
    write_machine(facts, conditions, environment)
    return out.getvalue().decode()


def test_a_pipe_gets_plain_lines(tmp_path: Path) -> None:
    trees.arm_phone(tmp_path)
    facts, conditions = read_machine(tmp_path, "0-7"), read_conditions(tmp_path, "0-7")
    text = shown(facts, conditions, terminal=False)
    lines = text.splitlines()
    assert lines == machine_lines(facts, conditions)
    assert "\x1b" not in text
    cells = [line.split("\t") for line in lines]
    values = {row[0]: row[1] for row in cells if row[0] != "cluster"}
    assert values["allowed cores"] == "0-7"
    assert values["offline cores"] == "none"
    assert values["threads"] == "one a core"
    assert values["CPU quota"] == "time of 1.5 cores"
    assert values["temperature"] == "62 °C (cpu-big, the hottest of 2 sensors)"
    assert [row[1:] for row in cells if row[0] == "cluster"] == [
        [
            "4-7",
            "Cortex-A78",
            "1024",
            "2.80 GHz",
            "i8mm, bf16, dotprod, fp16, NEON",
            "L1d 64 KiB, L2 512 KiB, L3 4 MiB for 8 cores",
            "walt",
        ],
        [
            "0-3",
            "Cortex-A55",
            "400",
            "1.80 GHz",
            "dotprod, fp16, NEON",
            "L1d 32 KiB, L2 128 KiB, L3 4 MiB for 8 cores",
            "schedutil",
        ],
    ]


def test_what_is_not_known_is_said() -> None:
    rows = [line.split("\t") for line in machine_lines(UNKNOWN, Conditions())]
    assert rows[-1] == ["cluster", "0-1", *["unknown"] * 6]
    values = {row[0]: row[1] for row in rows[:-1]}
    assert values == {
        "architecture": "riscv64",
        "kernels": "portable",
        "allowed cores": "unknown",
        "offline cores": "unknown",
        "threads": "unknown",
        "CPU quota": "unknown",
        "pinning": "the platform cannot",
        "clusters by": "unknown",
        "temperature": "unknown",
    }


@pytest.mark.parametrize("columns", [60, 160])
def test_a_terminal_gets_a_table(tmp_path: Path, columns: int) -> None:
    trees.arm_phone(tmp_path)
    facts, conditions = read_machine(tmp_path, "0-7"), read_conditions(tmp_path, "0-7")
    text = shown(facts, conditions, terminal=True, columns=columns)
    assert all(len(line) <= columns for line in text.splitlines())
    for word in ("cores", "1024", "400", "NEON", "allowed cores", "time of 1.5 cores"):
        assert word in text
    if columns > 100:
        assert text.index("Cortex-A78") < text.index("Cortex-A55"), "the fastest first"


def test_a_terminal_hides_columns_of_which_nothing_is_known() -> None:
    text = shown(UNKNOWN, Conditions(), terminal=True)
    assert "capacity" not in text
    assert "governor" not in text


def test_threads_of_one_core_and_models_with_odd_names() -> None:
    facts = MachineFacts(
        "x86_64",
        "avx2",
        (Cluster((0, 1, 2, 3), features=(), model="Odd\tname\n[bold]"),),
        allowed=(0, 1, 2, 3),
        siblings=((0, 2), (1, 3)),
        quota=0.0,
    )
    lines = machine_lines(facts, Conditions())
    assert "threads\tof one core: 0+2, 1+3" in lines
    assert "CPU quota\tnone" in lines
    assert lines[-1].split("\t")[1:6] == [
        "0-3",
        "Odd\\tname\\n[bold]",
        "unknown",
        "unknown",
        "none",
    ]
    assert "[bold]" in shown(facts, Conditions(), terminal=True)
