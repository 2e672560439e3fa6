"""Writes small random bundles for the engine's tests: the Whispers `one` and `two`, for the target
`one` the heads `adapter` and `ctc`, the language models `speaker` and `prompter`, and the audio
language models `listener` and `attender`.

usage: make_tiny_bundles.py FOLDER      (with the repository's root in PYTHONPATH)
"""

import shutil
import sys
from pathlib import Path

import numpy as np

from as2d_cli.catalog.build import Recipe, build
from as2d_cli.catalog.bundle import sha256_of
from as2d_cli.catalog.graphs.blocks import Linear, Norm
from as2d_cli.catalog.graphs.head import (
    PLACES,
    POOL,
    Adapter,
    AdapterBlock,
    AdapterHead,
    CtcHead,
    Sketch,
    write_adapter_encoder,
    write_ctc_encoder,
)
from as2d_cli.catalog.graphs.whisper import FeedForward, write_decoder
from as2d_cli.catalog.weights.whisper import read_whisper
from tests.catalog import audio_llms
from tests.catalog.language_models import VOCABULARY as WORDS
from tests.catalog.language_models import write_model
from tests.catalog.material import VOCABULARY, WIDTH, put, whisper_files

random = np.random.default_rng(0)


def linear(outputs: int, inputs: int, scale: float = 1.0) -> Linear:
    """Random weights that keep the size of what comes in."""
    weight = random.standard_normal((outputs, inputs)) * scale * inputs**-0.5
    return Linear(weight.astype(np.float32), np.zeros(outputs, dtype=np.float32))


def norm(width: int) -> Norm:
    """One that only normalises."""
    return Norm(np.ones(width, dtype=np.float32), np.zeros(width, dtype=np.float32))


def adapter() -> Adapter:
    """One block."""
    feed = FeedForward(norm(WIDTH), linear(2 * WIDTH, WIDTH), linear(WIDTH, 2 * WIDTH))
    block = AdapterBlock(linear(WIDTH, 3 * WIDTH), feed)
    return Adapter(norm(POOL * WIDTH), linear(WIDTH, POOL * WIDTH), (block,))


def sketch() -> Sketch:
    """One with a blank that is likely, so that some are there."""
    letters = tuple(range(50, 80))
    output = linear(PLACES * (len(letters) + 1), WIDTH)
    output.weight[len(letters) :: len(letters) + 1] *= 2
    parts = linear(2 * WIDTH, WIDTH), linear(WIDTH, 2 * WIDTH), norm(WIDTH), output
    return Sketch(*parts, letters)


def describe_head(folder: Path, kind: str, target: Path, changes: dict[str, str]) -> None:
    """Write the description of a head: that of its target, with what is different in it."""
    shutil.copyfile(target / "vocabulary.bin", folder / "vocabulary.bin")
    changes |= {"id": folder.name, "family": "head"}
    lines = (target / "bundle.txt").read_text(encoding="utf-8").splitlines()
    others = ("file:", "source:", "alignment_heads:")
    kept = [line for line in lines[1:] if not line.startswith(others)]
    keys = {line.partition(": ")[0]: line for line in kept}
    keys |= {key: f"{key}: {value}" for key, value in changes.items()}
    extra = [f"kind: {kind}", f"target: {target.name}"]
    extra += [f"encoding_width: {WIDTH}", f"frames_per_position: {POOL}"]
    text = "\n".join([lines[0], *keys.values(), *extra]) + "\n"
    (folder / "bundle.txt").write_text(text, encoding="utf-8")


def make(name: str, family: str, sources: dict[str, Path]) -> None:
    """Build a bundle of this name."""
    bundle = folder / name
    bundle.mkdir(parents=True, exist_ok=True)
    build(
        Recipe(
            id=name,
            role="target",
            family=family,
            languages=("en",),
            licence="MIT",
            sources=sources,
            digests={name: sha256_of(path) for name, path in sources.items()},
        ),
        bundle,
    )


def make_audio_llm(name: str, seed: int, like: Path, changes: dict[str, str]) -> None:
    """Write an audio language model with the vocabulary of ``like``; one of every pair of ways in
    which published graphs differ.
    """
    bundle = folder / name
    bundle.mkdir(parents=True, exist_ok=True)
    voxtral = changes["kind"] == "voxtral"
    audio_llms.write_features(bundle / "features.onnx")
    audio_llms.write_encoder(bundle / "audio_encoder.onnx", seed, flat=voxtral)
    audio_llms.write_embedding(bundle / "embed_tokens.onnx", seed, WORDS)
    audio_llms.write_decoder(bundle / "decoder_model_merged.onnx", seed, WORDS, fused=voxtral)
    shutil.copyfile(like / "vocabulary.bin", bundle / "vocabulary.bin")
    keys = {
        "id": name,
        "family": "audio-llm",
        "features": "features.onnx",
        "encoder": "audio_encoder.onnx",
        "embedding": "embed_tokens.onnx",
        "decoder": "decoder_model_merged.onnx",
        "vocabulary": "vocabulary.bin",
        "width": str(audio_llms.WIDTH),
        "context": str(audio_llms.CONTEXT),
        "vocabulary_size": str(WORDS),
        "ends": "260 258",
        "row_invariance": "even",
        **changes,
    }
    lines = ["as2d-bundle 1", *(f"{key}: {value}" for key, value in keys.items())]
    (bundle / "bundle.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


folder = Path(sys.argv[1])
for name in ("adapter", "ctc"):
    (folder / name).mkdir(parents=True, exist_ok=True)
for seed, name in enumerate(("one", "two")):
    sources = put(folder / "sources" / name, whisper_files(seed=seed))
    make(name, "whisper", {path.name: path for path in sources.iterdir()})
for seed, (name, architecture) in enumerate((("speaker", "qwen2"), ("prompter", "llama"))):
    file = folder / "sources" / f"{name}.gguf"
    write_model(file, architecture=architecture, seed=seed)
    make(name, "llama", {file.name: file})
make_audio_llm(
    "listener",
    4,
    folder / "speaker",
    {
        "kind": "ultravox",
        "token.audio": str(WORDS),  # no row of the embeddings
        "window_samples": "48000",
        "most_windows": "1",
        "pad_to_window": "no",
    },
)
make_audio_llm(
    "attender",
    5,
    folder / "speaker",
    {
        "kind": "voxtral",
        "token.audio": "259",
        "window_samples": "16000",
        "most_windows": "3",
        "pad_to_window": "yes",
        "caches": "in_place",
    },
)

whisper = read_whisper(folder / "sources" / "two" / "model.bin")
head = AdapterHead(
    adapter=adapter(),
    decoder=whisper.decoder,
    decoder_heads=whisper.decoder_heads,
    sketch=sketch(),
)
write_adapter_encoder(head, folder / "adapter" / "encoder.onnx")
write_decoder(head, folder / "adapter" / "decoder.onnx", [])
describe_head(folder / "adapter", "adapter", folder / "one", {})

write_ctc_encoder(CtcHead(adapter(), sketch()), VOCABULARY, folder / "ctc" / "encoder.onnx")
sizes = {"vocabulary_size": str(VOCABULARY + 1), "decoder": "encoder.onnx"}
describe_head(folder / "ctc", "ctc", folder / "one", sizes)
