"""Engines of the contenders: who shares one, on which cores, and how long it took to load."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

from as2d_cli.bench.contenders import ORACLE, Contender
from as2d_cli.decoding import Counters, PlanRequest
from as2d_cli.errors import As2dError
from as2d_cli.methods import SPLIT
from as2d_cli.tasks.interrupt import interruptible
from as2d_cli.tasks.models import Backend, Model, RunFace

__all__ = ["BenchEngine", "BenchPlan", "BenchRun", "Engines", "Seat"]


class BenchRun(RunFace, Protocol):
    """A run whose counters are all there."""

    def counters(self) -> Counters: ...


class BenchEngine(Protocol):
    """What is used of an engine (see `as2d_cli.decoding.Engine`)."""

    @property
    def warnings(self) -> Sequence[str]: ...
    def detect_language(self, samples: Any, /) -> tuple[str, float]: ...
    def replay(self, script: Mapping[int, Sequence[int]], /) -> None: ...
    def start(
        self,
        *,
        method: str | None = None,
        budget: int | None = None,
        exact: bool | None = None,
        windows: int | None = None,
        adaptive: bool = True,
    ) -> BenchRun: ...
    def time_draft(
        self, samples: Any, language: str, /, *, lend: bool = True
    ) -> Mapping[str, Any]: ...


class BenchPlan(Protocol):
    """What is used of a plan (see `as2d_cli.decoding.Plan`)."""

    @property
    def target_cores(self) -> tuple[int, ...]: ...


@dataclass
class Seat:
    """An open engine.

    Attributes:
        load_seconds: what opening took, conversion apart.
        lost: why its drafter is of no use, or None.
    """

    engine: BenchEngine
    load_seconds: float
    lost: str | None = None


_Key = tuple[object, ...]

_ALONE: _Key = (None, False)
_ANYTHING = PlanRequest()


class Engines:
    """Opens engines when they are first used; contenders that differ in nothing that is loaded
    share one.

    Attributes:
        baseline_cores: those of the target where it is alone; None for all that the plan gives.
    """

    def __init__(
        self,
        stack: ExitStack,
        backend: Backend,
        target: Model,
        drafters: Mapping[str, Model],
        asked: PlanRequest = _ANYTHING,
    ) -> None:
        """Opens nothing yet.

        Args:
            asked: what is asked of every plan beside its method.
        """
        self._asked = replace(asked, target=target.id)
        self._stack = stack
        self._backend = backend
        self._target = target
        self._drafters = drafters
        self._seats: dict[_Key, Seat] = {}
        self.baseline_cores: tuple[int, ...] | None = None

    def of(self, contender: Contender, plan: Any = None) -> Seat:
        """The engine of a contender.

        Args:
            plan: its own one, where it has one.

        Raises:
            As2dError: the target cannot be loaded.
        """
        key = self._key(contender, plan)
        seat = self._seats.get(key)
        if seat is None:
            plan = plan or self.plan(contender)
            seat = self._seats[key] = self._open(self._stack, contender, plan)
        return seat

    def plan(self, contender: Contender) -> Any:
        """How the cores are shared: as its method wants it. The oracle needs none."""
        if contender.drafter in (None, ORACLE):
            return self._alone(self.baseline_cores)
        request = replace(
            self._asked,
            method=contender.method,
            budget=contender.budget,
            drafter=self._drafters[contender.drafter].id,
        )
        return self._backend.plan(replace(request, windows=contender.windows))

    def alone_cores(self) -> tuple[int, ...]:
        """The most that the target alone may use."""
        return cast(BenchPlan, self._alone(None)).target_cores

    def open_alone(self, stack: ExitStack, cores: tuple[int, ...]) -> Seat:
        """An engine of the target alone on these cores, kept by nobody but `stack`."""
        return self._timed(stack, None, self._alone(cores))

    def adopt(self, seat: Seat, cores: tuple[int, ...]) -> None:
        """Makes `seat` the engine of the target alone."""
        self.baseline_cores = cores
        self._seats[_ALONE] = seat

    @staticmethod
    def _key(contender: Contender, plan: Any) -> _Key:
        if plan is not None:
            return contender.drafter, plan.target_cores, plan.draft_cores, plan.pin
        if contender.drafter in (None, ORACLE):
            return contender.drafter, False
        return contender.drafter, contender.method in SPLIT

    def _alone(self, cores: tuple[int, ...] | None) -> Any:
        named = None if cores is None else ",".join(str(core) for core in cores)
        request = replace(self._asked, method="target", budget=0, draft_cores=None)
        return self._backend.plan(replace(request, target_cores=named or request.target_cores))

    def _open(self, stack: ExitStack, contender: Contender, plan: Any) -> Seat:
        drafter = self._drafters.get(contender.drafter or "")
        seat = self._timed(stack, drafter, plan)
        if contender.drafter == ORACLE:
            seat.engine.replay({})
        return seat

    def _timed(self, stack: ExitStack, drafter: Model | None, plan: Any) -> Seat:
        start = time.perf_counter()
        opened = interruptible(lambda: self._backend.open(self._target, drafter, plan))
        engine = cast(BenchEngine, stack.enter_context(opened))
        warnings = list(engine.warnings)
        if warnings and drafter is None:
            raise As2dError(warnings[0])
        return Seat(engine, time.perf_counter() - start, lost=warnings[0] if warnings else None)
