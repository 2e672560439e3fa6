"""Peak memory of a process of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from as2d_cli.bench.contenders import Contender
from as2d_cli.bench.dataset import Clip
from as2d_cli.bench.memory import peak_memory
from as2d_cli.bench.units import Piece, Unit
from as2d_cli.catalog import ensure_bundle
from as2d_cli.decoding import PlanRequest, make_plan
from as2d_cli.errors import As2dError
from tests.fakes import FakeModel, tone, write_wav

CLIP = Path(__file__).parents[1] / "data" / "jfk.flac"
MB = 1_000_000


def unit(path: Path) -> Unit:
    return Unit(Clip(path), 0, (Piece(0, 0, 16_000),), False, "en")


def test_a_process_that_fails_says_why(tmp_path: Path) -> None:
    work = unit(write_wav(tmp_path / "clip.wav", tone(1)))
    with pytest.raises(As2dError, match=r"bundle\.txt: cannot be read"):
        peak_memory(
            Contender("target"), FakeModel("x"), None, make_plan(PlanRequest("target", 0)), work, ()
        )


@pytest.mark.model
def test_the_models_are_in_it_and_this_process_is_not() -> None:
    target, drafter = ensure_bundle("whisper-base"), ensure_bundle("whisper-tiny.en")
    ballast = b"\1" * (1500 * MB)
    plan = make_plan(PlanRequest("target", 0))
    alone = peak_memory(Contender("target"), target, None, plan, unit(CLIP), ())
    del ballast
    assert target.size < alone < 1000 * MB
    plan = make_plan(PlanRequest("as2d", 8))
    both = peak_memory(Contender("as2d", "x", 8), target, drafter, plan, unit(CLIP), ())
    assert both > alone + drafter.size // 2
    oracle = peak_memory(Contender("as2d", "oracle", 8), target, None, plan, unit(CLIP), [[1]])
    assert oracle < both
