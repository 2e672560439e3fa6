"""A trained network as a head's weights file."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from torch import Tensor, nn

from as2d_cli.catalog.bundle import Bundle
from as2d_cli.catalog.graphs.blocks import Linear, Norm
from as2d_cli.catalog.graphs.head import Adapter, AdapterBlock, AdapterHead, CtcHead, Sketch
from as2d_cli.catalog.graphs.whisper import (
    CrossAttention,
    Decoder,
    DecoderLayer,
    FeedForward,
    SelfAttention,
)
from as2d_cli.catalog.weights.head import HeadFile
from as2d_cli.distill import network as net
from as2d_cli.distill.pieces import Pieces

__all__ = ["head_file"]


def head_file(
    network: net.AdapterNetwork | net.CtcNetwork, pieces: Pieces, target: Bundle, name: str
) -> HeadFile:
    """The network, with what it takes to run it beside ``target``."""
    head: AdapterHead | CtcHead
    if isinstance(network, net.CtcNetwork):
        head = CtcHead(_adapter(network.adapter), _sketch(network.sketch, pieces))
    else:
        head = AdapterHead(
            adapter=_adapter(network.adapter),
            decoder=Decoder(
                embeddings=_array(network.embeddings),
                positions=_array(network.positions).astype(np.float16),
                layers=tuple(_layer(layer) for layer in network.text_layers),
                norm=_norm(network.norm),
            ),
            decoder_heads=network.heads,
            sketch=None if network.sketch is None else _sketch(network.sketch, pieces),
        )
    return HeadFile(
        id=name,
        target=target.id,
        encoding_width=network.adapter.encoding_width,
        languages=("en",),
        licence="MIT",
        head=head,
        pieces=pieces.vocabulary.pieces,
    )


def _adapter(adapter: net.Adapter) -> Adapter:
    blocks = (
        AdapterBlock(
            _convolution(block.convolution),
            FeedForward(_norm(block.norm), _linear(block.widen), _linear(block.narrow)),
        )
        for block in adapter.stages
    )
    return Adapter(_norm(adapter.norm), _linear(adapter.join), tuple(blocks))


def _sketch(sketch: net.Sketch, pieces: Pieces) -> Sketch:
    return Sketch(
        _linear(sketch.widen),
        _linear(sketch.narrow),
        _norm(sketch.norm),
        _linear(sketch.output),
        pieces.letters,
    )


def _layer(layer: net.TextLayer) -> DecoderLayer:
    return DecoderLayer(
        SelfAttention(
            _norm(layer.self_norm), _linear(layer.query_key_value), _linear(layer.self_output)
        ),
        CrossAttention(
            _norm(layer.cross_norm),
            _linear(layer.query),
            _linear(layer.key_value),
            _linear(layer.cross_output),
        ),
        FeedForward(_norm(layer.feed_norm), _linear(layer.widen), _linear(layer.narrow)),
    )


def _linear(layer: nn.Linear) -> Linear:
    return Linear(_array(layer.weight), _array(layer.bias))


def _convolution(layer: nn.Conv1d) -> Linear:
    """[out, in, taps] as one layer over the taps side by side."""
    weight = _array(layer.weight).transpose(0, 2, 1)
    assert layer.bias is not None
    return Linear(np.ascontiguousarray(weight).reshape(layer.out_channels, -1), _array(layer.bias))


def _norm(layer: nn.LayerNorm) -> Norm:
    return Norm(_array(layer.weight), _array(layer.bias))


def _array(values: Tensor) -> npt.NDArray[np.float32]:
    array: npt.NDArray[np.float32] = values.detach().float().numpy().copy()
    return array
