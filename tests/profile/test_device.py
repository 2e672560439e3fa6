"""Devices that are not here."""

from __future__ import annotations

from pathlib import Path

import pytest

from as2d_cli.errors import As2dError, ExitStatus
from as2d_cli.profile.alignment import as_json, perfect
from as2d_cli.profile.device import costs_on, read_device, shapes, shipped_devices
from as2d_cli.profile.growth import growth

PHONE = """
name = "a phone"
memory_gb_per_second = 40
[[cluster]]
core = "little"
cores = 4
ghz = 1.8
simd_bits = 128
bytes_per_cycle = 2
[[cluster]]
core = "big"
cores = 2
ghz = 3.0
simd_bits = 512
bytes_per_cycle = 8
"""


@pytest.fixture
def phone(tmp_path: Path) -> Path:
    path = tmp_path / "phone.toml"
    path.write_text(PHONE)
    return path


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    import json

    path = tmp_path / "traces.json"
    pairs = {("whisper-base", "whisper-tiny.en"): [[perfect(10, 40)] * 3]}
    path.write_text(json.dumps(as_json(pairs)))
    return path


def test_the_fastest_cores_come_first_and_have_the_last_numbers(phone: Path) -> None:
    device = read_device(str(phone))
    assert device.machine.clusters == ((4, 5), (0, 1, 2, 3))
    assert device.clusters == [("big", 2, 3.0), ("little", 4, 1.8)]


def test_four_phones_came_with_as2d() -> None:
    names = shipped_devices()
    assert len(names) >= 4
    sizes = {tuple(map(len, read_device(name).machine.clusters)) for name in names}
    assert {(2, 6), (1, 3, 4), (1, 4, 4), (1, 3, 2, 2)} <= sizes


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("ghz = 1.8", "ghz = 0", "ghz = 0 is no positive number"),
        ("ghz = 1.8", 'ghz = "fast"', "ghz = fast is no positive number"),
        ("cores = 4", "cores = 0", "cores = 0 is not from 1 to 1024"),
        ("cores = 4\n", "", "does not say 'cores'"),
        ('name = "a phone"', "", "does not say 'name'"),
        ("[[cluster]]", "[cluster", "line"),
    ],
)
def test_what_is_no_description_is_refused(phone: Path, old: str, new: str, problem: str) -> None:
    phone.write_text(PHONE.replace(old, new, 1))
    with pytest.raises(As2dError, match=problem) as caught:
        read_device(str(phone))
    assert caught.value.status == ExitStatus.USAGE
    assert str(caught.value).startswith("--device-file ")


def test_a_description_that_is_not_there_is_refused() -> None:
    with pytest.raises(As2dError, match="tensor-g3"):
        read_device("no-such-phone")


def test_costs_scale_as_is_stated(phone: Path) -> None:
    device = read_device(str(phone))
    drafter, targets = shapes()
    small, large = targets[0], targets[-1]
    costs, dear = costs_on(device, small, drafter), costs_on(device, large, drafter)
    assert costs.estimated
    assert costs.lanes[0].alone.step(1) < dear.lanes[0].alone.step(1)
    # Reading takes longest with one row, multiplying with many.
    steps = dear.lanes[0].alone
    assert steps.step(2) < 1.5 * steps.step(1)
    assert steps.step(32) > 4 * steps.step(1)
    shared = next(lane for lane in costs.lanes if lane.beside is not None)
    assert shared.own is not None and shared.beside is not None
    assert shared.alone.step(1) <= shared.own.step(1) <= shared.beside.step(1)


def test_drafts_are_worth_more_as_the_target_grows(phone: Path, traces: Path) -> None:
    found = growth(read_device(str(phone)), traces)
    assert [entry.findings.costs.target for entry in found] == [t.name for t in shapes()[1]]
    gains = [entry.drafting.ratio for entry in found if entry.drafting]
    assert len(gains) == len(found)
    whisper = gains[:3]
    assert whisper == sorted(whisper)
