"""The question what becomes of an analysis that is under way when another server or database is chosen."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import TYPE_CHECKING

from rtui.keyspace.text.display import SafeText
from rtui.server.wire.target import Target
from rtui.tui.kit.choice import AnswerScreen
from rtui.tui.kit.styled_text import literal

if TYPE_CHECKING:
    from rtui.server.analysis.session import AnalysisStatus


class Answer(Enum):
    """What becomes of an analysis."""

    STAY = "stay"
    GO_ON = "go on"
    PAUSE = "pause"
    END = "end"


class LeaveScreen(AnswerScreen[Answer]):
    """Asks what becomes of an analysis when another server or database is chosen; Escape stays."""

    def __init__(self, status: AnalysisStatus, before: Target, after: Target, *, can_wait: bool) -> None:
        """`can_wait` says whether the session may be kept, to be come back to."""
        answers = [*_answers(status, before, after, can_wait=can_wait)]
        title = literal("An analysis is under way")
        super().__init__(title, "enter chooses · esc stays", answers, about=status.so_far)


def _answers(
    status: AnalysisStatus, before: Target, after: Target, *, can_wait: bool
) -> Iterator[tuple[Answer, SafeText]]:
    yield Answer.STAY, literal("Stay")
    if can_wait and _is_same_server(before, after):
        yield Answer.PAUSE, SafeText(f"Pause it until you come back to db{before.db}: one run at a time asks a server")
    elif can_wait:
        yield Answer.GO_ON, SafeText(f"Let it go on meanwhile; choose {before.label} again to come back to it")
        yield Answer.PAUSE, literal("Pause it until you come back")
    kept = "is kept as a partial report" if status.is_kept else "is lost, since reports are not kept"
    yield Answer.END, SafeText(f"End it: what it has found {kept}")


def _is_same_server(one: Target, other: Target) -> bool:
    """Return whether two targets are databases of one server, as far as their addresses tell."""
    return (one.host, one.port, one.socket_path) == (other.host, other.port, other.socket_path)
