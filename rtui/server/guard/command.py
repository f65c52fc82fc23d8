"""Commands, the only thing that a lane sends: one or more requests that the closed list admits, already packed.

A Command comes out of `build_command` or `build_batch`, and nothing else can make one. Both check the whole command
line against the list, with its bounds, and demand the user's consent or the evidence that the entry requires.

`build_batch` packs the same constant-time commands for many keys as one byte string. A request for a key differs from
the next one only in the key and its length. `TYPE` of `a` and of `user:1` goes out as `*2 $4 TYPE $1 a *2 $4 TYPE $6
user:1`, with CRLF after each part. So it checks the commands and the lengths of all keys once, packs the end of each
request, `$1 a` without the mark, and interleaves these with the bytes that come before: a list of two parts for each
request, filled by slices, without a Python loop over the keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from functools import lru_cache
from typing import Final, NoReturn, final

from rtui.server.guard.closed_list import MAX_CURSOR, MAX_SCAN_COUNT, TABLE
from rtui.server.guard.evidence import AbsentKey, Consent, Evidence
from rtui.server.guard.spec import Spec

MASK: Final = "•••"
"""Shown in place of a password."""


@final
class Secret:
    """A password. Only `reveal()` returns it: repr, str and format show a mask, and it can't be pickled."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the password; bytes that are not UTF-8 are surrogate escapes, as in `os.fsencode`."""
        return self._value

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        return self._value == other._value if isinstance(other, Secret) else NotImplemented

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __repr__(self) -> str:
        return MASK

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(MASK, spec)

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: object) -> Secret:
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a secret can't be pickled")


MAX_BULK_KEY_BYTES: Final = 64 * 1024
"""The longest key in a batch: reading and hashing a longer name costs the server more than its reply is worth."""

MAX_BATCH_KEYS: Final = 2000
"""The most keys in one batch: a page of the largest scan, and as many again that its last bucket may add."""

MAX_BATCH_BYTES: Final = 16 << 20
"""The largest batch on the wire; `split_keys` cuts keys into runs that stay below."""

MAX_BATCH_COMMANDS: Final = 8

_TOKEN: Final = object()
"""The token that the constructor of Command demands; it never leaves this module."""

_BY_FIRST_WORD: Final = {
    word: tuple(spec for spec in TABLE if spec.words[0] == word) for word in {spec.words[0] for spec in TABLE}
}


class GuardError(ValueError):
    """A command that is not on the list, or is beyond its bounds."""


class SecretBytes(bytes):
    """Bytes that contain a password, or another secret: sent as they are, shown as dots."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "•••"

    __str__ = __repr__


@final
class Command:
    """One or more requests in the Redis protocol, checked against the closed list when they were made; immutable."""

    __slots__ = ("name", "packed", "replies", "request")

    name: str
    """The command in capitals: `MEMORY USAGE`; for several in one write, all of them."""
    packed: bytes
    """The bytes for the wire: `SecretBytes` if they contain a password."""
    replies: int
    """The number of replies: 1, or the number of requests of a batch."""
    request: bytes
    """The same bytes with the command's own name, if the server knows it by another one."""

    def __init__(
        self, token: object, name: str, packed: bytes, *, replies: int = 1, request: bytes | None = None
    ) -> None:
        _check_token(token)
        write = object.__setattr__
        write(self, "name", name)
        write(self, "packed", packed)
        write(self, "replies", replies)
        write(self, "request", packed if request is None else request)

    def __init_subclass__(cls) -> NoReturn:
        raise GuardError("a Command can't be subclassed")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise GuardError("a Command is immutable")

    def __delattr__(self, name: str) -> NoReturn:
        raise GuardError("a Command is immutable")

    def __reduce__(self) -> NoReturn:
        raise GuardError("a Command can't be copied or pickled")

    def __repr__(self) -> str:
        return f"<Command {self.name}: replies {self.replies}, bytes {len(self.packed)}>"


