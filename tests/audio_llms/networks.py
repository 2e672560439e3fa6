"""Small random models of the architectures of Ultravox and Voxtral, by `transformers`.

Both are a Whisper encoder, a projector and a Llama. `transformers` has all of Voxtral; of Ultravox
it has the encoder and the language model, and the projector between them is written here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
import transformers
from torch import Tensor, nn
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    VoxtralConfig,
    VoxtralEncoderConfig,
    VoxtralForConditionalGeneration,
    WhisperConfig,
)
from transformers.models.llama.modeling_llama import LlamaRMSNorm
from transformers.models.whisper.modeling_whisper import WhisperEncoder

BINS = 128
STACKED = 8
"""Lines of Ultravox's encoder that become one."""

_SCALES = {"ultravox": 6.0, "voxtral": 10.0}
"""Weights are so much larger than a network begins with, that what is said depends on what is heard
and does not go in circles."""


def _text_config(vocabulary: int) -> LlamaConfig:
    return LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        max_position_embeddings=4096,
        rope_theta=10000.0,
        tie_word_embeddings=False,
        attn_implementation="eager",
    )


class Network(nn.Module, ABC):
    """What is exported, and what says which tokens are right."""

    kind: str
    audio_token: int
    config: Any

    @property
    @abstractmethod
    def language(self) -> Any:
        """The language model, with its head."""

    @abstractmethod
    def hear(self, features: Tensor) -> Tensor:
        """[1, bins, frames] -> [1, lines, width]."""

    @abstractmethod
    def answer(self, ids: Sequence[int], features: Tensor, tokens: int) -> list[int]:
        """The first `tokens` that are said to a prompt whose placeholders stand for `features`
        [windows, bins, frames], whatever they are.
        """


class Voxtral(Network):
    """All of it is in `transformers`."""

    kind = "voxtral"

    def __init__(self, vocabulary: int, audio_token: int) -> None:
        super().__init__()
        audio = VoxtralEncoderConfig(
            num_mel_bins=BINS,
            hidden_size=32,
            intermediate_size=128,  # Four lines of the encoder become one.
            num_hidden_layers=2,
            num_attention_heads=2,
            attn_implementation="eager",
        )
        config = VoxtralConfig(
            audio_config=audio,
            text_config=_text_config(vocabulary),
            audio_token_id=audio_token,
            projector_hidden_act="gelu",
        )
        config._attn_implementation = "eager"
        self.audio_token = audio_token
        self.whole = VoxtralForConditionalGeneration(config).eval()
        self.config = config

    @property
    def language(self) -> Any:
        return self.whole

    def hear(self, features: Tensor) -> Tensor:
        lines: Tensor = self.whole.get_audio_features(features, return_dict=True).pooler_output
        return lines[None]

    def answer(self, ids: Sequence[int], features: Tensor, tokens: int) -> list[int]:
        prompt = torch.tensor([list(ids)])
        said = self.whole.generate(
            input_ids=prompt,
            attention_mask=torch.ones_like(prompt),
            input_features=features,
            **_greedy(tokens),
        )
        return [int(token) for token in said[0, len(ids) :]]


class Ultravox(Network):
    """Encoder and language model are those of `transformers`."""

    kind = "ultravox"

    def __init__(self, vocabulary: int, audio_token: int, *, spare_line: bool = False) -> None:
        """`spare_line`: the projector adds a line of padding, as the published export does."""
        super().__init__()
        audio = WhisperConfig(
            num_mel_bins=BINS,
            d_model=32,
            encoder_layers=2,
            encoder_attention_heads=2,
            encoder_ffn_dim=64,
            attn_implementation="eager",
        )
        self.audio_token = audio_token
        self.config = _text_config(vocabulary)
        self.encoder = WhisperEncoder(audio).eval()
        self.projector = _Projector(audio.d_model, self.config.hidden_size, spare_line).eval()
        self.text = LlamaForCausalLM(self.config).eval()

    @property
    def language(self) -> Any:
        return self.text

    def hear(self, features: Tensor) -> Tensor:
        # `WhisperEncoder` itself takes half a minute and nothing else.
        encoder = self.encoder
        x = nn.functional.gelu(encoder.conv1(features))
        x = nn.functional.gelu(encoder.conv2(x)).transpose(1, 2)
        x = x + encoder.embed_positions.weight[: x.shape[1]]
        for layer in encoder.layers:
            x = layer(x, None)
            x = x[0] if isinstance(x, tuple) else x
        lines: Tensor = self.projector(encoder.layer_norm(x))
        return lines

    def answer(self, ids: Sequence[int], features: Tensor, tokens: int) -> list[int]:
        prompt = torch.tensor(list(ids))
        places = prompt == self.audio_token
        with torch.no_grad():
            embedded = self.text.get_input_embeddings()(torch.where(places, 0, prompt))
            embedded[places] = torch.cat([self.hear(window[None])[0] for window in features])
            said = self.text.generate(
                inputs_embeds=embedded[None],
                attention_mask=torch.ones(1, len(ids), dtype=torch.long),
                **_greedy(tokens),
            )
        return [int(token) for token in said[0]]


class _Projector(nn.Module):
    """Eight lines become one, of the language model's width (v0.5: norms before and in the middle,
    a gated unit between two linear layers).
    """

    def __init__(self, width: int, out: int, spare_line: bool) -> None:
        super().__init__()
        self._spare = STACKED if spare_line else 0
        hidden = 96
        self.before = LlamaRMSNorm(width * STACKED)
        self.widen = nn.Linear(width * STACKED, hidden, bias=False)
        self.middle = LlamaRMSNorm(hidden // 2)
        self.narrow = nn.Linear(hidden // 2, out, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        lines = x.shape[1]
        missing = (lines + STACKED - 1) // STACKED * STACKED - lines + self._spare
        x = nn.functional.pad(x, (0, 0, 0, missing))
        x = x.reshape(1, -1, x.shape[2] * STACKED)
        x, gate = self.widen(self.before(x)).chunk(2, dim=-1)
        lines_out: Tensor = self.narrow(self.middle(nn.functional.silu(gate) * x))
        return lines_out


def _greedy(tokens: int) -> dict[str, Any]:
    return {
        "do_sample": False,
        "num_beams": 1,
        "max_new_tokens": tokens,
        "min_new_tokens": tokens,  # no end token ends it
        "eos_token_id": None,
        "pad_token_id": 0,
    }


def make(kind: str, vocabulary: int, audio_token: int, *, spare_line: bool = False) -> Network:
    """The same random weights every time."""
    transformers.set_seed(1)
    network: Network
    if kind == "voxtral":
        network = Voxtral(vocabulary, audio_token)
    else:
        network = Ultravox(vocabulary, audio_token, spare_line=spare_line)
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.dim() > 1:
                parameter.mul_(_SCALES[kind])
    return network.eval()
