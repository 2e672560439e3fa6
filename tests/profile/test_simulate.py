"""The simulator: by hand where that can be done, and against the engine where it cannot."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from as2d_cli import _native
from as2d_cli.decoding import Counters, Engine, Plan, Window
from as2d_cli.decoding.events import RunFinished
from as2d_cli.profile.alignment import WindowTrace, perfect
from as2d_cli.profile.costs import CostModel, DraftCosts, LaneCosts, Line, TargetCosts
from as2d_cli.profile.simulate import Outcome, Setup, simulate
from tests.profile.material import costs, target, wrong

_TRIES = 4
"""Runs of the engine."""


def run(windows: list[WindowTrace], setup: Setup, model: CostModel) -> Outcome:
    drafts = setup.budget > 0 and not setup.free
    return simulate(windows, setup, model, model.lanes[1 if drafts else 0])


def test_a_target_alone_takes_a_step_a_token() -> None:
    # 0.1 s of encoder, 0.01 s of prompt, which gives the first of 40 tokens; the end is one more.
    out = run([perfect(10, 40)], Setup(0), costs())
    assert (out.tokens, out.steps, out.alone) == (40, 40, 40)
    assert out.seconds == pytest.approx(0.1 + 0.01 + 40 * 0.01)


def test_an_empty_text_ends_at_the_prompt() -> None:
    out = run([perfect(10, 0), perfect(10, 1)], Setup(0), costs())
    assert (out.tokens, out.steps) == (1, 1)
    assert out.seconds == pytest.approx(2 * 0.11 + 0.01)


def test_a_perfect_draft_commits_the_budget_and_one_more() -> None:
    # 44 tokens and the end after the first: 5 at a time.
    out = run([perfect(10, 45)], Setup(4, free=True), costs())
    assert (out.steps, out.alone, out.accepted) == (9, 0, 36)


def test_a_wrong_draft_costs_its_rows_and_gives_nothing() -> None:
    dear = costs()
    steps = TargetCosts(Line(0.1, 0), {1: 0.01, 9: 0.05})
    dear = replace(dear, lanes=[replace(lane, alone=steps, beside=steps) for lane in dear.lanes])
    alone = run([wrong(10, 40)], Setup(0), dear)
    out = run([wrong(10, 40)], Setup(8), dear)
    assert out.steps == alone.steps
    assert out.accepted == 0
    assert out.seconds > alone.seconds


def test_a_late_drafter_is_never_waited_for() -> None:
    slow = costs(token=1.0, draft_encode=5.0)
    out = run([perfect(10, 40)], Setup(8), slow)
    assert (out.steps, out.alone) == (40, 40)
    assert out.seconds == pytest.approx(run([perfect(10, 40)], Setup(0), slow).seconds)


def test_work_beside_the_drafter_is_slower_until_the_draft_is_done() -> None:
    # The draft takes 0.02 + 41 x 0.002 s; the rest of the run is at full speed.
    out = run([wrong(10, 40)], Setup(8), costs(slower=2.0))
    assert out.seconds == pytest.approx(0.1 + 0.01 + 40 * 0.01 + 0.102 / 2)


def test_the_drafter_goes_on_to_the_next_window() -> None:
    one = run([perfect(10, 40)], Setup(8), costs())
    two = run([perfect(10, 40)] * 2, Setup(8), costs())
    # The first window's steps wait for nobody; in the second all is drafted from the beginning.
    assert two.steps < 2 * one.steps or two.alone == 0
    assert two.seconds <= 2 * one.seconds


def test_a_head_waits_for_the_targets_encoder_of_the_window_ahead() -> None:
    windows = [perfect(10, 40)] * 4
    own = run(windows, Setup(8), costs(draft_encode=0.0))
    head = run(windows, Setup(8), costs(draft_encode=0.0, shares_encoder=True))
    assert head.tokens == own.tokens == 160
    assert head.seconds >= own.seconds, "it begins later"
    assert head.alone < 160


def test_windows_in_a_batch_share_steps() -> None:
    windows = [perfect(10, 40)] * 8
    one, four = (run(windows, Setup(0, batch), costs()) for batch in (1, 4))
    assert one.tokens == four.tokens == 320
    assert four.steps < one.steps / 2
    dear = costs()
    dear = replace(dear, lanes=[replace(dear.lanes[0], alone=target(window=0.010)), dear.lanes[1]])
    assert run(windows, Setup(0, 4), dear).seconds > four.seconds


def test_lanes_that_lend_nothing_are_slower() -> None:
    model = costs()
    lane = replace(model.lanes[1], own=target(0.020, 0.2))
    model = replace(model, lanes=[model.lanes[0], lane])
    elastic, stiff = (
        run([perfect(10, 40)], Setup(8, elastic=lends), model) for lends in (True, False)
    )
    assert stiff.seconds > elastic.seconds


def test_it_is_the_same_every_time() -> None:
    windows = [perfect(10, 40), wrong(5, 12), perfect(30, 90)]
    assert run(windows, Setup(8, 2), costs()) == run(windows, Setup(8, 2), costs())


@pytest.mark.parametrize(("token", "errors"), [(0.002, 0.0), (0.003, 0.1), (0.004, 0.3)])
@pytest.mark.parametrize("budget", [0, 4, 8])
def test_it_takes_the_steps_that_the_engine_takes(budget: int, token: float, errors: float) -> None:
    """With the costs that its own run turned out to have. What else the machine does may disturb a
    run in its middle, where costs that are means say nothing: one of a few has to agree.
    """
    chance = random.Random(1)
    texts = {i: [chance.randrange(10, 500) for _ in range(20 + 10 * i)] for i in range(4)}
    drafts = {
        i: [t if chance.random() >= errors else chance.randrange(500, 990) for t in text]
        for i, text in texts.items()
    }
    windows = [_trace(texts[i], drafts[i]) for i in texts]
    for _ in range(_TRIES):
        counters = _engine_run(texts, drafts, budget, token)
        out = _simulated(windows, budget, counters)
        steps = counters.alone_steps + sum(counters.verify_steps.values())
        assert out.tokens == counters.committed
        if out.steps == pytest.approx(steps, rel=0.15):
            break
    assert out.steps == pytest.approx(steps, rel=0.15)
    assert out.seconds == pytest.approx(counters.seconds["wall"], rel=0.15)


def _engine_run(
    texts: dict[int, list[int]], drafts: dict[int, list[int]], budget: int, token: float
) -> Counters:
    drafter = _native.ScriptedDrafter(drafts, "end", token, 0.02)
    plan = Plan("as2d" if budget else "target", (0,), (), budget, pin=False)
    with Engine.scripted(texts, drafter, plan, step_seconds=0.01, encode_seconds=0.03) as engine:
        run = engine.start(adaptive=False)
        for index in texts:
            run.submit(Window(index, 0.0, np.array([index], np.float32), [1], 400))
        run.finish()
        while not any(isinstance(event, RunFinished) for event in run.poll(0.5)):
            pass
        return run.counters()


def _simulated(windows: list[WindowTrace], budget: int, counters: Counters) -> Outcome:
    spent = counters.seconds
    count = len(windows)
    steps = counters.alone_steps + sum(counters.verify_steps.values())
    own = TargetCosts(Line(spent["encode"] / count, 0), {1: spent["decode"] / steps})
    draft = DraftCosts(
        Line(spent["draft_encode"] / count, 0), spent["draft_decode"] / max(1, counters.drafted)
    )
    lane = LaneCosts((0,), (1,), own, own, own, draft, draft)
    rest = spent["wall"] - spent["encode"] - spent["decode"] - spent["prompt"]
    prompt = (spent["prompt"] - count * own.step(1)) / count
    model = CostModel("t", "d", False, (lane,), prompt_rows=1, window=rest / count + prompt)
    return simulate(windows, Setup(budget), model, lane)


def _trace(text: list[int], draft: list[int]) -> WindowTrace:
    """Words are right or wrong in their place: no aligner is needed."""
    said, drafted = [*text, 999], [*draft, 999]
    runs = []
    for committed in range(1, len(text) + 1):
        run = 0
        while committed + run < len(said) and said[committed + run] == drafted[committed + run]:
            run += 1
        runs.append(run)
    return WindowTrace(10, len(text), len(draft), tuple(range(1, len(text) + 1)), tuple(runs))
