"""The formats of answers, by name: all that a command line needs to know of them."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["AnswerFormat"]


class AnswerFormat(StrEnum):
    """What ``ask --format`` takes."""

    TEXT = "text"
    JSON = "json"
    JSONL = "jsonl"
