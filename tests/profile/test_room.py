"""Memory for further models."""

from __future__ import annotations

from pathlib import Path

import pytest

from as2d_cli.profile.room import Room, free_memory, held_memory
from tests.machine.trees import write

GB = 1 << 30


def machine(root: Path) -> Path:
    write(root, "proc/meminfo", "MemTotal: 9999999 kB\nMemAvailable:    4194304 kB")
    return root


def test_a_machine_has_what_the_kernel_says(tmp_path: Path) -> None:
    assert free_memory(machine(tmp_path)) == 4 * GB
    assert free_memory(tmp_path / "none") is None


@pytest.mark.parametrize(
    ("groups", "files", "free"),
    [
        ("0::/a/b", {"a/b/memory.max": "max", "a/b/memory.current": "5"}, 4 * GB),
        ("0::/a/b", {"a/memory.max": str(2 * GB), "a/memory.current": str(GB)}, GB),
        ("0::/gone", {"memory.max": str(2 * GB), "memory.current": str(2 * GB)}, 0),
        (
            "0::/",
            {
                "memory.max": str(2 * GB),
                "memory.current": str(2 * GB),
                "memory.stat": f"anon 7\ninactive_file {GB}",
            },
            GB,
        ),
        (
            "3:cpu,memory:/job\n2:pids:/job",
            {
                "memory/job/memory.limit_in_bytes": str(3 * GB),
                "memory/job/memory.usage_in_bytes": str(2 * GB),
                "memory/job/memory.stat": f"inactive_file 5\ntotal_inactive_file {GB}",
            },
            2 * GB,
        ),
    ],
)
def test_a_container_has_what_it_is_granted(
    tmp_path: Path, groups: str, files: dict[str, str], free: int
) -> None:
    machine(tmp_path)
    write(tmp_path, "proc/self/cgroup", groups)
    for name, text in files.items():
        write(tmp_path, f"sys/fs/cgroup/{name}", text)
    assert free_memory(tmp_path) == free


def test_one_more_may_take_half_of_what_is_left() -> None:
    held, free = [0], [10]
    room = Room(free=lambda: free[0], held=lambda: held[0])
    held[0] = 4
    room.opened()
    assert room.for_another()
    held[0], free[0] = 8, 7
    room.opened()
    assert not room.for_another()


def test_what_is_not_known_is_no_room() -> None:
    assert not Room(free=lambda: None, held=lambda: 0).for_another()
    assert not Room(free=lambda: 1 << 40, held=lambda: None).for_another()


def test_this_machine_tells() -> None:
    held, free = held_memory(), free_memory()
    assert held is not None and held > 1 << 20
    assert free is not None and free > 0
