"""A small network -> a folder in the layout of published audio language models.

The graphs have the names, inputs and outputs of those that transformers.js runs: ``audio_encoder``,
``embed_tokens``, ``decoder_model_merged``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import torch
from torch import Tensor, nn
from transformers import DynamicCache

from tests.audio_llms.networks import BINS, Network


class _Hear(nn.Module):
    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, features: Tensor) -> Tensor:
        return self.network.hear(features)


class _Decode(nn.Module):
    """One step over some rows, after what is cached."""

    def __init__(self, network: Network, *, positions: bool) -> None:
        super().__init__()
        language = network.language
        self.model = language.model.language_model if network.kind == "voxtral" else language.model
        self.head = language.lm_head
        self.takes_positions = positions

    def forward(
        self,
        inputs_embeds: Tensor,
        attention_mask: Tensor,
        position_ids: Tensor | None,
        past: list[Tensor],
    ) -> tuple[Tensor, ...]:
        rows, seen = inputs_embeds.shape[1], attention_mask.shape[1]
        where = torch.arange(rows)[:, None] + past[0].shape[2]
        hidden = torch.arange(seen)[None, :] > where
        mask = torch.zeros(rows, seen).masked_fill(hidden, torch.finfo(torch.float32).min)
        if position_ids is None:
            position_ids = where.T
        pairs = [(past[i], past[i + 1]) for i in range(0, len(past), 2)]
        cache = DynamicCache(pairs)
        out = self.model(
            inputs_embeds=inputs_embeds,
            attention_mask=mask[None, None],
            position_ids=position_ids,
            cache=cache,
            use_cache=True,
        )
        present = [part for layer in cache.layers for part in (layer.keys, layer.values)]
        return (self.head(out.last_hidden_state), *present)


def write_graphs(network: Network, folder: Path, *, positions: bool = True) -> None:
    """Args: positions: the decoder takes ``position_ids``."""
    folder.mkdir(parents=True, exist_ok=True)
    width = network.config.get_text_config().hidden_size
    frames = 3000 if network.kind == "voxtral" else 400
    name = "input_features" if network.kind == "voxtral" else "audio_values"
    _export(
        _Hear(network),
        (torch.randn(1, BINS, frames),),
        folder / "audio_encoder.onnx",
        [name],
        ["audio_features"],
        {} if network.kind == "voxtral" else {name: {2: "frames"}},
    )
    _export(
        network.language.get_input_embeddings(),
        (torch.zeros(1, 5, dtype=torch.long),),
        folder / "embed_tokens.onnx",
        ["input_ids"],
        ["inputs_embeds"],
        {"input_ids": {1: "rows"}},
    )
    text = network.config.get_text_config()
    shape = (1, text.num_key_value_heads, 3, text.head_dim)
    past = [torch.randn(shape) for _ in range(2 * text.num_hidden_layers)]
    kinds = [f"{i}.{part}" for i in range(text.num_hidden_layers) for part in ("key", "value")]
    names = [f"past_key_values.{kind}" for kind in kinds]
    inputs = ["inputs_embeds", "attention_mask", *["position_ids"] * positions, *names]
    _export(
        _Decode(network, positions=positions),
        (
            torch.randn(1, 5, width),
            torch.ones(1, 8, dtype=torch.long),
            torch.arange(3, 8)[None] if positions else None,
            past,
        ),
        folder / "decoder_model_merged.onnx",
        inputs,
        ["logits", *(f"present.{kind}" for kind in kinds)],
        {
            "inputs_embeds": {1: "rows"},
            "attention_mask": {1: "seen"},
            "position_ids": {1: "rows"},
            **{name: {2: "past"} for name in names},
        },
    )


def _export(
    module: nn.Module,
    arguments: tuple[Any, ...],
    path: Path,
    inputs: list[str],
    outputs: list[str],
    axes: dict[str, dict[int, str]],
) -> None:
    with torch.no_grad():
        torch.onnx.export(
            module,
            arguments,
            str(path),
            input_names=inputs,
            output_names=outputs,
            dynamic_axes=axes,
            opset_version=17,
            dynamo=False,
        )


def move_weights_out(graph: Path) -> None:
    """Puts all weights of a graph into files beside it, as large models are published."""
    model = onnx.load_model(graph)
    onnx.save_model(
        model,
        graph,
        save_as_external_data=True,
        location=f"{graph.name}_data",
        size_threshold=256,
    )