def find_spec(argv: Sequence[bytes]) -> Spec | None:
    """Return the entry that admits a whole command line, words in capitals; None if it may not be sent."""
    line = tuple(argv)
    for spec in _BY_FIRST_WORD.get(line[0], ()) if line else ():
        if spec.admits(line):
            return spec
    return None


def build_command(*argv: bytes, consent: Consent | None = None, evidence: Evidence | None = None) -> Command:
    """Make a Command of one command line; raises GuardError unless the list admits it.

    A command that changes something in the server requires the user's consent; one whose cost depends on the value,
    evidence that it is cheap. The error states the bounds and repeats no argument.
    """
    spec = find_spec(argv)
    if spec is None:
        specs = _BY_FIRST_WORD.get(argv[0], ()) if argv else ()
        if not specs:
            raise GuardError("this command is not on the list of what may be sent")
        near = [spec for spec in specs if argv[: len(spec.words)] == spec.words] or specs
        usages = [f"{spec.usage} ({', '.join(spec.bounds)})" if spec.bounds else spec.usage for spec in near]
        raise GuardError("outside the bounds of " + " or ".join(usages))
    if spec.needs_consent and not isinstance(consent, Consent):
        raise GuardError(f"{spec.name} changes something in the server: it takes the user's consent")
    _require_evidence(spec, evidence, argv[len(spec.words) :])
    packed = pack_request(argv)
    return Command(_TOKEN, spec.name, SecretBytes(packed) if spec.has_secret else packed)


def pack_request(argv: Sequence[bytes]) -> bytes:
    """Write one request as the array of bulk strings that every server version reads."""
    return b"*%d\r\n%b" % (len(argv), pack_arguments(argv))


def pack_arguments(argv: Sequence[bytes]) -> bytes:
    return b"".join([b"$%d\r\n%b\r\n" % (len(arg), arg) for arg in argv])


def unpack_requests(packed: bytes) -> Iterator[tuple[bytes, ...]]:
    """Yield the command lines in packed requests; if they are cut off, the last one has the remaining arguments."""
    at = 0
    while at < len(packed):
        count, at = _number(packed, at)
        argv: list[bytes] = []
        while len(argv) < count and at < len(packed):
            length, at = _number(packed, at)
            if at >= len(packed) and length:
                break
            argv.append(packed[at : at + length])
            at += length + 2
        if argv:
            yield tuple(argv)


def _number(packed: bytes, at: int) -> tuple[int, int]:
    """Return the number after a mark (0 if it is cut off) and the offset behind its line."""
    end = packed.find(b"\r\n", at)
    if end < 0:
        return 0, len(packed)
    return int(packed[at + 1 : end]), end + 2


def renamed(command: Command, names: CommandNames) -> Command:
    """Return a command under the server's names; unchanged if none of its words is renamed."""
    others = names.others
    if not any(name.partition(" ")[0].encode() in others for name in command.name.split(" + ")):
        return command
    packed = b"".join(
        pack_request((others.get(word, word), *arguments)) for word, *arguments in unpack_requests(command.packed)
    )
    return Command(_TOKEN, command.name, packed, replies=command.replies, request=command.packed)


def _before_length(words: Sequence[bytes]) -> bytes:
    """Return the bytes before the key's length in a request that has no other argument."""
    return b"*%d\r\n%b$" % (len(words) + 1, pack_arguments(words))


def _check_token(token: object) -> None:
    if token is not _TOKEN:
        raise GuardError("what is sent is made by the builders of the guard only")


def _require_evidence(spec: Spec, evidence: Evidence | None, arguments: Sequence[bytes] = (), keys: int = 1) -> None:
    """Raise GuardError unless the evidence permits a command for this many `keys` at once.

    `arguments` follow the command's words, the key first; empty for several keys.
    """
    if spec.evidence is None:
        return
    if evidence is None or type(evidence) not in (spec.evidence, AbsentKey):
        raise GuardError(f"{spec.name} is not sent unless this is known: {spec.evidence.words}")
    why = evidence.refusal(spec.name, arguments, keys)
    if why:
        raise GuardError(f"{spec.name} is not sent: {why}")


