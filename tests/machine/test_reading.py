"""From folders of the kernel to facts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from as2d_cli import _native
from as2d_cli.machine import Cluster, MachineFacts, read_conditions, read_machine
from as2d_cli.machine.arm_cores import core_name
from as2d_cli.machine.cores import core_list
from tests.machine import trees


def test_a_phone_with_all_facts(tmp_path: Path) -> None:
    facts = read_machine(trees.arm_phone(tmp_path), "0-7")
    arm = ("asimd", "asimdhp", "asimddp")
    assert facts.clusters == (
        Cluster((4, 5, 6, 7), 1024, 2_800_000, (*arm, "i8mm", "bf16"), "Cortex-A78"),
        Cluster((0, 1, 2, 3), 400, 1_800_000, arm, "Cortex-A55"),
    )
    assert facts.features == arm, "those that every core has"
    assert facts.source == "capacity"
    assert facts.allowed == tuple(range(8))
    assert facts.offline == ()
    assert facts.siblings == ()
    assert facts.quota == 1.5
    assert {(c.level, c.kind, c.bytes) for c in facts.caches if 4 in c.cores} == {
        (1, "data", 64 << 10),
        (2, "unified", 512 << 10),
        (3, "unified", 4 << 20),
    }
    conditions = read_conditions(tmp_path, "0-7")
    assert conditions.governors == ("walt", "schedutil")
    assert conditions.temperatures == (("cpu-big", 61.5), ("skin", 34.0))
    assert conditions.hottest == ("cpu-big", 61.5)


@pytest.mark.parametrize(
    ("capacities", "khz", "allowed", "clusters", "source"),
    [
        ([400] * 4 + [1024] * 4, [], "0-7", [(4, 5, 6, 7), (0, 1, 2, 3)], "capacity"),
        ([], [1_800_000] * 4 + [2_800_000] * 4, "0-7", [(4, 5, 6, 7), (0, 1, 2, 3)], "frequency"),
        ([250] * 4 + [800] * 3 + [1024], [], "0-7", [(7,), (4, 5, 6), (0, 1, 2, 3)], "capacity"),
        ([430] * 6 + [1024] * 2, [], "0-7", [(6, 7), (0, 1, 2, 3, 4, 5)], "capacity"),
        ([1024] * 8, [], "0-7", [tuple(range(8))], "capacity"),
        ([], [5_100_000] * 4 + [3_700_000] * 4, "0-7", [(0, 1, 2, 3), (4, 5, 6, 7)], "frequency"),
        ([400] * 4 + [1024] * 4, [], "0-2", [(0, 1, 2)], "capacity"),
        ([1024], [], "0", [(0,)], "capacity"),
        ([], [], "0-1,4", [(0, 1, 4)], "none"),
    ],
)
def test_clusters(
    tmp_path: Path,
    capacities: list[int],
    khz: list[int],
    allowed: str,
    clusters: list[tuple[int, ...]],
    source: str,
) -> None:
    trees.cores(tmp_path, 8, capacities=capacities, max_khz=khz)
    facts = read_machine(tmp_path, allowed)
    assert [cluster.cores for cluster in facts.clusters] == clusters
    assert facts.source == source


def test_second_threads_of_a_core(tmp_path: Path) -> None:
    siblings = [f"{core % 4},{core % 4 + 4}" for core in range(8)]
    facts = read_machine(trees.cores(tmp_path, 8, siblings=siblings), "0-7")
    assert facts.siblings == ((0, 4), (1, 5), (2, 6), (3, 7))
    assert facts.cores == tuple(range(8))
    assert facts.one_per_core == (0, 1, 2, 3)


def test_offline_cores(tmp_path: Path) -> None:
    facts = read_machine(trees.cores(tmp_path, 4, online="0-1,3"), "0-3")
    assert facts.cores == (0, 1, 3)
    assert facts.offline == (2,)


def test_what_cannot_be_read_is_unknown(tmp_path: Path) -> None:
    facts = read_machine(tmp_path, "0-1")
    assert facts.clusters == (Cluster((0, 1)),)
    assert (facts.offline, facts.siblings, facts.quota, facts.features) == (None,) * 4
    assert facts.caches == ()
    assert facts.one_per_core == (0, 1)
    conditions = read_conditions(tmp_path, "0-1")
    assert conditions.governors == ("",)
    assert conditions.hottest is None


@pytest.mark.parametrize(
    ("groups", "files", "quota"),
    [
        ("0::/a/b", {"a/cpu.max": "400000 100000", "a/b/cpu.max": "50000 100000"}, 0.5),
        ("0::/a/b", {"a/cpu.max": "50000 100000", "a/b/cpu.max": "400000 100000"}, 0.5),
        ("0::/", {"cpu.max": "max 100000"}, 0.0),
        (
            "3:cpu,cpuacct:/job\n0::/",
            {
                "cpu,cpuacct/job/cpu.cfs_quota_us": "150000",
                "cpu,cpuacct/job/cpu.cfs_period_us": "100000",
                "unified/cpu.max": "200000 100000",
            },
            1.5,
        ),
    ],
)
def test_quotas(tmp_path: Path, groups: str, files: dict[str, str], quota: float) -> None:
    trees.write(tmp_path, "proc/self/cgroup", groups)
    for name, text in files.items():
        trees.write(tmp_path, f"sys/fs/cgroup/{name}", text)
    assert read_machine(tmp_path, "0").quota == quota


def test_this_machine() -> None:
    facts = read_machine()
    assert set(facts.cores) == os.sched_getaffinity(0)
    assert facts.allowed is not None and set(facts.allowed) >= set(facts.cores)
    assert facts.fingerprint() == read_machine().fingerprint()
    assert len(read_conditions().governors) == len(facts.clusters)


def test_a_fingerprint_is_of_all_facts(tmp_path: Path) -> None:
    trees.arm_phone(tmp_path)
    prints = {read_machine(tmp_path, allowed).fingerprint() for allowed in ("0-7", "0-6", "4")}
    trees.write(tmp_path, "sys/fs/cgroup/apps/cpu.max", "100000 100000")
    prints.add(read_machine(tmp_path, "0-7").fingerprint())
    assert len(prints) == 4


def test_a_list_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(_native.NativeError, match="'3-1' is no list of cores"):
        read_machine(tmp_path, "3-1")


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("0x41:0xd82", "Cortex-X4"),
        ("0x51:0x001", "Oryon"),
        ("0x41:0xfff", "ARM 0xfff"),
        ("0x99:0x1", "0x99 0x1"),
        ("Some(R) CPU @ 2.10GHz", "Some(R) CPU @ 2.10GHz"),
        ("Model: 7", "Model: 7"),
        ("", ""),
    ],
)
def test_names_of_cores(model: str, name: str) -> None:
    assert core_name(model) == name


@pytest.mark.parametrize(
    ("cores", "text"),
    [((), ""), ((3,), "3"), ((5, 0, 1, 2, 3), "0-3,5"), ((4, 5, 7), "4-5,7"), ((1, 1), "1")],
)
def test_lists_of_cores(cores: tuple[int, ...], text: str) -> None:
    assert core_list(cores) == text


def test_no_cluster_is_no_common_feature() -> None:
    assert MachineFacts("x86_64", "portable", ()).features is None
