"""The Python face of the native engine: open a pair of bundles, feed windows, receive events."""

from as2d_cli.decoding.costs import RunCosts
from as2d_cli.decoding.counters import Counters
from as2d_cli.decoding.engine import Engine, Run, Window
from as2d_cli.decoding.plan import Plan, PlanRequest, make_plan

__all__ = ["Counters", "Engine", "Plan", "PlanRequest", "Run", "RunCosts", "Window", "make_plan"]