@final
class KeyCommand:
    """A builder of a command whose only argument is a key; `build_batch` sends it for many keys."""

    __slots__ = ("before_length", "spec")

    def __init__(self, name: str) -> None:
        words = tuple(name.encode().split(b" "))
        self.spec: Spec = next(spec for spec in TABLE if spec.words == words)
        self.before_length = _before_length(words)

    def __call__(self, key: bytes, evidence: Evidence | None = None) -> Command:
        """Build it for one key; raises GuardError if the name is too long, or evidence is missing."""
        return build_command(*self.spec.words, key, evidence=evidence)


@lru_cache(maxsize=1024)
def _batch_name(builds: tuple[KeyCommand, ...]) -> str:
    """Return the name of a batch of these commands; raises GuardError if they may not share one."""
    if not 1 <= len(builds) <= MAX_BATCH_COMMANDS or not all(key_command.spec.in_bulk for key_command in builds):
        raise GuardError(f"a batch is of 1 to {MAX_BATCH_COMMANDS} commands for each key, all of them constant in time")
    return " + ".join(key_command.spec.name for key_command in builds)


def build_batch(
    build: KeyCommand | Sequence[KeyCommand], keys: Sequence[bytes], evidence: Evidence | None = None
) -> Command:
    """Build one command or several for each of 1 to 2,000 keys of at most 64 KiB, as one Command.

    `evidence` holds for each of the keys. Replies come key by key: with builders (a, b) and keys (k1, k2) they are
    a(k1), b(k1), a(k2), b(k2). Raises GuardError.
    """
    builds = (build,) if isinstance(build, KeyCommand) else tuple(build)
    name = _batch_name(builds)
    for key_command in builds:
        _require_evidence(key_command.spec, evidence, keys=len(keys))
    befores, size = [key_command.before_length for key_command in builds], len(keys)
    if not 1 <= size <= MAX_BATCH_KEYS:
        raise GuardError(f"a batch is of 1 to {MAX_BATCH_KEYS} keys, not {size}")
    if max(map(len, keys)) > MAX_BULK_KEY_BYTES:
        raise GuardError(f"keys over {MAX_BULK_KEY_BYTES} bytes are not sent in bulk")
    ends = [b"%d\r\n%b\r\n" % (len(key), key) for key in keys]
    if len(befores) == 1:
        (before,) = befores
        packed = before + before.join(ends)
    else:
        step = 2 * len(befores)
        parts = [b""] * (step * size)
        for index, before in enumerate(befores):
            parts[2 * index :: step] = [before] * size
            parts[2 * index + 1 :: step] = ends
        packed = b"".join(parts)
    if len(packed) > MAX_BATCH_BYTES and sum(map(len, keys)) * len(befores) > MAX_BATCH_BYTES:
        raise GuardError(f"a batch is of at most {MAX_BATCH_BYTES} bytes of keys")
    return Command(_TOKEN, name, packed, replies=size * len(befores))


@final
@dataclass(frozen=True, slots=True)
class KeyTemplate:
    """A command for one key in parts, for a sender that inserts keys itself; made by `key_template` only.

    `before` ends with the mark of the key's length; the sender appends the length in digits, CRLF, the key, CRLF.
    """

    token: InitVar[object]
    name: str
    """The command in capitals: `MEMORY USAGE`."""
    before: bytes

    def __post_init__(self, token: object) -> None:
        _check_token(token)


