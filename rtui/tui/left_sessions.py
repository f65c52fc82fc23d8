"""Sessions that were left while their analysis was under way, to be come back to.

Such a session keeps its connection, its names and its figures; choosing its server and database again comes back to it
without a scan. On another server its analysis goes on. On the same server, where another database is about to be
scanned, it is paused: two runs at once would take twice their share of the server's time.

`LeaveScreen` asks whether an analysis under way goes on, is paused or ends when another server or database is chosen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

from rtui.analysis import humanize
from rtui.keyspace.text.display import SafeText
from rtui.server.wire.target import Target
from rtui.tui.kit.choice import AnswerScreen
from rtui.tui.kit.styled_text import literal

if TYPE_CHECKING:
    from rtui.server.analysis.session import AnalysisStatus
    from rtui.server.browsing.session import BrowsingSession
    from rtui.tui.analyse.panel import ReportStates

MOST_LEFT: Final = 4
"""Sessions that are kept at most: each holds a connection and the names of its keys."""

Place = tuple[str, int, str | None, str | None, int]
"""The identity of a server and database: host, port, path of a socket, user, database."""


def place_of(target: Target) -> Place:
    """Return which server and database a target is, as which user."""
    if target.sentinels is not None:
        return str(target.label), 0, None, target.user, target.db
    return target.host, target.port, target.socket_path, target.user, target.db


@dataclass(slots=True)
class LeftSession:
    """A session that was left, with the panels of its analysis as they were."""

    session: BrowsingSession
    states: ReportStates | None
    is_waiting: bool = False
    """Whether its analysis is paused until the user comes back."""
    is_over: bool = False
    """Whether the user knows that its analysis has ended."""

    def wait(self) -> None:
        """Pause its analysis until the user comes back, unless the user has paused it."""
        control = self.session.analysis.control
        if not control.is_paused:
            control.pause()
            self.is_waiting = True

    def go_on(self) -> None:
        if self.is_waiting:
            self.session.analysis.control.resume()
            self.is_waiting = False


class LeftSessions:
    """Sessions that were left while their analysis was under way."""

    def __init__(self) -> None:
        self.kept: tuple[LeftSession, ...] = ()
        """Replaced as a whole: the thread that reads the terminal reads it, too."""

    @property
    def has_room(self) -> bool:
        return len(self.kept) < MOST_LEFT

    def put(self, session: BrowsingSession, states: ReportStates | None, *, waits: bool) -> None:
        """Keep a session; one that waits sends nothing for its analysis until it is taken again."""
        left = LeftSession(session, states)
        if waits:
            left.wait()
        self.kept = (*self.kept, left)

    def take(self, target: Target) -> LeftSession | None:
        """Return the session of a server and database, which goes on; None if no such session is kept.

        Other sessions of the same server wait from now on.
        """
        found = next((one for one in self.kept if place_of(one.session.target) == place_of(target)), None)
        self.kept = tuple(one for one in self.kept if one is not found)
        for one in self.kept:
            if place_of(one.session.target)[:3] == place_of(target)[:3] and one.session.lost_by_leaving is not None:
                one.wait()
        if found is not None:
            found.go_on()
        return found

    def ended(self) -> list[LeftSession]:
        """Return the sessions whose analysis has ended since the last call."""
        found = [one for one in self.kept if not one.is_over and not one.session.analysis.status.is_under_way]
        for one in found:
            one.is_over = True
        return found

    def lost_by_leaving(self, session: BrowsingSession | None) -> SafeText | None:
        """Return the sentence on analyses that are lost if rtui ends now; None if none is."""
        lost = [] if session is None or session.lost_by_leaving is None else [session.lost_by_leaving]
        for one in self.kept:
            if (text := one.session.lost_by_leaving) is not None:
                target = one.session.target
                lost.append(SafeText(f"{target.label} db{target.db}: {text}"))
        if len(lost) < 2:
            return lost[0] if lost else None
        return SafeText(
            f"{len(lost)} analyses are under way. Quitting ends them; partial reports are kept of them where reports "
            "are kept."
        )

    async def close(self) -> None:
        kept, self.kept = self.kept, ()
        for one in kept:
            await one.session.close()


def ended_notice(session: BrowsingSession) -> SafeText:
    """Return the notice that the analysis of a session that was left has ended."""
    status, target = session.analysis.status, session.target
    keys = humanize.counted(status.progress.keys, "key")
    return SafeText(f"{target.label} db{target.db}: {status.progress.state.value}, {keys}. Choose it again to see it.")


class Answer(Enum):
    """The fate of an analysis that is left."""

    STAY = "stay"
    GO_ON = "go on"
    PAUSE = "pause"
    END = "end"


class LeaveScreen(AnswerScreen[Answer]):
    """Asks whether an analysis goes on, is paused or ends when another server or database is chosen; Escape stays."""

    def __init__(self, status: AnalysisStatus, before: Target, after: Target, *, can_wait: bool) -> None:
        """`can_wait` is whether the session may be kept, to be come back to."""
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
