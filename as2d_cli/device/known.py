"""What was measured of devices before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from as2d_cli.catalog import Store
from as2d_cli.decoding.plan import Machine, Plan, PlanRequest, make_plan
from as2d_cli.profile.choose import plan_by_profile
from as2d_cli.profile.costs import CostModel
from as2d_cli.profile.profiles import BundleFolder, Profiles, Where, key_of

__all__ = ["Known", "Nothing", "Saved"]


class Known(Protocol):
    """Plans and costs of other machines."""

    def plan(self, request: PlanRequest, machine: Machine, where: Where) -> Plan:
        """How the lanes share that machine's cores. Raises As2dError: a list is wrong."""

    def costs(
        self, target: BundleFolder, drafter: BundleFolder | None, where: Where
    ) -> CostModel | None:
        """What was measured there and still holds."""


class Nothing:
    """Plans by rule."""

    def plan(self, request: PlanRequest, machine: Machine, where: Where) -> Plan:
        return make_plan(request, machine)

    def costs(
        self, target: BundleFolder, drafter: BundleFolder | None, where: Where
    ) -> CostModel | None:
        return None


@dataclass(frozen=True)
class Saved:
    """What `as2d profile --device` has kept, beside the models of `store`."""

    store: Store

    def plan(self, request: PlanRequest, machine: Machine, where: Where) -> Plan:
        return plan_by_profile(request, self.store, (machine, where))

    def costs(
        self, target: BundleFolder, drafter: BundleFolder | None, where: Where
    ) -> CostModel | None:
        profile, _ = Profiles(self.store.cache).load(key_of(target, drafter, where))
        return None if profile is None else profile.costs