def key_template(build: KeyCommand, evidence: Evidence | None = None, names: CommandNames | None = None) -> KeyTemplate:
    """Return the template of a command for any keys of at most 64 KiB for which `evidence` holds.

    `names` are the server's names; without them the template is for a lane, which renames commands itself. The sender
    must respect MAX_BULK_KEY_BYTES, and MAX_BATCH_KEYS keys in one write. Raises GuardError.
    """
    if not build.spec.in_bulk:
        raise GuardError(f"{build.spec.name} is not sent in bulk")
    _require_evidence(build.spec, evidence, keys=MAX_BATCH_KEYS)
    others = {} if names is None else names.others
    word, *subcommand = build.spec.words
    before = _before_length((others[word], *subcommand)) if word in others else build.before_length
    return KeyTemplate(_TOKEN, build.spec.name, before)


@final
@dataclass(frozen=True, slots=True)
class ScanTemplate:
    """SCAN in parts, for a sender that inserts cursors and counts itself; made by `scan_template` only.

    A request is `before_cursor`, a number, `before_count`, a number, `end`; a number is its length in digits, CRLF, its
    digits. The cursor has at most 64 bits, the count is 1 to MAX_SCAN_COUNT.
    """

    token: InitVar[object]
    before_cursor: bytes
    before_count: bytes
    end: bytes

    def __post_init__(self, token: object) -> None:
        _check_token(token)

    def command(self, cursor: int, count: int) -> Command:
        """Return SCAN with this cursor and count; raises GuardError beyond their bounds."""
        if not (
            type(cursor) is int and type(count) is int and 0 <= cursor <= MAX_CURSOR and 1 <= count <= MAX_SCAN_COUNT
        ):
            raise GuardError(f"SCAN takes a cursor of 64 bits and a COUNT of 1 to {MAX_SCAN_COUNT}")
        place, most = b"%d" % cursor, b"%d" % count
        parts = (self.before_cursor, len(place), place, self.before_count, len(most), most, self.end)
        return Command(_TOKEN, "SCAN", b"%b%d\r\n%b%b%d\r\n%b%b" % parts)


def scan_template(
    match: bytes | None = None, key_type: bytes | None = None, names: CommandNames | None = None
) -> ScanTemplate:
    """Return the template of SCAN with these filters; raises GuardError beyond the bounds of the closed list.

    `names` are as for `key_template`.
    """
    pattern = () if match is None else (b"MATCH", match)
    only = () if key_type is None else (b"TYPE", key_type)
    argv = (b"SCAN", b"%d" % MAX_CURSOR, *pattern, b"COUNT", b"%d" % MAX_SCAN_COUNT, *only)
    build_command(*argv)
    word = b"SCAN" if names is None else names.others.get(b"SCAN", b"SCAN")
    start, end = pack_arguments((word,)), pack_arguments(only)
    return ScanTemplate(
        _TOKEN, b"*%d\r\n%b$" % (len(argv), start), b"\r\n%b$" % pack_arguments((*pattern, b"COUNT")), b"\r\n" + end
    )


def split_keys(keys: Sequence[bytes], commands_per_key: int) -> Iterator[Sequence[bytes]]:
    """Cut keys that are short enough for bulk into runs that each fit into one batch, in order."""
    if len(keys) <= MAX_BATCH_KEYS and sum(map(len, keys)) * commands_per_key <= MAX_BATCH_BYTES:
        if keys:
            yield keys
        return
    start, size = 0, 0
    for index, key in enumerate(keys):
        cost = len(key) * commands_per_key
        if index - start == MAX_BATCH_KEYS or size + cost > MAX_BATCH_BYTES:
            yield keys[start:index]
            start, size = index, 0
        size += cost
    if start < len(keys):
        yield keys[start:]


FIXED: Final = frozenset({"AUTH", "HELLO", "COMMAND"})
"""Commands that are sent before a server can be asked about names."""

