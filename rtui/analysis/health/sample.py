"""A server's figures at one moment: the fields of INFO and the lists that health is judged by.

A sample is plain data, so that it can be kept, written as a line of JSON and read again. A figure that the server
refuses, or that would cost too much, is absent from its fields and named in `missing` with the reason: 0 is always a
figure of the server. Counters are as the server gives them, since its start or the last reset of its statistics;
`rates.py` computes rates between two samples.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from rtui.analysis.facts import Reason, Unknown
from rtui.analysis.report.document import KeySizes
from rtui.analysis.report.members import Name


class Source(StrEnum):
    """The sources of figures; the value is the command."""

    INFO_SERVER = "INFO server"
    INFO_CLIENTS = "INFO clients"
    INFO_MEMORY = "INFO memory"
    INFO_PERSISTENCE = "INFO persistence"
    INFO_STATS = "INFO stats"
    INFO_REPLICATION = "INFO replication"
    INFO_CPU = "INFO cpu"
    INFO_CLUSTER = "INFO cluster"
    INFO_KEYSPACE = "INFO keyspace"
    COMMAND_STATS = "INFO commandstats"
    LATENCY_STATS = "INFO latencystats"
    ERROR_STATS = "INFO errorstats"
    KEY_SIZES = "INFO keysizes"
    CLUSTER_INFO = "CLUSTER INFO"
    CLUSTER_NODES = "CLUSTER NODES"
    SENTINELS = "SENTINEL MASTERS"
    SLOW_LOG = "SLOWLOG GET"
    LARGE_REQUESTS = "COMMANDLOG GET large-request"
    LARGE_REPLIES = "COMMANDLOG GET large-reply"
    LATENCY_EVENTS = "LATENCY LATEST"
    CLIENTS = "CLIENT LIST"
    SETTINGS = "CONFIG GET"


class Missing(Struct, frozen=True):
    """Why a source says nothing."""

    reason: Reason
    detail: str = ""
    """Safe text without a full stop: the server's own words, or how many clients there are; may be empty."""


class Database(Struct, frozen=True):
    """A numbered database, by INFO keyspace."""

    keys: int
    expires: int | None
    """Keys with a TTL among these; None if the server's figure is impossible."""
    avg_ttl_ms: int | None = None


class CommandStats(Struct, frozen=True):
    """One command since the statistics were reset, by INFO commandstats and latencystats."""

    calls: int
    took_us: int
    """All calls together."""
    rejected: int | None = None
    """Refused before they ran, such as for a right or an argument; from Redis 6.2 on."""
    failed: int | None = None
    """Ended with an error; from Redis 6.2 on."""
    percentiles_us: dict[str, float] = field(default_factory=dict)
    """Time by percentile, such as {"50": 1.0, "99": 3.0, "99.9": 17.0}; from Redis 7.0 on."""


class Replica(Struct, frozen=True):
    """A replica as its primary sees it, by INFO replication."""

    address: Name
    state: str
    """`online`, `wait_bgsave`, `send_bulk` …"""
    offset: int | None = None
    lag_s: int | None = None
    """Seconds since its last acknowledgement."""


class Peer(Struct, frozen=True):
    """A node of a cluster as the node that was asked sees it, by CLUSTER NODES."""

    address: Name
    is_replica: bool = False
    state: str = "ok"
    """`ok`, `suspect` where this node has not heard of it, `down` where the cluster has given it up, or `joining`."""
    is_linked: bool = True
    slots: int = 0
    is_self: bool = False


class SentinelView(Struct, frozen=True):
    """A Sentinel and its view of the service, by SENTINEL MASTERS."""

    address: str
    """`host:port`; all texts are safe."""
    primary: str = ""
    flags: str = ""
    """Its flags of the primary: `master`, with `s_down` and `o_down` if it takes it for dead."""
    quorum: int | None = None
    """How many have to agree that it is dead."""
    sentinels: int | None = None
    """How many Sentinels it knows, itself among them."""
    replicas: int | None = None
    failure: str = ""


class LoggedCommand(Struct, frozen=True):
    """An entry of SLOWLOG or COMMANDLOG."""

    id: int
    at_s: int
    """When it ended, in seconds since the epoch by the server's clock."""
    amount: int
    """Microseconds in the slow log, bytes in the two others."""
    argv: tuple[Name, ...]
    """The command and its arguments, cut by the server."""
    address: Name = b""
    client_name: Name = b""
    is_own: bool = False
    argument_count: int | None = None
    """Words of the whole command, also where `argv` is cut; from Redis 8.10 on."""

    @property
    def name(self) -> str:
        return self.argv[0].decode("ascii", "replace").upper() if self.argv else ""


class LatencyEvent(Struct, frozen=True):
    """A class of delays that the server has measured, by LATENCY LATEST and HISTORY."""

    name: str
    at_s: int
    latest_ms: int
    highest_ms: int
    history: tuple[tuple[int, int], ...] = ()
    """Seconds since the epoch and milliseconds, oldest first; at most one a second, the highest."""


class ClientFigures(Struct, frozen=True):
    """A connected client."""

    id: int | None
    address: Name
    name: Name = b""
    library: Name = b""
    user: Name = b""
    flags: str = ""
    """As CLIENT LIST has them: `N` for none, `b` blocked, `S` a replica, `P` subscribed …"""
    db: int | None = None
    connected_s: int | None = None
    idle_s: int | None = None
    last_command: str = ""
    subscriptions: int | None = None
    """Channels, patterns and shard channels."""
    query_bytes: int | None = None
    """Sent by the client and not carried out yet."""
    output_bytes: int | None = None
    """Replies that the client has not read yet."""
    total_bytes: int | None = None
    """All that the server holds for it; from Redis 6.2 on."""
    is_own: bool = False


