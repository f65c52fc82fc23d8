"""The commands that may be sent to a server: a closed list with bounds, and a builder for each of them.

The functions and `KeyCommand`s here are the only way to a `Command`, and a `Command` is the only thing that a lane
sends. Each builder checks its arguments against the list (`closed_list`) and raises GuardError beyond the bounds; if
the cost depends on the value it demands evidence that the value is small enough (`evidence`). `build_batch` builds the
same command for many keys; `acl` writes the list as the rules of a user.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Final, Literal

from rtui import __version__
from rtui.keyspace.types import VECTOR_SET
from rtui.server.guard.closed_list import CLIENT_NAME, MAX_RANDOM, MAX_SAMPLES
from rtui.server.guard.command import Command, GuardError, KeyCommand, Secret, SecretBytes, build_command
from rtui.server.guard.evidence import (
    ClientsEvidence,
    CollectionEvidence,
    Consent,
    ConsumerEvidence,
    Evidence,
    SlotMetric,
    TypeEvidence,
    VectorEvidence,
    counts_sizes,
)

_UNSENDABLE: Final = re.compile("[\ud800-\udc7f\udd00-\udfff]")
"""Surrogates that do not stand for a byte."""


def _text(value: str) -> bytes:
    """Encode a text whose non-UTF-8 bytes are surrogate escapes, like `os.fsencode`; raises GuardError for others."""
    if _UNSENDABLE.search(value):
        raise GuardError("a text with lone surrogates can't be sent")
    return value.encode("utf-8", "surrogateescape")


def _secret(password: Secret) -> SecretBytes:
    """Encode a password without a variable for it: an error of Python's codecs, or a traceback, would show it."""
    if _UNSENDABLE.search(password.reveal()):
        raise GuardError("a password with lone surrogates can't be sent")
    return SecretBytes(password.reveal().encode("utf-8", "surrogateescape"))


ping: Final = partial(build_command, b"PING")
no_touch: Final = partial(build_command, b"CLIENT", b"NO-TOUCH", b"ON")
set_name: Final = partial(build_command, b"CLIENT", b"SETNAME", CLIENT_NAME.encode())
readonly: Final = partial(build_command, b"READONLY")
dbsize: Final = partial(build_command, b"DBSIZE")
latency_latest: Final = partial(build_command, b"LATENCY", b"LATEST")
cluster_info: Final = partial(build_command, b"CLUSTER", b"INFO")
cluster_slots: Final = partial(build_command, b"CLUSTER", b"SLOTS")
cluster_nodes: Final = partial(build_command, b"CLUSTER", b"NODES")
sentinel_masters: Final = partial(build_command, b"SENTINEL", b"MASTERS")
hotkeys_get: Final = partial(build_command, b"HOTKEYS", b"GET")


def hello(protocol: Literal[2, 3], user: str | None = None, password: Secret | None = None) -> Command:
    """Choose the protocol and, with a password, log in as `user` (the default user when None)."""
    if password is None:
        return build_command(b"HELLO", b"%d" % protocol)
    return build_command(b"HELLO", b"%d" % protocol, b"AUTH", _text(user or "default"), _secret(password))


def auth(user: str | None, password: Secret) -> Command:
    """Log in; without a user in the form that servers before 6.0 know."""
    if user is None:
        return build_command(b"AUTH", _secret(password))
    return build_command(b"AUTH", _text(user), _secret(password))


def select(db: int) -> Command:
    return build_command(b"SELECT", b"%d" % db)


def set_info(attribute: Literal["LIB-NAME", "LIB-VER"]) -> Command:
    """Tell the server the name or the version of this client."""
    value = CLIENT_NAME if attribute == "LIB-NAME" else __version__
    return build_command(b"CLIENT", b"SETINFO", attribute.encode(), value.encode())


def info(section: str) -> Command:
    return build_command(b"INFO", _text(section))


