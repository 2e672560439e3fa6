"""Small made-up language models in GGUF files, and what they mean in plain numpy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Type = gguf.GGMLQuantizationType

WIDTH, HEADS, KV_HEADS, LAYERS, FEED = 256, 4, 2, 2, 512
EPSILON, BASE = 1e-5, 10000.0
SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
CHAT_TEMPLATE = "{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}"


def alphabet() -> list[str]:
    """The 256 bytes as GPT-2 writes them."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    return [chr(b) for b in plain] + [chr(256 + n) for n in range(256 - len(plain))]


WORDS = [*alphabet(), "Ġt", "Ġth"]
VOCABULARY = len(WORDS) + len(SPECIALS)


def q4_k(random: np.random.Generator, outputs: int, inputs: int) -> Array:
    """Random blocks of the type Q4_K, whose weights are about as large as they should be."""
    raw = random.integers(0, 256, (outputs, inputs // 256, 144), dtype=np.uint8)
    size = 2.0 * inputs**-0.5 / (15 * 40)
    halves = random.uniform(0.5, 1.0, (*raw.shape[:2], 2)) * [size, size * 5]
    raw[..., :4] = halves.astype("<f2").view(np.uint8)
    flat: Array = raw.reshape(outputs, -1)
    return flat


def q6_k(random: np.random.Generator, outputs: int, inputs: int) -> Array:
    """The same of the type Q6_K."""
    raw = random.integers(0, 256, (outputs, inputs // 256, 210), dtype=np.uint8)
    halves = random.uniform(0.5, 1.0, (*raw.shape[:2], 1)) * inputs**-0.5 / (19 * 64)
    raw[..., 208:] = halves.astype("<f2").view(np.uint8)
    flat: Array = raw.reshape(outputs, -1)
    return flat


def write_model(
    path: Path,
    *,
    architecture: str = "qwen2",
    seed: int = 0,
    tied: bool = True,
    context: int = 128,
    facts: dict[str, Any] | None = None,
    without: str = "",
) -> Path:
    """Write a model with a tensor of each kind that is read in a way of its own.

    Args:
        facts: further facts of the architecture, integers or texts.
        without: name of a tensor that is left out.
    """
    random = np.random.default_rng(seed)
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_context_length(context)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_freq_base(BASE)
    writer.add_layer_norm_rms_eps(EPSILON)
    for name, value in (facts or {}).items():
        if isinstance(value, str):
            writer.add_string(f"{architecture}.{name}", value)
        else:
            writer.add_uint32(f"{architecture}.{name}", value)
    _add_tokenizer(writer)

    def add(name: str, values: Array, kind: Type = Type.F32) -> None:
        if name == without:
            return
        raw = values if kind in (Type.Q4_K, Type.Q6_K) else gguf.quants.quantize(values, kind)
        writer.add_tensor(name, raw, raw_dtype=kind)

    def table(outputs: int, inputs: int, scale: float = 1.0) -> Array:
        values = random.standard_normal((outputs, inputs)) * scale * inputs**-0.5
        narrow: Array = values.astype(np.float32)
        return narrow

    def vector(size: int, around: float) -> Array:
        return (around + 0.1 * random.standard_normal(size)).astype(np.float32)

    size = WIDTH // HEADS
    add("token_embd.weight", table(VOCABULARY, WIDTH, scale=3), Type.Q5_0)
    if not tied:
        add("output.weight", table(VOCABULARY, WIDTH, scale=3), Type.F16)
    add("output_norm.weight", vector(WIDTH, 1))
    for n in range(LAYERS):
        layer = f"blk.{n}"
        add(f"{layer}.attn_norm.weight", vector(WIDTH, 1))
        add(f"{layer}.attn_q.weight", q4_k(random, WIDTH, WIDTH), Type.Q4_K)
        add(f"{layer}.attn_k.weight", q4_k(random, KV_HEADS * size, WIDTH), Type.Q4_K)
        add(f"{layer}.attn_v.weight", table(KV_HEADS * size, WIDTH), Type.Q8_0)
        add(f"{layer}.attn_output.weight", table(WIDTH, WIDTH), Type.Q4_0)
        if architecture == "qwen2":
            for part, width in (("q", WIDTH), ("k", KV_HEADS * size), ("v", KV_HEADS * size)):
                add(f"{layer}.attn_{part}.bias", vector(width, 0))
        add(f"{layer}.ffn_norm.weight", vector(WIDTH, 1))
        add(f"{layer}.ffn_gate.weight", q4_k(random, FEED, WIDTH), Type.Q4_K)
        add(f"{layer}.ffn_up.weight", table(FEED, WIDTH), Type.Q4_1)
        add(f"{layer}.ffn_down.weight", q6_k(random, WIDTH, FEED), Type.Q6_K)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_tokenizer(writer: gguf.GGUFWriter) -> None:
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list([*WORDS, *SPECIALS])
    writer.add_token_types([1] * len(WORDS) + [3] * len(SPECIALS))
    writer.add_token_merges(["Ġ t", "Ġt h"])
    writer.add_eos_token_id(VOCABULARY - 1)
    writer.add_chat_template(CHAT_TEMPLATE)


def log_probabilities(path: Path, tokens: list[int]) -> Array:
    """Of every next token after each of `tokens`, with the weights as the file has them."""
    reader = gguf.GGUFReader(path)
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    interleaved = reader.fields["general.architecture"].contents() == "llama"

    def weight(name: str) -> Array:
        tensor = tensors[name]
        return gguf.dequantize(np.asarray(tensor.data), tensor.tensor_type).astype(np.float64)

    def linear(x: Array, name: str) -> Array:
        bias = name.replace(".weight", ".bias")
        y: Array = x @ weight(name).T
        return y + weight(bias).reshape(-1) if bias in tensors else y

    def norm(x: Array, name: str) -> Array:
        y: Array = x / np.sqrt((x * x).mean(-1, keepdims=True) + EPSILON)
        return y * weight(name).reshape(-1)

    count, size = len(tokens), WIDTH // HEADS
    angles = np.arange(count)[:, None] * BASE ** (-np.arange(size // 2) / (size // 2))
    cosine, sine = np.cos(angles)[:, None], np.sin(angles)[:, None]

    def turned(x: Array) -> Array:
        heads = x.reshape(count, -1, size)
        first, second = (
            (np.s_[..., 0::2], np.s_[..., 1::2])
            if interleaved
            else (np.s_[..., : size // 2], np.s_[..., size // 2 :])
        )
        y = np.empty_like(heads)
        y[first] = heads[first] * cosine - heads[second] * sine
        y[second] = heads[second] * cosine + heads[first] * sine
        return y

    x = weight("token_embd.weight")[tokens]
    later = np.triu(np.full((count, count), -np.inf), 1)
    for n in range(LAYERS):
        layer = f"blk.{n}"
        h = norm(x, f"{layer}.attn_norm.weight")
        query = turned(linear(h, f"{layer}.attn_q.weight"))
        key = turned(linear(h, f"{layer}.attn_k.weight")).repeat(HEADS // KV_HEADS, axis=1)
        value = linear(h, f"{layer}.attn_v.weight").reshape(count, KV_HEADS, size)
        value = value.repeat(HEADS // KV_HEADS, axis=1)
        scores = np.einsum("qhd,khd->hqk", query, key) / np.sqrt(size) + later
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        mixed = np.einsum("hqk,khd->qhd", shares, value).reshape(count, WIDTH)
        x = x + linear(mixed, f"{layer}.attn_output.weight")
        h = norm(x, f"{layer}.ffn_norm.weight")
        gate = linear(h, f"{layer}.ffn_gate.weight")
        wide = gate / (1 + np.exp(-gate)) * linear(h, f"{layer}.ffn_up.weight")
        x = x + linear(wide, f"{layer}.ffn_down.weight")
    head = "output.weight" if "output.weight" in tensors else "token_embd.weight"
    logits = linear(norm(x, "output_norm.weight"), head)
    most = logits.max(-1, keepdims=True)
    found: Array = logits - most - np.log(np.exp(logits - most).sum(-1, keepdims=True))
    return found
