from __future__ import annotations

import copy
import io
import pickle
import string
import traceback
from collections.abc import Iterator
from typing import Any

import hiredis
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.traceback import Traceback

from rtui.server import guard
from rtui.server.guard.closed_list import MAX_ELEMENTS, TABLE
from rtui.server.guard.command import (
    Command,
    GuardError,
    KeyCommand,
    Secret,
    SecretBytes,
    build_batch,
    build_command,
    find_spec,
    pack_request,
)
from rtui.server.guard.evidence import (
    PROBE_KEY,
    AbsentKey,
    ClientsEvidence,
    CollectionEvidence,
    Consent,
    ConsumerEvidence,
    EntryEvidence,
    Evidence,
    GroupEvidence,
    SlotMetric,
    TypeEvidence,
    VectorEvidence,
)
from rtui.server.guard.spec import MAX_KEY_BYTES, Spec
from tests.server.guard.harmless import is_costly, is_harmless, is_known_to_be_cheap, samples

PASSWORD = "correct-horse-battery"  # noqa: S105 - a test may tell it
KEY = b"a:key"
CONSENT = Consent(duration_s=60, sample_ratio=100)
STRING = TypeEvidence(b"string", "redis", (7, 0, 15))
TABLE_OF_ANY_LENGTH = CollectionEvidence(b"hashtable", 1_000_000, 100_000_000)
FEW_CONSUMERS = ConsumerEvidence(3)
ENOUGH: dict[type[Evidence], Evidence] = {
    type(one): one
    for one in (
        STRING, TABLE_OF_ANY_LENGTH, EntryEvidence(100.0), GroupEvidence(3), FEW_CONSUMERS, ClientsEvidence(9),
        VectorEvidence(3),
    )
}  # fmt: skip
"""By what a command needs, evidence that permits all of it."""
LINES = [line for spec in TABLE for line in samples(spec, KEY)]
NUMBERS = (
    *(
        b"0", b"-0", b"-1", b"+1", b"01", b" 1", b"1 ", b"1\n", b"1e3", b"0x10", b"\xd9\xa1", b"", b"1_000", b"50",
        b"51",
    ),
    *(b"99", b"100", b"101", b"999", b"1000", b"1001", b"65535", b"65536", b"65537"),
    *(b"%d" % (2**power + offset) for power in (31, 32, 63, 64) for offset in (-2, -1, 0, 1)),
)  # fmt: skip
WORDS = sorted({part for line in LINES for part in line if part.isalpha()})
FOREIGN = (b"SAMPLES", b"FULL", b"STORE", b"BYSCORE", b"BYLEX", b"REV", b"BIT", b"BLOCK", b"OFF", b"*", b"\xff", b"all")
LONG = [b"x" * size for size in (40, 64, 65, 256, 257, 512, 513, 65_536, 65_537, 1 << 20, (1 << 20) + 1)]
STARS = [b"*" * stars for stars in (15, 16, 17, 100)]
POOL = [*NUMBERS, *WORDS, *(word.lower() for word in WORDS), *FOREIGN, *LONG, *STARS]
PARTS = st.one_of(st.sampled_from(POOL), st.binary(max_size=12))
EVERY_KEY = [value for value in vars(guard).values() if isinstance(value, KeyCommand)]


@st.composite
def mutated(draw: st.DrawFn) -> tuple[bytes, ...]:
    """A line that the list admits, changed in one to four places."""
    line = list(draw(st.sampled_from(LINES)))
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(line)))
        change = draw(st.sampled_from(("replace", "replace", "insert", "delete", "double", "swap")))
        if change == "insert" or place == len(line):
            line.insert(place, draw(PARTS))
        elif change == "replace":
            line[place] = draw(PARTS)
        elif change == "delete":
            del line[place]
        elif change == "double":
            line[place:place] = line[place:] * draw(st.sampled_from((1, 30)))
        else:
            other = draw(st.integers(0, len(line) - 1))
            line[place], line[other] = line[other], line[place]
    return tuple(line)


@given(mutated())
def test_whatever_is_admitted_is_harmless_by_an_independent_judge(line: tuple[bytes, ...]) -> None:
    if find_spec(line) is not None:
        assert is_harmless(line), line[:6]