def hotkeys_start(consent: Consent) -> Command:
    """Start a session that measures hot keys and ends by itself, as far as the user has agreed: Redis 8.6."""
    metrics = [metric.encode() for metric in SlotMetric if metric in consent.metrics]
    argv = [b"HOTKEYS", b"START", b"METRICS", b"%d" % len(metrics), *metrics, b"COUNT", b"%d" % consent.count]
    argv += [b"DURATION", b"%d" % consent.duration_s, b"SAMPLE", b"%d" % consent.sample_ratio]
    return build_command(*argv, consent=consent)


def count_keys_in_slot(slot: int) -> Command:
    """Ask for the number of keys in a slot; 0 for a slot of another node."""
    return build_command(b"CLUSTER", b"COUNTKEYSINSLOT", b"%d" % slot)


def slot_stats(metric: Literal["cpu-usec", "key-count"], *, limit: int) -> Command:
    """Ask for the `limit` ≤ 100 slots with the highest `metric`: Redis 8.2, Valkey 8.0."""
    return build_command(b"CLUSTER", b"SLOT-STATS", b"ORDERBY", _text(metric), b"LIMIT", b"%d" % limit, b"DESC")


def config_get(*settings: str) -> Command:
    """Ask for settings of the closed list; several at once need Redis 7.0 or Valkey."""
    return build_command(b"CONFIG", b"GET", *map(_text, settings))


def command_info(*names: bytes) -> Command:
    """Ask for a description of 1 to 8 commands by name."""
    return build_command(b"COMMAND", b"INFO", *names)


def slowlog_get(count: int) -> Command:
    """Read the latest entries of the slow log: count ≤ 128."""
    return build_command(b"SLOWLOG", b"GET", b"%d" % count)


def commandlog_get(count: int, log: Literal["slow", "large-request", "large-reply"]) -> Command:
    """Read the latest entries of one of Valkey's command logs: count ≤ 128; Valkey 8.1."""
    return build_command(b"COMMANDLOG", b"GET", b"%d" % count, _text(log))


def latency_history(event: str) -> Command:
    return build_command(b"LATENCY", b"HISTORY", _text(event))


def client_list(evidence: ClientsEvidence) -> Command:
    """List the connected clients, of which there are at most 1,000."""
    return build_command(b"CLIENT", b"LIST", evidence=evidence)


def scan(cursor: int, *, count: int, match: bytes | None = None, key_type: bytes | None = None) -> Command:
    """List a page of keys: 1 ≤ count ≤ 1000; `key_type` restricts it to one type."""
    argv = [b"SCAN", b"%d" % cursor]
    if match is not None:
        argv += [b"MATCH", match]
    argv += [b"COUNT", b"%d" % count]
    if key_type is not None:
        argv += [b"TYPE", key_type]
    return build_command(*argv)


key_type: Final = KeyCommand("TYPE")
pttl: Final = KeyCommand("PTTL")
exists: Final = KeyCommand("EXISTS")
memory_usage: Final = KeyCommand("MEMORY USAGE")
object_encoding: Final = KeyCommand("OBJECT ENCODING")
object_idletime: Final = KeyCommand("OBJECT IDLETIME")
object_freq: Final = KeyCommand("OBJECT FREQ")

strlen: Final = KeyCommand("STRLEN")
hlen: Final = KeyCommand("HLEN")
llen: Final = KeyCommand("LLEN")
scard: Final = KeyCommand("SCARD")
zcard: Final = KeyCommand("ZCARD")
xlen: Final = KeyCommand("XLEN")
xinfo_stream: Final = KeyCommand("XINFO STREAM")
xinfo_groups: Final = KeyCommand("XINFO GROUPS")
arcount: Final = KeyCommand("ARCOUNT")
arlen: Final = KeyCommand("ARLEN")

