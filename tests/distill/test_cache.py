"""What the models say of every window, on disk."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from as2d_cli.catalog.graphs.head import POOL
from as2d_cli.distill.cache import Cache
from as2d_cli.errors import As2dError, ExitStatus

Array = npt.NDArray[Any]

FACTS = {"target": "whisper-base", "held_out": ["talks"]}
LINES = (8, 4, 12)


def opened(folder: Path, **more: Any) -> Cache:
    return Cache(folder, 6, 3, FACTS | more)


def said(window: int) -> tuple[Array, Array]:
    random = np.random.default_rng(window)
    lines = LINES[window]
    return (
        random.standard_normal((lines, 6)).astype(np.float16),
        random.standard_normal((lines // POOL, 3)).astype(np.float16),
    )


def put(cache: Cache, window: int) -> None:
    cache.add(f"{window}.wav#0", window == 1, 1.5 * (window + 1), [7, window], *said(window))


def check(cache: Cache, windows: int) -> None:
    assert [e.name for e in cache.entries] == [f"{n}.wav#0" for n in range(windows)]
    for window, entry in enumerate(cache.entries):
        encoding, hints = said(window)
        np.testing.assert_array_equal(cache.encoding(entry), encoding)
        np.testing.assert_array_equal(cache.hints(entry), hints)
        assert (entry.lines, entry.positions) == (len(encoding), len(hints))
        assert (entry.tokens, entry.held_out) == ((7, window), window == 1)
        assert entry.seconds == 1.5 * (window + 1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A cache of three windows."""
    cache = opened(tmp_path / "work" / "cache")
    for window in range(3):
        put(cache, window)
    return tmp_path / "work" / "cache"


def test_what_was_put_in_comes_out(folder: Path) -> None:
    cache = opened(folder)
    check(cache, 3)
    assert "1.wav#0" in cache
    assert "3.wav#0" not in cache
    assert cache.seconds == 1.5 + 4.5  # without the one held out
    assert cache.bytes == sum((folder / f).stat().st_size for f in ("encodings.f16", "hints.f16"))
    assert cache.bytes == 2 * (24 * 6 + 12 * 3)


def test_an_empty_one(tmp_path: Path) -> None:
    cache = opened(tmp_path)
    assert (cache.entries, cache.seconds, cache.bytes) == ([], 0, 0)
    assert opened(tmp_path).entries == []


def test_a_window_just_put_in_is_there(tmp_path: Path) -> None:
    cache = opened(tmp_path)
    for window in range(3):
        put(cache, window)
        check(cache, window + 1)
        assert f"{window}.wav#0" in cache


def test_it_goes_on_where_it_was(tmp_path: Path) -> None:
    for window in range(3):
        put(opened(tmp_path), window)
    check(opened(tmp_path), 3)


def test_what_was_cut_off_is_overwritten(tmp_path: Path) -> None:
    put(opened(tmp_path), 0)
    # Interrupted in the midst of the second window, longer than the one that comes now.
    for file in ("encodings.f16", "hints.f16"):
        with (tmp_path / file).open("ab") as stream:
            stream.write(b"\x55" * 999)
    cache = opened(tmp_path)
    check(cache, 1)
    put(cache, 1)
    put(cache, 2)
    check(opened(tmp_path), 3)
    assert cache.bytes == sum((tmp_path / f).stat().st_size for f in ("encodings.f16", "hints.f16"))


def test_half_an_index_line_is_overwritten(folder: Path) -> None:
    index = folder / "windows.jsonl"
    index.write_bytes(index.read_bytes()[:-20])
    cache = opened(folder)
    check(cache, 2)
    put(cache, 2)
    check(opened(folder), 3)


def test_names_that_are_no_utf8(tmp_path: Path) -> None:
    name = os.fsdecode(b"\xff\n\xe2\x80\xa8.wav#0")
    opened(tmp_path).add(name, False, 1.0, [1], *said(0))
    cache = opened(tmp_path)
    assert name in cache
    assert cache.entries[0].name == name


@pytest.mark.parametrize(
    ("widths", "more", "what"),
    [
        ((5, 3), {}, "encoding width"),
        ((6, 4), {}, "width"),
        ((6, 3), {"target": "whisper-small"}, "target"),
        ((6, 3), {"held_out": []}, "held out"),
        ((6, 3), {"vary": True}, "vary"),
    ],
)
def test_one_of_other_facts_is_refused(
    folder: Path, widths: tuple[int, int], more: dict[str, Any], what: str
) -> None:
    with pytest.raises(As2dError) as caught:
        Cache(folder, *widths, FACTS | more)
    assert str(caught.value) == (
        f"{folder}: was collected with another {what}; name another --work folder"
    )
    assert caught.value.status == ExitStatus.USAGE
    check(opened(folder), 3)


@pytest.mark.parametrize(
    "line", ["", "{", "[]", "7", '{"name": "a"}', '{"name": 1, "other": 2, "tokens": []}', "\0"]
)
def test_a_damaged_index_is_told_of(folder: Path, line: str) -> None:
    index = folder / "windows.jsonl"
    lines = index.read_text().splitlines()
    index.write_text("\n".join([lines[0], line, lines[2]]) + "\n")
    with pytest.raises(As2dError) as caught:
        opened(folder)
    assert str(caught.value) == (
        f"{index}: line 2 is none of a window; remove {folder} to collect anew"
    )


@pytest.mark.parametrize("content", ["", "{", "7", "[1]"])
def test_damaged_facts_are_told_of(folder: Path, content: str) -> None:
    (folder / "cache.json").write_text(content)
    with pytest.raises(As2dError) as caught:
        opened(folder)
    assert str(caught.value) == (
        f"{folder / 'cache.json'}: is no JSON object; remove {folder} to collect anew"
    )


@pytest.mark.parametrize("file", ["encodings.f16", "hints.f16"])
@pytest.mark.parametrize("there", [True, False])
def test_too_short_a_file_is_told_of(folder: Path, file: str, there: bool) -> None:
    path = folder / file
    content = path.read_bytes()
    path.unlink()
    if there:
        path.write_bytes(content[:-1])
    with pytest.raises(As2dError) as caught:
        opened(folder)
    assert str(caught.value) == (
        f"{path}: is shorter than the index says; remove {folder} to collect anew"
    )


def test_facts_are_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            opened(tmp_path)
    opened(tmp_path)
    assert json.loads((tmp_path / "cache.json").read_text()) == {
        "encoding_width": 6,
        "width": 3,
        **FACTS,
    }
