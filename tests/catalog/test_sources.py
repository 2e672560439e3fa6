"""Fetching from a hub and from wheels: good, interrupted, hostile."""

from __future__ import annotations

import sys
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from as2d_cli.catalog.entries import PackageSource, SourceFile
from as2d_cli.catalog.progress import Silent
from as2d_cli.catalog.sources import SourceError, hub, packages
from tests.catalog.conftest import FakeHub
from tests.catalog.material import entry, hub_source, package_source, wheel

CONTENT = bytes(range(256)) * 4000
FILES = {"model.bin": CONTENT, "config.json": b"{}"}
PREFIX = f"/someone/tiny/resolve/{'0' * 40}/"


class Recorder:
    """Remembers the progress it was told of."""

    def __init__(self) -> None:
        self.done: list[tuple[str, int | None, int]] = []

    def start(self, label: str, total_bytes: int | None) -> None:
        self.done.append((label, total_bytes, 0))

    def advance(self, n: int) -> None:
        label, total, done = self.done[-1]
        self.done[-1] = label, total, done + n

    def finish(self) -> None:
        """The last entry stays."""


def serve(fake_hub: FakeHub, files: dict[str, bytes] | None = None) -> None:
    fake_hub.files = {PREFIX + name: body for name, body in (files or FILES).items()}


def from_hub(folder: Path, progress: Recorder | Silent | None = None) -> None:
    hub.fetch(entry(FILES), hub_source(), folder, progress or Silent())