vcard: Final = KeyCommand("VCARD")
vinfo: Final = KeyCommand("VINFO")
json_type: Final = KeyCommand("JSON.TYPE")
json_objlen: Final = KeyCommand("JSON.OBJLEN")
json_arrlen: Final = KeyCommand("JSON.ARRLEN")
json_strlen: Final = KeyCommand("JSON.STRLEN")
ts_info: Final = KeyCommand("TS.INFO")
bf_info: Final = KeyCommand("BF.INFO")
cf_info: Final = KeyCommand("CF.INFO")
cms_info: Final = KeyCommand("CMS.INFO")
topk_info: Final = KeyCommand("TOPK.INFO")
tdigest_info: Final = KeyCommand("TDIGEST.INFO")


def memory_usage_of(key: bytes, evidence: TypeEvidence) -> Command:
    """Ask for the memory of a key before its value is read: exact up to 1,000 elements, even on servers that sample."""
    is_sampled = not counts_sizes(evidence.product, evidence.version) or evidence.key_type == VECTOR_SET.name
    is_sampled = is_sampled and evidence.product in ("redis", "valkey")
    samples = (b"SAMPLES", b"%d" % MAX_SAMPLES) if is_sampled and evidence.version is not None else ()
    return build_command(b"MEMORY", b"USAGE", key, *samples, evidence=evidence)


def getrange(key: bytes, start: int, end: int) -> Command:
    """Read the bytes from `start` to `end`, both included: at most 64 KiB."""
    return build_command(b"GETRANGE", key, b"%d" % start, b"%d" % end)


def _page(cursor: int, count: int, match: bytes | None) -> tuple[bytes, ...]:
    """Return the arguments of a page of elements, of all or of matching ones."""
    only = () if match is None else (b"MATCH", match)
    return (b"%d" % cursor, *only, b"COUNT", b"%d" % count)


def hscan(
    key: bytes,
    cursor: int,
    *,
    count: int,
    evidence: CollectionEvidence,
    novalues: bool = False,
    match: bytes | None = None,
) -> Command:
    """List a page of a hash: count ≤ 100; `novalues` needs Redis 7.4 or Valkey 8.0, `match` is a pattern of names."""
    after = [b"NOVALUES"] if novalues else []
    return build_command(b"HSCAN", key, *_page(cursor, count, match), *after, evidence=evidence)


def hrandfield(key: bytes, count: int, *, evidence: CollectionEvidence, withvalues: bool = False) -> Command:
    """Read up to 50 random fields, none twice."""
    return build_command(b"HRANDFIELD", key, b"%d" % count, *([b"WITHVALUES"] if withvalues else []), evidence=evidence)


def hmget(key: bytes, *fields: bytes, evidence: CollectionEvidence | None = None) -> Command:
    """Read the values of 1 to 100 fields."""
    return build_command(b"HMGET", key, *fields, evidence=evidence)


def hstrlens(key: bytes, *fields: bytes, evidence: CollectionEvidence | None = None) -> tuple[Command, ...]:
    """Ask for the sizes of field values in bytes, one command a field; the evidence bounds them together."""
    if evidence is not None and len(fields) > evidence.look_ups:
        raise GuardError(f"HSTRLEN is not sent: {len(fields)} look-ups in a hash where {evidence.look_ups} are allowed")
    return tuple(build_command(b"HSTRLEN", key, name, evidence=evidence) for name in fields)


def hpttl(key: bytes, *fields: bytes, evidence: Evidence | None = None) -> Command:
    """Ask for the TTLs of 1 to 100 fields in milliseconds: Redis 7.4, Valkey 9.0."""
    return build_command(b"HPTTL", key, b"FIELDS", b"%d" % len(fields), *fields, evidence=evidence)


def lrange(key: bytes, start: int, stop: int) -> Command:
    """Read the elements from `start` to `stop`, both included: at most 100."""
    return build_command(b"LRANGE", key, b"%d" % start, b"%d" % stop)


