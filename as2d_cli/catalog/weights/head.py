"""``head.npz``: the weights of a draft head, its vocabulary, and what it was made for.

A zip archive of arrays, one ``.npy`` each, as numpy's ``savez_compressed`` writes it:

- ``about``: a JSON object, as bytes: format (1), kind, target, encoding_width, id, languages,
  licence, and of an adapter heads.
- NAME.weight int8 [outputs, inputs] within -31..31 (six bits are enough for drafts, and pack to
  five), NAME.scale float32 [outputs] and, where there is one, NAME.bias float32 [outputs] for each
  linear layer; NAME.gamma and NAME.beta float32 for each norm.
- ``decoder.positions`` float16 [context, width] of an adapter.
- ``pieces`` uint8, the bytes of all tokens one after another, ``piece_lengths`` uint16.

Nothing in the file is trusted: it is read array by array, none larger than it says, and all are
held against each other.
"""

from __future__ import annotations

import json
import os
import zipfile
from dataclasses import dataclass
from itertools import count
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from as2d_cli.catalog.graphs.blocks import Floats, Linear, Norm, quantise_outputs
from as2d_cli.catalog.graphs.head import (
    PLACES,
    POOL,
    Adapter,
    AdapterBlock,
    AdapterHead,
    CtcHead,
    Sketch,
)
from as2d_cli.catalog.graphs.whisper import (
    CrossAttention,
    Decoder,
    DecoderLayer,
    FeedForward,
    SelfAttention,
)
from as2d_cli.catalog.weights.ctranslate2 import WeightsError, refuse_text

__all__ = ["SPECIALS", "HeadFile", "read_head", "write_head"]

SPECIALS = ("start", "no_timestamps", "end")
"""Names of the last tokens of a head, in their order."""

Array = npt.NDArray[Any]

_FORMAT = 1
_MOST = 31  # of a weight
# Of the archive and of what is in it: several times what a head, which is to be small, can use.
_MOST_BYTES = 64 << 20
_MOST_ABOUT = 1 << 16
_MOST_ID = 100
# The native engine takes weights in groups of so many inputs, and heads in groups of dimensions.
_GROUP_INPUTS = 4
_GROUP_DIMENSIONS = 16
_LEAST_CONTEXT = 4
_SKETCH = "sketch.letters"  # is there if a sketch is
_REMEDY = "make it again with 'as2d distill'"


@dataclass(frozen=True)
class HeadFile:
    """What is in a ``head.npz``.

    Attributes:
        id: what the head is called.
        target: id of the bundle it was made for.
        encoding_width: numbers in a line of that target's encoder output.
        pieces: the bytes of each token but the blank; the last three are ``SPECIALS``, and empty.
    """

    id: str
    target: str
    encoding_width: int
    languages: tuple[str, ...]
    licence: str
    head: AdapterHead | CtcHead
    pieces: tuple[bytes, ...]

    @property
    def kind(self) -> str:
        """``adapter`` or ``ctc``."""
        return "adapter" if isinstance(self.head, AdapterHead) else "ctc"


def write_head(path: Path, file: HeadFile) -> None:
    """Write ``path``, whole or not at all; the same head gives the same bytes."""
    arrays = _Writer(file).arrays
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as out:
            np.savez_compressed(out, allow_pickle=False, **arrays)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def read_head(path: Path) -> HeadFile:
    """Read ``path``; weights are float32, and give the same file when written again.

    Raises:
        WeightsError: the file is missing, broken, or of another kind.
    """
    try:
        _refuse_others(path)
        with zipfile.ZipFile(path) as archive:
            arrays = _unpack(path, archive)
    except OSError as error:
        raise WeightsError(
            path,
            f"cannot be read ({error.strerror or error})",
            "check the path and its permissions",
        ) from None
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise WeightsError(path, f"is no whole npz archive ({error})", _REMEDY) from None
    return _Reader(path, arrays).read()


