"""The builders: one a command. Each goes through the check of the closed list and raises GuardError beyond it."""

from __future__ import annotations

import re
from typing import Final, Literal, Protocol

from rtui import __version__
from rtui.server.guard.batch import PerKey
from rtui.server.guard.command import Command, GuardError, HiddenBytes, checked
from rtui.server.guard.connection_entries import CLIENT_NAME
from rtui.server.guard.evidence import CollectionEvidence, ConsumerEvidence, Evidence
from rtui.server.guard.spec import Consent, Metric

_UNSENDABLE: Final = re.compile("[\ud800-\udc7f\udd00-\udfff]")
"""Surrogates that stand for no byte."""


class Password(Protocol):
    """What a password comes in: shown as dots, given only on request."""

    def reveal(self) -> str:
        """Give the password itself."""


def _number(value: int) -> bytes:
    return b"%d" % value


def _text(value: str) -> bytes:
    """Give the bytes of a text; those that were not UTF-8 are surrogate escapes, as `os.fsencode` has them."""
    if _UNSENDABLE.search(value):
        raise GuardError("a text with lone surrogates can't be sent")
    return value.encode("utf-8", "surrogateescape")


def _secret(password: Password) -> HiddenBytes:
    """The same for a password, kept out of variables and errors: an error of Python's codecs holds the whole text."""
    if _UNSENDABLE.search(password.reveal()):
        raise GuardError("a password with lone surrogates can't be sent")
    return HiddenBytes(password.reveal().encode("utf-8", "surrogateescape"))


def ping() -> Command:
    """Ask whether the server answers."""
    return checked(b"PING")


def hello(protocol: Literal[2, 3], user: str | None = None, password: Password | None = None) -> Command:
    """Choose the protocol and, with a password, log in as `user` (the default user when None)."""
    if password is None:
        return checked(b"HELLO", _number(protocol))
    return checked(b"HELLO", _number(protocol), b"AUTH", _text(user or "default"), _secret(password))


def auth(user: str | None, password: Password) -> Command:
    """Log in; without a user in the form that servers before 6.0 know."""
    if user is None:
        return checked(b"AUTH", _secret(password))
    return checked(b"AUTH", _text(user), _secret(password))


def select(db: int) -> Command:
    """Choose a database by its number."""
    return checked(b"SELECT", _number(db))


def set_name() -> Command:
    """Name the connection `rtui`."""
    return checked(b"CLIENT", b"SETNAME", CLIENT_NAME)


def set_info(attribute: Literal["LIB-NAME", "LIB-VER"]) -> Command:
    """Tell the server the name or the version of this client."""
    value = CLIENT_NAME if attribute == "LIB-NAME" else __version__.encode()
    return checked(b"CLIENT", b"SETINFO", attribute.encode(), value)


def no_touch() -> Command:
    """Make reading on this connection leave idle times and frequencies as they are."""
    return checked(b"CLIENT", b"NO-TOUCH", b"ON")


def readonly() -> Command:
    """Let a replica of a cluster answer reads on this connection."""
    return checked(b"READONLY")


def client_info() -> Command:
    """Ask what the server knows about this connection."""
    return checked(b"CLIENT", b"INFO")


def info(section: str) -> Command:
    """Ask for one section of INFO."""
    return checked(b"INFO", _text(section))


def dbsize() -> Command:
    """Ask how many keys the database has, expired ones included."""
    return checked(b"DBSIZE")


def cluster_info() -> Command:
    """Ask for the summary of the cluster."""
    return checked(b"CLUSTER", b"INFO")


def cluster_nodes() -> Command:
    """Ask for the nodes of the cluster and their slots."""
    return checked(b"CLUSTER", b"NODES")


def hotkeys_get() -> Command:
    """Ask for the server's own report on hot keys: Redis 8.6, Valkey 9.2."""
    return checked(b"HOTKEYS", b"GET")


def hotkeys_start(consent: Consent) -> Command:
    """Start a session that measures hot keys and ends by itself, as far as the user has agreed: Redis 8.6."""
    metrics = [metric.encode() for metric in Metric if metric in consent.metrics]
    argv = [b"HOTKEYS", b"START", b"METRICS", _number(len(metrics)), *metrics, b"COUNT", _number(consent.count)]
    argv += [b"DURATION", _number(consent.duration_s), b"SAMPLE", _number(consent.sample_ratio)]
    return checked(*argv, consent=consent)


def slot_stats(metric: Literal["cpu-usec", "key-count"], *, limit: int) -> Command:
    """Ask for the slots with most of `metric`: limit ≤ 100; Redis 8.2, Valkey 8.0."""
    return checked(b"CLUSTER", b"SLOT-STATS", b"ORDERBY", _text(metric), b"LIMIT", _number(limit), b"DESC")


def config_get(setting: Literal["lfu-log-factor", "lfu-decay-time"]) -> Command:
    """Ask for one setting."""
    return checked(b"CONFIG", b"GET", _text(setting))


def scan(cursor: int, *, count: int, match: bytes | None = None, kind: bytes | None = None) -> Command:
    """List a page of keys: 1 ≤ count ≤ 1000; `kind` is a type name."""
    argv = [b"SCAN", _number(cursor)]
    if match is not None:
        argv += [b"MATCH", match]
    argv += [b"COUNT", _number(count)]
    if kind is not None:
        argv += [b"TYPE", kind]
    return checked(*argv)


