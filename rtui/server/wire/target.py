"""The target of a connection: `Target` with its password and TLS options, and the parsing of URLs and `host:port`.

Its `Way` is for a server that can't be reached directly: through SSH hosts, a SOCKS proxy, or at another address.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from pathlib import Path
from typing import Final, Literal, Self
from urllib.parse import unquote_to_bytes, urlsplit

from rtui.keyspace.text.display import SafeText, display_text
from rtui.keyspace.text.matching import nearest_word
from rtui.server.guard.command import CommandNames, Secret
from rtui.server.wire.errors import TargetError

Address = tuple[str, int]

SSH_S: Final = 15.0
"""The time for SSH hosts and the server behind them to answer: hosts that look users up in a directory are slow."""

_Rule = tuple[re.Pattern[str], int | None, str, str | None]
"""A pattern of hosts, a port (None: any), and their host and port (None: the same)."""

PROXY_SCHEMES: Final = {
    "socks5": "socks5",
    "socks5h": "socks5",
    "socks4": "socks4",
    "socks4a": "socks4",
    "http": "http",
}

_SSH_HOST: Final = re.compile(r"(?!-)[^\s\x00-\x1f\x7f]{1,255}\Z")
"""A host for ssh, with or without a user; never an option."""

_SIDE: Final = re.compile(r"(?P<host>\[[0-9A-Fa-f:.*]+\]|[^:=?\s\[\]]+)(?::(?P<port>[0-9*x]{1,5}))?\Z")


@dataclass(frozen=True, slots=True)
class AddressMap:
    """The real addresses of servers that announce others, for example behind NAT or at the end of tunnels.

    Each rule is `HOST[:PORT]=HOST[:PORT]`. A `*` on the left stands for any text; on the right `*` is that text, and a
    run of `x` the number in it, with as many digits: `10.0.0.*:6379=localhost:70xx` leads 10.0.0.5 to port 7005.
    """

    rules: tuple[str, ...] = ()
    _parsed: tuple[tuple[re.Pattern[str], int | None, str, str | None], ...] = field(
        init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        """Raises TargetError for a rule that can't be read."""
        object.__setattr__(self, "_parsed", tuple(map(_parsed_rule, self.rules)))

    def reached_at(self, address: Address) -> Address:
        """Return the address at which a server is reached, by the first matching rule."""
        host, port = _one_form(address[0]), address[1]
        for pattern, only_port, to_host, to_port in self._parsed:
            found = pattern.fullmatch(host)
            if found is None or only_port not in (None, port):
                continue
            star = found[1] if pattern.groups else ""
            new_port = str(port) if to_port is None else _filled(to_port, star)
            if new_port.isdecimal() and 0 < int(new_port) < 1 << 16:
                return _filled(to_host, star, digits=False), int(new_port)
        return address


@dataclass(frozen=True, slots=True)
class Timeouts:
    """The waiting times for a server, in seconds."""

    direct_s: float = 5.0
    """For name resolution, TCP, TLS and the handshake each, if the server is reached directly."""
    ssh_s: float = SSH_S
    """The same through SSH hosts."""
    reply_s: float = 20.0
    """A server that owes replies and sends nothing for this long is reconnected."""
    lost_s: float = 80.0
    """A command gives up this long after the server's last answer: a minute covers most restarts and failovers."""

    @classmethod
    def within(cls, longest_s: float) -> Self:
        """Return timeouts with which a command gives up after `longest_s`, and nothing takes longer."""
        usual = cls()
        direct_s, ssh_s, reply_s = (min(limit_s, longest_s) for limit_s in (usual.direct_s, usual.ssh_s, usual.reply_s))
        return cls(direct_s, ssh_s, reply_s, longest_s)


