"""Entries that set a connection up and ask what the server is."""

from __future__ import annotations

import re
from typing import Final

from rtui.server.guard.shape import Blob, Checked, Element, Integer, Secret, Several, Token, optional, token
from rtui.server.guard.spec import Group, Spec

CLIENT_NAME: Final = b"rtui"
"""The name that every connection gives itself."""

INFO_SECTIONS: Final = (
    *(b"server", b"clients", b"memory", b"persistence", b"stats", b"replication", b"cpu", b"cluster", b"keyspace"),
    *(b"modules", b"keysizes", b"commandstats"),
)
"""Sections of INFO that may be asked for; each is built in constant time."""

MAX_USER_BYTES: Final = 256
"""Longest user name that is sent."""

_VERSION_TEXT = re.compile(rb"[0-9A-Za-z.+-]{1,32}\Z")
_COMMAND_NAME = re.compile(rb"[a-z][a-z.]{1,30}(?:\|[a-z-]{1,30})?\Z")


def _is_version(text: bytes) -> bool:
    return _VERSION_TEXT.match(text) is not None


def _is_command_name(text: bytes) -> bool:
    return _COMMAND_NAME.match(text) is not None


_USER: Final = Blob("user", MAX_USER_BYTES, b"default")
_AT_ONCE: Final = "constant; under 1 µs"
_OWN: Final = "changes nothing but this connection"


def _connection(words: str, *shape: Element, cost: str = _AT_ONCE, why: str = _OWN, **more: object) -> Spec:
    return Spec(tuple(words.encode().split(b" ")), shape, Group.CONNECTION, cost, why, **more)  # type: ignore[arg-type]


CONNECTION: Final = (
    _connection("PING", why="asks whether the server answers"),
    _connection(
        "HELLO",
        token("2", "3"),
        optional(token("AUTH"), _USER, Secret()),
        since_redis=(6, 0),
        cost="constant; a password costs one SHA-256",
    ),
    _connection("AUTH", Secret(), cost="constant; one SHA-256"),
    _connection("AUTH", _USER, Secret(), cost="constant; one SHA-256", since_redis=(6, 0)),
    _connection("SELECT", Integer("db", 0, (1 << 31) - 1)),
    _connection("CLIENT SETNAME", Token((CLIENT_NAME,)), since_redis=(2, 6), is_optional=True),
    _connection("CLIENT SETINFO", token("LIB-NAME"), Token((CLIENT_NAME,)), since_redis=(7, 2), is_optional=True),
    _connection(
        "CLIENT SETINFO",
        token("LIB-VER"),
        Checked("version", _is_version, "version ≤ 32 letters and digits", b"1.0.0"),
        since_redis=(7, 2),
        is_optional=True,
    ),
    _connection(
        "CLIENT NO-TOUCH",
        token("ON"),
        since_redis=(7, 2),
        is_optional=True,
        why="makes reading leave idle times and frequencies as they are",
    ),
    _connection("CLIENT INFO", since_redis=(6, 2), is_optional=True, why="describes this connection only"),
    _connection(
        "READONLY", since_redis=(3, 0), is_optional=True, why="lets a replica of a cluster answer reads; writes nothing"
    ),
)
"""What a connection says about itself."""


SERVER: Final = (
    Spec(
        (b"INFO",),
        (Several(Token(INFO_SECTIONS), len(INFO_SECTIONS)),),
        Group.SERVER,
        "constant; 25–90 µs, the same with 5,000 clients",
        "named sections only, all kept as counters; several at once need 7.0",
        is_optional=True,
    ),
    Spec(
        (b"DBSIZE",),
        (),
        Group.SERVER,
        "constant; under 1 µs",
        "a counter, expired keys included",
        is_optional=True,
    ),
    Spec(
        (b"COMMAND", b"INFO"),
        (Several(Checked("name", _is_command_name, "names ≤ 62 letters", b"type"), 100),),
        Group.SERVER,
        "3 µs a name",
        "looks names up in the command table",
        since_redis=(2, 8),
        is_optional=True,
    ),
    Spec(
        (b"CLUSTER", b"INFO"),
        (),
        Group.CLUSTER,
        "one walk over 16,384 slots; under 100 µs",
        "a summary of the cluster as this node sees it",
        since_redis=(3, 0),
        is_optional=True,
    ),
    Spec(
        (b"CLUSTER", b"NODES"),
        (),
        Group.CLUSTER,
        "one line a node; 15–70 µs",
        "a copy of the node table",
        since_redis=(3, 0),
        is_optional=True,
    ),
)
"""What a server says about itself."""