def sscan(
    key: bytes, cursor: int, *, count: int, evidence: CollectionEvidence | None = None, match: bytes | None = None
) -> Command:
    """List a page of a set: count ≤ 100; `match` is a pattern of members."""
    return build_command(b"SSCAN", key, *_page(cursor, count, match), evidence=evidence)


def sismember(key: bytes, member: bytes, *, evidence: CollectionEvidence | None = None) -> Command:
    return build_command(b"SISMEMBER", key, member, evidence=evidence)


def srandmember(key: bytes, count: int, *, evidence: CollectionEvidence | None = None) -> Command:
    """Read up to 50 random members, none twice."""
    return build_command(b"SRANDMEMBER", key, b"%d" % count, evidence=evidence)


def zrange(key: bytes, start: int, stop: int) -> Command:
    """Read members and scores of the ranks from `start` to `stop`, both included: at most 100."""
    return build_command(b"ZRANGE", key, b"%d" % start, b"%d" % stop, b"WITHSCORES")


def zscan(key: bytes, cursor: int, *, count: int, evidence: CollectionEvidence, match: bytes) -> Command:
    """List a page of a sorted set, restricted to members that match a pattern, with scores: count ≤ 100."""
    return build_command(b"ZSCAN", key, *_page(cursor, count, match), evidence=evidence)


def zrank(key: bytes, member: bytes, *, evidence: CollectionEvidence) -> Command:
    return build_command(b"ZRANK", key, member, evidence=evidence)


def zcount_below(key: bytes, score: float, *, including: bool = False, evidence: CollectionEvidence) -> Command:
    """Ask for the number of members with a lower score, or with `including` also with this score."""
    bound = (b"" if including else b"(") + score_bytes(score)
    return build_command(b"ZCOUNT", key, b"-inf", bound, evidence=evidence)


def score_bytes(score: float) -> bytes:
    """Write a score as the closed list accepts it."""
    if score in (float("inf"), float("-inf")):
        return b"+inf" if score > 0 else b"-inf"
    return repr(score).encode()


def zlexcount_below(key: bytes, member: bytes, *, including: bool = False, evidence: CollectionEvidence) -> Command:
    """Ask for the number of members before one by bytes; meaningful only if all scores are equal."""
    return build_command(b"ZLEXCOUNT", key, b"-", (b"[" if including else b"(") + member, evidence=evidence)


def xinfo_consumers(key: bytes, group: bytes, evidence: ConsumerEvidence | None = None) -> Command:
    return build_command(b"XINFO", b"CONSUMERS", key, group, evidence=evidence)


def xrevrange(key: bytes, end: bytes, start: bytes, *, count: int) -> Command:
    """Read up to 100 entries from `end` backwards."""
    return build_command(b"XREVRANGE", key, end, start, b"COUNT", b"%d" % count)


def xpending(key: bytes, group: bytes, evidence: ConsumerEvidence | None = None) -> Command:
    """Ask for the summary of a group's pending entries."""
    return build_command(b"XPENDING", key, group, evidence=evidence)


def vrange(key: bytes, start: bytes, *, count: int) -> Command:
    """List up to 100 elements of a vector set by name: from `-`, or behind `(` and a name; Redis 8.4."""
    return build_command(b"VRANGE", key, start, b"+", b"%d" % count)


def vrandmember(key: bytes, count: int) -> Command:
    """List up to 50 random elements of a vector set, none twice."""
    return build_command(b"VRANDMEMBER", key, b"%d" % min(MAX_RANDOM, count))


def vgetattr(key: bytes, element: bytes) -> Command:
    return build_command(b"VGETATTR", key, element)


def vemb(key: bytes, element: bytes, evidence: VectorEvidence) -> Command:
    return build_command(b"VEMB", key, element, evidence=evidence)


def arscan(key: bytes, start: int, end: int, *, limit: int) -> Command:
    """Read up to 100 existing elements between two indexes, with their indexes: Redis 8.8."""
    return build_command(b"ARSCAN", key, b"%d" % start, b"%d" % end, b"LIMIT", b"%d" % limit)
