"""The heads as PyTorch modules; `as2d_cli.catalog.graphs.head` has the same as ONNX graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from as2d_cli.catalog.graphs.blocks import Linear, Norm
from as2d_cli.catalog.graphs.head import PLACES, POOL
from as2d_cli.catalog.graphs.whisper import DecoderLayer, Whisper

__all__ = ["AdapterNetwork", "CtcNetwork", "TextCache"]

TextCache = list[tuple[Tensor, Tensor]]
"""Keys and values of every layer so far: [windows, heads, tokens, head size] each."""


class AdapterBlock(nn.Module):
    """A convolution of 3 taps with GELU, then a feed-forward layer, both added to the input."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(width, width, 3, padding=1)
        self.norm = nn.LayerNorm(width)
        self.widen = nn.Linear(width, hidden)
        self.narrow = nn.Linear(hidden, width)
        # A block begins as nothing, so that training begins at what the closed form has found.
        for layer in (self.convolution, self.narrow):
            nn.init.zeros_(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)

    def forward(self, x: Tensor) -> Tensor:
        """[windows, positions, width] to the same."""
        x = x + functional.gelu(self.convolution(x.transpose(1, 2)).transpose(1, 2))
        fed: Tensor = self.narrow(functional.gelu(self.widen(self.norm(x))))
        return x + fed


