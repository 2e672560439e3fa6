"""Prompts and languages."""

from __future__ import annotations

import pytest

from as2d_cli.errors import As2dError, ExitStatus
from as2d_cli.text.whisper_prompt import check_language, prompt
from tests.fakes import FakeModel

MULTILINGUAL = FakeModel(
    "base",
    languages=("en", "de"),
    language_tokens={"en": 50259, "de": 50261},
    tokens={"start": 50258, "transcribe": 50359, "no_timestamps": 50363},
)
ENGLISH = FakeModel("tiny.en", tokens={"start": 50257, "no_timestamps": 50362})
MOONSHINE = FakeModel("moonshine", family="moonshine", tokens={"start": 1, "end": 2})


@pytest.mark.parametrize(
    ("model", "language", "ids"),
    [
        (MULTILINGUAL, "en", [50258, 50259, 50359, 50363]),
        (MULTILINGUAL, "de", [50258, 50261, 50359, 50363]),
        (ENGLISH, "en", [50257, 50362]),
        (MOONSHINE, "en", [1]),
    ],
)
def test_prompt(model: FakeModel, language: str, ids: list[int]) -> None:
    assert prompt(model, language) == ids


@pytest.mark.parametrize(
    ("model", "language", "words"),
    [(MULTILINGUAL, "xx", ["'xx'", "auto de en"]), (ENGLISH, "de", ["tiny.en knows only en"])],
)
def test_unknown_language_lists_the_good_ones(
    model: FakeModel, language: str, words: list[str]
) -> None:
    check_language(model, "en")
    with pytest.raises(As2dError) as e:
        check_language(model, language)
    assert e.value.status is ExitStatus.USAGE
    assert all(word in str(e.value) for word in words)