SERVER_COMMANDS: Final = frozenset(
    """
    ACL APPEND ARCOUNT ARDEL ARDELRANGE ARGET ARGETRANGE ARGREP ARINFO ARINSERT ARLASTITEMS ARLEN ARMGET ARMSET ARNEXT
    AROP ARRING ARSCAN ARSEEK ARSET ASKING AUTH BACKUP BGREWRITEAOF BGSAVE BITCOUNT BITFIELD BITFIELD_RO BITOP BITPOS
    BLMOVE BLMOVEM BLMPOP BLPOP BRPOP BRPOPLPUSH BZMPOP BZPOPMAX BZPOPMIN CLIENT CLUSTER CLUSTERSCAN COMMAND COMMANDLOG
    CONFIG COPY DBSIZE DEBUG DECR DECRBY DEL DELEX DELIFEQ DIGEST DISCARD DUMP ECHO EVAL EVALSHA EVALSHA_RO EVAL_RO EXEC
    EXISTS EXPIRE EXPIREAT EXPIRETIME FAILOVER FCALL FCALL_RO FLUSHALL FLUSHDB FUNCTION GEOADD GEODIST GEOHASH GEOPOS
    GEORADIUS GEORADIUSBYMEMBER GEORADIUSBYMEMBER_RO GEORADIUS_RO GEOSEARCH GEOSEARCHSTORE GET GETBIT GETDEL GETEX
    GETRANGE GETSET HDEL HELLO HEXISTS HEXPIRE HEXPIREAT HEXPIRETIME HGET HGETALL HGETDEL HGETEX HIMPORT HINCRBY
    HINCRBYFLOAT HKEYS HLEN HMGET HMSET HOST: HOTKEYS HPERSIST HPEXPIRE HPEXPIREAT HPEXPIRETIME HPTTL HRANDFIELD HSCAN
    HSET HSETEX HSETNX HSTRLEN HTTL HVALS INCR INCRBY INCRBYFLOAT INCREX INFO KEYS LASTSAVE LATENCY LCS LINDEX LINSERT
    LLEN LMOVE LMOVEM LMPOP LOLWUT LPOP LPOS LPUSH LPUSHX LRANGE LREM LSET LTRIM MEMORY MGET MIGRATE MODULE MONITOR MOVE
    MSET MSETEX MSETNX MULTI OBJECT PERSIST PEXPIRE PEXPIREAT PEXPIRETIME PFADD PFCOUNT PFDEBUG PFMERGE PFSELFTEST PING
    POST PSETEX PSUBSCRIBE PSYNC PTTL PUBLISH PUBSUB PUNSUBSCRIBE QUIT RANDOMKEY READONLY READWRITE RENAME RENAMENX
    REPLCONF REPLICAOF RESET RESTORE RESTORE-ASKING ROLE RPOP RPOPLPUSH RPUSH RPUSHX SADD SAVE SCAN SCARD SCRIPT SDIFF
    SDIFFCARD SDIFFSTORE SELECT SENTINEL SET SETBIT SETEX SETNX SETRANGE SHUTDOWN SINTER SINTERCARD SINTERSTORE
    SISMEMBER SLAVEOF SLOWLOG SMEMBERS SMISMEMBER SMOVE SORT SORT_RO SPOP SPUBLISH SRANDMEMBER SREM SSCAN SSUBSCRIBE
    STRALGO STRLEN SUBSCRIBE SUBSTR SUNION SUNIONCARD SUNIONSTORE SUNSUBSCRIBE SWAPDB SYNC TIME TOUCH TRIMSLOTS TTL TYPE
    UNLINK UNSUBSCRIBE UNWATCH VADD VCARD VDIM VEMB VGETATTR VINFO VISMEMBER VLINKS VRANDMEMBER VRANGE VREM VSETATTR
    VSIM WAIT WAITAOF WATCH XACK XACKDEL XADD XAUTOCLAIM XCFGSET XCLAIM XDEL XDELEX XGROUP XIDMPRECORD XINFO XLEN XNACK
    XPENDING XRANGE XREAD XREADGROUP XREVRANGE XSETID XTRIM ZADD ZCARD ZCOUNT ZDIFF ZDIFFSTORE ZINCRBY ZINTER ZINTERCARD
    ZINTERSTORE ZLEXCOUNT ZMPOP ZMSCORE ZPOPMAX ZPOPMIN ZRANDMEMBER ZRANGE ZRANGEBYLEX ZRANGEBYSCORE ZRANGESTORE ZRANK
    ZREM ZREMRANGEBYLEX ZREMRANGEBYRANK ZREMRANGEBYSCORE ZREVRANGE ZREVRANGEBYLEX ZREVRANGEBYSCORE ZREVRANK ZSCAN ZSCORE
    ZUNION ZUNIONSTORE
    """.split()  # noqa: SIM905 - a page of words is read more easily than one of strings
)
"""The commands of Redis 6.2–8.10 and Valkey 8.0–9.1, as COMMAND lists them; commands of modules contain a dot."""

