"""Entries that set a connection up and ask what the server is."""

from __future__ import annotations

import re
from typing import Final

from rtui.server.guard.shape import Blob, Checked, Integer, Secret, Token, token
from rtui.server.guard.spec import Group, Spec

CLIENT_NAME: Final = b"rtui"
"""The name that every connection gives itself."""

INFO_SECTIONS: Final = tuple(
    b"server clients memory persistence stats replication cpu cluster keyspace commandstats keysizes hotkeys".split()
)
"""Sections of INFO that may be asked for, one at a time as servers before 7.0 want it."""

MAX_USER_BYTES: Final = 256
"""Longest user name that is sent."""

_VERSION_TEXT: Final = re.compile(rb"[0-9A-Za-z.+-]{1,32}\Z")
_USER: Final = Blob("user", MAX_USER_BYTES, b"default")
_AT_ONCE: Final = "constant; 1 µs"
_OWN: Final = "changes nothing but this connection"
_HASHES: Final = "constant; hashes the password once"


def _is_version(text: bytes) -> bool:
    return _VERSION_TEXT.match(text) is not None


CONNECTION: Final = (
    Spec((b"PING",), (), Group.CONNECTION, _AT_ONCE, "asks whether the server answers"),
    Spec(
        (b"HELLO",),
        (token("2", "3"),),
        Group.CONNECTION,
        _AT_ONCE,
        "chooses the protocol of this connection",
        since_redis=(6, 0),
        is_optional=True,
    ),
    Spec(
        (b"HELLO",),
        (token("2", "3"), token("AUTH"), _USER, Secret()),
        Group.CONNECTION,
        _HASHES,
        "chooses the protocol of this connection and its user",
        since_redis=(6, 0),
        is_optional=True,
    ),
    Spec((b"AUTH",), (Secret(),), Group.CONNECTION, _HASHES, _OWN),
    Spec((b"AUTH",), (_USER, Secret()), Group.CONNECTION, _HASHES, _OWN, since_redis=(6, 0)),
    Spec((b"SELECT",), (Integer("db", 0, (1 << 31) - 1),), Group.CONNECTION, _AT_ONCE, _OWN),
    Spec(
        (b"CLIENT", b"SETNAME"),
        (Token((CLIENT_NAME,)),),
        Group.CONNECTION,
        _AT_ONCE,
        "tells operators whose connection this is; one constant name",
        since_redis=(2, 6),
        is_optional=True,
    ),
    Spec(
        (b"CLIENT", b"SETINFO"),
        (token("LIB-NAME"), Token((CLIENT_NAME,))),
        Group.CONNECTION,
        _AT_ONCE,
        "tells operators what the client is; one constant name",
        since_redis=(7, 2),
        is_optional=True,
    ),
    Spec(
        (b"CLIENT", b"SETINFO"),
        (token("LIB-VER"), Checked("version", _is_version, "version of 1–32 letters, digits, dots", b"1.0.0")),
        Group.CONNECTION,
        _AT_ONCE,
        "tells operators which version the client is",
        since_redis=(7, 2),
        is_optional=True,
    ),
    Spec(
        (b"CLIENT", b"NO-TOUCH"),
        (token("ON"),),
        Group.CONNECTION,
        _AT_ONCE,
        "makes reading leave idle times and frequencies as they are",
        since_redis=(7, 2),
        is_optional=True,
    ),
    Spec(
        (b"CLIENT", b"INFO"),
        (),
        Group.CONNECTION,
        "constant; 8 µs",
        "describes this connection only",
        since_redis=(6, 2),
        is_optional=True,
    ),
    Spec(
        (b"READONLY",),
        (),
        Group.CLUSTER,
        _AT_ONCE,
        "lets a replica of a cluster answer this connection's reads",
        since_redis=(3, 0),
        is_optional=True,
    ),
)
"""What a connection says about itself."""


SERVER: Final = (
    Spec(
        (b"INFO",),
        (Token(INFO_SECTIONS),),
        Group.SERVER,
        "constant; 13 µs, commandstats of 268 used commands 126 µs",
        "one named section of counters that the server keeps anyway",
        is_optional=True,
    ),
    Spec(
        (b"DBSIZE",),
        (),
        Group.SERVER,
        _AT_ONCE,
        "reads a counter",
        is_optional=True,
    ),
    Spec(
        (b"CLUSTER", b"INFO"),
        (),
        Group.CLUSTER,
        "constant; 13 µs",
        "a summary of the cluster as this node sees it",
        since_redis=(3, 0),
        is_optional=True,
    ),
    Spec(
        (b"CLUSTER", b"NODES"),
        (),
        Group.CLUSTER,
        "one line a node and a walk over 16,384 slots; 240 µs",
        "reads the table of nodes",
        since_redis=(3, 0),
        is_optional=True,
    ),
)
"""What a server says about itself."""
