"""A second opinion on what is harmless, written without the guard: plain rules, one a command."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain, product

from rtui.server.guard.closed_list import MAX_CURSOR
from rtui.server.guard.evidence import (
    AbsentKey,
    ClientsEvidence,
    CollectionEvidence,
    ConsumerEvidence,
    EntryEvidence,
    Evidence,
    GroupEvidence,
    TypeEvidence,
    VectorEvidence,
)
from rtui.server.guard.spec import (
    KEY,
    MAX_INDEX,
    Checked,
    Element,
    IndexRange,
    Integer,
    Keyword,
    Optional,
    Repeated,
    Spec,
)

ABOUT_A_KEY = {
    *(b"TYPE", b"PTTL", b"EXISTS", b"STRLEN", b"HLEN", b"LLEN", b"SCARD", b"ZCARD", b"XLEN", b"ARCOUNT", b"ARLEN"),
    *(b"VCARD", b"VINFO", b"JSON.TYPE", b"JSON.OBJLEN", b"JSON.ARRLEN", b"JSON.STRLEN", b"TS.INFO"),
    *(b"BF.INFO", b"CF.INFO", b"CMS.INFO", b"TOPK.INFO", b"TDIGEST.INFO"),
}
"""Commands of one key that answer in constant time."""

SUB_ABOUT_A_KEY = {
    *((b"OBJECT", word) for word in (b"ENCODING", b"IDLETIME", b"FREQ")),
    *((b"XINFO", word) for word in (b"STREAM", b"GROUPS")),
    (b"MEMORY", b"USAGE"),
}
"""The same with a subcommand."""

ALONE = {
    *((b"PING",), (b"DBSIZE",), (b"READONLY",), (b"CLUSTER", b"INFO"), (b"CLUSTER", b"NODES"), (b"CLUSTER", b"SLOTS")),
    (b"HOTKEYS", b"GET"),
    (b"SENTINEL", b"MASTERS"),
    *((b"CLIENT", b"LIST"), (b"LATENCY", b"LATEST")),
}
"""Commands that take nothing, or one of a few words."""

SLOTS_BY = {b"key-count", b"cpu-usec"}
"""What slots are ordered by."""

SECTIONS = set(
    b"server clients memory persistence stats replication cpu cluster keyspace "
    b"commandstats latencystats errorstats keysizes hotkeys".split()
)
"""Sections of INFO, none of which walks over keys or clients."""

SECRETS = re.compile(rb"pass|auth|user$|acl|cert|dir|file$|bind|port|socket|announce|seed|replicaof|slaveof|tls")
"""What names of settings have in them that hold passwords, paths, addresses or the seed of hashes."""


def between(text: bytes, low: int, high: int) -> bool:
    """Whether the text is plain digits and its number between the two, both included."""
    return text.isdigit() and text.isascii() and low <= int(text) <= high


def near(first: bytes, last: bytes, most: int) -> bool:
    """Whether two indexes from the front span at most so many."""
    ends = between(first, 0, 2**63 - 1) and between(last, 0, 2**63 - 1)
    return ends and 0 <= int(last) - int(first) < most


def is_harmless(argv: Sequence[bytes]) -> bool:
    """Whether a command line neither writes nor blocks, and asks for little."""
    if sum(map(len, argv)) > 2 * 2**20:
        return False
    words = tuple(argv)
    judges = (_of_connection, _of_load, _of_key, _of_collection, _of_stream, _of_vectors)
    return words in ALONE or any(judge(words) for judge in judges)


def _of_load(words: tuple[bytes, ...]) -> bool:  # noqa: PLR0911 - a rule a line
    match words:
        case (b"SLOWLOG", b"GET", count):
            return between(count, 1, 128)
        case (b"COMMANDLOG", b"GET", count, b"slow" | b"large-request" | b"large-reply"):
            return between(count, 1, 128)
        case (b"LATENCY", b"HISTORY", event):
            return re.fullmatch(rb"[A-Za-z0-9_-]{1,32}", event) is not None
        case (b"CONFIG", b"GET", *names):
            return 1 <= len(names) <= 100 and all(map(_is_open_setting, names))
        case (b"COMMAND", b"INFO", *names):
            return 1 <= len(names) <= 8 and max(map(len, names)) <= 64
        case (b"SENTINEL", b"GET-MASTER-ADDR-BY-NAME", service):
            return len(service) <= 256
        case (b"CLUSTER", b"SLOT-STATS", b"ORDERBY", metric, b"LIMIT", count, b"DESC"):
            return metric in SLOTS_BY and between(count, 1, 100)
        case (b"CLUSTER", b"COUNTKEYSINSLOT", slot):
            return between(slot, 0, 16_383)
        case (b"HOTKEYS", b"START", *options):
            return not any(b" " in option for option in options) and _bounded_session(b" ".join(options))
    return False


def _is_open_setting(name: bytes) -> bool:
    """Whether a name is that of one setting, and of one that anybody may see."""
    return re.fullmatch(rb"[a-z][a-z0-9-]+", name) is not None and SECRETS.search(name) is None


def _bounded_session(options: bytes) -> bool:
    found = re.fullmatch(rb"METRICS (?:1 CPU|1 NET|2 CPU NET) COUNT (\d+) DURATION (\d+) SAMPLE (\d+)", options)
    if found is None:
        return False
    count, seconds, ratio = map(int, found.groups())
    return 1 <= count <= 64 and 1 <= seconds <= 3600 and 10 <= ratio <= 10_000


def _of_connection(words: tuple[bytes, ...]) -> bool:  # noqa: PLR0911 - a rule a line
    match words:
        case (b"HELLO", protocol):
            return protocol in (b"2", b"3")
        case (b"HELLO", protocol, b"AUTH", user, password):
            return protocol in (b"2", b"3") and len(user) <= 256 and len(password) <= 4096
        case (b"AUTH", password):
            return len(password) <= 4096
        case (b"AUTH", user, password):
            return len(user) <= 256 and len(password) <= 4096
        case (b"SELECT", db):
            return between(db, 0, 2**31 - 1)
        case (b"CLIENT", b"SETNAME", b"rtui") | (b"CLIENT", b"NO-TOUCH", b"ON"):
            return True
        case (b"CLIENT", b"SETINFO", b"LIB-NAME", b"rtui"):
            return True
        case (b"CLIENT", b"SETINFO", b"LIB-VER", version):
            return len(version) <= 32 and all(32 < byte < 127 for byte in version)
        case (b"INFO", section):
            return section in SECTIONS
    return False


def _of_key(words: tuple[bytes, ...]) -> bool:
    match words:
        case (b"SCAN", cursor, *options):
            return between(cursor, 0, 2**64 - 1) and _scan_options(options)
        case (word, key) if word in ABOUT_A_KEY:
            return len(key) <= 2**20
        case (word, sub, key) if (word, sub) in SUB_ABOUT_A_KEY:
            return len(key) <= 2**20
        case (b"GETRANGE", key, first, last):
            return len(key) <= 2**20 and near(first, last, 65_536)
    return False


def _scan_options(options: list[bytes]) -> bool:
    given = dict(zip(options[::2], options[1::2], strict=False))
    if len(given) * 2 != len(options) or not given.keys() <= {b"MATCH", b"COUNT", b"TYPE"}:
        return False
    pattern = given.get(b"MATCH", b"")
    stars = re.sub(rb"(?s)\\.", b"", pattern).count(b"*")
    return between(given.get(b"COUNT", b""), 1, 1000) and len(pattern) <= 512 and stars <= 16


def _of_collection(words: tuple[bytes, ...]) -> bool:  # noqa: PLR0911 - a rule a line
    if len(words) < 3 or len(words[1]) > 2**20:
        return False
    match words[:1] + words[2:]:
        case (b"HSCAN" | b"SSCAN" | b"ZSCAN", cursor, *options):
            if words[0] == b"HSCAN" and options[-1:] == [b"NOVALUES"]:
                options = options[:-1]
            return between(cursor, 0, 2**64 - 1) and _element_options(options)
        case (b"ZCOUNT" | b"ZLEXCOUNT", low, high):
            is_end = _is_score if words[0] == b"ZCOUNT" else _is_lex_end
            return is_end(low) and is_end(high)
        case (b"HRANDFIELD" | b"SRANDMEMBER", count) | (b"HRANDFIELD", count, b"WITHVALUES"):
            return between(count, 1, 50)
        case (b"HMGET", *fields):
            return 1 <= len(fields) <= 100
        case (b"HSTRLEN" | b"SISMEMBER" | b"ZRANK", _):
            return True
        case (b"HPTTL", b"FIELDS", count, *fields):
            return between(count, 1, 100) and int(count) == len(fields)
        case (b"LRANGE", first, last) | (b"ZRANGE", first, last, b"WITHSCORES"):
            return near(first, last, 100)
        case (b"ARSCAN", first, last, b"LIMIT", count):
            return between(first, 0, 2**64 - 2) and between(last, 0, 2**64 - 2) and between(count, 1, 100)
    return False


def _element_options(options: Sequence[bytes]) -> bool:
    """Whether they are those of a scan over elements: COUNT of at most 100, and perhaps a pattern before it."""
    match options:
        case (b"COUNT", count):
            return between(count, 1, 100)
        case (b"MATCH", _, b"COUNT", count):
            return between(count, 1, 100) and _scan_options(list(options))
    return False


def _is_score(text: bytes) -> bool:
    """Whether it is a number, written without blanks or words but infinity, with a parenthesis before it or without."""
    text = text.removeprefix(b"(")
    if text in (b"-inf", b"+inf"):
        return True
    try:
        float(text)
    except ValueError:
        return False
    return set(text) <= set(b"0123456789.e+-")


def _is_lex_end(text: bytes) -> bool:
    """Whether it is an end of a range of members."""
    return text in (b"-", b"+") or text[:1] in (b"[", b"(")


def _of_vectors(words: tuple[bytes, ...]) -> bool:
    match words:
        case (b"VRANGE", key, start, b"+", count):
            return len(key) <= 2**20 and _is_lex_end(start) and between(count, 1, 100)
        case (b"VRANDMEMBER", key, count):
            return len(key) <= 2**20 and between(count, 1, 50)
        case (b"VGETATTR" | b"VEMB", key, element):
            return len(key) <= 2**20 and len(element) <= 65_536
    return False


def _of_stream(words: tuple[bytes, ...]) -> bool:
    match words:
        case (b"MEMORY", b"USAGE", key, b"SAMPLES", samples):
            return len(key) <= 2**20 and between(samples, 1, 1000)
        case (b"XINFO", b"CONSUMERS", key, group) | (b"XPENDING", key, group):
            return len(key) <= 2**20 and len(group) <= 65_536
        case (b"XREVRANGE", key, _, _, b"COUNT", count):
            return len(key) <= 2**20 and between(count, 1, 100)
    return False


COSTLY = {
    *((b"MEMORY", b"USAGE"), (b"HSCAN",), (b"SSCAN",), (b"HRANDFIELD",), (b"SRANDMEMBER",), (b"HMGET",), (b"HSTRLEN",)),
    *((b"ZSCAN",), (b"SISMEMBER",), (b"ZRANK",), (b"ZCOUNT",), (b"ZLEXCOUNT",)),
    *(
        (b"CLIENT", b"LIST"), (b"HPTTL",), (b"VEMB",), (b"XINFO", b"STREAM"), (b"XINFO", b"GROUPS"),
        (b"XINFO", b"CONSUMERS"), (b"XPENDING",),
    ),
}  # fmt: skip
"""Commands whose cost depends on the value."""

OF_REDIS = {b"string", b"list", b"hash", b"set", b"zset", b"stream", b"array", b"vectorset"}
"""Types that no module brings."""


def is_costly(argv: Sequence[bytes]) -> bool:
    """Whether something has to be known of the value first."""
    return tuple(argv[:1]) in COSTLY or tuple(argv[:2]) in COSTLY


def is_known_to_be_cheap(argv: Sequence[bytes], known: Evidence | None) -> bool:  # noqa: PLR0911 - a rule a line
    """Whether a costly command may be sent for one key of which this is known."""
    words = tuple(argv)
    match known:
        case AbsentKey():
            return (words[2] if words[0] in (b"MEMORY", b"XINFO") else words[1]) == b"rtui:no-such-key"
        case ClientsEvidence(connected=connected) if words == (b"CLIENT", b"LIST"):
            return connected is not None and 0 <= connected <= 1000
        case TypeEvidence(key_type=key_type) if words[:2] == (b"MEMORY", b"USAGE"):
            return key_type in OF_REDIS
        case EntryEvidence(mean_bytes=mean) if words[:2] == (b"XINFO", b"STREAM"):
            return mean is not None and mean <= 65_536
        case VectorEvidence(dimensions=dimensions) if words[0] == b"VEMB":
            return dimensions is not None and 0 < dimensions <= 4096
        case GroupEvidence(groups=groups) if words[:2] == (b"XINFO", b"GROUPS"):
            return 0 <= groups <= 100
        case ConsumerEvidence(consumers=count) if words[0] == b"XPENDING" or words[:2] == (b"XINFO", b"CONSUMERS"):
            return 0 <= count <= 100
        case CollectionEvidence():
            return _collection_is_cheap(words, known)
    return False


def _collection_is_cheap(words: tuple[bytes, ...], known: CollectionEvidence) -> bool:
    is_table = known.encoding in (b"hashtable", b"skiplist")
    least_bytes = 2**62 if known.memory_bytes is None else known.memory_bytes
    elements = known.length if known.length is not None and known.length >= 0 else least_bytes // 4
    match words:
        case (b"SISMEMBER" | b"ZRANK" | b"ZCOUNT", *_):
            return is_table or elements <= 50_000
        case (b"ZLEXCOUNT", *_):
            return is_table or elements <= 25_000
        case (b"HSCAN" | b"SSCAN" | b"ZSCAN", *_):
            return is_table or least_bytes <= 262_144 or (known.memory_bytes is None and elements <= 10)
        case (b"HRANDFIELD" | b"SRANDMEMBER", *_):
            return is_table or known.encoding == b"intset" or elements <= 50_000
        case (b"HMGET" | b"HSTRLEN", _, *fields) | (b"HPTTL", _, _, _, *fields):
            return is_table or len(fields) * elements <= 50_000
    return False


Samples = tuple[tuple[bytes, ...], ...]
"""Ways to fill a shape: each is a run of arguments."""

EXAMPLES = {
    "user": (b"default",), "password": (b"password",), "field": (b"field",), "member": (b"member",),
    "min": (b"-inf", b"(1.5"), "max": (b"+inf", b"-2e+100"), "from": (b"-", b"[a"), "to": (b"+", b"(b"),
    "group": (b"group",), "version": (b"1.0.0",), "cursor": (b"0", b"%d" % MAX_CURSOR), "pattern": (b"user:*",),
    "type": (b"hash",), "end": (b"+",), "start": (b"-",), "service": (b"mymaster",), "name": (b"get",),
    "setting": (b"maxmemory",), "event": (b"command",),
}  # fmt: skip
"""Arguments that fit, by what a manual calls them."""


def samples(spec: Spec, key: bytes) -> Samples:
    """Whole command lines that fit, at the upper limits where numbers are meant."""
    return tuple((*spec.words, *arguments) for arguments in _combined(spec.shape, key))


def _combined(elements: tuple[Element, ...], key: bytes) -> Samples:
    ways = product(*(_of_element(element, key) for element in elements))
    return tuple(tuple(chain.from_iterable(way)) for way in ways)


def _of_element(element: Element, key: bytes) -> Samples:  # noqa: PLR0911 - a kind of element a line
    if element is KEY:
        return ((key,),)
    match element:
        case Checked(usage=name):
            return tuple((example,) for example in EXAMPLES[name])
        case Keyword(choices=choices):
            return choices
        case Integer(high=high):
            return ((b"%d" % high,),)
        case IndexRange(most=most):
            return ((b"0", b"%d" % (most - 1)), (b"%d" % (MAX_INDEX - most + 1), b"%d" % MAX_INDEX))
        case Optional(elements=elements):
            return ((), *_combined(elements, key))
        case Repeated(element=repeated, most=most, counted=True):
            one = _of_element(repeated, key)[0]
            return ((b"1", *one), (b"%d" % most, *one * most))
        case Repeated(element=repeated, most=most):
            ones = _of_element(repeated, key)
            return (*ones, ones[0] * most)
    raise AssertionError(f"no sample of {element}")
