"""What is measured on: a manifest, files, or folders of files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from as2d_cli.errors import As2dError, ExitStatus

__all__ = ["Clip", "load_clips"]


@dataclass(frozen=True)
class Clip:
    """One recording.

    Attributes:
        path: an audio file.
        language: code of the spoken language, or None where nobody said.
        text: what is said in it, or None.
        category: a group to report on, or "".
    """

    path: Path
    language: str | None = None
    text: str | None = None
    category: str = ""


def load_clips(sources: Sequence[Path]) -> list[Clip]:
    """Clips of files, of folders (their files, not those of folders inside) and of manifests.

    A manifest is a file that ends in ``.jsonl`` with an object a line: ``file`` (relative to the
    manifest), and where known ``language``, ``text``, ``category``; an entry whose ``score`` is
    false is left out.

    Raises:
        As2dError: status USAGE; a source is missing or a manifest is malformed.
    """
    clips = [clip for source in sources for clip in _clips_of(source)]
    if not clips:
        named = ", ".join(str(source) for source in sources)
        raise As2dError(f"no clips in {named}", status=ExitStatus.USAGE)
    return clips


def _clips_of(source: Path) -> Iterable[Clip]:
    if source.suffix == ".jsonl":
        return _manifest(source)
    if source.is_dir():
        return [Clip(path) for path in sorted(source.iterdir()) if path.is_file()]
    if not source.exists():
        raise As2dError(f"{source}: no such file", status=ExitStatus.USAGE)
    return [Clip(source)]


def _manifest(path: Path) -> Iterator[Clip]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise As2dError(f"{path}: cannot be read ({error})", status=ExitStatus.USAGE) from None
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield from _entry(path, number, line)


def _entry(path: Path, number: int, line: str) -> Iterator[Clip]:
    try:
        entry: dict[str, Any] = json.loads(line)
        if entry.get("score", True):
            yield Clip(
                path=path.parent / entry["file"],
                language=entry.get("language"),
                text=entry.get("text"),
                category=entry.get("category") or "",
            )
    except (ValueError, KeyError, TypeError, AttributeError):
        raise As2dError(
            f"{path}: line {number} is not a clip",
            remedy='write {"file": "clip.wav", "language": "en", "text": "..."}',
            status=ExitStatus.USAGE,
        ) from None
