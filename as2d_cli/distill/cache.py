"""What the models say of every window, on disk: collected once, trained on many times."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from as2d_cli.errors import As2dError, ExitStatus

__all__ = ["Cache", "Entry"]

Half = npt.NDArray[np.float16]

_FILES = ("encodings.f16", "hints.f16")


@dataclass(frozen=True)
class Entry:
    """One window.

    Attributes:
        name: of its recording, and which window of it.
        held_out: never trained on.
        seconds: of audio.
        tokens: what the target says, its own ids.
        line, lines: where its encoder output begins, and how much there is.
        position, positions: the same of what the initial drafter's encoder says.
    """

    name: str
    held_out: bool
    seconds: float
    tokens: tuple[int, ...]
    line: int
    lines: int
    position: int
    positions: int


class Cache:
    """Windows that are there already, and a place for more.

    Three files in ``folder``: ``encodings.f16`` [lines, encoding width], ``hints.f16`` [positions,
    width] and ``windows.jsonl``, which is written last: what was cut off when a run was interrupted
    is not a whole line of it, and is overwritten.
    """

    def __init__(
        self, folder: Path, encoding_width: int, width: int, facts: Mapping[str, Any]
    ) -> None:
        """Open, or begin, the cache in ``folder``.

        Args:
            facts: what else decides what is in it, as JSON has it.

        Raises:
            As2dError: the folder holds a cache of other facts, or a damaged one.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._widths = (encoding_width, width)
        self._check({"encoding_width": encoding_width, "width": width, **facts})
        self.entries: list[Entry] = self._read_index()
        self._names = {entry.name for entry in self.entries}
        for file, wanted, of in zip(_FILES, self._ends(), self._widths, strict=True):
            path = folder / file
            if wanted and (not path.exists() or path.stat().st_size < 2 * wanted * of):
                raise _damaged(path, "is shorter than the index says")

    def __contains__(self, name: str) -> bool:
        return name in self._names

    @property
    def seconds(self) -> float:
        """Audio to train on."""
        return sum(entry.seconds for entry in self.entries if not entry.held_out)

    @property
    def bytes(self) -> int:
        """Size on disk of what the encoders say."""
        lines, positions = self._ends()
        return 2 * (lines * self._widths[0] + positions * self._widths[1])

    def add(
        self,
        name: str,
        held_out: bool,
        seconds: float,
        tokens: Sequence[int],
        encoding: Half,
        hints: Half,
    ) -> None:
        """Put a window in: ``encoding`` [lines, encoding width], ``hints`` [positions, width]."""
        line, position = self._ends()
        for file, start, values, width in zip(
            _FILES, (line, position), (encoding, hints), self._widths, strict=True
        ):
            path = self._folder / file
            with path.open("r+b" if path.exists() else "w+b") as stream:
                stream.seek(2 * start * width)
                stream.truncate()
                stream.write(np.ascontiguousarray(values, dtype="<f2").tobytes())
        entry = Entry(
            name, held_out, seconds, tuple(tokens), line, len(encoding), position, len(hints)
        )
        with self._index.open("a", encoding="utf-8") as index:
            index.write(json.dumps(asdict(entry)) + "\n")
        self.entries.append(entry)
        self._names.add(name)

    def encoding(self, entry: Entry) -> Half:
        """[lines, encoding width] of a window."""
        return self._read(_FILES[0], entry.line, entry.lines, self._widths[0])

    def hints(self, entry: Entry) -> Half:
        """[positions, width] of a window."""
        return self._read(_FILES[1], entry.position, entry.positions, self._widths[1])

    @property
    def _index(self) -> Path:
        return self._folder / "windows.jsonl"

    def _check(self, facts: Mapping[str, Any]) -> None:
        path = self._folder / "cache.json"
        if not path.exists():
            temporary = path.with_suffix(".new")
            temporary.write_text(json.dumps(facts) + "\n", encoding="utf-8")
            temporary.replace(path)
            return
        try:
            found = dict(json.loads(path.read_text("utf-8")))
        except (ValueError, TypeError):
            raise _damaged(path, "is no JSON object") from None
        others = [key for key in {**found, **facts} if found.get(key) != facts.get(key)]
        if others:
            raise As2dError(
                f"{self._folder}: was collected with another {others[0].replace('_', ' ')}",
                remedy="name another --work folder",
                status=ExitStatus.USAGE,
            )

    def _read_index(self) -> list[Entry]:
        path = self._index
        raw = path.read_bytes() if path.exists() else b""
        whole = raw.rfind(b"\n") + 1
        if whole < len(raw):
            with path.open("r+b") as stream:
                stream.truncate(whole)
        entries = []
        for number, line in enumerate(raw[:whole].splitlines(), 1):
            try:
                entries.append(_entry(line))
            except (ValueError, TypeError, KeyError):
                raise _damaged(path, f"line {number} is none of a window") from None
        return entries

    def _read(self, file: str, start: int, count: int, width: int) -> Half:
        path = self._folder / file
        values = np.fromfile(path, dtype="<f2", count=count * width, offset=2 * start * width)
        return values.reshape(count, width)

    def _ends(self) -> tuple[int, int]:
        if not self.entries:
            return 0, 0
        last = self.entries[-1]
        return last.line + last.lines, last.position + last.positions


def _damaged(path: Path, problem: str) -> As2dError:
    return As2dError(f"{path}: {problem}", remedy=f"remove {path.parent} to collect anew")


def _entry(line: bytes) -> Entry:
    fields: dict[str, Any] = json.loads(line)
    return Entry(**{**fields, "tokens": tuple(fields["tokens"])})