@dataclass(frozen=True, slots=True)
class Way:
    """How sockets reach servers."""

    via: tuple[str, ...] = ()
    """SSH hosts, the first one first, as in `ssh HOST`."""
    addresses: AddressMap = field(default_factory=AddressMap)
    proxy: Secret | None = None
    """`socks5://user:password@host:port`: it may contain a password."""
    timeouts: Timeouts = field(default_factory=Timeouts)

    @property
    def connect_s(self) -> float:
        """The time for name resolution, TCP, TLS and the handshake each."""
        return self.timeouts.ssh_s if self.via else self.timeouts.direct_s


def checked_host(host: str) -> str:
    """Return the name of an SSH host; raises TargetError for one that ssh would take for an option."""
    if not _SSH_HOST.match(host):
        raise TargetError("The way can't be read", "An SSH host is no option and has no spaces.", "Write --via HOST.")
    return host


def checked_proxy(url: str) -> Secret:
    """Return the URL of a proxy as python-socks reads it; raises TargetError, which repeats nothing of it.

    `socks5h` and `socks4a`, as in curl, let the proxy resolve names, which it does anyway.
    """
    try:
        parts = urlsplit(url)
        is_whole = parts.scheme in PROXY_SCHEMES and bool(parts.hostname) and bool(parts.port)
    except ValueError:  # of the port, or of brackets
        is_whole = False
    if not is_whole:
        happened = f"A proxy is a URL that begins with one of {', '.join(PROXY_SCHEMES)}, and has a host and a port."
        remedy = "Write --proxy socks5://host:1080, or socks5://user:password@host:1080 with @ as %40, / as %2F."
        raise TargetError("The proxy can't be read", happened, remedy)
    return Secret(PROXY_SCHEMES[parts.scheme] + url[url.index(":") :])


def _parsed_rule(rule: str) -> _Rule:
    left, _, right = rule.partition("=")
    before, after = _SIDE.match(left), _SIDE.match(right)
    if before is None or after is None or left.count("*") > 1:
        raise _wrong_rule()
    if not (_is_port(before["port"]) and _can_be_port(after["port"])):
        raise _wrong_rule()
    host = re.escape(_one_form(before["host"].strip("[]"))).replace(r"\*", "(.+)")
    port = None if before["port"] is None else int(before["port"])
    return re.compile(host, re.DOTALL | re.IGNORECASE), port, after["host"].strip("[]"), after["port"]


def _wrong_rule() -> TargetError:
    return TargetError(
        "The address map can't be read",
        "A rule is HOST[:PORT]=HOST[:PORT], with one * on the left at most, and ports from 1 to 65535.",
        "Such as --map '10.0.0.*:6379=localhost:70xx'; an IPv6 address stands in brackets.",
    )


def _is_port(text: str | None) -> bool:
    return text is None or (text.isdecimal() and 0 < int(text) < 1 << 16)


def _can_be_port(text: str | None) -> bool:
    """Whether a text can become a port: with `*` or `x` it depends on the address."""
    return text is None or "*" in text or "x" in text or _is_port(text)


def _one_form(host: str) -> str:
    """Return the shortest notation of an IPv6 address, which has many; other hosts unchanged."""
    if ":" not in host:
        return host
    try:
        return str(ip_address(host))
    except ValueError:  # with a * in it
        return host


def _filled(text: str, star: str, *, digits: bool = True) -> str:
    """Insert the text that the star stood for."""
    text = text.replace("*", star)
    return re.sub("x+", lambda run: star.zfill(len(run[0])), text) if digits and star.isdecimal() else text


DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 6379
SENTINEL_PORT: Final = 26379
MAX_PORT: Final = 65_535

MAX_DB: Final = 2_147_483_647
"""The highest index that SELECT takes; the server decides which databases exist."""

