"""A bundle: the folder that the native engine loads, described by its ``bundle.txt``.

``bundle.txt`` is UTF-8: the line ``as2d-bundle 1``, then ``key: value`` lines without quoting, a
repeated key making a list. It is flat so that C++ reads it in a few lines.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from as2d_cli.catalog.vocabulary import Vocabulary
from as2d_cli.errors import As2dError, ExitStatus

DESCRIPTION = "bundle.txt"
HEAD = "head"
"""The family of drafters that look at the target's encoder output."""
VOICE = "silero"
"""The family of voice-activity models: one graph, which is the encoder, and nothing else."""
LLAMA = "llama"
"""The family of language models: one graph, which is the decoder."""
AUDIO_LLM = "audio-llm"
"""The family of language models that hear: published graphs, and one that makes their features."""
ANSWERING = (LLAMA, AUDIO_LLM)
"""Families that answer questions."""
_FIRST_LINE = "as2d-bundle 1"
_CHUNK = 1 << 20
_MOST_DIGITS = 18  # What 64 bits hold.


class BundleError(As2dError):
    """A bundle that is broken; the message names the file and what is wrong in it."""

    def __init__(
        self, path: Path, problem: str, remedy: str = "pull the model again with --force"
    ) -> None:
        super().__init__(f"{path}: {problem}", remedy=remedy, status=ExitStatus.UNAVAILABLE)


