"""One row of figures a contender: what the table, the document and the advice are made of."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from as2d_cli.bench.measure import Sample
from as2d_cli.bench.results import Results
from as2d_cli.bench.statistics import (
    bootstrap,
    geometric_mean,
    oracle_share,
    over,
    percentile,
    pooled_ratio,
    slower_share,
)

__all__ = ["Row", "by_kind", "summarise", "unit_seconds"]

ErrorRate = Callable[[Iterable[tuple[str, str, str]]], float | None]


@dataclass(frozen=True)
class Row:
    """What one contender did on the units that are not flagged; None is what cannot be told.

    Seconds and counts of a unit are medians over its repeats; samples whose drafter failed count
    for `differing` alone.

    Attributes:
        label: of the contender.
        windows: of its units.
        differing: windows that differ from the reference in any repeat.
        audio_seconds, seconds, tokens: of its units.
        real_time: seconds of audio a second.
        ratio: baseline seconds over own ones, over the units that both have; above 1 is faster.
        ratio_interval: 95 %, over units.
        geometric_mean, geometric_mean_interval: of the units' ratios.
        p50, p95: seconds a unit.
        slower_share: units that took longer than the baseline did.
        oracle_share: own throughput over that of an oracle which knows for each unit the fastest
            drafter and budget of this method, or for a plan the fastest contender of all, the
            target alone included; None for the target and for ceilings.
        tokens_per_step: committed; prompts are no steps.
        accepted_length: candidates accepted a verify step.
        acceptance: accepted over proposed candidates.
        alone_share: steps without candidates.
        lead: draft tokens ready at a verify step.
        realignments: in one round over its units.
        wer: word error rate over the recordings that are complete and have a reference text.
        looped: units that are flagged and left out.
        phases: seconds by phase, of its units.
        predicted_seconds, prediction_error: of its units, where a simulation by what was measured
            here can tell, and by what share that is more than `seconds`.
        flagged: the same for the units left out, if there are any.
    """

    label: str
    windows: int
    differing: int
    audio_seconds: float
    seconds: float
    tokens: float
    tokens_per_second: float | None
    real_time: float | None
    ratio: float | None
    ratio_interval: tuple[float, float] | None
    geometric_mean: float | None
    geometric_mean_interval: tuple[float, float] | None
    p50: float | None
    p95: float | None
    slower_share: float | None
    oracle_share: float | None
    tokens_per_step: float | None
    accepted_length: float | None
    acceptance: float | None
    alone_share: float | None
    lead: float | None
    realignments: float
    wer: float | None
    peak_memory_bytes: int | None
    looped: int
    phases: Mapping[str, float]
    predicted_seconds: float | None = None
    prediction_error: float | None = None
    flagged: Row | None = None

    def as_json(self) -> dict[str, Any]:
        """As values that JSON knows."""
        return asdict(self)


def summarise(results: Results, error_rate: ErrorRate | None = None) -> list[Row]:
    """A row for each contender, in their order.

    Args:
        error_rate: see `as2d_cli.bench.wer.word_error_rate`; None if it cannot be counted.
    """
    maker = _Maker(results, _by_unit(results), error_rate)
    return [maker.row(contender) for contender in range(len(results.contenders))]


def unit_seconds(results: Results) -> dict[int, dict[int, float]]:
    """Seconds by contender and unit: medians over the repeats whose drafter did not fail."""
    found: dict[int, dict[int, float]] = {i: {} for i in range(len(results.contenders))}
    for (contender, unit), taken in _by_unit(results).items():
        seconds = [sample.seconds for sample in taken if sample.ran.lost is None]
        if seconds:
            found[contender][unit] = statistics.median(seconds)
    return found


def _by_unit(results: Results) -> dict[tuple[int, int], list[Sample]]:
    """Samples by contender and unit."""
    samples: dict[tuple[int, int], list[Sample]] = defaultdict(list)
    for sample in results.samples:
        if sample.turn.unit in results.texts:  # else interrupted before the reference had spoken
            samples[sample.turn.contender, sample.turn.unit].append(sample)
    return samples


def by_kind(results: Results) -> dict[str, list[Row]]:
    """The rows of questions alone that ask for one kind of answer, by that kind."""
    kinds = dict.fromkeys(u.clip.category for u in results.units if u.asked is not None)
    found = {}
    for kind in filter(None, kinds):
        of_kind = [s for s in results.samples if results.units[s.turn.unit].clip.category == kind]
        found[kind] = summarise(replace(results, samples=of_kind))
    return found if len(found) > 1 else {}


class _Maker:
    def __init__(
        self,
        results: Results,
        samples: Mapping[tuple[int, int], Sequence[Sample]],
        error_rate: ErrorRate | None,
    ) -> None:
        self._results = results
        self._error_rate = error_rate
        self._samples = samples
        self._seconds = unit_seconds(results)

    def row(self, contender: int) -> Row:
        own = {unit for c, unit in self._samples if c == contender}
        flagged = {unit for unit in own if self._results.flags.get(unit)}
        apart = self._row(contender, flagged, 0, None) if flagged else None
        return self._row(contender, own - flagged, len(flagged), apart)

    def _row(self, contender: int, units: set[int], looped: int, apart: Row | None) -> Row:
        results = self._results
        seconds = {u: s for u, s in self._seconds[contender].items() if u in units}
        counts = {u: self._counts(contender, u) for u in seconds}
        total: dict[str, float] = defaultdict(float)
        for unit in seconds:
            for key, count in counts[unit].items():
                total[key] += count
        base = self._seconds[results.baseline]
        common = sorted(unit for unit in seconds if unit in base)
        pair = [base[unit] for unit in common], [seconds[unit] for unit in common]
        audio = sum(results.units[unit].audio_seconds for unit in seconds)
        spent = sum(seconds.values())
        told = results.predicted.get(contender, {})
        predicted = (
            sum(told[u] for u in seconds) if seconds and told.keys() >= seconds.keys() else None
        )
        return Row(
            label=results.contenders[contender].label,
            windows=sum(len(results.units[unit].pieces) for unit in seconds),
            differing=self._differing(contender, units),
            audio_seconds=audio,
            seconds=spent,
            tokens=total["tokens"],
            tokens_per_second=over(total["tokens"], spent),
            real_time=over(audio, spent),
            ratio=pooled_ratio(*pair),
            ratio_interval=bootstrap(pooled_ratio, *pair),
            geometric_mean=geometric_mean(*pair),
            geometric_mean_interval=bootstrap(geometric_mean, *pair),
            p50=percentile(list(seconds.values()), 50),
            p95=percentile(list(seconds.values()), 95),
            slower_share=slower_share(*pair),
            oracle_share=self._oracle_share(contender, seconds),
            tokens_per_step=over(total["tokens"], total["alone"] + total["verify"]),
            accepted_length=over(total["accepted"], total["verify"]),
            acceptance=over(total["accepted"], total["proposed"]),
            alone_share=over(total["alone"], total["alone"] + total["verify"]),
            lead=over(total["lead"], total["verify"]),
            realignments=total["realignments"],
            wer=self._wer(contender, set(seconds)),
            peak_memory_bytes=results.peak_memory.get(contender),
            looped=looped,
            phases={k.removeprefix("s:"): v for k, v in total.items() if k.startswith("s:")},
            predicted_seconds=predicted,
            prediction_error=None if predicted is None or not spent else predicted / spent - 1,
            flagged=apart,
        )

    def _counts(self, contender: int, unit: int) -> dict[str, float]:
        """Medians over the repeats of a unit."""
        repeats = [_counts(s) for s in self._samples[contender, unit] if s.ran.lost is None]
        return {key: statistics.median(r[key] for r in repeats) for key in repeats[0]}

    def _differing(self, contender: int, units: Collection[int]) -> int:
        return len(
            {
                (unit, window)
                for unit in units
                for sample in self._samples[contender, unit]
                for window in self._results.differing(sample)
            }
        )

    def _oracle_share(self, contender: int, seconds: Mapping[int, float]) -> float | None:
        entrants = self._results.contenders
        mine = entrants[contender]
        if (mine.method == "target" and not mine.planned) or mine.ceiling:
            return None
        catalogue = [
            self._seconds[i]
            for i, other in enumerate(entrants)
            if other.baseline
            or ((other.method == mine.method or mine.planned) and not other.ceiling)
        ]
        return oracle_share(seconds, catalogue)

    def _wer(self, contender: int, units: set[int]) -> float | None:
        if self._error_rate is None:
            return None
        results = self._results
        recordings: dict[int, list[int]] = defaultdict(list)
        for number, unit in enumerate(results.units):
            recordings[unit.recording].append(number)
        texts = []
        for members in recordings.values():
            clip = results.units[members[0]].clip
            if clip.text is not None and units.issuperset(members):
                said = [t for m in members for t in self._samples[contender, m][0].ran.texts]
                texts.append((results.units[members[0]].language, clip.text, results.text(said)))
        return self._error_rate(texts)


def _counts(sample: Sample) -> dict[str, float]:
    counters = sample.ran.counters
    return {
        "tokens": counters.committed,
        "alone": counters.alone_steps,
        "verify": sum(counters.verify_steps.values()),
        "proposed": counters.proposed,
        "accepted": counters.accepted,
        "lead": counters.lead_total,
        "realignments": counters.realignments,
    } | {f"s:{phase}": seconds for phase, seconds in counters.seconds.items()}