SCHEMES: Final = ("redis", "rediss", "valkey", "valkeys", "unix", "sentinel")
_URL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*)://", re.ASCII)
_BRACKETED: Final = re.compile(r"\[([0-9A-Fa-f:.]+(?:%[^\]]+)?)\](?::(.*))?", re.ASCII | re.DOTALL)
_HOST: Final = re.compile(r"[^\s/?#@\[\]:\\\x00-\x20\x7f]+")
_NEARLY_URL: Final = re.compile(rf"({'|'.join(SCHEMES)})(?::/|:(?![0-9]*$)|//)", re.ASCII | re.IGNORECASE)
"""The beginning of a URL without its colon or slashes; `redis:6379` is a host and a port."""
_OTHER_SCHEMES: Final = {
    **dict.fromkeys(("http", "tcp", "redis+tcp", "resp", "keydb", "redis+cluster"), "redis"),
    **dict.fromkeys(("https", "tls", "ssl", "redis+tls", "redis+ssl", "redis-tls", "valkey+tls"), "rediss"),
    **dict.fromkeys(("file", "redis+unix", "redis-socket", "redis+socket", "unix+redis"), "unix"),
    **dict.fromkeys(("redis-sentinel", "redis+sentinel", "sentinels"), "sentinel"),
}
_SHAPES: Final = (
    "Write it as host, host:port, [IPv6]:port, redis://user:password@host:port/db, unix:///path/to/socket or "
    "sentinel://user:password@host,host/service/db."
)

ProtocolVersion = Literal[2, 3]

ReplicaPolicy = Literal["prefer", "only", "never"]
"""Whether scans and analyses may, must or must not use replicas."""


@dataclass(frozen=True, slots=True)
class Tls:
    """How a TLS connection checks the server's certificate, and which one it presents; paths are PEM files."""

    cacert: str | None = None
    cacertdir: str | None = None
    cert: str | None = None
    key: str | None = None
    sni: str | None = None
    insecure: bool = False
    """Accept any certificate: traffic is encrypted, but the server may be anybody's."""
    key_password: Secret | None = field(default=None, repr=False)
    """The passphrase of the key, if it is encrypted."""


@dataclass(frozen=True, slots=True)
class Login:
    """The source of expiring users and passwords: a shell command, or else a provider as `module:factory`."""

    command: Secret | None = None
    provider: str | None = None


@dataclass(frozen=True, slots=True)
class Mark:
    """A mark in the title bar for a server that should stand out, such as PROD in red."""

    word: SafeText
    colour: str
    """One of red, yellow, green, blue, magenta, cyan."""


@dataclass(frozen=True, slots=True)
class Sentinels:
    """The Sentinels that know the primary of a service; they have users and certificates of their own."""

    service: str
    addresses: tuple[tuple[str, int], ...]
    user: str | None = None
    password: Secret | None = field(default=None, repr=False)
    tls: Tls | None = None

    @property
    def label(self) -> SafeText:
        """The service and the first Sentinel: `mymaster@10.0.0.5:26379`."""
        return display_text(f"{self.service}@{address_text(*self.addresses[0])}")


@dataclass(frozen=True, slots=True)
class DumpFile:
    """A dump to be loaded by a server of rtui's own (`rtui.embedded.dump`)."""

    path: Path
    program: Path | None = None
    """The server that loads it; None for one that is found."""
    is_forced: bool = False
    """Load it whatever memory is free."""
    made_at: str = ""
    """When it was made, as people read it; empty before it is loaded, as all that follows."""
    server: str = ""
    """The server that wrote it, such as `redis 7.2.5`; empty if it does not say."""
    used_memory_bytes: int | None = None
    """The memory of that server."""
    left_out: int = 0
    """Keys that have expired since it was made and are not shown, since the server that has loaded it dropped them."""
    has_more: bool = False
    """Whether something follows the dump in the file, such as the commands of an append-only file."""

    @property
    def about(self) -> SafeText:
        """`as of 2026-11-28 02:00, dump of redis 7.2.5`."""
        return display_text(f"as of {self.made_at}, dump{f' of {self.server}' if self.server else ''}", limit=80)

    @property
    def missing(self) -> str:
        """The keys and parts of the file that are not shown; empty where all are."""
        from rtui.analysis.humanize import counted  # noqa: PLC0415 - imports msgspec, for which help need not wait

        verbs = ("has", "is") if self.left_out == 1 else ("have", "are")
        expired = f"{counted(self.left_out, 'key')} {verbs[0]} expired since and {verbs[1]} not shown"
        more = "what follows the dump in the file is not read"
        return "; ".join(filter(None, (expired if self.left_out else "", more if self.has_more else "")))

    @property
    def note(self) -> SafeText:
        """The dump, the time and the server of which it is, and how many keys are not shown."""
        missing = f"; {self.missing}" if self.missing else ""
        return display_text(f"{self.path.name} {self.about}{missing}", limit=300)

    @property
    def without(self) -> dict[str, str]:
        """Commands that are not sent to the server that has loaded it, and why."""
        return {
            "OBJECT IDLETIME": "the dump holds no idle times: a server saves them if its maxmemory-policy is LRU",
            "OBJECT FREQ": "the dump holds no access frequencies: a server saves them if its maxmemory-policy is LFU",
        }


