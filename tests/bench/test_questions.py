"""``as2d bench --task ask``, on a machine whose times and texts are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from as2d_cli.bench.questions import QUESTIONS, Question, load_questions
from as2d_cli.errors import As2dError, ExitStatus
from tests.bench.fakes import FakeMachine, Job, run_bench
from tests.bench.test_command import clips, document, rows
from tests.fakes import Script, text_of, write_wav

__all__ = ["clips"]

TIMES = {"target": 2.0, "lookup ? 8": 1.0, "as2d oracle 8": 0.5}
ASK = ("--task", "ask", "--target", "llm")


def machine(**how: Any) -> FakeMachine:
    known: dict[str, Any] = {"cores": 1, "takes": lambda job: TIMES.get(job.name, 3.0)}
    return FakeMachine(**(known | how))


def asked(fake: FakeMachine) -> list[tuple[str, str]]:
    """Method and prompt of all jobs but those that make the engine forget."""
    return [(job.method, text_of(job.prompt)) for job in fake.jobs if len(job.prompt) > 1]


def test_every_question_about_every_clip_by_every_method(clips: str) -> None:
    fake = machine(speech=Script(texts=[" First."]))
    ran = run_bench(fake, clips, *ASK)
    assert ran.status == 0, ran.stderr
    per_method = [prompt for method, prompt in asked(fake) if method == "lookup"]
    assert len(per_method) == 2 * len(QUESTIONS) + 1  # and one to warm up
    assert all("Transcript:\nFirst.\n\n" in prompt for prompt in per_method)
    assert {method for method, _ in asked(fake)} == {"target", "lookup"}
    assert rows(ran)["lookup 8"][2] == "2.00"
    assert "12 questions of 2 recordings" in ran.stderr


def test_no_contender_finds_a_prompt_that_another_left(clips: str) -> None:
    fake = machine()
    run_bench(fake, clips, *ASK)
    assert [len(job.prompt) > 1 for job in fake.jobs] == [False, True] * (len(fake.jobs) // 2)


def test_the_width_is_found_by_the_beginning_of_answers(clips: str) -> None:
    fake = machine(cores=2, says=lambda job, seconds: "x" * 100)
    ran = run_bench(fake, clips, *ASK, "--methods", "target")
    assert "target-only runs on 1 core, the fastest of 1, 2 in warm-up" in ran.stdout
    short = [job for job in fake.jobs if len(job.prompt) > 1 and job.limit == 16]
    assert len(short) == 2 * 4 * 2  # widths, rounds, units
    assert {job.cores for job in short} == {1, 2}


def test_kinds_of_questions_are_told_apart(clips: str) -> None:
    def takes(job: Job) -> float:
        request = text_of(job.prompt).rpartition("Request: ")[2]
        repeats = request.startswith(("correct", "quote", "repeat"))
        return 1.0 if job.method == "lookup" and repeats else 2.0

    ran = run_bench(machine(takes=takes), clips, *ASK)
    whole, free, source, *_ = ran.stdout.split("\n\n")
    assert free.startswith("of these, free-form:")
    assert source.startswith("of these, source-repeating:")
    ratios = [next(x for x in t.splitlines() if x.startswith("lookup")) for t in (free, source)]
    assert "1.00" in ratios[0] and "2.00" in ratios[1]
    assert "1.33" in whole


def test_a_difference_is_status_1_and_names_the_question(clips: str) -> None:
    def says(job: Job, seconds: float) -> str:
        wrong = job.method == "lookup" and "summarize" in text_of(job.prompt)
        return "wrong" if wrong else "right"

    ran = run_bench(machine(says=says), clips, *ASK)
    assert ran.status == 1
    assert "as2d: lookup 8: two.wav 'summarize' differs\n" in ran.stderr


def test_own_questions_and_the_document(clips: str, tmp_path: Path) -> None:
    file = tmp_path / "questions.txt"
    file.write_text("who?\n\nfacts\twhen?\n")
    fake = machine()
    args = (*ASK, "--questions", str(file), "--methods", "as2d", "--html", "out.html")
    whole = document(clips, *args, fake=fake)
    assert [unit["question"] for unit in whole["units"]] == ["who?", "when?"] * 2
    assert [unit["category"] for unit in whole["units"]] == ["", "facts"] * 2
    assert whole["settings"]["by"] == "question"
    assert whole["contenders"][1]["label"] == "as2d oracle 8"
    assert {unit["reference_text"] for unit in whole["units"]} == {None}
    assert "two.wav: who?" in Path("out.html").read_text()


def test_what_ask_would_do_is_a_contender(clips: str) -> None:
    fake = machine()
    ran = run_bench(fake, clips, *ASK, "--methods", "target", "--plan", "auto")
    assert "plan: lookup" in rows(ran)


def test_silent_and_broken_clips_are_left_out(tmp_path: Path) -> None:
    silent = write_wav(tmp_path / "silent.wav", np.zeros(32_000))
    text = tmp_path / "text.wav"
    text.write_text("no sound")
    ran = run_bench(machine(), str(silent), str(text), *ASK)
    assert ran.status == 2
    assert f"left out: {silent}: no speech" in ran.stderr
    assert "text.wav" in ran.stderr
    assert "nothing to measure: no clip can be used" in ran.stderr


def test_what_does_not_fit_the_model_is_left_out(clips: str) -> None:
    ran = run_bench(machine(), clips, "--task", "ask", "--target", "tiny-llm")
    assert ran.status == 2
    assert "left out: two.wav: too long for tiny-llm" in ran.stderr


@pytest.mark.parametrize(
    ("args", "status", "problem"),
    [
        (["--questions", "x.txt"], 2, "--questions are of --task ask; add it"),
        ([*ASK, "--by", "recording"], 2, "--by recording: each question is timed alone"),
        ([*ASK, "--alignment", "x.json"], 2, "--alignment: answers are not aligned with audio"),
        ([*ASK, "--device", "phone"], 2, "--device: questions are answered on this machine only"),
        ([*ASK, "--questions", "none.txt"], 2, "none.txt: cannot be read"),
        (["--task", "ask", "--target", "x"], 2, "x is no language model"),
        (["--target", "llm"], 2, "llm is a language model, which hears nothing"),
        (["--task", "ask", "--target", "far"], 3, "far is not on this machine (9 MB); run 'as2d"),
    ],
)
def test_mistakes(clips: str, args: list[str], status: int, problem: str) -> None:
    ran = run_bench(machine(to_fetch={"far": "9 MB"}), clips, *args)
    assert ran.status == status
    assert problem in ran.stderr
    assert not ran.stdout


def test_questions_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "q.txt"
    file.write_text(" a b \nkind one\t what? \n")
    assert load_questions(file) == [Question("a b"), Question("what?", "kind one")]
    file.write_text("\n")
    with pytest.raises(As2dError, match="no question") as caught:
        load_questions(file)
    assert caught.value.status is ExitStatus.USAGE


# A model that hears

HEAR = ("--task", "ask", "--target", "hearing-llm")


def test_a_model_that_hears_is_asked_about_the_audio(clips: str) -> None:
    fake = machine()
    ran = run_bench(fake, clips, *HEAR)
    assert ran.status == 0, ran.stderr
    jobs = [job for job in fake.jobs if len(job.prompt) > 1 and job.method == "lookup"]
    assert len(jobs) == 2 * len(QUESTIONS) + 1  # and one to warm up
    for job in jobs:
        lines = text_of(job.prompt).count("@")
        assert lines == -(-job.seconds[0] // 1) > 0
        assert "Transcript" not in text_of(job.prompt)
    # What makes the engine forget has no audio.
    forgotten = [job.seconds for job in fake.jobs if len(job.prompt) == 1]
    assert set(forgotten) == {(0.0,)}
    assert rows(ran)["lookup 8"][2] == "2.00"


def test_a_speech_model_drafts_for_it(clips: str) -> None:
    fake = machine()
    ran = run_bench(fake, clips, *HEAR, "--methods", "target,as2d", "--drafters", "x")
    assert ran.status == 0, ran.stderr
    assert "as2d x 8" in rows(ran)


def test_silence_and_broken_clips_for_a_model_that_hears(tmp_path: Path) -> None:
    silent = write_wav(tmp_path / "silent.wav", np.zeros(32_000))
    text = tmp_path / "text.wav"
    text.write_text("no sound")
    ran = run_bench(machine(), str(silent), str(text), *HEAR)
    assert ran.status == 2
    assert f"left out: {silent}: no speech" in ran.stderr
    assert "text.wav" in ran.stderr