@dataclass(frozen=True)
class FileRecord:
    """Name, size in bytes and SHA-256 (hex) of a file inside the bundle."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Bundle:
    """What ``bundle.txt`` says.

    Attributes:
        path: the bundle's folder.
        family: ``whisper``, ``moonshine``, ``head``, ``silero``, ``llama`` or ``audio-llm``: how
            the graphs are driven.
        languages: language codes; ``("en",)`` means English only.
        builder: revision of the builder that made the bundle.
        encoder, decoder, vocabulary_file: file names inside the folder; of a head without a decoder
            both graphs are one.
        context: positions of the decoder.
        window_samples: the most samples one encoder run takes.
        row_invariance: ``any`` if the decoder gives a row identical numbers whatever the number of
            rows, ``even`` if it does so for even numbers of them, else ``none``.
        tokens: ids of the special tokens by name (``start``, ``end``, ``no_speech``, ...).
        language_tokens: id by language code, in token order.
        suppress, begin_suppress: ids never chosen; ids never chosen first.
        alignment_heads: numbers of the decoder's heads (layer * heads + head) whose cross-attention
            follows the audio; empty where they are not known.
        sources: SHA-256 by name of the files the bundle was made from.
        kind: of a head: ``adapter`` (a small decoder behind an adapter) or ``ctc`` (all tokens at
            once, the last of the vocabulary being the blank); of an audio language model:
            ``ultravox`` or ``voxtral``; empty for other families.
        target: of a head: id of the target whose encoder output it looks at.
        encoding_width: of a head: numbers in a line of that output.
        frames_per_position: of a head: lines that become one of its positions.
        ends: of a language model: all tokens that end an answer; ``tokens["end"]`` is the first.
        special: of a language model: texts of its control tokens by id.
        pre_tokenizer: of a language model: the rule that cuts text into words, as GGUF names it.
        embedding, features: of an audio language model: file names of the graphs that make a line
            of each token and features of audio. ``tokens["audio"]`` stands in a prompt for a line
            of the encoder; it need not be one of the vocabulary.
        pad_to_window: of an audio language model: what is less than a window is heard as one, with
            silence after it.
        samples_per_position: of an audio language model: samples that a line stands for.
        spare_positions: of an audio language model: lines that each run gives beyond these.
        most_windows: of an audio language model: encoder runs that one prompt may hold.
        merges: of an audio language model: file name of the order of its merges, where ids do not
            tell it; else empty.
        caches: of an audio language model: ``in_place`` if its decoder can write what it caches
            where it read what was cached, ``grown`` if it gives all of it back, longer.
    """

    path: Path
    id: str
    family: str
    role: str
    languages: tuple[str, ...]
    licence: str
    builder: str
    encoder: str
    decoder: str
    vocabulary_file: str
    layers: int
    heads: int
    head_size: int
    width: int
    context: int
    vocabulary_size: int
    sample_rate: int
    window_samples: int
    row_invariance: str
    tokens: Mapping[str, int]
    language_tokens: Mapping[str, int] = field(default_factory=dict)
    suppress: tuple[int, ...] = ()
    begin_suppress: tuple[int, ...] = ()
    alignment_heads: tuple[int, ...] = ()
    files: tuple[FileRecord, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    kind: str = ""
    target: str = ""
    encoding_width: int = 0
    frames_per_position: int = 0
    ends: tuple[int, ...] = ()
    special: Mapping[int, str] = field(default_factory=dict)
    pre_tokenizer: str = ""
    embedding: str = ""
    features: str = ""
    pad_to_window: bool = False
    samples_per_position: int = 0
    spare_positions: int = 0
    most_windows: int = 0
    merges: str = ""
    caches: str = ""

    @property
    def encoder_path(self) -> Path:
        """Path of the encoder graph."""
        return self.path / self.encoder

    @property
    def decoder_path(self) -> Path:
        """Path of the decoder graph."""
        return self.path / self.decoder

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(record.size for record in self.files)

    def vocabulary(self) -> Vocabulary:
        """Read the vocabulary.

        Raises:
            VocabularyError: the file is missing or broken.
        """
        merges = self.path / self.merges if self.merges else None
        return Vocabulary.read(self.path / self.vocabulary_file, merges)

    def write(self) -> None:
        """Write ``bundle.txt`` into the bundle's folder, whole or not at all."""
        lines = [_FIRST_LINE, *(f"{key}: {value}" for key, value in self._lines())]
        temporary = self.path / f".{DESCRIPTION}.{os.getpid()}"
        try:
            temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")
            temporary.replace(self.path / DESCRIPTION)
        finally:
            temporary.unlink(missing_ok=True)

    def _lines(self) -> Iterable[tuple[str, object]]:
        for key in _TEXTS:
            yield key, getattr(self, _ATTRIBUTES.get(key, key))
        yield "languages", " ".join(self.languages)
        for key in _NUMBERS:
            yield key, getattr(self, key)
        yield from self._lines_of_family()
        for name, token in self.tokens.items():
            yield f"token.{name}", token
        for code, token in self.language_tokens.items():
            yield "language", f"{code} {token}"
        yield "suppress", " ".join(map(str, self.suppress))
        yield "begin_suppress", " ".join(map(str, self.begin_suppress))
        if self.alignment_heads:
            yield "alignment_heads", " ".join(map(str, self.alignment_heads))
        for record in self.files:
            yield "file", f"{record.name} {record.size} {record.sha256}"
        for name, digest in self.sources.items():
            yield "source", f"{name} {digest}"

    def _lines_of_family(self) -> Iterable[tuple[str, object]]:
        if self.family == HEAD:
            for key in (*_HEAD_TEXTS, *_HEAD_NUMBERS):
                yield key, getattr(self, key)
        if self.family == AUDIO_LLM:
            for key in (*_AUDIO_LLM_TEXTS, *_AUDIO_LLM_NUMBERS):
                yield key, getattr(self, key)
            yield "pad_to_window", "yes" if self.pad_to_window else "no"
        if self.family in ANSWERING:
            yield "pre_tokenizer", self.pre_tokenizer
            yield "ends", " ".join(map(str, self.ends))
            for token, text in self.special.items():
                yield "special", f"{token} {text}"

    @classmethod
    def read(cls, folder: Path) -> Bundle:
        """Read the bundle in ``folder``; the files it names are not looked at.

        Raises:
            BundleError: there is no ``bundle.txt``, or it is not understood.
        """
        return _DescriptionReader(folder).bundle()


_TEXTS = (
    "id",
    "family",
    "role",
    "licence",
    "builder",
    "encoder",
    "decoder",
    "vocabulary",
    "row_invariance",
)
_ATTRIBUTES = {"vocabulary": "vocabulary_file"}
_NUMBERS = (
    "layers",
    "heads",
    "head_size",
    "width",
    "context",
    "vocabulary_size",
    "sample_rate",
    "window_samples",
)
_HEAD_TEXTS = ("kind", "target")
_HEAD_NUMBERS = ("encoding_width", "frames_per_position")
_AUDIO_LLM_TEXTS = ("kind", "embedding", "features", "merges", "caches")
_AUDIO_LLM_NUMBERS = ("samples_per_position", "spare_positions", "most_windows")


