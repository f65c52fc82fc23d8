"""Records what each version replies about its health, without addresses, ids and paths, for the tests of the parsers.

Run `python -m tests.server.health.record [VERSION…]`; a file a version goes to the folder `replies`.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import sys
from pathlib import Path
from typing import Any, Final

import redis

from rtui.analysis.health.sample import Source
from rtui.server.guard.closed_list import SETTINGS
from tests.servers import Server, binaries, running

FOLDER: Final = Path(__file__).parent / "replies"

_KEPT_BACK: Final = (
    (re.compile(rb"(run_id|master_replid2?|redis_git_sha1|redis_build_id):\w+"), rb"\1:0123456789abcdef"),
    (re.compile(rb"(executable|config_file|os|gcc_version|monotonic_clock|process_id|tcp_port):[^\r]*"), rb"\1:0"),
    (re.compile(rb"/tmp/[^ \r,\]]*s\.sock"), rb"/run/server.sock"),
    (re.compile(rb"(user=)tests-admin"), rb"\1operator"),
)
"""What is replaced in texts."""


def drive(server: Server) -> None:
    """Give the server something to say of each kind."""
    admin = server.admin
    admin.config_set("latency-monitor-threshold", 1)
    admin.config_set("slowlog-log-slower-than", 1_000)
    with contextlib.suppress(redis.ResponseError):
        admin.config_set("commandlog-request-larger-than", 5_000)
        admin.config_set("commandlog-reply-larger-than", 5_000)
    admin.set("big", "x" * 9_000, ex=1_000)
    admin.get("big")
    admin.lpush("list", 1, 2, 3)
    with contextlib.suppress(redis.ResponseError):
        admin.get("list")
    admin.eval("local n = 0 for i = 1, 3000000 do n = n + i end return n", 1, "shop:\x1b[31m")


def replies(server: Server) -> dict[str, Any]:
    """Return what the server replies, by what a probe asks."""
    lines = [tuple(source.encode().split(b" ")) for source in Source if source.startswith("INFO ")]
    lines += [(b"SLOWLOG", b"GET", b"128"), (b"LATENCY", b"LATEST"), (b"LATENCY", b"HISTORY", b"command")]
    lines += [(b"CLIENT", b"LIST")]
    if server.product == "valkey" and server.version >= (8, 1):
        lines += [(b"COMMANDLOG", b"GET", b"128", name) for name in (b"slow", b"large-request", b"large-reply")]
    connection = server.client(protocol=2).connection_pool.get_connection()

    def asked(*argv: bytes) -> Any:
        connection.send_command(*argv)
        return plain(connection.read_response())

    found = {b" ".join(line).decode(): asked(*line) for line in lines}
    settings: list[Any] = []
    for name in SETTINGS:
        settings += asked(b"CONFIG", b"GET", name.encode())
    connection.disconnect()
    return {**found, "CONFIG GET": settings}


def plain(reply: Any) -> Any:
    """Return a reply as JSON has it: bytes as text of which each character is a byte."""
    if isinstance(reply, bytes):
        for pattern, instead in _KEPT_BACK:
            reply = pattern.sub(instead, reply)
        return reply.decode("latin-1")
    return [plain(one) for one in reply] if isinstance(reply, list) else reply


def main() -> None:
    """Write a file a version."""
    FOLDER.mkdir(exist_ok=True)
    for name in sys.argv[1:] or binaries():
        with running(binaries()[name]) as server, socket.socket(socket.AF_UNIX) as blocked:
            drive(server)
            blocked.connect(server.socket)
            blocked.sendall(b"CLIENT SETNAME worker\r\n")
            blocked.recv(16)
            blocked.sendall(b"BLPOP jobs 0\r\n")
            (FOLDER / f"{name}.json").write_text(json.dumps(replies(server), indent=0) + "\n")


if __name__ == "__main__":
    main()
