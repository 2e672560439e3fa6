"""Names of results, and files that are whole or not there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from as2d_cli.errors import As2dError, ExitStatus
from as2d_cli.output.folder import FolderSink, result_names
from as2d_cli.output.formats import Format, renderer
from as2d_cli.tasks.transcript import Segment, SourceInfo, Transcript


def _names(*inputs: str) -> list[str]:
    return [str(name) for name in result_names([Path(i) for i in inputs])]


def test_names() -> None:
    assert _names("a.wav", "b/a.wav", "x.tar.gz", "noext", ".wav", "-") == [
        "a",
        "b/a",
        "x.tar",
        "noext",
        ".wav",
        "-",
    ]


def test_two_inputs_of_one_stem_keep_their_suffixes() -> None:
    assert _names("talk.wav", "talk.mp4", "other.wav") == ["talk.wav", "talk.mp4", "other"]


def test_two_inputs_of_one_name_are_refused() -> None:
    with pytest.raises(As2dError, match=r"2 inputs are called a\.wav") as e:
        _names("a.wav", "a.wav")
    assert e.value.status == ExitStatus.USAGE


def _info(number: int) -> SourceInfo:
    return SourceInfo("x", None, "t", None, "target", 1, number)


def _sink(folder: Path, *names: str, force: bool = False) -> FolderSink:
    formats = [Format.TXT, Format.SRT]
    return FolderSink(folder, [Path(n) for n in names], formats, renderer, force=force)


def _say(sink: FolderSink, number: int, text: str) -> None:
    sink.begin(_info(number))
    sink.commit(text)
    sink.segment(Segment(0, 1, text, ()))
    sink.end(Transcript(_info(number)))


def test_files_appear_when_the_input_is_complete(tmp_path: Path) -> None:
    sink = _sink(tmp_path / "new", "a", "sub/b")
    _say(sink, 0, "hello")
    sink.begin(_info(1))
    sink.commit("half")
    visible = [p for p in (tmp_path / "new").rglob("*") if p.is_file() and p.name[0] != "."]
    assert sorted(p.name for p in visible) == ["a.srt", "a.txt"]
    sink.abandon()
    assert list((tmp_path / "new" / "sub").iterdir()) == []
    assert (tmp_path / "new" / "a.txt").read_text() == "hello\n"


def test_inputs_whose_results_exist_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.srt").write_text("mine")
    sink = _sink(tmp_path, "a", "b")
    assert sink.leave_out_done() == [tmp_path / "a.srt", None]
    _say(sink, 0, "of b")
    assert (tmp_path / "b.txt").read_text() == "of b\n"
    assert (tmp_path / "a.srt").read_text() == "mine"
    assert _sink(tmp_path, "a", force=True).leave_out_done() == [None]


def test_a_name_as_long_as_can_be(tmp_path: Path) -> None:
    sink = _sink(tmp_path, "\u0101" * 127)  # 254 bytes
    _say(sink, 0, "hello")
    assert sorted(len(os.fsencode(p.name)) for p in tmp_path.iterdir()) == [254, 254]


def test_an_unwritable_place_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    sink = _sink(tmp_path / "file", "a")
    with pytest.raises(As2dError, match=r"cannot write --output .*/file/a\.txt: "):
        sink.begin(_info(0))


def test_a_file_that_cannot_be_named_leaves_nothing(tmp_path: Path) -> None:
    sink = _sink(tmp_path, "a")
    sink.begin(_info(0))
    (tmp_path / "a.txt").mkdir()
    with pytest.raises(As2dError, match="cannot write --output"):
        sink.end(Transcript(_info(0)))
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]
