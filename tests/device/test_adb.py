"""The driver, with the real adb and an emulated phone."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from as2d_cli.device.adb import Adb, Device, words
from as2d_cli.errors import As2dError, ExitStatus
from tests.device.phone import TEMPORARY, Phone


@pytest.fixture
def device(phone: Phone, adb: Adb) -> Device:
    return adb.device(phone.serial)


def test_the_only_device_is_the_one_that_is_meant(phone: Phone, adb: Adb) -> None:
    assert adb.device(None).serial == phone.serial


def test_two_devices_are_named(phone: Phone, adb: Adb, tmp_path: Path) -> None:
    with Phone(tmp_path / "other") as other:
        adb.call("connect", other.serial)
        with pytest.raises(As2dError) as caught:
            adb.device(None)
        assert adb.device(other.serial).serial == other.serial
        adb.call("disconnect", other.serial)
    assert caught.value.message.startswith("2 devices: 127.0.0.1:")
    assert phone.serial in caught.value.message and other.serial in caught.value.message
    assert caught.value.status == ExitStatus.UNAVAILABLE


def test_the_status_and_both_streams_come_back(device: Device) -> None:
    ran = device.shell("echo one; echo two >&2; printf three; exit 7")
    assert (ran.status, ran.out, ran.err) == (7, ["one", "three"], ["two"])
    assert device.shell("true").out == []


@pytest.mark.parametrize("word", ["a b", "it's", '$HOME `x` \\ "q"', "*", "", "new\nline", "-n;"])
def test_words_reach_the_program_as_they_are(device: Device, word: str) -> None:
    ran = device.shell(words("printf", "<%s>", word))
    assert "\n".join(ran.out) == f"<{word}>"


def test_what_a_program_says_comes_while_it_runs(device: Device) -> None:
    with device.run("echo begun; sleep 30; echo late", group=True) as remote:
        assert next(remote.lines(10)) == "begun"
        assert remote.status is None


def test_leaving_ends_the_whole_group(device: Device, tmp_path: Path) -> None:
    """Also who refuses to be ended gently."""
    script = "sleep 300 & trap '' TERM HUP PIPE; echo $$ $!; while :; do sleep 0.1; done"
    with device.run(script, group=True) as remote:
        numbers = [int(word) for word in next(remote.lines(10)).split()]
        assert all(_runs(number) for number in numbers)
    end = time.monotonic() + 30
    while any(_runs(number) for number in numbers):
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_script_that_takes_too_long_is_given_up(device: Device) -> None:
    with pytest.raises(As2dError, match=r"did not finish within 0\.5 s"):
        device.shell("sleep 20", seconds=0.5)


def test_what_came_while_nobody_looked_is_not_late(device: Device) -> None:
    """Whoever is stopped and goes on later."""
    with device.run("echo one; echo two") as remote:
        lines = remote.lines(1)
        assert next(lines) == "one"
        time.sleep(1.5)
        assert list(lines) == ["two"]
        assert remote.status == 0


def test_who_never_stops_talking_is_given_up(device: Device) -> None:
    with pytest.raises(As2dError, match=r"did not finish within 0\.2 s"):
        device.shell("while :; do echo again; done", seconds=0.2)


def test_a_file_is_copied_with_its_permissions(
    device: Device, phone: Phone, tmp_path: Path
) -> None:
    program = tmp_path / "program with a blank"
    program.write_bytes(os.urandom(300_000))
    program.chmod(0o755)
    device.push(program, f"{TEMPORARY}/its name")
    copy = phone.folder / "its name"
    assert copy.read_bytes() == program.read_bytes()
    assert copy.stat().st_mode & 0o777 == 0o755


def test_full_storage_is_named(device: Device, phone: Phone, tmp_path: Path) -> None:
    phone.room = 1000
    file = tmp_path / "file"
    file.write_bytes(bytes(5000))
    with pytest.raises(As2dError, match=r"cannot copy file to /data.*No space left on device"):
        device.push(file, f"{TEMPORARY}/file")


def test_a_cable_pulled_in_mid_copy_is_named(device: Device, phone: Phone, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(bytes(5_000_000))
    phone.cable = Phone.unplug
    with pytest.raises(As2dError, match=r"(went away|became offline) while file was copied"):
        device.push(file, f"{TEMPORARY}/file")


def test_a_cable_pulled_in_mid_run_is_named(device: Device, phone: Phone) -> None:
    with device.run("echo begun; sleep 30", group=True) as remote:
        lines = remote.lines(10)
        assert next(lines) == "begun"
        phone.unplug()
        with pytest.raises(As2dError, match=r"(went away|became offline) in the middle"):
            list(lines)


def _runs(number: int) -> bool:
    """A zombie does not."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
