"""What is kept of commands and replies in a sanitised recording: what is not known to be harmless is left out.

Names of keys, fields and groups become stand-ins, and so do patterns. Numbers that the server counts (TTLs, sizes,
lengths) stay. All else that a server sends as text is blanked to its length, unless it is of one of the few replies
listed here whose words come from the server itself: types, encodings, names of commands, the fields of INFO that rtui
reads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from rtui.analysis.health.logged_commands import first_key
from rtui.analysis.health.sample import LoggedCommand
from rtui.server.guard.command import find_spec
from rtui.server.guard.evidence import PROBE_KEY
from rtui.server.guard.names import SERVER_COMMANDS
from rtui.server.guard.spec import KEY
from rtui.server.recording.stand_ins import StandIns, blank
from rtui.server.wire.replies import Reply, ServerError

_WORDS_OF_SERVER: Final = frozenset(
    {"PING", "SELECT", "TYPE", "OBJECT ENCODING", "CONFIG GET", "CLUSTER SLOT-STATS", "JSON.TYPE", "READONLY", "AUTH"}
    | {"CLIENT SETNAME", "CLIENT SETINFO", "CLIENT NO-TOUCH"}
)
"""Commands whose replies are words of the server."""

_DESCRIPTIONS: Final = frozenset(
    {"XINFO STREAM", "XINFO CONSUMERS", "VINFO", "TS.INFO", "BF.INFO", "CF.INFO", "CMS.INFO", "TOPK.INFO"}
    | {"TDIGEST.INFO"}
)
_KEYWORDS: Final = frozenset(
    {b"MATCH", b"COUNT", b"NOVALUES", b"WITHVALUES", b"WITHSCORES", b"LIMIT", b"FIELDS"} | {b"SAMPLES"}
)
_NAMED: Final = frozenset(
    {"HMGET", "HSTRLEN", "SISMEMBER", "ZRANK", "ZCOUNT", "ZLEXCOUNT", "XINFO CONSUMERS"} | {"VGETATTR", "VEMB"}
)
"""Commands of which all arguments are names or parts of values."""

_PLACE: Final = re.compile(rb"\(?-?[0-9]{1,20}(?:-[0-9]{1,20})?|[-+]")
_STREAM_ID: Final = re.compile(rb"[0-9]{1,20}-[0-9]{1,20}")
_LABELS: Final = frozenset(
    b"""length radix-tree-keys radix-tree-nodes last-generated-id max-deleted-entry-id entries-added
    recorded-first-entry-id groups first-entry last-entry idmp-duration idmp-maxsize pids-tracked iids-tracked
    iids-added iids-duplicates name consumers pending last-delivered-id entries-read lag idle inactive
    quant-type hnsw-m vector-dim projection-input-dim size max-level attributes-count vset-uid hnsw-max-node-uid
    totalSamples memoryUsage firstTimestamp lastTimestamp retentionTime chunkCount chunkSize chunkType
    duplicatePolicy labels sourceKey rules ignoreMaxTimeDiff ignoreMaxValDiff
    Capacity Size width depth count k decay Compression key-count cpu-usec
    tracking-active sample-ratio selected-slots by-cpu-time-us by-net-bytes
    collection-start-time-unix-ms collection-duration-ms""".split()
) | {
    *(b"Number of filters", b"Number of items inserted", b"Expansion rate", b"Number of buckets"),
    *(b"Number of items deleted", b"Bucket size", b"Max iterations", b"Merged nodes", b"Unmerged nodes"),
    *(b"Merged weight", b"Unmerged weight", b"Observations", b"Total compressions", b"Memory usage"),
}
"""Labels of descriptions, as Redis, Valkey and their modules name them."""
_FIGURE: Final = re.compile(r"-?[0-9]{1,20}(?:\.[0-9]{1,10})?[KMGTP]?B?%?")
_NO_FIGURE: Final = re.compile(r"port|pid|process_id|_id\b|seed|addr|ip\b|time_usec|replid")
_COUNTED: Final = re.compile(r"(?:cmdstat_[a-z0-9_|.-]{1,64}|db[0-9]{1,10}(?:_[a-z_]{1,64})?)")
_COUNTS: Final = re.compile(r"(?:[a-zA-Z0-9_.]{1,40}=[0-9.]{1,20}(?:,|$))+")
_KEPT_FIELDS: Final = frozenset(
    {"redis_version", "valkey_version", "server_name", "redis_mode", "server_mode", "role", "master_link_status"}
    | {"rdb_last_bgsave_status", "aof_last_bgrewrite_status", "aof_last_write_status", "mem_allocator"}
    | {"maxmemory_policy", "dragonfly_version", "garnet_version", "kvrocks_version", "mvcc_depth", "cluster_state"}
)
_WORD: Final = re.compile(r"[A-Za-z0-9.+-]{1,40}")
_ERRORS: Final = (
    *("unknown command", "unknown subcommand", "no such key", "syntax error", "An LFU maxmemory policy is"),
    *("Operation against a key holding", "wrong number of arguments", "DB index is out of range"),
)
"""Beginnings of error messages that quote nothing."""
_CUT: Final = re.compile(rb"\.\.\. \([0-9]+ more (?:bytes|arguments)\)\Z")
"""What a server writes behind an argument that it has cut, or in place of the last ones."""


class Sanitiser:
    """Replaces what may not be kept, by the same stand-ins throughout."""

    def __init__(self, stand_ins: StandIns | None = None) -> None:
        self.stand_ins = StandIns() if stand_ins is None else stand_ins

    def command(self, argv: Sequence[bytes]) -> list[bytes]:
        """Return a command line with stand-ins."""
        spec = find_spec(argv)
        if spec is None:
            return [argv[0]]
        if PROBE_KEY in argv:  # what rtui asks of itself, with the same words on every server
            return list(argv)
        count = len(spec.words)
        words, arguments = list(argv[:count]), list(argv[count:])
        has_key = bool(spec.shape) and spec.shape[0] is KEY
        is_named = spec.name in _NAMED
        name = self.stand_ins.name
        for at, argument in enumerate(arguments):
            is_key_or_pattern = (has_key and at == 0) or (at and arguments[at - 1] == b"MATCH")
            if is_key_or_pattern or (has_key and (is_named or not _is_place(arguments, at))):
                is_behind = spec.name == "VRANGE" and argument.startswith(b"(")
                arguments[at] = b"(" + name(argument[1:]) if is_behind else name(argument)
        return words + arguments

    def reply(self, argv: Sequence[bytes], reply: Reply) -> Reply:
        """Return what is kept of the reply to a command, whose line is as it was sent."""
        if isinstance(reply, ServerError):
            return _harmless_error(reply)
        spec = find_spec(argv)
        name = "" if spec is None else spec.name
        if name in _WORDS_OF_SERVER:
            return reply if _is_of_words(reply) else self._blanked(reply)
        keep: dict[str, Callable[[Reply], Reply]] = {
            "INFO": harmless_info,
            "CLUSTER INFO": harmless_info,
            "CLUSTER NODES": self._nodes,
            "HELLO": _greeting,
            "SCAN": self._page,
            "HSCAN": self._fields,
            "VRANGE": self._names,
            "VRANDMEMBER": self._names,
            "SSCAN": self._elements,
            "ZSCAN": self._elements,
            "HRANDFIELD": self._by_turns,
            "ZRANGE": self._scores,
            "XREVRANGE": self._entries,
            "XINFO GROUPS": self._groups,
            "XINFO CONSUMERS": self._descriptions,
            "XPENDING": self._pending,
            "HOTKEYS GET": self._hot,
            "SLOWLOG GET": self._logged,
            "COMMANDLOG GET": self._logged,
            **dict.fromkeys(_DESCRIPTIONS, self._description),
        }
        return keep.get(name, self._blanked)(reply)

    def _page(self, reply: Reply) -> Reply:
        """Return a page of names."""
        if not isinstance(reply, list) or len(reply) != 2:
            return self._blanked(reply)
        return [_cursor(reply[0]), self._names(reply[1])]

    def _fields(self, reply: Reply) -> Reply:
        """Return a page of a hash."""
        if not isinstance(reply, list) or len(reply) != 2:
            return self._blanked(reply)
        return [_cursor(reply[0]), self._by_turns(reply[1])]

    def _elements(self, reply: Reply) -> Reply:
        """Return a page of a set or sorted set."""
        if not isinstance(reply, list) or len(reply) != 2:
            return self._blanked(reply)
        return [_cursor(reply[0]), self._scores(reply[1])]

    def _by_turns(self, reply: Reply) -> Reply:
        """Return fields and values by turns."""
        if not isinstance(reply, list):
            return self._blanked(reply)
        return [self._blanked(one) if at % 2 else self._named(one) for at, one in enumerate(reply)]

    def _scores(self, reply: Reply) -> Reply:
        """Return members, and scores by turns where there are any: nothing but lengths, and 0."""
        if not isinstance(reply, list):
            return self._blanked(reply)
        return [b"0" if at % 2 and isinstance(one, bytes) else self._blanked(one) for at, one in enumerate(reply)]

    def _entries(self, reply: Reply) -> Reply:
        """Return entries of a stream: their ids."""
        if not isinstance(reply, list):
            return self._blanked(reply)
        return [
            [_id(one[0]), *map(self._blanked, one[1:])] if isinstance(one, list) and one else self._blanked(one)
            for one in reply
        ]

    def _pending(self, reply: Reply) -> Reply:
        """Return the summary of what is pending in a group: numbers and ids."""
        if not isinstance(reply, list):
            return self._blanked(reply)
        return [_id(one) if isinstance(one, bytes) else self._blanked(one) for one in reply]

    def _descriptions(self, reply: Reply) -> Reply:
        return [self._description(one) for one in reply] if isinstance(reply, list) else self._blanked(reply)

    def _groups(self, reply: Reply) -> Reply:
        return [self._group(one) for one in reply] if isinstance(reply, list) else self._blanked(reply)

    def _named(self, reply: Reply) -> Reply:
        return self.stand_ins.name(reply) if isinstance(reply, bytes) else self._blanked(reply)

    def _names(self, reply: Reply) -> Reply:
        """Return a list of names, and of numbers that belong to them, with stand-ins."""
        if isinstance(reply, list):
            return [self._names(one) for one in reply]
        return self._named(reply)

    def _hot(self, reply: Reply) -> Reply:
        """Return a report of hot keys, whose lists hold names and numbers, with stand-ins."""
        if isinstance(reply, dict):
            reply = [one for pair in reply.items() for one in pair]
        if isinstance(reply, list):
            return [one if _is_label(one) else self._hot(one) for one in reply]
        return self._named(reply)

    def _logged(self, reply: Reply) -> Reply:
        """Return a log of commands: numbers, names of commands, and stand-ins for their keys; no clients."""
        if not isinstance(reply, list):
            return self._blanked(reply)
        kept: list[Reply] = []
        for entry in reply:
            found = self._blanked(entry)
            argv = entry[3] if isinstance(entry, list) and len(entry) > 3 else None
            if isinstance(argv, list) and isinstance(found, list):
                words = [one if isinstance(one, bytes) else b"" for one in argv]
                found[3] = list(sanitised_arguments(words, self.stand_ins))
            kept.append(found)
        return kept

    def _description(self, reply: Reply) -> Reply:
        """Return labels and figures by turns, without what is of a value."""
        if isinstance(reply, dict):
            reply = [one for pair in reply.items() for one in pair]
        if not isinstance(reply, list):
            return self._blanked(reply)
        return [
            (one if _is_label(one) else self._blanked(one)) if not at % 2 else self._figure(one)
            for at, one in enumerate(reply)
        ]

    def _group(self, reply: Reply) -> Reply:
        """Return the description of a consumer group, with a stand-in for its name."""
        if isinstance(reply, dict):
            reply = [one for pair in reply.items() for one in pair]
        found = self._description(reply)
        if isinstance(reply, list) and isinstance(found, list):
            for at in range(1, len(reply), 2):
                if reply[at - 1] == b"name":
                    found[at] = self._named(reply[at])
        return found

    def _figure(self, reply: Reply) -> Reply:
        """Return what stands beside a label: a number or the id of an entry, of which the content is blanked."""
        if isinstance(reply, bytes):
            return _id(reply)
        if isinstance(reply, list) and len(reply) == 2 and isinstance(reply[0], bytes):
            return [_id(reply[0]), self._blanked(reply[1])]
        return self._blanked(reply)

    def _nodes(self, reply: Reply) -> Reply:
        """Return the table of a cluster's nodes with other ids and addresses."""
        if not isinstance(reply, bytes):
            return self._blanked(reply)
        lines = []
        for number, line in enumerate(reply.splitlines()[:10_000]):
            parts = line.split(b" ")
            if len(parts) >= 8:
                parent = parts[3] if parts[3] == b"-" else self.stand_ins.name(parts[3])
                address = b"10.0.%d.%d:6379@16379" % divmod(number, 256)
                lines.append(b" ".join([self.stand_ins.name(parts[0]), address, parts[2], parent, *parts[4:]]))
        return b"\n".join([*lines, b""])

    def _blanked(self, reply: Reply) -> Reply:
        """Return a reply with nothing but its numbers and its lengths."""
        if isinstance(reply, bytes):
            return blank(reply)
        if isinstance(reply, list):
            return [self._blanked(one) for one in reply]
        if isinstance(reply, dict):
            return [self._blanked(one) for pair in reply.items() for one in pair]
        return 0.0 if isinstance(reply, float) else reply


