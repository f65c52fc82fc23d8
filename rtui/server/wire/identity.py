"""The identity of a server from INFO, HELLO and CLUSTER INFO; every field may be unknown. Stamps tell whether data read
earlier still holds: the server may have restarted, or another one answers now.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Final, Literal

from rtui.keyspace.text.display import SafeText, display_text
from rtui.server.guard.compatible import CompatibleServer, compatible_server
from rtui.server.wire.target import MAX_PORT, Address

MAX_INFO_BYTES: Final = 1 << 20
"""The bytes of an INFO reply that are read: a real one has some ten kilobytes."""

Product = Literal["redis", "valkey", "other"]
"""The program that the server runs; `other` may behave differently, for example in the meaning of cursors."""

_WHOLE: Final = re.compile(r"-?[0-9]{1,19}", re.ASCII)
_REPLICA: Final = re.compile(r"ip=([^,]+),port=([0-9]{1,5}),state=online(?:,|\Z)")
_VERSION: Final = re.compile(r"([0-9]{1,6})\.([0-9]{1,6})(?:\.([0-9]{1,6}))?", re.ASCII)


class NoTouch(StrEnum):
    """Whether the server leaves idle times and frequencies unchanged when rtui reads a key."""

    ON = "on"
    UNSUPPORTED = "unsupported"
    DENIED = "denied"


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """The fields of INFO (or, without it, HELLO) and CLUSTER INFO; None is unknown, never zero."""

    product: Product | None = None
    product_name: SafeText | None = None
    compatible: CompatibleServer | None = None
    """The row of a server that is neither Redis nor Valkey, or of a service before one."""
    version: tuple[int, ...] | None = None
    run_id: str | None = None
    """Changes with each start of the server: cursors of a scan are valid only while it stays the same."""
    mode: SafeText | None = None
    role: Literal["primary", "replica"] | None = None
    primary_link_up: bool | None = None
    replicas: tuple[Address, ...] = ()
    """For a primary, the addresses of online replicas, as they announced them."""
    zone: SafeText | None = None
    cluster_enabled: bool | None = None
    cluster_known_nodes: int | None = None
    cluster_epoch: int | None = None
    """Grows with each failover and each slot that changes hands."""
    maxmemory_policy: SafeText | None = None
    used_memory_bytes: int | None = None
    maxmemory_bytes: int | None = None
    """0 means no limit, as for the server."""
    ops_per_s: int | None = None
    uptime_s: int | None = None
    databases: Mapping[int, int] | None = None
    """The number of keys by database, with expired ones that are not deleted yet; empty databases are absent."""
    impossible: Mapping[str, str] = field(default_factory=dict)
    """Impossible values of the figures above, by their names in INFO; safe texts."""

    def is_like(self, other: ServerIdentity) -> bool:
        """Whether facts about this server hold for the other: same run id, version and policy."""
        return (self.run_id, self.product, self.compatible, self.version, self.maxmemory_policy) == (
            other.run_id,
            other.product,
            other.compatible,
            other.version,
            other.maxmemory_policy,
        )

    @property
    def full_name(self) -> str:
        name = (self.product_name or "server").capitalize()
        return f"{name} {self.version_text}" if self.version_text else f"{name} of a version that is not known"

    @property
    def is_lfu(self) -> bool | None:
        return None if self.maxmemory_policy is None else "lfu" in self.maxmemory_policy

    @property
    def version_text(self) -> str | None:
        return None if self.version is None else ".".join(map(str, self.version))

    @property
    def cluster_note(self) -> str | None:
        """A note that only a part of a cluster is seen; None for a server outside a cluster."""
        if not self.cluster_enabled:
            return None
        if self.cluster_known_nodes is None:
            return "one node of a cluster"
        return f"one node of {self.cluster_known_nodes}"


def parse_info(reply: object) -> dict[str, str]:
    """Read the `name:value` lines of INFO or CLUSTER INFO; empty for anything but bytes."""
    if not isinstance(reply, bytes):
        return {}
    fields: dict[str, str] = {}
    for line in reply[:MAX_INFO_BYTES].decode("utf-8", "replace").splitlines():
        name, colon, value = line.partition(":")
        if colon and not line.startswith("#"):
            fields.setdefault(name, value)
    return fields


def parse_identity(info: Sequence[object], cluster_info: object = None, hello: object = None) -> ServerIdentity:
    """Read the replies to INFO (one for each section), CLUSTER INFO and HELLO; each may be missing or an error."""
    fields = {name: value for section in info for name, value in parse_info(section).items()}
    pairs: Iterable[tuple[object, object]] = ()
    if isinstance(hello, dict):  # protocol 3
        pairs = hello.items()
    elif isinstance(hello, list):
        pairs = zip(hello[::2], hello[1::2], strict=False)
    greeting = {
        name.decode("utf-8", "replace"): value.decode("utf-8", "replace")
        for name, value in pairs
        if isinstance(name, bytes) and isinstance(value, bytes)
    }
    compatible = compatible_server(fields)
    name = None if compatible is None or compatible.is_redis else compatible.name.lower()
    if name is None:
        by_version = "valkey" if "valkey_version" in fields else "redis" if "redis_version" in fields else None
        name = fields.get("server_name", by_version or greeting.get("server"))
    found = fields.get("valkey_version") or fields.get("redis_version") or greeting.get("version") or ""
    version = _VERSION.match(found)
    role = fields.get("role") or greeting.get("role")
    mode = fields.get("server_mode") or fields.get("redis_mode") or greeting.get("mode")
    enabled = parse_number(fields, "cluster_enabled")
    policy = fields.get("maxmemory_policy")
    databases: dict[int, int] = {}
    for name_of, value in fields.items():
        index = re.fullmatch(r"db([0-9]{1,10})", name_of, re.ASCII)
        keys = re.match(r"keys=([0-9]{1,19})(?:,|$)", value, re.ASCII)
        if index is not None and keys is not None:
            databases[int(index[1])] = int(keys[1])
    cluster = parse_info(cluster_info)
    return ServerIdentity(
        product=name if name in {"redis", "valkey"} or name is None else "other",  # type: ignore[arg-type]
        product_name=None if name is None else display_text(name),
        compatible=compatible,
        version=None if version is None else tuple(int(part) for part in version.groups() if part is not None),
        run_id=fields.get("run_id") or None,
        mode=None if mode is None else display_text(mode),
        role=None if role is None else "primary" if role == "master" else "replica",
        primary_link_up=None if "master_link_status" not in fields else fields["master_link_status"] == "up",
        replicas=online_replicas(fields) if role == "master" else (),
        zone=display_text(fields["availability_zone"]) if fields.get("availability_zone") else None,
        cluster_enabled=(None if mode is None else mode == "cluster") if enabled is None else enabled != 0,
        cluster_known_nodes=parse_number(cluster, "cluster_known_nodes"),
        cluster_epoch=parse_number(cluster, "cluster_current_epoch"),
        maxmemory_policy=None if policy is None else display_text(policy),
        used_memory_bytes=possible_number(fields, "used_memory"),
        maxmemory_bytes=possible_number(fields, "maxmemory"),
        ops_per_s=possible_number(fields, "instantaneous_ops_per_sec"),
        uptime_s=possible_number(fields, "uptime_in_seconds"),
        impossible={
            name: display_text(fields[name], limit=40)
            for name in ("used_memory", "maxmemory", "instantaneous_ops_per_sec", "uptime_in_seconds")
            if fields.get(name) and possible_number(fields, name) is None
        },
        databases=databases if fields else None,
    )


def online_replicas(fields: Mapping[str, str]) -> tuple[Address, ...]:
    """Return the addresses of online replicas from the fields of INFO replication."""
    found = (_REPLICA.match(value) for name, value in fields.items() if re.fullmatch("slave[0-9]{1,5}", name))
    return tuple((match[1], int(match[2])) for match in found if match is not None and 0 < int(match[2]) <= MAX_PORT)


def parse_number(fields: Mapping[str, str], name: str) -> int | None:
    """Read a field that is a whole number, None for any other."""
    text = fields.get(name, "")
    return int(text) if _WHOLE.fullmatch(text) else None


_MOST: Final = {"used_memory": 2**60, "maxmemory": 2**63, "used_memory_dataset": 2**60, "used_memory_startup": 2**60}
"""The largest possible values of fields; 10^10 for all others."""


def possible_number(fields: Mapping[str, str], name: str) -> int | None:
    """Read a field that is a whole number from 0 on; None for other texts and impossible values."""
    number = parse_number(fields, name)
    return number if number is not None and 0 <= number <= _MOST.get(name, 10**10) else None


LEAST_CHANGE: Final = 10
"""A database that has gained or lost fewer keys than this counts as the same."""

UPTIME_SLACK_S: Final = 2.0
"""Servers count their uptime in whole seconds, from a start time that is rounded as well."""


class Outdated(Enum):
    """The reasons why data does not hold any more, each as a sentence without a full stop."""

    RESTARTED = "The server was restarted"
    REPLACED = "A different server answers now"
    UNSURE = "The server may have been restarted"
    EMPTIED = "The database was emptied"
    SHRANK = "More than half of the keys have disappeared"
    GREW = "The number of keys has more than doubled"


@dataclass(frozen=True, slots=True)
class ServerStamp:
    """The time and the run of the server when data was read."""

    at_s: float
    """Seconds since the epoch."""
    run_id: str | None
    """None if it is unknown."""
    generation: int

    def outdated(self, server: ServerIdentity, generation: int, now_s: float) -> Outdated | None:
        """Return why the stamped data may be outdated: the server has restarted, or another one answers now.

        It has restarted if its uptime is less than the time since; if that is unknown, it may have.
        """
        run_id, uptime_s = server.run_id, server.uptime_s
        if generation == self.generation or (run_id is not None and run_id == self.run_id):
            return None
        if run_id is None or self.run_id is None:
            return Outdated.UNSURE
        if uptime_s is not None and uptime_s > now_s - self.at_s + UPTIME_SLACK_S:
            return Outdated.REPLACED
        return Outdated.RESTARTED


def outdated_by_size(listed: int, then: int | None, now: int | None) -> Outdated | None:
    """Return why `listed` keys can't be complete any more, by the sizes of the database at the count and now.

    Both sizes are the server's own and include expired keys that are not deleted yet: only their change counts.
    """
    if then is None or now is None:
        return None
    if not now:
        return Outdated.EMPTIED if listed else None
    if abs(now - then) < LEAST_CHANGE and listed:
        return None
    if now * 2 < then:
        return Outdated.SHRANK
    return Outdated.GREW if now > then * 2 else None
