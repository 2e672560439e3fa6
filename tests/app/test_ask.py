"""``as2d ask``: command lines and what they give, over a scripted engine."""

from __future__ import annotations

import io
import json
import os
import pty
import threading
from pathlib import Path

import numpy as np
import pytest

from as2d_cli.app import run
from as2d_cli.decoding import Plan, RunCosts
from as2d_cli.environment import Environment, Output
from as2d_cli.profile.plan_file import SavedPlan, as_json
from tests.fakes import Script, backend, run_cli, tone, write_wav
from tests.sound import FakeSound

LLM = "qwen2.5-coder-1.5b-instruct"


@pytest.fixture
def clip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """clip.wav, 2 s, in the current folder."""
    monkeypatch.chdir(tmp_path)
    return write_wav(tmp_path / "clip.wav", tone(2)).relative_to(tmp_path)


ANSWER = "It is about Hello.\n"

TABLE: list[tuple[list[str], int, str, str]] = [
    (["--audio", "clip.wav", "summarize"], 0, ANSWER, ""),
    (["summarize", "--audio", "clip.wav", "--offline"], 0, ANSWER, ""),
    (["--audio", "clip.wav", "a", "b"], 0, f"> a\n{ANSWER}\n> b\n{ANSWER}", ""),
    (
        ["--audio", "clip.wav", "a", "--show-transcript"],
        0,
        f"> transcript\nHello world.\n\n> a\n{ANSWER}",
        "",
    ),
    (["--audio", "clip.wav", "a\nb", "c"], 0, f"> a\\nb\n{ANSWER}\n> c\n{ANSWER}", ""),
    (
        ["--audio", "clip.wav", "a", "--max-tokens", "5"],
        0,
        "It is\n",
        "as2d: warning: clip.wav: the answer to 'a' is cut off after 5 tokens (--max-tokens)\n",
    ),
    (["--audio", "clip.wav", "a", "--max-tokens", "5", "-q"], 0, "It is\n", ""),
    (["--audio", "clip.wav", "a", "--temperature", "0"], 0, ANSWER, ""),
    (
        ["--audio", "clip.wav", "a", "--temperature", "2.1"],
        2,
        "",
        "as2d: --temperature 2.1 is out of range; choose 0 to 2\n",
    ),
    (
        ["--audio", "clip.wav", "a", "--temperature", "nan"],
        2,
        "",
        "as2d: --temperature nan is out of range; choose 0 to 2\n",
    ),
    (
        ["--audio", "clip.wav", "a", "--seed", "-1"],
        2,
        "",
        "as2d: --seed -1 is out of range; choose 0 to 4294967295\n",
    ),
    (
        ["--audio", "clip.wav"],
        2,
        "",
        'as2d: no question; ask something, such as "summarize"\n',
    ),
    (
        ["--audio", "clip.wav", "a", " "],
        2,
        "",
        'as2d: an empty question; ask something, such as "summarize"\n',
    ),
    (["a"], 2, "", "as2d: nothing to ask about; give --audio FILE or --mic\n"),
    (
        ["a", "--mic", "--audio", "clip.wav"],
        2,
        "",
        "as2d: --mic and --audio contradict each other; give --audio FILE or --mic\n",
    ),
    (["--audio", "none.wav", "a"], 1, "", "as2d: no such file: none.wav; check the name\n"),
    (
        ["--audio", "clip.wav", "a", "--llm", "whisper-base"],
        2,
        "",
        "as2d: whisper-base is no language model; choose an llm of 'as2d models list'\n",
    ),
    (
        ["--audio", "clip.wav", "a", "--llm", "nothing"],
        3,
        "",
        "as2d: no model nothing; see 'as2d models list'\n",
    ),
    (
        ["--audio", "clip.wav", "a", "--budget", "0"],
        2,
        "",
        "as2d: --budget 0 is out of range; choose 1 to 31\n",
    ),
    (
        ["--audio", "clip.wav", "a", "--end", "0"],
        2,
        "",
        "as2d: --end 0 is not after --start 0; choose a later --end\n",
    ),
    (
        ["--audio", "clip.wav", "a", "-q", "-v"],
        2,
        "",
        "as2d: --quiet and --verbose contradict each other; give one of them\n",
    ),
]


@pytest.mark.parametrize(("args", "status", "stdout", "stderr"), TABLE)
def test_table(clip: Path, args: list[str], status: int, stdout: str, stderr: str) -> None:
    ran = run_cli("ask", *args)
    assert (ran.status, ran.stdout, ran.stderr) == (status, stdout, stderr)


def test_answers_depend_on_the_audio(tmp_path: Path) -> None:
    def echo(prompt: str) -> str:
        return prompt.split("Transcript:\n")[1].split("\n\n", maxsplit=1)[0]

    said = {}
    for seconds in (2, 3):
        path = write_wav(tmp_path / f"{seconds}.wav", tone(seconds))
        script = Script(texts=lambda w: f" {len(w.samples) // 16_000} seconds.", answer=echo)
        said[seconds] = run_cli("ask", "--audio", str(path), "who?", script=script).stdout
    assert said == {2: "2 seconds.\n", 3: "3 seconds.\n"}


