"""Command lines and what they give, over a scripted engine."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import numpy as np
import pytest

from as2d_cli.catalog import Bundle, load_catalogue
from as2d_cli.catalog.progress import OnStart
from as2d_cli.errors import As2dError, ExitStatus
from tests.fakes import BrokenRaw, Ran, Script, run_cli, tone, write_wav


@pytest.fixture
def clip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """clip.wav, 2 s, in the current folder."""
    monkeypatch.chdir(tmp_path)
    return write_wav(tmp_path / "clip.wav", tone(2)).relative_to(tmp_path)


HELLO = "Hello world.\n"

TABLE: list[tuple[list[str], int, str, str]] = [
    (["transcribe", "clip.wav"], 0, HELLO, ""),
    (["transcribe", "clip.wav", "clip.wav"], 0, HELLO * 2, ""),
    (["transcribe", "--drafter", "none", "clip.wav"], 0, HELLO, ""),
    (["transcribe", "--method", "target", "clip.wav"], 0, HELLO, ""),
    (["transcribe", "--max-tokens", "5", "clip.wav"], 0, "Hell\n", ""),
    (["transcribe", "--language", "DE", "--drafter", "none", "clip.wav"], 0, HELLO, ""),
    (
        ["transcribe", "--language", "de", "clip.wav"],
        0,
        HELLO,
        "as2d: clip.wav: drafter whisper-tiny.en does not know language de, "
        "the target goes alone\n",
    ),
    (["transcribe", "--language", "de", "--quiet", "clip.wav"], 0, HELLO, ""),
    (
        ["transcribe", "missing.wav"],
        1,
        "",
        "as2d: no such file: missing.wav; check the name\n",
    ),
    (
        ["transcribe", "missing.wav", "clip.wav"],
        1,
        HELLO,
        "as2d: no such file: missing.wav; check the name\n",
    ),
    (
        ["transcribe", "."],
        1,
        "",
        "as2d: is a directory: .; give audio files, or --recursive for those in it\n",
    ),
    (
        ["transcribe", "clip.wav", "--target", "small-llm"],
        2,
        "",
        "as2d: small-llm is a language model, which hears nothing; choose a target of "
        "'as2d models list'\n",
    ),
    (["transcribe", ""], 1, "", "as2d: no such file: ''; check the name\n"),
    (
        ["transcribe", "--drafter", "moonshin", "clip.wav"],
        0,
        HELLO,
        "as2d: warning: no drafter, the target goes alone: "
        "no model moonshin; see 'as2d models list'\n",
    ),
    (
        ["transcribe", "--target", "whisper-bas", "clip.wav"],
        3,
        "",
        "as2d: no model whisper-bas; see 'as2d models list'\n",
    ),
    (
        ["transcribe", "--language", "xx", "clip.wav"],
        2,
        "",
        "as2d: unknown language 'xx' for --language; whisper-base knows: auto de en ja lv\n",
    ),
    (
        ["transcribe", "--target", "whisper-tiny.en", "--language", "de", "clip.wav"],
        2,
        "",
        "as2d: whisper-tiny.en knows only en, not 'de' of --language; "
        "leave --language out, or choose a multilingual --target\n",
    ),
    (["transcribe", "--target-cores", "99", "x"], 2, "", "as2d: no core 99 for --target-cores\n"),
    (
        ["transcribe", "--budget", "99", "clip.wav"],
        2,
        "",
        "as2d: --budget 99 is out of range; choose 1 to 31\n",
    ),
    (
        ["transcribe", "--windows", "17", "clip.wav"],
        2,
        "",
        "as2d: --windows 17 is out of range; choose 1 to 16\n",
    ),
    (["transcribe", "--budget", "x", "y"], 2, "", "as2d: invalid value for '--budget': "),
    (["transcribe", "--max-tokens", "0", "x"], 2, "", "as2d: --max-tokens 0 is out of range; "),
    (["transcribe", "-", "-"], 2, "", "as2d: standard input ('-') can be read only once; name"),
    (["transcribe", "-"], 1, "", "as2d: standard input is closed; give a file, or a pipe for '-'"),
    (["transcribe"], 2, "", "as2d: missing argument 'FILE'; see 'as2d transcribe --help'\n"),
    (["transcribe", "--formt", "txt", "x"], 2, "", "as2d: no such option: --formt"),
    (
        ["transcribe", "--format", "srtx", "x"],
        2,
        "",
        "as2d: invalid value for '--format' / '-f': 'srtx' is not one of 'txt', 'srt', ",
    ),
    (["transcrib"], 2, "", "as2d: no such command 'transcrib'"),
    (["transcribe", "-o", "-", "clip.wav"], 0, HELLO, ""),
    (["transcribe", "-o", "clip.wav", "clip.wav"], 2, "", "as2d: --output clip.wav is an input"),
    (["transcribe", "-o", "no/where", "clip.wav"], 1, "", "as2d: cannot write --output no/where"),
    (
        ["transcribe", "-o", "n" * 300, "clip.wav"],
        1,
        "",
        f"as2d: cannot write --output {'n' * 300}: File name too long; choose another place\n",
    ),
    (
        ["transcribe", "-o", f"{'n' * 300}/", "clip.wav"],
        1,
        "",
        f"as2d: {'n' * 300}/clip.txt: File name too long; check the name\n",
    ),
    (["bench", "n" * 300], 1, "", f"as2d: {'n' * 300}: File name too long; check the name\n"),
    (["transcribe", "--rate", "1", "x"], 2, "", "as2d: --rate 1 is out of range; choose 1000 to "),
    (
        ["transcribe", "--channels", "65", "x"],
        2,
        "",
        "as2d: --channels 65 is out of range; choose ",
    ),
    (["transcribe", "--raw", "s17le", "x"], 2, "", "as2d: invalid value for '--raw': 's17le' is "),
    (
        ["transcribe", "--lines", "0", "x"],
        2,
        "",
        "as2d: --lines 0 is out of range; choose 1 to 10\n",
    ),
    (
        ["transcribe", "--start", "1:70", "x"],
        2,
        "",
        "as2d: --start '1:70' is no time; give seconds",
    ),
    (
        ["transcribe", "--start", "9", "--end", "9", "x"],
        2,
        "",
        "as2d: --end 9 is not after --start 9",
    ),
    (["transcribe", "-q", "-v", "x"], 2, "", "as2d: --quiet and --verbose contradict each other; "),
    (["transcribe", "-f", "srt", "-f", "vtt", "x"], 2, "", "as2d: 2 formats need a folder; give "),
    (
        ["transcribe", "-f", "srt", "x", "y"],
        2,
        "",
        "as2d: a file of srt holds one input and not 2;",
    ),
    (["transcribe", "-", "/dev/stdin"], 2, "", "as2d: standard input ('-') can be read only once;"),
    (["transcribe", "--mic", "x"], 2, "", "as2d: --mic takes neither files nor --raw; give one or"),
    (["transcribe", "-f", "tsv", "clip.wav"], 0, "start\tend\ttext\n0\t2000\tHello world.\n", ""),
    (
        ["transcribe", "-f", "srt", "clip.wav"],
        0,
        "1\n00:00:00,000 --> 00:00:02,000\nHello world.\n\n",
        "",
    ),
    (
        ["transcribe", "--end", "1", "-f", "tsv", "clip.wav"],
        0,
        "start\tend\ttext\n0\t1000\tHello world.\n",
        "",
    ),
    (
        ["transcribe", "--start", "0:01.5", "-f", "tsv", "clip.wav"],
        0,
        "start\tend\ttext\n1500\t2000\tHello world.\n",
        "",
    ),
    (
        ["transcribe", "--start", "3", "clip.wav"],
        0,
        "",
        "as2d: warning: clip.wav: is over at 2.0 s, before the asked-for part\n",
    ),
]


@pytest.mark.parametrize(("args", "status", "stdout", "stderr"), TABLE, ids=lambda x: str(x)[:60])
def test_table(clip: Path, args: list[str], status: int, stdout: str, stderr: str) -> None:
    ran = run_cli(*args)
    assert (ran.status, ran.stdout) == (status, stdout)
    assert ran.stderr.startswith(stderr) and (stderr or not ran.stderr)
    assert ran.stderr.count("\n") == bool(stderr) + ("is over" in stderr)  # no speech, too


def test_names_with_odd_characters_are_one_inert_line(clip: Path) -> None:
    ran = run_cli("transcribe", "a\nb\x1b[31m.wav")
    assert ran.stderr == "as2d: no such file: a\\nb\\x1b[31m.wav; check the name\n"


def test_undecodable_name(clip: Path) -> None:
    name = b"caf\xe9.wav".decode("utf-8", "surrogateescape")
    Path(name).write_bytes(clip.read_bytes())
    ran = run_cli("transcribe", "-f", "json", name)
    assert json.loads(ran.stdout)["file"] == "caf\\xe9.wav"


def test_leading_dash(clip: Path) -> None:
    Path("-x.wav").write_bytes(clip.read_bytes())
    assert run_cli("transcribe", "--", "-x.wav").stdout == HELLO


def test_standard_input(clip: Path) -> None:
    ran = run_cli("transcribe", "-f", "json", "-", stdin=clip.read_bytes())
    assert json.loads(ran.stdout)["file"] == "<stdin>"
    assert json.loads(ran.stdout)["duration"] == 2.0


def test_missing_input_loads_no_model(clip: Path) -> None:
    script = Script()
    run_cli("transcribe", "missing.wav", script=script)
    assert not {entry[0] for entry in script.log} & {"ensure", "open"}


def test_offline_never_pulls(clip: Path) -> None:
    script = Script(absent=["whisper-tiny.en"])
    ran = run_cli("transcribe", "--offline", "clip.wav", script=script)
    assert (ran.status, ran.stdout) == (0, HELLO)
    assert ran.stderr.startswith(
        "as2d: warning: no drafter, the target goes alone: whisper-tiny.en"
    )
    assert {entry[2] for entry in script.log if entry[0] == "ensure"} == {True}


@pytest.mark.parametrize(
    ("options", "method"),
    [
        ([], "auto"),
        (["--drafter", "moonshine-tiny-en"], "as2d"),
        (["--drafter", "none"], "auto"),
        (["--method", "target", "--drafter", "moonshine-tiny-en"], "target"),
        (["--method", "as2d"], "as2d"),
    ],
)
def test_who_names_a_drafter_wants_it_used(clip: Path, options: list[str], method: str) -> None:
    script = Script()
    assert run_cli("transcribe", *options, "clip.wav", script=script).status == 0
    assert ("plan", method) in script.log


@pytest.mark.parametrize(
    ("options", "language", "script", "opened"),
    [
        ([], None, Script(drafter="base-head"), "base-head"),
        (["--drafter", "auto", "--language", "DE"], "de", Script(), "whisper-tiny.en"),
        (["--method", "as2d"], None, Script(drafter=None), None),
    ],
)
def test_the_drafter_suits_target_and_language(
    clip: Path, options: list[str], language: str | None, script: Script, opened: str | None
) -> None:
    assert run_cli("transcribe", *options, "clip.wav", script=script).status == 0
    assert ("drafter", "whisper-base", language) in script.log
    assert ("open", "whisper-base", opened) in script.log


def test_a_named_drafter_is_not_chosen_again(clip: Path) -> None:
    script = Script()
    assert run_cli("transcribe", "--drafter", "base-head", "clip.wav", script=script).status == 0
    assert ("open", "whisper-base", "base-head") in script.log
    assert not [entry for entry in script.log if entry[0] == "drafter"]


def test_a_head_for_another_target_is_refused(clip: Path) -> None:
    script = Script()
    ran = run_cli("transcribe", "--drafter", "small-head", "clip.wav", script=script)
    assert (ran.status, ran.stdout) == (2, "")
    assert ran.stderr == (
        "as2d: drafter small-head is a head for the target whisper-small, not for whisper-base; "
        "choose that target or another drafter\n"
    )
    assert not [entry for entry in script.log if entry[0] == "open"]


def test_offline_without_target(clip: Path) -> None:
    ran = run_cli("transcribe", "--offline", "clip.wav", script=Script(absent=["whisper-base"]))
    assert (ran.status, ran.stderr) == (3, "as2d: whisper-base is not here\n")


@pytest.mark.parametrize(
    ("script", "stderr"),
    [
        (Script(drafter_dies="it hung"), "clip.wav: the drafter failed, the target goes alone: it"),
        (Script(broken_drafter="whisper-tiny.en: decoder is empty"), "whisper-tiny.en: decod"),
    ],
)
def test_lost_drafter_is_one_warning(clip: Path, script: Script, stderr: str) -> None:
    ran = run_cli("transcribe", "clip.wav", script=script)
    assert (ran.status, ran.stdout) == (0, HELLO)
    assert ran.stderr.startswith(f"as2d: warning: {stderr}")
    assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize("terminal", [False, True])
def test_real_catalogue_without_models(
    clip: Path, monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    monkeypatch.setenv("AS2D_CACHE_DIR", "cache")
    ran = run_cli("transcribe", "--offline", "clip.wav", real=True, terminal=terminal)
    talk = ran.stdout if terminal else ran.stderr
    assert ran.status == 3
    assert talk.startswith("as2d: ") and "whisper-base" in talk and talk.count("\n") == 1


def test_downloads_are_announced(clip: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ensure(name: str, *, on_start: OnStart, **options: object) -> Bundle:
        on_start(load_catalogue().require(name), Path("cache/bundles") / name)
        raise As2dError("no network", status=ExitStatus.UNAVAILABLE)

    monkeypatch.setattr("as2d_cli.catalog.ensure_bundle", ensure)
    ran = run_cli("transcribe", "clip.wav", real=True)
    assert ran.stderr.splitlines() == [
        "as2d: fetching whisper-base (148 MB, licence MIT) to cache/bundles/whisper-base",
        "as2d: no network",
    ]
    assert ran.status == 3


def test_engine_failure_is_the_inputs_failure(clip: Path) -> None:
    ran = run_cli("transcribe", "clip.wav", script=Script(fails="no memory"))
    assert ran.status == 1
    assert ran.stderr == "as2d: clip.wav: decoding failed: no memory\n"


def test_silence_costs_no_window(tmp_path: Path) -> None:
    script = Script()
    path = write_wav(tmp_path / "zeros.wav", np.zeros(35 * 16000))
    ran = run_cli("transcribe", str(path), script=script)
    assert (ran.status, ran.stdout) == (0, "")
    assert ran.stderr == f"as2d: {path}: no speech\n"
    assert not [entry for entry in script.log if entry[0] in ("start", "detect")]


def test_no_samples_give_an_empty_result(tmp_path: Path) -> None:
    path = write_wav(tmp_path / "none.wav", np.zeros(0))
    data = json.loads(run_cli("transcribe", "-f", "json", str(path)).stdout)
    assert (data["duration"], data["segments"], data["text"]) == (0.0, [], "")
    assert set(data["rates"].values()) == {None}
    assert data["language"] is None and data["counters"] is None


def test_json_is_strict_and_complete(clip: Path) -> None:
    def refuse(word: str) -> float:
        raise AssertionError(word)

    ran = run_cli("transcribe", "-f", "json", "--tokens", "clip.wav", "clip.wav")
    first, second = (json.loads(line, parse_constant=refuse) for line in ran.stdout.splitlines())
    assert first.keys() == second.keys()
    assert first["language_probability"] == 0.98
    assert (first["model"], first["drafter"], first["method"]) == (
        "whisper-base",
        "whisper-tiny.en",
        "as2d",
    )
    assert first["segments"] == [
        {
            "start": 0.0,
            "end": 2.0,
            "text": "Hello world.",
            "tokens": [1 + b for b in b" Hello world."],
        }
    ]
    assert first["counters"]["seconds"]["wall"] is None  # NaN in the engine's own figures


def test_output_file_is_whole_or_not_there(clip: Path) -> None:
    assert run_cli("transcribe", "-o", "out.txt", "clip.wav").stdout == ""
    assert Path("out.txt").read_text() == HELLO
    ran = run_cli("transcribe", "-o", "bad.txt", "clip.wav", script=Script(fails="no memory"))
    assert ran.status == 1
    assert sorted(p.name for p in Path().iterdir()) == ["clip.wav", "out.txt"]


def test_output_is_not_replaced_unasked(clip: Path) -> None:
    Path("out.txt").write_text("mine")
    ran = run_cli("transcribe", "-o", "out.txt", "clip.wav")
    assert (ran.status, ran.stderr) == (
        1,
        "as2d: --output out.txt exists; choose another name, or --force\n",
    )
    assert Path("out.txt").read_text() == "mine"
    assert run_cli("transcribe", "-o", "out.txt", "--force", "clip.wav").status == 0
    assert Path("out.txt").read_text() == HELLO


def test_the_suffix_of_the_output_chooses_the_format(clip: Path) -> None:
    assert run_cli("transcribe", "-o", "out.vtt", "clip.wav").status == 0
    assert Path("out.vtt").read_text().startswith("WEBVTT\n\n00:00:00.000 --> ")
    assert run_cli("transcribe", "-f", "txt", "-o", "text.srt", "clip.wav").status == 0
    assert Path("text.srt").read_text() == HELLO


def test_a_file_for_each_input_and_format(clip: Path) -> None:
    Path("other.wav").write_bytes(clip.read_bytes())
    ran = run_cli("transcribe", "-f", "srt", "-f", "json", "-o", "new/", "clip.wav", "other.wav")
    assert (ran.status, ran.stdout, ran.stderr) == (0, "", "")
    assert sorted(p.name for p in Path("new").iterdir()) == [
        "clip.json",
        "clip.srt",
        "other.json",
        "other.srt",
    ]
    assert json.loads(Path("new/other.json").read_text())["file"] == "other.wav"


def test_results_that_exist_are_left_alone_and_the_others_made(clip: Path) -> None:
    Path("other.wav").write_bytes(clip.read_bytes())
    Path("clip.txt").write_text("mine")
    ran = run_cli("transcribe", "-o", ".", "clip.wav", "other.wav")
    assert (ran.status, ran.stderr) == (1, "as2d: clip.txt exists; --force replaces it\n")
    assert (Path("clip.txt").read_text(), Path("other.txt").read_text()) == ("mine", HELLO)


def test_a_failed_input_leaves_no_file_and_stops_nobody(clip: Path) -> None:
    Path("bad.wav").write_text("this is not audio")
    ran = run_cli("transcribe", "-o", "new/", "bad.wav", "clip.wav")
    assert (ran.status, ran.stderr) == (1, "as2d: not an audio file: bad.wav\n")
    assert [p.name for p in Path("new").iterdir()] == ["clip.txt"]


def test_folders(clip: Path) -> None:
    for name in ("talks/b/deep.wav", "talks/a.wav", "talks/.hidden.wav", "talks/.git/x.wav"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(clip.read_bytes())
    Path("talks/notes.txt").write_text("no audio")
    ran = run_cli("transcribe", "--recursive", "-o", "new/", "talks")
    assert (ran.status, ran.stderr) == (0, "as2d: 1 file without audio left out\n")
    assert sorted(str(p) for p in Path("new").rglob("*.txt")) == ["new/a.txt", "new/b/deep.txt"]
    ran = run_cli("transcribe", "--recursive", "-f", "json", "talks")
    files = [json.loads(line)["file"] for line in ran.stdout.splitlines()]
    assert files == ["talks/a.wav", "talks/b/deep.wav"]


@pytest.mark.parametrize(
    ("files", "stderr"),
    [
        ([], "as2d: no files in empty\n"),
        (
            ["notes.txt"],
            "as2d: 1 file without audio left out\nas2d: none of the files has audio in it\n",
        ),
    ],
)
def test_folders_without_audio_are_a_failure(clip: Path, files: list[str], stderr: str) -> None:
    Path("empty").mkdir()
    for name in files:
        (Path("empty") / name).write_text("no audio")
    ran = run_cli("transcribe", "-r", "empty")
    assert (ran.status, ran.stdout, ran.stderr) == (1, "", stderr)


def test_raw_samples(clip: Path) -> None:
    samples = np.round(tone(2, 8000) * 32767).astype(">i2")
    stereo = np.repeat(samples[:, None], 2, axis=1).tobytes()
    options = ["--raw", "s16be", "--rate", "8000", "--channels", "2", "-f", "json"]
    Path("x.raw").write_bytes(stereo)
    for source, stdin in (("x.raw", None), ("-", stereo)):
        ran = run_cli("transcribe", *options, source, stdin=stdin)
        assert json.loads(ran.stdout)["duration"] == 2.0
    ran = run_cli("transcribe", "--raw", "s16le", "-", stdin=b"")
    assert (ran.status, ran.stderr) == (1, "as2d: empty file: <stdin>\n")


def test_without_a_voice_model_silence_is_still_left_out(tmp_path: Path) -> None:
    script = Script(no_voice="no network")
    path = write_wav(tmp_path / "x.wav", np.concatenate([np.zeros(45 * 16000), tone(5)]))
    ran = run_cli("transcribe", "-f", "tsv", str(path), script=script)
    assert ran.stdout.splitlines()[1] == "30000\t50000\tHello world."
    assert ran.stderr == "as2d: warning: noise and music are not told from speech: no network\n"


def test_no_vad_asks_for_no_model(clip: Path) -> None:
    script = Script()
    assert run_cli("transcribe", "--no-vad", "clip.wav", script=script).stdout == HELLO
    assert not [entry for entry in script.log if entry[0] == "voice"]


def test_verbose_tells_off_a_terminal(clip: Path) -> None:
    lines = run_cli("transcribe", "-v", "clip.wav").stderr.splitlines()
    assert lines[:2] == ["as2d: plan: as2d, by rule", "as2d: clip.wav: language en (98%)"]
    assert lines[2].startswith("2.0 s of audio in ")


def test_options_are_in_groups(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli("transcribe", "--help").status == 0
    shown = capsys.readouterr().out
    at = [shown.index(f"\n{panel}:\n") for panel in ("Input", "Text", "Output", "Models and cores")]
    assert at == sorted(at)
    assert at[0] < shown.index("--recursive") < at[1] < shown.index("--language") < at[2]
    for option in ("--threads", "--no-pin", "--plan", "--offline"):
        assert at[3] < shown.index(f"{option} ") < shown.index("\nOptions:\n"), option


def test_output_to_a_device(clip: Path) -> None:
    assert run_cli("transcribe", "-o", "/dev/null", "clip.wav").status == 0
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize(
    ("error", "status", "stderr"),
    [
        (errno.EPIPE, 141, ""),
        (
            errno.ENOSPC,
            1,
            "as2d: cannot write to standard output: No space left on device\n",
        ),
    ],
)
def test_unwritable_stdout(clip: Path, error: int, status: int, stderr: str) -> None:
    script = Script()
    ran = run_cli("transcribe", "clip.wav", script=script, stdout=BrokenRaw(error))
    assert (ran.status, ran.stderr) == (status, stderr)
    assert "cancel" in script.log and script.log[-1] == "closed"


def test_bug_is_one_line(clip: Path) -> None:
    def bug(window: object) -> str:
        raise RuntimeError("two\nlines")

    ran = run_cli("transcribe", "clip.wav", script=Script(texts=bug))
    assert ran.status == 70
    assert ran.stderr.startswith("as2d: internal error: RuntimeError: two\\nlines; this is a bug")
    assert ran.stderr.count("\n") == 1
    shown = run_cli(
        "transcribe", "clip.wav", script=Script(texts=bug), variables={"AS2D_DEBUG": "1"}
    )
    assert "Traceback" in shown.stderr


def test_help_lists_statuses(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli().status == 0
    shown = capsys.readouterr().out
    for word in ("transcribe", "Exit status:", "130", "141"):
        assert word in shown


def test_group_alone_shows_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli("models").status == 0
    assert "pull" in capsys.readouterr().out


def _terminal(*args: str, script: Script | None = None) -> Ran:
    return run_cli("transcribe", *args, script=script, terminal=True)


def test_terminal_shows_each_line_once_and_no_display_stays(clip: Path) -> None:
    line = "[MUSIC] a[i] [red]x :smile: " + " ".join(map(str, range(40)))
    ran = _terminal("clip.wav", script=Script(texts=[f" {line}"]))
    assert ran.stdout.count(f"{line}\n") == 1
    assert "2.0 s of audio in" in ran.stdout
    assert ran.stdout.endswith("accepted per step\n")


def test_dumb_terminal_gets_no_escapes(clip: Path) -> None:
    ran = run_cli("transcribe", "clip.wav", terminal=True, variables={"TERM": "dumb"})
    assert "\x1b" not in ran.stdout
    assert HELLO in ran.stdout
