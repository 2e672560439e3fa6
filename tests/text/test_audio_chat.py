"""Prompts with places for audio."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from as2d_cli.errors import As2dError
from as2d_cli.text.audio_chat import AudioChat, padded
from as2d_cli.text.chat import Message
from tests.audio_llms.folders import TEMPLATES
from tests.fakes import FakeModel, tokens_of

USER, ASSISTANT, AUDIO, BEGIN, START = 259, 0, 260, 261, 262
MODEL = FakeModel(
    "toy",
    family="audio-llm",
    pre_tokenizer="gpt2",
    kind="voxtral",
    special={
        USER: "[INST]",
        ASSISTANT: "[/INST]",
        AUDIO: "[AUDIO]",
        BEGIN: "[BEGIN_AUDIO]",
        START: "<s>",
    },
    tokens={"audio": AUDIO, "start": START, "end": ASSISTANT},
    samples_per_position=240_000,
    pad_to_window=True,
)


def chat(folder: Path, template: str = TEMPLATES["voxtral"], model: FakeModel = MODEL) -> AudioChat:
    (folder / "chat_template.jinja").write_text(template)
    return AudioChat.of(replace(model, path=folder))


def spell(*parts: int | str) -> list[int]:
    ids: list[int] = []
    for part in parts:
        if isinstance(part, int):
            ids.append(part)
        else:
            ids += tokens_of(part)
    return ids


def test_audio_comes_before_the_question(tmp_path: Path) -> None:
    made = chat(tmp_path)
    ids = made.prompt([made.message("who?")], 480_160)
    assert ids == spell(START, USER, BEGIN, AUDIO, AUDIO, AUDIO, AUDIO, "who?", ASSISTANT)


def test_a_template_that_begins_the_audio_itself(tmp_path: Path) -> None:
    template = TEMPLATES["voxtral"].replace("'[AUDIO]'", "'[BEGIN_AUDIO][AUDIO]'")
    made = chat(tmp_path, template)
    ids = made.prompt([made.message("who?")], 160)
    assert ids == spell(START, USER, BEGIN, AUDIO, AUDIO, "who?", ASSISTANT)


@pytest.mark.parametrize("raises", [True, False])
def test_who_knows_no_system_is_told_by_the_user(tmp_path: Path, raises: bool) -> None:
    template = TEMPLATES["voxtral"]
    refusal = "raise_exception('only user and assistant speak')"
    assert refusal in template
    made = chat(tmp_path, template if raises else template.replace(refusal, "message['content']"))
    ids = made.prompt([Message("system", "Be brief."), made.message("who?")], 160)
    assert ids == spell(START, USER, BEGIN, AUDIO, AUDIO, "Be brief.\n\nwho?", ASSISTANT)


def test_a_template_that_refuses_everything(tmp_path: Path) -> None:
    made = chat(tmp_path, "{{ raise_exception('not today') }}")
    for messages in ([made.message("a")], [Message("system", "b"), made.message("a")]):
        with pytest.raises(As2dError, match="refuses the conversation: not today"):
            made.prompt(messages, 160)


@pytest.mark.parametrize("template", ["{{ messages[0].role }}", "[AUDIO][AUDIO]"])
def test_a_template_without_one_place_for_audio(tmp_path: Path, template: str) -> None:
    made = chat(tmp_path, template)
    with pytest.raises(As2dError, match="has no place for audio"):
        made.prompt([made.message("a")], 160)


@pytest.mark.parametrize(
    ("samples", "padded_lines", "other_lines"),
    [(320, 2, 2), (2_560, 2, 2), (2_720, 2, 3), (480_000, 2, 189), (480_160, 4, 191)],
)
def test_lines_of_the_encoder(
    tmp_path: Path, samples: int, padded_lines: int, other_lines: int
) -> None:
    assert chat(tmp_path).positions(samples) == padded_lines
    ultravox = replace(
        MODEL, kind="ultravox", pad_to_window=False, samples_per_position=2_560, spare_positions=1
    )
    assert chat(tmp_path, model=ultravox).positions(samples) == other_lines


@pytest.mark.parametrize(
    ("samples", "wanted"),
    [
        (0, 320),
        (1, 320),
        (320, 320),
        (321, 480),
        (16_000, 16_000),
        (480_000, 480_000),
        (480_001, 480_320),  # a frame by itself is less than the encoder takes
        (480_161, 480_320),
        (960_160, 960_320),
    ],
)
def test_what_is_heard_is_whole_frames(samples: int, wanted: int) -> None:
    assert padded(samples, 480_000) == wanted
