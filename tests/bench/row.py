"""One line of the table of measurements."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured, the figure here, the peer's beside it, their ratio and what was to be reached; all as text."""

    what: str
    here: str
    beside: str = ""
    ratio: str = ""
    goal: str = ""
    met: bool | None = None
    """Whether the goal was reached; None where there is none."""

    def as_json(self) -> dict[str, Any]:
        """For the way from one process to another."""
        return asdict(self)

    def as_markdown(self) -> str:
        """A line of the table."""
        verdict = {True: "yes", False: "**no**", None: ""}[self.met]
        return f"| {self.what} | {self.here} | {self.beside} | {self.ratio} | {self.goal} | {verdict} |"


HEADER = "| what | rtui | beside it | ratio | goal | reached |\n|---|---|---|---|---|---|"
"""The head of the table that rows make."""
