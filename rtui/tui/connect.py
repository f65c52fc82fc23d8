"""Coming to a server and leaving it: the screen of connecting, the lists of servers and databases, left sessions.

A session that was left while its analysis was under way keeps its connection, its names and its figures; choosing its
server and database again comes back to it without a scan. On another server its analysis goes on. On the same server,
where another database is about to be scanned, it is paused: two runs at once would take twice their share of the
server's time. `LeaveScreen` asks whether such an analysis goes on, is paused or ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.dom import DOMNode
from textual.message import Message
from textual.widgets import Input, OptionList

from rtui.analysis import humanize
from rtui.keyspace.text.display import SafeText, display_text
from rtui.server.guard.command import Secret
from rtui.server.user.known_servers import Profiles, RecentServers
from rtui.server.wire.errors import ConnectFailure, FailureKind, KeyPassphraseError, RtuiError, TargetError
from rtui.server.wire.target import Target, parse_target
from rtui.tui.kit.bars import Bar
from rtui.tui.kit.choice import AnswerScreen, ListScreen
from rtui.tui.kit.command import (
    APP_COMMANDS,
    SERVERS_COMMAND,
    Condition,
    Conditions,
    Group,
    Owner,
    ScreenCommand,
    bindings,
)
from rtui.tui.kit.command_screen import CommandScreen
from rtui.tui.kit.layout import prose
from rtui.tui.kit.line_view import LinePanel, MakeLines
from rtui.tui.kit.styled_text import Line, Role, Span, gap, joined, literal

if TYPE_CHECKING:
    from rtui.server.analysis.session import AnalysisStatus
    from rtui.server.browsing.session import BrowsingSession


CARD_CELLS: Final = 76
MIN_CARD_CELLS: Final = 24
FRAME_CELLS: Final = 6
"""Cells of the card's border and padding."""


CONNECT_COMMANDS: Final = (
    ScreenCommand(
        "retry", ("enter", "r"), "Try again", "Connect again.", Group.APP, Owner.CONNECT, (Condition.FAILED,), footer=1
    ),
    replace(SERVERS_COMMAND, footer=2),
)


TICK_S: Final = 1.0
SLOW_S: Final = 2.0
"""The time is shown from then on."""


def connecting_line(label: SafeText, waited_s: float) -> Line:
    waited = f" · {humanize.duration(int(waited_s) * humanize.SECOND_MS)}" if waited_s >= SLOW_S else ""
    line: Line = (gap(1), Span(literal("Connecting to "), Role.MUTED), Span(label, Role.STRONG))
    return (*line, Span(SafeText(waited), Role.MUTED)) if waited else line


_WANTS_PASSWORD: Final = frozenset({FailureKind.NOAUTH, FailureKind.WRONGPASS})