def sanitised_arguments(argv: Sequence[bytes], stand_ins: StandIns) -> tuple[bytes, ...]:
    """Return a logged command with its name, if servers have it, and a stand-in for its first key; the rest is blanked.

    Only the lengths of other arguments are kept.
    """
    if not argv:
        return ()
    command = argv[0] if argv[0].decode("ascii", "replace").upper() in SERVER_COMMANDS else blank(argv[0])
    key = first_key(LoggedCommand(0, 0, 0, tuple(argv)))
    return (command, *(_argument(one, stand_ins, is_key=one == key) for one in argv[1:]))


def _argument(text: bytes, stand_ins: StandIns, *, is_key: bool) -> bytes:
    cut = _CUT.search(text)
    end = len(text) if cut is None else cut.start()
    return (stand_ins.name(text[:end]) if is_key else blank(text[:end])) + text[end:]


def harmless_info(reply: Reply) -> Reply:
    """Return the lines of INFO or CLUSTER INFO that say nothing about who and where the server is."""
    if not isinstance(reply, bytes):
        return b""
    kept = []
    for line in reply.decode("utf-8", "replace").splitlines():
        name, colon, value = line.partition(":")
        if name == "run_id":
            kept.append("run_id:" + "0" * 40)
        elif colon and is_harmless(name, value):
            kept.append(line)
    return "\r\n".join([*kept, ""]).encode()


