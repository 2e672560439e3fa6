"""Language models of the llama and qwen2 families out of GGUF files, with their tokenizers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt

from as2d_cli.catalog.graphs.block_weights import BLOCK, EightBits, FourBits, Matrix, SixBits
from as2d_cli.catalog.graphs.llama import Layer, Llama
from as2d_cli.catalog.vocabulary import Vocabulary, from_gguf_tokens
from as2d_cli.catalog.weights.ctranslate2 import WeightsError

Array = npt.NDArray[Any]
Type = gguf.GGMLQuantizationType

ARCHITECTURES = ("llama", "qwen2")
# Caches take memory for each position, and prompts time: models promise more than is of use here.
MOST_CONTEXT = 8192
# Texts that published models end an answer with, whichever of them the file calls the end.
_END_TEXTS = ("<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end_of_text|>", "</s>")
_CONTROL = 3
_HEAD_MULTIPLE = 16
_EIGHT_BIT_GROUP = 64


@dataclass(frozen=True)
class Tokenizer:
    """What a GGUF says of its tokens.

    Attributes:
        ends: ids that end an answer, the one that the file names first.
        special: texts of the control tokens by id.
        pre_tokenizer: name of the rule that cuts text into words before it is encoded.
        chat_template: Jinja source; empty where the file has none.
    """

    vocabulary: Vocabulary
    ends: tuple[int, ...]
    special: Mapping[int, str]
    pre_tokenizer: str
    chat_template: str


def read_llama(path: Path) -> tuple[Llama, Tokenizer]:
    """Read the model in the GGUF file ``path``.

    Raises:
        WeightsError: the file is broken, or holds something that as2d cannot run.
    """
    try:
        reader = gguf.GGUFReader(path)
    except (OSError, ValueError, IndexError, KeyError, UnicodeDecodeError) as error:
        raise WeightsError(path, f"is no whole GGUF file ({error})", "fetch it again") from None
    file = _File(path, reader)
    return _Reader(file).read(), _read_tokenizer(file)


class _File:
    """Facts and tensors of a file by name."""

    def __init__(self, path: Path, reader: gguf.GGUFReader) -> None:
        self.path = path
        self._fields = reader.fields
        self._tensors = {tensor.name: tensor for tensor in reader.tensors}

    def error(self, problem: str) -> WeightsError:
        return WeightsError(self.path, problem, "use a GGUF of the llama or qwen2 architecture")

    def fact(self, name: str, otherwise: Any = None) -> Any:
        """The value of a field; without it ``otherwise``, or an error if that is None."""
        field = self._fields.get(name)
        if field is not None:
            return field.contents()
        if otherwise is None:
            raise self.error(f"does not tell '{name}'")
        return otherwise

    def number(self, name: str, otherwise: int | None = None) -> int:
        value = self.fact(name, otherwise)
        if not isinstance(value, int) or not 0 <= value < 1 << 31:
            raise self.error(f"'{name}' is no number that it could be")
        return value

    def has(self, name: str) -> bool:
        return name in self._tensors

    def vector(self, name: str, size: int) -> npt.NDArray[np.float32]:
        values = self._floats(self._tensor(name)).reshape(-1)
        if len(values) != size:
            raise self.error(f"'{name}' has {len(values)} numbers, not {size}")
        return values

    def matrix(self, name: str, outputs: int | None, inputs: int) -> Matrix:
        tensor = self._tensor(name)
        shape = tuple(int(n) for n in reversed(tensor.shape))
        if len(shape) != 2 or shape[1] != inputs or outputs not in (None, shape[0]):
            raise self.error(f"'{name}' is {shape}, not ({outputs or 'tokens'}, {inputs})")
        if tensor.tensor_type == Type.Q4_K:
            raw = np.ascontiguousarray(tensor.data).reshape(shape[0], -1, 144)
            return FourBits(raw)
        if tensor.tensor_type == Type.Q6_K:
            return SixBits(np.ascontiguousarray(tensor.data).reshape(shape[0], -1, 210))
        if tensor.tensor_type in _WHOLE:
            return _whole_numbers(tensor.tensor_type, np.asarray(tensor.data), shape)
        # In parts: a table of all tokens is large.
        parts = [
            EightBits.of(self._floats(tensor, slice(first, first + _PART)))
            for first in range(0, shape[0], _PART)
        ]
        weights, scales = [p.weight for p in parts], [p.scale for p in parts]
        return EightBits(np.concatenate(weights), np.concatenate(scales))

    def _tensor(self, name: str) -> gguf.ReaderTensor:
        try:
            return self._tensors[name]
        except KeyError:
            raise self.error(f"has no tensor '{name}'") from None

    def _floats(
        self, tensor: gguf.ReaderTensor, rows: slice = slice(None)
    ) -> npt.NDArray[np.float32]:
        try:
            values: npt.NDArray[np.float32] = gguf.dequantize(
                np.asarray(tensor.data)[rows], tensor.tensor_type
            ).astype(np.float32, copy=False)
        except NotImplementedError:
            raise self.error(
                f"'{tensor.name}' is of the type {tensor.tensor_type.name}, which cannot be read"
            ) from None
        return values


_PART = 8192


def _five_bits(blocks: Array) -> Array:
    """Q5_0 without its scale: nibbles, and the fifth bits in four bytes before them."""
    fifth = np.unpackbits(blocks[..., :4], axis=-1, bitorder="little") << 4
    nibbles = np.concatenate([blocks[..., 4:] & 15, blocks[..., 4:] >> 4], axis=-1)
    whole: Array = (nibbles | fifth).astype(np.int8) - np.int8(16)
    return whole


def _four_bits(blocks: Array) -> Array:
    """Q4_0 without its scale."""
    nibbles = np.concatenate([blocks & 15, blocks >> 4], axis=-1)
    whole: Array = nibbles.astype(np.int8) - np.int8(8)
    return whole


# Types of signed whole numbers in blocks of 32, with a scale before them: kept as they are.
_WHOLE: Mapping[Type, Callable[[Array], Array]] = {
    Type.Q8_0: lambda blocks: blocks.view(np.int8),
    Type.Q5_0: _five_bits,
    Type.Q4_0: _four_bits,
}


def _whole_numbers(kind: Type, data: Array, shape: tuple[int, ...]) -> EightBits:
    blocks = data.reshape(shape[0], shape[1] // BLOCK, -1)
    scale = np.ascontiguousarray(blocks[..., :2]).view("<f2")[..., 0].astype(np.float16)
    weight = _WHOLE[kind](np.ascontiguousarray(blocks[..., 2:]))
    return EightBits(weight.reshape(shape), scale)


class _Reader:
    """Names of GGUF's tensors to the builder's parts."""

    def __init__(self, file: _File) -> None:
        self._file = file
        self._kind = str(file.fact("general.architecture"))
        if self._kind not in ARCHITECTURES:
            raise file.error(f"holds a model of the architecture '{self._kind}'")
        self._width = self._number("embedding_length")
        self._heads = self._number("attention.head_count")
        self._kv_heads = self._number("attention.head_count_kv", self._heads)
        if not self._heads or not self._kv_heads or self._heads % self._kv_heads:
            raise file.error(f"has {self._heads} heads for {self._kv_heads} of keys")
        self._size = self._number("attention.key_length", self._width // self._heads)
        self._feed = self._number("feed_forward_length")
        self._check()

    def read(self) -> Llama:
        file, width = self._file, self._width
        embeddings = file.matrix("token_embd.weight", None, width)
        head = None
        if file.has("output.weight"):
            head = file.matrix("output.weight", embeddings.outputs, width)
        return Llama(
            embeddings=embeddings,
            layers=tuple(self._layer(f"blk.{n}") for n in range(self._number("block_count"))),
            norm=file.vector("output_norm.weight", width),
            head=head,
            heads=self._heads,
            kv_heads=self._kv_heads,
            epsilon=float(self._fact("attention.layer_norm_rms_epsilon")),
            context=min(self._number("context_length"), MOST_CONTEXT),
            frequencies=self._frequencies(),
        )

    def _check(self) -> None:
        file = self._file
        rotated = self._number("rope.dimension_count", self._size)
        if rotated != self._size or self._size % _HEAD_MULTIPLE or not self._size:
            raise file.error(f"has heads of {self._size} dimensions of which {rotated} are rotated")
        for name, size in (("embedding_length", self._width), ("feed_forward_length", self._feed)):
            if size % _EIGHT_BIT_GROUP or not size:
                raise file.error(f"has a '{name}' of {size}, not a multiple of {_EIGHT_BIT_GROUP}")
        if self._fact("rope.scaling.type", "none") != "none":
            raise file.error("stretches its positions in a way that as2d does not know")

    def _fact(self, name: str, otherwise: Any = None) -> Any:
        return self._file.fact(f"{self._kind}.{name}", otherwise)

    def _number(self, name: str, otherwise: int | None = None) -> int:
        return self._file.number(f"{self._kind}.{name}", otherwise)

    def _frequencies(self) -> npt.NDArray[np.float64]:
        half = self._size // 2
        base = float(self._fact("rope.freq_base", 10000.0))
        frequencies = base ** (-np.arange(half) / half)
        if self._file.has("rope_freqs.weight"):
            frequencies = frequencies / self._file.vector("rope_freqs.weight", half)
        return frequencies

    def _layer(self, name: str) -> Layer:
        file, width = self._file, self._width
        query, key = self._heads * self._size, self._kv_heads * self._size

        def bias(part: str, size: int) -> npt.NDArray[np.float32] | None:
            full = f"{name}.{part}.bias"
            return file.vector(full, size) if file.has(full) else None

        for part in ("attn_output", "ffn_gate", "ffn_up", "ffn_down"):
            if file.has(f"{name}.{part}.bias"):
                raise file.error(f"has a bias '{name}.{part}.bias', which as2d does not expect")
        query_bias, key_bias = bias("attn_q", query), bias("attn_k", key)
        if (query_bias is None) != (key_bias is None):
            raise file.error(f"'{name}' has a bias for queries or keys alone")
        query_order, key_order = self._order(self._heads), self._order(self._kv_heads)
        return Layer(
            attention_norm=file.vector(f"{name}.attn_norm.weight", width),
            query=file.matrix(f"{name}.attn_q.weight", query, width).take(query_order),
            key=file.matrix(f"{name}.attn_k.weight", key, width).take(key_order),
            value=file.matrix(f"{name}.attn_v.weight", key, width),
            query_bias=None if query_bias is None else query_bias[query_order],
            key_bias=None if key_bias is None else key_bias[key_order],
            value_bias=bias("attn_v", key),
            output=file.matrix(f"{name}.attn_output.weight", width, query),
            feed_norm=file.vector(f"{name}.ffn_norm.weight", width),
            gate=file.matrix(f"{name}.ffn_gate.weight", self._feed, width),
            up=file.matrix(f"{name}.ffn_up.weight", self._feed, width),
            down=file.matrix(f"{name}.ffn_down.weight", width, self._feed),
        )

    def _order(self, heads: int) -> npt.NDArray[np.intp] | slice:
        """Outputs such that dimension i of a head is turned with i + size / 2.

        GGUF's qwen2 has them so; its llama has the two side by side.
        """
        if self._kind != "llama":
            return slice(None)
        rows = np.arange(heads * self._size).reshape(heads, self._size // 2, 2)
        return rows.transpose(0, 2, 1).reshape(-1)


def _read_tokenizer(file: _File) -> Tokenizer:
    model = file.fact("tokenizer.ggml.model")
    if model != "gpt2":
        raise file.error(f"has a tokenizer of the kind '{model}', not a byte-level one")
    texts: Sequence[str] = file.fact("tokenizer.ggml.tokens")
    kinds: Sequence[int] = file.fact("tokenizer.ggml.token_type")
    special = {n: t for n, (t, k) in enumerate(zip(texts, kinds, strict=True)) if k == _CONTROL}
    ids = {text: token for token, text in special.items()}
    named = file.number("tokenizer.ggml.eos_token_id")
    ends = dict.fromkeys([named, *(ids[text] for text in _END_TEXTS if text in ids)])
    return Tokenizer(
        vocabulary=from_gguf_tokens(
            file.path, texts, kinds, file.fact("tokenizer.ggml.merges", [])
        ),
        ends=tuple(ends),
        special=special,
        pre_tokenizer=file.fact("tokenizer.ggml.pre", "gpt2"),
        chat_template=file.fact("tokenizer.chat_template", ""),
    )