def changed_once(line: tuple[bytes, ...]) -> Iterator[tuple[bytes, ...]]:
    """Every line that one replacement, insertion or removal makes of this one, with the parts of the pool."""
    for place in range(len(line) + 1):
        yield line[:place] + line[place + 1 :]
        for part in POOL:
            yield (*line[:place], part, *line[place:])
            yield (*line[:place], part, *line[place + 1 :])


@pytest.mark.parametrize("spec", TABLE, ids=lambda spec: spec.usage[:50])
def test_every_single_change_is_refused_or_harmless(spec: Spec) -> None:
    for line in samples(spec, KEY):
        if len(line) < 20:
            wrong = [new[:6] for new in changed_once(line) if find_spec(new) is not None and not is_harmless(new)]
            assert not wrong


@pytest.mark.parametrize("count", [0, 1, 100, 101])
def test_named_fields_are_counted_right(count: int) -> None:
    fields = [b"f"] * count
    allowed = 1 <= count <= MAX_ELEMENTS
    assert (find_spec((b"HMGET", KEY, *fields)) is not None) == allowed
    assert (find_spec((b"HPTTL", KEY, b"FIELDS", b"%d" % count, *fields)) is not None) == allowed
    assert find_spec((b"HPTTL", KEY, b"FIELDS", b"%d" % (count + 1), *fields)) is None


@pytest.mark.parametrize("line", LINES, ids=lambda line: b" ".join(line)[:50].decode("latin-1"))
def test_each_sample_is_admitted_by_its_entry_and_harmless(line: tuple[bytes, ...]) -> None:
    spec = find_spec(line)
    assert spec is not None
    assert line[: len(spec.words)] == spec.words
    assert is_harmless(line)


@given(mutated())
def test_what_is_made_is_what_is_admitted(line: tuple[bytes, ...]) -> None:
    if find_spec(line) is None:
        with pytest.raises(GuardError):
            build_command(*line)
    else:
        assert parsed(build_command(*line, consent=CONSENT, evidence=enough(line)).packed) == [list(line)]


def enough(line: tuple[bytes, ...]) -> Evidence | None:
    """Evidence that permits an admitted line, None where it needs none."""
    spec = find_spec(line)
    return None if spec is None or spec.evidence is None else ENOUGH[spec.evidence]


COSTLY_LINES = [line for line in LINES if is_costly(line)]
NUMBERS_KNOWN = st.none() | st.integers(-1, 200) | st.sampled_from((50_000, 50_001, 262_144, 262_145, 1 << 40))
KNOWN: st.SearchStrategy[Evidence | None] = st.one_of(
    st.none(),
    st.just(AbsentKey()),
    st.builds(
        TypeEvidence,
        st.none() | st.sampled_from((b"string", b"stream", b"hash", b"vectorset", b"ReJSON-RL", b"MBbloom--", b"")),
        st.sampled_from((None, "redis", "valkey", "other")),
        st.sampled_from((None, (6, 2), (8, 2, 9), (8, 4), (9, 1, 2))),
        st.integers(-1, 1_000),
    ),
    st.builds(
        CollectionEvidence,
        st.sampled_from((None, b"hashtable", b"skiplist", b"listpack", b"listpackex", b"intset", b"new")),
        NUMBERS_KNOWN,
        NUMBERS_KNOWN,
    ),
    st.builds(EntryEvidence, st.none() | st.floats(0, 1e6)),
    st.builds(GroupEvidence, st.integers(-5, 300)),
    st.builds(ConsumerEvidence, st.integers(-5, 300)),
    st.builds(ClientsEvidence, st.none() | st.integers(-5, 3_000)),
    st.builds(VectorEvidence, st.none() | st.integers(-5, 5_000)),
)


@given(st.sampled_from(COSTLY_LINES), KNOWN)
def test_no_costly_command_is_made_unless_enough_is_known(line: tuple[bytes, ...], known: Evidence | None) -> None:
    if is_known_to_be_cheap(line, known):
        assert parsed(build_command(*line, evidence=known).packed) == [list(line)]
    else:
        with pytest.raises(GuardError, match="is not sent"):
            build_command(*line, evidence=known)


