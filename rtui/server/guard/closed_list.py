"""The closed list: every command that may be sent to a server, with its arguments, bounds, cost and reason."""

from __future__ import annotations

import re
from functools import partial
from typing import Final

from rtui.keyspace.slots import SLOTS
from rtui.keyspace.text.glob import MAX_PATTERN_BYTES, MAX_STARS, PatternError, check_pattern
from rtui.server.guard.evidence import (
    MAX_TRACKED_KEYS,
    ClientsEvidence,
    CollectionEvidence,
    ConsumerEvidence,
    EntryEvidence,
    GroupEvidence,
    TypeEvidence,
    VectorEvidence,
)
from rtui.server.guard.spec import (
    KEY,
    MAX_FIELD_BYTES,
    PASSWORD,
    Checked,
    CommandGroup,
    Element,
    IndexRange,
    Integer,
    Optional,
    Repeated,
    Spec,
    any_bytes,
    keyword,
    parse_decimal,
)

CLIENT_NAME: Final = "rtui"

INFO_SECTIONS: Final = (
    *("server", "clients", "memory", "persistence", "stats", "replication", "cluster", "keyspace"),
    *("cpu", "commandstats", "errorstats", "keysizes", "hotkeys"),
)
"""Sections of INFO that may be read, one at a time as servers before 7.0 require; `latencystats` has its own entry."""

MAX_SLOTS: Final = 100

MAX_SLOW: Final = 128
"""The most entries read from the slow log: each may have 32 arguments of 128 bytes."""

MAX_SETTINGS: Final = 99
"""The most settings in one CONFIG GET, besides the first."""

SETTINGS: Final = (
    *("maxmemory", "maxmemory-policy", "maxmemory-samples", "maxmemory-eviction-tenacity", "maxmemory-clients"),
    *("lfu-log-factor", "lfu-decay-time", "databases", "active-expire-effort"),
    *("activedefrag", "active-defrag-threshold-lower", "active-defrag-ignore-bytes"),
    *("lazyfree-lazy-eviction", "lazyfree-lazy-expire", "lazyfree-lazy-server-del", "lazyfree-lazy-user-del"),
    *("lazyfree-lazy-user-flush", "replica-lazy-flush"),
    *("slowlog-log-slower-than", "slowlog-max-len", "latency-monitor-threshold", "latency-tracking"),
    *("commandlog-execution-slower-than", "commandlog-slow-execution-max-len"),
    *("commandlog-request-larger-than", "commandlog-large-request-max-len"),
    *("commandlog-reply-larger-than", "commandlog-large-reply-max-len"),
    *("busy-reply-threshold", "lua-time-limit", "hz", "dynamic-hz", "io-threads", "io-threads-do-reads"),
    *("save", "stop-writes-on-bgsave-error", "rdbcompression", "disable-thp", "oom-score-adj"),
    *("appendonly", "appendfsync", "no-appendfsync-on-rewrite", "auto-aof-rewrite-percentage"),
    *("auto-aof-rewrite-min-size", "aof-use-rdb-preamble"),
    *("repl-backlog-size", "repl-backlog-ttl", "repl-diskless-sync", "repl-timeout", "repl-ping-replica-period"),
    *("min-replicas-to-write", "min-replicas-max-lag", "replica-read-only", "replica-serve-stale-data"),
    *("replica-ignore-maxmemory", "replica-priority"),
    *("timeout", "tcp-keepalive", "tcp-backlog", "maxclients", "client-output-buffer-limit"),
    *("client-query-buffer-limit", "tracking-table-max-keys", "notify-keyspace-events"),
    *("hash-max-listpack-entries", "hash-max-listpack-value", "hash-max-ziplist-entries", "hash-max-ziplist-value"),
    *("list-max-listpack-size", "list-max-ziplist-size", "list-compress-depth", "set-max-intset-entries"),
    *("set-max-listpack-entries", "set-max-listpack-value", "zset-max-listpack-entries", "zset-max-listpack-value"),
    *("zset-max-ziplist-entries", "zset-max-ziplist-value", "stream-node-max-entries", "stream-node-max-bytes"),
    *("hll-sparse-max-bytes", "key-memory-histograms"),
    *("cluster-node-timeout", "cluster-require-full-coverage", "cluster-allow-reads-when-down"),
    *("cluster-replica-validity-factor", "cluster-slot-stats-enabled"),
)
"""Settings that may be read: none of them contains a password, a path, an address or the seed of hashes."""

