"""The formats by name."""

from __future__ import annotations

from enum import StrEnum

from as2d_cli.output.renderer import Renderer, Writer

__all__ = ["Format", "renderer"]


class Format(StrEnum):
    """What ``--format`` takes."""

    TXT = "txt"
    JSON = "json"


def renderer(format: Format, out: Writer, *, tokens: bool = False) -> Renderer:
    """The renderer of `format`, writing to `out`; `tokens`: with ids, where there is a place."""
    match format:
        case Format.TXT:
            from as2d_cli.output.txt import TextRenderer

            return TextRenderer(out)
        case Format.JSON:
            from as2d_cli.output.json_format import JsonRenderer

            return JsonRenderer(out, tokens=tokens)