@given(mutated(), KNOWN)
def test_whatever_is_made_is_cheap_by_an_independent_judge(line: tuple[bytes, ...], known: Evidence | None) -> None:
    try:
        build_command(*line, consent=CONSENT, evidence=known)
    except GuardError:
        return
    assert not is_costly(line) or is_known_to_be_cheap(line, known)


@pytest.mark.parametrize("line", COSTLY_LINES, ids=lambda line: b" ".join(line)[:50].decode("latin-1"))
def test_nothing_known_is_not_enough_and_neither_is_a_claim(line: tuple[bytes, ...]) -> None:
    forged: Any
    for forged in (None, True, "hash", object(), CONSENT):
        with pytest.raises(GuardError, match="unless this is known"):
            build_command(*line, evidence=forged)
    with pytest.raises(GuardError):
        build_command(*line, evidence=AbsentKey())
    spec = find_spec(line)
    assert spec is not None
    assert spec.evidence is not None
    permissive = type("Permissive", (spec.evidence,), {"refusal": lambda *_: ""})
    with pytest.raises(GuardError, match="unless this is known"):
        build_command(*line, evidence=object.__new__(permissive))


def test_what_needs_evidence_is_what_costs_by_the_value() -> None:
    assert {spec.words for spec in TABLE if spec.evidence} == {
        spec.words for spec in TABLE if any(is_costly(line) for line in samples(spec, KEY))
    }
    assert not [spec.name for spec in TABLE if "looked at before" in spec.why and spec.evidence is None]
    assert {spec.evidence for spec in TABLE if spec.evidence} == set(ENOUGH)


def test_the_probe_of_rights_asks_for_its_own_key_only() -> None:
    assert guard.memory_usage(PROBE_KEY, AbsentKey()).replies == 1
    for line in ((b"MEMORY", b"USAGE", KEY), (b"HMGET", KEY, PROBE_KEY), (b"HPTTL", KEY, b"FIELDS", b"1", PROBE_KEY)):
        with pytest.raises(GuardError):
            build_command(*line, evidence=AbsentKey())
    with pytest.raises(GuardError):
        build_batch(guard.memory_usage, [PROBE_KEY, PROBE_KEY], AbsentKey())


def test_look_ups_of_fields_are_bounded_together() -> None:
    compact = CollectionEvidence(b"listpack", 5_000, 10_000_000)
    assert len(guard.hstrlens(KEY, *[b"f"] * 10, evidence=compact)) == 10
    with pytest.raises(GuardError):
        guard.hstrlens(KEY, *[b"f"] * 11, evidence=compact)
    with pytest.raises(GuardError):
        guard.hstrlens(KEY, b"f")


