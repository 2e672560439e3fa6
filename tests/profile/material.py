"""Costs and traces that are known."""

from __future__ import annotations

from dataclasses import replace

from as2d_cli.profile.alignment import WindowTrace, perfect
from as2d_cli.profile.costs import CostModel, DraftCosts, LaneCosts, Line, TargetCosts

FLAT = {1: 0.010, 32: 0.010}
"""A step takes 10 ms, whatever is in it."""


def target(step: float = 0.010, encode: float = 0.1, window: float = 0.0) -> TargetCosts:
    return TargetCosts(Line(encode, 0.0), {1: step, 32: step}, window)


def costs(
    *,
    token: float = 0.002,
    draft_encode: float = 0.02,
    slower: float = 1.0,
    shares_encoder: bool = False,
) -> CostModel:
    """Two cores: the target on both, or one for each lane.

    Args:
        slower: how much longer the target takes beside a working drafter.
    """
    draft = DraftCosts(Line(draft_encode, 0.0), token)
    shared = LaneCosts(
        (0,),
        (1,),
        alone=target(),
        own=target(0.010, 0.1),
        beside=target(0.010 * slower, 0.1 * slower),
        draft=draft,
        draft_beside=draft,
    )
    return CostModel(
        "whisper-base",
        "x",
        shares_encoder,
        (LaneCosts((0, 1), (), target(), None), shared),
        key=KEY,
        prompt_rows=1,
        created="2026-01-02T03:04:05+00:00",
    )


KEY = {
    "machine": "a machine",
    "cores, or what limits them": "abc",
    "as2d": "1",
    "target": "whisper-base",
    "target's files": "1",
    "drafter": "x",
    "drafter's files": "2",
}


def wrong(seconds: float, tokens: int) -> WindowTrace:
    """Of a draft that is never right, not even at its end."""
    right = perfect(seconds, tokens)
    return replace(right, run=(0,) * tokens)
