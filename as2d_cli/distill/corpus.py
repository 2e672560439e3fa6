"""Folders of recordings -> windows to train on and windows to judge by."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from as2d_cli.audio.decode import AudioFile
from as2d_cli.audio.downmix import Samples
from as2d_cli.audio.windows import RATE, AudioWindow, is_silent, windows
from as2d_cli.distill.chance import chance_of, rank
from as2d_cli.errors import As2dError, ExitStatus

__all__ = ["Recording", "Speech", "find_recordings", "portions", "speech"]

SUFFIXES = frozenset(
    f".{kind}"
    for kind in (
        "aac aif aiff amr au flac m4a mka mp3 mp4 oga ogg opus sph wav webm wma".split()  # noqa: SIM905
    )
)

HELD_OUT = 0.05
"""Share of the recordings that are never trained on, where none are named."""


_PORTION = 8
"""Recordings that may be joined."""

_SHORT = 12 * RATE
_SINGLE = 0.25
_JOINED = (14.0, 28.0)  # seconds
_PAUSE = (0.2, 0.9)  # seconds


@dataclass(frozen=True)
class Speech:
    """Float32 [n] at 16 kHz, at most a window, with a name that is the same in every run."""

    name: str
    held_out: bool
    samples: Samples


@dataclass(frozen=True)
class Recording:
    """One file of audio.

    Attributes:
        name: the folder it was found in and the path below it, the same on every machine.
        group: the folder it lies in, by name: recordings of one are trained on or held out
            together, as they may share a speaker.
        held_out: never trained on.
    """

    path: Path
    name: str
    group: str
    held_out: bool


def find_recordings(
    folders: Sequence[Path], held_out: Sequence[Path], seed: int
) -> list[Recording]:
    """All recordings below the folders, in an order that depends on their names and ``seed``.

    Any beginning of that order is a fair sample. Without ``held_out`` folders, whole groups are
    held out until there are enough.

    Raises:
        As2dError: status USAGE; a folder is missing or holds no audio, or two have the same name.
    """
    kept = [r for folder in held_out for r in _below(folder, True)]
    found = [r for folder in folders for r in _below(folder, False)]
    # One folder may lie in another; what is named to judge by is never trained on.
    kept, found = _apart(kept, found)
    if not found:
        raise As2dError(
            f"{folders[0]}: --held-out names all that is in it",
            remedy="leave some to train on",
            status=ExitStatus.USAGE,
        )
    if not kept:
        groups = _groups_to_hold_out(found, seed)
        spared = set() if groups else _names_to_hold_out(found, folders[0], seed)
        found = [replace(r, held_out=r.group in groups or r.name in spared) for r in found]
    return sorted([*found, *kept], key=lambda r: rank(r.name, seed))


def portions(recordings: Sequence[Recording], seed: int) -> list[list[Recording]]:
    """A few recordings of one group each, all of them once, in an order as of recordings."""
    groups: dict[tuple[str, bool], list[Recording]] = {}
    for recording in recordings:
        groups.setdefault((recording.group, recording.held_out), []).append(recording)
    cut = [
        group[i : i + _PORTION] for group in groups.values() for i in range(0, len(group), _PORTION)
    ]
    return sorted(cut, key=lambda portion: rank(portion[0].name, seed))


def speech(
    portion: Sequence[Recording], seed: int, warn: Callable[[str], None]
) -> Iterator[Speech]:
    """The windows of some recordings as transcription would cut them, but for silent ones.

    Most short ones are joined to longer ones, with pauses: an encoder takes as long for a word as
    for half a minute, and people speak longer than that. Held-out ones stay as they are.

    Args:
        warn: called with one line for a file that is no audio.
    """
    held: list[Samples] = []
    name, wanted = "", 0
    for recording in portion:
        random = chance_of(recording.name, seed)
        for window in _windows(recording, warn):
            one = f"{recording.name}#{window.index}"
            count = len(window.samples)
            if recording.held_out or count > _SHORT or random.random() < _SINGLE:
                yield Speech(one, recording.held_out, window.samples)
                continue
            if held and sum(map(len, held)) + count > wanted:
                yield Speech(name, False, np.concatenate(held))
                held = []
            if not held:
                name, wanted = f"{one}+", int(random.uniform(*_JOINED) * RATE)
            pause = np.zeros(int(random.uniform(*_PAUSE) * RATE), dtype=np.float32)
            held += [window.samples, pause]
    if held:
        yield Speech(name, False, np.concatenate(held[:-1]))


def _windows(recording: Recording, warn: Callable[[str], None]) -> Iterator[AudioWindow]:
    try:
        with AudioFile(recording.path) as audio:
            yield from (window for window in windows(audio) if not is_silent(window.samples))
    except As2dError as error:
        warn(str(error))


def _below(folder: Path, held_out: bool) -> list[Recording]:
    if not folder.is_dir():
        raise As2dError(
            f"{folder}: is no folder", remedy="name folders of audio", status=ExitStatus.USAGE
        )
    found = [
        Recording(path, _name(path, folder), _name(path.parent, folder), held_out)
        for path in folder.rglob("*")
        if path.suffix.lower() in SUFFIXES and path.is_file()
    ]
    if not found:
        raise As2dError(
            f"{folder}: holds no audio files", remedy="name another folder", status=ExitStatus.USAGE
        )
    return found


def _apart(kept: list[Recording], found: list[Recording]) -> tuple[list[Recording], ...]:
    """Each file once, in ``kept`` if it is in both."""
    files: dict[Path, Recording] = {}
    names: dict[str, Recording] = {}
    for recording in (*_by_name(kept), *_by_name(found)):
        if files.setdefault(recording.path.resolve(), recording) is not recording:
            continue
        twin = names.setdefault(recording.name, recording)
        if twin is not recording:
            raise As2dError(
                f"{recording.path} and {twin.path}: have one name, {recording.name}",
                remedy="give the folder above both",
                status=ExitStatus.USAGE,
            )
    once = {id(recording) for recording in files.values()}
    return [r for r in kept if id(r) in once], [r for r in found if id(r) in once]


def _by_name(recordings: list[Recording]) -> list[Recording]:
    return sorted(recordings, key=lambda recording: recording.name)


def _name(path: Path, folder: Path) -> str:
    return (Path(folder.resolve().name) / path.relative_to(folder)).as_posix()


def _names_to_hold_out(recordings: Sequence[Recording], folder: Path, seed: int) -> set[str]:
    """About a twentieth of the recordings of one group."""
    if len(recordings) < 2:
        raise As2dError(
            f"{folder}: one recording is not enough to train on and to judge by",
            remedy="add more, or name some with --held-out",
            status=ExitStatus.USAGE,
        )
    last = max(1, round(len(recordings) * HELD_OUT))
    return set(sorted((r.name for r in recordings), key=lambda name: rank(name, seed))[:last])


def _groups_to_hold_out(recordings: Sequence[Recording], seed: int) -> set[str]:
    """Groups of about a twentieth of all recordings; none if there is only one group."""
    sizes: dict[str, int] = {}
    for recording in recordings:
        sizes[recording.group] = sizes.get(recording.group, 0) + 1
    if len(sizes) < 2:
        return set()
    wanted = len(recordings) * HELD_OUT
    chosen: set[str] = set()
    count = 0
    for group in sorted(sizes, key=lambda name: rank(name, seed)):
        # A group of half of all would leave too little.
        if count < wanted and sizes[group] <= max(wanted * 2, 1):
            chosen.add(group)
            count += sizes[group]
    return chosen or {min(sizes, key=lambda name: (sizes[name], name))}
