"""The bytes that tokens stand for: ``vocabulary.bin`` of a bundle, and what it is made from.

Layout: ``A2DV``, then little endian u32 version (1), u32 count, u32 flags (bit 0: ids of text
tokens are merge ranks), then for each token a u16 length and that many bytes. A token that stands
for no text (special, control, timestamp) has length 0.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from as2d_cli.errors import As2dError, ExitStatus

_MAGIC = b"A2DV"
_HEADER = struct.Struct("<4sIII")
_VERSION = 1
_MERGE_RANKS = 1
MOST_PIECE = 0xFFFF
_NO_BPE = "is no byte-level BPE tokenizer.json"
_WORD_MARK = "\u2581".encode()
_BYTE_PIECE = re.compile(rb"<0x([0-9A-Fa-f]{2})>")
# Moonshine's control pieces: the usual three and its <<ST_..>> stream marks.
_CONTROL_PIECE = re.compile(rb"<unk>|<s>|</s>|<<ST_.*>>", re.DOTALL)


class VocabularyError(As2dError):
    """A tokenizer file that cannot be understood."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(
            f"{path}: {problem}", remedy="fetch the file again", status=ExitStatus.UNAVAILABLE
        )


@dataclass(frozen=True)
class Vocabulary:
    """Bytes by token id.

    Attributes:
        pieces: the bytes each token stands for; empty for tokens that are no text.
        merge_ranks: ids of text tokens are byte-level BPE merge ranks, as in GPT-2.
        merges: what each merge makes, in their order, where ids do not tell it; empty where they
            do, or where it is not known.
    """

    pieces: tuple[bytes, ...]
    merge_ranks: bool
    merges: tuple[int, ...] = ()

    def write(self, path: Path) -> None:
        """Write ``vocabulary.bin``."""
        flags = _MERGE_RANKS if self.merge_ranks else 0
        parts = [_HEADER.pack(_MAGIC, _VERSION, len(self.pieces), flags)]
        for piece in self.pieces:
            parts += [struct.pack("<H", len(piece)), piece]
        path.write_bytes(b"".join(parts))

    def write_merges(self, path: Path) -> None:
        """Write the order of the merges: little endian u32 each."""
        path.write_bytes(struct.pack(f"<{len(self.merges)}I", *self.merges))

    @classmethod
    def read(cls, path: Path, merges: Path | None = None) -> Vocabulary:
        """Read ``vocabulary.bin``, and the file of `write_merges` if there is one.

        Raises:
            VocabularyError: a file is missing or broken.
        """
        raw = _read(path)
        if len(raw) < _HEADER.size:
            raise VocabularyError(path, "is cut short")
        magic, version, count, flags = _HEADER.unpack_from(raw)
        if magic != _MAGIC or version != _VERSION:
            raise VocabularyError(path, "is no as2d vocabulary of version 1")
        pieces: list[bytes] = []
        offset = _HEADER.size
        for _ in range(count):
            end = offset + 2
            if end <= len(raw):
                end += int.from_bytes(raw[offset : offset + 2], "little")
            if end > len(raw):
                raise VocabularyError(path, f"is cut short after {len(pieces)} of {count} tokens")
            pieces.append(raw[offset + 2 : end])
            offset = end
        if offset != len(raw):
            raise VocabularyError(path, f"has {len(raw) - offset} bytes after its end")
        order = () if merges is None else _read_merges(merges, count)
        return cls(tuple(pieces), bool(flags & _MERGE_RANKS), order)


def _read_merges(path: Path, tokens: int) -> tuple[int, ...]:
    raw = _read(path)
    if len(raw) % 4:
        raise VocabularyError(path, "is cut short")
    made = struct.unpack(f"<{len(raw) // 4}I", raw)
    if made and max(made) >= tokens:
        raise VocabularyError(path, f"makes token {max(made)}, of {tokens} tokens")
    return made


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise VocabularyError(path, f"cannot be read ({error.strerror})") from None


def from_byte_level_bpe(path: Path, tokenizer: Mapping[str, Any], size: int) -> Vocabulary:
    """The vocabulary of a byte-level BPE ``tokenizer.json``, filled up with empty pieces.

    Args:
        path: the file's name, for messages.
        tokenizer: its parsed content.
        size: number of tokens of the model; Whisper's timestamps have no entry in the file.

    Raises:
        VocabularyError: the file is of another kind or has ids beyond ``size``.
    """
    model = tokenizer.get("model")
    entries, merges = (
        (model.get("vocab"), model.get("merges")) if isinstance(model, dict) else (None, None)
    )
    if (
        not isinstance(entries, dict)
        or not all(map(_is_id, entries.values()))
        or not isinstance(merges, list)
        or not all(map(_is_merge, merges))
    ):
        raise VocabularyError(path, _NO_BPE)
    special = set(added_tokens(path, tokenizer).values())
    largest = max([*entries.values(), *special], default=0)
    if largest >= size:
        raise VocabularyError(
            path, f"has token {largest}, but the model has {size} tokens: they are no pair"
        )
    pieces = [b""] * size
    alphabet = _byte_of_character()
    for text, token in entries.items():
        if token in special:
            continue
        try:
            pieces[token] = bytes(alphabet[character] for character in text)
        except KeyError:
            raise VocabularyError(path, f"token {token} is not byte-level text") from None
        if len(pieces[token]) > MOST_PIECE:
            raise VocabularyError(path, f"token {token} is too long")
    if _ids_are_ranks(entries, merges):
        return Vocabulary(tuple(pieces), merge_ranks=True)
    made = (entries.get("".join(_pair(merge))) for merge in merges)
    # What is made in several ways is as early as the first of them.
    order = tuple(dict.fromkeys(token for token in made if token is not None))
    return Vocabulary(tuple(pieces), merge_ranks=False, merges=order)


