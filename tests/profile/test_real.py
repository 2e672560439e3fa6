"""A real machine with real models: the figures are its own, what is done with them is not."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from as2d_cli.catalog import default_store, ensure_bundle
from as2d_cli.decoding.plan import PlanRequest, this_machine
from as2d_cli.profile.choose import plan_by_profile
from as2d_cli.profile.costs import CostModel
from tests.fakes import run_cli

pytestmark = pytest.mark.model


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache of its own with the bundles of the user's."""
    for name in ("whisper-base", "whisper-base-head-en"):
        bundle = ensure_bundle(name)
        place = tmp_path / "bundles" / name
        place.parent.mkdir(exist_ok=True)
        place.symlink_to(bundle.path, target_is_directory=True)
    return tmp_path


def test_a_profile_is_measured_kept_and_planned_by(cache: Path) -> None:
    variables = {**os.environ, "AS2D_CACHE_DIR": str(cache)}
    ran = run_cli("profile", "--quick", "--offline", "--json", real=True, variables=variables)
    assert ran.status == 0, ran.stderr
    whole = json.loads(ran.stdout)
    costs = CostModel.from_json(whole["costs"])
    assert {core for lane in costs.lanes for core in lane.target_cores} <= set(this_machine().cores)
    for lane in costs.lanes:
        assert 0 < lane.alone.step(1) < lane.alone.step(32) * 2
        assert lane.alone.encode(10) > 0
        if lane.draft_cores:
            assert lane.draft is not None and lane.draft_beside is not None
            assert lane.draft_beside.token > 0
    assert "kept in" in ran.stderr
    plan = plan_by_profile(
        PlanRequest(target="whisper-base", drafter="whisper-base-head-en"),
        default_store(cache=cache),
    )
    assert "measured here on" in plan.why
    assert plan.costs is not None
    assert plan.method == whole["chosen"]["method"]
    again = run_cli("profile", "--saved", "--offline", real=True, variables=variables)
    assert again.status == 0
    assert f"best: --method {plan.method}" in again.stdout
    ran = run_cli("transcribe", "tests/data/jfk.flac", real=True, variables=variables)
    assert "ask what you can do for your country" in ran.stdout
