"""Opening a socket to a target: name resolution, TCP or unix socket, and the TLS context."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from dataclasses import dataclass
from typing import Final, cast

from rtui.server.wire.errors import ConnectFailure, FailureKind, TargetError
from rtui.server.wire.failures import limit_failure, name_failure, os_failure, timeout_failure
from rtui.server.wire.target import Target, Tls

KEEPALIVE_S: Final = (15, 5, 3)
"""Idle seconds before a keep-alive probe, seconds between probes, probes without answer: dead within half a minute."""

LEAST_SHARE_S: Final = 0.1
"""Least time for each address of a name."""


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """The address that a connection reached, so that a second one reaches the same server behind the same name."""

    family: int
    address: tuple[str, int] | tuple[str, int, int, int]


async def dial(
    target: Target, timeout_s: float, first: ServerAddress | None
) -> tuple[socket.socket, ServerAddress | None]:
    """Connect to a target; return a non-blocking socket, and the address unless it is a unix socket.

    `first` is tried first; the name is resolved when there is none or it can't be reached. Then the addresses are tried
    one after another, and each gets its share of the time that is left. Raises `ConnectFailure`: the last one, without
    those that say only what this machine can't do.
    """
    if target.socket_path is not None:
        return await _connect(socket.AF_UNIX, target.socket_path, target, timeout_s), None
    if first is not None:
        try:
            return await _connect(first.family, first.address, target, timeout_s), first
        except ConnectFailure as failed:
            if failed.kind is FailureKind.LIMIT:
                raise
    loop = asyncio.get_running_loop()
    addresses = await _resolve(target, timeout_s)
    started_s = loop.time()
    failures: list[ConnectFailure] = []
    for index, candidate in enumerate(addresses):
        share_s = max(LEAST_SHARE_S, (timeout_s - (loop.time() - started_s)) / (len(addresses) - index))
        try:
            return await _connect(candidate.family, candidate.address, target, share_s), candidate
        except ConnectFailure as failed:
            if failed.kind is FailureKind.LIMIT:
                raise
            timed_out = failed.kind is FailureKind.TIMEOUT
            failures.append(timeout_failure(target, timeout_s) if timed_out else failed)
    # An address that this machine can't even try, such as ::1 without IPv6, says nothing of the server.
    telling = [failed for failed in failures if failed.kind is not FailureKind.UNREACHABLE]
    raise (telling or failures or [name_failure(target)])[-1]


async def _resolve(target: Target, timeout_s: float) -> list[ServerAddress]:
    try:
        async with asyncio.timeout(timeout_s):
            found = await asyncio.get_running_loop().getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except TimeoutError:
        raise timeout_failure(target, timeout_s) from None
    except (OSError, ValueError, OverflowError) as error:  # UnicodeError is a ValueError
        raise limit_failure(error) or name_failure(target) from None
    return [ServerAddress(family, cast("tuple[str, int]", address)) for family, _, _, _, address in found]


async def _connect(family: int, address: object, target: Target, timeout_s: float) -> socket.socket:
    """Connect to one address; raises `ConnectFailure`."""
    try:
        sock = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise os_failure(target, error) from None
    try:
        sock.setblocking(False)
        if family != socket.AF_UNIX:
            _set_options(sock)
        async with asyncio.timeout(timeout_s):
            await asyncio.get_running_loop().sock_connect(sock, cast("tuple[str, int]", address))
    except TimeoutError:
        sock.close()
        raise timeout_failure(target, timeout_s) from None
    except OSError as error:
        sock.close()
        raise os_failure(target, error) from None
    except BaseException:
        sock.close()
        raise
    return sock


def _set_options(sock: socket.socket) -> None:
    """Turn off the delay of small requests, and turn on keep-alive probes, which notice a vanished server.

    The connection works also without an option that the system refuses.
    """
    options = [(socket.IPPROTO_TCP, "TCP_NODELAY", 1), (socket.SOL_SOCKET, "SO_KEEPALIVE", 1)]
    names = ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT")
    options += [(socket.IPPROTO_TCP, name, value) for name, value in zip(names, KEEPALIVE_S, strict=True)]
    for level, name, value in options:
        if hasattr(socket, name):
            with contextlib.suppress(OSError):
                sock.setsockopt(level, getattr(socket, name), value)


def tls_context(tls: Tls) -> ssl.SSLContext:
    """Make a client context that checks certificate and host name unless `insecure`.

    With an authority of one's own only that is trusted, else those of the system. Raises `TargetError` for unusable
    files, `ConnectFailure` when no further file can be opened.
    """
    if tls.insecure:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        try:
            context = ssl.create_default_context(cafile=tls.cacert, capath=tls.cacertdir)
        except (OSError, ValueError) as error:
            raise limit_failure(error) or _unusable("CA certificate", "--cacert and --cacertdir", error) from None
    if tls.cert is None and tls.key is not None:
        happened = "There is a key without its certificate."
        raise TargetError("TLS can't be set up", happened, "Give both --cert and --key.")
    if tls.cert is not None:
        try:
            # Without a passphrase OpenSSL would ask for one on the terminal; an encrypted key fails instead.
            context.load_cert_chain(tls.cert, tls.key, password=lambda: "")
        except (OSError, ValueError) as error:
            raise limit_failure(error) or _unusable(
                "client certificate or its key", "--cert and --key", error
            ) from None
    return context


def _unusable(what: str, options: str, error: Exception) -> TargetError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    happened = f"The {what} can't be used: {reason}."
    return TargetError("TLS can't be set up", happened, f"Check the PEM files of {options}.")