MAX_SESSION_S: Final = 3600

MIN_SAMPLE_RATIO: Final = 10
"""A session measures at most every tenth command: measuring each one took a GET from 0.34 to 0.63 µs."""

MAX_SAMPLE_RATIO: Final = 10_000
"""A session that samples more rarely sees nothing in its time."""

MAX_NAMES: Final = 8
"""The most names in a COMMAND INFO: commands with many subcommands cost most."""

_SETTING_NAMES: Final = frozenset(name.encode() for name in SETTINGS)
_VERSION_TEXT: Final = re.compile(rb"[0-9A-Za-z.+-]{1,32}\Z")
_VERSION: Final = Checked(
    "version", lambda text: _VERSION_TEXT.match(text) is not None, ("version of 1–32 letters, digits, dots",)
)
_USER: Final = any_bytes("user", 256)
_PROTOCOL: Final = keyword("2", "3")
_DB: Final = Integer("db", 0, (1 << 31) - 1)
_AT_ONCE: Final = "constant; 1 µs"
_OWN: Final = "changes nothing but this connection"
_SETTING: Final = Checked("setting", _SETTING_NAMES.__contains__, ("setting of a closed list",))
_HASHES: Final = "constant; hashes the password once"
_WHOSE: Final = "shows operators whose connection this is; one constant name"
_WHAT: Final = "shows operators which client this is; one constant name"
_WHICH: Final = "shows operators the version of the client"
_UNTOUCHED: Final = "reading keys then leaves idle times and frequencies unchanged"

_connects = partial(Spec, CommandGroup.CONNECTION)
_of_server = partial(Spec, CommandGroup.SERVER)
_of_cluster = partial(Spec, CommandGroup.CLUSTER)

MAX_SCAN_COUNT: Final = 1000
"""The most keys that one SCAN visits; more would hold up other clients."""

MAX_TYPE_BYTES: Final = 64
MAX_ELEMENTS: Final = 100

MAX_SAMPLES: Final = 1000
"""The most elements that MEMORY USAGE of one key samples."""

MAX_RANDOM: Final = 50
"""The most random elements of one request: each costs up to 10 µs in a sparse hash table."""

MAX_WINDOW_BYTES: Final = 64 * 1024
MAX_CURSOR: Final = (1 << 64) - 1
MAX_ARRAY_INDEX: Final = (1 << 64) - 2
_TYPE_NAME: Final = re.compile(rb"[!-~]{1,%d}\Z" % MAX_TYPE_BYTES)
EVENT_NAME: Final = re.compile(rb"[a-z][A-Za-z0-9_-]{0,31}\Z")
"""Names of classes of delays: `expire-cycle`, `module-acquire-GIL`."""

_STREAM_ID: Final = re.compile(rb"(?:[-+]|\(?[0-9]{1,20}(?:-[0-9]{1,20})?)\Z")


def _is_cursor(text: bytes) -> bool:
    number = parse_decimal(text)
    return number is not None and 0 <= number <= MAX_CURSOR


def _is_pattern(pattern: bytes) -> bool:
    try:
        check_pattern(pattern)
    except PatternError:
        return False
    return True


def _stream_id(name: str) -> Checked:
    return Checked(name, lambda text: _STREAM_ID.match(text) is not None, (f"{name} an entry id, - or +",))


def _score_end(name: str) -> Checked:
    return Checked(name, lambda text: _SCORE_END.match(text) is not None, (f"{name} a score, -inf or +inf",))