class _Writer:
    """Collects the arrays of a head under their names."""

    def __init__(self, file: HeadFile) -> None:
        self.arrays: dict[str, Array] = {}
        head = file.head
        about: dict[str, Any] = {
            "format": _FORMAT,
            "kind": file.kind,
            "target": file.target,
            "encoding_width": file.encoding_width,
            "id": file.id,
            "languages": list(file.languages),
            "licence": file.licence,
        }
        self._adapter(head.adapter)
        if head.sketch is not None:
            self._sketch(head.sketch)
        if isinstance(head, AdapterHead):
            about["heads"] = head.decoder_heads
            self._decoder(head.decoder)
        self.arrays["about"] = _bytes(json.dumps(about).encode())
        self.arrays["pieces"] = _bytes(b"".join(file.pieces))
        self.arrays["piece_lengths"] = np.array([len(p) for p in file.pieces], dtype=np.uint16)

    def _adapter(self, adapter: Adapter) -> None:
        self._norm("adapter.norm", adapter.norm)
        self._linear("adapter.join", adapter.join)
        for index, block in enumerate(adapter.blocks):
            name = f"adapter.blocks.{index}"
            self._linear(f"{name}.convolution", block.convolution)
            self._feed_forward(name, block.feed_forward)

    def _sketch(self, sketch: Sketch) -> None:
        self._linear("sketch.widen", sketch.widen)
        self._linear("sketch.narrow", sketch.narrow)
        self._norm("sketch.norm", sketch.norm)
        self._linear("sketch.output", sketch.output)
        self.arrays[_SKETCH] = np.array(sketch.letters, dtype=np.uint16)

    def _decoder(self, decoder: Decoder) -> None:
        embeddings = np.asarray(decoder.embeddings, dtype=np.float32)
        self._linear("decoder.embeddings", Linear(embeddings))
        self.arrays["decoder.positions"] = np.ascontiguousarray(decoder.positions, np.float16)
        for index, layer in enumerate(decoder.layers):
            name = f"decoder.layers.{index}"
            attention, cross = layer.attention, layer.cross
            self._norm(f"{name}.attention.norm", attention.norm)
            self._linear(f"{name}.attention.query_key_value", attention.query_key_value)
            self._linear(f"{name}.attention.output", attention.output)
            self._norm(f"{name}.cross.norm", cross.norm)
            self._linear(f"{name}.cross.query", cross.query)
            self._linear(f"{name}.cross.key_value", cross.key_value)
            self._linear(f"{name}.cross.output", cross.output)
            self._feed_forward(f"{name}.feed_forward", layer.feed_forward)
        self._norm("decoder.norm", decoder.norm)

    def _feed_forward(self, name: str, feed: FeedForward) -> None:
        self._norm(f"{name}.norm", feed.norm)
        self._linear(f"{name}.widen", feed.widen)
        self._linear(f"{name}.narrow", feed.narrow)

    def _norm(self, name: str, norm: Norm) -> None:
        self.arrays[f"{name}.gamma"] = np.ascontiguousarray(norm.gamma, np.float32)
        self.arrays[f"{name}.beta"] = np.ascontiguousarray(norm.beta, np.float32)

    def _linear(self, name: str, linear: Linear) -> None:
        weight, scale = quantise_outputs(linear.weight, _MOST)
        self.arrays[f"{name}.weight"] = np.ascontiguousarray(weight)
        self.arrays[f"{name}.scale"] = scale
        if linear.bias is not None:
            self.arrays[f"{name}.bias"] = np.ascontiguousarray(linear.bias, np.float32)


