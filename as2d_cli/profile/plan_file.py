"""A plan as a file: made once, given to any run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from as2d_cli.decoding.costs import RunCosts
from as2d_cli.decoding.plan import Plan
from as2d_cli.errors import As2dError, ExitStatus
from as2d_cli.limits import MAX_BUDGET, MAX_WINDOWS
from as2d_cli.methods import METHODS, needs_drafter
from as2d_cli.tasks.models import AUTO, ModelRequest

__all__ = ["FORMAT", "SavedPlan", "as_json", "by_plan", "filled", "read_plan"]

FORMAT = "as2d-plan-1"


@dataclass(frozen=True)
class SavedPlan:
    """A plan and the models that it is for.

    Attributes:
        drafter: None where the plan has no use for one.
    """

    target: str
    drafter: str | None
    plan: Plan


def as_json(saved: SavedPlan) -> dict[str, Any]:
    """As values that JSON knows."""
    plan = asdict(saved.plan)
    return {"format": FORMAT, "target": saved.target, "drafter": saved.drafter, **plan}


def read_plan(path: Path, option: str = "--plan") -> SavedPlan:
    """The plan in a file.

    Raises:
        As2dError: status USAGE, naming `option`; it cannot be read, or is none.
    """
    try:
        return _plan(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        problem = error.strerror or str(error)
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        problem = f"is no plan ({error})"
    raise As2dError(
        f"{option} {path}: {problem}",
        remedy="make one with as2d profile --save",
        status=ExitStatus.USAGE,
    )


def by_plan(request: ModelRequest, plan: str) -> ModelRequest:
    """`request` as a ``--plan`` has it: ``auto`` leaves it as it is, else a file fills it in.

    Raises:
        As2dError: status USAGE; the file cannot be read, or is no plan.
    """
    return request if plan == AUTO else filled(request, read_plan(Path(plan)))


def filled(request: ModelRequest, saved: SavedPlan) -> ModelRequest:
    """`request` with all that it leaves open as `saved` has it."""
    plan = saved.plan
    if request.method not in (AUTO, plan.method):
        return request
    return replace(
        request,
        drafter=saved.drafter if request.drafter == AUTO else request.drafter,
        method=plan.method,
        budget=plan.budget if request.budget is None else request.budget,
        target_cores=request.target_cores or _listed(plan.target_cores),
        draft_cores=request.draft_cores or _listed(plan.draft_cores),
        windows=plan.windows if request.windows is None else request.windows,
        pin=request.pin and plan.pin,
        costs=plan.costs,
    )


def _listed(cores: tuple[int, ...]) -> str | None:
    # In their order: the first one is the lane's own thread's.
    return ",".join(map(str, cores)) or None


def _plan(data: Mapping[str, Any]) -> SavedPlan:
    if data["format"] != FORMAT:
        raise ValueError(f"its format is not {FORMAT}")
    method = data["method"]
    if method not in METHODS:
        raise ValueError(f"there is no method {method}")
    costs = data["costs"]
    plan = Plan(
        method=method,
        target_cores=_cores(data["target_cores"]),
        draft_cores=_cores(data["draft_cores"]),
        budget=_number(data["budget"], 0, MAX_BUDGET),
        exact=bool(data["exact"]),
        pin=bool(data["pin"]),
        windows=_number(data["windows"], 1, MAX_WINDOWS),
        costs=None if costs is None else _costs(costs),
        why=str(data["why"]),
    )
    if bool(plan.draft_cores) != needs_drafter(method):
        raise ValueError("its cores do not suit its method")
    return SavedPlan(str(data["target"]), data["drafter"], plan)


def _cores(data: Any) -> tuple[int, ...]:
    return tuple(_number(core, 0, 1 << 20) for core in data)


def _number(value: Any, least: int, most: int) -> int:
    if not isinstance(value, int) or not least <= value <= most:
        raise ValueError(f"{value!r} is not from {least} to {most}")
    return value


def _costs(data: Mapping[str, Any]) -> RunCosts:
    def steps(name: str) -> dict[int, float]:
        return {int(rows): float(seconds) for rows, seconds in data[name].items()}

    return RunCosts(
        steps("alone_steps"),
        steps("drafted_steps"),
        float(data["encode_base"]),
        float(data["encode_per_second"]),
    )