@pytest.mark.parametrize(
    "text",
    [
        "KEYS *", "GET key", "MGET key", "SET key value", "DEL key", "EXPIRE key 1", "FLUSHALL", "RENAME a b",
        "HGETALL key", "HKEYS key", "HVALS key", "SMEMBERS key", "SORT key", "DUMP key", "RESTORE key 0 x",
        "PFCOUNT key", "TOUCH key", "MONITOR", "SUBSCRIBE a", "PSUBSCRIBE *", "EVAL return 0", "FCALL f 0",
        "SCRIPT FLUSH", "CONFIG SET maxmemory 1", "CONFIG GET *", "DEBUG SLEEP 1", "SHUTDOWN", "SAVE", "BGSAVE",
        "CLIENT KILL x", "CLIENT PAUSE 1", "CLIENT NO-TOUCH OFF", "CLIENT NO-EVICT ON", "CLIENT SETNAME other",
        "CLIENT LIST TYPE normal", "CLIENT LIST ID 1", "CLIENT TRACKING ON", "SLOWLOG GET", "SLOWLOG GET -1",
        "SLOWLOG GET 129", "SLOWLOG RESET", "HOTKEYS STOP", "HOTKEYS RESET", "HOTKEYS HELP", "HOTKEYS GET x",
        "HOTKEYS START METRICS 1 CPU", "HOTKEYS START METRICS 1 CPU COUNT 10 DURATION 60",
        "HOTKEYS START METRICS 2 CPU COUNT 10 DURATION 60 SAMPLE 10",
        "HOTKEYS START METRICS 1 CPU COUNT 65 DURATION 60 SAMPLE 10",
        "HOTKEYS START METRICS 1 CPU COUNT 10 DURATION 0 SAMPLE 10",
        "HOTKEYS START METRICS 1 CPU COUNT 10 DURATION 3601 SAMPLE 10",
        "HOTKEYS START METRICS 1 CPU COUNT 10 DURATION 60 SAMPLE 9",
        "HOTKEYS START METRICS 1 CPU COUNT 10 SAMPLE 10 DURATION 60",
        "HOTKEYS START METRICS 1 CPU COUNT 10 DURATION 60 SAMPLE 10 SLOTS 1 0",
        "CLUSTER COUNTKEYSINSLOT 16384", "CLUSTER COUNTKEYSINSLOT", "CLUSTER GETKEYSINSLOT 1 10",
        "CLUSTER SLOT-STATS SLOTSRANGE 0 16383", "CLUSTER SLOT-STATS ORDERBY key-count LIMIT 101 DESC",
        "CLUSTER SLOT-STATS ORDERBY KEY-COUNT LIMIT 1 DESC", "CLUSTER SLOT-STATS ORDERBY key-count LIMIT 1",
        "CONFIG GET requirepass", "CONFIG GET lfu*", "CONFIG GET lfu-log-factor requirepass", "CONFIG GET",
        "BITCOUNT key 0 1", "XRANGE key - + COUNT 1", "ZSCAN key 0 COUNT 1", "ZRANDMEMBER key 1", "COMMAND COUNT",
        "BLPOP key 0", "XREAD STREAMS key 0", "WAIT 1 0", "MULTI", "EXEC",
        "MEMORY USAGE key SAMPLES 0", "MEMORY USAGE key SAMPLES 1001", "MEMORY PURGE", "MEMORY DOCTOR",
        "XINFO STREAM key FULL", "XINFO STREAM key FULL COUNT 1", "XRANGE key - +", "XRANGE key - + COUNT 101",
        "LRANGE key 0 -1", "LRANGE key -1 -1", "LRANGE key 0 100", "LRANGE key 5 4", "ZRANGE key 0 -1 WITHSCORES",
        "ZRANGE key 0 10", "ZRANGE key 0 10 REV WITHSCORES", "ZRANGE key 0 1000 WITHSCORES", "BITCOUNT key",
        "BITCOUNT key 0 65536", "BITCOUNT key 0 10 BIT", "GETRANGE key 0 -1", "GETRANGE key 0 65536",
        "GETRANGE key -5 -1", "HSCAN key 0", "HSCAN key 0 COUNT 101", "HSCAN key 0 MATCH * COUNT 101",
        "SSCAN key -1 COUNT 10", "HSCAN key 0 COUNT 10 MATCH *", "ZRANK key a WITHSCORE", "ZCOUNT key 1 nan",
        "ZLEXCOUNT key a b", "ZCOUNT key [1 2", "ZSCAN key 18446744073709551616 MATCH * COUNT 1",
        "ZSCAN key 0 COUNT 1", "HRANDFIELD key -10", "HRANDFIELD key 51",
        "SRANDMEMBER key", "SRANDMEMBER key -5", "ZRANDMEMBER key 0", "SCAN 0", "SCAN 0 COUNT 0", "SCAN 0 COUNT 1001",
        "SCAN 0 COUNT 10 MATCH x", "SCAN 0 COUNT 10 TYPE", "scan 0 COUNT 10", "type key", "TYPE", "TYPE a b",
        "OBJECT REFCOUNT key", "OBJECT HELP", "INFO", "INFO all", "INFO everything", "INFO server memory", "HELLO",
        "HELLO 3 SETNAME x", "HELLO 4", "SELECT -1", "SELECT 2147483648", "COMMAND", "COMMAND DOCS",
        "COMMAND INFO a b c d e f g h i", "COMMAND INFO",
        "CLUSTER FAILOVER", "CLUSTER RESET", "CLUSTER NODES x", "READWRITE",
        "ARSCAN key 0 10", "ARSCAN key 0 10 LIMIT 101", "ARSCAN key 0 18446744073709551615 LIMIT 1", "ARINFO key FULL",
        "XPENDING key group - + 10", "HPTTL key FIELDS 2 a", "HPTTL key FIELDS 1 a b", "HPTTL key FIELDS 0",
        "JSON.GET key", "JSON.SET key . 1", "JSON.TYPE key $..*", "BF.ADD key x", "TS.INFO key DEBUG", "VSIM key",
        "QUIT", "AUTH", "AUTH a b c", "CLIENT INFO", "INFO modules", "INFO latencystats cpu", "CONFIG GET dir",
        "CONFIG GET maxmemory requirepass", "CONFIG GET maxmemory masterauth", "CONFIG GET max*",
        "CONFIG GET hash-seed", "CONFIG GET MAXMEMORY", "LATENCY RESET", "LATENCY DOCTOR", "LATENCY HISTORY",
        "LATENCY HISTORY a b", "LATENCY GRAPH command",
        "LATENCY HISTOGRAM", "COMMANDLOG RESET slow", "COMMANDLOG GET 128", "COMMANDLOG GET 129 slow",
        "COMMANDLOG GET -1 slow", "COMMANDLOG GET 1 all", "SLOWLOG LEN",
    ],
)  # fmt: skip
def test_refused(text: str) -> None:
    line = tuple(text.encode().split(b" "))
    assert find_spec(line) is None
    with pytest.raises(GuardError):
        build_command(*line)


