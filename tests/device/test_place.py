"""Deliveries to an emulated phone."""

from __future__ import annotations

from pathlib import Path

import pytest

from as2d_cli.device.adb import Adb
from as2d_cli.device.place import Parcel, Place
from as2d_cli.errors import As2dError, ExitStatus
from tests.device.material import parcel
from tests.device.phone import TEMPORARY, Phone


class Told:
    """A watch that remembers."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def copying(self, parcel: Parcel, left: int) -> None:
        self.names.append(parcel.name)


@pytest.fixture
def place(phone: Phone, adb: Adb) -> Place:
    made = Place(adb.device(phone.serial), f"{TEMPORARY}/it's here")
    made.make()
    return made


@pytest.fixture
def parcels(tmp_path: Path) -> list[Parcel]:
    for name in ("one", "two"):
        (tmp_path / name).write_bytes(name.encode() * 1000)
    return [parcel("a/one", tmp_path / "one"), parcel("two", tmp_path / "two")]


def test_what_is_there_is_not_copied_again(
    place: Place, phone: Phone, parcels: list[Parcel]
) -> None:
    first, again = Told(), Told()
    sent = place.send(parcels, first)
    assert (sent.copied, sent.there, sent.bytes) == (2, 0, 6000)
    assert first.names == ["a/one", "two"]
    sent = place.send(parcels, again)
    assert (sent.copied, sent.there, again.names) == (0, 2, [])
    folder = phone.path(place.folder)
    assert (folder / "a/one").read_bytes() == b"one" * 1000
    assert sorted(p.name for p in folder.rglob("*") if p.is_file()) == ["one", "two"]


def test_what_has_changed_is_copied_again(
    place: Place, phone: Phone, parcels: list[Parcel]
) -> None:
    place.send(parcels, Told())
    (phone.path(place.folder) / "two").write_bytes(b"twi" * 1000)
    told = Told()
    place.send(parcels, told)
    assert told.names == ["two"]
    assert (phone.path(place.folder) / "two").read_bytes() == b"two" * 1000


def test_a_copy_that_breaks_off_leaves_the_old_file(
    place: Place, phone: Phone, parcels: list[Parcel], tmp_path: Path
) -> None:
    place.send(parcels, Told())
    (tmp_path / "two").write_bytes(bytes(100_000))
    phone.room = 50_000
    with pytest.raises(As2dError, match="No space left"):
        place.send([parcel("two", tmp_path / "two")], Told())
    assert (phone.path(place.folder) / "two").read_bytes() == b"two" * 1000


def test_a_damaged_copy_gets_no_name(place: Place, phone: Phone, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x")
    wrong = Parcel("file", file, 1, "0" * 64)
    with pytest.raises(As2dError, match=r"file came damaged to 127\.0\.0\.1"):
        place.send([wrong], Told())
    assert list(phone.path(place.folder).iterdir()) == []


def test_too_little_room_is_said_before_anything_is_copied(
    place: Place, phone: Phone, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x")
    told = Told()
    with pytest.raises(As2dError, match=r"MB free, and 10000000000 MB are to be copied; make room"):
        place.send([Parcel("file", file, 10**16, "0" * 64)], told)
    assert told.names == []


def test_a_folder_that_cannot_be_written_to_is_named(phone: Phone, adb: Adb) -> None:
    (phone.folder / "file").write_bytes(b"")
    with pytest.raises(As2dError, match=r"cannot write to /data/local/tmp/file/x on 127.*--device"):
        Place(adb.device(phone.serial), f"{TEMPORARY}/file/x").make()


@pytest.mark.parametrize("folder", ["as2d", "/", "//", "/data/..", ""])
def test_no_folder_of_a_device(phone: Phone, adb: Adb, folder: str) -> None:
    with pytest.raises(As2dError, match="is no path of a folder") as caught:
        Place(adb.device(phone.serial), folder)
    assert caught.value.status == ExitStatus.USAGE


def test_cleaning_takes_all_that_was_sent(place: Place, phone: Phone, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x")
    names = ["bundles/a/f", "clips/f", "runner/f", "job-1.txt", "job-2.txt.part"]
    place.send([parcel(name, file) for name in names], Told())
    mine = phone.path(place.folder) / "mine"
    mine.write_bytes(b"")
    place.clean()
    assert [path.name for path in phone.path(place.folder).iterdir()] == ["mine"]
    mine.unlink()
    place.clean()
    assert list(phone.folder.iterdir()) == []
    place.clean()  # nothing is there
