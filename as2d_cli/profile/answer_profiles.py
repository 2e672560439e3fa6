"""What was measured of language models before: where it is kept, and whether it still holds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from as2d_cli.profile.answer_costs import AnswerCosts
from as2d_cli.profile.profiles import file_name, read_kept, write_whole
from as2d_cli.profile.recent import RecentAnswers

__all__ = ["AnswerProfiles"]


class AnswerProfiles:
    """Those of one cache folder, a file for each machine and pair of models."""

    def __init__(self, cache: Path) -> None:
        self._folder = cache / "answers"

    def save(self, costs: AnswerCosts) -> Path:
        """Keeps it in the place of the one before.

        Raises:
            As2dError: there is no room, or no permission.
        """
        path = self._folder / file_name(costs.key)
        write_whole(path, costs.as_json())
        return path

    def load(self, key: Mapping[str, Any]) -> tuple[AnswerCosts | None, str]:
        """What belongs to `key`, and if nothing that holds does, why not."""
        return read_kept(self._folder / file_name(key), key, _costs)

    def recent(self, target: str) -> RecentAnswers:
        """What became of recent answers of a model; `target`: its id."""
        name = file_name({"machine": "recent", "target": target, "drafter": None})
        return RecentAnswers(self._folder / name)


def _costs(data: Any) -> tuple[AnswerCosts, Mapping[str, Any]]:
    costs = AnswerCosts.from_json(data)
    return costs, costs.key