def test_the_audio_is_heard_once_for_several_questions(clip: Path) -> None:
    script = Script()
    run_cli("ask", "--audio", "clip.wav", "a", "b", "c", script=script)
    heard = [entry for entry in script.log if entry[0] == "window" and len(entry[1].samples)]
    asked = [entry for entry in script.log if entry[0] == "window" and not len(entry[1].samples)]
    assert (len(heard), len(asked)) == (1, 3)
    # The speech models are closed before the language model is loaded.
    opened = [entry if entry == "closed" else entry[:2] for entry in script.log]
    assert opened.index("closed") < opened.index(("open", LLM))


def test_silence_is_no_speech_and_needs_no_language_model(tmp_path: Path) -> None:
    path = write_wav(tmp_path / "silence.wav", np.zeros(32_000))
    script = Script()
    ran = run_cli("ask", "--audio", str(path), "summarize", script=script)
    assert (ran.status, ran.stdout) == (0, "no speech\n")
    assert ran.stderr == f"as2d: {path}: no speech\n"
    assert ("open", LLM, None) not in script.log


def test_standard_input(clip: Path) -> None:
    ran = run_cli("ask", "--audio", "-", "summarize", stdin=clip.read_bytes())
    assert (ran.status, ran.stdout) == (0, ANSWER)


def test_the_microphone() -> None:
    sound = FakeSound(tone(1.5, 48_000).astype("float32")[:, None])
    ran = run_cli("ask", "--mic", "--end", "1", "summarize", sound=sound)
    assert (ran.status, ran.stdout) == (0, ANSWER)
    assert ran.stderr == "as2d: <microphone>: recording until Ctrl-C\n"


def test_while_somebody_is_silent_the_prompt_is_computed() -> None:
    pause = np.zeros(2 * 48_000)
    spoken = np.concatenate([tone(1, 48_000), pause, tone(1, 48_000), pause])
    sound = FakeSound(spoken.astype("float32")[:, None])
    script = Script()
    ran = run_cli("ask", "--mic", "--end", "4.5", "a", "-f", "json", sound=sound, script=script)
    data = json.loads(ran.stdout)
    assert data["answers"][0]["answer"] == "It is about Hello."
    assert data["prompt_tokens_ahead"] > 0
    opened = [entry if entry == "closed" else entry[:2] for entry in script.log]
    assert opened.index(("open", LLM)) < opened.index("closed")


def test_options_reach_the_models(clip: Path) -> None:
    script = Script()
    run_cli(
        "ask", "--audio", "clip.wav", "a", "--llm", "small-llm", "--llm-drafter", LLM,
        "--budget", "4", "--threads", "2", "--no-pin", "--target", "whisper-tiny.en",
        "--target-cores", "0", "--draft-cores", "1",
        "--drafter", "none", "--system", "Be brief.", "--language", "en",
        script=script,
    )  # fmt: skip
    answers, speech = script.asked[0], script.asked[-1]
    assert (answers.target, answers.drafter, answers.method) == ("small-llm", LLM, "as2d")
    assert (answers.budget, answers.threads, answers.pin) == (4, 2, False)
    assert (answers.target_cores, answers.draft_cores) == ("0", "1")
    assert (speech.target_cores, speech.draft_cores) == (None, None)
    assert (speech.target, speech.drafter, speech.method) == ("whisper-tiny.en", None, "auto")
    assert ("open", "small-llm", LLM) in script.log


def test_a_plan_from_a_file(clip: Path) -> None:
    costs = RunCosts({1: 0.05, 8: 0.08}, {}, 0.0, 0.0)
    plan = Plan("coupled", (0, 1), (0, 1), 4, costs=costs)
    saved = as_json(SavedPlan(LLM, "small-llm", plan))
    Path("plan.json").write_text(json.dumps(saved))
    script = Script()
    args = ("ask", "--audio", "clip.wav", "a", "--plan", "plan.json", "-f", "json")
    data = json.loads(run_cli(*args, script=script).stdout)
    asked = script.asked[0]
    assert (asked.method, asked.drafter, asked.budget) == ("coupled", "small-llm", 4)
    assert (asked.target_cores, asked.draft_cores) == ("0,1", "0,1")
    assert asked.costs == costs
    assert ("open", LLM, "small-llm") in script.log
    assert (data["method"], data["drafter"], data["plan"]["budget"]) == ("coupled", "small-llm", 4)
    # What is given beside it counts.
    other = Script()
    run_cli(*args, "--budget", "2", "--llm-drafter", "none", script=other)
    assert (other.asked[0].budget, other.asked[0].drafter) == (2, None)
    missing = run_cli("ask", "--audio", "clip.wav", "a", "--plan", "none.json")
    assert (missing.status, missing.stdout) == (2, "")
    assert "as2d: --plan none.json: No such file or directory" in missing.stderr