def record_file(path: Path) -> FileRecord:
    """The record of an existing file."""
    return FileRecord(path.name, path.stat().st_size, sha256_of(path))


def sha256_of(path: Path) -> str:
    """Hex SHA-256 of a file's content."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


class _DescriptionReader:
    """The lines of one ``bundle.txt``, with errors that name it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / DESCRIPTION
        self._values: dict[str, list[str]] = {}
        try:
            lines = self._path.read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise BundleError(self._path, f"cannot be read ({error.strerror})") from None
        except UnicodeDecodeError:
            raise BundleError(self._path, "is not text") from None
        if not lines or lines[0] != _FIRST_LINE:
            raise BundleError(self._path, f"does not start with '{_FIRST_LINE}'")
        for line in lines[1:]:
            key, colon, value = line.partition(":")
            if not colon:
                raise BundleError(self._path, f"has a line without a key: '{line[:60]}'")
            self._values.setdefault(key.strip(), []).append(value.strip())

    def bundle(self) -> Bundle:
        family = self._one("family")
        more_texts = {HEAD: _HEAD_TEXTS, AUDIO_LLM: _AUDIO_LLM_TEXTS}
        more_numbers = {HEAD: _HEAD_NUMBERS, AUDIO_LLM: _AUDIO_LLM_NUMBERS}
        texts = {
            _ATTRIBUTES.get(key, key): self._one(key) for key in _TEXTS + more_texts.get(family, ())
        }
        numbers = {
            key: self._number(key, self._one(key))
            for key in _NUMBERS + more_numbers.get(family, ())
        }
        return Bundle(
            path=self._folder,
            languages=tuple(self._one("languages").split()),
            tokens={
                key.removeprefix("token."): self._number(key, values[-1])
                for key, values in self._values.items()
                if key.startswith("token.")
            },
            language_tokens={
                code: self._number("language", token)
                for code, token in (self._fields("language", 2))
            },
            suppress=self._numbers("suppress"),
            begin_suppress=self._numbers("begin_suppress"),
            alignment_heads=self._numbers("alignment_heads"),
            files=tuple(
                FileRecord(name, self._number("file", size), digest)
                for name, size, digest in self._fields("file", 3)
            ),
            sources={row[0]: row[1] for row in self._fields("source", 2)},
            ends=self._numbers("ends"),
            special=self._special(),
            pre_tokenizer=self._one("pre_tokenizer") if family in ANSWERING else "",
            pad_to_window=family == AUDIO_LLM and self._one("pad_to_window") == "yes",
            **texts,  # type: ignore[arg-type]
            **numbers,  # type: ignore[arg-type]
        )

    def _one(self, key: str) -> str:
        values = self._values.get(key, [])
        if len(values) != 1:
            raise BundleError(self._path, f"has {len(values)} lines for '{key}' instead of one")
        return values[0]

    def _fields(self, key: str, count: int) -> Sequence[tuple[str, ...]]:
        # From the right: only the first field, a name, may hold spaces.
        rows = [tuple(v.rsplit(maxsplit=count - 1)) for v in self._values.get(key, [])]
        for row in rows:
            if len(row) != count:
                raise BundleError(self._path, f"has a broken '{key}' line")
        return rows

    def _special(self) -> dict[int, str]:
        lines = [line.partition(" ") for line in self._values.get("special", [])]
        return {self._number("special", token): text for token, _, text in lines}

    def _numbers(self, key: str) -> tuple[int, ...]:
        text = " ".join(self._values.get(key, []))
        return tuple(self._number(key, word) for word in text.split())

    def _number(self, key: str, text: str) -> int:
        if not text.isdecimal() or len(text) > _MOST_DIGITS:
            raise BundleError(self._path, f"'{key}' is '{text[:40]}', not a number")
        return int(text)
