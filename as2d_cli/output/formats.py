"""The formats by name."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from as2d_cli.output.renderer import Renderer, Writer

if TYPE_CHECKING:
    from as2d_cli.output.cues import CueRules

__all__ = ["JOINABLE", "Format", "format_of", "renderer"]


class Format(StrEnum):
    """What ``--format`` takes; each is the suffix of its files, too."""

    TXT = "txt"
    SRT = "srt"
    VTT = "vtt"
    TSV = "tsv"
    JSON = "json"
    JSONL = "jsonl"


JOINABLE = (Format.TXT, Format.JSON, Format.JSONL)
"""Formats in which several inputs can follow each other in one stream."""


def format_of(name: str) -> Format | None:
    """The format that a file's name asks for by its suffix."""
    return next((format for format in Format if name.endswith(f".{format}")), None)


def renderer(
    format: Format,
    out: Writer,
    *,
    tokens: bool = False,
    words: bool = False,
    rules: CueRules | None = None,
) -> Renderer:
    """The renderer of `format`, writing to `out`.

    Args:
        tokens, words: with ids, and with when words were spoken, where there is a place for them.
        rules: of subtitles; the usual ones if left out.
    """
    match format:
        case Format.TXT:
            from as2d_cli.output.txt import TextRenderer

            return TextRenderer(out)
        case Format.SRT | Format.VTT:
            from as2d_cli.output.cues import CueRules as Rules
            from as2d_cli.output.subtitles import SrtRenderer, VttRenderer

            kind = SrtRenderer if format is Format.SRT else VttRenderer
            return kind(out, rules or Rules())
        case Format.TSV:
            from as2d_cli.output.tsv import TsvRenderer

            return TsvRenderer(out)
        case Format.JSON:
            from as2d_cli.output.json_format import JsonRenderer

            return JsonRenderer(out, tokens=tokens, words=words)
        case Format.JSONL:
            from as2d_cli.output.jsonl import JsonLinesRenderer

            return JsonLinesRenderer(out, tokens=tokens, words=words)
