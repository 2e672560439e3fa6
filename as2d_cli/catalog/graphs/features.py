"""The graph that makes a published audio encoder's features."""

from __future__ import annotations

from pathlib import Path

from as2d_cli.catalog.graphs.blocks import FLOAT, GraphBuilder
from as2d_cli.catalog.graphs.whisper import log_mel


def write_features(bins: int, path: Path) -> list[Path]:
    """Write the graph of Whisper's log-mel features; returns the files written.

    Input ``audio`` float32 [1, samples], 16 kHz, a multiple of 160, at least 320. Output
    ``features`` float32 [1, bins, samples / 160], as Whisper's feature extractor has them of this
    audio by itself.
    """
    graph = GraphBuilder("audio_features")
    audio = graph.input("audio", FLOAT, [1, "samples"])
    graph.node("Transpose", [log_mel(graph, audio, bins)], ["features"], perm=[0, 2, 1])
    graph.output("features", FLOAT, [1, bins, "frames"])
    return graph.save(path)
