"""The rules that a registry can set to off, warn or error, with reason, default severity and parameters.

A rule is declared here once. Its violations are found elsewhere: for names in `naming.py`, for single keys in
`expectations.py`, for whole keyspaces and servers in `rtui/analysis/findings`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Final

from rtui.keyspace.text.quantities import parse_duration, parse_size


class Severity(StrEnum):
    """How much a violation matters."""

    OFF = "off"
    WARN = "warn"
    ERROR = "error"


class Family(Enum):
    """The subject of a rule."""

    NAMES = "names"
    EXPECTATIONS = "expectations"
    REGISTRY = "registry"
    REFERENCES = "references"
    LOAD = "load"
    SERVER = "server"


class Kind(Enum):
    """The type of a parameter, and how it is written."""

    COUNT = "a whole number"
    SHARE = "a share from 0 to 1"
    RATIO = "a number"
    DURATION = "a duration such as 30s or 10m"
    SIZE = "a size such as 10K or 1M"
    WORDS = "a list of words"
    FLAG = "true or false"


ParameterValue = int | float | bool | tuple[str, ...]
"""Durations in milliseconds, sizes in bytes."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A number or a list that configures a rule."""

    kind: Kind
    default: object
    help: str

    def may_be(self, value: ParameterValue) -> bool:
        if isinstance(value, tuple):
            return self.kind is Kind.WORDS
        return self.kind is not Kind.WORDS and value >= 0

    def value(self, written: object) -> ParameterValue:  # noqa: PLR0911 - a line each kind
        match self.kind, written:
            case (Kind.FLAG, bool()):
                return bool(written)
            case (_, bool()):
                raise ValueError
            case (Kind.COUNT, int()) if written >= 0:
                return written
            case (Kind.SHARE, int() | float()) if 0 <= written <= 1:
                return float(written)
            case (Kind.RATIO, int() | float()) if written >= 0:
                return float(written)
            case (Kind.DURATION, str()):
                return parse_duration(written)
            case (Kind.SIZE, str()):
                return parse_size(written)
            case (Kind.SIZE, int()) if written >= 0:
                return written
            case (Kind.WORDS, list() | tuple()) if all(isinstance(word, str) for word in written):
                return tuple(written)
        raise ValueError


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule."""

    id: str
    family: Family
    severity: Severity
    title: str
    reason: str
    remedy: str
    parameters: Mapping[str, Parameter]
    basis: str
    """The evidence for it and its limits, if they are not obvious; sentences."""

    @property
    def setting(self) -> str:
        """The line of a registry, below `[rules]`, that sets its defaults."""
        written = {"severity": f'"{self.severity}"'}
        written |= {name: _written(one.default) for name, one in self.parameters.items()}
        values = ", ".join(f"{name} = {value}" for name, value in written.items())
        return f"{self.id} = {{ {values} }}" if self.parameters else f"{self.id} = {written['severity']}"

    @property
    def sentences(self) -> tuple[str, ...]:
        said = [f"{self.title}.", self.reason, self.remedy, *([self.basis] if self.basis else [])]
        for name, one in self.parameters.items():
            said.append(f"{name} = {_written(one.default)}: {one.help[:1].lower()}{one.help[1:]}")
        return tuple(said)


def _written(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    return f'"{value}"' if isinstance(value, str) else str(value).lower()


NAMES, EXPECTATIONS, REGISTRY, REFERENCES, LOAD, SERVER = Family

FAMILIES: Final = {
    LOAD: "Load",
    EXPECTATIONS: "Expectations of a pattern",
    REGISTRY: "Registry",
    REFERENCES: "References",
    NAMES: "Names",
    SERVER: "The server (rtui health)",
}

OFF, WARN, ERROR = Severity


def _counted(count: int, a_day: int, now: int = 1) -> dict[str, Parameter]:
    """Return the limits of a counter: one since the start that grows with the time, and one of the session."""
    return {
        "count": Parameter(Kind.COUNT, count, "Least number since start or CONFIG RESETSTAT."),
        "a_day": Parameter(Kind.COUNT, a_day, "And mean number per day, if the time is known."),
        "now": Parameter(Kind.COUNT, now, "Or least number while rtui takes samples."),
    }


def _rule(  # noqa: PLR0917 - a row of the table
    name: str,
    family: Family,
    severity: Severity,
    title: str,
    reason: str,
    remedy: str,
    basis: str = "",
    **parameters: Parameter,
) -> Rule:
    return Rule(name, family, severity, title, reason, remedy, parameters, basis)


RULES: Final[dict[str, Rule]] = {
    rule.id: rule
    for rule in (
        _rule("name-separator", NAMES, WARN, "A separator other than declared",
            "Tools group keys at the declared separator: these keys belong to no namespace.",
            "Write these names with the declared separator, or declare theirs."),
        _rule("name-mixed-separators", NAMES, WARN, "A second separator within a name",
            "It is unclear where such a name should be split.",
            "Use one separator between segments, and at most one other within them."),
        _rule("name-case", NAMES, WARN, "Words in a style other than agreed",
            "Names that differ only in style are different keys: one is written, the other is read.",
            "Write new keys in the agreed style, and rename old ones when their code changes."),
        _rule("name-mixed-case", NAMES, WARN, "Several styles in one namespace",
            "Whoever adds a key must look up the style of its neighbours.",
            "Agree on one style for the namespace.",
            share=Parameter(Kind.SHARE, 0.01, "Least share of keys for a style to count.")),
        _rule("name-characters", NAMES, WARN, "Characters that are not allowed",
            "Unusual characters have to be quoted in shells, patterns, URLs and configuration files.",
            "Leave these characters out, or encode the part that has them (hex, base64url)."),
        _rule("name-whitespace", NAMES, ERROR, "Whitespace in a name",
            "A space or line break ends an argument in redis-cli, scripts and logs.",
            "Replace whitespace with the word separator."),
        _rule("name-quotes", NAMES, ERROR, "Quotes in a name",
            "Quotes in a name usually mean that a value was quoted twice.",
            "Check the code that builds the name: a value was probably quoted before it was inserted."),
        _rule("name-control", NAMES, ERROR, "Control, escape or invisible characters in a name",
            "They cannot be seen or typed, and can change what a terminal shows.",
            "Check the code that builds the name: input was probably inserted unchecked."),
        _rule("name-encoding", NAMES, ERROR, "Not UTF-8",
            "Such names are binary, often from a client that serialises keys: other clients will not find them.",
            "Make the client write names as text: the key serialiser is often a separate option."),
        _rule("name-java-serialised", NAMES, WARN, "Java-serialised names",
            "Only clients with the same serializer find these keys, and each name is seven bytes longer.",
            "Use StringRedisSerializer instead of JdkSerializationRedisSerializer for keys, and rename the old keys.",
            "The name is ac ed 00 05 74, a two-byte length, and the text."),
        _rule("name-empty-segment", NAMES, WARN, "An empty segment",
            "Usually a variable was empty when the name was built.",
            "Check the code that builds the name, and reject empty values."),
        _rule("name-long", NAMES, WARN, "Longer than agreed",
            "Every key name is kept in memory; long names cost as much as small values.",
            "Shorten words common to all names, or replace long values with a hash."),
        _rule("name-huge", NAMES, ERROR, "Longer than any name should be",
            "Every command hashes and compares the whole name; a hash of the long part works as well.",
            "Put a hash of the long part into the name, and the part itself into the value."),
        _rule("name-short", NAMES, WARN, "Too short to understand",
            "A name is read far more often than it is typed.",
            "Use words that say what the key is for."),
        _rule("name-depth", NAMES, WARN, "More segments than agreed",
            "Deep names are hard to read, and their levels rarely mean the same everywhere.",
            "Move parts that do not distinguish keys into the value."),
        _rule("name-abbreviation", NAMES, WARN, "An abbreviation that is not in the glossary",
            "Different abbreviations lead to several keys for one thing.",
            "Write the word out, or add the abbreviation to the glossary."),
        _rule("tag-empty", NAMES, WARN, "An empty hash tag",
            "The braces are empty, so the whole name is hashed and related keys do not share a slot.",
            "Put the common part of the keys between the braces, or remove the braces."),
        _rule("tag-unbalanced", NAMES, WARN, "Unbalanced braces",
            "The slot is not computed from the part that the name suggests.",
            "Close each brace that opens a hash tag, and remove other braces."),
        _rule("tag-skew", NAMES, WARN, "A hash tag that puts a large share of the keys on one slot",
            "A slot cannot be split: one node gets all of their memory and load.",
            "Use a more specific hash tag, so that only keys used together share a slot.",
            share=Parameter(Kind.SHARE, 0.01, "Share of all keys or memory, on one slot by one tag.")),
        _rule("type-wrong", EXPECTATIONS, ERROR, "A type other than registered",
            "Commands of the expected type fail with WRONGTYPE.",
            "Find the writer: two programs may use the same name for different things."),
        _rule("ttl-missing", EXPECTATIONS, ERROR, "No TTL where one is required",
            "Such keys stay until they are deleted; a lock without TTL may never be released.",
            "Set the TTL with the value (SET … EX), and use EXPIRE on existing keys."),
        _rule("ttl-too-long", EXPECTATIONS, WARN, "A longer TTL than agreed",
            "Stale data is kept and served.",
            "Shorten the TTL in the writer, or relax the expectation in the registry."),
        _rule("ttl-too-short", EXPECTATIONS, WARN, "A shorter TTL than agreed",
            "Values are recomputed more often than intended.",
            "Lengthen the TTL in the writer, or relax the expectation in the registry."),
        _rule("ttl-unexpected", EXPECTATIONS, ERROR, "An unexpected TTL",
            "The key will expire although it should stay.",
            "Find what sets the TTL; PERSIST removes it."),
        _rule("size-out-of-range", EXPECTATIONS, WARN, "Memory out of the agreed range",
            "Large values block the server while they are read, copied or deleted.",
            "Split large values, or store them elsewhere."),
        _rule("length-out-of-range", EXPECTATIONS, WARN, "Length out of the agreed range",
            "Commands on a whole collection take time proportional to its length.",
            "Trim them in the writer (LTRIM, ZREMRANGEBYRANK), or split them."),
        _rule("key-unregistered", REGISTRY, WARN, "Keys without a registered pattern",
            "Their purpose and owner are unknown, so changing them is risky.",
            "Register them, with purpose and owner, or delete unused keys.",
            keys=Parameter(Kind.COUNT, 100, "Patterns with fewer keys are reported as one finding.")),
        _rule("pattern-unused", REGISTRY, WARN, "A registered pattern without keys",
            "Either the pattern is obsolete, or its writer does not run.",
            "Remove the entry, or find out why its keys are not written."),
        _rule("pattern-deprecated", REGISTRY, WARN, "A deprecated pattern that still has keys",
            "Something still writes them.",
            "Find the writer, and migrate it to the replacement named in the entry."),
        _rule("reference-dangling", REFERENCES, WARN, "A dangling reference",
            "Readers follow it to a missing key.",
            "Delete the reference together with its target.",
            "Values of a sample of keys per pattern, or of all (--references), are read and followed.",
            keys=Parameter(Kind.COUNT, 2_000, "Keys checked per pattern.")),
        _rule("reference-twin", REFERENCES, WARN, "Two copies of an index that disagree",
            "Results depend on which copy is read.",
            "Write both copies in one transaction (MULTI) or script, and repair the wrong one."),
        _rule("expiry-cliff", LOAD, WARN, "Many keys that expire at once",
            "All are rebuilt at once, which loads the database behind the cache.",
            "Add a random time to the TTL (jitter) where these keys are written.",
            share=Parameter(Kind.SHARE, 0.2, "Share of the keys of a namespace."),
            keys=Parameter(Kind.COUNT, 1_000, "Least number of keys."),
            within=Parameter(Kind.DURATION, "5m", "Most time between their expiries.")),
        _rule("ttl-mixed", LOAD, WARN, "Keys without TTL in a pattern whose other keys expire",
            "The writer did not set a TTL: they stay until they are deleted.",
            "Find the writer that omits EX or EXPIRE, such as a SET that drops the TTL (KEEPTTL keeps it).",
            "Only uniform patterns are checked; locks have their own rule.",
            share=Parameter(Kind.SHARE, 0.8, "Least share of the pattern with a TTL."),
            keys=Parameter(Kind.COUNT, 10, "Least number of keys without TTL.")),
        _rule("hot-key-expiring", LOAD, WARN, "A hot key that is about to expire",
            "All its readers query the database at the same moment; a lock or an expiry in the value prevents that.",
            "Renew it before it expires, or let a single reader rebuild it, under a lock.",
            "The hottest keys, by HOTKEYS (Redis 8.6) or by LFU counters, where 20 means about 1,000 accesses "
            "by default; locks are excluded, since they are meant to expire.",
            left=Parameter(Kind.DURATION, "5m", "Remaining TTL, less than this."),
            counter=Parameter(Kind.COUNT, 20, "Least access counter, 0 to 255.")),
        _rule("null-cached", LOAD, WARN, "Long-lived cached nulls",
            "Readers keep seeing a missing value after it exists.",
            "Give cached nulls a TTL of about 30 seconds.",
            "An analysis reads no values: this finds strings of at most 4 bytes (null, nil, None, {}, empty) in "
            "a pattern whose other strings are long and expire. Inspect one to confirm.",
            left=Parameter(Kind.DURATION, "1m", "Remaining TTL, more than this."),
            others=Parameter(Kind.SIZE, 64, "Mean bytes of the other strings of the pattern."),
            keys=Parameter(Kind.COUNT, 10, "Least number of keys.")),
        _rule("lock-without-ttl", LOAD, ERROR, "A lock without TTL",
            "If its owner dies, it is never released.",
            "Acquire locks with SET key owner NX PX milliseconds, which sets value and TTL at once.",
            "A namespace holds locks if its name contains one of these words: order-lock, userLock, not clock.",
            words=Parameter(Kind.WORDS, ["lock", "mutex", "semaphore"], "Words that mark a key as a lock.")),
        _rule("lock-long", LOAD, WARN, "A lock with a long TTL",
            "If its owner dies, all others wait that long.",
            "Give locks a TTL slightly longer than the work they guard, and renew it.",
            longest=Parameter(Kind.DURATION, "10m", "Longer than this.")),
        _rule("key-big", LOAD, WARN, "A big key",
            "Reading, copying or deleting it blocks all other clients; UNLINK deletes in the background, DEL does not.",
            "Split it into several keys, read it in portions (HSCAN, LRANGE), and delete it with UNLINK.",
            string=Parameter(Kind.SIZE, "1M", "Bytes of a string."),
            elements=Parameter(Kind.COUNT, 10_000, "Elements of a collection."),
            size=Parameter(Kind.SIZE, "10M", "Memory of any key.")),
        _rule("queue-growing", LOAD, WARN, "A growing list",
            "Its consumers are slower than its producers, or have stopped.",
            "Check its consumers; limit it with LTRIM if the oldest entries may be lost.",
            "Compares two reports (--since): lists among the longest of both that are longer in the second.",
            length=Parameter(Kind.COUNT, 1_000, "Shorter lists are ignored.")),
        _rule("strings-as-hash", LOAD, WARN, "Many small strings that could be hashes",
            "Each key costs 30 to 90 bytes beside its value; a field of a small hash costs a few.",
            "Store them as fields of one hash per object: HSET user:1 name … email ….",
            "Computed from MEMORY USAGE and the mean length of the values; as measured on Redis 6.2 to 8.10 and "
            "Valkey 8.0 to 9.1, a lower bound within 3 % of the memory of the strings. Only below one identifier, for "
            "strings of up to 64 bytes with similar TTLs: a hash has one TTL.",
            saves=Parameter(Kind.SIZE, "1M", "Least memory saved.")),
        _rule("encoding-over", LOAD, WARN, "Encodings just over a compact threshold",
            "A value slightly larger than the limit takes several times the memory.",
            "Split the values, or raise the limit of the encoding slightly with CONFIG SET.",
            "By number of elements, for types whose lengths are read (Redis 7.2, Valkey), against the default "
            "limits. Values over the limit for the size of an element (64 bytes by default) and intsets are not "
            "detected.",
            within=Parameter(Kind.RATIO, 1.25, "Up to this multiple of the limit."),
            keys=Parameter(Kind.COUNT, 100, "Least number of keys of a type."),
            hash=Parameter(Kind.COUNT, 512, "Fields: hash-max-listpack-entries."),
            set=Parameter(Kind.COUNT, 128, "Members: set-max-listpack-entries."),
            zset=Parameter(Kind.COUNT, 128, "Members: zset-max-listpack-entries.")),
        _rule("cross-slot", LOAD, WARN, "Related keys in several slots of a cluster",
            "MGET, MULTI and scripts over them fail in a cluster; a common hash tag keeps them together.",
            "Put their common part between braces, such as user:{42}:name.",
            "In clusters only: sibling names below an identifier, none of them with a brace."),
        _rule("key-idle", LOAD, OFF, "Idle keys",
            "They use memory without being accessed.",
            "Check whether they are needed; give them a TTL, or delete them with UNLINK.",
            "Reports have idle times in bins: a minute, an hour, a day, a week, 30 and 90 days.",
            days=Parameter(Kind.COUNT, 90, "Days without an access.")),
        _rule("writes-refused", SERVER, ERROR, "Refused writes",
            "Clients got an error in place of OK: what they wrote is not there.",
            "OOM: raise maxmemory, or let keys be evicted. MISCONF: make RDB or AOF writable. NOREPLICAS: restore the "
            "replicas. READONLY: let clients write to the primary. CLUSTERDOWN: restore the nodes of all slots.",
            "INFO errorstats (Redis 6.2, Valkey): OOM, MISCONF, NOREPLICAS, READONLY, CLUSTERDOWN; the limits "
            "are our own choice.",
            **_counted(10, 5)),
        _rule("connections-refused", SERVER, ERROR, "Refused connections",
            "Clients could not connect: at maxclients, or from another host in protected mode.",
            "Raise maxclients and the limit of open files, or find clients that do not close connections.",
            "rejected_connections of INFO stats; the limits are our own choice.",
            **_counted(5, 1)),
        _rule("monitor-attached", SERVER, WARN, "MONITOR is running",
            "The server writes every command to it, which can halve its throughput, and shows all values.",
            "Close it if nobody watches: CLIENT KILL ID with the id in CLIENT LIST.",
            "Flag O of CLIENT LIST, which is not sent if very many clients are connected. Redis' documentation "
            "of MONITOR: a single one can reduce throughput by more than 50 %."),
        _rule("logins-failed", SERVER, WARN, "Failed logins",
            "A client has an old password, or somebody guesses one.",
            "Find who it was (ACL LOG), and give the client the current password, or close the port to others.",
            "WRONGPASS of INFO errorstats (Redis 6.2, Valkey); the limits are our own choice.",
            **_counted(10, 5, 3)),
        _rule("acl-denied", SERVER, WARN, "Commands denied by ACL rules",
            "A client tries what its user may not do: it does not work as intended, or somebody explores.",
            "Find who it was (ACL LOG), and grant the command or keys, or change the client.",
            "NOPERM of INFO errorstats (Redis 6.2, Valkey), without rejected commands that rtui and other "
            "monitoring send (INFO, CONFIG, CLIENT …); the limits are our own choice.",
            **_counted(20, 10, 10)),
        _rule("calls-failed", SERVER, WARN, "A command that often fails",
            "The program that sends it does not do its work: WRONGTYPE, for example, means that another one uses the "
            "same name for something else.",
            "Find the caller by the errors of the application, and check the type of the key and the arguments.",
            "failed_calls of INFO commandstats (Redis 6.2, Valkey), and rejected_calls that no other rule "
            "explains. Errors that clients expect are not counted: AUTH, EVALSHA, XGROUP, CLIENT …",
            **_counted(100, 50, 100),
            share=Parameter(Kind.SHARE, 0.01, "Least share of the calls of the command.")),
        _rule("memory-near-limit", SERVER, WARN, "Memory near maxmemory, or was full, and nothing can be evicted",
            "When memory is full, commands that need more fail with OOM.",
            "Raise maxmemory, delete unused keys, or choose a policy that evicts.",
            "The share is our own choice: time to act before commands fail. It was full where used_memory_peak "
            "is 100 to 125 % of maxmemory: a higher peak was under another limit. Growth is that of used_memory in "
            "the samples of the session, over at least a minute. Policies that take keys with a TTL "
            "only have their own rule (eviction-impossible).",
            share=Parameter(Kind.SHARE, 0.9, "Share of maxmemory in use."),
            left=Parameter(Kind.DURATION, "1h", "Or time until full at the current growth.")),
        _rule("memory-unlimited", SERVER, WARN, "No maxmemory on a machine that is nearly full",
            "Without a limit the operating system swaps or kills the server when the machine's memory is full.",
            "Set maxmemory below the machine's memory, with room for forks and buffers.",
            "Redis' documentation (Administration) recommends a maxmemory with 10 to 20 % to spare. A fork may "
            "need additional memory for all changes while it runs, so 60 % is our own choice.",
            share=Parameter(Kind.SHARE, 0.6, "Resident share of the machine's memory.")),
        _rule("memory-fragmented", SERVER, WARN, "Memory fragmentation",
            "The resident memory is what counts on the machine; activedefrag returns memory.",
            "Enable activedefrag, or restart a replica and fail over to it.",
            "Redis' documentation of INFO: a ratio over 1.5 is a sign of fragmentation. Below 100 MB the "
            "program itself dominates, and after a peak the ratio is high because pages are kept.",
            ratio=Parameter(Kind.RATIO, 1.5, "mem_fragmentation_ratio: used_memory_rss over used_memory."),
            least=Parameter(Kind.SIZE, "100M", "Least used_memory.")),
        _rule("memory-swapped", SERVER, WARN, "Swapped memory",
            "Part of the memory was swapped out: commands that need it wait for the disk, and block all other clients.",
            "Give the machine more memory, or the server a smaller maxmemory.",
            "Redis' documentation of MEMORY STATS: a ratio below 1 is a sign of swapping. Memory that was "
            "allocated and never written is not resident either.",
            ratio=Parameter(Kind.RATIO, 0.9, "mem_fragmentation_ratio, less than this."),
            least=Parameter(Kind.SIZE, "100M", "Least used_memory.")),
        _rule("eviction-impossible", SERVER, WARN, "A policy with hardly any keys to evict",
            "When memory is full, writes fail with OOM despite the eviction policy.",
            "Give evictable keys a TTL, or choose an allkeys policy.",
            "Policies whose names begin with volatile evict keys with a TTL only, and behave as noeviction "
            "where there is none (redis.conf). The share is our own choice. Only where maxmemory is set. An error by "
            "default where no key has a TTL and memory is or was full, or writes failed with OOM.",
            share=Parameter(Kind.SHARE, 0.1, "Share of keys with a TTL, less than this."),
            keys=Parameter(Kind.COUNT, 100, "Least number of keys, unless memory is or was nearly full.")),
        _rule("eviction-policy", SERVER, OFF, "An eviction policy other than agreed",
            "It decides which keys are evicted when memory is full, or whether writes fail.",
            "Set maxmemory-policy as agreed.",
            "The agreed policies are set in the registry.",
            policies=Parameter(Kind.WORDS, ["allkeys-lru", "allkeys-lfu"], "Agreed policies.")),
        _rule("eviction-of-lasting", SERVER, WARN, "A policy that may evict keys that must stay",
            "Later reads find nothing: a lock is released, a setting is lost.",
            "Keep such keys on a separate server, or choose volatile-lru or volatile-lfu, which keep keys without TTL.",
            "Policies whose names begin with allkeys evict any key, and volatile-ttl evicts what expires "
            "soonest first, as locks do (redis.conf). Locks are told by their names (lock-without-ttl), other keys by "
            "entries of the registry whose TTL is none. Needs a report of the keys, and a maxmemory."),
        _rule("command-banned", SERVER, WARN, "Banned commands in use",
            "KEYS and FLUSHALL take time proportional to all keys, and block all other clients meanwhile.",
            "Use SCAN instead of KEYS, and deny these commands with ACL rules.",
            "INFO commandstats, which names no clients: those of the slow log, and clients whose last command "
            "it was (CLIENT LIST). SORT, SMEMBERS, HGETALL and LRANGE are found by their time (command-slow).",
            commands=Parameter(Kind.WORDS, ["keys", "flushall", "flushdb"], "Command names."),
            calls=Parameter(Kind.COUNT, 3, "Least calls of a command since start or CONFIG RESETSTAT."),
            a_day=Parameter(Kind.COUNT, 1, "And mean number per day, if the time is known."),
            now=Parameter(Kind.COUNT, 3, "Or least number while rtui takes samples.")),
        _rule("command-slow", SERVER, WARN, "Slow commands",
            "While one runs, all others wait.",
            "Read in portions (HSCAN, LRANGE), split large values, and shorten scripts.",
            "slowlog-log-slower-than is 10 ms by default. The slow log keeps the latest entries only "
            "(slowlog-max-len), and execution time only, without waiting.",
            longest=Parameter(Kind.DURATION, "10ms", "Slower than this."),
            calls=Parameter(Kind.COUNT, 3, "Least entries of a command and pattern, or one ten times as slow."),
            within=Parameter(Kind.DURATION, "1h", "Time span of the slow log.")),
        _rule("key-big-slow", SERVER, WARN, "A big key with slow commands",
            "The larger it grows, the longer each such command blocks all other clients.",
            "Split it, read it in portions, and delete it with UNLINK.",
            "Keys that the slow log names (command-slow) and a report lists among the biggest of their type."),
        _rule("expiry-cliff-load", SERVER, WARN, "A load peak while many keys expire at once",
            "All readers of expired keys query the database at the same moment.",
            "Add a random time to the TTL (jitter) where these keys are written.",
            "Cliffs of a report (expiry-cliff) that lie within the samples of the session; the factor is our "
            "own choice.",
            rise=Parameter(Kind.RATIO, 1.5, "Commands or misses per second, relative to the rest of the time.")),
        _rule("hot-key-expiry-near", SERVER, WARN, "A hot key that expires in a moment",
            "All its readers query the database at once when it expires.",
            "Renew it before it expires, under a lock, or serve the old value meanwhile.",
            "Hot keys of a report (hot-key-expiring), minus the time since the report: renewals since are "
            "unknown. Locks are excluded.",
            left=Parameter(Kind.DURATION, "1m", "Remaining TTL at the last sample, less than this.")),
        _rule("hit-ratio-low", SERVER, WARN, "A low hit ratio",
            "Nearly every read misses: the cache does not spare the database behind it anything.",
            "Compare the names that clients read with those they write, and check TTLs and evictions.",
            "keyspace_hits and keyspace_misses since start or CONFIG RESETSTAT, without rtui's own; both limits "
            "are our own choice. Set it to off where misses are expected, as for deduplication.",
            share=Parameter(Kind.SHARE, 0.1, "Hit ratio, less than this."),
            reads=Parameter(Kind.COUNT, 500, "Least number of reads.")),
        _rule("hit-ratio-fell", SERVER, WARN, "A hit ratio that fell",
            "Misses load the database behind the cache: keys expired, were evicted, or never existed.",
            "Check which keys expire or are evicted, and cache missing values, too (for 30 seconds).",
            "Reads of the session against those since start or CONFIG RESETSTAT, without rtui's own; both "
            "limits are our own choice.",
            by=Parameter(Kind.SHARE, 0.2, "Drop below the ratio since start or CONFIG RESETSTAT."),
            reads=Parameter(Kind.COUNT, 1_000, "Least number of reads in the session.")),
        _rule("cpu-saturated", SERVER, WARN, "A server that uses a whole core",
            "One thread executes all commands: when it is busy, they queue.",
            "Check which commands take the time, spread the keys over more nodes, read from replicas.",
            "INFO cpu: used_cpu_user_main_thread and used_cpu_sys_main_thread (Redis 6.2, Valkey), of 10 "
            "seconds at least; the share is our own choice.",
            share=Parameter(Kind.SHARE, 0.9, "Share of one core, used by the main thread in the session.")),
        _rule("connection-churn", SERVER, WARN, "Many short-lived connections",
            "Each costs the server as much as several commands, with TLS as much as hundreds.",
            "Keep connections open: use a pool, and persistent connections in PHP.",
            "In the session, of 10 seconds at least; the limit is our own choice.",
            rate=Parameter(Kind.COUNT, 50, "New connections per second.")),
        _rule("clients-limit", SERVER, WARN, "Connections near maxclients",
            "At maxclients, new connections get an error.",
            "Raise maxclients and the limit of open files, or find clients that do not close connections.",
            "The share is our own choice; refused connections have their own rule (connections-refused).",
            share=Parameter(Kind.SHARE, 0.8, "Share of maxclients.")),
        _rule("output-buffers", SERVER, WARN, "Large output buffers",
            "Unread replies are kept in the server's memory, beside the data.",
            "Find the slow client in CLIENT LIST; client-output-buffer-limit closes such connections.",
            "By default normal clients have no limit, subscribers 32 MB and replicas 256 MB, or 8 and 64 MB for "
            "60 seconds (redis.conf). CLIENT LIST is not sent if very many clients are connected.",
            size=Parameter(Kind.SIZE, "32M", "Output buffer of one client."),
            share=Parameter(Kind.SHARE, 0.8, "Or share of the hard limit of its class, or the soft limit.")),
        _rule("query-buffers", SERVER, WARN, "Large query buffers",
            "Requests are buffered in memory until they are complete; above the limit the client is closed.",
            "Send large values in parts, and use shorter pipelines.",
            "client-query-buffer-limit is 1 GB by default (redis.conf); the share is our own choice. CLIENT "
            "LIST is not sent if very many clients are connected.",
            share=Parameter(Kind.SHARE, 0.5, "Share of client-query-buffer-limit.")),
        _rule("clients-closed", SERVER, WARN, "Clients closed for their buffers",
            "They did not read their replies in time, or sent too large a request, and lost what was under way.",
            "Find them in the server's log, and make them read faster or ask for less, or raise the limit.",
            "INFO stats (Redis 7.4, Valkey 8.0): client_output_buffer_limit_disconnections and "
            "client_query_buffer_limit_disconnections; evicted_clients (Redis 7.0). The limits are our own choice.",
            **_counted(3, 1)),
        _rule("expire-cycles-late", SERVER, WARN, "Expired keys that are not deleted in time",
            "More keys expire than the server may spend time on: the rest keeps its memory for longer.",
            "Spread TTLs with a random part (jitter), or raise active-expire-effort.",
            "expired_time_cap_reached_count of INFO stats: cycles that hit their limit of a quarter of the time. "
            "A server has 10 cycles per second (hz); the limits are our own choice.",
            **_counted(100, 1_000, 50)),
        _rule("eviction-fast", SERVER, WARN, "Keys that are evicted soon after they are written",
            "The cache is too small for what is written: most of it is gone before it is read again.",
            "Raise maxmemory, shorten TTLs, or write less of what is hardly read.",
            "Keys that the policy may evict, over evicted_keys per second: since the start, or in the session "
            "if that is longer than the limit. The limits are our own choice.",
            keys=Parameter(Kind.COUNT, 1_000, "Least number of evicted keys."),
            stay=Parameter(Kind.DURATION, "10m", "Mean time until a key is evicted, less than this.")),
        _rule("aof-fsync-delayed", SERVER, WARN, "A disk too slow for the AOF",
            "A write waited because the fsync before it took over two seconds: all clients waited with it.",
            "Give the AOF a faster disk, or set no-appendfsync-on-rewrite yes.",
            "aof_delayed_fsync of INFO persistence; the limits are our own choice.",
            **_counted(10, 5)),
        _rule("replication-flapping", SERVER, WARN, "Replicas that synchronise in full again and again",
            "Each full resynchronisation forks and sends the whole dataset; the replica is stale meanwhile.",
            "Raise repl-backlog-size and the replica limit of client-output-buffer-limit, and check the network.",
            "sync_full of INFO stats, without one for each connected replica; the limits are our own choice.",
            **_counted(5, 1, 2)),
        _rule("default-user-open", SERVER, WARN, "No password, and connections from elsewhere",
            "Whoever reaches the port can read, change and delete everything.",
            "Set a password for the default user (ACL SETUSER default, requirepass), or bind the server to loopback.",
            "rtui was let in without a password, and CLIENT LIST has connections, which may be rtui's own, that "
            "do not come from loopback. Addresses that nobody uses yet are not known."),
        _rule("version-outdated", SERVER, WARN, "A version without all security fixes",
            "Whoever reaches the server may use published vulnerabilities, some of which run code.",
            "Upgrade to the latest release of the series, or to a series that still gets fixes.",
            "A table of Redis' and Valkey's releases whose date the finding names, where CLIENT LIST has connections, "
            "which may be rtui's own, that do not come from loopback. A distribution or provider may have applied "
            "fixes without another version number: then set it to off."),
        _rule("persistence-failing", SERVER, ERROR, "RDB or AOF can't be written",
            "Later writes are lost if the server stops; by default writes fail with MISCONF, too.",
            "Check the server log: usually the disk is full or the directory is not writable.",
            "INFO persistence: the status of the last RDB, AOF rewrite and AOF write. Writes fail with MISCONF "
            "if stop-writes-on-bgsave-error is yes."),
        _rule("fork-slow", SERVER, WARN, "Slow forks",
            "All clients wait during a fork; transparent huge pages make it worse.",
            "Disable transparent huge pages, and use smaller nodes.",
            "latest_fork_usec of INFO stats. Redis' documentation (Latency) gives 9 to 13 ms per GiB on "
            "physical and current virtual machines; much more suggests huge pages or an old hypervisor.",
            longest=Parameter(Kind.DURATION, "500ms", "Longer than this.")),
        _rule("huge-pages", SERVER, WARN, "Transparent huge pages are enabled",
            "After a fork each change copies 2 MiB instead of 4 KiB: latency and memory rise.",
            "Set disable-thp yes, or echo madvise > /sys/kernel/mm/transparent_hugepage/enabled as root.",
            "disable-thp of CONFIG GET, yes by default (Redis 6.2, Valkey). rtui can't see the kernel setting."),
        _rule("replication-broken", SERVER, ERROR, "A replica without its primary",
            "It serves stale data, and is not ready for a failover.",
            "Check the logs of both: network, masterauth, or a full resynchronisation that does not finish.",
            "INFO replication: master_link_status."),
        _rule("replica-lagging", SERVER, WARN, "A lagging replica",
            "Reads from it are stale, and recent writes are lost if it takes over.",
            "Check its network and load; raise repl-backlog-size to avoid a full resynchronisation.",
            "From the replica list of the primary; replicas acknowledge every second. min-replicas-max-lag is "
            "10 s by default. A replica further behind than repl-backlog-size can't continue after its link is lost.",
            lag=Parameter(Kind.DURATION, "10s", "Time since its last acknowledgement, or not online."),
            backlog=Parameter(Kind.SHARE, 1.0, "Or share of the backlog not acknowledged, in two samples.")),
        _rule("replica-missing", SERVER, WARN, "A primary that lost all replicas",
            "If it dies, no replica can take over.",
            "Find out why the replicas disconnected.",
            "It has a replication backlog, which is created for the first replica and kept for an hour after "
            "the last (repl-backlog-ttl), and no replica is connected."),
        _rule("backlog-short", SERVER, WARN, "A short replication backlog",
            "A replica that was away longer needs a full resynchronisation, which forks and sends the whole dataset.",
            "Raise repl-backlog-size to the bytes written during the longest expected outage.",
            "repl_backlog_size over the growth of master_repl_offset in the session, of 10 seconds at least. "
            "repl-timeout, 60 s by default, is when an outage is noticed.",
            least=Parameter(Kind.DURATION, "1m", "Least time span of writes that it holds.")),
        _rule("cluster-failing", SERVER, ERROR, "A cluster that does not serve all slots",
            "Commands on these slots fail with CLUSTERDOWN; by default on all other slots, too.",
            "Check which nodes are down (CLUSTER NODES), and restore them or let a replica take over.",
            "CLUSTER INFO: cluster_state, slots that are not assigned and slots that fail."),
        _rule("cluster-node-down", SERVER, WARN, "An unreachable cluster node",
            "Its shard has one server less; another failure may make slots unavailable.",
            "Check that it runs and that its bus port is reachable (CLUSTER NODES).",
            "CLUSTER NODES of each node: fail, or fail? after cluster-node-timeout without an answer, or a link "
            "that is disconnected; in clusters of up to 100 nodes."),
        _rule("sentinels-failing", SERVER, WARN, "Sentinels that could not fail over, or do not agree",
            "If the primary dies, no replica takes over.",
            "Check that the Sentinels run and reach each other (SENTINEL CKQUORUM).",
            "SENTINEL MASTERS of each Sentinel of the target: a failover needs the quorum, and a majority of "
            "all known Sentinels. rtui may not reach one that the others do reach."),
    )
}  # fmt: skip


class RuleLevels:
    """The severities and parameters of one registry."""

    def __init__(
        self,
        severities: Mapping[str, Severity] | None = None,
        parameters: Mapping[str, Mapping[str, ParameterValue]] | None = None,
    ) -> None:
        self._severities = dict(severities or {})
        self._parameters = {rule: dict(given) for rule, given in (parameters or {}).items()}

    @property
    def settings(self) -> dict[str, tuple[Severity, dict[str, ParameterValue]]]:
        set_here = dict.fromkeys((*self._severities, *self._parameters))
        return {rule: (self.severity(rule), self._parameters.get(rule, {})) for rule in set_here}

    def is_set(self, rule: str) -> bool:
        return rule in self._severities

    def severity(self, rule: str) -> Severity:
        return self._severities.get(rule, RULES[rule].severity)

    def parameter(self, rule: str, name: str) -> ParameterValue:
        declared = RULES[rule].parameters[name]
        given = self._parameters.get(rule, {})
        return given[name] if name in given else declared.value(declared.default)

    def number(self, rule: str, name: str) -> float:
        """Return a numeric parameter: durations in milliseconds, sizes in bytes. Raises TypeError for a list."""
        found = self.parameter(rule, name)
        if isinstance(found, tuple):
            raise TypeError(f"{rule} {name} is a list")
        return found

    def words(self, rule: str, name: str) -> tuple[str, ...]:
        found = self.parameter(rule, name)
        if not isinstance(found, tuple):
            raise TypeError(f"{rule} {name} is no list")
        return found
