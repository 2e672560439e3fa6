"""The page: whole, safe, free of everything outside itself, and right to the pixel."""

from __future__ import annotations

import base64
import copy
import hashlib
import math
import re
from html.parser import HTMLParser
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from as2d_cli.bench import html
from as2d_cli.bench.page.charts import (
    Bar,
    Curve,
    Dot,
    Lane,
    Mark,
    Steps,
    candidate_bars,
    lane_timeline,
    phase_bars,
    ratio_dots,
    speed_curves,
)
from as2d_cli.bench.page.marks import duration, fit, number, percent, text
from as2d_cli.bench.page.reading import Reading
from as2d_cli.bench.page.scales import Linear, Log
from tests.bench.document import document, summaries, tiny

Numbers = npt.NDArray[np.float64]

VOID = {"meta", "br", "hr", "img", "input", "link"}


class Page(HTMLParser):
    """Tags with their attributes, the visible text, and a complaint if tags do not nest."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), f"<{tag}> has an attribute twice"
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] not in ("script", "style"):
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def count(self, tag: str, kind: str = "") -> int:
        return sum(
            name == tag and kind in [*(attrs.get("class") or "").split(), ""]
            for name, attrs in self.tags
        )


def dozens() -> dict[str, Any]:
    names = tuple(f"drafter-{n}" for n in range(8))
    return document(drafters=names, budgets=(2, 4, 8, 16), units=4, repeat=1)


def bare() -> dict[str, Any]:
    """No drafter, one unit, no spans, and nothing known that need not be."""
    made = document(drafters=(), units=1, repeat=1, flagged=0, spans=False)
    made["summary"] = [dict.fromkeys(row) for row in made["summary"]]
    for contender in made["contenders"]:
        contender["peak_memory_bytes"] = None
    return made


def unmeasured() -> dict[str, Any]:
    """Interrupted before anything was done."""
    made = bare()
    made |= {"complete": False, "samples": [], "texts": [], "summary": []}
    return made


@pytest.mark.parametrize(
    "made",
    [document(), tiny(), dozens(), document(units=300, repeat=1), bare(), unmeasured()],
    ids=["usual", "tiny", "dozens", "hundreds", "bare", "unmeasured"],
)
def test_every_document_makes_a_whole_page(made: dict[str, Any]) -> None:
    written = html.page(made)
    page = Page(written)
    assert page.count("h1") == 1
    assert not re.search(r"\b(nan|inf|infinity|undefined|none|null)\b", _numbers(page), re.I)
    assert not re.search(r"\b(nan|undefined|None|null|inf)\b", page.text)
    assert page.count("tr") >= len(made["contenders"])
    for _, attrs in page.tags:
        assert not {"src", "href", "xlink:href", "srcset", "onclick", "onload"} & set(attrs)
    assert not re.search(r"https?:|url\(|@import|//[a-z]", written)


def _numbers(page: Page) -> str:
    names = ("d", "x", "y", "cx", "cy", "r", "width", "height", "viewbox", "data-value")
    return " ".join(attrs[name] or "" for _, attrs in page.tags for name in names if name in attrs)


def test_only_the_pages_own_script_may_run() -> None:
    written = html.page(tiny())
    page = Page(written)
    policy = next(a["content"] or "" for t, a in page.tags if t == "meta" and "http-equiv" in a)
    script = written[written.index("<script>") + 8 : written.index("</script>")]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy.startswith("default-src 'none';")
    assert f"script-src 'sha256-{digest}'" in policy
    assert page.count("script") == 1


def test_nothing_in_a_document_becomes_markup() -> None:
    evil = "</title><script>alert(1)</script><b x='\">&amp; $title\u202e\ud800\x00"
    made = _with_every_string(document(), evil)
    written = html.page(made)
    page = Page(written)
    assert page.count("script") == 1 and page.count("b", "x") == 0
    assert written.count("alert(1)") == written.count("&lt;script&gt;alert(1)")
    assert "\u202e" not in written and "\x00" not in written
    written.encode("utf-8")


def _with_every_string(made: dict[str, Any], evil: str) -> dict[str, Any]:
    made = copy.deepcopy(made)
    made |= {"as2d": evil, "created": evil, "command": [evil, evil]}
    made["machine"] |= dict.fromkeys(
        ("cpu", "system", "kernels", "python", "onnxruntime", "numpy"), evil
    )
    made["settings"] |= {"by": evil, "language": evil, "baseline": evil}
    for contender in made["contenders"]:
        contender["label"] = evil + contender["label"]
        contender["lanes"] = {evil + name: lane for name, lane in contender["lanes"].items()}
        for lane in contender["lanes"].values():
            lane["threads"][0] |= {"name": evil, "requested": evil, "actual": "", "refused": evil}
    for unit in made["units"]:
        unit |= {"clip": evil, "language": evil, "category": evil, "reference_text": evil}
        unit["flags"] = [evil] if unit["flags"] else []
    for said in made["texts"]:
        said["text"] = evil
    for sample in made["samples"]:
        sample |= {"lost": evil, "differs": True}
    for span in made["spans"]:
        span["activity"] = evil
    for model in made["models"]:
        model["id"] = evil
        model["files"][0] |= {"name": evil, "sha256": evil}
    return made


def test_text_that_is_not_ascii_stays_itself() -> None:
    words = Page(html.page(document())).text
    assert "Pr\u00e4sident \u2013 \u8b1b\u6f14.ogg, window 0" in " ".join(
        [words, html.page(document())]
    )


def test_the_head_says_what_where_and_how() -> None:
    words = Page(html.page(document(units=12))).text
    assert "whisper-base: 6 contenders on 12 windows" in words
    assert "Example CPU 9000 @ 2.10GHz, 4 cores, kernels avx512vnni" in words
    assert "Measured 3 times per window." in words
    assert "complete" in words and "Interrupted." not in words


def test_an_interrupted_run_says_so() -> None:
    made = document() | {"complete": False}
    assert (
        f"Interrupted. These are the figures of the {len(made['samples'])} samples"
        in Page(html.page(made)).text
    )


def test_verdicts_say_faster_slower_or_neither() -> None:
    made = tiny()
    row = made["summary"][2]
    for interval, verdict in (
        ([1.1, 1.3], "Faster: 1.20 times the baseline\u2019s speed (95 % interval 1.10\u20131.30)"),
        ([0.8, 1.3], "No clear difference: 1.20 times the baseline\u2019s speed"),
        (None, "Not clear, no interval: 1.20 times the baseline\u2019s speed."),
    ):
        row |= {"ratio": 1.2, "ratio_interval": interval}
        assert verdict in Page(html.page(made)).text
    row |= {"ratio": 0.9, "ratio_interval": [0.85, 0.95]}
    made["summary"][0]["ratio"] = 0.8
    words = Page(html.page(made)).text
    assert "Slower: 0.90 times the baseline\u2019s speed" in words
    assert "Nothing beats target (one row)." in words
    one = document(units=1, flagged=0)
    assert "Not clear from one unit:" in Page(html.page(one)).text


def test_verdicts_name_the_units_whose_text_differs() -> None:
    made = tiny()
    made["samples"][-1]["differs"] = True
    words = Page(html.page(made)).text
    name = f"street <b>.mp3, window 0 (0.0\u2013{made['units'][2]['audio_seconds']:.1f} s)"
    assert f"Other text than the reference in 1 of 3 units: {name}." in words
    assert "Same text as the reference, token for token, in all 3 units." in words


def test_the_finding_tells_when_the_fastest_is_wrong() -> None:
    made = tiny()
    made["summary"][2] |= {"ratio": 2.0, "ratio_interval": [1.5, 2.5]}
    sentence = "as2d mine 4 is the fastest. It beats target (one row) at 2.00 times its speed"
    assert f"{sentence} (95 % interval 1.50\u20132.50). Same text" in Page(html.page(made)).text
    made["samples"][-1]["differs"] = True
    assert f"{sentence} (95 % interval 1.50\u20132.50). Other text" in Page(html.page(made)).text


def test_one_unit_has_no_curve() -> None:
    assert "Where is it faster?" in html.page(tiny())
    assert "Where is it faster?" not in html.page(document(units=1, flagged=0))


def test_a_lost_drafter_and_a_ceiling_are_told() -> None:
    made = document(drafters=("oracle",), budgets=(4,))
    made["samples"][2]["lost"] = "it hung"
    words = Page(html.page(made)).text
    assert "A ceiling, not a way to go" in words
    assert "The drafter was lost in 1 sample: it hung." in words
    # It has nothing that it could be said to win.
    assert "oracle 4 is the fastest" not in words


def test_flagged_units_are_apart_with_their_text() -> None:
    written = html.page(document(units=6, flagged=1))
    flagged = written[written.index("Left out of the figures") :]
    assert "over and over and over" in flagged
    assert "over and out" in flagged
    assert "over and over and over" not in written[: written.index("Left out of the figures")]
    assert "Left out of the figures" not in html.page(document(units=6, flagged=0))


def test_the_table_has_keys_to_sort_by_and_dashes_for_the_unknown() -> None:
    page = Page(html.page(tiny()))
    keys = [a["data-value"] for t, a in page.tags if t == "td" and "data-value" in a]
    assert all(math.isfinite(float(key or "x")) for key in keys)
    assert "peak MB" in page.text
    made = tiny()
    for row in made["summary"]:
        row["peak_memory_bytes"] = None
    for contender in made["contenders"]:
        contender["peak_memory_bytes"] = None
    assert "peak MB" not in Page(html.page(made)).text


def test_one_style_per_contender_everywhere() -> None:
    reading = Reading(dozens())
    styles = [c.style for c in reading.contenders]
    assert styles[1] == "base"
    coloured = [style for style in styles if style != "base"]
    assert len(set(coloured[:24])) == 24
    written = html.page(document())
    assert written.count('<g class="c1 p0"') >= 8


def test_more_lines_than_colours_are_drawn_in_panels() -> None:
    few, many = Page(html.page(tiny())), Page(html.page(dozens()))
    assert few.count("div", "panel") == 1  # its histogram
    # Eight drafters and the target in panels of lines, 32 histograms.
    assert many.count("div", "panel") == 9 + 32


def test_a_page_without_spans_says_how_to_get_them() -> None:
    assert "This document has no spans." in Page(html.page(tiny())).text
    assert "A typical unit:" in Page(html.page(document())).text


def test_colours_stand_out_from_the_page_in_every_theme() -> None:
    written = html.page(tiny())
    themes = [dict(re.findall(r"--(\w+): (#\w{6})", t)) for t in written.split(":root {")[1:]]
    assert len(themes) == 3 and themes[0] == themes[2]  # light, dark, print
    for colours in themes:
        for name in ("ink", "soft", "good", "bad", "even"):
            assert _contrast(colours[name], colours["page"]) >= 4.5
        marks = [f"c{n}" for n in range(6)] + ["base", *html.ACTIVITIES]
        for name in marks:
            assert _contrast(colours[name], colours["page"]) >= 3, name
        assert len({colours[name] for name in marks}) == 12


# Machado, Oliveira and Fernandes (2009), on linear RGB: protanopia, deuteranopia, tritanopia.
SIGHT = (
    ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    ((0.1523, 1.0526, -0.2049), (0.1145, 0.7863, 0.0992), (-0.0039, -0.0481, 1.0520)),
    ((0.3673, 0.8606, -0.2280), (0.2801, 0.6725, 0.0474), (-0.0118, 0.0429, 0.9689)),
    ((1.2555, -0.0767, -0.1788), (-0.0784, 0.9308, 0.1476), (0.0047, 0.6914, 0.3039)),
)


@pytest.mark.parametrize("sight", SIGHT)
def test_colours_can_be_told_apart_with_any_sight(sight: tuple[tuple[float, ...], ...]) -> None:
    for theme in html.page(tiny()).split(":root {")[1:]:
        colours = dict(re.findall(r"--(\w+): (#\w{6})", theme))
        for names, least in (([f"c{n}" for n in range(6)], 12), (list(html.ACTIVITIES), 11)):
            seen = [_oklab(np.array(sight) @ _linear(colours[name])) for name in names]
            for one, other in combinations(seen, 2):
                assert 100 * float(np.linalg.norm(one - other)) >= least


def _oklab(light: Numbers) -> Numbers:
    cones = np.array(
        [
            [0.4122214708, 0.5363325363, 0.0514459929],
            [0.2119034982, 0.6806995451, 0.1073969566],
            [0.0883024619, 0.2817188376, 0.6299787005],
        ]
    )
    lab = np.array(
        [
            [0.2104542553, 0.7936177850, -0.0040720468],
            [1.9779984951, -2.4285922050, 0.4505937099],
            [0.0259040371, 0.7827717662, -0.8086757660],
        ]
    )
    return np.asarray(lab @ np.cbrt(cones @ np.clip(light, 0, 1)))


def _linear(colour: str) -> Numbers:
    parts = np.array([int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def _contrast(one: str, other: str) -> float:
    dark, light = sorted(map(_luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    return float(np.array([0.2126, 0.7152, 0.0722]) @ _linear(colour))


# Charts, to the pixel.


def test_speed_curves_are_sorted_and_on_a_logarithmic_axis() -> None:
    reading = Reading(tiny())
    mine = reading.contenders[2]
    ratios = [ratio for ratio, _ in reading.ratios(mine)]
    assert ratios == [0.5, 1.0, 2.0]
    drawn = speed_curves([Curve("mine", "c0", [Mark(r, "u") for r in ratios])], 646, 338)
    # x: 40 + 560 * (n + 1/2) / 3. y: 1 is half way between 10 and 300; 0.5 and 2 are 1 / 1.12 of
    # that half away from it, because the axis has 6 % of its length of air at both ends.
    assert 'class="line" d="M133.3 284.5L320 155L506.7 25.5"' in drawn
    assert '<path class="one" d="M40 155H600"/>' in drawn
    assert "<title>mine\nu\nratio 0.500</title>" in drawn


def test_one_unit_is_a_mark() -> None:
    drawn = speed_curves([Curve("mine", "c0", [Mark(1.0, "u")])], 646, 338)
    assert 'd="M320 155"' in drawn and drawn.count("<circle") == 1


def test_of_hundreds_of_units_sixty_can_be_pointed_at() -> None:
    marks = [Mark(0.5 + n / 500, f"unit {n}") for n in range(500)]
    drawn = speed_curves([Curve("mine", "c0", marks)], 900, 300)
    assert drawn.count("<circle") == 60
    assert "unit 0\n" in drawn and "unit 499\n" in drawn


def test_dots_have_whiskers_where_there_is_an_interval() -> None:
    dots = [Dot("a", "c0", 1.0, (0.5, 2.0)), Dot("b", "c1", 1.5, None)]
    drawn = ratio_dots(dots, 732)
    assert '<path class="whisker" d="M245.4 36H602.6"/>' in drawn
    assert '<circle class="dot" cx="424" cy="36" r="5"/>' in drawn
    assert drawn.count("whisker") == 1
    assert "<title>a\nratio 1.000, interval 0.500\u20132.000</title>" in drawn


def test_phases_stack_up_to_the_wall_time() -> None:
    bars = [Bar("encoding", 0, 1, "encode"), Bar("verifying", 1, 3, "decode")]
    lane = Lane("mine", "c0", "4 s", bars, [Bar("drafting", 0, 2, "draft")], 4)
    drawn = phase_bars([lane], 728)
    # 400 pixels for 4 seconds, from 224 on.
    assert 'class="bar encoding" x="224" y="24" width="100"' in drawn
    assert 'class="bar verifying" x="324" y="24" width="200"' in drawn
    assert 'class="bar drafting" x="224" y="42" width="200" height="8"' in drawn
    assert '<path class="end" d="M624 21V53"/>' in drawn


def test_the_timeline_has_milliseconds_below_its_bars() -> None:
    lane = Lane("mine", "c0", "4 ms", [Bar("alone", 1, 4, "alone 1-4")])
    drawn = lane_timeline([lane], 728)
    assert 'class="bar alone" x="324" y="24" width="300"' in drawn
    assert ">0 ms</text>" in drawn and ">3</text>" in drawn
    assert "<title>alone 1-4</title>" in drawn


def test_activities_too_short_to_see_are_summed_by_the_pixel() -> None:
    # 0.9 ms of verifying and 0.1 ms of alone, over and over, and then only alone.
    bars = []
    for n in range(4000):
        bars.append(Bar("verifying", n, n + 0.9, "v"))
        bars.append(Bar("alone", n + 0.9, n + 1, "a"))
    bars += [Bar("alone", 4000 + n, 4001 + n, "a") for n in range(4000)]
    drawn = lane_timeline([Lane("mine", "c0", "", bars)], 728)
    assert drawn.count("<rect") == 2
    assert 'class="bar verifying" x="224" y="24" width="200"' in drawn
    assert 'class="bar alone" x="424" y="24" width="200"' in drawn


def test_candidates_show_shares_and_the_accepted_mean() -> None:
    drawn = candidate_bars(Steps("mine", "c0", {0: 1, 2: 3}, 1.5), 3, 1.0, 240, 156)
    # Slots of 50 pixels from 34; 100 pixels are 100 %.
    assert 'class="column hollow" x="38" y="97" width="42" height="25"' in drawn
    assert 'class="column" x="138" y="47" width="42" height="75"' in drawn
    assert '<path class="mean" d="M134 8V122"/>' in drawn
    assert "<title>mine\n2 candidates: 3 of 4 steps (75.0\u202f%)</title>" in drawn


def test_a_narrow_chart_keeps_its_letters_and_puts_labels_above() -> None:
    drawn = ratio_dots([Dot("a very long name of a contender", "c0", 1.0, None)], 340)
    assert 'viewBox="0 0 340 ' in drawn
    assert "a very long name of a contender</text>" in drawn


# Scales, numbers, words.


@pytest.mark.parametrize("high", [1e-6, 0.7, 1, 9.99, 60, 12345.6])
def test_linear_ticks_are_round_and_within(high: float) -> None:
    scale = Linear(high, 0, 600)
    ticks = scale.ticks(60)
    assert ticks[0] == 0 and 2 <= len(ticks) <= 11
    assert all(0 <= scale(tick) <= 600.001 for tick in ticks)
    assert all(scale(b) - scale(a) >= 59.9 for a, b in pairwise(ticks))


@pytest.mark.parametrize("ratios", [[1.0], [0.97, 1.02], [0.5, 2], [0.001, 3], [900, 1000]])
def test_ratio_ticks_have_room_and_one_is_among_them(ratios: list[float]) -> None:
    scale = Log.around(ratios, 400, 0)
    ticks = scale.ticks(30)
    assert 1 in ticks
    assert all(scale(a) - scale(b) >= 29.9 for a, b in pairwise(ticks))
    assert all(0 < scale(ratio) < 400 for ratio in ratios)


def test_numbers_that_are_none_are_dashes() -> None:
    for nothing in (None, math.nan, math.inf, "x", True):
        assert number(nothing) == "\u2013" and percent(nothing) == "\u2013" + ""
    assert number(1234567.891) == "1\u202f234\u202f567.89"
    assert number(-0.001) == "0.00"
    assert percent(0.125, 1) == "12.5\u202f%"


def test_durations_are_for_people() -> None:
    shown = [duration(s).replace("\u00a0", " ") for s in (8.111, 41, 59.7, 580.4, 3600, 7500)]
    assert shown == ["8.1 s", "41 s", "1 min", "9 min 40 s", "1 h", "2 h 5 min"]


def test_text_is_cut_by_its_width() -> None:
    assert fit("short", 100) == "short"
    assert fit("a" * 30, 100) == "a" * 12 + "\u2026"
    assert fit("\u8b1b" * 30, 100) == "\u8b1b" * 7 + "\u2026"
    assert text("\ud800\x1b[1m\u202e<") == "\ufffd\ufffd[1m&lt;"


def test_a_sample_whose_drafter_was_lost_says_nothing_of_time() -> None:
    made = tiny()
    made["samples"][2]["lost"] = "it hung"
    reading = Reading(made)
    assert [unit.index for _, unit in reading.ratios(reading.contenders[2])] == [1, 2]
    page = Page(html.page(made))
    assert "Same text as the reference, token for token, in all 3 units." in page.text
    assert "on 2 of 3 units" in page.text


def test_the_median_of_repeats_decides_and_flagged_units_are_left_out() -> None:
    made = tiny()
    extra = copy.deepcopy(made["samples"][2])
    made["samples"] += [
        extra | {"repeat": 1, "seconds": 9.0},
        extra | {"repeat": 2, "seconds": 4.0},
    ]
    made["units"][1]["flags"] = ["loop"]
    made["summary"] = summaries(made["contenders"], made["units"], made["samples"])
    reading = Reading(made)
    mine = reading.contenders[2]
    assert [(ratio, unit.index) for ratio, unit in reading.ratios(mine)] == [(0.25, 0), (2.0, 2)]
    assert [sample["repeat"] for sample in reading.middle(mine, reading.units[0])] == [2]


def test_seconds_by_phase_sum_up_to_the_seconds_of_the_table() -> None:
    for repeat in (1, 2, 3):
        made = document(units=5, repeat=repeat)
        for row in made["summary"]:
            assert f">{number(row['seconds'])} s</text>" in html.page(made)