@dataclass(frozen=True, slots=True)
class Target:
    """One server and database to connect to. `repr` is safe: the password is a `Secret`."""

    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    socket_path: str | None = None
    user: str | None = None
    password: Secret | None = field(default=None, repr=False)
    db: int = 0
    login: Login | None = None
    """Provides user and password on demand, in place of the ones above."""
    tls: Tls | None = None
    seeds: tuple[Address, ...] = ()
    """Further nodes of the cluster, used if the first one can't be reached."""
    cluster: bool = False
    """Whether it has to be a cluster."""
    only_node: bool = False
    """Whether only this node of a cluster is wanted."""
    replicas: ReplicaPolicy = "prefer"
    """Whether scans go to replicas that are in sync; commands on single keys always go to their primary."""
    zone: str | None = None
    """The availability zone that rtui runs in: its replicas are used first."""
    protocol: ProtocolVersion | None = None
    name: str | None = None
    """The name of the profile, or None."""
    mark: Mark | None = None
    """The profile's mark, or None."""
    way: Way = field(default_factory=Way)
    """How connections reach it: SSH hosts, proxy, address map, timeouts."""
    names: CommandNames = field(default_factory=CommandNames)
    sentinels: Sentinels | None = None
    """The Sentinels that find the server; host and port are their last answer."""
    registry: str | None = None
    """The profile's registry: a file, or the name of one that ships with rtui."""
    shown_as: SafeText | None = None
    """The label of a server that rtui has started, or of a recording, in place of an address."""
    labels: tuple[tuple[SafeText, SafeText], ...] = ()
    """Names and values by which servers of a fleet are grouped, each name once."""
    dump: DumpFile | None = None
    """The dump that takes the place of a server."""
    keys: Path | None = None
    """The file of keys (`rtui.table.keys_file`) that takes its place; nothing can be connected to."""

    @property
    def label(self) -> SafeText:
        """`host:port`, `[IPv6]:port via bastion`, the socket's path or `service@Sentinel`: never a user or password."""
        if self.shown_as is not None:
            return self.shown_as
        if self.sentinels is not None:
            return self.sentinels.label
        if self.keys is not None:
            return display_text(self.keys.name)
        if self.dump is not None:
            as_of = f" as of {self.dump.made_at}" if self.dump.made_at else ""
            return display_text(f"{self.dump.path.name}{as_of}")
        if self.socket_path is not None:
            return display_text(self.socket_path)
        by = f" via {self.way.via[-1]}" if self.way.via else ""
        return display_text(f"{address_text(self.host, self.port)}{by}")

    @property
    def has_no_credentials(self) -> bool:
        """Whether nothing tells the server who connects: neither user, password nor client certificate."""
        has_certificate = self.tls is not None and self.tls.cert is not None
        return not (self.user or self.password or self.login or has_certificate)

    def with_key_password(self, password: Secret) -> Target:
        """Return the target with the passphrase of the client key, which Sentinels are shown as well."""
        tls = None if self.tls is None else replace(self.tls, key_password=password)
        asked = self.sentinels
        if asked is not None and asked.tls is not None:
            asked = replace(asked, tls=replace(asked.tls, key_password=password))
        return replace(self, tls=tls, sentinels=asked)

    def redis_cli_args(self) -> tuple[str, ...]:
        """Return the arguments with which redis-cli connects to the same database; it prompts for the password."""
        args = ["-s", self.socket_path] if self.socket_path is not None else ["-h", self.host, "-p", str(self.port)]
        if self.user is not None:
            args += ["--user", self.user]
        if self.password:
            args.append("--askpass")
        if self.db:
            args += ["-n", str(self.db)]
        if self.cluster:
            args.append("-c")
        if self.tls is not None:
            args.append("--tls")
            for option in ("cacert", "cacertdir", "cert", "key", "sni"):
                value: str | None = getattr(self.tls, option)
                if value is not None:
                    args += [f"--{option}", value]
            if self.tls.insecure:
                args.append("--insecure")
        return tuple(args)