@pytest.mark.parametrize("spec", [spec for spec in TABLE if spec.needs_consent], ids=lambda spec: spec.name)
def test_what_changes_the_server_is_not_made_without_consent(spec: Spec) -> None:
    for line in samples(spec, KEY):
        with pytest.raises(GuardError, match="consent"):
            build_command(*line)
        forged: Any = True
        with pytest.raises(GuardError, match="consent"):
            build_command(*line, consent=forged)
        assert build_command(*line, consent=CONSENT).name == spec.name


def test_only_starting_a_hot_key_session_changes_the_server() -> None:
    assert [spec.name for spec in TABLE if spec.needs_consent] == ["HOTKEYS START"]


@pytest.mark.parametrize(
    "wrong",
    [
        Consent(0, 100), Consent(3601, 100), Consent(60, 9), Consent(60, 10_001), Consent(60, 100, ()),
        Consent(60, 100, count=0), Consent(60, 100, count=65),
    ],
)  # fmt: skip
def test_consent_to_too_much_is_refused(wrong: Consent) -> None:
    with pytest.raises(GuardError):
        guard.hotkeys_start(wrong)


def test_a_session_has_an_end_and_a_sample() -> None:
    (line,) = parsed(
        guard.hotkeys_start(Consent(60, 100, (SlotMetric.NET, SlotMetric.CPU, SlotMetric.NET), count=5)).packed
    )
    assert b" ".join(line) == b"HOTKEYS START METRICS 2 CPU NET COUNT 5 DURATION 60 SAMPLE 100"


def test_nothing_at_all_is_refused() -> None:
    assert find_spec(()) is None
    assert find_spec((b"",)) is None
    with pytest.raises(GuardError):
        build_command()


def test_a_request_is_bounded_as_a_whole() -> None:
    field = b"f" * 65_536
    assert find_spec((b"HMGET", KEY, *[field] * 30))
    assert find_spec((b"HMGET", KEY, *[field] * 100)) is None


def test_key_names_are_bounded() -> None:
    assert guard.key_type(b"k" * MAX_KEY_BYTES).replies == 1
    with pytest.raises(GuardError) as caught:
        guard.key_type(b"k" * (MAX_KEY_BYTES + 1))
    assert len(str(caught.value)) < 200


def parsed(packed: bytes) -> list[Any]:
    reader = hiredis.Reader()
    reader.feed(packed)
    found = []
    while (one := reader.gets()) is not False:
        found.append(one)
    assert not reader.has_data()
    return found


