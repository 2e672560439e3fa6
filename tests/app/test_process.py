"""The program as a process: imports, pipes, signals, closed descriptors."""

from __future__ import annotations

import array
import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import pytest

from tests.fakes import tone, write_wav

ROOT = Path(__file__).parents[2]
DRIVER = [sys.executable, "-m", "tests.app.driver"]


def _environment(script: Mapping[str, object] | None = None, **variables: str) -> dict[str, str]:
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return os.environ | {"SCRIPT": json.dumps(script or {}), "PYTHONPATH": path} | variables


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_wav(tmp_path_factory.mktemp("clips") / "clip.wav", tone(70)))


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from as2d_cli.__main__ import main; sys.argv = ['as2d', '--help']\n"
        "main()\n"
        "heavy = {'numpy', 'onnxruntime', 'av', 'onnx', 'rich', 'as2d_cli.decoding.engine'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    shown = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path = {sys.path!r}\n{code}"],
        capture_output=True,
        text=True,
        check=True,
        env=_environment(),
    )
    assert "Commands:" in shown.stdout
    assert shown.stdout.splitlines()[-1] == "[]"


def test_nothing_of_the_display_reaches_pipes(clip: str) -> None:
    ran = subprocess.run(
        [*DRIVER, "transcribe", clip], capture_output=True, env=_environment(), check=True
    )
    assert ran.stdout == b"Hello world.\n" * 3
    assert ran.stderr == b""


def test_text_is_utf8_in_any_locale(clip: str) -> None:
    script = {"texts": [" ļoti 日本 \U0001f600"]}
    for locale in ("C", "en_US.ISO-8859-1"):
        ran = subprocess.run(
            [*DRIVER, "transcribe", clip],
            capture_output=True,
            env=_environment(script, LC_ALL=locale, PYTHONUTF8="0", PYTHONCOERCECLOCALE="0"),
            check=True,
        )
        assert ran.stdout.decode() == "ļoti 日本 \U0001f600\n" * 3


def test_head_ends_it_quietly(clip: str) -> None:
    command = f"{sys.executable} -m tests.app.driver transcribe {clip} | head -1; "
    ran = subprocess.run(
        ["bash", "-c", command + 'echo "${PIPESTATUS[0]}"'],
        capture_output=True,
        text=True,
        env=_environment({"pause": 0.05}),
        check=True,
    )
    assert ran.stdout == "Hello world.\n141\n"
    assert ran.stderr == ""


@pytest.mark.parametrize(
    ("redirection", "status", "stderr"),
    [
        (">/dev/full", 1, "as2d: cannot write to standard output: No space left on device\n"),
        (">&-", 1, "as2d: standard output is closed; give --output FILE\n"),
        ("<&-", 0, ""),
    ],
)
def test_redirections(clip: str, redirection: str, status: int, stderr: str) -> None:
    command = f"{sys.executable} -m tests.app.driver transcribe {clip} {redirection}"
    ran = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, env=_environment(), check=False
    )
    assert (ran.returncode, ran.stderr) == (status, stderr)


def test_output_to_a_descriptor_keeps_what_is_in_its_file(clip: str, tmp_path: Path) -> None:
    program = f"{sys.executable} -m tests.app.driver transcribe {clip} -o /dev/stdout"
    out = tmp_path / "out.txt"
    command = f"{{ echo a; {program}; echo b; }} > {out}"
    subprocess.run(["bash", "-c", command], env=_environment(), check=True)
    assert out.read_text() == "a\n" + "Hello world.\n" * 3 + "b\n"


def test_help_on_a_full_disk() -> None:
    command = f"{sys.executable} -m as2d_cli --help > /dev/full"
    ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert ran.stderr == "as2d: no space left on device; make room, or write elsewhere\n"


def test_closed_stderr(clip: str) -> None:
    command = f"{sys.executable} -m tests.app.driver transcribe {clip} missing 2>&-"
    ran = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, env=_environment(), check=False
    )
    assert (ran.returncode, ran.stdout) == (1, "Hello world.\n" * 3)