_NAME: Final = re.compile(r"[!-~]{1,64}\Z")
_SENT: Final = frozenset(spec.words[0].decode() for spec in TABLE)


class CommandNamesError(ValueError):
    """Names that can't be used; the message is a sentence that repeats none of the server's names."""


@dataclass(frozen=True, slots=True)
class CommandNames:
    """The names of commands that a server's configuration renamed; an empty one stands for a disabled command.

    On the wire such a command has the server's name. Everything else, from the closed list to messages, uses its own
    name. A wrong name could be any command's, so three conditions hold before one is sent: it is not the name of a
    known server command, no two commands share it, and COMMAND INFO of the server confirms it
    (`rtui.server.wire.opening`). Commands that are sent before this check are not renamed.
    """

    renamed: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Pairs of the first word of a command, in capitals, and its name on the server."""
    _by_word: Mapping[bytes, bytes] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Raises CommandNamesError."""
        taken: dict[str, str] = {}
        for word, name in self.renamed:
            _check(word, name)
            if name and (other := taken.setdefault(name.upper(), word)) != word:
                raise CommandNamesError(f"{other} and {word} have the same other name")
        object.__setattr__(self, "_by_word", {word.encode(): name.encode() for word, name in self.renamed if name})

    def __bool__(self) -> bool:
        return bool(self.renamed)

    @property
    def others(self) -> Mapping[bytes, bytes]:
        """The server's names by the first words of the commands."""
        return self._by_word

    def disabled(self) -> Iterator[str]:
        """Yield the names of all entries of the closed list that the server has disabled."""
        words = {word.encode() for word, name in self.renamed if not name}
        return (spec.name for spec in TABLE if spec.words[0] in words)

    def known(self, text: str) -> str:
        """Replace the server's names in a text from it, such as an error that quotes the request, by the commands' own
        names."""
        for word, name in self._by_word.items():
            text = re.sub(rf"(?<![\w-]){re.escape(name.decode())}(?![\w-])", word.decode(), text, flags=re.IGNORECASE)
        return text


def command_names(given: Mapping[str, str]) -> CommandNames:
    """Return names from a user, case ignored; raises CommandNamesError.

    Commands that rtui never sends are left out: a server's configuration renames those first, and is often copied.
    """
    names = CommandNames(tuple(sorted((word.upper(), name) for word, name in given.items())))
    return CommandNames(tuple((word, name) for word, name in names.renamed if word in _SENT))


def _check(word: str, name: str) -> None:
    if word not in SERVER_COMMANDS | _SENT:
        raise CommandNamesError("it renames something that is not a command")
    if not name:
        return
    if word in FIXED:
        raise CommandNamesError(f"{word} can't have another name, since it is sent before names can be checked")
    if name.upper() in SERVER_COMMANDS or "." in name:
        raise CommandNamesError(f"the other name of {word} is that of another command")
    if not _NAME.match(name):
        raise CommandNamesError(f"the other name of {word} is not of 1 to 64 visible ASCII characters")