class OwnUse(Struct, frozen=True):
    """The counts that rtui itself has added to this server's counters in its session, over all connections."""

    commands: int = 0
    hits: int = 0
    """Look-ups of keys, as the server counts `keyspace_hits`, including keys that were gone by then."""
    misses: int = 0
    is_let_in_freely: bool = False
    """Whether the server took its commands without a password, as the default user."""


class Sample(Struct, frozen=True):
    """One server at one moment."""

    at_ms: int
    """Milliseconds since the epoch, by rtui's clock."""
    node: str
    """`host:port` as safe text, the same in each sample of a session."""
    info: dict[str, int | float | str] = field(default_factory=dict)
    """The fields of INFO and CLUSTER INFO that `fields.py` declares, by their names there; texts are safe."""
    databases: dict[int, Database] = field(default_factory=dict)
    commands: dict[str, CommandStats] = field(default_factory=dict)
    """By name in capitals, `CONFIG|GET` for a subcommand."""
    errors: dict[str, int] = field(default_factory=dict)
    """How often each error code was replied: `WRONGTYPE` …"""
    replicas: tuple[Replica, ...] = ()
    peers: tuple[Peer, ...] = ()
    sentinels: tuple[SentinelView, ...] = ()
    slow: tuple[LoggedCommand, ...] = ()
    """Latest first, like the two that follow."""
    large_requests: tuple[LoggedCommand, ...] = ()
    large_replies: tuple[LoggedCommand, ...] = ()
    latency: tuple[LatencyEvent, ...] = ()
    clients: tuple[ClientFigures, ...] = ()
    settings: dict[str, str] = field(default_factory=dict)
    """By the names of CONFIG GET; safe texts."""
    key_sizes: tuple[KeySizes, ...] = ()
    """By INFO keysizes, from Redis 8.0 on; of all databases together."""
    own: OwnUse = OwnUse()
    sources: tuple[Source, ...] = ()
    """Sources that have answered for this sample, possibly without content, such as an empty slow log. Some sources are
    read less often, and logs only if they have grown: their figures are those of the sample before."""
    missing: dict[Source, Missing] = field(default_factory=dict)
    impossible: dict[Source, dict[str, str]] = field(default_factory=dict)
    """Impossible figures, such as memory below 0, as reported by the server; safe texts. Filled by `possible.py`."""

    def why_impossible(self, name: str) -> Unknown | None:
        said = next((one[name] for one in self.impossible.values() if name in one), None)
        return None if said is None else Unknown(Reason.IMPOSSIBLE, f"the server says {said}")


FIGURES: Final[Mapping[Source, str]] = {
    Source.INFO_KEYSPACE: "databases",
    Source.COMMAND_STATS: "commands",
    Source.ERROR_STATS: "errors",
    Source.INFO_REPLICATION: "replicas",
    Source.CLUSTER_NODES: "peers",
    Source.SENTINELS: "sentinels",
    Source.SLOW_LOG: "slow",
    Source.LARGE_REQUESTS: "large_requests",
    Source.LARGE_REPLIES: "large_replies",
    Source.LATENCY_EVENTS: "latency",
    Source.CLIENTS: "clients",
    Source.SETTINGS: "settings",
    Source.KEY_SIZES: "key_sizes",
}
"""The field of a sample by its source; percentiles of commands come from LATENCY_STATS."""


def with_earlier(sample: Sample, before: Sample) -> Sample:
    """Return a sample with the earlier figures of sources not asked for it; none of another run."""
    if sample.info.get("run_id") != before.info.get("run_id"):
        return sample
    known = {*sample.sources, *sample.missing}
    earlier = {name: getattr(before, name) for source, name in FIGURES.items() if source not in known}
    if Source.COMMAND_STATS in known and Source.LATENCY_STATS not in known:
        earlier["commands"] = {
            name: replace(stats, percentiles_us=was.percentiles_us) if (was := before.commands.get(name)) else stats
            for name, stats in sample.commands.items()
        }
    impossible = {source: said for source, said in before.impossible.items() if source not in known}
    return replace(sample, **earlier, impossible={**impossible, **sample.impossible})


def only_new(sample: Sample) -> Sample:
    nothing: dict[str, Any] = {
        name: type(getattr(sample, name))() for source, name in FIGURES.items() if source not in sample.sources
    }
    if "commands" not in nothing and Source.LATENCY_STATS not in sample.sources:
        nothing["commands"] = {name: replace(stats, percentiles_us={}) for name, stats in sample.commands.items()}
    impossible = {source: said for source, said in sample.impossible.items() if source in sample.sources}
    return replace(sample, **nothing, impossible=impossible)


MOST_SAMPLES: Final = 360
"""Half an hour of a sample every five seconds."""

LEAST_SAMPLES: Final = 24
"""Of each node, however many there are."""


class SampleHistory:
    """Samples of one server, oldest first."""

    def __init__(self, most: int = MOST_SAMPLES) -> None:
        self.most = most
        self.left_out = 0
        self._samples: list[Sample] = []

    @property
    def samples(self) -> tuple[Sample, ...]:
        return tuple(self._samples)

    def keep_last(self, count: int) -> None:
        del self._samples[:-count]

    def add(self, sample: Sample) -> None:
        kept = self._samples
        if kept:
            kept[-1] = replace(kept[-1], clients=())
        kept.append(sample)
        while len(kept) > max(LEAST_SAMPLES, self.most):
            older = len(kept) // 2
            gone = kept[1:older:2]
            del kept[1:older:2]
            self.left_out += len(gone)