class _Reader:
    """Puts a head together from its arrays, each of which must have its place."""

    def __init__(self, path: Path, arrays: dict[str, Array]) -> None:
        self._path = path
        self._arrays = arrays

    def read(self) -> HeadFile:
        about = self._about()
        decodes = about["kind"] == "adapter"
        adapter, width = self._adapter(about["encoding_width"])
        sketch = self._sketch(width) if _SKETCH in self._arrays or not decodes else None
        head: AdapterHead | CtcHead
        if decodes:
            head = AdapterHead(
                adapter=adapter,
                sketch=sketch,
                decoder=self._decoder(width),
                decoder_heads=about["heads"],
            )
            self._check_heads(head)
            tokens: int | None = head.vocabulary_size
        else:
            assert sketch is not None
            head = CtcHead(adapter, sketch)
            tokens = None
        pieces = self._pieces(tokens)
        self._check_specials(pieces)
        letters = sketch.letters if sketch is not None else ()
        if any(letter >= len(pieces) or len(pieces[letter]) != 1 for letter in letters):
            raise self._error("has letters that are not of one byte")
        if self._arrays:
            raise self._error(
                f"holds '{next(iter(self._arrays))[:60]}', which is no part of a head"
            )
        return HeadFile(
            id=about["id"],
            target=about["target"],
            encoding_width=about["encoding_width"],
            languages=tuple(about["languages"]),
            licence=about["licence"],
            head=head,
            pieces=pieces,
        )

    def _error(self, problem: str) -> WeightsError:
        return WeightsError(self._path, problem, _REMEDY)

    # What it is

    def _about(self) -> dict[str, Any]:
        raw = self._take("about", np.uint8, None)
        if len(raw) > _MOST_ABOUT:
            raise self._error("has an 'about' that is too long")
        try:
            about = json.loads(raw.tobytes())
        except (ValueError, RecursionError):
            raise self._error("has an 'about' that is not JSON") from None
        if not isinstance(about, dict):
            raise self._error("has an 'about' that is no JSON object")
        if about.get("format") != _FORMAT:
            problem = f"is of format {str(about.get('format'))[:20]}, not {_FORMAT}"
            raise WeightsError(self._path, problem, "use the as2d that made it, or make it again")
        for key in ("kind", "target", "id", "licence"):
            if not _is_word(about.get(key)):
                raise self._error(f"does not say '{key}' in one short line")
        if about["kind"] not in ("adapter", "ctc"):
            kind = about["kind"][:40]
            raise self._error(f"is a head of the kind '{kind}', which as2d does not know")
        languages = about.get("languages")
        if not isinstance(languages, list) or not languages or not all(map(_is_code, languages)):
            raise self._error("does not say 'languages' as a list of codes")
        for key in ("encoding_width", *(("heads",) if about["kind"] == "adapter" else ())):
            # Of JSON's values only whole numbers are an int, and true and false.
            if type(about.get(key)) is not int or about[key] < 1:
                raise self._error(f"does not say '{key}' as a number above 0")
        return about

    def _check_heads(self, head: AdapterHead) -> None:
        if head.width % head.decoder_heads:
            raise self._error(f"has {head.decoder_heads} heads for a width of {head.width}")
        if head.head_size % _GROUP_DIMENSIONS:
            size = head.head_size
            raise self._error(f"has heads of {size} dimensions, not a multiple of 16")

    def _check_specials(self, pieces: tuple[bytes, ...]) -> None:
        if len(pieces) < len(SPECIALS) or any(pieces[-len(SPECIALS) :]):
            raise self._error("does not end its vocabulary with the three special tokens")

    # Parts

    def _adapter(self, encoding_width: int) -> tuple[Adapter, int]:
        joined = POOL * encoding_width
        norm = self._norm("adapter.norm", joined)
        join = self._linear("adapter.join", None, joined)
        width = len(join.weight)
        if width % _GROUP_INPUTS:
            raise self._error(f"has a width of {width}, not a multiple of {_GROUP_INPUTS}")
        blocks = []
        for index in count():
            name = f"adapter.blocks.{index}"
            if f"{name}.convolution.weight" not in self._arrays:
                break
            convolution = self._linear(f"{name}.convolution", width, 3 * width)
            blocks.append(AdapterBlock(convolution, self._feed_forward(name, width)))
        return Adapter(norm, join, tuple(blocks)), width

    def _sketch(self, width: int) -> Sketch:
        widen = self._linear("sketch.widen", None, width, biased=True)
        hidden = len(widen.weight)
        if hidden % _GROUP_INPUTS:
            raise self._error(f"has a sketch {hidden} wide, not a multiple of {_GROUP_INPUTS}")
        letters = self._take(_SKETCH, np.uint16, (None,))
        output = self._linear("sketch.output", PLACES * (len(letters) + 1), width, biased=True)
        return Sketch(
            widen,
            self._linear("sketch.narrow", width, hidden, biased=True),
            self._norm("sketch.norm", width),
            output,
            tuple(letters.tolist()),
        )

    def _decoder(self, width: int) -> Decoder:
        embeddings = self._linear("decoder.embeddings", None, width).weight
        positions = self._take("decoder.positions", np.float16, (None, width))
        if len(positions) < _LEAST_CONTEXT:
            raise self._error(f"has a context of only {len(positions)} tokens")
        layers = []
        for index in count():
            name = f"decoder.layers.{index}"
            if f"{name}.attention.norm.gamma" not in self._arrays:
                break
            attention = SelfAttention(
                self._norm(f"{name}.attention.norm", width),
                self._linear(f"{name}.attention.query_key_value", 3 * width, width),
                self._linear(f"{name}.attention.output", width, width),
            )
            cross = CrossAttention(
                self._norm(f"{name}.cross.norm", width),
                self._linear(f"{name}.cross.query", width, width),
                self._linear(f"{name}.cross.key_value", 2 * width, width),
                self._linear(f"{name}.cross.output", width, width),
            )
            feed = self._feed_forward(f"{name}.feed_forward", width)
            layers.append(DecoderLayer(attention, cross, feed))
        if not layers:
            raise self._error("has no decoder layers")
        return Decoder(embeddings, positions, tuple(layers), self._norm("decoder.norm", width))

    def _feed_forward(self, name: str, width: int) -> FeedForward:
        norm = self._norm(f"{name}.norm", width)
        widen = self._linear(f"{name}.widen", None, width, biased=True)
        hidden = len(widen.weight)
        if hidden % _GROUP_INPUTS:
            raise self._error(f"has '{name}' {hidden} wide, not a multiple of {_GROUP_INPUTS}")
        return FeedForward(norm, widen, self._linear(f"{name}.narrow", width, hidden, biased=True))

    def _norm(self, name: str, width: int) -> Norm:
        gamma = self._take(f"{name}.gamma", np.float32, (width,))
        return Norm(gamma, self._take(f"{name}.beta", np.float32, (width,)))

    def _linear(
        self, name: str, outputs: int | None, inputs: int, *, biased: bool = False
    ) -> Linear:
        """A layer of float32 weights; ``outputs`` None for any number of them."""
        weight = self._take(f"{name}.weight", np.int8, (outputs, inputs))
        scale: Floats = self._take(f"{name}.scale", np.float32, (len(weight),))
        if not (scale > 0).all():
            raise self._error(f"has a scale in '{name}' that is not above 0")
        bias = None
        if biased or f"{name}.bias" in self._arrays:
            bias = self._take(f"{name}.bias", np.float32, (len(weight),))
        return Linear(weight * scale[:, None], bias)

    def _pieces(self, tokens: int | None) -> tuple[bytes, ...]:
        lengths = self._take("piece_lengths", np.uint16, (tokens,))
        raw = self._take("pieces", np.uint8, None).tobytes()
        ends = np.cumsum(lengths, dtype=np.int64).tolist()
        if ends[-1:] != [len(raw)]:
            raise self._error("has pieces that are not as long as it says")
        return tuple(raw[end - int(n) : end] for n, end in zip(lengths, ends, strict=True))

    def _take(self, name: str, dtype: Any, shape: tuple[int | None, ...] | None) -> Array:
        """The array `name`, which has then found its place.

        Args:
            shape: None in it for any number but none; None for one dimension of any length.
        """
        try:
            values = self._arrays.pop(name)
        except KeyError:
            raise self._error(f"holds no '{name}'") from None
        if values.dtype != dtype:
            raise self._error(f"has '{name}' as {values.dtype}, not {np.dtype(dtype)}")
        fits = (
            values.ndim == 1
            if shape is None
            else len(shape) == values.ndim
            and values.size > 0
            and all(wanted in (None, n) for wanted, n in zip(shape, values.shape, strict=True))
        )
        if not fits:
            wanted = "n" if shape is None else ", ".join(str(n or "n") for n in shape)
            raise self._error(f"has '{name}' of shape {list(values.shape)}, not [{wanted}]")
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise self._error(f"has numbers in '{name}' that are not finite")
        return values


