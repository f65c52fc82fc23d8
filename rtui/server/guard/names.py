"""The server's own names of commands that its configuration renamed with `rename-command`.

On the wire such a command has the server's name. Everything else, from the closed list to messages, uses its own name.
A wrong name could be any command's, so three conditions hold before one is sent: it is not the name of a known server
command, no two commands share it, and COMMAND INFO of the server confirms it (`rtui.server.wire.handshake`). Commands
that are sent before this check are not renamed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from rtui.server.guard.closed_list import TABLE

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
    """The names of renamed commands on a server; an empty name stands for a disabled command."""

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
