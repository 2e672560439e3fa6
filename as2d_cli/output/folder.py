"""Results of many inputs: one file for each input and format, in one folder."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from as2d_cli.errors import As2dError, ExitStatus
from as2d_cli.output.file import ResultFile
from as2d_cli.output.formats import Format
from as2d_cli.output.renderer import Renderer, Writer
from as2d_cli.tasks.transcript import Segment, SourceInfo, Transcript

__all__ = ["FolderSink", "result_names"]

_LONGEST_NAME = 255
"""Bytes, on every file system in common use."""


def result_names(inputs: Sequence[Path]) -> list[Path]:
    """Names for the results of `inputs`, without the format's suffix.

    An input's own name without its suffix; with it where two inputs have one stem.

    Args:
        inputs: paths below the folder that each was found in.

    Raises:
        As2dError: status USAGE; two inputs have one name.
    """
    plain = [path.with_suffix("") if path.name else path for path in inputs]
    often = Counter(plain)
    names = [stem if often[stem] == 1 else path for stem, path in zip(plain, inputs, strict=True)]
    for name, count in Counter(names).items():
        if count > 1:
            raise As2dError(
                f"{count} inputs are called {name} and their results would be, too",
                remedy="give them one after another, with different --output",
                status=ExitStatus.USAGE,
            )
    return names


class FolderSink:
    """A sink that writes the files of each input when it is complete; see `Sink`."""

    def __init__(
        self,
        folder: Path,
        names: Sequence[Path],
        formats: Sequence[Format],
        make: Callable[[Format, Writer], Renderer],
        *,
        force: bool,
    ) -> None:
        """Makes nothing yet.

        Args:
            names: by the number of the input, without suffix; see `result_names`.
            make: gives the renderer of a format that writes to an output.
            force: files that exist are replaced.
        """
        self._folder = folder
        self._names = list(names)
        self._formats = list(dict.fromkeys(formats))
        self._make = make
        self._force = force
        self._open = ExitStack()
        self._files: list[ResultFile] = []
        self._renderers: list[Renderer] = []

    def paths(self, number: int) -> list[Path]:
        """Where the results of an input go."""
        return [self._path(number, format) for format in self._formats]

    def leave_out_done(self) -> list[Path | None]:
        """For each input, in order, a result of it that exists already and must not be replaced.

        Those inputs are left out from now on: the number of an input is that among the others.
        """
        found = [
            None if self._force else next((p for p in self.paths(i) if p.exists()), None)
            for i in range(len(self._names))
        ]
        self._names = [name for name, path in zip(self._names, found, strict=True) if path is None]
        return found

    def begin(self, info: SourceInfo) -> None:
        """Opens the files of an input.

        Raises:
            As2dError: that is not possible.
        """
        for format in self._formats:
            path = self._path(info.number, format)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as e:
                raise As2dError(
                    f"cannot write --output {path}: {e.strerror}", remedy="choose another folder"
                ) from e
            file = self._open.enter_context(ResultFile(path, force=self._force))
            self._files.append(file)
            self._renderers.append(self._make(format, file.out))
        for renderer in self._renderers:
            renderer.begin(info)

    def commit(self, text: str) -> None:
        """See `Sink`."""
        for renderer in self._renderers:
            renderer.commit(text)

    def segment(self, segment: Segment) -> None:
        """See `Sink`."""
        for renderer in self._renderers:
            renderer.segment(segment)

    def end(self, transcript: Transcript) -> None:
        """The files get their names.

        Raises:
            As2dError: one of them cannot; those that have no name yet go away.
        """
        try:
            for renderer in self._renderers:
                renderer.end(transcript)
            for file in self._files:
                file.keep()
        finally:
            self._close()

    def abandon(self) -> None:
        """The files go away."""
        self._close()

    def _path(self, number: int, format: Format) -> Path:
        name = self._names[number]
        stem = name.name
        while len(os.fsencode(f"{stem}.{format}")) > _LONGEST_NAME:
            stem = stem[:-1]
        return self._folder / name.with_name(f"{stem}.{format}")

    def _close(self) -> None:
        self._open.close()
        self._files, self._renderers = [], []
