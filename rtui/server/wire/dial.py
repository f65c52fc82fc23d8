"""Opening a socket to a target: name resolution, TCP or unix socket, SSH or proxy, and the TLS context."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, cast

from rtui.keyspace.text.display import SafeText, display_text
from rtui.server.files import reason_of
from rtui.server.guard.command import Secret
from rtui.server.wire.errors import ConnectFailure, FailureKind, KeyPassphraseError, RtuiError, TargetError
from rtui.server.wire.failures import limit_failure, name_failure, os_failure, timeout_failure
from rtui.server.wire.target import SSH_S, Address, Target, Tls

MOST_MESSAGE_BYTES: Final = 4096
"""The bytes of ssh's messages that are kept, from the end."""

LAST_LINES: Final = 3
"""The last lines of the messages that are shown: before them may be the banner of a host."""

_DEBUG: Final = re.compile(r"debug\d: ")
"""The beginning of a line that the user's LogLevel adds."""

END_S: Final = 2.0
"""The time that ssh may take to end."""

CHECK_PROXY: Final = "Check the address of --proxy, its user and password, and whether it may reach the server."


async def connect_by_proxy(proxy: Secret, to: Address, timeout_s: float) -> socket.socket:
    """Connect through a SOCKS proxy, which resolves the name; raises ConnectFailure."""
    try:
        from python_socks.async_.asyncio import Proxy  # noqa: PLC0415 - an extra
    except ImportError:
        happened = "A SOCKS proxy takes a library that is not installed."
        raise ConnectFailure(FailureKind.PROXY, happened, "pip install 'redis-rtui[proxy]'") from None
    try:
        sock: socket.socket = await Proxy.from_url(proxy.reveal(), rdns=True).connect(*to, timeout=timeout_s)
    except Exception as error:  # noqa: BLE001 - the library has errors of many families
        said = display_text(str(error) or type(error).__name__, limit=200)
        raise ConnectFailure(
            FailureKind.PROXY, f"The proxy did not connect to the server: {said}.", CHECK_PROXY
        ) from None
    return sock