def built() -> list[Command]:
    secret = Secret(PASSWORD)
    made = [build(KEY, enough((*build.spec.words, KEY))) for build in EVERY_KEY]
    table, few = TABLE_OF_ANY_LENGTH, FEW_CONSUMERS
    return [
        *made,
        *(guard.ping(), guard.hello(2), guard.hello(3, "me", secret), guard.hello(3, None, secret)),
        *(guard.auth(None, secret), guard.auth("me", secret), guard.select(3), guard.set_name()),
        *(guard.set_info("LIB-NAME"), guard.set_info("LIB-VER"), guard.no_touch(), guard.readonly()),
        *(guard.info("memory"), guard.dbsize(), guard.command_info(b"b840", b"c")),
        *(
            guard.cluster_info(),
            guard.cluster_nodes(),
            guard.sentinel_masters(),
            build_command(b"SENTINEL", b"GET-MASTER-ADDR-BY-NAME", b"mymaster"),
            guard.cluster_slots(),
            guard.scan(0, count=10),
        ),
        *(guard.slowlog_get(128), guard.client_list(ClientsEvidence(9)), guard.info("latencystats")),
        *(guard.commandlog_get(128, "large-reply"), guard.latency_latest(), guard.latency_history("command")),
        *(guard.hotkeys_get(), guard.hotkeys_start(CONSENT), guard.slot_stats("cpu-usec", limit=100)),
        guard.count_keys_in_slot(16_383),
        *(
            guard.config_get("lfu-log-factor"),
            guard.config_get("lfu-decay-time"),
            guard.config_get("maxmemory", "save"),
        ),
        guard.scan((1 << 64) - 1, count=1000, match=b"a*", key_type=b"hash"),
        guard.memory_usage_of(KEY, TypeEvidence(b"set", "valkey", (8, 1))),
        guard.getrange(KEY, 0, 65_535),
        guard.hscan(KEY, 0, count=100, evidence=table),
        guard.hscan(KEY, 5, count=1, novalues=True, evidence=table),
        *(guard.hrandfield(KEY, 50, evidence=table), guard.hrandfield(KEY, 1, withvalues=True, evidence=table)),
        *(guard.hmget(KEY, b"", b"f", evidence=table), *guard.hstrlens(KEY, b"f", evidence=table)),
        *(guard.hpttl(KEY, b"a", b"b", evidence=table), guard.lrange(KEY, 100, 199)),
        *(guard.sscan(KEY, 0, count=3, evidence=table), guard.srandmember(KEY, 3, evidence=table)),
        guard.hscan(KEY, 0, count=9, match=b"*a*", evidence=table),
        *(guard.sscan(KEY, 0, count=9, match=b"a?", evidence=table), guard.sismember(KEY, b"a", evidence=table)),
        *(guard.zscan(KEY, 0, count=9, match=b"[ab]", evidence=table), guard.zrank(KEY, b"a", evidence=table)),
        *(
            guard.zcount_below(KEY, 1e300, evidence=table),
            guard.zcount_below(KEY, -1.5, including=True, evidence=table),
        ),
        *(
            guard.zlexcount_below(KEY, b"a", evidence=table),
            guard.zlexcount_below(KEY, b"", including=True, evidence=table),
        ),
        *(guard.zrange(KEY, 0, 99), guard.xinfo_consumers(KEY, b"g", few)),
        *(guard.xrevrange(KEY, b"+", b"(1-1", count=9), guard.xpending(KEY, b"g", few)),
        guard.arscan(KEY, 0, 10**15, limit=100),
        *(guard.vrange(KEY, b"(a", count=50), guard.vrandmember(KEY, 50), guard.vgetattr(KEY, b"a")),
        guard.vemb(KEY, b"a", VectorEvidence(64)),
    ]


def test_every_builder_writes_a_line_of_the_list_and_every_entry_has_a_builder() -> None:
    seen: set[Spec] = set()
    for command in built():
        (line,) = parsed(command.packed)
        spec = find_spec(line)
        assert spec is not None
        assert spec.name == command.name
        assert command.replies == 1
        seen.add(spec)
    assert seen == set(TABLE)


@given(st.binary(max_size=300), st.integers(), st.integers())
def test_windows_are_bounded_whatever_is_asked(key: bytes, first: int, last: int) -> None:
    for build, most in ((guard.getrange, 65_536), (guard.lrange, 100), (guard.zrange, 100)):
        if 0 <= first <= last < 1 << 63 and last - first < most:
            assert parsed(build(key, first, last).packed)[0][1:4] == [key, b"%d" % first, b"%d" % last]
        else:
            with pytest.raises(GuardError):
                build(key, first, last)


