"""Opening a socket to a target: name resolution, TCP or unix socket, the way there, and the TLS context."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, cast

from rtui.server.files import reason_of
from rtui.server.wire.errors import ConnectFailure, FailureKind, KeyPassphraseError, RtuiError, TargetError
from rtui.server.wire.failures import limit_failure, name_failure, os_failure, timeout_failure
from rtui.server.wire.secret import Secret
from rtui.server.wire.target import Target, Tls
from rtui.server.wire.tunnels import SshChild, connect_by_proxy

_OPTIONS: Final = (
    (socket.IPPROTO_TCP, "TCP_NODELAY", 1),
    (socket.SOL_SOCKET, "SO_KEEPALIVE", 1),
    (socket.IPPROTO_TCP, "TCP_KEEPIDLE", 15),
    (socket.IPPROTO_TCP, "TCP_KEEPINTVL", 5),
    (socket.IPPROTO_TCP, "TCP_KEEPCNT", 3),
)
"""No delay of small requests; keep-alive probes after 15 s, every 5 s, which notice a vanished server at the third."""

LEAST_SHARE_S: Final = 0.1
"""Least time for each address of a name."""

MAX_PEM_BYTES: Final = 1 << 24
"""Of a longer file that OpenSSL can't use only the beginning is looked at."""

_MISMATCHES: Final = frozenset({"KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH", "NO_CERTIFICATE_ASSIGNED"})
"""What OpenSSL says of a key that is not that of the certificate: the last where they are of different kinds."""

_PEM_LABEL: Final = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----")

_DIALLER: Final[ContextVar[Callable[[], socket.socket] | None]] = ContextVar("dialler", default=None)


@contextmanager
def dialled_by(dialler: Callable[[], socket.socket]) -> Iterator[None]:
    """Have all connections within the block, and in tasks that are started in it, made by a function.

    It returns a connected, non-blocking socket. No server is reached, whatever the target.
    """
    token = _DIALLER.set(dialler)
    try:
        yield
    finally:
        _DIALLER.reset(token)


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """The address that a connection reached, so that a second one reaches the same server behind the same name."""

    family: int
    address: tuple[str, int] | tuple[str, int, int, int]


@dataclass(frozen=True, slots=True)
class Dialled:
    """A connection that was made: a non-blocking socket, and what there is besides."""

    sock: socket.socket
    address: ServerAddress | None = None
    """None where another connection can't be made to the same address: by a unix socket, SSH or a proxy."""
    ssh: SshChild | None = None
    """What carries it; whoever closes the socket ends it."""


async def dial(target: Target, timeout_s: float, first: ServerAddress | None) -> Dialled:
    """Connect to a target by its way.

    `first` is tried first; the name is resolved when there is none or it can't be reached. Then the addresses are tried
    one after another, and each gets its share of the time that is left. Raises `ConnectFailure`: the last one, without
    those that say only what this machine can't do.
    """
    if (dialler := _DIALLER.get()) is not None:
        return Dialled(dialler())
    if target.socket_path is not None:
        return Dialled(await _connect(socket.AF_UNIX, target.socket_path, target, timeout_s))
    host, port = target.way.addresses.reached_at((target.host, target.port))
    if target.way.via:
        sock, ssh = SshChild.start(target.way.via, (host, port))
        return Dialled(sock, ssh=ssh)
    if target.way.proxy is not None:
        return Dialled(await connect_by_proxy(target.way.proxy, (host, port), timeout_s))
    found = await _dial_directly(replace(target, host=host, port=port), timeout_s, first)
    return Dialled(*found)


async def _dial_directly(
    target: Target, timeout_s: float, first: ServerAddress | None
) -> tuple[socket.socket, ServerAddress]:
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
        for level, name, value in _OPTIONS if family != socket.AF_UNIX else ():
            with contextlib.suppress(AttributeError, OSError):  # an option that the system lacks or refuses is no loss
                sock.setsockopt(level, getattr(socket, name), value)
        async with asyncio.timeout(timeout_s):
            await asyncio.get_running_loop().sock_connect(sock, cast("tuple[str, int]", address))
    except BaseException as error:  # also when cancelled: nobody else would close the socket
        sock.close()
        if isinstance(error, TimeoutError):
            raise timeout_failure(target, timeout_s) from None
        if isinstance(error, OSError):
            raise os_failure(target, error) from None
        raise
    return sock