key_type: Final = PerKey("TYPE")
pttl: Final = PerKey("PTTL")
exists: Final = PerKey("EXISTS")
memory_usage: Final = PerKey("MEMORY USAGE")
object_encoding: Final = PerKey("OBJECT ENCODING")
object_idletime: Final = PerKey("OBJECT IDLETIME")
object_freq: Final = PerKey("OBJECT FREQ")

strlen: Final = PerKey("STRLEN")
hlen: Final = PerKey("HLEN")
llen: Final = PerKey("LLEN")
scard: Final = PerKey("SCARD")
zcard: Final = PerKey("ZCARD")
xlen: Final = PerKey("XLEN")
xinfo_stream: Final = PerKey("XINFO STREAM")
xinfo_groups: Final = PerKey("XINFO GROUPS")
arcount: Final = PerKey("ARCOUNT")
arlen: Final = PerKey("ARLEN")

vcard: Final = PerKey("VCARD")
vinfo: Final = PerKey("VINFO")
json_type: Final = PerKey("JSON.TYPE")
json_objlen: Final = PerKey("JSON.OBJLEN")
json_arrlen: Final = PerKey("JSON.ARRLEN")
json_strlen: Final = PerKey("JSON.STRLEN")
ts_info: Final = PerKey("TS.INFO")
bf_info: Final = PerKey("BF.INFO")
cf_info: Final = PerKey("CF.INFO")
cms_info: Final = PerKey("CMS.INFO")
topk_info: Final = PerKey("TOPK.INFO")
tdigest_info: Final = PerKey("TDIGEST.INFO")


def getrange(key: bytes, start: int, end: int) -> Command:
    """Read the bytes from `start` to `end`, both included: at most 64 KiB."""
    return checked(b"GETRANGE", key, _number(start), _number(end))


def hscan(
    key: bytes, cursor: int, *, count: int, novalues: bool = False, evidence: CollectionEvidence | None = None
) -> Command:
    """List a page of a hash: count ≤ 100; `novalues` needs Redis 7.4 or Valkey 8.0."""
    after = [b"NOVALUES"] if novalues else []
    return checked(b"HSCAN", key, _number(cursor), b"COUNT", _number(count), *after, evidence=evidence)


def hrandfield(
    key: bytes, count: int, *, withvalues: bool = False, evidence: CollectionEvidence | None = None
) -> Command:
    """Read up to 50 random fields, none twice."""
    return checked(b"HRANDFIELD", key, _number(count), *([b"WITHVALUES"] if withvalues else []), evidence=evidence)


def hmget(key: bytes, *fields: bytes, evidence: CollectionEvidence | None = None) -> Command:
    """Read the values of 1 to 100 fields."""
    return checked(b"HMGET", key, *fields, evidence=evidence)


def hstrlens(key: bytes, *fields: bytes, evidence: CollectionEvidence | None = None) -> tuple[Command, ...]:
    """Ask for the sizes of the values of fields in bytes, one command a field, bounded together."""
    if evidence is not None and len(fields) > evidence.look_ups:
        raise GuardError(f"HSTRLEN is not sent: {len(fields)} look-ups in a hash where {evidence.look_ups} are allowed")
    return tuple(checked(b"HSTRLEN", key, name, evidence=evidence) for name in fields)


def hpttl(key: bytes, *fields: bytes, evidence: Evidence | None = None) -> Command:
    """Ask for the time to live of 1 to 100 fields in milliseconds: Redis 7.4, Valkey 9.0."""
    return checked(b"HPTTL", key, b"FIELDS", _number(len(fields)), *fields, evidence=evidence)


def lrange(key: bytes, start: int, stop: int) -> Command:
    """Read the elements from `start` to `stop`, both included: at most 100."""
    return checked(b"LRANGE", key, _number(start), _number(stop))


def sscan(key: bytes, cursor: int, *, count: int, evidence: CollectionEvidence | None = None) -> Command:
    """List a page of a set: count ≤ 100."""
    return checked(b"SSCAN", key, _number(cursor), b"COUNT", _number(count), evidence=evidence)


def srandmember(key: bytes, count: int, *, evidence: CollectionEvidence | None = None) -> Command:
    """Read up to 50 random members, none twice."""
    return checked(b"SRANDMEMBER", key, _number(count), evidence=evidence)


def zrange(key: bytes, start: int, stop: int) -> Command:
    """Read members and scores of the ranks from `start` to `stop`, both included: at most 100."""
    return checked(b"ZRANGE", key, _number(start), _number(stop), b"WITHSCORES")


def xinfo_consumers(key: bytes, group: bytes, evidence: ConsumerEvidence | None = None) -> Command:
    """List the consumers of one group."""
    return checked(b"XINFO", b"CONSUMERS", key, group, evidence=evidence)


def xrevrange(key: bytes, end: bytes, start: bytes, *, count: int) -> Command:
    """Read up to 100 entries from `end` backwards."""
    return checked(b"XREVRANGE", key, end, start, b"COUNT", _number(count))


def xpending(key: bytes, group: bytes, evidence: ConsumerEvidence | None = None) -> Command:
    """Ask for the summary of what a group has pending."""
    return checked(b"XPENDING", key, group, evidence=evidence)


def arscan(key: bytes, start: int, end: int, *, limit: int) -> Command:
    """Read up to 100 elements that are there between two indexes, with their indexes: Redis 8.8."""
    return checked(b"ARSCAN", key, _number(start), _number(end), b"LIMIT", _number(limit))
