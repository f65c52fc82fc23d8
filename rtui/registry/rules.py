"""The rules that a registry can set to off, warn or error, with reason, default severity and parameters.

A rule is declared here once. Its violations are found elsewhere: for names in `naming.py`, for single keys in
`expectations.py`, for whole keyspaces and servers in `rtui/analysis/findings`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
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
        """Return the value of a written one; raises ValueError if it is of another kind."""
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
    """The violation; a phrase without a full stop."""
    reason: str
    """Why it matters; a sentence."""
    remedy: str
    """The remedy; a sentence."""
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    basis: str = ""
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
    LOAD: "What goes wrong under load",
    EXPECTATIONS: "What a pattern expects of its keys",
    REGISTRY: "Patterns and keys without one",
    REFERENCES: "References",
    NAMES: "Names",
    SERVER: "The server (rtui health)",
}
"""The headings of the families, in the order in which rules are listed."""

OFF, WARN, ERROR = Severity

RULES: Final[dict[str, Rule]] = {
    rule.id: rule
    for rule in (
        Rule(
            "name-separator", NAMES, WARN, "Separated by something else than declared",
            "Tools group keys at the declared separator: what is separated otherwise belongs to no namespace.",
            "Write these names with the declared separator, or declare theirs.",
        ),
        Rule(
            "name-mixed-separators", NAMES, WARN, "A second separator within a name",
            "Nobody knows at which of two separators such a name is to be divided.",
            "Keep one separator between segments, and another one within them at most.",
        ),
        Rule(
            "name-case", NAMES, WARN, "Words in another style than agreed",
            "Names that differ only in their style are different keys: one is written and the other is read.",
            "Write new keys in the agreed style, and rename the others when their code is changed.",
        ),
        Rule(
            "name-mixed-case", NAMES, WARN, "Several styles in one namespace",
            "Who writes a new key has to look up which style its neighbours have.",
            "Agree on one style for the namespace.",
            {"share": Parameter(Kind.SHARE, 0.01, "A style counts from this share of the keys on.")},
        ),
        Rule(
            "name-characters", NAMES, WARN, "Characters that are not allowed",
            "Unusual characters have to be quoted in shells, patterns, URLs and configuration files.",
            "Leave these characters out, or encode the part that has them (hex, base64url).",
        ),
        Rule(
            "name-whitespace", NAMES, ERROR, "Whitespace in a name",
            "A space or line break ends an argument in redis-cli, scripts and logs.",
            "Replace whitespace by the character that stands between words.",
        ),
        Rule(
            "name-quotes", NAMES, ERROR, "Quotes in a name",
            "Quotes in a name usually mean that a value was quoted twice.",
            "Look where the name is built: a value was probably quoted before it was put in.",
        ),
        Rule(
            "name-control", NAMES, ERROR, "Control, escape or invisible characters in a name",
            "They cannot be seen or typed, and can change what a terminal shows.",
            "Look where the name is built: input was probably put in unchecked.",
        ),
        Rule(
            "name-encoding", NAMES, ERROR, "Not UTF-8",
            "Such names are binary data, often of a client that serialises keys: no other client will find them.",
            "Have the client write names as text: a serialiser for keys is often an option of its own.",
        ),
        Rule(
            "name-java-serialised", NAMES, WARN, "Names that Java has serialised",
            "Only clients with the same serializer find these keys, and each name is seven bytes longer.",
            "Use StringRedisSerializer for keys in place of JdkSerializationRedisSerializer, and rename the old keys.",
            basis="The name is ac ed 00 05 74, the length of the text in two bytes, and the text.",
        ),
        Rule(
            "name-empty-segment", NAMES, WARN, "An empty segment",
            "Most often a variable was empty when the name was built.",
            "Look where the name is built, and refuse empty values there.",
        ),
        Rule(
            "name-long", NAMES, WARN, "Longer than agreed",
            "Every key keeps its name in memory; long names cost as much as small values.",
            "Shorten words that are the same in all names, or put a hash in place of long values.",
        ),
        Rule(
            "name-huge", NAMES, ERROR, "Longer than any name should be",
            "Comparing and hashing such names takes time in every command; a hash of the long part does as well.",
            "Put a hash of the long part into the name, and the part itself into the value.",
        ),
        Rule(
            "name-short", NAMES, WARN, "Too short to understand",
            "A name is read far more often than it is typed.",
            "Use words that say what the key is for.",
        ),
        Rule(
            "name-depth", NAMES, WARN, "More segments than agreed",
            "Deep names are hard to read, and their levels hardly ever mean the same everywhere.",
            "Move what does not tell keys apart from the name into the value.",
        ),
        Rule(
            "name-abbreviation", NAMES, WARN, "An abbreviation that is not in the glossary",
            "What everybody abbreviates differently becomes several keys for one thing.",
            "Write the word out, or add the abbreviation to the glossary.",
        ),
        Rule(
            "tag-empty", NAMES, WARN, "An empty hash tag",
            "Nothing lies between the braces, so the whole name is hashed and related keys do not share a slot.",
            "Put what keys have in common between the braces, or leave the braces out.",
        ),
        Rule(
            "tag-unbalanced", NAMES, WARN, "Braces that do not match",
            "The slot is computed from something else than the name suggests.",
            "Close each brace that begins a hash tag; leave braces out that begin none.",
        ),
        Rule(
            "tag-skew", NAMES, WARN, "A hash tag that puts a large share of the keys on one slot",
            "A slot is never divided: one node gets all of their memory and load.",
            "Put something finer between the braces, so that only keys used together share a slot.",
            {"share": Parameter(Kind.SHARE, 0.01, "Of all keys or bytes, on one slot by one tag.")},
        ),
        Rule(
            "type-wrong", EXPECTATIONS, ERROR, "Another type than registered",
            "Commands of the expected type fail with WRONGTYPE.",
            "Find what writes them: two programs may use the same name for different things.",
        ),
        Rule(
            "ttl-missing", EXPECTATIONS, ERROR, "No TTL where there has to be one",
            "Such keys stay until somebody deletes them; a lock without TTL is never released.",
            "Set the TTL with the value (SET … EX), and give the keys that are there one with EXPIRE.",
        ),
        Rule(
            "ttl-too-long", EXPECTATIONS, WARN, "More time to live than agreed",
            "Data that is out of date is kept and served.",
            "Shorten the TTL where they are written, or widen what the registry expects.",
        ),
        Rule(
            "ttl-too-short", EXPECTATIONS, WARN, "Less time to live than agreed",
            "Work that should be saved is done again.",
            "Lengthen the TTL where they are written, or widen what the registry expects.",
        ),
        Rule(
            "ttl-unexpected", EXPECTATIONS, ERROR, "A TTL where there must be none",
            "The key will vanish.",
            "Find what gives them a TTL; PERSIST takes it away.",
        ),
        Rule(
            "size-out-of-range", EXPECTATIONS, WARN, "Larger or smaller than agreed",
            "Large values block the server while they are read, copied and deleted.",
            "Divide large values, or store what is large elsewhere.",
        ),
        Rule(
            "length-out-of-range", EXPECTATIONS, WARN, "More or fewer elements than agreed",
            "Commands on a whole collection take as long as it has elements.",
            "Trim them where they are written (LTRIM, ZREMRANGEBYRANK), or divide them.",
        ),
        Rule(
            "key-unregistered", REGISTRY, WARN, "Keys that no pattern describes",
            "Nobody knows what they are for, so nobody dares to change them.",
            "Describe them in the registry, with purpose and owner, or delete what nobody needs.",
            {"keys": Parameter(Kind.COUNT, 100, "Patterns of fewer keys are one finding together.")},
        ),
        Rule(
            "pattern-unused", REGISTRY, WARN, "A registered pattern without keys",
            "Either its keys are gone and the entry can go as well, or what should write them does not.",
            "Remove the entry, or look why nothing writes its keys.",
        ),
        Rule(
            "pattern-deprecated", REGISTRY, WARN, "A pattern that is to be retired and still has keys",
            "Something still writes them.",
            "Find what still writes them, and move it to what the entry names.",
        ),
        Rule(
            "reference-dangling", REFERENCES, WARN, "A reference to a key that is gone",
            "Readers follow it and find nothing.",
            "Delete the reference together with what it points to.",
            {"keys": Parameter(Kind.COUNT, 2_000, "Keys that are looked at of each pattern.")},
            basis="Values are read and followed, of a sample of the keys of each pattern or of all (--references).",
        ),
        Rule(
            "reference-twin", REFERENCES, WARN, "Two copies of an index that disagree",
            "What is found depends on which of them is read.",
            "Write both copies in one transaction (MULTI) or script, and repair the one that is wrong.",
        ),
        Rule(
            "expiry-cliff", LOAD, WARN, "Many keys that expire at once",
            "All of them are made again at once, by the database behind; add a random time to their TTL.",
            "Add a random time to the TTL (jitter) where these keys are written.",
            {
                "share": Parameter(Kind.SHARE, 0.2, "Of the keys of a namespace."),
                "keys": Parameter(Kind.COUNT, 1_000, "At least so many."),
                "within": Parameter(Kind.DURATION, "5m", "Of each other."),
            },
        ),
        Rule(
            "ttl-mixed", LOAD, WARN, "Keys without TTL in a pattern whose other keys expire",
            "What writes them has forgotten the TTL: they stay until somebody deletes them.",
            "Find what writes them without EX or EXPIRE, such as a SET that drops the TTL (KEEPTTL keeps it).",
            {
                "share": Parameter(Kind.SHARE, 0.8, "At least such a share of the pattern expires."),
                "keys": Parameter(Kind.COUNT, 10, "At least so many do not."),
            },
            basis="Only patterns whose keys are of one sort are looked at; locks have a rule of their own.",
        ),
        Rule(
            "hot-key-expiring", LOAD, WARN, "A hot key that is about to expire",
            "Everybody who reads it asks the database at the same moment; a lock or an expiry in the value guards it.",
            "Renew it before it expires, or let one reader alone make it again, under a lock.",
            {
                "left": Parameter(Kind.DURATION, "5m", "It has less than this left."),
                "counter": Parameter(Kind.COUNT, 20, "Its access counter, 0 to 255, is so high at least."),
            },
            basis="Of the hottest keys, by HOTKEYS of Redis 8.6 or by access counters of an LFU policy, in which 20 "
            "stands for about 1,000 accesses by default; locks are left out, since they are to expire.",
        ),
        Rule(
            "null-cached", LOAD, WARN, "Cached nulls that live long",
            "What was missing stays missing for readers after it has appeared.",
            "Give cached nulls a TTL of about 30 seconds.",
            {
                "left": Parameter(Kind.DURATION, "1m", "They have more than this left."),
                "others": Parameter(Kind.SIZE, 64, "Bytes that the other strings of the pattern have on average."),
                "keys": Parameter(Kind.COUNT, 10, "At least so many."),
            },
            basis="An analysis reads no values: found are strings of at most 4 bytes (null, nil, None, {}, empty) in a "
            "pattern whose other strings are long and expire. What they hold only a look at one can tell.",
        ),
        Rule(
            "lock-without-ttl", LOAD, ERROR, "A lock without TTL",
            "When its owner dies it is never released.",
            "Take locks with SET key owner NX PX milliseconds, so that value and TTL are set at once.",
            {"words": Parameter(Kind.WORDS, ["lock", "mutex", "semaphore"], "Segments that make a key a lock.")},
            basis="A namespace is of locks if its name has one of these words: order-lock, userLock, not clock.",
        ),
        Rule(
            "lock-long", LOAD, WARN, "A lock with a long TTL",
            "When its owner dies everybody else waits that long.",
            "Give locks a TTL that is little longer than the work they guard, and renew it meanwhile.",
            {"longest": Parameter(Kind.DURATION, "10m", "More than this is long.")},
        ),
        Rule(
            "key-big", LOAD, WARN, "A big key",
            "Reading, copying and deleting it hold up everybody else; UNLINK deletes in the background, DEL does not.",
            "Divide them into several keys, read them in portions (HSCAN, LRANGE), and delete them with UNLINK.",
            {
                "string": Parameter(Kind.SIZE, "1M", "Bytes of a string."),
                "elements": Parameter(Kind.COUNT, 10_000, "Elements of a collection."),
                "size": Parameter(Kind.SIZE, "10M", "Memory of any key."),
            },
        ),
        Rule(
            "queue-growing", LOAD, WARN, "A list that only grows between two reports",
            "What takes from it is slower than what adds to it, or is gone.",
            "Look whether something still takes from it; limit it with LTRIM where the oldest may be lost.",
            {"length": Parameter(Kind.COUNT, 1_000, "Lists of fewer elements are left out.")},
            basis="Compares two reports (--since): those of the longest lists of both that are longer in the second.",
        ),
        Rule(
            "strings-as-hash", LOAD, WARN, "Many small strings that could be hashes",
            "Each key costs 30 to 90 bytes beside its value, a field of a small hash a few.",
            "Store them as the fields of one hash for each thing: HSET user:1 name … email ….",
            {"saves": Parameter(Kind.SIZE, "1M", "It would save so much memory at least.")},
            basis="Computed from what the keys take by MEMORY USAGE and the mean length of their values; measured on "
            "Redis 6.2 to 8.10 and Valkey 8.0 to 9.1, it is what is saved at least, to 3 % of what the strings take. "
            "Only below one identifier, for strings of up to 64 bytes whose TTLs are alike: a hash has one TTL.",
        ),
        Rule(
            "encoding-over", LOAD, WARN, "Encodings just over a compact threshold",
            "A value slightly larger than the limit takes several times the memory.",
            "Divide the values, or raise the limit of the encoding a little with CONFIG SET.",
            {
                "within": Parameter(Kind.RATIO, 1.25, "Up to so many times the limit."),
                "keys": Parameter(Kind.COUNT, 100, "At least so many keys of a type."),
                "hash": Parameter(Kind.COUNT, 512, "Fields: hash-max-listpack-entries."),
                "set": Parameter(Kind.COUNT, 128, "Members: set-max-listpack-entries."),
                "zset": Parameter(Kind.COUNT, 128, "Members: zset-max-listpack-entries."),
            },
            basis="By numbers of elements, where lengths are asked of a type (Redis 7.2, Valkey); limits are defaults "
            "of servers, since rtui does not read them. What is over a limit by the size of an element (64 bytes by "
            "default) is not seen, nor are sets of numbers, whose limit is another one.",
        ),
        Rule(
            "cross-slot", LOAD, WARN, "Keys of one thing in several slots of a cluster",
            "MGET, MULTI and scripts over them fail in a cluster; a common hash tag keeps them together.",
            "Put what they have in common between braces, such as user:{42}:name.",
            basis="In clusters only: names beside each other below an identifier, none of them with a brace.",
        ),
        Rule(
            "key-idle", LOAD, OFF, "Keys that nobody has used for long",
            "They take memory that something else could use.",
            "Ask who needs them; give them a TTL, or delete them with UNLINK.",
            {"days": Parameter(Kind.COUNT, 90, "Days without an access.")},
            basis="Reports tell idle times apart at a minute, an hour, a day, a week, 30 and 90 days.",
        ),
        Rule(
            "memory-near-limit", SERVER, WARN, "Memory near its limit, and nothing that can be evicted",
            "When it is full, commands that need more memory fail with OOM.",
            "Raise maxmemory, delete what nobody needs, or choose a policy that may evict.",
            {
                "share": Parameter(Kind.SHARE, 0.9, "Of maxmemory, used from here on."),
                "left": Parameter(Kind.DURATION, "1h", "Or at the present growth it is full sooner than this."),
            },
            basis="The share is our own choice: time to act before commands fail. Growth is what used memory has grown "
            "by in the samples of the session, of a minute at least.",
        ),
        Rule(
            "memory-unlimited", SERVER, WARN, "No maxmemory on a machine that is nearly full",
            "Without a limit the operating system swaps, or ends the server, when the machine's memory is full.",
            "Set maxmemory below the machine's memory, with room for forks and buffers.",
            {"share": Parameter(Kind.SHARE, 0.6, "Of the machine's memory, resident from here on.")},
            basis="Redis' documentation (Administration) asks for a maxmemory with 10 to 20 % to spare. A fork may "
            "need as much again as is changed meanwhile, so 60 % is our own choice.",
        ),
        Rule(
            "memory-fragmented", SERVER, WARN, "Far more memory taken than used",
            "The operating system sees, and bills, the larger number; activedefrag gives memory back.",
            "Switch activedefrag on, or restart a replica and fail over to it.",
            {
                "ratio": Parameter(Kind.RATIO, 1.5, "Resident over used memory."),
                "least": Parameter(Kind.SIZE, "100M", "Of used memory."),
            },
            basis="Redis' documentation of INFO: a ratio over 1.5 is a sign of fragmentation. Of less than 100 MB the "
            "program itself is the larger part, and after a peak the ratio is high since pages are kept.",
        ),
        Rule(
            "memory-swapped", SERVER, WARN, "Less memory resident than used",
            "Part of it has been swapped out: what needs it waits for the disk, and everybody else with it.",
            "Give the machine more memory, or the server a smaller maxmemory.",
            {
                "ratio": Parameter(Kind.RATIO, 0.9, "Resident over used memory, less than this."),
                "least": Parameter(Kind.SIZE, "100M", "Of used memory."),
            },
            basis="Redis' documentation of MEMORY STATS: a ratio below 1 is a sign of swapping. Memory that was "
            "allocated and never written is not resident either.",
        ),
        Rule(
            "eviction-impossible", SERVER, WARN, "A policy that finds hardly any key to evict",
            "When memory is full, writes fail with OOM although an eviction policy is set.",
            "Give keys that may go a TTL, or choose one of the allkeys policies.",
            {
                "share": Parameter(Kind.SHARE, 0.1, "Of the keys have a TTL, less than this."),
                "keys": Parameter(Kind.COUNT, 1_000, "There are at least so many keys."),
            },
            basis="Policies whose names begin with volatile evict keys with a TTL only, and behave as noeviction where "
            "there is none (redis.conf). The share is our own choice. Only where maxmemory is set.",
        ),
        Rule(
            "eviction-policy", SERVER, OFF, "Another eviction policy than agreed",
            "It decides which keys go when memory is full, and whether writes fail instead.",
            "Set maxmemory-policy as agreed.",
            {"policies": Parameter(Kind.WORDS, ["allkeys-lru", "allkeys-lfu"], "What it may be.")},
            basis="What is agreed stands in the registry.",
        ),
        Rule(
            "eviction-of-lasting", SERVER, WARN, "A policy that may evict keys that must stay",
            "Whoever reads them later finds nothing: a lock is free, a setting is gone.",
            "Keep such keys on a server of their own, or choose volatile-lru or volatile-lfu: keys without TTL stay.",
            basis="Policies whose names begin with allkeys evict any key, and volatile-ttl evicts what expires soonest "
            "first, as locks do (redis.conf). Locks are told by their names (lock-without-ttl), other keys by entries "
            "of the registry whose TTL is none. Needs a report of the keys, and a maxmemory.",
        ),
        Rule(
            "command-banned", SERVER, WARN, "Commands that should not be used have been",
            "KEYS, FLUSHALL and reads without a limit hold up every other client.",
            "Use SCAN in place of KEYS, and forbid these commands with ACL rules.",
            {
                "commands": Parameter(Kind.WORDS, ["keys", "flushall", "flushdb"], "Their names."),
                "calls": Parameter(Kind.COUNT, 10, "At least so many of one command."),
            },
            basis="Calls since the statistics of the server began, by INFO commandstats, which names no client.",
        ),
        Rule(
            "command-slow", SERVER, WARN, "Commands that took long",
            "While one runs, all others wait.",
            "Read in portions (HSCAN, LRANGE), divide what is large, and shorten scripts.",
            {
                "longest": Parameter(Kind.DURATION, "10ms", "More than this is slow."),
                "calls": Parameter(Kind.COUNT, 3, "Of a command and namespace at least, or one ten times as slow."),
                "within": Parameter(Kind.DURATION, "1h", "The last so much of the slow log."),
            },
            basis="slowlog-log-slower-than is 10 ms by default. The slow log keeps the latest entries only "
            "(slowlog-max-len), and counts the time of the command alone, not what it waited.",
        ),
        Rule(
            "key-big-slow", SERVER, WARN, "A big key that commands take long on",
            "The larger it grows, the longer everybody else waits for each such command.",
            "Divide it, read it in portions, and delete it with UNLINK.",
            basis="Keys that the slow log names (command-slow) and a report lists among the biggest of their type.",
        ),
        Rule(
            "expiry-cliff-load", SERVER, WARN, "Load that rises while many keys expire at once",
            "All readers of what has expired ask the database behind at the same moment.",
            "Add a random time to the TTL (jitter) where these keys are written.",
            {"rise": Parameter(Kind.RATIO, 1.5, "Commands a second, or misses a second, over those of the rest.")},
            basis="Cliffs of a report (expiry-cliff) that lie within the samples of the session; the factor is our own "
            "choice.",
        ),
        Rule(
            "hot-key-expiry-near", SERVER, WARN, "A hot key that expires in a moment",
            "Everybody who reads it asks the database behind at once when it is gone.",
            "Renew it before it expires, behind a lock, or answer with the old value meanwhile.",
            {"left": Parameter(Kind.DURATION, "1m", "Less than this is left as of the last sample.")},
            basis="Hot keys of a report by the server's own list or by access counters (hot-key-expiring), with the "
            "time since it was made taken off their TTL: who has renewed one since is not known. Locks are left out.",
        ),
        Rule(
            "hit-ratio-fell", SERVER, WARN, "A hit ratio that fell",
            "What is not found is asked of the database behind: keys expired, were evicted, or never were there.",
            "Look which keys expire or are evicted, and cache also that something is not there (30 seconds).",
            {
                "by": Parameter(Kind.SHARE, 0.2, "Below that since the statistics began."),
                "reads": Parameter(Kind.COUNT, 1_000, "At least so many reads in the session."),
            },
            basis="Of the reads of the session against those since the statistics of the server began, without rtui's "
            "own; both limits are our own choice.",
        ),
        Rule(
            "cpu-saturated", SERVER, WARN, "A server that uses a whole core",
            "Commands are carried out by one thread: when it has no time left, they wait in line.",
            "Look which commands take the time, spread the keys over more nodes, read from replicas.",
            {"share": Parameter(Kind.SHARE, 0.9, "Of one core, by the main thread in the session.")},
            basis="INFO cpu: used_cpu_user_main_thread and used_cpu_sys_main_thread (Redis 6.2, Valkey), of 10 seconds "
            "at least; the share is our own choice.",
        ),
        Rule(
            "connection-churn", SERVER, WARN, "Many connections that are opened and closed again",
            "Each costs the server as much as several commands, with TLS as much as hundreds.",
            "Keep connections open: use a pool, and persistent connections in PHP.",
            {"rate": Parameter(Kind.COUNT, 50, "New connections a second.")},
            basis="In the session, of 10 seconds at least; the limit is our own choice.",
        ),
        Rule(
            "clients-limit", SERVER, WARN, "Connections near their limit, or refused",
            "Whoever connects when maxclients is reached gets an error.",
            "Raise maxclients and the limit of open files, or find who does not close connections.",
            {"share": Parameter(Kind.SHARE, 0.8, "Of maxclients.")},
            basis="Refused are those of the session (rejected_connections); the share is our own choice.",
        ),
        Rule(
            "output-buffers", SERVER, WARN, "Output that clients do not read",
            "It is kept in the server's memory, beside the data.",
            "Find the slow client in CLIENT LIST; client-output-buffer-limit closes such connections.",
            {
                "size": Parameter(Kind.SIZE, "32M", "Of one client."),
                "share": Parameter(Kind.SHARE, 0.8, "Or of the limit of its class; the lower limit counts as it is."),
            },
            basis="By default normal clients have no limit, subscribers 32 MB and replicas 256 MB, or 8 and 64 MB for "
            "60 seconds (redis.conf). CLIENT LIST is not asked where very many clients are connected.",
        ),
        Rule(
            "query-buffers", SERVER, WARN, "Requests that near the limit of their size",
            "What a client sends is kept in the server's memory until it is whole; above the limit it is closed.",
            "Send large values in parts, and shorter pipelines.",
            {"share": Parameter(Kind.SHARE, 0.5, "Of client-query-buffer-limit.")},
            basis="client-query-buffer-limit is 1 GB by default (redis.conf); the share is our own choice. CLIENT LIST "
            "is not asked where very many clients are connected.",
        ),
        Rule(
            "persistence-failing", SERVER, ERROR, "Snapshots or the AOF can't be written",
            "What was written since is lost when the server ends; by default writes fail, too.",
            "Look into the log of the server: mostly the disk is full, or the folder can't be written to.",
            basis="INFO persistence: the status of the last RDB, AOF rewrite and AOF write. Writes fail with MISCONF "
            "where stop-writes-on-bgsave-error is yes.",
        ),
        Rule(
            "fork-slow", SERVER, WARN, "Forks that take long",
            "No command is answered while the process is copied; transparent huge pages make it worse.",
            "Switch transparent huge pages off, and make nodes smaller.",
            {"longest": Parameter(Kind.DURATION, "500ms", "More than this is long.")},
            basis="latest_fork_usec of INFO stats. Redis' documentation (Latency) has 9 to 13 ms a GiB on machines of "
            "their own and on current virtual ones; much more is a sign of huge pages or of an old hypervisor.",
        ),
        Rule(
            "huge-pages", SERVER, WARN, "Transparent huge pages are not switched off",
            "After a fork each change copies 2 MiB in place of 4 KiB: latency and memory rise.",
            "Set disable-thp yes, or echo madvise > /sys/kernel/mm/transparent_hugepage/enabled as root.",
            basis="disable-thp of CONFIG GET, which is yes by default (Redis 6.2, Valkey). What the kernel does rtui "
            "can't see.",
        ),
        Rule(
            "replication-broken", SERVER, ERROR, "A replica without its primary",
            "It serves data that is out of date, and is no use when the primary dies.",
            "Look into the logs of both: network, masterauth, or a full synchronisation that does not come to its end.",
            basis="INFO replication: master_link_status.",
        ),
        Rule(
            "replica-lagging", SERVER, WARN, "A replica that is behind",
            "What is read from it is old, and is lost if it takes over.",
            "Look at its network and load; raise repl-backlog-size, so that it need not begin from the start.",
            {
                "lag": Parameter(Kind.DURATION, "10s", "Since its last acknowledgement, or not online."),
                "backlog": Parameter(Kind.SHARE, 1.0, "Or of the backlog not acknowledged, in the last two samples."),
            },
            basis="By the list of replicas of the primary; replicas acknowledge each second. min-replicas-max-lag is "
            "10 s by default. What is further behind than repl-backlog-size can't go on after its link is lost.",
        ),
        Rule(
            "replica-missing", SERVER, WARN, "A primary that has lost all of its replicas",
            "When it dies nothing takes over.",
            "Look why its replicas have gone.",
            basis="It has a replication backlog, which a server makes for its first replica and keeps for an hour "
            "after the last (repl-backlog-ttl), and no replica is connected.",
        ),
        Rule(
            "backlog-short", SERVER, WARN, "A replication backlog that a short outage exceeds",
            "A replica that was away for longer has to be sent everything, which takes a fork and much network.",
            "Raise repl-backlog-size to what is written in the longest outage that is to be survived.",
            {"least": Parameter(Kind.DURATION, "1m", "It holds less than this of the writes.")},
            basis="repl_backlog_size over the growth of master_repl_offset in the session, of 10 seconds at least. "
            "repl-timeout, 60 s by default, is when an outage is noticed.",
        ),
        Rule(
            "cluster-failing", SERVER, ERROR, "A cluster that does not serve all slots",
            "Commands on keys of these slots fail with CLUSTERDOWN, by default those on all others, too.",
            "Look which nodes are down (CLUSTER NODES), and bring them back or let a replica take over.",
            basis="CLUSTER INFO: cluster_state, slots that are not assigned and slots that fail.",
        ),
        Rule(
            "cluster-node-down", SERVER, WARN, "A node of a cluster that others do not reach",
            "Its shard has one server less; the next one that dies may take slots with it.",
            "Look whether it runs, and whether its bus port can be reached (CLUSTER NODES).",
            basis="CLUSTER NODES of each node: fail, or fail? after cluster-node-timeout without an answer, or a link "
            "that is disconnected; in clusters of up to 100 nodes.",
        ),
        Rule(
            "sentinels-failing", SERVER, WARN, "Sentinels that could not fail over, or do not agree",
            "When the primary dies, no replica takes over.",
            "Look whether the Sentinels run and reach each other (SENTINEL CKQUORUM).",
            basis="SENTINEL MASTERS of each Sentinel of the target: a failover takes the quorum, and a majority of all "
            "that are known (documentation of Sentinel). rtui may not reach one that the others do reach.",
        ),
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
        """Return the severity of a rule; raises KeyError for an unknown id."""
        return self._severities.get(rule, RULES[rule].severity)

    def parameter(self, rule: str, name: str) -> ParameterValue:
        """Return a parameter of a rule; raises KeyError for an unknown name."""
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
        """Return a parameter that is a list of words, as written. Raises TypeError for a number."""
        found = self.parameter(rule, name)
        if not isinstance(found, tuple):
            raise TypeError(f"{rule} {name} is no list")
        return found