def _is_lex_end(text: bytes) -> bool:
    return text in (b"-", b"+") or (text[:1] in (b"[", b"(") and len(text) <= MAX_FIELD_BYTES + 1)


def _lex_end(name: str) -> Checked:
    return Checked(name, _is_lex_end, (f"{name} a member of ≤ 64 KiB after [ or (, - or +",))


_CURSOR: Final = Checked("cursor", _is_cursor)
_PATTERN: Final = Checked("pattern", _is_pattern, (f"pattern ≤ {MAX_PATTERN_BYTES} bytes, ≤ {MAX_STARS} stars",))
_TYPE: Final = Checked("type", lambda name: _TYPE_NAME.match(name) is not None, (f"type ≤ {MAX_TYPE_BYTES} bytes",))
_FIELD: Final = any_bytes("field", MAX_FIELD_BYTES)
_GROUP: Final = any_bytes("group", MAX_FIELD_BYTES)
_COUNT: Final = Integer("count", 1, MAX_ELEMENTS)
_RANDOM: Final = Integer("count", 1, MAX_RANDOM)
_INDEXES: Final = IndexRange("start", "stop", "elements", MAX_ELEMENTS)
_BYTES: Final = IndexRange("start", "end", "bytes", MAX_WINDOW_BYTES)
_MATCH: Final = (keyword("MATCH"), _PATTERN)
_PAGE: Final = (KEY, _CURSOR, Optional(_MATCH), keyword("COUNT"), _COUNT)
_MEMBER: Final = any_bytes("member", MAX_FIELD_BYTES)
_SCORE_END: Final = re.compile(rb"\(?(?:[-+]inf|-?(?:0|[1-9][0-9]{0,307})(?:\.[0-9]{1,340})?(?:e[-+][0-9]{1,3})?)\Z")
"""A score as Python and Redis write it; with a parenthesis the bound is exclusive."""

_of_key = partial(Spec, touches=True, counts=True)
_of_any_key = partial(_of_key, CommandGroup.KEYSPACE, shape=(KEY,), touches=False, in_bulk=True)
_length = partial(_of_key, shape=(KEY,), cost="constant; 1–2 µs", why="reads a counter", in_bulk=True)
_of_hash = partial(_of_key, CommandGroup.HASH, evidence=CollectionEvidence)
_of_set = partial(_of_key, CommandGroup.SET, evidence=CollectionEvidence)
_of_zset = partial(_of_key, CommandGroup.ZSET, evidence=CollectionEvidence)
_of_stream = partial(_of_key, CommandGroup.STREAM, since=(5, 0))
_of_vectors = partial(
    _of_key, CommandGroup.VECTORS, shape=(KEY,), since=(8, 0), since_valkey=None, has_write_key_spec=True
)
_of_module = partial(_of_key, shape=(KEY,), cost="constant, by its manual", since=(4, 0), has_write_key_spec=True)

_SCAN: Final[tuple[Element, ...]] = (
    _CURSOR,
    Optional((keyword("MATCH"), _PATTERN)),
    keyword("COUNT"),
    Integer("count", 1, MAX_SCAN_COUNT),
)
_SCAN_COST: Final = "COUNT keys, or 10 × COUNT buckets of an emptied table; 1,000: 0.2–0.8 ms, emptied 4 ms"
_SCAN_WHY: Final = "lists keys in small steps from a cursor and keeps nothing in the server between them"
_LOOK_UP: Final = "constant; 1 µs, a name of 1 MiB 0.4 ms"