class Adapter(nn.Module):
    """The target's encoder output to what the head's decoder looks at."""

    def __init__(self, encoding_width: int, width: int, blocks: int) -> None:
        super().__init__()
        self.encoding_width = encoding_width
        self.norm = nn.LayerNorm(POOL * encoding_width)
        self.join = nn.Linear(POOL * encoding_width, width)
        self.blocks = nn.ModuleList(AdapterBlock(width, 2 * width) for _ in range(blocks))

    def forward(self, encoding: Tensor, mask: Tensor) -> Tensor:
        """[windows, lines, encoding width] to [windows, positions, width].

        Args:
            mask: bool [windows, positions]; what is False is zero before each convolution, as
                beyond the end of the one window that a graph sees.
        """
        windows, lines, width = encoding.shape
        keep = mask[..., None]
        x: Tensor = self.join(self.norm(encoding.reshape(windows, lines // POOL, POOL * width)))
        for block in self.stages:
            x = block(x * keep)
        return x * keep

    @property
    def stages(self) -> list[AdapterBlock]:
        """The blocks."""
        return cast(list[AdapterBlock], list(self.blocks))


class TextLayer(nn.Module):
    """One layer of Whisper's decoder."""

    def __init__(self, layer: DecoderLayer, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.self_norm = _norm(layer.attention.norm)
        self.query_key_value = _linear(layer.attention.query_key_value)
        self.self_output = _linear(layer.attention.output)
        self.cross_norm = _norm(layer.cross.norm)
        self.query = _linear(layer.cross.query)
        self.key_value = _linear(layer.cross.key_value)
        self.cross_output = _linear(layer.cross.output)
        self.feed_norm = _norm(layer.feed_forward.norm)
        self.widen = _linear(layer.feed_forward.widen)
        self.narrow = _linear(layer.feed_forward.narrow)

    def audio(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of the audio."""
        key, value = self.key_value(memory).chunk(2, -1)
        return self._split(key), self._split(value)

    def forward(
        self,
        x: Tensor,
        audio: tuple[Tensor, Tensor],
        mask: Tensor,
        past: tuple[Tensor, Tensor] | None,
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """[windows, tokens, width] to the same, and the text's keys and values."""
        query, key, value = map(self._split, self.query_key_value(self.self_norm(x)).chunk(3, -1))
        if past is not None:
            key, value = torch.cat([past[0], key], 2), torch.cat([past[1], value], 2)
        attended = functional.scaled_dot_product_attention(
            query, key, value, is_causal=past is None
        )
        x = x + self.self_output(self._join(attended))
        query = self._split(self.query(self.cross_norm(x)))
        attended = functional.scaled_dot_product_attention(query, *audio, attn_mask=mask)
        x = x + self.cross_output(self._join(attended))
        fed: Tensor = self.narrow(functional.gelu(self.widen(self.feed_norm(x))))
        return x + fed, (key, value)

    def _split(self, x: Tensor) -> Tensor:
        windows, tokens, width = x.shape
        return x.reshape(windows, tokens, self.heads, width // self.heads).transpose(1, 2)

    def _join(self, x: Tensor) -> Tensor:
        return x.transpose(1, 2).flatten(2)


class Sketch(nn.Module):
    """A first guess at the whole text in one pass, letter by letter.

    A logit for every letter and the blank, several times in every position (connectionist temporal
    classification, Graves et al. 2006; beside an autoregressive decoder as by Watanabe et al.
    2017). The decoder takes it for candidates of its own.
    """

    def __init__(self, width: int, letters: int) -> None:
        super().__init__()
        self.letters = letters
        self.widen = nn.Linear(width, 2 * width)
        self.narrow = nn.Linear(2 * width, width)
        self.norm = nn.LayerNorm(width)
        self.output = nn.Linear(width, PLACES * (letters + 1))

    def forward(self, memory: Tensor) -> Tensor:
        """[windows, positions, width] to [windows, positions * PLACES, letters + 1], blank last."""
        x = memory + self.narrow(functional.gelu(self.widen(memory)))
        logits: Tensor = self.output(self.norm(x))
        return logits.reshape(len(logits), -1, self.letters + 1)


class AdapterNetwork(nn.Module):
    """A few layers of a small Whisper's decoder, looking through an adapter at the target."""

    def __init__(
        self,
        encoding_width: int,
        init: Whisper,
        pieces: Sequence[int],
        letters: int | None,
        layers: Sequence[int],
        blocks: int,
        context: int,
    ) -> None:
        """From the weights of ``init``.

        Args:
            pieces: ids of ``init``'s tokens that the head has, in its own order.
            letters: how many letters the sketch has; None for no sketch.
            layers: which of ``init``'s layers.
            context: positions of the head.
        """
        super().__init__()
        decoder = init.decoder
        self.heads = init.decoder_heads
        self.adapter = Adapter(encoding_width, init.width, blocks)
        table = torch.from_numpy(decoder.embeddings[list(pieces)].astype("float32"))
        # Not trained: what tokens mean is known, and no few hours of audio have most of them.
        self.embeddings = nn.Parameter(table, requires_grad=False)
        positions = torch.from_numpy(decoder.positions[:context].astype("float32"))
        self.positions = nn.Parameter(positions, requires_grad=False)
        self.layers = nn.ModuleList(TextLayer(decoder.layers[i], self.heads) for i in layers)
        self.norm = _norm(decoder.norm)
        self.dropout = nn.Dropout(0.1)
        self.sketch = None if letters is None else Sketch(init.width, letters)

    def memory(self, encoding: Tensor, mask: Tensor) -> Tensor:
        """What the decoder looks at; see `Adapter.forward`."""
        adapted: Tensor = self.adapter(encoding, mask)
        return adapted

    def audio(self, memory: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Keys and values of the audio for every layer."""
        return [layer.audio(memory) for layer in self.text_layers]

    @property
    def text_layers(self) -> list[TextLayer]:
        """The decoder's layers."""
        return cast(list[TextLayer], list(self.layers))

    def text(
        self,
        tokens: Tensor,
        audio: list[tuple[Tensor, Tensor]],
        mask: Tensor,
        past: TextCache | None = None,
    ) -> tuple[Tensor, TextCache]:
        """Logits [windows, tokens, pieces] of what follows each of ``tokens`` [windows, tokens]."""
        start = 0 if past is None else past[0][0].shape[2]
        x = self.embeddings[tokens] + self.positions[start : start + tokens.shape[1]]
        x = self.dropout(x)
        seen = mask[:, None, None, :]
        cache: TextCache = []
        for index, layer in enumerate(self.text_layers):
            x, kept = layer(x, audio[index], seen, None if past is None else past[index])
            cache.append(kept)
        logits: Tensor = self.norm(x) @ self.embeddings.T
        return logits, cache


class CtcNetwork(nn.Module):
    """An adapter and a sketch, without a decoder: a whole draft in one pass."""

    def __init__(self, adapter: Adapter, sketch: Sketch) -> None:
        super().__init__()
        self.adapter = adapter
        self.sketch = sketch

    def memory(self, encoding: Tensor, mask: Tensor) -> Tensor:
        """What the sketch looks at; see `Adapter.forward`."""
        adapted: Tensor = self.adapter(encoding, mask)
        return adapted


def _linear(source: Linear) -> nn.Linear:
    outputs, inputs = source.weight.shape
    layer = nn.Linear(inputs, outputs, bias=source.bias is not None)
    layer.weight.data = torch.from_numpy(source.weight.astype("float32"))
    if source.bias is not None:
        layer.bias.data = torch.from_numpy(source.bias.astype("float32"))
    return layer


def _norm(source: Norm) -> nn.LayerNorm:
    layer = nn.LayerNorm(len(source.gamma))
    layer.weight.data = torch.from_numpy(source.gamma.astype("float32"))
    layer.bias.data = torch.from_numpy(source.beta.astype("float32"))
    return layer