def added_tokens(path: Path, tokenizer: Mapping[str, Any]) -> dict[str, int]:
    """Ids of the special tokens of a ``tokenizer.json`` by their text.

    Raises:
        VocabularyError: it does not say what they are.
    """
    tokens = tokenizer.get("added_tokens")
    if not isinstance(tokens, list) or not all(
        isinstance(token, dict)
        and _is_id(token.get("id"))
        and isinstance(token.get("content"), str)
        for token in tokens
    ):
        raise VocabularyError(path, _NO_BPE)
    return {token["content"]: token["id"] for token in tokens}


_GGUF_NORMAL = 1
_GGUF_USER_DEFINED = 4


def from_gguf_tokens(
    path: Path, texts: Sequence[str], kinds: Sequence[int], merges: Sequence[str]
) -> Vocabulary:
    """The vocabulary of a byte-level BPE in a GGUF file.

    Args:
        path: the file's name, for messages.
        texts: of each token.
        kinds: GGUF's token types: words are written in the alphabet of bytes, what a user has
            defined is plain text, and all others are no text.
        merges: two words each, in the order in which they are made.

    Raises:
        VocabularyError: a word is not byte-level text.
    """
    alphabet = _byte_of_character()
    pieces: list[bytes] = []
    for token, (text, kind) in enumerate(zip(texts, kinds, strict=True)):
        if kind == _GGUF_NORMAL:
            try:
                piece = bytes(alphabet[character] for character in text)
            except KeyError:
                raise VocabularyError(path, f"token {token} is not byte-level text") from None
        else:
            piece = text.encode() if kind == _GGUF_USER_DEFINED else b""
        if len(piece) > MOST_PIECE:
            raise VocabularyError(path, f"token {token} is too long")
        pieces.append(piece)
    entries = {text: token for token, text in enumerate(texts)}
    return Vocabulary(tuple(pieces), _ids_are_ranks(entries, merges))


def from_moonshine(path: Path) -> Vocabulary:
    """The vocabulary in Moonshine's ``tokenizer.bin``.

    The file is a list of pieces, each with its length before it: one byte below 128, else two, the
    low seven bits first. U+2581 stands for a space, ``<0xNN>`` for that byte.

    Raises:
        VocabularyError: the file is missing or broken.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise VocabularyError(path, f"cannot be read ({error.strerror})") from None
    pieces: list[bytes] = []
    offset = 0
    while offset < len(raw):
        size = raw[offset]
        offset += 1
        if size >= 0x80:
            if offset == len(raw):
                raise VocabularyError(path, f"is cut short after {len(pieces)} tokens")
            size = size - 0x80 + raw[offset] * 0x80
            offset += 1
        if offset + size > len(raw):
            raise VocabularyError(path, f"is cut short after {len(pieces)} tokens")
        pieces.append(_moonshine_piece(raw[offset : offset + size]))
        offset += size
    if not pieces:
        raise VocabularyError(path, "is empty")
    return Vocabulary(tuple(pieces), merge_ranks=False)


def _moonshine_piece(raw: bytes) -> bytes:
    if _CONTROL_PIECE.fullmatch(raw):
        return b""
    byte = _BYTE_PIECE.fullmatch(raw)
    if byte:
        return bytes([int(byte[1], 16)])
    return raw.replace(_WORD_MARK, b" ")


def _byte_of_character() -> dict[str, int]:
    """GPT-2's printable alphabet (``bytes_to_unicode``, openai/gpt-2 src/encoder.py), reversed."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(plain)]
    alphabet = {chr(byte): byte for byte in plain}
    alphabet.update({chr(256 + index): byte for index, byte in enumerate(others)})
    return alphabet


def _is_id(value: object) -> bool:
    # Of JSON's values only whole numbers are an int, and true and false.
    return type(value) is int and value >= 0


def _is_merge(value: object) -> bool:
    """Files of either age: ``"a b"`` or ``["a", "b"]``."""
    return isinstance(value, str | list) and len(_pair(value)) == 2


def _pair(merge: str | list[Any]) -> Sequence[str]:
    parts = merge.split(" ") if isinstance(merge, str) else merge
    return parts if all(isinstance(part, str) for part in parts) else ()


def _ids_are_ranks(entries: Mapping[str, int], merges: Sequence[Any]) -> bool:
    """Whether an earlier merge never makes a larger id, so that ids can stand for merge ranks.

    The order is what counts: the published multilingual Whisper file lacks its first merge, and
    files that were made from tiktoken's list all ways to make a token.
    """
    previous = -1
    for merge in merges:
        left, right = _pair(merge)
        made = entries.get(left + right, -1)
        if made < max(previous, 0):
            return False
        previous = made
    return bool(merges)