def held(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_hub_files_arrive_with_progress(tmp_path: Path, fake_hub: FakeHub) -> None:
    serve(fake_hub)
    progress = Recorder()
    from_hub(tmp_path, progress)
    assert held(tmp_path) == FILES
    assert progress.done == [("model.bin", len(CONTENT), len(CONTENT)), ("config.json", 2, 2)]


def test_a_broken_connection_is_taken_up(tmp_path: Path, fake_hub: FakeHub) -> None:
    serve(fake_hub)
    fake_hub.break_after = [300_000, 300_000]
    progress = Recorder()
    from_hub(tmp_path, progress)
    assert held(tmp_path) == FILES
    assert progress.done[0] == ("model.bin", len(CONTENT), len(CONTENT))
    assert [wanted for _, wanted in fake_hub.requests if wanted] == [
        "bytes=300000-",
        "bytes=600000-",
    ]


def test_a_part_of_an_earlier_run_is_resumed(tmp_path: Path, fake_hub: FakeHub) -> None:
    serve(fake_hub)
    (tmp_path / "model.bin.part").write_bytes(CONTENT[:1000])
    from_hub(tmp_path)
    assert held(tmp_path) == FILES
    assert fake_hub.requests[0] == (PREFIX + "model.bin", "bytes=1000-")


@pytest.mark.parametrize("part", [CONTENT[:1000], CONTENT + b"more"])
def test_a_server_without_ranges_starts_again(
    tmp_path: Path, fake_hub: FakeHub, part: bytes
) -> None:
    serve(fake_hub)
    fake_hub.ranges = False
    (tmp_path / "model.bin.part").write_bytes(part)
    from_hub(tmp_path)
    assert held(tmp_path) == FILES


def test_a_part_of_something_else_is_thrown_away(tmp_path: Path, fake_hub: FakeHub) -> None:
    serve(fake_hub)
    (tmp_path / "model.bin.part").write_bytes(b"x" * 1000)
    with pytest.raises(SourceError, match="SHA-256"):
        from_hub(tmp_path)
    assert not held(tmp_path)
    from_hub(tmp_path)
    assert held(tmp_path) == FILES


def test_a_connection_that_keeps_breaking(tmp_path: Path, fake_hub: FakeHub) -> None:
    serve(fake_hub)
    fake_hub.break_after = [1000] * 3
    with pytest.raises(SourceError, match=r"broke off in model\.bin"):
        from_hub(tmp_path)
    assert held(tmp_path) == {"model.bin.part": CONTENT[:3000]}


@pytest.mark.parametrize(
    ("served", "said"),
    [
        ({"config.json": b"{}"}, r"answers 404 for model\.bin"),
        ({**FILES, "model.bin": CONTENT + b"x"}, r"model\.bin is larger than declared"),
        ({**FILES, "model.bin": b"y" + CONTENT[1:]}, "SHA-256"),
    ],
)
def test_wrong_files_never_get_their_name(
    tmp_path: Path, fake_hub: FakeHub, served: dict[str, bytes], said: str
) -> None:
    serve(fake_hub, served)
    with pytest.raises(SourceError, match=said):
        from_hub(tmp_path)
    assert "model.bin" not in held(tmp_path)


def test_files_of_unknown_digest_are_taken(tmp_path: Path, fake_hub: FakeHub) -> None:
    serve(fake_hub)
    unknown = replace(entry(FILES), files=(SourceFile("model.bin"),))
    hub.fetch(unknown, hub_source(), tmp_path, Silent())
    assert held(tmp_path) == {"model.bin": CONTENT}


@pytest.mark.usefixtures("no_hub")
def test_a_refused_connection_fails_at_once(tmp_path: Path) -> None:
    start = time.monotonic()
    with pytest.raises(SourceError, match="cannot be reached"):
        from_hub(tmp_path)
    assert time.monotonic() - start < 3


def test_complete_files_are_not_asked_for(tmp_path: Path, fake_hub: FakeHub) -> None:
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    from_hub(tmp_path)
    assert not fake_hub.requests


def test_parts_in_wheels_are_put_together(tmp_path: Path, wheels: Path) -> None:
    source = package_source(FILES, wheels)
    folder = tmp_path / "got"
    folder.mkdir()
    packages.fetch(entry(FILES), source, folder, Silent())
    assert held(folder) == FILES


def test_a_package_that_pip_does_not_find(tmp_path: Path, wheels: Path) -> None:
    source = PackageSource(("nowhere==1.0",), {"model.bin": ("x",)})
    with pytest.raises(SourceError, match=r"pip cannot get nowhere==1\.0: No matching"):
        packages.fetch(entry(FILES), source, tmp_path, Silent())
    assert set(held_names(tmp_path)) == {"wheels"}


def held_names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def test_without_pip_the_remedy_is_named(
    tmp_path: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = tmp_path / "python"
    # -S and -I: no site-packages, so no pip.
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S -I "$@"\n')
    bare.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(bare))
    with pytest.raises(SourceError, match=r"no pip .*ensurepip"):
        packages.fetch(entry(FILES), package_source(FILES, wheels), tmp_path, Silent())


@pytest.mark.parametrize(
    "name", ["../escape", "/absolute", "data/../../escape", "..\\escape", "C:\\escape"]
)
def test_wheels_that_reach_out_are_refused(tmp_path: Path, wheels: Path, name: str) -> None:
    wheel(wheels, "part0", {"part0/model.bin": CONTENT, name: b"evil"})
    source = PackageSource(("part0==1.0",), {"model.bin": ("part0/model.bin",)})
    only = replace(entry(FILES), files=entry(FILES).files[:1])
    folder = tmp_path / "got"
    folder.mkdir()
    # pip does not unpack what it downloads; whichever of the two refuses, nothing is written.
    with pytest.raises(SourceError):
        packages.fetch(only, source, folder, Silent())
    assert not held_names(folder)


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"part0/model.bin": CONTENT + b"x"}, "larger than declared"),
        ({"part0/model.bin": CONTENT[:-1]}, "bytes instead of"),
        ({"part0/model.bin": b"y" + CONTENT[1:]}, "SHA-256"),
        ({"part0/other": b""}, r"no fetched package holds part0/model\.bin"),
    ],
)
def test_wheels_with_other_content(
    tmp_path: Path, wheels: Path, members: dict[str, bytes], said: str
) -> None:
    wheel(wheels, "part0", members)
    source = PackageSource(("part0==1.0",), {"model.bin": ("part0/model.bin",)})
    only = replace(entry(FILES), files=entry(FILES).files[:1])
    folder = tmp_path / "got"
    folder.mkdir()
    with pytest.raises(SourceError, match=said):
        packages.fetch(only, source, folder, Silent())
    assert not held_names(folder)


def test_a_member_that_lies_about_its_size(tmp_path: Path, wheels: Path) -> None:
    path = wheel(wheels, "part0", {"part0/model.bin": CONTENT})
    with zipfile.ZipFile(path) as archive:
        size = archive.getinfo("part0/model.bin").file_size
    raw = path.read_bytes()
    lie = (size - 1).to_bytes(4, "little")
    path.write_bytes(raw.replace(size.to_bytes(4, "little"), lie))
    source = PackageSource(("part0==1.0",), {"model.bin": ("part0/model.bin",)})
    only = replace(entry(FILES), files=entry(FILES).files[:1])
    folder = tmp_path / "got"
    folder.mkdir()
    with pytest.raises(SourceError):
        packages.fetch(only, source, folder, Silent())
    assert not held_names(folder)


def test_source_distributions_are_never_built(tmp_path: Path, wheels: Path) -> None:
    trap = tmp_path / "ran"
    setup = f"open({str(trap)!r}, 'w')\nfrom setuptools import setup\nsetup(name='part0')\n"
    with zipfile.ZipFile(wheels / "part0-1.0.zip", "w") as archive:
        archive.writestr("part0-1.0/setup.py", setup)
    source = PackageSource(("part0==1.0",), {"model.bin": ("x",)})
    with pytest.raises(SourceError):
        packages.fetch(entry(FILES), source, tmp_path, Silent())
    assert not trap.exists()
