"""What was measured of language models before: where it is kept, and whether it still holds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from as2d_cli.profile.answer_costs import AnswerCosts
from as2d_cli.profile.profiles import file_name, stale, write_whole
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
        path = self._folder / file_name(key)
        try:
            costs = AnswerCosts.from_json(json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None, "nothing was measured here"
        except OSError as error:
            return None, f"{path.name} cannot be read ({error.strerror})"
        except (ValueError, AttributeError, RecursionError):
            return None, f"{path.name} is broken"
        why = stale(costs.key, key)
        return (None, why) if why else (costs, "")

    def recent(self, target: str) -> RecentAnswers:
        """What became of recent answers of a model; `target`: its id."""
        name = file_name({"machine": "recent", "target": target, "drafter": None})
        return RecentAnswers(self._folder / name)
