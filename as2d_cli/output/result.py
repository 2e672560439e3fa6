"""What is to be written, and where to: as the command line says it."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from as2d_cli.errors import As2dError, ExitStatus
from as2d_cli.output.formats import JOINABLE, Format, format_of, renderer
from as2d_cli.output.renderer import Renderer, Writer

if TYPE_CHECKING:
    from as2d_cli.output.cues import CueRules

__all__ = ["Result"]


@dataclass(frozen=True)
class Result:
    """Formats and their place.

    Attributes:
        formats: at least one; more than one only with a folder.
        path: None for standard output.
        is_folder: `path` is a folder, which may not exist yet.
        force: files that exist are replaced.
        tokens, words: with ids, and with when words were spoken, where there is a place for them.
        rules: of subtitles.
    """

    formats: tuple[Format, ...]
    path: Path | None
    is_folder: bool
    force: bool
    tokens: bool
    words: bool
    rules: CueRules

    @classmethod
    def of(
        cls,
        output: str | None,
        formats: Sequence[Format],
        *,
        force: bool,
        tokens: bool,
        words: bool,
        rules: CueRules,
    ) -> Result:
        """A name that ends with a slash, or is a folder's, is one; without `formats` the suffix of
        a file's name chooses.

        Raises:
            As2dError: status USAGE; several formats for one file.
        """
        path = None if output in (None, "-") else Path(output or "")
        is_folder = path is not None and (str(output).endswith("/") or _is_folder(path))
        chosen = tuple(dict.fromkeys(formats))
        if not chosen:
            by_name = format_of(path.name) if path is not None and not is_folder else None
            chosen = (by_name or Format.TXT,)
        if len(chosen) > 1 and not is_folder:
            raise As2dError(
                f"{len(chosen)} formats need a folder",
                remedy="give --output DIR/",
                status=ExitStatus.USAGE,
            )
        return cls(chosen, path, is_folder, force, tokens, words, rules)

    @property
    def shows_times(self) -> bool:
        """One of the formats tells when something was said."""
        return any(format is not Format.TXT for format in self.formats)

    def check(self, inputs: Sequence[str]) -> None:
        """Refuses what would spoil an input, or be no valid file.

        Args:
            inputs: their names; ``-`` for standard input.

        Raises:
            As2dError: status USAGE.
        """
        if len(inputs) > 1 and not self.is_folder and self.formats[0] not in JOINABLE:
            raise As2dError(
                f"a file of {self.formats[0]} holds one input and not {len(inputs)}",
                remedy="give --output DIR/",
                status=ExitStatus.USAGE,
            )
        if self.path is not None and not self.is_folder:
            refuse_input(self.path, inputs)

    def renderer(self, format: Format, out: Writer) -> Renderer:
        """One that writes to `out`."""
        return renderer(format, out, tokens=self.tokens, words=self.words, rules=self.rules)


def _is_folder(path: Path) -> bool:
    with contextlib.suppress(OSError):  # too long a name: who opens it says so
        return path.is_dir()
    return False


def refuse_input(path: Path, inputs: Sequence[str]) -> None:
    """Raises As2dError (status USAGE) when `path` is one of the `inputs`."""
    for name in inputs:
        with contextlib.suppress(OSError, ValueError):
            if name != "-" and Path(name).samefile(path):
                raise As2dError(
                    f"--output {path} is an input as well",
                    remedy="choose another name",
                    status=ExitStatus.USAGE,
                )