def _refuse_others(path: Path) -> None:
    size = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(512)
    if not start:
        raise WeightsError(path, "is empty", _REMEDY)
    refuse_text(path, start)
    if size > _MOST_BYTES:
        raise WeightsError(path, f"has {size} bytes, more than any head", _REMEDY)


def _unpack(path: Path, archive: zipfile.ZipFile) -> dict[str, Array]:
    total = sum(info.file_size for info in archive.infolist())
    if total > _MOST_BYTES:
        raise WeightsError(path, f"unpacks to {total} bytes, more than any head", _REMEDY)
    arrays = {}
    for info in archive.infolist():
        name = info.filename.removesuffix(".npy")
        try:
            arrays[name] = _array(archive, info)
        except Exception as error:  # zipfile and numpy raise whatever what they use raises.
            problem = f"has an array '{name[:60]}' that cannot be read ({str(error)[:80]})"
            raise WeightsError(path, problem, _REMEDY) from None
    return arrays


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Array:
    """One member as an array. Not by numpy's own reader: it makes room for whatever it is told of.

    Raises:
        Exception: it is no array of numbers, or not as long as it says.
    """
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError("another compression than numpy's")  # These are unpacked without a limit.
    with archive.open(info) as stream:
        if np.lib.format.read_magic(stream) != (1, 0):
            raise ValueError("another version of the npy format")
        shape, by_columns, dtype = np.lib.format.read_array_header_1_0(stream)
        if dtype.kind not in "iuf":
            raise ValueError(f"it holds {dtype}")
        size = prod(shape) * dtype.itemsize
        # No more than the archive says of it, which is within what is allowed.
        raw = stream.read(info.file_size)
    if len(raw) != size or min(shape, default=0) < 0:
        raise ValueError(f"it has {len(raw)} bytes for a shape of {list(shape)}")
    return np.frombuffer(raw, dtype).reshape(shape, order="F" if by_columns else "C")


def _bytes(raw: bytes) -> Array:
    return np.frombuffer(raw, dtype=np.uint8)


def _is_code(value: object) -> bool:
    """A language code, as far as that can be told."""
    return isinstance(value, str) and value.isascii() and value.isalpha()


def _is_word(value: object) -> bool:
    """Text that may stand in a line of ``bundle.txt``."""
    return (
        isinstance(value, str)
        and 0 < len(value) <= _MOST_ID
        and value.isprintable()
        and value == value.strip()
    )
