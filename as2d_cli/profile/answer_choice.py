"""The method that answers are made by: the one that was measured to be the fastest on such answers
as were asked for of late.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from as2d_cli.profile.answer_costs import FREE, SOURCE, AnswerCosts, Trial
from as2d_cli.profile.recent import RecentAnswer

__all__ = ["AnswerChoice", "choose", "repeating_share"]

_SAFE = ("target", "lookup")
"""Those that cannot be slower than the target alone: without a drafter, and each step has only as
many candidates as pay.
"""

_HARMLESS = 1.03
"""Times the target's own time up to which a kind of answer is no slower."""

_PRIOR = 0.5
"""The share of answers that repeat the transcript, as long as nothing is known ..."""

_PRIOR_COUNTS = 2.0
"""... which counts for as many answers."""

_MEMORY = 0.9
"""What an answer counts for with each later one."""


@dataclass(frozen=True)
class AnswerChoice:
    """A method, and why."""

    method: str
    why: str


def choose(
    costs: AnswerCosts, recent: Sequence[RecentAnswer], allowed: Sequence[str] | None = None
) -> AnswerChoice:
    """The fastest method on the mixture of answers that `recent` tells of.

    One with a drafter must gain more than the spread of what was measured, and be slower than the
    target alone on neither kind: what an answer will be like is not known before.

    Args:
        allowed: only these; None for all that were measured.
    """
    share = repeating_share(costs, recent)
    alone = costs.trials["target"]
    measured = {
        method: trials
        for method, trials in costs.trials.items()
        if allowed is None or method in allowed
    }
    times = {method: _mixed(trials, share) for method, trials in measured.items()}
    base = _mixed(alone, share)
    sure = [m for m in measured if m in _SAFE or _surely_faster(measured[m], alone, share)]
    method = min(sure or times, key=times.__getitem__)
    # Of two that are as good the one without a drafter.
    for simple in _SAFE[::-1]:
        if simple in times and _as_good(measured[simple], measured[method], share):
            method = simple
            break
    figures = ", ".join(
        f"{name} {base / seconds:.2f} x"
        for name, seconds in sorted(times.items(), key=lambda item: item[1])
        if name not in (method, "target")
    )
    when = f" on {costs.created[:10]}" if costs.created else ""
    why = (
        f"by what was measured here{when}: {base / times[method]:.2f} x the target alone where "
        f"{share:.0%} of the answers repeat what was said"
    )
    return AnswerChoice(method, why + (f" ({figures})" if figures else ""))


def repeating_share(costs: AnswerCosts, recent: Sequence[RecentAnswer]) -> float:
    """How many of the answers repeat the transcript, by how many tokens their steps committed."""
    weight, total = _PRIOR_COUNTS, _PRIOR_COUNTS * _PRIOR
    count = 1.0
    for answer in reversed(recent):
        trials = costs.trials.get(answer.method)
        if trials is None:
            continue
        free, source = trials[FREE].length, trials[SOURCE].length
        if source <= free:
            continue  # it says nothing of the kind
        weight += count
        total += count * min(1.0, max(0.0, (answer.length - free) / (source - free)))
        count *= _MEMORY
    return total / weight


def _mixed(trials: Mapping[str, Trial], share: float) -> float:
    return (1 - share) * trials[FREE].seconds + share * trials[SOURCE].seconds


def _off(trials: Mapping[str, Trial]) -> float:
    return max(trial.spread for trial in trials.values())


def _surely_faster(own: Mapping[str, Trial], alone: Mapping[str, Trial], share: float) -> bool:
    if any(own[kind].seconds > _HARMLESS * alone[kind].seconds for kind in (FREE, SOURCE)):
        return False
    return _mixed(own, share) * (1 + _off(own)) < _mixed(alone, share) * (1 - _off(alone))


def _as_good(simple: Mapping[str, Trial], other: Mapping[str, Trial], share: float) -> bool:
    return _mixed(simple, share) <= _mixed(other, share) * (1 + max(_off(simple), _off(other)))
