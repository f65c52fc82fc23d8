"""A node of a simulated cluster: its keys, how SCAN goes through them, and what it answers to a command.

All nodes of a simulation share one `Keyspace`; a node has those keys whose slots it, or its primary, serves. The order
in which SCAN lists them is a node's own, like that of a server with its own hash seed: a cursor of one node means
nothing to another one. Tables, cursors and their order are those of the servers (dict.c, `dictScan`; kvstore.c).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from zlib import crc32

from rtui.keyspace.slots import SLOTS, key_slot
from rtui.keyspace.text.glob import GlobMatcher
from tests.fakes.servers import LENGTHS, Argv
from tests.grammar import Grammar
from tests.wire import bulk

if TYPE_CHECKING:
    from tests.fakes.cluster import Cluster

SLOT_BITS: Final = 14
"""Low bits of a cursor that hold the slot, where there is a table for each slot."""

MOST_STEPS: Final = 10
"""A SCAN looks at so many buckets for each key of its COUNT at most."""

OK: Final = b"+OK\r\n"
GONE: Final = b"$-1\r\n"
WRONG_TYPE: Final = b"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"

IDLE_S: Final = 60
"""How long nobody has used any key."""


@dataclass(frozen=True, slots=True)
class KeyFacts:
    slot: int
    key_type: bytes
    ttl_ms: int
    size_bytes: int
    length: int


class Keyspace:
    """The keys of all nodes, which stay the same throughout."""

    def __init__(self, keys: int, seed: int) -> None:
        """Draw so many keys from the grammar of this seed."""
        self.facts: dict[bytes, KeyFacts] = {}
        self.of_slot: list[list[bytes]] = [[] for _ in range(SLOTS)]
        for pattern, name in Grammar(seed, 50).drawn(keys):
            size, slot = max(1, min(200_000, int(pattern.size()))), key_slot(name)
            ttl_ms = -1 if pattern.ttl_s is None else max(60_000, int(pattern.ttl_s() * 1000))
            length = size if pattern.key_type == "string" else 1 + size // 20
            self.facts[name] = KeyFacts(slot, pattern.key_type.encode(), ttl_ms, 56 + size, length)
            self.of_slot[slot].append(name)


def following_bucket(bucket: int, bits: int) -> int:
    """Return the bucket after one in a table of 2^bits: the number of the reversed bits, and one; 0 at the end."""
    for bit in range(bits - 1, -1, -1):
        bucket ^= 1 << bit
        if bucket >> bit & 1:
            return bucket
    return 0


class Table:
    """Keys in buckets, as a hash table has them."""

    def __init__(self, keys: Sequence[bytes], salt: int) -> None:
        self.bits = max(2, (len(keys) - 1).bit_length())
        self.buckets: list[list[bytes]] = [[] for _ in range(1 << self.bits)]
        mask = len(self.buckets) - 1
        for key in keys:
            self.buckets[crc32(key, salt) & mask].append(key)


class Node:
    """One node; `answer` answers a command of one of its clients."""

    def __init__(self, cluster: Cluster, node_id: str, port: int, primary: Node | None = None) -> None:
        self.cluster = cluster
        self.id, self.port, self.primary = node_id, port, primary
        self.is_down = False
        self.epoch = 0
        self.slots: list[int] = []
        """Those that it serves, in order; a replica serves none."""
        self.calls: Counter[bytes] = Counter()
        """How often each command was sent to it."""
        self._salt = int(node_id[:8], 16)
        self._tables: dict[int, Table] = {}
        self._filled: list[int] = []
        self._seen = -1
        self._answers: dict[bytes, Callable[[Argv], bytes]] = {
            b"SCAN": self._scan,
            b"TYPE": self._type,
            b"PTTL": self._pttl,
            b"MEMORY": self._memory,
            b"OBJECT": self._object,
            b"EXISTS": self._exists,
            b"CLUSTER": self._cluster,
            b"INFO": self._info,
            b"DBSIZE": lambda _: b":%d\r\n" % self.size,
            b"PING": lambda _: b"+PONG\r\n",
            **dict.fromkeys((b"CLIENT", b"SELECT", b"READONLY"), lambda _: OK),
            **dict.fromkeys(LENGTHS, self._length),
        }

    def answer(self, argv: Argv) -> bytes:
        self.calls[argv[0]] += 1
        answer = self._answers.get(argv[0])
        return self._unknown(argv) if answer is None else answer(argv)

    def _unknown(self, argv: Argv) -> bytes:
        return b"-ERR unknown command '%b'\r\n" % b" ".join(argv[:2])

    @property
    def size(self) -> int:
        of_slot = self.cluster.keyspace.of_slot
        return sum(len(of_slot[slot]) for slot in self._served)

    @property
    def _served(self) -> list[int]:
        return self.slots if self.primary is None else self.primary.slots

    def _facts(self, key: bytes) -> KeyFacts | bytes | None:
        """Return what is known of a key, None where there is none, an error where another node has its slot."""
        found = self.cluster.keyspace.facts.get(key)
        slot = key_slot(key) if found is None else found.slot
        owner = self.cluster.owners[slot]
        if owner is self or (owner is not None and owner is self.primary):
            return found
        return (
            b"-CLUSTERDOWN Hash slot not served\r\n" if owner is None else b"-MOVED %d %b\r\n" % (slot, owner.address)
        )

    @property
    def address(self) -> bytes:
        """Where clients reach it."""
        return b"127.0.0.1:%d" % self.port

    def _type(self, argv: Argv) -> bytes:
        facts = self._facts(argv[1])
        return facts if isinstance(facts, bytes) else b"+%b\r\n" % (b"none" if facts is None else facts.key_type)

    def _pttl(self, argv: Argv) -> bytes:
        facts = self._facts(argv[1])
        return facts if isinstance(facts, bytes) else b":%d\r\n" % (-2 if facts is None else facts.ttl_ms)

    def _exists(self, argv: Argv) -> bytes:
        facts = self._facts(argv[1])
        return facts if isinstance(facts, bytes) else b":%d\r\n" % (facts is not None)

    def _memory(self, argv: Argv) -> bytes:
        facts = self._facts(argv[2])
        return facts if isinstance(facts, bytes) else GONE if facts is None else b":%d\r\n" % facts.size_bytes

    def _object(self, argv: Argv) -> bytes:
        facts = self._facts(argv[2])
        if facts is None or isinstance(facts, bytes):
            return facts or GONE
        if argv[1] == b"IDLETIME":
            return b":%d\r\n" % IDLE_S
        return bulk(b"raw") if argv[1] == b"ENCODING" else b"-ERR An LFU maxmemory policy is not selected\r\n"

    def _length(self, argv: Argv) -> bytes:
        facts = self._facts(argv[1])
        if isinstance(facts, bytes):
            return facts
        if facts is not None and facts.key_type != LENGTHS[argv[0]]:
            return WRONG_TYPE
        return b":%d\r\n" % (0 if facts is None else facts.length)

    def _scan(self, argv: Argv) -> bytes:
        options = dict(zip(argv[2::2], argv[3::2], strict=True))
        cursor, keys = self.page(int(argv[1]), int(options.get(b"COUNT", b"10")))
        if b"MATCH" in options:
            keys = [*filter(GlobMatcher(options[b"MATCH"]), keys)]
        if b"TYPE" in options:
            facts, wanted = self.cluster.keyspace.facts, options[b"TYPE"]
            keys = [key for key in keys if facts[key].key_type == wanted]
        return b"*2\r\n%b*%d\r\n%b" % (bulk(b"%d" % cursor), len(keys), b"".join(map(bulk, keys)))

    def page(self, cursor: int, count: int) -> tuple[int, list[bytes]]:
        self._forget_old_tables()
        shift = SLOT_BITS if self.cluster.is_slotted else 0
        at, bucket = cursor & ((1 << shift) - 1), cursor >> shift
        if at not in self._tables and (found := self._next_table(at - 1)) != at:
            at, bucket = found, 0
        keys: list[bytes] = []
        steps = 0
        while at >= 0 and len(keys) < count and steps < MOST_STEPS * count:
            table = self._table(at)
            bucket &= len(table.buckets) - 1
            keys += table.buckets[bucket]
            bucket = following_bucket(bucket, table.bits)
            if not bucket:
                at = self._next_table(at)
            steps += 1
        return (0 if at < 0 else bucket << shift | at), keys

    def _forget_old_tables(self) -> None:
        if self._seen != self.cluster.epoch:
            self._seen = self.cluster.epoch
            self._tables.clear()
            of_slot = self.cluster.keyspace.of_slot
            self._filled = [slot for slot in self._served if of_slot[slot]] if self.cluster.is_slotted else [0]

    def _next_table(self, at: int) -> int:
        """Return the number of the first table after one that has keys, -1 for none."""
        found = bisect_right(self._filled, at)
        return self._filled[found] if found < len(self._filled) else -1

    def _table(self, at: int) -> Table:
        """Return a table: of a slot where each has its own, else of all keys."""
        found = self._tables.get(at)
        if found is None:
            of_slot = self.cluster.keyspace.of_slot
            slots: Iterable[int] = [at] if self.cluster.is_slotted else self._served
            found = self._tables[at] = Table([key for slot in slots for key in of_slot[slot]], self._salt)
        return found

    def _cluster(self, argv: Argv) -> bytes:
        match argv[1:]:
            case [b"NODES"]:
                return bulk(self.cluster.nodes_text(self))
            case [b"SLOTS"]:
                return self.cluster.slots_reply()
            case [b"INFO"]:
                return bulk(self.cluster.info_text(self))
            case [b"MYID"]:
                return bulk(self.id.encode())
            case [b"COUNTKEYSINSLOT", slot]:
                owner = self.cluster.owners[int(slot)]
                has_it = owner is not None and owner in (self, self.primary)
                return b":%d\r\n" % (len(self.cluster.keyspace.of_slot[int(slot)]) if has_it else 0)
        return self._unknown(argv)

    def _info(self, argv: Argv) -> bytes:
        role = "master" if self.primary is None else "slave"
        fields: dict[str, object] = {}
        match argv[1]:
            case b"server":
                versions = {"redis_version": "7.2.4", "server_name": "valkey", "valkey_version": "9.1.0"}
                fields = (
                    {**versions, "server_mode": "cluster"} if self.cluster.is_slotted else {"redis_version": "7.0.15"}
                )
                fields |= {"redis_mode": "cluster", "run_id": self.id, "uptime_in_seconds": 1000}
            case b"memory":
                fields = {"used_memory": 10_000_000, "maxmemory": 0, "maxmemory_policy": "noeviction"}
            case b"stats":
                fields = {"expired_keys": 0, "evicted_keys": 0, "instantaneous_ops_per_sec": 0}
            case b"replication":
                fields = {"role": role}
                if self.primary is not None:
                    fields["master_link_status"] = "up"
            case b"persistence":
                fields = {"loading": 0, "rdb_changes_since_last_save": 0, "rdb_last_save_time": 1}
            case b"cluster":
                fields = {"cluster_enabled": 1}
            case b"keyspace":
                fields = {"db0": f"keys={self.size},expires=0,avg_ttl=0"}
            case b"commandstats":
                forms = {"MEMORY": "memory|usage", "OBJECT": "object|idletime"}
                calls = {forms.get(name.decode(), name.decode().lower()): number for name, number in self.calls.items()}
                fields.update({f"cmdstat_{name}": f"calls={number},usec={number}" for name, number in calls.items()})
        return bulk("".join(f"{name}:{value}\r\n" for name, value in fields.items()).encode())