class SshChild:
    """An OpenSSH process that carries one connection.

    `--via HOST` starts one child process a connection, `ssh -W server:port HOST`, whose standard input and output are
    one end of a socket pair. The other end serves as the socket of the connection. So the user's own ssh configuration,
    keys, agent and known hosts apply, and server names are resolved by the last host. ssh may not ask anything
    (BatchMode), since the terminal is rtui's, and not wait for a host that hangs when rtui is gone (ConnectTimeout). If
    it fails, the user sees its messages.
    """

    def __init__(self, process: subprocess.Popen[bytes], host: str) -> None:
        assert process.stderr is not None  # noqa: S101 - it was asked for
        self._process = process
        self._host = host
        self._messages = b""
        self._stderr = process.stderr.fileno()
        os.set_blocking(self._stderr, False)
        asyncio.get_running_loop().add_reader(self._stderr, self._read)  # ssh would wait where nobody reads it

    @classmethod
    def start(cls, via: tuple[str, ...], to: Address) -> tuple[socket.socket, SshChild]:
        """Start ssh; return our end of its connection. Raises ConnectFailure without an ssh program."""
        *jumps, last = via
        host = f"[{to[0]}]" if ":" in to[0] else to[0]
        options = [
            "-o",
            "BatchMode=yes",
            "-o",
            f"ConnectTimeout={SSH_S:.0f}",
            *(["-J", ",".join(jumps)] if jumps else []),
        ]
        ours, theirs = socket.socketpair()
        try:
            process = subprocess.Popen(
                ["ssh", *options, "-W", f"{host}:{to[1]}", "--", last],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            happened = f"OpenSSH's ssh can't be started: {error.strerror or error}."
            raise ConnectFailure(FailureKind.SSH, happened, "Install the OpenSSH client.") from None
        finally:
            theirs.close()
        ours.setblocking(False)
        return ours, cls(process, last)

    def _read(self) -> bool:
        """Keep the end of ssh's messages; return whether there may be more."""
        with contextlib.suppress(BlockingIOError):
            text = os.read(self._stderr, MOST_MESSAGE_BYTES)
            self._messages = (self._messages + text)[-MOST_MESSAGE_BYTES:]
            if not text:  # it has ended
                asyncio.get_running_loop().remove_reader(self._stderr)
            return bool(text)
        return False

    def _read_all(self) -> None:
        while self._read():
            pass

    def messages(self) -> SafeText | None:
        """Return ssh's last messages, safe to show; None if there are none. Not after `end`."""
        self._read_all()
        lines = [" ".join(line.split()) for line in self._messages.decode("utf-8", "surrogateescape").splitlines()]
        words = " ".join([line for line in lines if line and not _DEBUG.match(line)][-LAST_LINES:])
        return display_text(f"ssh {self._host}: {words}", limit=400) if words else None

    def forget_messages(self) -> None:
        """Forget the messages so far: the server has answered, so a banner does not explain later failures."""
        self._read_all()
        self._messages = b""

    def end(self) -> None:
        """End the process, and reap it once it has ended."""
        process = self._process
        with contextlib.suppress(OSError):
            process.terminate()
        if process.stderr is not None and not process.stderr.closed:
            asyncio.get_running_loop().remove_reader(self._stderr)
            process.stderr.close()
        reaping = asyncio.get_running_loop().run_in_executor(None, _reap, process)
        _REAPING.add(reaping)
        reaping.add_done_callback(_REAPING.discard)


_REAPING: Final[set[asyncio.Future[None]]] = set()


def _reap(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


_OPTIONS: Final = (
    (socket.IPPROTO_TCP, "TCP_NODELAY", 1),
    (socket.SOL_SOCKET, "SO_KEEPALIVE", 1),
    (socket.IPPROTO_TCP, "TCP_KEEPIDLE", 15),
    (socket.IPPROTO_TCP, "TCP_KEEPINTVL", 5),
    (socket.IPPROTO_TCP, "TCP_KEEPCNT", 3),
)
"""No delay of small requests; keep-alive probes after 15 s, every 5 s, which notice a vanished server at the third."""

LEAST_SHARE_S: Final = 0.1
"""The least time for each address of a name."""

MAX_PEM_BYTES: Final = 1 << 24
"""The bytes of a file that are searched after OpenSSL failed to use it."""

_MISMATCHES: Final = frozenset({"KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH", "NO_CERTIFICATE_ASSIGNED"})
"""OpenSSL's reasons for a key that does not belong to the certificate; the last is for another kind of key."""

_PEM_LABEL: Final = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----")

_DIALLER: Final[ContextVar[Callable[[], socket.socket] | None]] = ContextVar("dialler", default=None)


@contextmanager
def dialled_by(dialler: Callable[[], socket.socket]) -> Iterator[None]:
    """Make all connections within the block, and in tasks started in it, by a function.

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
    """A new connection: a non-blocking socket with its address and SSH process."""

    sock: socket.socket
    address: ServerAddress | None = None
    """None if the address can't be reached again: through a unix socket, SSH or a proxy."""
    ssh: SshChild | None = None
    """The SSH process that carries it; whoever closes the socket ends it."""


async def dial(target: Target, timeout_s: float, first: ServerAddress | None) -> Dialled:
    """Connect to a target, directly or through SSH or a proxy.

    `first` is tried first; the name is resolved if there is none or it can't be reached. Then the addresses are tried
    one after another, and each gets its share of the remaining time. Raises the last `ConnectFailure`, ignoring
    failures that only tell about this machine.
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
    try:
        async with asyncio.timeout(timeout_s):
            found = await asyncio.get_running_loop().getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except TimeoutError:
        raise timeout_failure(target, timeout_s) from None
    except (OSError, ValueError, OverflowError) as error:  # UnicodeError is a ValueError
        raise limit_failure(error) or name_failure(target) from None
    addresses = [ServerAddress(family, cast("tuple[str, int]", address)) for family, _, _, _, address in found]
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
    """Return a client context that checks certificate and host name unless `insecure`.

    A given authority replaces those of the system. Raises `TargetError` for unusable files, `KeyPassphraseError` for a
    key that can't be decrypted, `ConnectFailure` if no further file can be opened.
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
    """Load a client certificate into a context; its key may be in the same file."""
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
    """Return why PEM files can't be used; `files` are (kind, path, option, required label)."""
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