def tls_context(tls: Tls) -> ssl.SSLContext:
    """Make a client context that checks certificate and host name unless `insecure`.

    With an authority of one's own only that is trusted, else those of the system. Raises `TargetError` for unusable
    files, `KeyPassphraseError` for a key that can't be decrypted, `ConnectFailure` when no further file can be opened.
    """
    if tls.insecure:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        try:
            context = ssl.create_default_context(cafile=tls.cacert, capath=tls.cacertdir)
        except (OSError, ValueError) as error:
            found = [] if tls.cacert is None else [("authority", tls.cacert, "--cacert", "CERTIFICATE")]
            raise _unusable("--cacert and --cacertdir", error, *found) from None
    if tls.cert is None and tls.key is not None:
        raise _tls_error("There is a key without its certificate.", "Give both --cert and --key.")
    if tls.cert is not None:
        _load_own(context, tls.cert, tls.key, tls.key_password)
    return context


def _load_own(context: ssl.SSLContext, cert: str, key: str | None, key_password: Secret | None) -> None:
    """Have a context present a client certificate; its key may be in the same file."""
    is_encrypted = False

    def passphrase() -> bytes:
        nonlocal is_encrypted
        is_encrypted = True
        return b"" if key_password is None else os.fsencode(key_password.reveal())

    try:
        # With a function for the passphrase OpenSSL never asks for one on the terminal.
        context.load_cert_chain(cert, key, password=passphrase)
    except (OSError, ValueError) as error:
        option, key = ("--cert", cert) if key is None else ("--key", key)
        if getattr(error, "reason", None) in _MISMATCHES:
            happened = f"The key in {key} does not belong to the certificate in {cert}."
            raise _tls_error(happened, "Give the certificate that was made for this key, or its own key.") from None
        if not is_encrypted:
            files = ("client certificate", cert, "--cert", "CERTIFICATE"), ("key", key, option, "PRIVATE KEY")
            raise _unusable("--cert and --key", error, *files) from None
        if not key_password:
            title, happened = (
                "The client key is encrypted",
                f"The key in {key} is encrypted, and there is no passphrase.",
            )
            remedy = "Give the passphrase by --key-askpass, RTUI_KEY_PASSWORD or key_password of a profile."
        else:
            title = "Wrong passphrase of the client key"
            happened = f"The key in {key} is encrypted, and this is the wrong passphrase, or the file is damaged."
            remedy = (
                f"`openssl pkey -noout -in {key}` asks for the passphrase and says whether it is right; "
                "outdated encryption, such as DES, is refused, too."
            )
        raise KeyPassphraseError(title, happened, remedy) from None


def _unusable(options: str, error: Exception, *files: tuple[str, str, str, str]) -> RtuiError:
    """Return why PEM files can't be used; of each: what it is, its path, its option, and the label that is wanted."""
    if (limit := limit_failure(error)) is not None:
        return limit
    for what, path, option, wanted in files:
        try:
            with Path(path).open("rb") as file:
                labels = _PEM_LABEL.findall(file.read(MAX_PEM_BYTES)) if Path(path).is_file() else [wanted.encode()]
        except (OSError, ValueError) as unread:  # a NUL in a path is a ValueError
            happened = f"The {what} in {path} can't be read: {reason_of(unread)}."
            return _tls_error(happened, f"Check the path of {option}, and who may read the file.")
        if not any(label.endswith(wanted.encode()) for label in labels):
            happened = f"There is no {wanted.lower()} in {path}." if labels else f"{path} is not a PEM file."
            remedy = f"{option} is a text file with -----BEGIN {wanted}-----; openssl converts other forms."
            remedy = "Give the file of the key with --key." if what == "key" and option == "--cert" else remedy
            return _tls_error(happened, remedy)
    return _tls_error(f"What {options} name can't be used: {reason_of(error)}.", "The file may be damaged.")


def _tls_error(happened: str, remedy: str) -> TargetError:
    return TargetError("TLS can't be set up", happened, remedy)