class PasswordInput(Input):
    """A line for a password or passphrase, shown as dots and kept in memory only; Escape gives it up."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "give_up", show=False)]

    def __init__(self) -> None:
        super().__init__(password=True, id="password", compact=True)
        self.cursor_blink = False
        self.display = False
        self.is_of_key = False

    def ask(self, *, of_key: bool) -> None:
        """Show the line, empty, for the password of the user or the passphrase of the key."""
        self.value, self.is_of_key, self.display = "", of_key, True
        self.placeholder = f"{'passphrase of the key' if of_key else 'password'}; kept in memory only"
        self.screen.set_focus(self)

    def action_give_up(self) -> None:
        self.value = ""
        self.display = False
        if self.screen.focused is self:
            self.screen.set_focus(None)


class ConnectScreen(CommandScreen[None]):
    """Shows the server that is being connected to, then why that failed."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(CONNECT_COMMANDS, Owner.CONNECT, Owner.APP)
    SCREEN_COMMANDS = (*CONNECT_COMMANDS, *APP_COMMANDS)
    AUTO_FOCUS = ""

    @dataclass
    class Retry(Message):
        """The user wants to try again, with the password, or the passphrase of the key, if one was typed."""

        password: Secret | None = None
        key_password: Secret | None = None

    def __init__(self, label: SafeText) -> None:
        super().__init__()
        self.title_bar = Bar(id="title")
        self.card = LinePanel(id="connect-card")
        self.password_input = PasswordInput()
        self._label = label
        self.has_failed = False
        self._make: MakeLines | None = None
        self._since_s: float | None = None
        """Since when connecting is under way, on the clock of the event loop; None once something else is shown."""

    def compose(self) -> ComposeResult:
        yield self.title_bar
        with Vertical(id="connect-body"):
            yield self.card
            yield self.password_input
        yield self.footer_bar

    @property
    def action_owners(self) -> Mapping[str, DOMNode]:
        return {Owner.CONNECT: self}

    @property
    def conditions(self) -> Conditions:
        return frozenset({Condition.FAILED} if self.has_failed else ())

    def on_mount(self) -> None:
        self.title_bar.set_line(
            lambda _width: (Span(literal(" rtui"), Role.BADGE), gap(2), Span(literal("READ-ONLY"), Role.GOOD))
        )
        self.connecting()
        self.set_interval(TICK_S, self._tick)

    def connecting(self) -> None:
        self.has_failed = False
        self.password_input.action_give_up()
        self._since_s = asyncio.get_running_loop().time()
        self._show(lambda _width: [connecting_line(self._label, 0.0)])

    def _tick(self) -> None:
        if self._since_s is not None and self.is_current:
            waited_s = asyncio.get_running_loop().time() - self._since_s
            self.card.set_content(lambda _width: [connecting_line(self._label, waited_s)])

    def show_error(self, error: RtuiError, *, is_final: bool) -> None:
        """Show why connecting failed and a remedy; unless `is_final`, it is retried by itself."""
        self.has_failed = is_final
        self._since_s = None

        def lines(width: int) -> list[Line]:
            role = Role.BAD if is_final else Role.WARN
            found: list[Line] = [(gap(1), Span(error.title, role)), (gap(1), Span(self._label, Role.STRONG))]
            found += [(), *prose(error.happened, width, Role.TEXT)]
            return [*found, (), *prose(error.remedy, width, Role.MUTED)] if error.remedy else found

        self._show(lines)
        of_key = isinstance(error, KeyPassphraseError)
        self.password_input.display = False
        if is_final and (of_key or (isinstance(error, ConnectFailure) and error.kind in _WANTS_PASSWORD)):
            self.password_input.ask(of_key=of_key)

    def action_retry(self) -> None:
        if self.has_failed:
            self.connecting()
            self.post_message(self.Retry())

    @on(PasswordInput.Submitted)
    def _password_typed(self, event: PasswordInput.Submitted) -> None:
        event.stop()
        typed, of_key = Secret(event.value), self.password_input.is_of_key
        self.password_input.value = ""
        self.connecting()
        self.post_message(self.Retry(key_password=typed) if of_key else self.Retry(typed))

    def on_resize(self) -> None:
        if self._make is not None:
            self._show(self._make)

    def _show(self, make: MakeLines) -> None:
        self._make = make
        width = max(MIN_CARD_CELLS, min(CARD_CELLS, self.size.width - 2))
        self.card.styles.width = width
        self.card.styles.height = len(make(width - FRAME_CELLS)) + 4
        self.card.set_class(self.has_failed, "-failed")
        self.card.set_content(make)
        self.footer_bar.show_commands(self.offered())


MOST_NAME_CELLS: Final = 32
"""A longer name of a server pushes the text beside it to the right."""


THIS_MACHINE: Final = Target()
"""The server offered if none is known: the usual port of this machine."""


class KnownServer(NamedTuple):
    """A server in a list."""

    name: SafeText
    about: SafeText
    target: Callable[[], Target]
    """Returns where to connect; raises TargetError."""
    is_profile: bool = False


def known_places(profiles: Profiles, recent: RecentServers) -> list[KnownServer]:
    """Return profiles, then recent servers outside them, then the default server; no secrets in any text.

    A target is made when it is chosen, which raises TargetError for a profile that is wrong.
    """
    names = profiles.names()
    found = [
        KnownServer(display_text(name), _of_profile(profiles, name), partial(profiles.target, name), is_profile=True)
        for name in names
    ]
    others = [replace(one, name=None) for one in recent.servers() if one.name is None or one.name not in names]
    found += [KnownServer(_address(one), literal("recent"), partial(replace, one)) for one in others]
    if THIS_MACHINE not in others:
        found.append(KnownServer(_address(THIS_MACHINE), literal("this machine"), lambda: THIS_MACHINE))
    return found


def of_report_first(places: Sequence[KnownServer], label: str, db: int) -> list[KnownServer]:
    """Return the places with the server of a report first, in the database of the report.

    It is a profile or a recent server of that address, with its options for connecting, else the bare address.
    """

    def target_of(place: KnownServer) -> Target | None:
        try:
            target = place.target()
        except TargetError:
            return None
        return replace(target, db=db) if target.label == label else None

    found = [(at, target) for at, one in enumerate(places) if (target := target_of(one)) is not None]
    if found:
        at, target = found[0]
        name, about = places[at].name, places[at].about
        others = [one for number, one in enumerate(places) if number != at]
    else:
        try:
            target = replace(parse_target(label), db=db)
        except TargetError:
            return [*places]
        name, about, others = _address(target), literal(""), [*places]
    told = joined([one for one in (literal("of this report"), about) if one], " · ")
    return [KnownServer(name, told, lambda: target), *others]