def test_answers_drawn_by_chance(clip: Path) -> None:
    script = Script()
    ran = run_cli(
        "ask", "--audio", "clip.wav", "a", "--temperature", "0.7", "--seed", "5", "-f", "json",
        script=script,
    )  # fmt: skip
    asked = [e[1] for e in script.log if e[0] == "window" and not len(e[1].samples)]
    assert [(window.temperature, window.seed) for window in asked] == [(0.7, 5)]
    data = json.loads(ran.stdout)
    assert (data["temperature"], data["seed"]) == (0.7, 5)


def test_verbose_tells_models_and_figures(clip: Path) -> None:
    ran = run_cli("ask", "--audio", "clip.wav", "a", "-v")
    why = "by rule, not by measurement: nothing was measured here"
    assert f"as2d: answers: {LLM}, lookup, {why}\n" in ran.stderr
    assert "as2d: 18 tokens in " in ran.stderr


# Formats


def test_json(clip: Path) -> None:
    ran = run_cli("ask", "--audio", "clip.wav", "a", "b", "-f", "json", "--system", "")
    data = json.loads(ran.stdout)
    assert data["file"] == "clip.wav"
    assert (data["transcript"], data["language"]) == ("Hello world.", "en")
    assert data["speech"]["model"] == "whisper-base"
    assert (data["model"], data["drafter"], data["method"]) == (LLM, None, "lookup")
    assert data["plan"] == {"budget": 8, "target_cores": [], "draft_cores": [], "pin": True}
    assert data["why"].startswith("by rule")
    assert data["system"] == ""
    assert data["prompt_tokens_ahead"] == 0
    first, second = data["answers"]
    assert (first["question"], second["question"]) == ("a", "b")
    assert (first["answer"], first["reason"], first["parts"]) == ("It is about Hello.", "end", 1)
    assert first["tokens"] == 18
    assert first["counters"]["committed"] == 18
    assert first["rates"]["tokens_per_second"] > 0


def test_json_lines(clip: Path) -> None:
    ran = run_cli("ask", "--audio", "clip.wav", "a", "b", "-f", "jsonl")
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [line["type"] for line in lines] == ["transcript", "answer", "answer", "end"]
    assert {line["file"] for line in lines} == {"clip.wav"}
    assert lines[2]["question"] == "b"
    assert lines[3]["model"] == LLM


def test_json_of_silence(tmp_path: Path) -> None:
    path = write_wav(tmp_path / "silence.wav", np.zeros(32_000))
    data = json.loads(run_cli("ask", "--audio", str(path), "a", "-f", "json").stdout)
    assert data["answers"][0]["answer"] == "no speech"
    assert data["answers"][0]["reason"] == "no speech"
    assert (data["model"], data["answers"][0]["counters"]) == (None, None)


# The display


def test_on_a_terminal_answers_are_whole_lines(clip: Path) -> None:
    script = Script(answer=lambda prompt: "- one\n- two", pause=0.02)
    ran = run_cli("ask", "--audio", "clip.wav", "a", terminal=True, script=script)
    assert "- one\r\n" in ran.stdout or "- one\n" in ran.stdout
    assert "two" in ran.stdout.split("- one")[-1]


# Fetching


def test_much_is_not_fetched_unasked(clip: Path) -> None:
    script = Script(to_fetch={LLM: "1117 MB, licence Apache-2.0"})
    ran = run_cli("ask", "--audio", "clip.wav", "a", script=script)
    assert (ran.status, ran.stdout) == (3, "")
    assert ran.stderr == (
        f"as2d: {LLM} is not on this machine (1117 MB, licence Apache-2.0); "
        "give --yes to fetch it\n"
    )
    assert all(entry[0] != "ensure" for entry in script.log)


@pytest.mark.parametrize("option", ["--yes", "-y"])
def test_yes(clip: Path, option: str) -> None:
    script = Script(to_fetch={LLM: "1117 MB"})
    ran = run_cli("ask", "--audio", "clip.wav", "a", option, script=script)
    assert (ran.status, ran.stdout) == (0, ANSWER)


@pytest.mark.parametrize(("said", "status"), [(b"y\n", 0), (b"n\n", 3), (b"\n", 3)])
def test_a_person_is_asked(clip: Path, said: bytes, status: int) -> None:
    ours, theirs = pty.openpty()
    err = io.BytesIO()
    with os.fdopen(theirs, "rb", buffering=0) as stdin, os.fdopen(ours, "wb", buffering=0) as keys:
        environment = Environment(
            stdin=stdin,
            stdout=Output(io.BytesIO(), "standard output"),
            stderr=Output(err, "standard error", is_terminal=True),
            variables={"AS2D_CONFIG": os.devnull, "TERM": "dumb"},
            backend=backend(Script(to_fetch={LLM: "1117 MB"})),
        )
        timer = threading.Timer(0.1, keys.write, [said])
        timer.start()
        assert run(["ask", "--audio", "clip.wav", "a"], environment) == status
        timer.join()
    assert f"as2d: {LLM} is to be fetched (1117 MB); go on? [y/N] ".encode() in err.getvalue()
