"""The options that the commands have in common which turn audio into something."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = [
    "INPUT",
    "MODELS",
    "OUTPUT",
    "End",
    "Offline",
    "Pin",
    "PlanFile",
    "Quiet",
    "SoundDevice",
    "Start",
    "Threads",
]

INPUT, OUTPUT, MODELS = "Input", "Output", "Models and cores"
"""Groups of options in the help."""

SoundDevice = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|N",
        help="Sound device of --mic.",
        show_default="the system's",
        rich_help_panel=INPUT,
    ),
]

Start = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Begin here: seconds, M:SS or H:MM:SS.",
        show_default="the beginning",
        rich_help_panel=INPUT,
    ),
]

End = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Stop here.", show_default="the end", rich_help_panel=INPUT),
]

Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        help="Nothing on standard error but errors.",
        rich_help_panel=OUTPUT,
    ),
]

Threads = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Most threads of both lanes together.",
        show_default="all cores",
        rich_help_panel=MODELS,
    ),
]

Pin = Annotated[
    bool,
    typer.Option("--pin/--no-pin", help="Bind each thread to its core.", rich_help_panel=MODELS),
]

Offline = Annotated[
    bool,
    typer.Option("--offline", help="Never ask the network for a model.", rich_help_panel=MODELS),
]

PlanFile = Annotated[
    str,
    typer.Option(
        metavar="auto|FILE",
        help="auto: by what as2d profile measured here, else by rule; or a plan that it wrote. "
        "Options given beside it count.",
        rich_help_panel=MODELS,
    ),
]
