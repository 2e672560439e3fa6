"""Command lines that speak of devices, with an adb that is told what to say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.device.material import run_on
from tests.device.scripted import Rule, scripted_adb

HEAD = "List of devices attached\n"
ONE = Rule("^devices -l$", HEAD + "A1 device model:X\n")
NONE = Rule("^devices -l$", HEAD)
UNPLUGGED = "as2d: no device; connect one with a cable"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--device"], UNPLUGGED),
        (["--device", "--repeat", "2"], UNPLUGGED),
        (["--device="], UNPLUGGED),
        (["--device", "--", "clip.wav"], UNPLUGGED),
        (["--device", "B2"], "as2d: no device B2; connect one"),
        (["--device=B2"], "as2d: no device B2; connect one"),
        (["--device", "clip.wav"], "as2d: --device clip.wav is a file and no device; put --device"),
        (["--device", "clips/none.wav"], "as2d: --device clips/none.wav is a file and no device"),
        (["clip.wav", "--cool-down", "38"], "as2d: --cool-down is for a device; give --device"),
        (["clip.wav", "--no-keep"], "as2d: --keep is for a device; give --device, too"),
        (["--device", "--device-dir", "there"], UNPLUGGED),
    ],
)
def test_a_bench_on_a_device_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("clip.wav").write_bytes(b"")
    ran = run_on("bench", *words, variables=scripted_adb(tmp_path, [NONE]))
    assert ran.stderr.startswith(said)
    assert ran.stderr.count("\n") == 1
    assert ran.status == (3 if "no device" in said and "is a file" not in said else 2)


def test_a_profile_is_of_a_device_or_of_a_file(tmp_path: Path) -> None:
    variables = scripted_adb(tmp_path, [NONE])
    words = ["profile", "--device-file", "tensor-g3", "--device"]
    ran = run_on(*words, variables=variables)
    assert ran.status == 2
    assert ran.stderr == ("as2d: --device and --device-file do not go together; leave one out\n")


def test_devices_are_listed_with_what_to_do(tmp_path: Path) -> None:
    rules = [
        Rule("^devices -l$", f"{HEAD}A1 device model:X\nB2 unauthorized usb:1\nC3 offline\n"),
        Rule("shell", "manufacturer=Maker\nmodel=It's 8\nsoc=\nkernel=Linux 5\nas2d-status 0\n"),
    ]
    variables = scripted_adb(tmp_path, rules)
    ran = run_on("device", "list", variables=variables)
    assert ran.status == 0
    assert ran.stdout == "A1\tdevice\tMaker It's 8\nB2\tunauthorized\nC3\toffline\n"
    assert ran.stderr.splitlines() == [
        "as2d: B2 is unauthorized: unlock it and allow this computer in the dialog on its screen",
        "as2d: C3 is offline: unplug it and plug it in again, or run 'adb reconnect offline'",
    ]
    rows = json.loads(run_on("device", "list", "--json", variables=variables).stdout)
    assert [(row["serial"], row["state"]) for row in rows] == [
        ("A1", "device"),
        ("B2", "unauthorized"),
        ("C3", "offline"),
    ]
    assert rows[0]["phone"]["model"] == "It's 8" and rows[1]["phone"] is None


def test_no_device_to_list_is_said(tmp_path: Path) -> None:
    ran = run_on("device", "list", variables=scripted_adb(tmp_path, [NONE]))
    assert (ran.status, ran.stdout) == (0, "")
    assert ran.stderr.startswith(UNPLUGGED)


def test_a_check_that_fails_is_a_row_and_status_1(tmp_path: Path) -> None:
    rules = [
        ONE,
        Rule("getprop", "abis=arm64-v8a\nkernel=Linux 5\narchitecture=aarch64\nas2d-status 0\n"),
        Rule("command -v", "setsid\nas2d-status 7\n", "said\n"),
        Rule("mkdir", "as2d-status 0\n"),
        Rule("df -Pk", "as2d-status 1\n"),
    ]
    variables = scripted_adb(tmp_path, rules)
    # There is nothing to build the runner with.
    ran = run_on("device", "shell-check", variables={**variables, "PATH": str(tmp_path)})
    assert ran.status == 1
    rows = [row.split("\t") for row in ran.stdout.splitlines()]
    assert rows[:3] == [
        ["device", "ok", "A1, Linux 5, aarch64"],
        ["shell", "FAILED", "these programs are missing: setsid"],
        ["folder", "ok", "/data/local/tmp/as2d, room unknown"],
    ]
    assert rows[3][:2] == ["runner", "FAILED"]


def test_a_folder_of_this_machine_is_no_folder_of_a_device(tmp_path: Path) -> None:
    variables = scripted_adb(tmp_path, [ONE])
    ran = run_on("device", "clean", "--device-dir", "here", variables=variables)
    assert ran.status == 2
    assert ran.stderr.startswith("as2d: --device-dir here is no path of a folder on a device")
    assert "shell" not in (tmp_path / "log").read_text()
