"""The way to a server that can't be reached directly: through SSH hosts, a SOCKS proxy, or at another address."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final, Self
from urllib.parse import urlsplit

from rtui.server.wire.errors import TargetError
from rtui.server.wire.secret import Secret

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
"""The schemes of a proxy URL, with python-socks' names for them."""

_HOST: Final = re.compile(r"(?!-)[^\s\x00-\x1f\x7f]{1,255}\Z")
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
        direct_s, ssh_s, reply_s = (min(one, longest_s) for one in (usual.direct_s, usual.ssh_s, usual.reply_s))
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
    if not _HOST.match(host):
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
