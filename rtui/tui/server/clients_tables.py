"""What is known of clients and slow commands as tables, and in sentences."""

from __future__ import annotations

from typing import Final

from rtui.analysis import humanize
from rtui.analysis.facts import Reason, Unknown
from rtui.analysis.humanize import counted
from rtui.analysis.report.tables.table import Cell, Column, Table, Unit
from rtui.keyspace.text.display import SafeText
from rtui.server.health.callers import KEYS, Callers
from rtui.tui.kit.layout import display_text, prose
from rtui.tui.kit.styled_text import Line, Role

_CLIENT: Final = Column("client", "client", Unit.NAME, 0, "what the client calls itself")
_ADDRESS: Final = Column("address", "address", Unit.NAME, 21, "of the client")
_LIBRARY: Final = Column("library", "library", Unit.NAME, 18, "as the client names it")
_USER: Final = Column("user", "user", Unit.NAME, 12, "as whom the client is logged in")
_AGO: Final = Column("ago_s", "ago", Unit.DURATION, 8, "how long ago it was sent")
_MS: Final = Column("took_ms", "ms", Unit.COUNT, 6, "how long the server was busy with it")

TITLES: Final = (SafeText("Who sends KEYS"), SafeText("Slow commands"), SafeText("Clients"))
"""Of the lists, in their order."""

MOST_REASON: Final = 200
"""Characters of a server's own words."""


def tables(callers: Callers) -> tuple[Table, Table, Table]:
    """Return who sends KEYS, the slow commands, and the clients."""
    return keys_table(callers), slow_table(callers), clients_table(callers)


def keys_table(callers: Callers) -> Table:
    """Return the known calls of KEYS, latest first."""
    columns = (_AGO, _CLIENT, _ADDRESS, Column("pattern", "pattern", Unit.NAME, 20), _MS, _LIBRARY, _USER)
    rows = [
        (
            _age(callers.at_s, one.at_s),
            one.name or None,
            one.address or None,
            one.pattern,
            _ms(one.took_us),
            one.library or None,
            one.user or None,
        )
        for one in callers.of_keys
    ]
    return Table("keys", TITLES[0], columns, rows)


def slow_table(callers: Callers) -> Table:
    """Return the slow log, latest first."""
    command = Column("command", "command", Unit.NAME, 0, "with its arguments, cut by the server")
    columns = (_AGO, _MS, command, Column("client", "client", Unit.NAME, 16, _CLIENT.about), _ADDRESS)
    slow = () if isinstance(callers.slow, Unknown) else callers.slow
    rows: list[tuple[Cell, ...]] = [
        (
            _age(callers.at_s, float(one.at_s)),
            _ms(one.took_us),
            b" ".join(one.argv),
            one.client_name or None,
            one.address or None,
        )
        for one in slow
    ]
    return Table("slow", TITLES[1], columns, rows)


def clients_table(callers: Callers) -> Table:
    """Return the clients, those with most replies waiting first."""
    columns = (
        _CLIENT,
        _ADDRESS,
        Column("last_command", "last command", Unit.TEXT, 14),
        Column("idle_s", "idle", Unit.DURATION, 8, "since its last command"),
        Column("connected_s", "connected", Unit.DURATION, 9),
        Column("output_bytes", "unread", Unit.BYTES, 8, "replies that it has not read"),
        Column("db", "db", Unit.NUMBER, 2),
        _LIBRARY,
        _USER,
    )
    clients = () if isinstance(callers.clients, Unknown) else callers.clients
    rows: list[tuple[Cell, ...]] = [
        (
            one.name or None,
            one.address,
            display_text(one.last_command, limit=60) or None,
            one.idle_s,
            one.connected_s,
            one.output_bytes,
            one.db,
            one.library or None,
            one.user or None,
        )
        for one in sorted(clients, key=lambda one: (-(one.output_bytes or 0), one.idle_s or 0))
    ]
    return Table("clients", TITLES[2], columns, rows)


def _age(now_s: float, at_s: float | None) -> float | None:
    """Return whole seconds since a time, none for one ahead: the server's clock may be."""
    return None if at_s is None else float(int(max(0.0, now_s - at_s)))


def _ms(took_us: int | None) -> float | None:
    return None if took_us is None else took_us / 1000


def summary_lines(callers: Callers, width: int) -> list[Line]:
    """Return how often KEYS was called, and which sources say nothing and why."""
    return [line for text, role in _sentences(callers) for line in prose(text, width, role)]


def _sentences(callers: Callers) -> list[tuple[SafeText, Role]]:
    calls = callers.calls
    if isinstance(calls, Unknown):
        first = (_missing("How often KEYS was called is not known", calls), Role.WARN)
    elif not calls.count:
        first = (SafeText("KEYS was not called since the server started or its statistics were reset."), Role.GOOD)
    else:
        each, total = (humanize.seconds(us / 1e6) for us in (calls.took_us / calls.count, calls.took_us))
        times = counted(calls.count, "time")
        text = f"{KEYS} was called {times}, {each} each, {total} in all, while everybody else waited."
        first = (SafeText(text), Role.WARN)
    sentences = [first]
    if isinstance(callers.slow, Unknown):
        sentences.append((_missing("The slow log is not read", callers.slow), Role.MUTED))
    if isinstance(callers.clients, Unknown):
        sentences.append((_missing("Clients are not listed", callers.clients), Role.MUTED))
    if any(one.reason is Reason.DENIED for one in (calls, callers.slow, callers.clients) if isinstance(one, Unknown)):
        sentences.append((SafeText("rtui acl --with health prints a user with these rights."), Role.MUTED))
    return sentences


def _missing(what: str, why: Unknown) -> SafeText:
    return display_text(f"{what}: {why.detail or why.reason}.", limit=MOST_REASON)


def nothing_lines(callers: Callers, table: Table, filter_text: str, width: int) -> list[Line]:
    """Return what stands in place of rows."""
    if filter_text and table.rows:
        text = SafeText(f"None of {counted(len(table.rows), 'row')} has this text.")
    elif table.id == "keys":
        text = SafeText(
            "No client is known to have sent KEYS: none that is listed has it as its last command, and the slow log "
            "has none. Calls under the threshold of the slow log, by clients that have sent something since, are only "
            "counted."
        )
    elif table.id == "slow":
        text = SafeText("The slow log has no entries.")
        if isinstance(callers.slow, Unknown):
            text = _missing("The slow log is not read", callers.slow)
    else:
        text = SafeText("No client is listed.")
        if isinstance(callers.clients, Unknown):
            text = _missing("Clients are not listed", callers.clients)
    return [(), *prose(text, width, Role.MUTED)]