def test_text_in_place_of_a_number_is_refused() -> None:
    wrong: Any = "10"
    with pytest.raises(TypeError):
        guard.scan(0, count=wrong)


def test_a_command_cant_be_made_elsewhere() -> None:
    made: Any = Command
    with pytest.raises(GuardError):
        made(object(), "KEYS", b"*2\r\n$4\r\nKEYS\r\n$1\r\n*\r\n")
    with pytest.raises(GuardError):
        made(None, "KEYS", b"")
    with pytest.raises(TypeError):
        made("KEYS", b"")


def test_a_command_has_no_variants() -> None:
    with pytest.raises(GuardError):
        type("Forged", (Command,), {})


def test_a_command_does_not_change() -> None:
    command: Any = guard.ping()
    with pytest.raises(GuardError):
        command.packed = b"*1\r\n$8\r\nFLUSHALL\r\n"
    with pytest.raises(GuardError):
        del command.packed
    with pytest.raises(GuardError):
        command.more = 1
    assert command.packed == b"*1\r\n$4\r\nPING\r\n"


def test_a_command_does_not_travel() -> None:
    with pytest.raises(GuardError):
        pickle.dumps(guard.ping())
    with pytest.raises(GuardError):
        copy.copy(guard.ping())


def test_an_empty_shell_has_nothing_to_send() -> None:
    shell = object.__new__(Command)
    with pytest.raises(AttributeError):
        _ = shell.packed


@pytest.mark.parametrize(
    "command",
    [guard.auth(None, Secret(PASSWORD)), guard.auth("me", Secret(PASSWORD)), guard.hello(3, "me", Secret(PASSWORD))],
    ids=["auth", "user", "hello"],
)
def test_a_password_is_sent_and_never_shown(command: Command) -> None:
    assert isinstance(command.packed, SecretBytes)
    assert PASSWORD.encode() in b"".join([command.packed])
    shown = (
        repr(command),
        str(command),
        f"{command}",
        repr(command.packed),
        str(command.packed),
        f"{command.packed!s}",
    )
    assert not any(PASSWORD in text for text in shown)


@pytest.mark.parametrize("password", [PASSWORD * 300, PASSWORD + "\ud800"], ids=["too long", "no text"])
def test_a_refused_password_is_in_no_traceback(password: str) -> None:
    with pytest.raises(GuardError) as caught:
        guard.auth("me", Secret(password))
    error = caught.value
    assert error.__context__ is None
    out = io.StringIO()
    frames = error.__traceback__
    assert frames is not None
    Console(file=out, width=200).print(
        Traceback.from_exception(type(error), error, frames.tb_next, show_locals=True, locals_max_string=10_000)
    )
    captured = traceback.TracebackException.from_exception(error, capture_locals=True, limit=-2)
    for text in (out.getvalue(), "".join(captured.format())):
        assert "GuardError" in text
        assert PASSWORD not in text


def test_commands_without_a_password_are_not_redacted() -> None:
    secret = {command.name for command in built() if isinstance(command.packed, SecretBytes)}
    assert secret == {"AUTH", "HELLO", "COMMAND INFO"}
    assert not isinstance(guard.hello(2).packed, SecretBytes)


def test_passwords_that_are_not_utf8_are_sent_as_they_are() -> None:
    assert parsed(guard.auth(None, Secret("caf\udce9")).packed) == [[b"AUTH", b"caf\xe9"]]


@pytest.mark.parametrize("spec", TABLE, ids=lambda spec: spec.usage[:50])
def test_every_entry_says_what_it_costs_and_why_it_is_safe(spec: Spec) -> None:
    assert spec.cost
    assert spec.why
    assert spec.acl_rule == "+" + spec.name.lower().replace(" ", "|")
    assert set(spec.name) <= set(string.ascii_uppercase + " .-")
    assert not spec.in_bulk or len(spec.shape) == 1


def test_no_two_entries_admit_the_same_line() -> None:
    for line in LINES:
        assert sum(spec.admits(line) for spec in TABLE) == 1


@given(st.lists(st.binary(max_size=50), min_size=1, max_size=8))
def test_requests_read_back(argv: list[bytes]) -> None:
    assert parsed(pack_request(argv)) == [argv]
