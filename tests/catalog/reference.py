"""Whisper in plain numpy, float64: what the graphs are held against."""

from __future__ import annotations

from collections.abc import Mapping
from math import erf
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def log_mel(audio: Array, bands: int) -> Array:
    """``log_mel_spectrogram`` of openai/whisper for [480000] samples, as [bands, 3000]."""
    padded = np.pad(audio.astype(np.float64), 200, mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(padded, 400)[::160][:3000]
    power = np.abs(np.fft.rfft(frames * np.hanning(401)[:-1])) ** 2
    logs = np.log10(np.maximum(slaney(bands) @ power.T, 1e-10))
    return np.asarray((np.maximum(logs, logs.max() - 8.0) + 4.0) / 4.0)


def slaney(bands: int) -> Array:
    """Mel filters by Slaney's published corner frequencies, one triangle at a time."""

    def hertz(mel: float) -> float:
        return mel * 200 / 3 if mel < 15 else 1000 * 6.4 ** ((mel - 15) / 27)

    top = 15 + 27 * np.log(8) / np.log(6.4)
    edges = [hertz(top * n / (bands + 1)) for n in range(bands + 2)]
    filters = np.zeros((bands, 201))
    for band in range(bands):
        low, middle, high = edges[band : band + 3]
        for index in range(201):
            f = index * 40.0
            rise, fall = (f - low) / (middle - low), (high - f) / (high - middle)
            filters[band, index] = max(0.0, min(rise, fall)) * 2 / (high - low)
    return filters


class Reference:
    """The forward passes, by CTranslate2's names."""

    def __init__(self, variables: Mapping[str, Array]) -> None:
        self._v = {name: np.asarray(v, dtype=np.float64) for name, v in variables.items()}
        self._heads = int(self._v["decoder/num_heads"])
        self._layers = sum(n.endswith("ffn/linear_0/bias") for n in variables) // 2

    def encode(self, audio: Array) -> list[tuple[Array, Array]]:
        """Cross-attention keys and values of each decoder layer, [heads, positions, size]."""
        bands = self._v["encoder/conv1/weight"].shape[1]
        x = gelu(self._convolve("encoder/conv1", log_mel(audio, bands), 1))
        x = gelu(self._convolve("encoder/conv2", x, 2)).T
        x = x + self._v["encoder/position_encodings/encodings"]
        for layer in range(self._layers):
            name = f"encoder/layer_{layer}"
            q, k, v = np.split(self._linear_of_norm(name, "self_attention", x), 3, axis=-1)
            mixed = self._attend(q, self._split(k), self._split(v), causal=False)
            x = x + self._linear(f"{name}/self_attention/linear_1", mixed)
            x = self._feed_forward(name, x)
        x = self._norm("encoder/layer_norm", x)
        pairs = []
        for layer in range(self._layers):
            both = self._linear(f"decoder/layer_{layer}/attention/linear_1", x)
            k, v = np.split(both, 2, axis=-1)
            pairs.append((self._split(k), self._split(v)))
        return pairs

    def decode(self, tokens: Array, cross: list[tuple[Array, Array]]) -> Array:
        """Logits [tokens, vocabulary]."""
        embeddings = self._v["decoder/embeddings/weight"]
        x = embeddings[tokens] + self._v["decoder/position_encodings/encodings"][: len(tokens)]
        for layer, (cross_k, cross_v) in enumerate(cross):
            name = f"decoder/layer_{layer}"
            q, k, v = np.split(self._linear_of_norm(name, "self_attention", x), 3, axis=-1)
            mixed = self._attend(q, self._split(k), self._split(v), causal=True)
            x = x + self._linear(f"{name}/self_attention/linear_1", mixed)
            q = self._linear_of_norm(name, "attention", x)
            mixed = self._attend(q, cross_k, cross_v, causal=False)
            x = x + self._linear(f"{name}/attention/linear_2", mixed)
            x = self._feed_forward(name, x)
        return self._norm("decoder/layer_norm", x) @ embeddings.T

    def _convolve(self, name: str, x: Array, stride: int) -> Array:
        weight, bias = self._v[f"{name}/weight"], self._v[f"{name}/bias"]
        padded = np.pad(x, ((0, 0), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, 3, axis=1)[:, ::stride]
        return np.asarray(np.einsum("ock,ctk->ot", weight, windows) + bias[:, None])

    def _linear(self, name: str, x: Array) -> Array:
        return np.asarray(x @ self._v[f"{name}/weight"].T + self._v[f"{name}/bias"])

    def _norm(self, name: str, x: Array) -> Array:
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
        return np.asarray(scaled * self._v[f"{name}/gamma"] + self._v[f"{name}/beta"])

    def _linear_of_norm(self, layer: str, part: str, x: Array) -> Array:
        normed = self._norm(f"{layer}/{part}/layer_norm", x)
        return self._linear(f"{layer}/{part}/linear_0", normed)

    def _feed_forward(self, layer: str, x: Array) -> Array:
        wide = gelu(self._linear_of_norm(layer, "ffn", x))
        return np.asarray(x + self._linear(f"{layer}/ffn/linear_1", wide))

    def _split(self, x: Array) -> Array:
        return np.asarray(x.reshape(len(x), self._heads, -1).transpose(1, 0, 2))

    def _attend(self, q: Array, k: Array, v: Array, *, causal: bool) -> Array:
        scores = self._split(q) @ k.transpose(0, 2, 1) * k.shape[-1] ** -0.5
        if causal:
            scores += np.triu(np.full(scores.shape[1:], -np.inf), 1)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        return np.asarray((shares @ v).transpose(1, 0, 2).reshape(len(q), -1))


_erf = np.vectorize(erf, otypes=[np.float64])


def gelu(x: Array) -> Array:
    return np.asarray(0.5 * x * (1 + _erf(x / np.sqrt(2.0))))
