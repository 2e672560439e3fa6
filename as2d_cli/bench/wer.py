"""Word error rate, where the packages that count it are installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable
from functools import lru_cache

__all__ = ["HOW_TO_INSTALL", "can_count", "word_error_rate"]

HOW_TO_INSTALL = "pip install 'as2d[bench]'"

_WITHOUT_SPACES = frozenset(("ja", "lo", "my", "th", "yue", "zh"))
"""Nothing parts the words there, so letters are counted (Radford et al. 2022, section 4.4)."""


def can_count() -> bool:
    """Whether the packages are here."""
    return all(importlib.util.find_spec(name) for name in ("jiwer", "whisper_normalizer"))


def word_error_rate(texts: Iterable[tuple[str, str, str]]) -> float | None:
    """Substituted, missing and surplus words over the words that were spoken, of all texts pooled.

    English is normalised by Whisper's English rules, every other language by its basic ones.

    Args:
        texts: language, what was spoken, what was understood.

    Returns:
        None where nothing was spoken.
    """
    import jiwer

    pairs = []
    for language, spoken, understood in texts:
        normal = _normaliser(language)
        if reference := normal(spoken).strip():
            pairs.append((reference, normal(understood).strip()))
    if not pairs:
        return None
    return float(jiwer.wer([p[0] for p in pairs], [p[1] for p in pairs]))


@lru_cache
def _normaliser(language: str) -> Callable[[str], str]:
    if language == "en":
        from whisper_normalizer.english import EnglishTextNormalizer

        return EnglishTextNormalizer()  # type: ignore[no-any-return]
    from whisper_normalizer.basic import BasicTextNormalizer

    return BasicTextNormalizer(split_letters=language in _WITHOUT_SPACES)  # type: ignore[no-any-return]
