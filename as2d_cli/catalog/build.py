"""Checked source files -> bundle folder, by family."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from as2d_cli.catalog.bundle import (
    AUDIO_LLM,
    HEAD,
    LLAMA,
    VOICE,
    Bundle,
    BundleError,
    FileRecord,
    record_file,
)

if TYPE_CHECKING:
    from as2d_cli.catalog.weights.head import HeadFile

# Raised whenever a builder changes what it writes: bundles of another revision are made again.
_REVISIONS = {
    "whisper": "whisper-11",
    "moonshine": "moonshine-1",
    "head": "head-3",
    VOICE: "silero-1",
    LLAMA: "llama-3",
    AUDIO_LLM: "audio-llm-2",
}
ENGLISH_ONLY = ("en",)
VOCABULARY = "vocabulary.bin"
CHAT_TEMPLATE = "chat_template.jinja"
MERGES = "merges.bin"
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
        target: of a head: id of the target it must be made for; empty for any.
    """

    id: str
    role: str
    family: str
    licence: str
    languages: tuple[str, ...]
    sources: Mapping[str, Path]
    digests: Mapping[str, str]
    target: str = ""


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
    if recipe.family == HEAD:
        return _head(recipe, folder)
    if recipe.family == VOICE:
        return _voice(recipe, folder)
    if recipe.family == LLAMA:
        return _llama(recipe, folder)
    if recipe.family == AUDIO_LLM:
        from as2d_cli.catalog.audio_llm import build_audio_llm

        return build_audio_llm(recipe, folder)
    return _whisper(recipe, folder)


def _whisper(recipe: Recipe, folder: Path) -> Bundle:
    from as2d_cli.catalog.graphs.whisper import write_decoder, write_encoder
    from as2d_cli.catalog.probe import measure_row_invariance
    from as2d_cli.catalog.tokens import read_alignment_heads, read_tokens
    from as2d_cli.catalog.weights.whisper import read_whisper

    model = read_whisper(recipe.sources["model.bin"])
    tokens = read_tokens(
        recipe.sources["tokenizer.json"], recipe.sources["config.json"], model.vocabulary_size
    )
    shape = (len(model.decoder.layers), model.decoder_heads)
    aligned = read_alignment_heads(recipe.sources["config.json"], *shape)
    model = replace(model, alignment_heads=aligned)
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
        alignment_heads=tuple(layer * model.decoder_heads + head for layer, head in aligned),
        files=records([*written, folder / VOCABULARY]),
        sources=recipe.digests,
    )
    bundle.write()
    return bundle


def _llama(recipe: Recipe, folder: Path) -> Bundle:
    from as2d_cli.catalog.graphs.llama import write_decoder
    from as2d_cli.catalog.probe import measure_row_invariance
    from as2d_cli.catalog.weights.gguf import read_llama

    (source,) = recipe.sources.values()
    model, tokenizer = read_llama(source)
    tokenizer.vocabulary.write(folder / VOCABULARY)
    (folder / CHAT_TEMPLATE).write_text(tokenizer.chat_template, encoding="utf-8")
    written = write_decoder(model, folder / "decoder.onnx")
    bundle = Bundle(
        path=folder,
        id=recipe.id,
        family=LLAMA,
        role=recipe.role,
        languages=recipe.languages,
        licence=recipe.licence,
        builder=revision(LLAMA),
        encoder="",
        decoder="decoder.onnx",
        vocabulary_file=VOCABULARY,
        layers=len(model.layers),
        heads=model.heads,
        head_size=model.head_size,
        width=model.width,
        context=model.context,
        vocabulary_size=model.vocabulary_size,
        sample_rate=SAMPLE_RATE,
        window_samples=0,
        row_invariance=measure_row_invariance(folder / "decoder.onnx"),
        tokens={"end": tokenizer.ends[0]},
        files=records([*written, folder / VOCABULARY, folder / CHAT_TEMPLATE]),
        sources=recipe.digests,
        ends=tokenizer.ends,
        special=tokenizer.special,
        pre_tokenizer=tokenizer.pre_tokenizer,
    )
    bundle.write()
    return bundle


