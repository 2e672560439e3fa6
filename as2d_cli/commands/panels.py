"""Help texts with the options in groups, as plain as the others."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

__all__ = ["PanelCommand"]


class PanelCommand(TyperCommand):
    """A command whose help lists its options by their ``rich_help_panel``, without rich."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Writes a section for each panel, in the order of the options."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                default = "Arguments" if parameter.param_type_name == "argument" else "Options"
                panel = getattr(parameter, "rich_help_panel", None) or default
                panels.setdefault(panel, []).append(record)
        for panel, records in panels.items():
            with formatter.section(panel):
                formatter.write_dl(records)
