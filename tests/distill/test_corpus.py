"""Folders of recordings: what is found, what is held out, how windows are made."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from as2d_cli.audio.windows import RATE, WINDOW
from as2d_cli.distill.corpus import Recording, Speech, find_recordings, portions, speech
from as2d_cli.errors import As2dError, ExitStatus
from tests.fakes import write_wav

FULL = 32768
"""What a 16-bit sample is divided by."""


def fill(folder: Path, groups: int, files: int) -> Path:
    """Empty files, which is enough to be found."""
    for group in range(groups):
        (folder / f"g{group}").mkdir(parents=True)
        for file in range(files):
            (folder / f"g{group}" / f"{file}.wav").touch()
    return folder


def level_file(path: Path, level: int, seconds: float) -> Recording:
    """A recording that is one number all along, and so known again wherever it goes."""
    write_wav(path, np.full(round(seconds * RATE), level / 32767))
    return Recording(path, path.name, "group", held_out=False)


def count_of(windows: Sequence[Speech], level: int) -> int:
    """Samples of the recording of that level."""
    return sum(int(np.sum(w.samples * FULL == level)) for w in windows)


def facts(recordings: Sequence[Recording]) -> list[tuple[str, str, bool]]:
    return [(r.name, r.group, r.held_out) for r in recordings]


def silent(_: str) -> None:
    raise AssertionError("nothing to warn of")


def test_names_and_groups_begin_with_the_folder(tmp_path: Path) -> None:
    folder = fill(tmp_path / "talks", 2, 1)
    (folder / "top.FLAC").touch()
    (folder / "g0" / "notes.txt").touch()
    (folder / "g1" / "folder.wav").mkdir()
    found = {r.name: (r.group, r.path) for r in find_recordings([folder], [], 0)}
    assert found == {
        "talks/g0/0.wav": ("talks/g0", folder / "g0" / "0.wav"),
        "talks/g1/0.wav": ("talks/g1", folder / "g1" / "0.wav"),
        "talks/top.FLAC": ("talks", folder / "top.FLAC"),
    }


def test_a_folder_named_by_a_dot_has_its_real_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(fill(tmp_path / "talks", 1, 2))
    assert {r.group for r in find_recordings([Path()], [], 0)} == {"talks/g0"}


def test_order_depends_on_names_and_seed_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = fill(tmp_path / "one" / "talks", 6, 6)
    here = fill(tmp_path / "two" / "talks", 6, 6)
    expected = find_recordings([there], [], 3)
    rglob: Callable[[Path, str], Iterator[Path]] = Path.rglob
    monkeypatch.setattr(Path, "rglob", lambda self, p: reversed(list(rglob(self, p))))
    found = find_recordings([here], [], 3)
    assert facts(found) == facts(expected)
    assert [[r.name for r in p] for p in portions(found, 3)] == [
        [r.name for r in p] for p in portions(expected, 3)
    ]
    names = [r.name for r in expected]
    assert names != sorted(names)
    assert [r.name for r in find_recordings([here], [], 4)] != names
    assert sorted(r.name for r in find_recordings([here], [], 4)) == sorted(names)


@pytest.mark.parametrize("seed", range(5))
def test_groups_are_held_out_whole(tmp_path: Path, seed: int) -> None:
    found = find_recordings([fill(tmp_path / "talks", 40, 3)], [], seed)
    held = {r.group for r in found if r.held_out}
    assert len(held) == 2  # a twentieth
    assert not held & {r.group for r in found if not r.held_out}


def test_other_seeds_hold_out_other_groups(tmp_path: Path) -> None:
    folder = fill(tmp_path / "talks", 40, 1)
    chosen = {
        frozenset(r.group for r in find_recordings([folder], [], seed) if r.held_out)
        for seed in range(5)
    }
    assert len(chosen) > 1


def test_of_few_groups_the_smallest_is_held_out(tmp_path: Path) -> None:
    folder = fill(tmp_path / "talks", 3, 20)
    (folder / "g1" / "19.wav").unlink()
    for seed in range(5):
        found = find_recordings([folder], [], seed)
        assert {r.group for r in found if r.held_out} == {"talks/g1"}


def test_a_group_of_half_of_all_is_trained_on(tmp_path: Path) -> None:
    folder = fill(tmp_path / "talks", 20, 1)
    for file in range(1, 20):
        (folder / "g7" / f"{file}.wav").touch()
    for seed in range(30):
        held = {r.group for r in find_recordings([folder], [], seed) if r.held_out}
        assert len(held) == 2
        assert "talks/g7" not in held


@pytest.mark.parametrize(("files", "held"), [(2, 1), (29, 1), (60, 3)])
def test_of_one_group_some_recordings_are_held_out(tmp_path: Path, files: int, held: int) -> None:
    found = find_recordings([fill(tmp_path / "talks", 1, files)], [], 0)
    assert len(found) == files
    assert sum(r.held_out for r in found) == held


def test_folders_of_one_group_each_are_groups(tmp_path: Path) -> None:
    folders = [fill(tmp_path / name, 1, 2) / "g0" for name in ("a", "b")]
    folders[1] = folders[1].rename(tmp_path / "other")
    held = [r.group for r in find_recordings(folders, [], 0) if r.held_out]
    assert len(held) == 2
    assert len(set(held)) == 1


def test_named_folders_are_held_out_and_nothing_else(tmp_path: Path) -> None:
    train, judge = fill(tmp_path / "train", 20, 2), fill(tmp_path / "judge", 2, 3)
    found = find_recordings([train], [judge], 0)
    assert len(found) == 46
    assert {r.name for r in found if r.held_out} == {
        f"judge/g{g}/{f}.wav" for g in range(2) for f in range(3)
    }
    # In one order, so that any beginning has some of both.
    assert {r.held_out for r in found[:20]} == {True, False}


def test_a_held_out_folder_within_another_is_not_trained_on(tmp_path: Path) -> None:
    folder = fill(tmp_path / "talks", 4, 3)
    found = find_recordings([folder], [folder / "g2"], 0)
    assert len(found) == 12
    assert {r.path.parent.name for r in found if r.held_out} == {"g2"}
    assert {r.path.parent.name for r in found if not r.held_out} == {"g0", "g1", "g3"}


def test_a_folder_given_twice_counts_once(tmp_path: Path) -> None:
    folder = fill(tmp_path / "talks", 4, 3)
    assert len(find_recordings([folder, folder / "g1", folder], [], 0)) == 12


def test_links_to_one_file_count_once_under_the_first_name(tmp_path: Path) -> None:
    folder = fill(tmp_path / "talks", 2, 2)
    (folder / "g0" / "z.wav").symlink_to(folder / "g0" / "0.wav")
    (folder / "round").symlink_to(folder / "g1")
    (folder / "g1" / "broken.wav").symlink_to(folder / "nowhere.wav")
    names = {r.name for r in find_recordings([folder], [], 0)}
    assert names == {f"talks/g{g}/{f}.wav" for g in range(2) for f in range(2)}


def test_names_that_are_no_utf8(tmp_path: Path) -> None:
    folder = fill(tmp_path / "talks", 1, 3)
    odd = os.fsdecode(b"\xff\n.wav")
    write_wav(folder / "g0" / odd, np.full(RATE, 0.1))
    found = find_recordings([folder], [], 0)
    recording = next(r for r in found if r.name == f"talks/g0/{odd}")
    (window,) = speech([recording], 0, silent)
    assert window.name.startswith(f"talks/g0/{odd}#0")


@pytest.mark.parametrize(
    ("folders", "held_out", "message"),
    [
        (["empty"], [], "empty: holds no audio files; name another folder"),
        (["missing"], [], "missing: is no folder; name folders of audio"),
        (["a/x"], ["empty"], "empty: holds no audio files; name another folder"),
        (
            ["single"],
            [],
            "single: one recording is not enough to train on and to judge by; "
            "add more, or name some with --held-out",
        ),
        (
            ["a/x"],
            ["a"],
            "a/x: --held-out names all that is in it; leave some to train on",
        ),
        (
            ["a/x", "b/x"],
            [],
            "b/x/g0/0.wav and a/x/g0/0.wav: have one name, x/g0/0.wav; give the folder above both",
        ),
    ],
)
def test_refusals(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    folders: list[str],
    held_out: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        fill(Path(name, "x"), 1, 1)
    fill(Path("single"), 1, 1)
    Path("empty").mkdir()
    with pytest.raises(As2dError) as caught:
        find_recordings([Path(f) for f in folders], [Path(f) for f in held_out], 0)
    assert str(caught.value) == message
    assert caught.value.status == ExitStatus.USAGE


def test_one_recording_and_one_to_judge_by_are_enough(tmp_path: Path) -> None:
    found = find_recordings([fill(tmp_path / "a", 1, 1)], [fill(tmp_path / "b", 1, 1)], 0)
    assert {r.name: r.held_out for r in found} == {"a/g0/0.wav": False, "b/g0/0.wav": True}


def test_portions_are_few_recordings_of_one_group(tmp_path: Path) -> None:
    train, judge = fill(tmp_path / "train", 3, 19), fill(tmp_path / "judge", 1, 2)
    found = find_recordings([train], [judge], 0)
    cut = portions(found, 0)
    assert sorted(r.name for p in cut for r in p) == sorted(r.name for r in found)
    assert sorted(map(len, cut)) == [2, 3, 3, 3, 8, 8, 8, 8, 8, 8]
    assert all(len({(r.group, r.held_out) for r in p}) == 1 for p in cut)
    # Groups take turns: any beginning is a fair sample.
    assert [p[0].group for p in cut] != sorted(p[0].group for p in cut)
    assert [p[0].name for p in portions(found, 1)] != [p[0].name for p in cut]


@pytest.fixture
def shorts(tmp_path: Path) -> list[Recording]:
    """Forty recordings of 2 s to 9.8 s, known by their levels."""
    return [level_file(tmp_path / f"{n}.wav", 1000 + n, 2 + n / 5) for n in range(40)]


def test_short_recordings_are_joined_and_nothing_is_lost(shorts: list[Recording]) -> None:
    windows = list(speech(shorts, 0, silent))
    for n in range(40):
        assert count_of(windows, 1000 + n) == round((2 + n / 5) * RATE)
    joined = [w for w in windows if w.name.endswith("+")]
    single = [w for w in windows if not w.name.endswith("+")]
    assert joined and single
    assert len(windows) == len({w.name for w in windows}) < 30
    assert max(len(w.samples) for w in windows) <= 28 * RATE + RATE < WINDOW
    assert all(w.samples.dtype == np.float32 and not w.held_out for w in windows)
    for window in single:
        assert len(np.unique(window.samples)) == 1
    # The one that comes first gives its name.
    for window in joined:
        recording = shorts[round(float(window.samples[0]) * FULL) - 1000]
        assert window.name == f"{recording.name}#0+"


def test_pauses_lie_between_what_is_joined(shorts: list[Recording]) -> None:
    pauses = []
    for window in speech(shorts, 0, silent):
        changes = np.flatnonzero(np.diff(window.samples)) + 1
        for piece in np.split(window.samples, changes):
            if piece[0] == 0:
                pauses.append(len(piece))
        assert window.samples[0] != 0
    assert len(set(pauses)) > 5
    assert 0.2 * RATE <= min(pauses) < max(pauses) < 0.9 * RATE


def test_joining_depends_on_names_and_seed_alone(shorts: list[Recording]) -> None:
    def lengths(seed: int) -> list[tuple[str, int]]:
        return [(w.name, len(w.samples)) for w in speech(shorts, seed, silent)]

    assert lengths(0) == lengths(0)
    assert lengths(0) != lengths(1)


def test_held_out_recordings_stay_as_they_are(shorts: list[Recording]) -> None:
    held = [Recording(r.path, r.name, r.group, held_out=True) for r in shorts]
    windows = list(speech(held, 0, silent))
    assert [w.name for w in windows] == [f"{r.name}#0" for r in held]
    assert [len(w.samples) for w in windows] == [round((2 + n / 5) * RATE) for n in range(40)]
    assert all(w.held_out for w in windows)


def test_long_recordings_are_cut_as_for_transcription(tmp_path: Path) -> None:
    windows = list(speech([level_file(tmp_path / "long.wav", 900, 70)], 0, silent))
    assert [w.name for w in windows] == ["long.wav#0", "long.wav#1", "long.wav#2+"]
    assert max(len(w.samples) for w in windows) <= WINDOW
    assert count_of(windows, 900) == 70 * RATE


def test_recordings_of_more_than_twelve_seconds_stay_alone(tmp_path: Path) -> None:
    recordings = [level_file(tmp_path / f"{n}.wav", 1000 + n, 12.5) for n in range(8)]
    assert [w.name for w in speech(recordings, 0, silent)] == [f"{n}.wav#0" for n in range(8)]


def test_silence_is_left_out(tmp_path: Path) -> None:
    recordings = [level_file(tmp_path / "a.wav", 0, 5), level_file(tmp_path / "b.wav", 900, 0.05)]
    assert list(speech(recordings, 0, silent)) == []


def test_a_broken_file_is_told_of_and_skipped(tmp_path: Path) -> None:
    recordings = [level_file(tmp_path / f"{n}.wav", 1000 + n, 5) for n in range(3)]
    recordings[1].path.write_bytes(b"no sound")
    warnings: list[str] = []
    windows = list(speech(recordings, 0, warnings.append))
    assert warnings == [f"not an audio file: {recordings[1].path}"]
    assert [count_of(windows, 1000 + n) for n in range(3)] == [5 * RATE, 0, 5 * RATE]