def _voice(recipe: Recipe, folder: Path) -> Bundle:
    """The graph as published; it has no words."""
    (name,) = recipe.sources
    shutil.copyfile(recipe.sources[name], folder / name)
    bundle = Bundle(
        path=folder,
        id=recipe.id,
        family=VOICE,
        role=recipe.role,
        languages=(),
        licence=recipe.licence,
        builder=revision(VOICE),
        encoder=name,
        decoder="",
        vocabulary_file="",
        layers=0,
        heads=0,
        head_size=0,
        width=0,
        context=0,
        vocabulary_size=0,
        sample_rate=SAMPLE_RATE,
        window_samples=0,
        row_invariance="any",
        tokens={},
        files=records([folder / name]),
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
        files=records([folder / encoder, folder / decoder, folder / VOCABULARY]),
        sources=recipe.digests,
    )
    bundle.write()
    return bundle


def _head(recipe: Recipe, folder: Path) -> Bundle:
    """A head says itself which languages it knows and under which licence it is."""
    from as2d_cli.catalog.graphs.head import POOL
    from as2d_cli.catalog.vocabulary import Vocabulary
    from as2d_cli.catalog.weights.head import read_head

    (source,) = recipe.sources.values()
    file = read_head(source)
    if recipe.target not in ("", file.target):
        raise BundleError(source, f"is a head for '{file.target}', not for '{recipe.target}'")
    parts = _head_graphs(file, folder)
    Vocabulary(parts.pieces, merge_ranks=False).write(folder / VOCABULARY)
    bundle = Bundle(
        path=folder,
        id=recipe.id,
        family=HEAD,
        role="drafter",
        languages=file.languages,
        licence=file.licence,
        builder=revision(HEAD),
        encoder="encoder.onnx",
        decoder=parts.decoder,
        vocabulary_file=VOCABULARY,
        layers=parts.layers,
        heads=parts.heads,
        head_size=parts.head_size,
        width=len(file.head.adapter.join.weight),
        context=parts.context,
        vocabulary_size=len(parts.pieces),
        sample_rate=SAMPLE_RATE,
        window_samples=WINDOW_SAMPLES,
        row_invariance=parts.row_invariance,
        tokens=parts.tokens,
        suppress=parts.suppress,
        files=records([*parts.written, folder / VOCABULARY]),
        sources=recipe.digests,
        kind=file.kind,
        target=file.target,
        encoding_width=file.encoding_width,
        frames_per_position=POOL,
    )
    bundle.write()
    return bundle


@dataclass(frozen=True, kw_only=True)
class _HeadParts:
    """What is different from one kind of head to the other."""

    written: Sequence[Path]
    pieces: tuple[bytes, ...]
    decoder: str
    layers: int = 0
    heads: int = 0
    head_size: int = 0
    context: int = 0
    # Nothing is fed to a head that says all at once, so nothing can depend on the number of rows.
    row_invariance: str = "any"
    tokens: Mapping[str, int] = field(default_factory=dict)
    suppress: tuple[int, ...] = ()


def _head_graphs(file: HeadFile, folder: Path) -> _HeadParts:
    from as2d_cli.catalog.graphs.head import AdapterHead, write_adapter_encoder, write_ctc_encoder
    from as2d_cli.catalog.graphs.whisper import write_decoder
    from as2d_cli.catalog.probe import measure_row_invariance
    from as2d_cli.catalog.weights.head import SPECIALS

    encoder, decoder = folder / "encoder.onnx", folder / "decoder.onnx"
    head = file.head
    if not isinstance(head, AdapterHead):
        blank = b""
        return _HeadParts(
            written=write_ctc_encoder(head, len(file.pieces), encoder),
            pieces=(*file.pieces, blank),
            decoder=encoder.name,
        )
    written = [*write_adapter_encoder(head, encoder), *write_decoder(head, decoder, [])]
    first = head.vocabulary_size - len(SPECIALS)
    tokens = {name: first + index for index, name in enumerate(SPECIALS)}
    return _HeadParts(
        written=written,
        pieces=file.pieces,
        decoder=decoder.name,
        layers=len(head.decoder.layers),
        heads=head.decoder_heads,
        head_size=head.head_size,
        context=head.context,
        row_invariance=measure_row_invariance(decoder),
        tokens=tokens,
        # A text begins after these and never says them.
        suppress=(tokens["start"], tokens["no_timestamps"]),
    )


def records(paths: Sequence[Path]) -> tuple[FileRecord, ...]:
    """The records of existing files, in this order."""
    return tuple(record_file(path) for path in paths)
