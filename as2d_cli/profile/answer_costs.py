"""What answering costs on one machine with one pair of language models."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from as2d_cli.decoding.costs import RunCosts
from as2d_cli.methods import SPLIT

__all__ = ["FORMAT", "FREE", "SOURCE", "AnswerCosts", "Trial"]

FORMAT = "as2d-answer-costs-1"

FREE, SOURCE = "free-form", "source-repeating"
"""Kinds of answers: in the model's own words, and in those of the transcript."""


@dataclass(frozen=True)
class Trial:
    """One method's answer to a question of one kind, prompt included.

    Attributes:
        seconds: the median of all rounds.
        spread: how far that may be off, as a share of it.
        length: tokens committed in a step.
    """

    seconds: float
    spread: float
    length: float


@dataclass(frozen=True)
class AnswerCosts:
    """All of one machine with one pair of models.

    Attributes:
        target, drafter: ids; `drafter` None for none.
        cores: of the target where it is alone.
        split: cores of both lanes where they work at the same time; None without a drafter, or
            where there is one core only.
        steps: seconds of a forward by its rows, on all cores.
        beside: the same on the target's share of the cores, while the drafter works; may be empty.
        prompt: seconds for each token of a prompt.
        draft_token, draft_beside: seconds for each token of a draft on all cores while the target
            rests, and on the drafter's share while it works; None where that was not measured.
        draft_prompt: seconds of the drafter for each token of a prompt, on all cores.
        trials: by method, and by kind of answer.
        key: what the numbers belong to, by name. Others are stale.
        created: ISO 8601.
    """

    target: str
    drafter: str | None
    cores: tuple[int, ...]
    split: tuple[tuple[int, ...], tuple[int, ...]] | None
    steps: Mapping[int, float]
    beside: Mapping[int, float]
    prompt: float
    draft_token: float | None
    draft_beside: float | None
    draft_prompt: float | None
    trials: Mapping[str, Mapping[str, Trial]]
    key: Mapping[str, Any] = field(default_factory=dict)
    created: str = ""

    def run_costs(self, method: str) -> RunCosts:
        """What the engine's budget policy needs of it. No audio is encoded."""
        beside = dict(self.beside) if method in SPLIT else {}
        return RunCosts(dict(self.steps), beside, 0.0, 0.0)

    def as_json(self) -> dict[str, Any]:
        """As values that JSON knows."""
        return {"format": FORMAT, **asdict(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> AnswerCosts:
        """The reverse of `as_json`.

        Raises:
            ValueError: it is not one, or of another format.
        """
        if data.get("format") != FORMAT:
            raise ValueError(f"is not of the format {FORMAT}")
        try:
            fields = {name: data[name] for name in cls.__dataclass_fields__}
            split = data["split"]
            trials = {
                method: {kind: _trial(kinds[kind]) for kind in (FREE, SOURCE)}
                for method, kinds in data["trials"].items()
            }
            trials["target"]  # what all others are compared with
            return cls(
                **fields
                | {
                    "cores": tuple(data["cores"]),
                    "split": None if split is None else (tuple(split[0]), tuple(split[1])),
                    "steps": _steps(data["steps"]),
                    "beside": _steps(data["beside"]) if data["beside"] else {},
                    "trials": trials,
                }
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"is broken ({error})") from error


def _trial(data: Mapping[str, Any]) -> Trial:
    trial = Trial(*(float(data[name]) for name in Trial.__dataclass_fields__))
    if not (0 < trial.seconds < math.inf and trial.spread >= 0 and trial.length >= 0):
        raise TypeError("an answer that cannot be")
    return trial


def _steps(data: Mapping[str, Any]) -> dict[int, float]:
    steps = {int(rows): float(seconds) for rows, seconds in data.items()}
    if not steps or not all(0 < seconds < math.inf for seconds in steps.values()):
        raise TypeError("steps that cannot be")
    return steps