def is_harmless(name: str, value: str) -> bool:
    """Tell whether a field of INFO is a count, or a word that says what the server is."""
    if name in _KEPT_FIELDS:
        return _WORD.fullmatch(value) is not None
    if _COUNTED.fullmatch(name):
        return _COUNTS.fullmatch(value) is not None
    is_name = _WORD.fullmatch(name.replace("_", "")) is not None and _NO_FIGURE.search(name) is None
    return is_name and _FIGURE.fullmatch(value) is not None


def _is_place(arguments: Sequence[bytes], at: int) -> bool:
    """Tell whether an argument behind the key is a word of the protocol or a place, such as an index or an entry."""
    return arguments[at] in _KEYWORDS or (_PLACE.fullmatch(arguments[at]) is not None and b"FIELDS" not in arguments)


def _is_of_words(reply: Reply) -> bool:
    if isinstance(reply, list):
        return all(map(_is_of_words, reply))
    return not isinstance(reply, bytes) or re.fullmatch(rb"[A-Za-z0-9._ -]{0,64}", reply) is not None


def _is_label(reply: Reply) -> bool:
    return isinstance(reply, bytes) and reply in _LABELS


def _cursor(reply: Reply) -> Reply:
    return reply if isinstance(reply, bytes) and reply.isdigit() and len(reply) <= 20 else b"0"


def _id(reply: Reply) -> Reply:
    if isinstance(reply, bytes):
        return reply if _STREAM_ID.fullmatch(reply) else blank(reply)
    return None


def _greeting(reply: Reply) -> Reply:
    """Return what HELLO says of the product."""
    pairs = list(reply.items()) if isinstance(reply, dict) else []
    if isinstance(reply, list):
        pairs = list(zip(reply[::2], reply[1::2], strict=False))
    kept: list[tuple[Reply, Reply]] = []
    for name, value in pairs:
        if name in (b"server", b"version", b"proto", b"mode", b"role") and _is_of_words(value):
            kept.append((name, value))
    if isinstance(reply, dict):
        return dict(kept)
    return [one for pair in kept for one in pair]


def _harmless_error(error: ServerError) -> ServerError:
    """Return an error without what it may quote."""
    message = str(error.args[0])
    rest = message.removeprefix(error.code).lstrip()
    if error.denies_command:
        return ServerError(f"{error.code} this user has no permissions to run the command")
    known = next((one for one in _ERRORS if rest.startswith(one)), "(the message was left out)")
    return ServerError(f"{error.code} {known}")
