"""Chance that depends on a name and a seed alone, and so is the same in every run."""

from __future__ import annotations

import hashlib

import numpy as np

__all__ = ["chance_of", "rank"]


def rank(name: str, seed: int) -> bytes:
    """A place in a random order."""
    return hashlib.sha256(f"{seed}/{name}".encode("utf-8", "surrogateescape")).digest()


def chance_of(name: str, seed: int) -> np.random.Generator:
    """A generator of its own for every name."""
    return np.random.default_rng(int.from_bytes(rank(name, seed)[:8], "little"))