def _of_profile(profiles: Profiles, name: str) -> SafeText:
    try:
        target = profiles.target(name)
    except TargetError as error:
        return error.happened
    mark = "" if target.mark is None else f"[{target.mark.word}] "
    return SafeText(f"profile · {mark}{_address(target)}")


def _address(target: Target) -> SafeText:
    user = "" if target.user is None else f"{display_text(target.user)} at "
    tls = "" if target.tls is None else " · TLS"
    database = f" · db{target.db}" if target.db else ""
    return SafeText(f"{user}{target.label}{tls}{database}")


class ServersScreen(ListScreen[Target | None]):
    """Returns the server that was chosen, None when none was."""

    def __init__(self, places: Sequence[KnownServer]) -> None:
        self._places = places
        cells = min(MOST_NAME_CELLS, max(len(one.name) for one in places))
        entries = [Content.assemble(f"{name:{cells}}  ", (about, "$ink-muted")) for name, about, *_ in places]
        super().__init__(literal("Servers"), "enter browses · esc closes", *entries)

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        try:
            target = self._places[event.option_index].target()
        except TargetError as error:
            self.notify(error.happened, title=error.title, severity="error", markup=False)
        else:
            self.dismiss(target)


class DatabasesScreen(AnswerScreen[int | None]):
    """Returns the number of the database that was chosen, None when none was."""

    def __init__(self, current: int, sizes: Mapping[int, int] | None) -> None:
        """`sizes` are the numbers of keys by database, for those that hold any; None if the server does not tell."""
        numbers = sorted({0, current, *(sizes or ())})
        answers = [
            (number, SafeText(f"db{number:<4} {_keys_of(sizes, number)}{' · here' if number == current else ''}"))
            for number in numbers
        ]
        super().__init__(
            *(literal("Databases"), "enter browses · esc closes", answers),
            about=databases_text(current, sizes),
            at=numbers.index(current),
        )

    def show_count(self, count: int | None) -> None:
        if count is not None:
            self.options.border_title = Content(f"{humanize.counted(count, 'database')}")


MOST_NAMED: Final = 3
"""Databases that are named in a sentence at most; the largest are named."""


def databases_text(current: int, sizes: Mapping[int, int] | None) -> SafeText:
    """Return where the keys are: `db0 is empty; db3 holds 12,000 keys, db1 holds 40`."""
    if sizes is None:
        return literal("INFO is denied, so other databases are not known.")
    held = sizes.get(current, 0)
    here = f"db{current} holds {humanize.counted(held, 'key')}" if held else f"db{current} is empty"
    others = sorted(((keys, number) for number, keys in sizes.items() if number != current and keys), reverse=True)
    if not others:
        return SafeText(f"{here}; no other database has keys" if held else f"{here}, as are all others")
    named = ", ".join(f"db{number} holds {humanize.count(keys)}" for keys, number in others[:MOST_NAMED])
    more = f", {len(others) - MOST_NAMED} more hold some" if len(others) > MOST_NAMED else ""
    return SafeText(f"{here}; {named}{more}")


def _keys_of(sizes: Mapping[int, int] | None, number: int) -> SafeText:
    if sizes is None:
        return literal("")
    return humanize.counted(sizes[number], "key") if sizes.get(number) else literal("empty")


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
    states: Any
    """The `ReportStates` of the panels; None before they were shown."""
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

    def put(self, session: BrowsingSession, states: Any, *, waits: bool) -> None:
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
            f"{len(lost)} analyses are running. Quitting stops them and keeps partial reports, if reports are kept."
        )

    async def close(self) -> None:
        kept, self.kept = self.kept, ()
        for one in kept:
            await one.session.close()


def ended_notice(session: BrowsingSession) -> SafeText:
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
        title = literal("An analysis is running")
        super().__init__(title, "enter chooses · esc stays", answers, about=status.so_far)


def _answers(
    status: AnalysisStatus, before: Target, after: Target, *, can_wait: bool
) -> Iterator[tuple[Answer, SafeText]]:
    yield Answer.STAY, literal("Stay")
    addresses = ((one.host, one.port, one.socket_path) for one in (before, after))
    if can_wait and len(set(addresses)) == 1:
        yield Answer.PAUSE, SafeText(f"Pause it until you return to db{before.db}: one run at a time per server")
    elif can_wait:
        yield Answer.GO_ON, SafeText(f"Let it run; choose {before.label} again to return to it")
        yield Answer.PAUSE, literal("Pause it until you return")
    kept = "is kept as a partial report" if status.is_kept else "is lost, since reports are not kept"
    yield Answer.END, SafeText(f"Stop it: the result {kept}")
