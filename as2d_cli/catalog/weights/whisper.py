"""Whisper's weights out of a CTranslate2 model."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from as2d_cli.catalog.graphs.blocks import Linear, Norm
from as2d_cli.catalog.graphs.whisper import (
    Convolution,
    CrossAttention,
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    FeedForward,
    SelfAttention,
    Whisper,
)
from as2d_cli.catalog.weights.ctranslate2 import Array, CTranslate2Weights, WeightsError


def read_whisper(path: Path) -> Whisper:
    """Read the Whisper model in the CTranslate2 file ``path``.

    Raises:
        WeightsError: the file is broken or holds another kind of model.
    """
    weights = CTranslate2Weights(path)
    if weights.spec != "WhisperSpec":
        raise WeightsError(
            path, f"holds a {weights.spec} model, not Whisper", "use a Whisper conversion"
        )
    return _WhisperReader(path, weights).read()


class _WhisperReader:
    """Names of WhisperSpec (python/ctranslate2/specs/whisper_spec.py) to the builder's parts."""

    def __init__(self, path: Path, weights: CTranslate2Weights) -> None:
        self._path = path
        self._weights = weights

    def read(self) -> Whisper:
        encoder = Encoder(
            convolutions=(self._convolution("encoder/conv1"), self._convolution("encoder/conv2")),
            positions=self._weights.floats("encoder/position_encodings/encodings"),
            layers=tuple(
                EncoderLayer(self._self_attention(p), self._feed_forward(p))
                for p in self._layers("encoder")
            ),
            norm=self._norm("encoder/layer_norm"),
        )
        decoder = Decoder(
            embeddings=self._table("decoder/embeddings/weight"),
            positions=self._table("decoder/position_encodings/encodings"),
            layers=tuple(
                DecoderLayer(
                    self._self_attention(p), self._cross_attention(p), self._feed_forward(p)
                )
                for p in self._layers("decoder")
            ),
            norm=self._norm("decoder/layer_norm"),
        )
        model = Whisper(
            encoder=encoder,
            decoder=decoder,
            encoder_heads=self._weights.integer("encoder/num_heads"),
            decoder_heads=self._weights.integer("decoder/num_heads"),
        )
        self._check(model)
        return model

    def _check(self, model: Whisper) -> None:
        width = model.width
        for side, heads, layers in (
            ("encoder", model.encoder_heads, len(model.encoder.layers)),
            ("decoder", model.decoder_heads, len(model.decoder.layers)),
        ):
            if not layers:
                raise self._error(f"has no {side} layers")
            if heads < 1 or width % heads:
                raise self._error(f"has {heads} {side} heads for a width of {width}")
        if model.head_size % 16:
            size = model.head_size
            raise self._error(f"has decoder heads of {size} dimensions, not a multiple of 16")
        if model.encoder.positions.shape[1] != width:
            raise self._error("has an encoder and a decoder of different widths")

    def _error(self, problem: str) -> WeightsError:
        return WeightsError(self._path, problem, "use a CTranslate2 conversion of a Whisper model")

    def _layers(self, side: str) -> list[str]:
        prefixes: list[str] = []
        while f"{side}/layer_{len(prefixes)}/ffn/linear_0/weight" in self._weights:
            prefixes.append(f"{side}/layer_{len(prefixes)}")
        return prefixes

    def _table(self, name: str) -> Array:
        """A look-up table as published if that is float16, else as float32."""
        if name in self._weights and self._weights[name].dtype == np.float16:
            return self._weights[name]
        return self._weights.floats(name)

    def _linear(self, name: str) -> Linear:
        return Linear(self._weights.floats(f"{name}/weight"), self._weights.floats(f"{name}/bias"))

    def _norm(self, name: str) -> Norm:
        return Norm(self._weights.floats(f"{name}/gamma"), self._weights.floats(f"{name}/beta"))

    def _convolution(self, name: str) -> Convolution:
        linear = self._linear(name)
        assert linear.bias is not None
        return Convolution(linear.weight, linear.bias)

    def _self_attention(self, layer: str) -> SelfAttention:
        name = f"{layer}/self_attention"
        return SelfAttention(
            self._norm(f"{name}/layer_norm"),
            self._linear(f"{name}/linear_0"),
            self._linear(f"{name}/linear_1"),
        )

    def _cross_attention(self, layer: str) -> CrossAttention:
        name = f"{layer}/attention"
        return CrossAttention(
            self._norm(f"{name}/layer_norm"),
            self._linear(f"{name}/linear_0"),
            self._linear(f"{name}/linear_1"),
            self._linear(f"{name}/linear_2"),
        )

    def _feed_forward(self, layer: str) -> FeedForward:
        name = f"{layer}/ffn"
        return FeedForward(
            self._norm(f"{name}/layer_norm"),
            self._linear(f"{name}/linear_0"),
            self._linear(f"{name}/linear_1"),
        )
