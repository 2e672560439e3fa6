"""CTranslate2 ``model.bin`` (binary version 6) as memory-mapped arrays.

Layout, little endian, as written by ``ModelSpec._serialize`` of CTranslate2
(python/ctranslate2/specs/model_spec.py)::

    u32 version, string spec, u32 revision
    u32 n, n x { string name, u8 rank, rank x u32 dimension, u8 type, u32 bytes, data }
    u32 m, m x { string alias, string name }

where a string is a u16 length that counts a closing NUL, then the bytes. Nothing in the file is
trusted: every length is held against what is left of the file before it is used.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from as2d_cli.errors import As2dError, ExitStatus

Array = npt.NDArray[Any]

SUPPORTED_VERSION = 6
# Type numbers of CTranslate2's DataType enum (include/ctranslate2/types.h). numpy has no bfloat16:
# such arrays are kept as raw uint16 and widened when asked for as float32.
_TYPES: Mapping[int, np.dtype[Any]] = MappingProxyType(
    {
        0: np.dtype("<f4"),
        1: np.dtype("<i1"),
        2: np.dtype("<i2"),
        3: np.dtype("<i4"),
        4: np.dtype("<f2"),
        5: np.dtype("<u2"),
    }
)
_BFLOAT16 = 5
# No Whisper has nearly as many; a count beyond it is a broken header, not a big model.
_MAX_VARIABLES = 100_000
_MAX_RANK = 8


class WeightsError(As2dError):
    """A weight file that cannot be read; the message names the file and what is wrong in it."""

    def __init__(self, path: Path, problem: str, remedy: str) -> None:
        super().__init__(f"{path}: {problem}", remedy=remedy, status=ExitStatus.UNAVAILABLE)


class CTranslate2Weights(Mapping[str, Array]):
    """The variables of one ``model.bin`` by name; arrays are read-only views of the mapped file.

    Attributes:
        spec: name of the model specification, for example ``WhisperSpec``.
        revision: revision of that specification.
    """

    def __init__(self, path: Path) -> None:
        """Map ``path`` and read its table of contents.

        Raises:
            WeightsError: the file is missing, empty, cut short or not of this format.
        """
        self._path = path
        self._variables: dict[str, Array] = {}
        self._bfloat16: set[str] = set()
        self._buffer = _map(path)
        reader = _Reader(path, self._buffer)
        self.spec, self.revision = self._read_header(reader)
        self._read_variables(reader)
        self._read_aliases(reader)

    def __getitem__(self, name: str) -> Array:
        return self._variables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)

    def floats(self, name: str) -> npt.NDArray[np.float32]:
        """The variable as float32, same shape: widened from float16/bfloat16 or dequantised.

        An int8 weight is divided by its ``<name>_scale``, one scale per row (CTranslate2 stores the
        factor it multiplied with).

        Raises:
            WeightsError: the variable is missing or is no matrix of numbers.
        """
        values = self._require(name)
        if name in self._bfloat16:
            return (values.astype(np.uint32) << np.uint32(16)).view(np.float32)
        if values.dtype in (np.dtype("<i1"), np.dtype("<i2")):
            scale = np.asarray(self._require(f"{name}_scale"), dtype=np.float32)
            return (values.astype(np.float32) / scale.reshape(-1, *[1] * (values.ndim - 1))).astype(
                np.float32
            )
        return np.asarray(values, dtype=np.float32)

    def integer(self, name: str) -> int:
        """The value of a scalar variable.

        Raises:
            WeightsError: the variable is missing or is no scalar.
        """
        values = self._require(name)
        if values.size != 1:
            raise WeightsError(
                self._path, f"'{name}' is no single number", "convert the model again"
            )
        return int(values.reshape(()))

    def _require(self, name: str) -> Array:
        try:
            return self._variables[name]
        except KeyError:
            raise WeightsError(
                self._path,
                f"holds no '{name}', so it is not the {self.spec} model it should be",
                "use a CTranslate2 conversion of a Whisper model",
            ) from None

    def _read_header(self, reader: _Reader) -> tuple[str, int]:
        version = reader.number("<I", "version")
        if version != SUPPORTED_VERSION:
            raise reader.error(
                f"CTranslate2 binary version {version} is not supported (only {SUPPORTED_VERSION})",
                "convert the model with CTranslate2 3 or 4",
            )
        return reader.string("model specification"), reader.number("<I", "revision")

    def _read_variables(self, reader: _Reader) -> None:
        count = reader.number("<I", "number of variables")
        if count > _MAX_VARIABLES:
            raise reader.error(f"claims {count} variables")
        for _ in range(count):
            name = reader.string("variable name")
            rank = reader.number("<B", f"rank of '{name}'")
            if rank > _MAX_RANK:
                raise reader.error(f"claims rank {rank} for '{name}'")
            shape = tuple(reader.number("<I", f"shape of '{name}'") for _ in range(rank))
            type_id = reader.number("<B", f"type of '{name}'")
            if type_id not in _TYPES:
                raise reader.error(f"claims unknown type {type_id} for '{name}'")
            dtype = _TYPES[type_id]
            size = reader.number("<I", f"size of '{name}'")
            # Python integers: a product of hostile dimensions cannot wrap around.
            elements = 1
            for dimension in shape:
                elements *= dimension
            if elements * dtype.itemsize != size:
                raise reader.error(f"size and shape of '{name}' do not agree")
            start = reader.skip(size, f"values of '{name}'")
            values = np.frombuffer(self._buffer, dtype, count=elements, offset=start)
            self._variables[name] = values.reshape(shape)
            if type_id == _BFLOAT16:
                self._bfloat16.add(name)

    def _read_aliases(self, reader: _Reader) -> None:
        count = reader.number("<I", "number of aliases")
        if count > _MAX_VARIABLES:
            raise reader.error(f"claims {count} aliases")
        for _ in range(count):
            alias, name = reader.string("alias"), reader.string("aliased name")
            if name not in self._variables:
                raise reader.error(f"alias '{alias}' points at '{name}', which is not there")
            self._variables[alias] = self._variables[name]
        if reader.left:
            raise reader.error(f"has {reader.left} bytes after its end")


class _Reader:
    """A cursor over the mapped file that never reads past its end."""

    def __init__(self, path: Path, buffer: mmap.mmap) -> None:
        self._path = path
        self._buffer = buffer
        self._offset = 0

    @property
    def left(self) -> int:
        """Bytes after the cursor."""
        return len(self._buffer) - self._offset

    def error(self, problem: str, remedy: str = "fetch the file again") -> WeightsError:
        """The error for a broken file at this point."""
        return WeightsError(self._path, problem, remedy)

    def skip(self, size: int, what: str) -> int:
        """Step over ``size`` bytes; returns where they start."""
        if size > self.left:
            raise self.error(f"is cut short in {what} ({size - self.left} bytes are missing)")
        start = self._offset
        self._offset += size
        return start

    def number(self, form: str, what: str) -> int:
        """One unsigned number of ``struct`` format ``form``."""
        start = self.skip(struct.calcsize(form), what)
        value: int = struct.unpack_from(form, self._buffer, start)[0]
        return value

    def string(self, what: str) -> str:
        """One length-prefixed, NUL-closed string."""
        size = self.number("<H", what)
        start = self.skip(size, what)
        raw = self._buffer[start : start + size]
        if not raw.endswith(b"\0"):
            raise self.error(f"has no proper {what}")
        try:
            return raw[:-1].decode("utf-8")
        except UnicodeDecodeError:
            raise self.error(f"has no proper {what}") from None


def _map(path: Path) -> mmap.mmap:
    try:
        with path.open("rb") as file:
            head = file.read(512)
            if not head:
                raise WeightsError(path, "is empty", "fetch the file again")
            refuse_text(path, head)
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise WeightsError(
            path, f"cannot be read ({error.strerror})", "check the path and its permissions"
        ) from None


def refuse_text(path: Path, head: bytes) -> None:
    """Name the two texts that commonly lie where weights should be.

    Raises:
        WeightsError: the file begins like one of them.
    """
    if head.startswith(b"version https://git-lfs"):
        raise WeightsError(
            path, "is a git-lfs pointer, not the weights", "run 'git lfs pull' in that repository"
        )
    if head.lstrip()[:15].lower().startswith((b"<!doctype html", b"<html", b"<?xml")):
        raise WeightsError(
            path, "is a web page, not the weights", "download the file itself, not its page"
        )
