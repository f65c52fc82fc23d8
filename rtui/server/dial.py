"""A connected socket for a target: names, addresses, timeouts and what keeps a TCP connection honest."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, cast

from rtui.server.errors import ConnectFailure, FailureKind
from rtui.server.failures import name_failure, os_failure, timeout_failure
from rtui.server.target import Target

KEEPALIVE_S: Final = (15, 5, 3)
"""Idle seconds before a keep-alive probe, seconds between probes, probes without answer: dead within half a minute."""

LEAST_SHARE_S: Final = 0.1
"""Every address of a name is given at least this long."""


@dataclass(frozen=True, slots=True)
class Peer:
    """The address a lane reached, so that a second lane reaches the same server behind the same name."""

    family: int
    address: tuple[str, int] | tuple[str, int, int, int]


async def dial(target: Target, timeout_s: float, peer: Peer | None) -> tuple[socket.socket, Peer | None]:
    """A connected, non-blocking socket; each address of the name gets its share of the time."""
    loop = asyncio.get_running_loop()
    if target.socket_path is not None:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        return await _joined(sock, target.socket_path, target, timeout_s), None
    peers = [peer] if peer is not None else await _resolved(target, timeout_s)
    started = loop.time()
    last: ConnectFailure = name_failure(target)
    for left in range(len(peers), 0, -1):
        candidate = peers[-left]
        share_s = max(LEAST_SHARE_S, (timeout_s - (loop.time() - started)) / left)
        sock = socket.socket(candidate.family, socket.SOCK_STREAM)
        try:
            return await _joined(sock, candidate.address, target, share_s), candidate
        except ConnectFailure as refused:
            timed_out = refused.kind is FailureKind.TIMEOUT
            last = timeout_failure(target, timeout_s, connected=False) if timed_out else refused
    raise last


async def _resolved(target: Target, timeout_s: float) -> Sequence[Peer]:
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(timeout_s):
            found = await loop.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except TimeoutError:
        raise timeout_failure(target, timeout_s, connected=False) from None
    except (OSError, UnicodeError):
        raise name_failure(target) from None
    return [Peer(family, cast("tuple[str, int]", address)) for family, _, _, _, address in found]


async def _joined(sock: socket.socket, address: object, target: Target, timeout_s: float) -> socket.socket:
    sock.setblocking(False)
    try:
        if sock.family != socket.AF_UNIX:
            _tune(sock)
        async with asyncio.timeout(timeout_s):
            await asyncio.get_running_loop().sock_connect(sock, cast("tuple[str, int]", address))
    except TimeoutError:
        sock.close()
        raise timeout_failure(target, timeout_s, connected=False) from None
    except OSError as error:
        sock.close()
        raise os_failure(target, error) from None
    except BaseException:
        sock.close()
        raise
    return sock


def _tune(sock: socket.socket) -> None:
    """No delay for small requests, and keep-alive probes so that a peer that vanished is noticed without traffic."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    names = ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT")
    for name, value in zip(names, KEEPALIVE_S, strict=True):
        option = getattr(socket, name, None)
        if option is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)
