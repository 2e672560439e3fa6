"""What is measured on: a manifest, files, or folders of files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from as2d_cli.errors import As2dError, ExitStatus

__all__ = ["Clip", "default_clips", "load_clips"]

_PACKAGE = Path(__file__).parents[1]
_CHECKOUT_MANIFEST = _PACKAGE.parent / "tests" / "data" / "clips.jsonl"
_SHIPPED_CLIP = _PACKAGE / "catalog" / "known_clip.ogg"
_SHIPPED_TEXT = (
    "and so my fellow americans ask not what your country can do for you "
    "ask what you can do for your country"
)
_MANIFEST = "clips.jsonl"


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
    """Clips of files, of folders and of manifests.

    A folder is its ``clips.jsonl`` if it has one; else its files, not those of folders inside.

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


def default_clips() -> list[Clip]:
    """The clips of the checkout that this package lies in, or the one that ships inside it."""
    if _CHECKOUT_MANIFEST.is_file():
        return load_clips([_CHECKOUT_MANIFEST])
    return [Clip(_SHIPPED_CLIP, "en", _SHIPPED_TEXT)]


def _clips_of(source: Path) -> Iterable[Clip]:
    if source.suffix == ".jsonl":
        return _manifest(source)
    if source.is_dir():
        if (source / _MANIFEST).is_file():
            return _manifest(source / _MANIFEST)
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
