"""Entries without a key: setting a connection up, what the server is, and what it knows of its load."""

from __future__ import annotations

import re
from typing import Final

from rtui.server.guard.arguments import PASSWORD, AnyBytes, Checked, Integer, keyword
from rtui.server.guard.evidence import MAX_TRACKED_KEYS
from rtui.server.guard.spec import CommandGroup, Spec

CLIENT_NAME: Final = "rtui"
"""The name that every connection gives itself."""

INFO_SECTIONS: Final = (
    *("server", "clients", "memory", "persistence", "stats", "replication", "cluster", "keyspace"),
    *("commandstats", "keysizes", "hotkeys"),
)
"""Sections of INFO that may be read, one at a time as servers before 7.0 want it."""

MAX_SLOTS: Final = 100
"""Most slots of one list."""

MAX_SESSION_S: Final = 3600
"""Longest hot-key session."""

MIN_SAMPLE_RATIO: Final = 10
"""A session measures at most one command in so many: measuring each one took a GET from 0.34 to 0.63 µs."""

MAX_SAMPLE_RATIO: Final = 10_000
"""A session that measures fewer commands sees nothing in its time."""

_VERSION_TEXT: Final = re.compile(rb"[0-9A-Za-z.+-]{1,32}\Z")
_USER: Final = AnyBytes("user", 256)
_AT_ONCE: Final = "constant; 1 µs"
_OWN: Final = "changes nothing but this connection"
_HASHES: Final = "constant; hashes the password once"

CONNECTION: Final = (
    Spec(CommandGroup.CONNECTION, (b"PING",), (), _AT_ONCE, "asks whether the server answers", is_required=True),
    Spec(
        CommandGroup.CONNECTION,
        (b"HELLO",),
        (keyword("2", "3"),),
        _AT_ONCE,
        "chooses the protocol of this connection",
        since_redis=(6, 0),
    ),
    Spec(
        CommandGroup.CONNECTION,
        (b"HELLO",),
        (keyword("2", "3"), keyword("AUTH"), _USER, PASSWORD),
        _HASHES,
        "chooses the protocol of this connection and its user",
        since_redis=(6, 0),
    ),
    Spec(CommandGroup.CONNECTION, (b"AUTH",), (PASSWORD,), _HASHES, _OWN, is_required=True),
    Spec(CommandGroup.CONNECTION, (b"AUTH",), (_USER, PASSWORD), _HASHES, _OWN, since_redis=(6, 0), is_required=True),
    Spec(CommandGroup.CONNECTION, (b"SELECT",), (Integer("db", 0, (1 << 31) - 1),), _AT_ONCE, _OWN, is_required=True),
    Spec(
        CommandGroup.CONNECTION,
        (b"CLIENT", b"SETNAME"),
        (keyword(CLIENT_NAME),),
        _AT_ONCE,
        "tells operators whose connection this is; one constant name",
        since_redis=(2, 6),
    ),
    Spec(
        CommandGroup.CONNECTION,
        (b"CLIENT", b"SETINFO"),
        (keyword("LIB-NAME"), keyword(CLIENT_NAME)),
        _AT_ONCE,
        "tells operators what the client is; one constant name",
        since_redis=(7, 2),
    ),
    Spec(
        CommandGroup.CONNECTION,
        (b"CLIENT", b"SETINFO"),
        (
            keyword("LIB-VER"),
            Checked(
                "version",
                lambda text: _VERSION_TEXT.match(text) is not None,
                ("version of 1–32 letters, digits, dots",),
            ),
        ),
        _AT_ONCE,
        "tells operators which version the client is",
        since_redis=(7, 2),
    ),
    Spec(
        CommandGroup.CONNECTION,
        (b"CLIENT", b"NO-TOUCH"),
        (keyword("ON"),),
        _AT_ONCE,
        "makes reading leave idle times and frequencies as they are",
        since_redis=(7, 2),
    ),
    Spec(
        CommandGroup.CLUSTER,
        (b"READONLY",),
        (),
        _AT_ONCE,
        "lets a replica of a cluster answer this connection's reads",
        since_redis=(3, 0),
    ),
)
"""What sets a connection up."""

SERVER: Final = (
    Spec(
        CommandGroup.SERVER,
        (b"INFO",),
        (keyword(*INFO_SECTIONS),),
        "constant; 13 µs, commandstats of 268 used commands 126 µs",
        "one named section of counters that the server keeps anyway",
    ),
    Spec(CommandGroup.SERVER, (b"DBSIZE",), (), _AT_ONCE, "reads a counter"),
    Spec(
        CommandGroup.CLUSTER,
        (b"CLUSTER", b"INFO"),
        (),
        "constant; 13 µs",
        "a summary of the cluster as this node sees it",
        since_redis=(3, 0),
    ),
    Spec(
        CommandGroup.CLUSTER,
        (b"CLUSTER", b"NODES"),
        (),
        "one line a node and a walk over 16,384 slots; 240 µs",
        "reads the table of nodes",
        since_redis=(3, 0),
    ),
)
"""What a server is."""

LOAD: Final = (
    Spec(
        CommandGroup.SERVER,
        (b"HOTKEYS", b"GET"),
        (),
        "the keys that are kept; 64 by two measures 50 µs",
        "reads what a session has measured, and leaves the session as it is",
        since_redis=(8, 6),
        since_valkey=(9, 2),
    ),
    Spec(
        CommandGroup.HOTKEYS,
        (b"HOTKEYS", b"START"),
        (
            keyword("METRICS"),
            keyword("1 CPU", "1 NET", "2 CPU NET"),
            keyword("COUNT"),
            Integer("count", 1, MAX_TRACKED_KEYS),
            keyword("DURATION"),
            Integer("seconds", 1, MAX_SESSION_S),
            keyword("SAMPLE"),
            Integer("ratio", MIN_SAMPLE_RATIO, MAX_SAMPLE_RATIO),
        ),
        "0.3 ms to begin, 1.4 MB for its result; until it ends each command of all clients takes 0.07 µs longer",
        "only after the user has agreed; ends by itself, measures a sample, and is never stopped or reset by rtui",
        since_redis=(8, 6),
        since_valkey=None,
        needs_consent=True,
    ),
    Spec(
        CommandGroup.CLUSTER,
        (b"CLUSTER", b"SLOT-STATS"),
        (
            keyword("ORDERBY"),
            keyword("key-count", "cpu-usec"),
            keyword("LIMIT"),
            Integer("limit", 1, MAX_SLOTS),
            keyword("DESC"),
        ),
        "sorts the node's slots; all 16,384 0.7–1.2 ms",
        "counters that the node keeps anyway; asked every few seconds at most",
        since_redis=(8, 2),
        since_valkey=(8, 0),
    ),
    Spec(
        CommandGroup.SETTINGS,
        (b"CONFIG", b"GET"),
        (keyword("lfu-log-factor", "lfu-decay-time"),),
        "one look-up; 0.4–2 µs",
        "two settings by their names, never a pattern; other settings hold passwords",
        since_redis=(2, 0),
    ),
)
"""What a server knows of its load: hot keys, busy slots, and the settings that give access counters their meaning."""