def address_text(host: str, port: object) -> SafeText:
    """Return `host:port`, with brackets around an IPv6 address, safe to show."""
    return display_text(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")


def parse_target(text: str) -> Target:
    """Read a URL or `host[:port]`; raises `TargetError`, which repeats nothing of `text`."""
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise _wrong("It holds something that is not text.") from None
    scheme = _URL.match(text)
    if scheme is not None:
        return _parse_url(scheme[1].lower(), text[scheme.end() :])
    if "@" in text:  # also in what looks like a path: it may be a password that begins with a slash
        raise _wrong(
            "It holds an @ but is not a URL.",
            "A user, a password or a path with an @ needs one: redis://user:password@host:port/db, unix:///path@a.",
        )
    if text.startswith("/"):
        return Target(socket_path=_checked_path(text))
    _check_slashes(text)
    (host, port), *seeds = _addresses(text)
    return Target(host=host, port=port, seeds=tuple(seeds))


def _check_slashes(text: str) -> None:
    """Raise TargetError for a URL without its slashes or colon, and for a path or database outside a URL."""
    scheme = _NEARLY_URL.match(text)
    if scheme is not None:
        slashes = "/// and the path" if scheme[1].lower() == "unix" else "//"
        raise _wrong(f"A URL begins with {scheme[1].lower()}:{slashes}, with a colon and two slashes.")
    if text.startswith("."):
        raise _wrong("The path of a socket is not absolute.", "Write all of it, /run/redis.sock, or use -s.")
    if "/" in text:
        raise _wrong(
            "There is a / after the host, but it is not a URL.",
            "Write redis://host:port/db for a database, or give it by -n.",
        )
    if text.count("[") != text.count("]"):
        raise _wrong("The brackets around an IPv6 address are not closed.")


def _parse_url(scheme: str, rest: str) -> Target:
    """Read the text behind `scheme://`: credentials, host and port, path and query; a fragment has no meaning here."""
    if scheme not in SCHEMES:
        meant = _OTHER_SCHEMES.get(scheme) or nearest_word(scheme, SCHEMES, least=0.7)
        remedy = _SHAPES if meant is None else f"Did you mean {meant}://?"
        raise _wrong("Its scheme is none of " + ", ".join(SCHEMES) + ".", remedy)
    end = min((index for index in map(rest.find, "/?#") if index >= 0), default=len(rest))
    credentials, _, address = rest[:end].rpartition("@")
    path, _, query = rest[end:].partition("?")
    if "@" in path + query and not (scheme == "unix" and not address):
        raise _wrong(
            "There is an @ after the host, so the password seems to hold a character with a meaning in URLs.",
            "Write / as %2F, ? as %3F, # as %23, @ as %40 and % as %25, or use REDISCLI_AUTH or --askpass.",
        )
    user, _, password = credentials.partition(":")
    parameters: dict[str, str] = {}
    for pair in query.split("&") if query else []:
        name, _, value = pair.partition("=")
        if name not in {"db", "protocol"} or name in parameters:
            raise _wrong("After the ? only db=… and protocol=2 or 3 are understood, each once.")
        parameters[name] = value
    protocols: dict[str | None, ProtocolVersion | None] = {None: None, "2": 2, "3": 3}
    if parameters.get("protocol") not in protocols:
        raise _wrong("The protocol is neither 2 nor 3.")
    target = Target(
        user=_decoded(user) or None,
        password=Secret(_decoded(password)) if password else None,
        protocol=protocols[parameters.get("protocol")],
    )
    if scheme == "unix":
        if address:
            raise _wrong("A unix URL has no host.", "Three slashes begin the path: unix:///run/redis.sock.")
        return replace(target, socket_path=_checked_path(_decoded(path)), db=_db(parameters.get("db", "")))
    if scheme == "sentinel":
        service, _, db_text = path.strip("/").partition("/")
        if not service:
            raise _wrong("After the Sentinels there is no service: sentinel://host,host/service/db.")
        addresses = tuple(_addresses(address, SENTINEL_PORT))
        sentinels = Sentinels(_decoded(service), addresses)
        return replace(target, sentinels=sentinels, db=_db(parameters.get("db") or db_text))
    (host, port), *seeds = _addresses(address)
    tls = Tls() if scheme in {"rediss", "valkeys"} else None
    db = _db(parameters.get("db") or path.strip("/"))
    return replace(target, host=host, port=port, seeds=tuple(seeds), db=db, tls=tls)


def _db(text: str) -> int:
    if not text:
        return 0
    if not (text.isascii() and text.isdecimal()) or len(text) > 10 or int(text) > MAX_DB:
        raise _wrong(
            "The database, which follows the / after the host, is not a number from 0 on.",
            "Write redis://host:port/0. Databases have no names, and keys do not belong here.",
        )
    return int(text)


def _addresses(text: str, default_port: int = DEFAULT_PORT) -> list[tuple[str, int]]:
    """Return each of several `host[:port]`, the nodes of a cluster or Sentinels."""
    parts = text.split(",")
    if len(parts) > 1 and not all(parts):
        raise _wrong("Of several hosts one is empty.")
    return [_host_and_port(part, default_port) for part in parts]


def _host_and_port(text: str, default_port: int = DEFAULT_PORT) -> tuple[str, int]:
    if not text:
        return DEFAULT_HOST, default_port
    bracketed = _BRACKETED.fullmatch(text)
    if bracketed is not None:
        return _decoded(bracketed[1]), _port(bracketed[2], default_port)
    if text.count(":") > 1 and re.fullmatch(r"[0-9A-Fa-f:.]+", text):
        return text, default_port
    host, colon, port = text.partition(":")
    if host and _HOST.fullmatch(host) is None:
        raise _wrong("The host holds a character that no host name has.")
    return host or DEFAULT_HOST, _port(port if colon else None, default_port)


def _port(text: str | None, default: int) -> int:
    if not text:
        return default
    if not (text.isascii() and text.isdecimal()) or len(text) > 5 or not 0 < int(text) <= MAX_PORT:
        raise _wrong(f"The port, which follows the colon after the host, is not a number from 1 to {MAX_PORT}.")
    return int(text)


def _checked_path(path: str) -> str:
    if not path.startswith("/") or "\0" in path or path == "/":
        raise _wrong("There is no absolute path of a socket.", "Three slashes begin the path: unix:///run/redis.sock.")
    return path


def _decoded(text: str) -> str:
    """Return percent-decoded text; bytes that are not UTF-8 become surrogate escapes, to be sent unchanged."""
    return unquote_to_bytes(text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")


def _wrong(happened: str, remedy: str = _SHAPES) -> TargetError:
    return TargetError("The target can't be read", happened, remedy)
