"""The health of servers that stands still: panels made by hand, in the states that the screen must show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from rtui.analysis.facts import Reason, Unknown
from rtui.analysis.health.panel import Line, Panel, State
from rtui.analysis.health.sample import Sample, Source
from rtui.analysis.report.tables.table import Column, Table, Unit
from rtui.keyspace.text.display import SafeText
from rtui.server.health.session import Health
from rtui.server.wire.connection import Online
from rtui.server.wire.connection import State as LinkState

HOSTILE = b"\x1b]52;c;eA==\x07[/]\xe2\x80\xae"

DENIED = Unknown(Reason.DENIED, "this user has no permissions to run the 'slowlog|get' command")

NODE = SafeText("10.0.0.5:6379")

MIB = 1 << 20

MEMORY = Panel(
    "memory",
    "Memory",
    (
        Line(
            "used_memory", "used memory", 3_900 * MIB, Unit.BYTES, state=State.WARN,
            said=SafeText("95 % of the limit; at the growth of this session the rest is used up in 4 h"),
            normal="below 3.07 GiB, 75 % of the limit",
            remedy="Raise maxmemory, or shorten times to live; the Memory panel of the analysis says of what.",
            source="Redis documentation, Memory optimization", rule="memory-near-limit",
            history=tuple(float(MIB * (3_400 + 8 * n)) for n in range(63)),
        ),
        Line("maxmemory", "memory limit", 4 << 30, Unit.BYTES, said=SafeText("the machine has 15.6 GiB")),
        Line(
            "maxmemory_policy", "eviction policy", "volatile-lru", Unit.TEXT, state=State.BAD,
            said=SafeText("58 % of the keys have no TTL and are never evicted: when the others are gone, writes fail"),
            normal="as agreed", remedy="Set maxmemory-policy to allkeys-lru, or give every key a TTL.",
            rule="eviction-policy",
        ),
        Line("mem_fragmentation_ratio", "fragmentation ratio", 1.08, Unit.RATIO, state=State.NORMAL,
             normal="1.0 to 1.5",
             history=(1.07, None, 1.08, 1.08, 1.1, 1.08)),
        Line("evicted_keys", "evicted keys", 0.0, Unit.KEYS, is_rate=True, history=(None, *[0.0] * 20)),
    ),
    (
        Table(
            "databases", "Databases",
            (Column("db", "db", Unit.NUMBER, 4), Column("keys", "keys", Unit.KEYS, 10)),
            ((0, 1_000_000), (1, 120)),
        ),
    ),
    (SafeText("by the report of the keys, the first to be evicted would be shop:session"),),
)  # fmt: skip

LOAD = Panel(
    "load",
    "Load",
    (
        Line("ops", "commands", 1_204.0, Unit.COUNT, is_rate=True,
             history=tuple(1_000 + (n * 37 % 400) for n in range(40))),
        Line("hit_ratio", "hit ratio", 0.93, Unit.SHARE, state=State.NORMAL, normal="above 80 %"),
        Line("blocked_clients", "blocked clients", Unknown(Reason.DENIED, "NOPERM"), Unit.COUNT, state=State.UNKNOWN),
    ),
)  # fmt: skip

SLOW = Panel(
    "slow",
    "Slow",
    (Line("slow", "slow commands", 3, Unit.COUNT),),
    (
        Table(
            "slow_log", "Slow commands",
            (
                Column("took", "ms", Unit.COUNT, 6), Column("command", "command", Unit.NAME),
                Column("client", "client", Unit.NAME, 16),
            ),
            ((84.2, b"KEYS shop:session:*", b"nightly"), (12.1, b"SMEMBERS " + HOSTILE, HOSTILE),
             (11.0, b"HGETALL shop:user:7:profile", b"shop-api")),
            (None, None, b"shop:user:7:profile"),
        ),
    ),
)  # fmt: skip

DENIED_SLOW = replace(
    SLOW, lines=(), tables=(), notes=(
        SafeText("User poor has no permissions to run the 'slowlog|get' command"),
    )
)  # fmt: skip

PERSISTENCE = Panel(
    "persistence", "Persistence",
    (Line("rdb_last_bgsave_status", "last save", "ok", Unit.TEXT, state=State.NORMAL, normal="ok"),),
)  # fmt: skip

REPLICATION = Panel("replication", "Replication", (Line("role", "role", "master", Unit.TEXT),))

CLIENTS = Panel(
    "clients", "Clients", (Line("connected_clients", "connected clients", 5, Unit.COUNT),),
    (
        Table(
            "clients", "Clients",
            (Column("client", "client", Unit.NAME), Column("address", "address", Unit.NAME, 21)),
            ((b"shop-api", b"10.0.0.7:41002"), (HOSTILE, b"10.0.0.4:40999")),
        ),
    ),
)  # fmt: skip

CONFIGURATION = Panel(
    "configuration", "Configuration", (),
    (
        Table(
            "settings", "Settings",
            (
                Column("name", "name", Unit.TEXT, 30), Column("value", "value", Unit.TEXT, 20),
                Column("about", "what it does", Unit.TEXT),
            ),
            (("maxmemory-policy", "volatile-lru", "which keys go when memory is full"),
             ("save", HOSTILE.decode(), "when the data is saved")),
        ),
    ),
)  # fmt: skip

PANELS = (MEMORY, LOAD, SLOW, PERSISTENCE, REPLICATION, CLIENTS, CONFIGURATION)

NODES = Table(
    "nodes", "Nodes",
    (
        Column("node", "node", Unit.TEXT), Column("memory", "memory", Unit.BYTES, 8),
        Column("state", "state", Unit.TEXT, 7),
    ),
    (("10.0.0.5:7000", 900 * MIB, ""), ("10.0.0.5:7001", 3_900 * MIB, "near limit"), ("10.0.0.5:7002", 880 * MIB, "")),
    ("10.0.0.5:7000", "10.0.0.5:7001", "10.0.0.5:7002"),
)  # fmt: skip


@dataclass
class FixedHealth(Health):
    """Says the same of every node until a test changes it."""

    at_s: float = 0.0
    """When it was asked last, in seconds since the epoch."""
    shown: tuple[Panel, ...] = PANELS
    nodes: Sequence[SafeText] = (NODE,)
    nodes_table: Table | None = None
    denies: frozenset[Source] = frozenset()
    lost: SafeText | None = None
    """Why nothing is answered any more."""
    restarted: SafeText | None = None
    link: LinkState = Online()  # noqa: RUF009 - a frozen value
    revision: int = 1
    file: SafeText | None = None
    asked: list[str] = field(default_factory=list)

    @property
    def is_cluster(self) -> bool:
        return self.nodes_table is not None

    @property
    def label(self) -> SafeText:
        return NODE

    @property
    def known(self) -> dict[SafeText, tuple[Sample, ...]]:
        return {}

    def panels(self, node: SafeText) -> tuple[Panel, ...]:
        return self.shown

    def compared(self, node: SafeText) -> None:
        return None

    def asked_at_s(self, node: SafeText) -> float | None:
        return self.at_s

    def first_at_s(self, node: SafeText) -> float | None:
        return self.at_s - 312

    def warning(self, node: SafeText) -> SafeText | None:
        return self.restarted

    def denied(self, node: SafeText) -> frozenset[Source]:
        return self.denies

    def failure(self, node: SafeText | None) -> SafeText | None:
        return self.lost

    def begin(self) -> None:
        self.asked.append("begin")

    def end(self) -> None:
        self.asked.append("end")

    def sample_lines(self) -> list[str]:
        return ["header\n", "sample\n"]

    def ask_now(self) -> None:
        self.asked.append("ask")
        self.revision += 1
