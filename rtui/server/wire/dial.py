"""A TLS context from what the user said about certificates."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, cast

from rtui.server.wire.errors import ConnectFailure, FailureKind, TargetError
from rtui.server.wire.failures import limit_failure, name_failure, os_failure, timeout_failure
from rtui.server.wire.target import Target, Tls


def context(tls: Tls) -> ssl.SSLContext:
    """A client context that checks certificate and host name unless `insecure`; `TargetError` for unusable files.

    `ConnectFailure` when no further file can be opened.
    """
    made = ssl.create_default_context() if tls.insecure else _checking(tls)
    if tls.insecure:
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
    if tls.cert is not None or tls.key is not None:
        _load_own_certificate(made, tls)
    return made


def _checking(tls: Tls) -> ssl.SSLContext:
    """With an authority of one's own, only that is trusted; else those of the system."""
    try:
        return ssl.create_default_context(cafile=tls.cacert, capath=tls.cacertdir)
    except (OSError, ValueError) as error:
        raise limit_failure(error) or _unusable("CA certificate", "--cacert and --cacertdir", error) from None


def _load_own_certificate(made: ssl.SSLContext, tls: Tls) -> None:
    if tls.cert is None:
        happened = "There is a key without its certificate."
        raise TargetError("TLS can't be set up", happened, "Give both --cert and --key.")
    try:
        made.load_cert_chain(tls.cert, tls.key, password=_no_passphrase)
    except (OSError, ValueError) as error:
        raise limit_failure(error) or _unusable("client certificate or its key", "--cert and --key", error) from None


def _no_passphrase() -> str:
    """An encrypted key would make OpenSSL ask on the terminal; it fails instead."""
    return ""


def _unusable(what: str, options: str, error: Exception) -> TargetError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    happened = f"The {what} can't be used: {reason}."
    return TargetError("TLS can't be set up", happened, f"Check the PEM files of {options}.")


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
    """A connected, non-blocking socket; each address of the name gets its share of the time.

    `peer` is tried first; the name is resolved when there is none or it can't be reached. Raises `ConnectFailure`.
    """
    if target.socket_path is not None:
        return await _joined(socket.AF_UNIX, target.socket_path, target, timeout_s), None
    if peer is not None:
        try:
            return await _joined(peer.family, peer.address, target, timeout_s), peer
        except ConnectFailure as failed:
            if failed.kind is FailureKind.LIMIT:
                raise
    return await _first_reached(await _resolved(target, timeout_s), target, timeout_s)


async def _first_reached(peers: Sequence[Peer], target: Target, timeout_s: float) -> tuple[socket.socket, Peer]:
    """Connect to the first address that answers; raises the failure that says most when none does."""
    loop = asyncio.get_running_loop()
    started = loop.time()
    failures: list[ConnectFailure] = []
    for left, candidate in zip(range(len(peers), 0, -1), peers, strict=True):
        share_s = max(LEAST_SHARE_S, (timeout_s - (loop.time() - started)) / left)
        try:
            return await _joined(candidate.family, candidate.address, target, share_s), candidate
        except ConnectFailure as failed:
            if failed.kind is FailureKind.LIMIT:
                raise
            timed_out = failed.kind is FailureKind.TIMEOUT
            failures.append(timeout_failure(target, timeout_s, connected=False) if timed_out else failed)
    # An address that this machine can't even try, such as ::1 without IPv6, says nothing of the server.
    telling = [failed for failed in failures if failed.kind is not FailureKind.UNREACHABLE]
    raise (telling or failures or [name_failure(target)])[-1]


async def _resolved(target: Target, timeout_s: float) -> Sequence[Peer]:
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(timeout_s):
            found = await loop.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except TimeoutError:
        raise timeout_failure(target, timeout_s, connected=False) from None
    except (OSError, ValueError, OverflowError) as error:  # UnicodeError is a ValueError
        limit = limit_failure(error)
        raise limit if limit is not None else name_failure(target) from None
    return [Peer(family, cast("tuple[str, int]", address)) for family, _, _, _, address in found]


async def _joined(family: int, address: object, target: Target, timeout_s: float) -> socket.socket:
    """A socket connected to one address; raises `ConnectFailure`."""
    try:
        sock = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise os_failure(target, error) from None
    try:
        sock.setblocking(False)
        if family != socket.AF_UNIX:
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
    """No delay for small requests, and keep-alive probes so that a peer that vanished is noticed without traffic.

    What the system refuses is left as it is: the connection works without it.
    """
    _set(sock, socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    _set(sock, socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    names = ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT")
    for name, value in zip(names, KEEPALIVE_S, strict=True):
        option = getattr(socket, name, None)
        if option is not None:
            _set(sock, socket.IPPROTO_TCP, option, value)


def _set(sock: socket.socket, level: int, option: int, value: int) -> None:
    with contextlib.suppress(OSError):
        sock.setsockopt(level, option, value)
