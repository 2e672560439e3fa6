"""Whole folders as they are published: graphs, tokenizer, template and configuration."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import models, pre_tokenizers, trainers

SOURCE = Path(__file__).parents[2]

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
TEKKEN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""As the published tokenizer.json files have them."""

SPECIALS = {
    "ultravox": (
        "<|begin_of_text|>",
        "<|end_of_text|>",
        "<|start_header_id|>",
        "<|end_header_id|>",
        "<|eot_id|>",
    ),
    "voxtral": ("<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AUDIO]", "[BEGIN_AUDIO]"),
}
VOCABULARY = 640
"""Tokens that the models say; of Ultravox's tokenizer the placeholder comes after them."""

# Of the kinds that the models have: one takes text with a placeholder in it, the other parts.
TEMPLATES = {
    "ultravox": (
        "{{- bos_token }}"
        "{%- for message in messages %}"
        "{{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'"
        " + message['content'] | trim + '<|eot_id|>' }}"
        "{%- endfor %}"
        "{%- if add_generation_prompt %}"
        "{{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}"
        "{%- endif %}"
    ),
    "voxtral": (
        "{{- bos_token }}"
        "{%- for message in messages %}"
        "{%- if message['role'] == 'user' %}"
        "{{- '[INST]' }}"
        "{%- if message['content'] is string %}{{- message['content'] }}{%- else %}"
        "{%- for part in message['content'] %}"
        "{%- if part['type'] == 'audio' %}{{- '[AUDIO]' }}"
        "{%- else %}{{- part['text'] }}{%- endif %}"
        "{%- endfor %}{%- endif %}"
        "{{- '[/INST]' }}"
        "{%- elif message['role'] == 'assistant' %}{{- message['content'] + eos_token }}"
        "{%- else %}{{- raise_exception('only user and assistant speak') }}"
        "{%- endif %}"
        "{%- endfor %}"
    ),
}
START = {"ultravox": "<|begin_of_text|>", "voxtral": "<s>"}
END = {"ultravox": "<|eot_id|>", "voxtral": "</s>"}
AUDIO = {"ultravox": "<|audio|>", "voxtral": "[AUDIO]"}


def train(kind: str, corpus: Iterable[str], size: int = VOCABULARY) -> Any:
    """A byte-level BPE that cuts text as the models of this kind do."""
    tokenizer = tokenizers.Tokenizer(models.BPE(ignore_merges=True))
    pattern = LLAMA3 if kind == "ultravox" else TEKKEN
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(tokenizers.Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        show_progress=False,
        special_tokens=list(SPECIALS[kind]),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(corpus, trainer)
    if kind == "ultravox":
        tokenizer.add_special_tokens([AUDIO[kind]])
    assert tokenizer.get_vocab_size() == size + (kind == "ultravox")
    return tokenizer


def write_settings(kind: str, folder: Path) -> Any:
    """All of a folder but its graphs; returns the tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    names = ("README.md", "models.toml")
    tokenizer = train(kind, [(SOURCE / name).read_text("utf-8") for name in names])
    tokenizer.save(str(folder / "tokenizer.json"))
    tokens = {"bos_token": START[kind], "eos_token": END[kind]}
    end = tokenizer.token_to_id(END[kind])
    _write(
        folder / "tokenizer_config.json",
        {**tokens, "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 4096},
    )
    (folder / "chat_template.jinja").write_text(TEMPLATES[kind], encoding="utf-8")
    placeholder = "ignore_index" if kind == "ultravox" else "audio_token_id"
    config = {
        "model_type": kind,
        placeholder: tokenizer.token_to_id(AUDIO[kind]),
        "text_config": {"model_type": "llama", "max_position_embeddings": 4096},
    }
    _write(folder / "config.json", config)
    _write(folder / "generation_config.json", {"eos_token_id": [end]})
    _write(
        folder / "preprocessor_config.json",
        {
            "feature_extractor_type": "WhisperFeatureExtractor",
            "feature_size": 128,
            "sampling_rate": 16000,
            "hop_length": 160,
            "n_fft": 400,
            "chunk_length": 30,
            "n_samples": 480000,
            "nb_max_frames": 3000,
        },
    )
    return tokenizer


def _write(path: Path, data: dict[str, Any]) -> None:
    path.write_text(json.dumps(data), encoding="utf-8")
