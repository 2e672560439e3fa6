"""A published audio language model -> bundle: its graphs, and one of our own for the features."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from as2d_cli.catalog.build import (
    CHAT_TEMPLATE,
    MERGES,
    SAMPLE_RATE,
    VOCABULARY,
    WINDOW_SAMPLES,
    Recipe,
    records,
    revision,
)
from as2d_cli.catalog.bundle import AUDIO_LLM, DESCRIPTION, Bundle, BundleError
from as2d_cli.catalog.graphs.features import write_features
from as2d_cli.catalog.graphs.mel import HOP
from as2d_cli.catalog.published import (
    GENERATION,
    GRAPHS,
    SETTINGS,
    Facts,
    caches_in_place,
    read_facts,
)
from as2d_cli.catalog.published_probe import decoder_shapes, encoder_lines, measure_decoder_rows
from as2d_cli.catalog.tokenizer_json import (
    PLACEHOLDERS,
    PublishedTokenizer,
    read_published_tokenizer,
)

_FEATURES = "features.onnx"
_FEATURES_WEIGHTS = "features.data"
_OWN = (DESCRIPTION, VOCABULARY, CHAT_TEMPLATE, MERGES, _FEATURES, _FEATURES_WEIGHTS)
_MOST_WINDOWS = 1 << 12
"""What the engine takes."""
_MOST_CONTEXT = 8192
"""Published decoders give all that is cached back at every step; of one with 3 billion weights that
is a quarter of a megabyte a position."""


def build_audio_llm(recipe: Recipe, folder: Path) -> Bundle:
    """Make the bundle in the existing, empty ``folder``.

    Raises:
        As2dError: a source file is broken or of another kind than the recipe says.
    """
    files = recipe.sources
    facts = read_facts(files)
    graphs = [_linked(path, folder) for name, path in files.items() if name not in SETTINGS]
    encoder, embedding, decoder = (
        next(path for path in graphs if path.name.startswith(graph) and path.suffix == ".onnx")
        for graph in GRAPHS
    )
    shapes = decoder_shapes(decoder)
    tokenizer = read_published_tokenizer(files, shapes.vocabulary_size)
    vocabulary = tokenizer.vocabulary
    ends = _ends(files.get(GENERATION, decoder), facts, tokenizer, shapes.vocabulary_size)
    positions = _positions(facts, encoder, shapes.width)
    context = min(facts.context, _MOST_CONTEXT)
    special = dict(tokenizer.special)
    tokens = {"end": ends[0], "audio": _placeholder(facts, special, vocabulary.pieces)}
    if tokenizer.start is not None:
        tokens["start"] = tokenizer.start
    written = write_features(facts.bins, folder / _FEATURES)
    vocabulary.write(folder / VOCABULARY)
    (folder / CHAT_TEMPLATE).write_text(tokenizer.chat_template, encoding="utf-8")
    written += [folder / VOCABULARY, folder / CHAT_TEMPLATE]
    if vocabulary.merges:
        vocabulary.write_merges(folder / MERGES)
        written.append(folder / MERGES)
    bundle = Bundle(
        path=folder,
        id=recipe.id,
        family=AUDIO_LLM,
        role=recipe.role,
        languages=recipe.languages,
        licence=recipe.licence,
        builder=revision(AUDIO_LLM),
        encoder=encoder.name,
        decoder=decoder.name,
        vocabulary_file=VOCABULARY,
        layers=shapes.layers,
        heads=shapes.heads,
        head_size=shapes.head_size,
        width=shapes.width,
        context=context,
        vocabulary_size=shapes.vocabulary_size,
        sample_rate=SAMPLE_RATE,
        window_samples=WINDOW_SAMPLES,
        row_invariance=measure_decoder_rows(decoder),
        tokens=tokens,
        files=records([*graphs, *written]),
        sources=recipe.digests,
        kind=facts.kind,
        ends=ends,
        special=special,
        pre_tokenizer=tokenizer.pre_tokenizer,
        embedding=embedding.name,
        features=_FEATURES,
        pad_to_window=facts.kind == "voxtral",
        samples_per_position=positions.samples,
        spare_positions=positions.spare,
        most_windows=_most_windows(context, positions),
        merges=MERGES if vocabulary.merges else "",
        caches="in_place" if caches_in_place(decoder) else "grown",
    )
    bundle.write()
    return bundle


def _linked(source: Path, folder: Path) -> Path:
    """A file that may have gigabytes, in the bundle; without a copy where the file system can."""
    path = folder / source.name
    # What is written over a link is written into the user's own file.
    if source.name in _OWN or path.exists():
        raise BundleError(
            source,
            "has the name of another file of the bundle",
            "give a folder as it was published",
        )
    try:
        path.hardlink_to(source.resolve())
    except OSError:
        shutil.copyfile(source, path)
    return path


def _ends(path: Path, facts: Facts, tokenizer: PublishedTokenizer, size: int) -> tuple[int, ...]:
    """All of `size` tokens that end an answer; the one that templates know first, if it is among
    them.
    """
    own = [] if tokenizer.end is None else [tokenizer.end]
    ends = [token for token in dict.fromkeys(facts.ends or own) if token < size]
    if not ends:
        raise BundleError(path, "no file beside it tells which token ends an answer")
    return tuple(sorted(ends, key=lambda token: token not in own))


@dataclass(frozen=True)
class _Positions:
    """How many samples a line of an audio encoder stands for, and lines beyond these of a run."""

    samples: int
    spare: int


def _most_windows(context: int, positions: _Positions) -> int:
    """More than fit a context, since the last one may be short: no prompt that fits is refused."""
    each = max(1, WINDOW_SAMPLES // positions.samples + positions.spare)
    return min(_MOST_WINDOWS, -(-context // each))


def _positions(facts: Facts, encoder: Path, width: int) -> _Positions:
    if facts.kind == "voxtral":
        (lines,) = encoder_lines(encoder, facts.bins, [WINDOW_SAMPLES // HOP], width)
        if lines == 0 or WINDOW_SAMPLES % lines:
            raise BundleError(encoder, f"gives {lines} lines for half a minute, not Voxtral's")
        return _Positions(WINDOW_SAMPLES // lines, 0)
    # Its first layers make one of two frames. Published graphs add a line of padding to what the
    # processor in fixie-ai/ultravox counts.
    frames = (100, 333)
    found = encoder_lines(encoder, facts.bins, frames, width)
    spare = {n - -(-f // (2 * facts.stack)) for n, f in zip(found, frames, strict=True)}
    if len(spare) != 1 or not spare <= {0, 1}:
        raise BundleError(encoder, f"gives {found[0]} lines for a second, not Ultravox's")
    return _Positions(2 * facts.stack * HOP, spare.pop())


def _placeholder(facts: Facts, special: dict[int, str], pieces: Sequence[bytes]) -> int:
    """The token that stands for a line of audio in prompts, and never for text. Where the files
    have none, one is added to `special`, beyond all that there are.
    """
    text = PLACEHOLDERS[facts.kind]
    token = next((token for token, name in special.items() if name == text), facts.audio_token)
    if token is None or (token < len(pieces) and pieces[token]):
        token = max([len(pieces) - 1, *special]) + 1
    special[token] = text
    return token
