"""Checked source files -> bundle folder, by family."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from as2d_cli.catalog.bundle import Bundle, FileRecord, record_file

# Raised whenever a builder changes what it writes: bundles of another revision are made again.
_REVISIONS = {"whisper": "whisper-10", "moonshine": "moonshine-1"}
ENGLISH_ONLY = ("en",)
VOCABULARY = "vocabulary.bin"
# Whisper's figures; Moonshine has no fixed window or context, and shares them as upper limits.
SAMPLE_RATE = 16_000
WINDOW_SAMPLES = 480_000
CONTEXT = 448


@dataclass(frozen=True)
class Recipe:
    """What a bundle is called and made from.

    Attributes:
        sources: path of each source file by its name in the catalogue.
        digests: SHA-256 (hex) of each, as checked.
    """

    id: str
    role: str
    family: str
    licence: str
    languages: tuple[str, ...]
    sources: Mapping[str, Path]
    digests: Mapping[str, str]


def revision(family: str) -> str:
    """Revision of the builder of a family, as ``bundle.txt`` records it."""
    return _REVISIONS[family]


def build(recipe: Recipe, folder: Path) -> Bundle:
    """Make the bundle in the existing, empty ``folder``.

    Raises:
        As2dError: a source file is broken or of another kind than the recipe says.
    """
    if recipe.family == "moonshine":
        return _moonshine(recipe, folder)
    return _whisper(recipe, folder)


def _whisper(recipe: Recipe, folder: Path) -> Bundle:
    from as2d_cli.catalog.graphs.whisper import write_decoder, write_encoder
    from as2d_cli.catalog.probe import measure_row_invariance
    from as2d_cli.catalog.tokens import read_tokens
    from as2d_cli.catalog.weights.whisper import read_whisper

    model = read_whisper(recipe.sources["model.bin"])
    tokens = read_tokens(
        recipe.sources["tokenizer.json"], recipe.sources["config.json"], model.vocabulary_size
    )
    tokens.vocabulary.write(folder / VOCABULARY)
    languages = list(tokens.languages.values())
    written = [
        *write_encoder(model, folder / "encoder.onnx"),
        *write_decoder(model, folder / "decoder.onnx", languages),
    ]
    bundle = Bundle(
        path=folder,
        id=recipe.id,
        family="whisper",
        role=recipe.role,
        languages=tuple(tokens.languages) or ENGLISH_ONLY,
        licence=recipe.licence,
        builder=revision("whisper"),
        encoder="encoder.onnx",
        decoder="decoder.onnx",
        vocabulary_file=VOCABULARY,
        layers=len(model.decoder.layers),
        heads=model.decoder_heads,
        head_size=model.head_size,
        width=model.width,
        context=model.context,
        vocabulary_size=model.vocabulary_size,
        sample_rate=SAMPLE_RATE,
        window_samples=WINDOW_SAMPLES,
        row_invariance=measure_row_invariance(folder / "decoder.onnx"),
        tokens=tokens.names,
        language_tokens=tokens.languages,
        suppress=tokens.suppress,
        begin_suppress=tokens.begin_suppress,
        files=_records([*written, folder / VOCABULARY]),
        sources=recipe.digests,
    )
    bundle.write()
    return bundle


def _moonshine(recipe: Recipe, folder: Path) -> Bundle:
    from as2d_cli.catalog.probe import moonshine_shapes
    from as2d_cli.catalog.vocabulary import from_moonshine

    vocabulary = from_moonshine(recipe.sources["tokenizer.bin"])
    vocabulary.write(folder / VOCABULARY)
    graphs = sorted(name for name in recipe.sources if name != "tokenizer.bin")
    decoder, encoder = graphs
    for name in graphs:
        shutil.copyfile(recipe.sources[name], folder / name)
    shapes = moonshine_shapes(folder / encoder, folder / decoder)
    bundle = Bundle(
        path=folder,
        id=recipe.id,
        family="moonshine",
        role=recipe.role,
        languages=recipe.languages,
        licence=recipe.licence,
        builder=revision("moonshine"),
        encoder=encoder,
        decoder=decoder,
        vocabulary_file=VOCABULARY,
        layers=shapes.layers,
        heads=shapes.heads,
        head_size=shapes.head_size,
        width=shapes.width,
        context=CONTEXT,
        vocabulary_size=shapes.vocabulary_size,
        sample_rate=SAMPLE_RATE,
        window_samples=WINDOW_SAMPLES,
        # The published graph quantises activations with one scale for all rows.
        row_invariance="none",
        # <s> and </s> of every Moonshine tokenizer.
        tokens={"start": 1, "end": 2},
        files=_records([folder / encoder, folder / decoder, folder / VOCABULARY]),
        sources=recipe.digests,
    )
    bundle.write()
    return bundle


def _records(paths: Sequence[Path]) -> tuple[FileRecord, ...]:
    return tuple(record_file(path) for path in paths)
