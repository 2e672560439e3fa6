"""The driver, with an adb that says what it says when something is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from as2d_cli.device.adb import Adb
from as2d_cli.errors import As2dError, ExitStatus
from tests.device.scripted import Rule, scripted_adb

HEAD = "List of devices attached\n"


def adb(folder: Path, *rules: Rule) -> Adb:
    return Adb.find(scripted_adb(folder, rules))


def listing(*lines: str, **how: object) -> Rule:
    return Rule("^devices -l$", HEAD + "".join(f"{line}\n" for line in lines) + "\n", **how)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("lines", "serial", "said"),
    [
        ([], None, "no device; connect one with a cable and switch on USB debugging"),
        (["A1 device usb:1-1 model:Pixel_8"], "B2", "no device B2; there is A1 (Pixel_8)"),
        (
            ["A1             unauthorized usb:1-1 transport_id:1"],
            None,
            "device A1 is unauthorized; unlock it and allow this computer in the dialog",
        ),
        (["A1 offline transport_id:1"], "A1", "device A1 is offline; unplug it and plug it in"),
        (
            ["A1 no permissions (missing udev rules? user is in the plugdev group); see [x] usb:1"],
            None,
            "device A1 is no permissions (missing udev rules? user is in the plugdev group); "
            "see [x]; install the udev rules",
        ),
        (["A1 host"], None, "device A1 is host; see 'adb devices'"),
        (
            ["A1 device model:X", "B2 device model:Y", "C3 offline"],
            None,
            "3 devices: A1 (X), B2 (Y), C3 (offline); choose one with --device SERIAL",
        ),
        (["A1 offline", "B2 unauthorized"], None, "2 devices: A1 (offline), B2 (unauthorized)"),
    ],
)
def test_a_device_that_cannot_be_used_is_named(
    tmp_path: Path, lines: Sequence[str], serial: str | None, said: str
) -> None:
    with pytest.raises(As2dError) as caught:
        adb(tmp_path, listing(*lines)).device(serial)
    assert str(caught.value).startswith(said)
    assert caught.value.status == ExitStatus.UNAVAILABLE


def test_one_that_can_be_used_among_others_is_meant(tmp_path: Path) -> None:
    found = adb(tmp_path, listing("A1 offline", "B2 device model:Y", "C3 unauthorized"))
    assert found.device(None).serial == "B2"


def test_the_variable_chooses(tmp_path: Path) -> None:
    variables = scripted_adb(tmp_path, [listing("A1 device", "B2 device")])
    found = Adb.find({**variables, "ANDROID_SERIAL": "B2"})
    assert found.device(None).serial == "B2"
    assert found.device("A1").serial == "A1"


def test_what_a_server_says_as_it_starts_is_no_device(tmp_path: Path) -> None:
    rule = Rule(
        "^devices -l$",
        "* daemon not running; starting now at tcp:5037\n* daemon started successfully\n"
        "List of devices attached\r\nA1\tdevice model:X\r\n\r\n",
    )
    found = adb(tmp_path, rule).devices()
    assert [(one.serial, one.ready, one.model) for one in found] == [("A1", True, "X")]


def test_no_adb(tmp_path: Path) -> None:
    with pytest.raises(As2dError, match="there is no adb here; install it") as caught:
        Adb.find({"PATH": str(tmp_path)})
    assert caught.value.status == ExitStatus.UNAVAILABLE


def test_the_sdk_has_one(tmp_path: Path) -> None:
    tools = tmp_path / "platform-tools"
    tools.mkdir()
    scripted_adb(tools, [listing("A1 device")])
    assert Adb.find({"PATH": "/nowhere", "ANDROID_HOME": str(tmp_path)}).device("A1")


def test_adb_that_fails_is_told_with_its_words(tmp_path: Path) -> None:
    rule = Rule("^devices", err="error: protocol fault (couldn't read status)\n", status=1)
    with pytest.raises(As2dError, match=r"^adb: protocol fault \(couldn't read status\)$"):
        adb(tmp_path, rule).devices()


def test_a_device_without_the_shell_protocol_is_told(tmp_path: Path) -> None:
    rules = [
        listing("A1 device"),
        Rule(" shell ", err="error: target doesn't support PTY args -Tt\n", status=1),
    ]
    with pytest.raises(As2dError, match="ended the connection: target doesn't support PTY"):
        adb(tmp_path, *rules).device("A1").shell("true")


def test_ends_of_lines_as_terminals_make_them(tmp_path: Path) -> None:
    rules = [listing("A1 device"), Rule(" shell ", "one\r\ntwo\r\nas2d-status 3\r\n")]
    ran = adb(tmp_path, *rules).device("A1").shell("true")
    assert (ran.status, ran.out) == (3, ["one", "two"])


@pytest.mark.parametrize(
    ("after", "said"),
    [
        ([], "device A1 went away in the middle of a command; look at the cable"),
        (["A1 offline"], "device A1 became offline in the middle of a command; unplug it"),
        (["A1 device"], "device A1 ended the connection: closed; try again"),
    ],
)
def test_a_shell_that_breaks_off(tmp_path: Path, after: Sequence[str], said: str) -> None:
    rules = [
        listing("A1 device", once=True),
        listing(*after),
        Rule(" shell ", "half\n", "error: closed\n", 255),
    ]
    device = adb(tmp_path, *rules).device("A1")
    with pytest.raises(As2dError) as caught:
        device.shell("true")
    assert str(caught.value).startswith(said)


def test_a_copy_that_fails(tmp_path: Path) -> None:
    rules = [
        listing("A1 device"),
        Rule(" push ", err="adb: error: failed to copy 'f' to '/x': remote dir\n", status=1),
    ]
    file = tmp_path / "f"
    file.write_bytes(b"x")
    with pytest.raises(As2dError, match=r"cannot copy f to /x: failed to copy.*remote dir"):
        adb(tmp_path, *rules).device("A1").push(file, "/x")


def test_a_device_that_hangs_is_given_up(tmp_path: Path) -> None:
    rules = [listing("A1 device"), Rule(" shell ", "half\n", sleep=60)]
    device = adb(tmp_path, *rules).device("A1")
    with pytest.raises(As2dError, match="device A1 did not finish within 1 s"):
        device.shell("true", seconds=1)


def test_adb_that_hangs_is_given_up(tmp_path: Path) -> None:
    with pytest.raises(As2dError, match=r"adb does not answer within 1 s; .*kill-server"):
        adb(tmp_path, listing(sleep=60)).call("devices", "-l", seconds=1)
