"""Single commands on fresh connections of an independent client, with errors as values; and a key of each type."""

from __future__ import annotations

from typing import Any

import redis

from tests.servers import Server


def raw(server: Server, *argv: bytes | str, user: str | None = None, password: str | None = None) -> Any:
    """The reply to a command line as it comes; an error reply is returned, not raised."""
    client = server.client(username=user, password=password)
    connection = client.connection_pool.get_connection()
    try:
        connection.send_command(*argv)
        try:
            return connection.read_response()
        except (redis.ResponseError, redis.AuthenticationError) as error:
            return error
    finally:
        connection.disconnect()
        client.close()


def fill(server: Server) -> None:
    """Write a small value of each type that this version has, each under the name of its type."""
    admin = server.admin
    admin.set("string", b"abc")
    admin.hset("hash", mapping={"field": "1"})
    admin.rpush("list", "a", "b")
    admin.sadd("set", "a", "b")
    admin.zadd("zset", {"a": 1})
    admin.xadd("stream", {"a": 1})
    admin.xgroup_create("stream", "group", "0")
    if server.product == "redis" and server.version >= (8, 0):
        admin.execute_command("VADD", "vectors", "VALUES", 2, 1, 2, "element")
    if server.product == "redis" and server.version >= (8, 8):
        admin.execute_command("ARSET", "array", 0, "a")