def _stopped(args: list[str], number: int, *, script: Mapping[str, object]) -> tuple[int, str, str]:
    """Status and output of the program when it gets a signal after its first output."""
    with subprocess.Popen(
        [*DRIVER, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=_environment(script)
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
        return process.returncode, (first + out).decode(), err.decode()


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_signals(clip: str, tmp_path: Path, number: int, status: int) -> None:
    script = {"pause": 0.05, "texts": [" Hello world.", "x" * 4000]}
    assert _stopped(["transcribe", clip], number, script=script)[0] == status
    with subprocess.Popen(
        [*DRIVER, "transcribe", clip, "-o", str(tmp_path / "out.txt")], env=_environment(script)
    ) as process:
        while not list(tmp_path.iterdir()) and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(number)
        if number == signal.SIGHUP:  # a terminal that is closed sends two
            process.send_signal(number)
        assert process.wait(20) == status
    assert list(tmp_path.iterdir()) == []


SLOW = """
import sys, time
from unittest.mock import patch
from as2d_cli.environment import Environment
from as2d_cli.output.file import ResultFile
from as2d_cli.process import run_process
from tests.app.driver import with_fakes

def unwind(*_):
    print("unwinding", flush=True)
    time.sleep(60)

with patch.object(Environment, "of_process", with_fakes):
    with patch.object(ResultFile, "__exit__", unwind):
        run_process(sys.argv[1:])
"""


def test_a_second_interruption_leaves_at_once_and_nothing_behind(clip: str, tmp_path: Path) -> None:
    script = {"pause": 0.05, "texts": ["x" * 4000]}
    with subprocess.Popen(
        [sys.executable, "-c", SLOW, "transcribe", clip, "-o", str(tmp_path / "out.txt")],
        stdout=subprocess.PIPE,
        env=_environment(script),
    ) as process:
        assert process.stdout is not None
        while not list(tmp_path.iterdir()) and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == b"unwinding\n"
        assert list(tmp_path.iterdir())
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
    assert list(tmp_path.iterdir()) == []


def test_interruption_keeps_the_words(clip: str) -> None:
    script = {"pause": 0.02, "texts": [" Hello world.", "x" * 4000]}
    status, out, err = _stopped(["transcribe", clip], signal.SIGINT, script=script)
    assert (status, err) == (130, "")
    assert out.startswith("Hello world.\n") and out.endswith("\n")


def _unread(pipe: IO[bytes]) -> int:
    """Bytes that nobody has taken out of a pipe yet."""
    count = array.array("i", [0])
    fcntl.ioctl(pipe.fileno(), termios.FIONREAD, count)
    return count[0]


@pytest.mark.parametrize("given", [1, 60_000], ids=["in the header", "in the sound"])
def test_interruption_while_a_pipe_gives_nothing(clip: str, given: int) -> None:
    with subprocess.Popen(
        [*DRIVER, "transcribe", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=_environment(),
    ) as process:
        assert process.stdin is not None
        process.stdin.write(Path(clip).read_bytes()[:given])
        process.stdin.flush()
        while _unread(process.stdin) and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)  # it waits for more
        assert process.wait(20) == 130
        assert process.stderr is not None and process.stderr.read() == b""


def test_interruption_ends_a_recording_and_keeps_its_words() -> None:
    with subprocess.Popen(
        [*DRIVER, "transcribe", "--mic"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=_environment({}, SOUND="60"),
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == b"as2d: <microphone>: recording until Ctrl-C\n"
        time.sleep(1)  # something is said
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=50)
    assert (process.returncode, out, err) == (0, b"Hello world.\n", b"")


@pytest.mark.parametrize("route", ["- < {}", "/dev/stdin < {}", "<(cat {})", "- < <(cat {})"])
def test_routes_into_the_program(clip: str, route: str) -> None:
    command = f"{sys.executable} -m tests.app.driver transcribe {route.format(clip)}"
    ran = subprocess.run(
        ["bash", "-c", command], capture_output=True, env=_environment(), check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"Hello world.\n" * 3, b"")


def test_background_job_ignores_the_interruption_it_was_told_to(clip: str) -> None:
    command = f"trap '' INT; exec {sys.executable} -m tests.app.driver transcribe {clip}"
    with subprocess.Popen(
        ["bash", "-c", command], stdout=subprocess.PIPE, env=_environment({"pause": 0.02})
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=20)
    assert (process.returncode, first + rest) == (0, b"Hello world.\n" * 3)