_PAGE_COST: Final = "COUNT elements, 140 µs; a compact encoding answers whole: 512 fields 124 µs, 20,000 fields 4.7 ms"
_PAGE_WHY: Final = "one page at a time; encoding and size are checked first, since compact encodings ignore COUNT"
_RANDOM_WHY: Final = "a positive count: no element twice; encoding and length are checked first"
_FIELDS_WHY: Final = "named fields only; encoding and length are checked first, since each field walks a compact hash"
_RANK_COST: Final = "logarithmic, 2 µs; a compact sorted set of 20,000 members 0.4 ms"
_RANK_WHY: Final = "returns a number, no member; encoding and length are checked first"
_BETWEEN_WHY: Final = "both ends are given, counted from the front and close together"

_SIZE: Final = "a size, without the content"
_DESCRIPTION: Final = "a description, without the content"

_VALKEY_MODULES: Final = (8, 0)
"""The first Valkey with its JSON and Bloom modules; it has no others."""

TABLE: Final[tuple[Spec, ...]] = (
    # Setting a connection up
    _connects("PING", (), _AT_ONCE, "checks that the server answers", is_required=True),
    _connects("HELLO", (_PROTOCOL,), _AT_ONCE, "chooses the protocol of this connection", since=(6, 0)),
    _connects(
        "HELLO",
        (_PROTOCOL, keyword("AUTH"), _USER, PASSWORD),
        _HASHES,
        "chooses the protocol of this connection and its user",
        since=(6, 0),
    ),
    _connects("AUTH", (PASSWORD,), _HASHES, _OWN, is_required=True),
    _connects("AUTH", (_USER, PASSWORD), _HASHES, _OWN, since=(6, 0), is_required=True),
    _connects("SELECT", (_DB,), _AT_ONCE, _OWN, is_required=True),
    _connects("CLIENT SETNAME", (keyword(CLIENT_NAME),), _AT_ONCE, _WHOSE, since=(2, 6)),
    _connects("CLIENT SETINFO", (keyword("LIB-NAME"), keyword(CLIENT_NAME)), _AT_ONCE, _WHAT, since=(7, 2)),
    _connects("CLIENT SETINFO", (keyword("LIB-VER"), _VERSION), _AT_ONCE, _WHICH, since=(7, 2)),
    _connects("CLIENT NO-TOUCH", (keyword("ON"),), _AT_ONCE, _UNTOUCHED, since=(7, 2)),
    _of_cluster("READONLY", (), _AT_ONCE, "lets a replica of a cluster answer this connection's reads", since=(3, 0)),
    # What a server is
    _of_server(
        "INFO",
        (keyword(*INFO_SECTIONS),),
        "constant; 13 µs, commandstats of 300 used commands 70–170 µs",
        "one named section of counters that the server maintains anyway",
    ),
    _of_server(
        "INFO",
        (keyword("latencystats"),),
        "walks a histogram of each command used; 300 of them 0.6–1.3 ms",
        "percentiles that the server maintains anyway; sent less often the more commands are used",
    ),
    _of_server("DBSIZE", (), _AT_ONCE, "reads a counter"),
    _of_cluster("CLUSTER INFO", (), "constant; 13 µs", "a summary of the cluster as this node sees it", since=(3, 0)),
    _of_cluster(
        "CLUSTER NODES",
        (),
        "one line per node and a walk over 16,384 slots; 240 µs",
        "reads the table of nodes",
        since=(3, 0),
    ),
    _of_cluster(
        "CLUSTER SLOTS",
        (),
        "one entry per range of slots; 3 nodes 4–37 µs, every slot a range of its own 4–11 ms",
        "the addresses of the nodes; sent at the start and when the cluster has changed",
        since=(3, 0),
    ),
    _of_cluster(
        "CLUSTER COUNTKEYSINSLOT",
        (Integer("slot", 0, SLOTS - 1),),
        "reads a counter; 0.3–1 µs",
        "sent for every slot of a node by an estimate, to draw keys from each slot by its size",
        since=(3, 0),
    ),
    Spec(
        CommandGroup.SENTINEL,
        "SENTINEL MASTERS",
        (),
        "one list per service; sent to Sentinels, which hold no keys",
        "the services, and whether a Sentinel considers their primaries up",
        since=(2, 8),
    ),
    Spec(
        CommandGroup.SENTINEL,
        "SENTINEL GET-MASTER-ADDR-BY-NAME",
        (any_bytes("service", 256),),
        "one look-up; sent to Sentinels, which hold no keys",
        "the address of the primary of one service",
        since=(2, 8),
    ),
    # What a server knows of its load: hot keys, busy slots, and the settings that give access counters their meaning
    _of_server(
        "HOTKEYS GET",
        (),
        "the keys that are kept; 64 by two measures 50 µs",
        "reads the result of a hot-key session without changing the session",
        since=(8, 6),
        since_valkey=(9, 2),
    ),
    Spec(
        CommandGroup.HOTKEYS,
        "HOTKEYS START",
        (
            *(keyword("METRICS"), keyword("1 CPU", "1 NET", "2 CPU NET")),
            *(keyword("COUNT"), Integer("count", 1, MAX_TRACKED_KEYS)),
            *(keyword("DURATION"), Integer("seconds", 1, MAX_SESSION_S)),
            *(keyword("SAMPLE"), Integer("ratio", MIN_SAMPLE_RATIO, MAX_SAMPLE_RATIO)),
        ),
        "0.3 ms to start, 1.4 MB for its result; until it ends, each command of every client takes 0.07 µs longer",
        "only after the user has agreed; ends by itself, measures a sample, never stopped or reset by rtui",
        since=(8, 6),
        since_valkey=None,
        needs_consent=True,
    ),
    _of_cluster(
        "CLUSTER SLOT-STATS",
        (
            *(keyword("ORDERBY"), keyword("key-count", "cpu-usec")),
            *(keyword("LIMIT"), Integer("limit", 1, MAX_SLOTS), keyword("DESC")),
        ),
        "sorts the node's slots; all 16,384 0.7–1.2 ms",
        "counters that the node maintains anyway; sent every few seconds at most",
        since=(8, 2),
        since_valkey=(8, 0),
    ),
    Spec(
        CommandGroup.SETTINGS,
        "CONFIG GET",
        (_SETTING,),
        "one look-up; 0.4–3 µs",
        "one setting by its name, never a pattern; other settings hold passwords",
        since=(2, 0),
    ),
    Spec(
        CommandGroup.SETTINGS,
        "CONFIG GET",
        (_SETTING, Repeated(_SETTING, MAX_SETTINGS)),
        "a look-up for each; all 87 28–44 µs",
        "settings by their names, never a pattern; read once a minute",
        since=(7, 0),
    ),
    Spec(
        CommandGroup.RENAMED,
        "COMMAND INFO",
        (Repeated(any_bytes("name", 64, is_secret=True), MAX_NAMES),),
        "1–38 µs for each command described, most for those with many subcommands; 8 names 0.3 ms",
        "which command a renamed one is; sent once per connection, before any renamed command",
        since=(2, 8),
    ),
    # How a server is: what was slow, and who is connected
    Spec(
        CommandGroup.HEALTH,
        "SLOWLOG GET",
        (Integer("count", 1, MAX_SLOW),),
        "COUNT entries, of which the server keeps 32 arguments of 128 bytes each; 128 30 µs, of the longest 0.1–0.5 ms",
        "the latest entries of a log that the server keeps anyway; never reset",
        since=(2, 2),
    ),
    Spec(
        CommandGroup.HEALTH,
        "COMMANDLOG GET",
        (Integer("count", 1, MAX_SLOW), keyword("slow", "large-request", "large-reply")),
        "COUNT entries as above; 128 of the longest 0.1–0.3 ms",
        "the latest entries of logs that the server keeps anyway; never reset",
        since=None,
        since_valkey=(8, 1),
    ),
    Spec(
        CommandGroup.HEALTH,
        "LATENCY LATEST",
        (),
        "one line per latency event; 1 µs",
        "latency events that the server records if the latency monitor is on; never reset",
        since=(2, 8),
    ),
    Spec(
        CommandGroup.HEALTH,
        "LATENCY HISTORY",
        (
            Checked(
                "event", lambda name: EVENT_NAME.match(name) is not None, ("event of 1–32 letters, digits, dashes",)
            ),
        ),
        "at most 160 times, all that the server keeps; 1–5 µs",
        "the times of one latency event",
        since=(2, 8),
    ),
    Spec(
        CommandGroup.HEALTH,
        "CLIENT LIST",
        (),
        "one line per client; 1,000 clients 0.9–3 ms and 340 kB",
        "the number of clients is checked first; shows who sends which command, without MONITOR",
        since=(2, 4),
        evidence=ClientsEvidence,
    ),
    # Listing keys, and what any key has
    Spec(CommandGroup.KEYSPACE, "SCAN", _SCAN, _SCAN_COST, _SCAN_WHY, since=(2, 8), is_required=True),
    Spec(
        CommandGroup.KEYSPACE,
        "SCAN",
        (*_SCAN, keyword("TYPE"), _TYPE),
        _SCAN_COST,
        _SCAN_WHY + "; the type is looked up for each key visited",
        since=(6, 0),
        counts=True,
    ),
    _of_any_key("TYPE", cost=_LOOK_UP, why="reads one field of the key"),
    _of_any_key("PTTL", cost=_LOOK_UP, why="reads one field of the key", since=(2, 6)),
    _of_any_key(
        "EXISTS",
        cost=_LOOK_UP,
        why="one name, looked up without its value, up to 100 in a write; before Redis 6.2 it would count as a use of "
        "the key, so TYPE is sent there",
    ),
    _of_any_key(
        "MEMORY USAGE",
        cost="5 elements, or exact counters from 8.4; 2 µs, 0.3 ms for 300,000 elements while their table is resized, "
        "or for a stream of 10,000 groups before 8.4",
        why="the type is asked before: never of types of modules, which may walk the whole value; of streams before "
        "Redis 8.4 one at a time, and no more once three were slow, since a group costs 0.03 µs and so does each of "
        "its consumers, whose number no cheap command tells",
        since=(4, 0),
        counts=False,
        evidence=TypeEvidence,
    ),
    _of_any_key(
        "MEMORY USAGE",
        shape=(KEY, keyword("SAMPLES"), Integer("samples", 1, MAX_SAMPLES)),
        cost="as many elements as asked for; 1,000 4–80 µs",
        why="of one key whose value is read next: elements that the default five samples miss may be large, of up to "
        "1,000 none is missed; never 0, since all of a million took 139 ms; the type is asked before, as above",
        since=(4, 0),
        counts=False,
        in_bulk=False,
        evidence=TypeEvidence,
    ),
    _of_any_key("OBJECT ENCODING", cost=_LOOK_UP, why="reads one field of the key", since=(2, 2)),
    _of_any_key("OBJECT IDLETIME", cost=_LOOK_UP, why="reads one field; an error under an LFU policy", since=(2, 2)),
    _of_any_key("OBJECT FREQ", cost=_LOOK_UP, why="reads one field; an error without an LFU policy", since=(4, 0)),
    # Bounded pieces of values of the built-in types
    _length(CommandGroup.STRING, "STRLEN", since=(2, 2)),
    _of_key(
        CommandGroup.STRING, "GETRANGE", (KEY, _BYTES), "copies the window; 64 KiB 10 µs", _BETWEEN_WHY, since=(2, 4)
    ),
    _length(CommandGroup.HASH, "HLEN", since=(2, 0)),
    _of_hash("HSCAN", _PAGE, _PAGE_COST, _PAGE_WHY, since=(2, 8)),
    _of_hash("HSCAN", (*_PAGE, keyword("NOVALUES")), _PAGE_COST, _PAGE_WHY, since=(7, 4), since_valkey=(8, 0)),
    _of_hash(
        "HRANDFIELD",
        (KEY, _RANDOM, Optional((keyword("WITHVALUES"),))),
        "10 µs per element, 0.5 ms; a compact hash of 20,000 fields 0.8 ms",
        _RANDOM_WHY,
        since=(6, 2),
    ),
    _of_hash(
        "HMGET",
        (KEY, Repeated(_FIELD, MAX_ELEMENTS)),
        "one look-up per field, 83 µs; a compact hash of 20,000 fields 0.4 ms per field",
        _FIELDS_WHY,
        since=(2, 0),
    ),
    _of_hash(
        "HSTRLEN",
        (KEY, _FIELD),
        "one look-up, 2 µs; a compact hash of 20,000 fields 0.4 ms",
        "the size of one value, without the value; encoding and length are checked first",
        since=(3, 2),
    ),
    _of_hash(
        "HPTTL",
        (KEY, keyword("FIELDS"), Repeated(_FIELD, MAX_ELEMENTS, counted=True)),
        "one look-up per field, 90 µs; a compact hash of 20,000 fields 0.4 ms per field",
        _FIELDS_WHY,
        since=(7, 4),
        since_valkey=(9, 0),
    ),
    _length(CommandGroup.LIST, "LLEN"),
    _of_key(
        CommandGroup.LIST,
        "LRANGE",
        (KEY, _INDEXES),
        "seeks node by node from the nearer end; the middle of 300,000 37 µs",
        _BETWEEN_WHY,
    ),
    _length(CommandGroup.SET, "SCARD"),
    _of_set("SSCAN", _PAGE, _PAGE_COST, _PAGE_WHY, since=(2, 8)),
    _of_set(
        "SRANDMEMBER",
        (KEY, _RANDOM),
        "10 µs per element, 0.5 ms; a compact set is walked once",
        _RANDOM_WHY,
        since=(2, 6),
    ),
    _of_set(
        "SISMEMBER",
        (KEY, _MEMBER),
        "one look-up, 2 µs; a compact set of 20,000 members 0.4 ms",
        "whether one member exists; encoding and length are checked first",
    ),
    _length(CommandGroup.ZSET, "ZCARD", since=(1, 2)),
    _of_zset(
        "ZSCAN",
        (KEY, _CURSOR, keyword("MATCH"), _PATTERN, keyword("COUNT"), _COUNT),
        _PAGE_COST,
        _PAGE_WHY,
        since=(2, 8),
    ),
    _of_zset("ZRANK", (KEY, _MEMBER), _RANK_COST, _RANK_WHY, since=(2, 0)),
    _of_zset("ZCOUNT", (KEY, _score_end("min"), _score_end("max")), _RANK_COST, _RANK_WHY, since=(2, 0)),
    _of_zset(
        "ZLEXCOUNT",
        (KEY, _lex_end("from"), _lex_end("to")),
        "logarithmic, 1 µs; a compact sorted set of 20,000 members 1.3 ms",
        _RANK_WHY,
        since=(2, 8),
    ),
    _of_key(
        CommandGroup.ZSET,
        "ZRANGE",
        (KEY, _INDEXES, keyword("WITHSCORES")),
        "a logarithmic seek; the middle of 300,000 65 µs",
        _BETWEEN_WHY,
        since=(1, 2),
    ),
    _length(CommandGroup.STREAM, "XLEN", since=(5, 0)),
    _of_stream(
        "XINFO STREAM",
        (KEY,),
        "constant; 8 µs, and the first and the last entry in full",
        "never FULL, which lists every group; the size of an entry is checked first",
        evidence=EntryEvidence,
    ),
    _of_stream(
        "XINFO GROUPS",
        (KEY,),
        "one row per group; 1,000 groups 1.5 ms",
        "the number of groups is checked first",
        evidence=GroupEvidence,
    ),
    _of_stream(
        "XINFO CONSUMERS",
        (KEY, _GROUP),
        "one row per consumer; 1,000 consumers 0.8 ms",
        "one group; its number of consumers is checked first",
        evidence=ConsumerEvidence,
    ),
    _of_stream(
        "XREVRANGE",
        (KEY, _stream_id("end"), _stream_id("start"), keyword("COUNT"), _COUNT),
        "COUNT entries; 100 88 µs",
        "always with a count",
    ),
    _of_stream(
        "XPENDING",
        (KEY, _GROUP),
        "one row per consumer with pending entries; 2 µs without any",
        "the summary of one group; its number of consumers is checked first",
        evidence=ConsumerEvidence,
    ),
    _length(CommandGroup.ARRAY, "ARCOUNT", since=(8, 8), since_valkey=None),
    _length(CommandGroup.ARRAY, "ARLEN", since=(8, 8), since_valkey=None),
    _of_key(
        CommandGroup.ARRAY,
        "ARSCAN",
        (KEY, Integer("start", 0, MAX_ARRAY_INDEX), Integer("end", 0, MAX_ARRAY_INDEX), keyword("LIMIT"), _COUNT),
        "LIMIT elements, holes skipped; 100 elements 10¹² apart 0.4 ms",
        "always with a limit",
        since=(8, 8),
        since_valkey=None,
    ),
    # Vector sets by elements, and types that modules bring: sizes and descriptions, never contents
    _of_vectors("VCARD", cost="constant; 2 µs", why=_SIZE, in_bulk=True),
    _of_vectors("VINFO", cost="constant; 4 µs", why=_DESCRIPTION),
    _of_vectors(
        "VRANGE",
        shape=(KEY, _lex_end("start"), keyword("+"), _COUNT),
        cost="a seek in a radix tree and COUNT names; 50 of 20,000 7 µs",
        why="names in order, always with a count, from the end of the previous page",
        since=(8, 4),
    ),
    _of_vectors(
        "VRANDMEMBER",
        shape=(KEY, _RANDOM),
        cost="a random walk per element, 14 µs; 50 0.7 ms",
        why="a positive count: no element twice; only where VRANGE does not exist",
    ),
    _of_vectors(
        "VGETATTR",
        shape=(KEY, _MEMBER),
        cost="one look-up, 1 µs, and the attributes in full",
        why="for the elements of one page, fewer where the average element is large",
    ),
    _of_vectors(
        "VEMB",
        shape=(KEY, _MEMBER),
        cost="a number a dimension; 64 9 µs, 4,096 0.5 ms",
        why="one vector, without RAW; the number of dimensions is checked first",
        evidence=VectorEvidence,
    ),
    _of_module(CommandGroup.JSON, "JSON.TYPE", why=_DESCRIPTION, since_valkey=_VALKEY_MODULES),
    _of_module(CommandGroup.JSON, "JSON.OBJLEN", why=_SIZE, since_valkey=_VALKEY_MODULES),
    _of_module(CommandGroup.JSON, "JSON.ARRLEN", why=_SIZE, since_valkey=_VALKEY_MODULES),
    _of_module(CommandGroup.JSON, "JSON.STRLEN", why=_SIZE, since_valkey=_VALKEY_MODULES),
    _of_module(CommandGroup.TIMESERIES, "TS.INFO", why=_DESCRIPTION, since_valkey=None),
    _of_module(CommandGroup.BLOOM, "BF.INFO", why=_DESCRIPTION, since_valkey=_VALKEY_MODULES),
    _of_module(CommandGroup.BLOOM, "CF.INFO", why=_DESCRIPTION, since_valkey=None),
    _of_module(CommandGroup.BLOOM, "CMS.INFO", why=_DESCRIPTION, since_valkey=None),
    _of_module(CommandGroup.BLOOM, "TOPK.INFO", why=_DESCRIPTION, since_valkey=None),
    _of_module(CommandGroup.BLOOM, "TDIGEST.INFO", why=_DESCRIPTION, since_valkey=None),
)
"""All entries; a command without one can't be sent."""
