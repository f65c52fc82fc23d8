"""A pickle reads as the value that was pickled; whatever else it is, nothing of it is run."""

from __future__ import annotations

import collections
import copyreg
import datetime
import decimal
import enum
import fractions
import os
import pickle
import pickletools
import sys
import uuid
import zoneinfo
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rtui.values import Decoded, DecodingLimits, ValueForm, ValueKind, ValueNode, choices, decode, outline, summarise
from tests.conftest import known
from tests.values.test_bounds import SMALL, within

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)
UTC = datetime.UTC
ANY_TEXT = st.text(st.characters(codec=None))
ZONES = st.sampled_from(
    [None, UTC, datetime.timezone(datetime.timedelta(hours=2)), datetime.timezone(datetime.timedelta(minutes=-210))]
)
HASHABLE = (
    st.none() | st.booleans() | st.integers() | st.integers(-(2**300), 2**300) | st.floats(allow_nan=False)
    | ANY_TEXT | st.binary() | st.decimals(allow_nan=False, allow_infinity=False) | st.uuids()
    | st.dates() | st.times(timezones=ZONES) | st.timedeltas() | st.fractions() | st.complex_numbers(allow_nan=False)
    | st.datetimes(timezones=ZONES)
)  # fmt: skip
PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | ANY_TEXT | st.binary(max_size=9)
VALUES = st.recursive(
    HASHABLE | st.binary().map(bytearray),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.lists(inner, max_size=3).map(collections.deque)
        | st.sets(HASHABLE, max_size=3)
        | st.frozensets(HASHABLE, max_size=3)
        | st.dictionaries(HASHABLE, inner, max_size=3)
        | st.dictionaries(HASHABLE, inner, max_size=3).map(collections.OrderedDict)
    ),
    max_leaves=6,
)
DOCUMENTS = st.recursive(
    PLAIN | st.datetimes() | st.tuples(PLAIN, PLAIN),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(PLAIN, inner, max_size=4),
    max_leaves=8,
)


def zone_name(value: datetime.datetime | datetime.time) -> str:
    if value.tzinfo is None:
        return ""
    offset = known(value.tzinfo.utcoffset(None))
    if not offset:
        return " UTC"
    minutes = round(offset.total_seconds() / 60)
    return f" {'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


def shown(value: Any) -> object:  # noqa: PLR0911 - one a class
    """Return a value as its tree is: kind, text, type, and what is in it."""
    match value:
        case None | bool():
            return ValueKind.CONSTANT, {None: "null", True: "true", False: "false"}[value], ""
        case int() | float():
            return ValueKind.NUMBER, repr(value), ""
        case complex() | decimal.Decimal():
            return ValueKind.NUMBER, str(value), type(value).__name__
        case fractions.Fraction():
            return ValueKind.NUMBER, f"{value.numerator}/{value.denominator}", "Fraction"
        case str():
            return ValueKind.TEXT, value, ""
        case bytes() | bytearray():
            return ValueKind.BYTES, bytes(value), "bytearray" if isinstance(value, bytearray) else ""
        case uuid.UUID():
            return ValueKind.TEXT, str(value), "UUID"
        case datetime.datetime() | datetime.time():
            text = value.replace(tzinfo=None)
            written = text.isoformat(" ") if isinstance(text, datetime.datetime) else text.isoformat()
            return ValueKind.TEXT, written + zone_name(value), type(value).__name__
        case datetime.date() | datetime.timedelta():
            return ValueKind.TEXT, str(value), type(value).__name__
        case dict():
            return ValueKind.MAP, type_of(value), [(shown(key), shown(item)) for key, item in value.items()]
        case set() | frozenset():
            return ValueKind.LIST, type_of(value), sorted((shown(item) for item in value), key=repr)
    return ValueKind.LIST, type_of(value), [shown(item) for item in value]


def type_of(value: object) -> str:
    name = type(value).__name__
    return "" if name in ("list", "dict") else name


def tree(node: ValueNode) -> object:
    """Return a tree in the form of `shown`."""
    if node.kind is ValueKind.MAP:
        pairs = [(tree(child.name), tree(child)) for child in node.children if child.name is not None]
        return node.kind, node.type_name, pairs
    if node.kind is ValueKind.LIST:
        inside = [tree(child) for child in node.children]
        return node.kind, node.type_name, sorted(inside, key=repr) if "set" in node.type_name else inside
    return node.kind, node.value, node.type_name


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(value=VALUES)
@example(value=[])
@example(value=[[], [[]], {}, (), {"a": {}}])
@example(value={float("inf"): [float("-inf")], -0.0: ""})
def test_values_read_as_they_were(protocol: int, value: object) -> None:
    found = decode(pickle.dumps(value, protocol), choose="pickle")
    assert tree(found.root) == shown(value)
    assert not found.truncated
    assert found.notes == ()


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(value=st.lists(VALUES, min_size=1, max_size=3) | st.dictionaries(ANY_TEXT, VALUES, min_size=1, max_size=3))
def test_they_are_recognised(protocol: int, value: object) -> None:
    patient = DecodingLimits(seconds=10)  # of a processor that others take away in the middle
    assert decode(pickle.dumps(value, protocol), limits=patient).chain == ("pickle",)
    if protocol > 1:
        assert decode(pickletools.optimize(pickle.dumps(value, protocol)), limits=patient).chain == ("pickle",)


UNCALLED = ("class or function", "timedelta")
"""Nodes that are not in the whole value: classes, and the offset that becomes part of a time zone."""


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(value=st.dictionaries(st.text(), DOCUMENTS, min_size=1, max_size=4), share=st.floats(0, 1))
def test_of_the_beginning_nothing_is_shown_that_is_not_in_it(
    protocol: int, value: dict[str, object], share: float
) -> None:
    data = pickle.dumps(value, protocol)
    cut = data[: int(share * (len(data) - 1))]
    whole = {repr(row.node.value) for row in outline(decode(data, choose="pickle").root)}
    pushed = scalars(data)
    for is_whole in (True, False):
        found = decode(cut, choose="pickle", is_whole=is_whole)
        assert found.truncated or found.has_failed
        if found.form is ValueForm.TREE:
            rows = [row.node for row in outline(found.root) if row.node.type_name not in UNCALLED]
            there = {repr(node.value) for node in rows if not node.is_cut and node.kind is not ValueKind.BYTES}
            assert there <= whole | pushed | {"''", "'null'", "'true'", "'false'"}


def scalars(data: bytes) -> set[str]:
    """Return what the instructions of a pickle push."""
    found = {repr(operand) for _, operand, _ in pickletools.genops(data)}
    return found | {repr(one) for one in found}


def text(length: int) -> str:
    return "".join(chr(97 + at * at % 26) for at in range(length))


@pytest.mark.parametrize("protocol", PROTOCOLS[1:])
def test_of_a_long_text_that_is_cut_the_beginning_is_shown(protocol: int) -> None:
    page = text(5_000)
    data = pickle.dumps({"status": 200, "headers": {}, "lines": [[1, 2], {"page": page}]}, protocol)
    found = decode(data[: len(data) // 2], is_whole=False)
    assert found.chain == ("pickle",)
    row = next(row for row in outline(found.root) if isinstance(row.node.value, str) and len(row.node.value) > 1_000)
    assert page.startswith(str(row.node.value))
    assert row.node.is_cut
    assert known(row.node.name).value == "page"
    assert row.path == (2, 1, 0)
    assert tree(found.root.children[2].children[0]) == shown([1, 2])


class Plain:
    def __init__(self, **attributes: object) -> None:
        self.__dict__.update(attributes)


class Slots:
    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class Items(list[object]):
    pass


class Text(str):
    __slots__ = ()


class Colour(enum.Enum):
    RED = "red"


Point = collections.namedtuple("Point", ("x", "y"))
HERE = __name__


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_objects_are_named_nodes_with_what_is_in_them(protocol: int) -> None:
    value = {
        "plain": Plain(a=1, b=[2]), "items": Items([1, 2]), "text": Text("t"), "colour": Colour.RED,
        "point": Point(1, 2), "class": Plain, "counter": collections.Counter("aab"),
        "default": collections.defaultdict(list, {"a": [1]}), "zone": zoneinfo.ZoneInfo("Europe/Rome"),
    }  # fmt: skip
    found = decode(pickle.dumps(value, protocol))
    assert tree(found.root) == (ValueKind.MAP, "", [
        (shown("plain"), (ValueKind.MAP, f"{HERE}.Plain", [(shown("a"), shown(1)), (shown("b"), shown([2]))])),
        (shown("items"), (ValueKind.LIST, f"{HERE}.Items", [shown(1), shown(2)])),
        (shown("text"), (ValueKind.TEXT, "t", f"{HERE}.Text")),
        (shown("colour"), (ValueKind.LIST, f"{HERE}.Colour()", [shown("red")])),
        (shown("point"), (ValueKind.LIST, f"{HERE}.Point", [shown(1), shown(2)])),
        (shown("class"), (ValueKind.CONSTANT, f"{HERE}.Plain", "class or function")),
        (shown("counter"), (ValueKind.MAP, "Counter", [(shown("a"), shown(2)), (shown("b"), shown(1))])),
        (shown("default"), (ValueKind.MAP, "defaultdict", [(shown("a"), shown([1]))])),
        (shown("zone"), (ValueKind.TEXT, "Europe/Rome", "ZoneInfo")),
    ])  # fmt: skip
    assert found.notes[0] == "nothing of it was run"
    assert found.notes[1].startswith(f"loading it would import and call {HERE}.Plain, {HERE}.Items, {HERE}.Text")
    assert "collections" not in found.notes[1]


@pytest.mark.parametrize("protocol", PROTOCOLS[2:])
def test_attributes_in_slots_are_members(protocol: int) -> None:
    assert tree(decode(pickle.dumps(Slots("n"), protocol)).root) == (
        ValueKind.MAP, f"{HERE}.Slots", [(shown("name"), shown("n"))],
    )  # fmt: skip


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_contains_itself_is_referred_to(protocol: int) -> None:
    own: list[object] = [1]
    own.append(own)
    shared = {"x": 1}
    node = Plain(name="n")
    node.self = node  # type: ignore[attr-defined]
    value = {"own": own, "shared": [shared, shared], "node": node, "again": own}
    found = decode(pickle.dumps(value, protocol))
    notes = {row.path: row.node.value for row in outline(found.root) if row.node.kind is ValueKind.NOTE}
    assert notes == {
        (0, 1): 'the same as ["own"]',
        (1, 1): 'the same as ["shared"][0]',
        (2, 1): 'the same as ["node"]',
        (3,): 'the same as ["own"]',
    }
    assert tree(decode(pickle.dumps(own, protocol)).root) == (
        ValueKind.LIST, "", [shown(1), (ValueKind.NOTE, "the same as the whole value", "")],
    )  # fmt: skip


def test_a_long_text_is_not_multiplied() -> None:
    page = text(100_000)
    found = decode(pickle.dumps([page] * 1_000, 4), limits=DecodingLimits(output_bytes=1 << 20))
    assert len(found.root.children) == 1_000
    assert sum(len(row.node.raw) for row in outline(found.root)) < 2 * len(page)


def test_laughter_by_memo_is_not_laughed() -> None:
    laugh: object = ["lol"] * 10
    for _ in range(40):
        laugh = [laugh] * 10
    for protocol in PROTOCOLS:
        found = decode(pickle.dumps(laugh, protocol))
        assert found.chain == ("pickle",)
        assert not found.truncated
        assert within(found, DecodingLimits())


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"S'it\\'s'\np0\n.", "it's"),
        (b"S'caf\\xc3\\xa9'\np0\n.", "café"),
        (b"U\x03caf.", "caf"),
        (b"(dp0\nS'a'\np1\nI01\ns.", {"a": True}),
        (b"(lp0\nL5L\naI00\naF1.5\na.", [5, False, 1.5]),
        (b"\x80\x02}q\x00(U\x01aK\x01U\x01bN0u.", {"a": 1}),
        (b"\x80\x04)\x81.", None),
        (b"\x80\x04]\x94(K\x01K\x022e.", [1, 2, 2]),
        (b"\x80\x04(K\x01K\x021K\x03.", 3),
        (b"\x80\x05\x96\x01\0\0\0\0\0\0\0a.", bytearray(b"a")),
    ],
)
def test_what_older_programs_write(data: bytes, expected: object) -> None:
    found = decode(data, choose="pickle")
    if expected is None:
        assert found.has_failed
    else:
        assert tree(found.root) == shown(expected)


def test_members_of_an_ordered_dict_that_is_cut_have_their_names() -> None:
    data = pickle.dumps(collections.OrderedDict((f"key {at}", at) for at in range(100)), 4)
    root = decode(data[: len(data) // 2], is_whole=False).root
    assert root.type_name == "OrderedDict"
    assert root.kind is ValueKind.MAP
    assert tree(root.children[40]) == shown(40)
    assert known(root.children[40].name).value == "key 40"


def test_dates_of_python_2_are_dates() -> None:
    data = b"\x80\x02cdatetime\ndatetime\nq\x00U\n\x07\xe4\x02\x03\x04\x05\x06\x00\x00\x07q\x01\x85q\x02Rq\x03."
    assert tree(decode(data).root) == shown(datetime.datetime(2020, 2, 3, 4, 5, 6, 7))


@pytest.mark.parametrize(
    ("data", "path", "value", "type_name"),
    [
        (b"\x80\x02P12\n.", (), "12", "persistent id"),
        (b"\x80\x02K\x07Q.", (0,), "7", ""),
        (b"\x80\x02\x82\x05.", (), "extension 5", "class or function"),
        (b"\x80\x05\x97\x98.", (), "", "buffer outside of the pickle"),
        (b"\x80\x02(K\x01K\x02iposix\nsystem\n.", (1,), "2", ""),
        (b"\x80\x02(cposix\nsystem\nK\x01o.", (), "1", "posix.system"),
        (b"\x80\x04cm\nA\n)}\x8c\x01kK\x01s\x92.", (0,), "1", ""),
    ],
)
def test_instructions_that_few_pickles_have(data: bytes, path: tuple[int, ...], value: str, type_name: str) -> None:
    row = next(row for row in outline(decode(data, choose="pickle").root) if row.path == path)
    assert (row.node.value, row.node.type_name) == (value, type_name)


class Runs:
    def __init__(self, *arguments: str) -> None:
        self.arguments = arguments

    def __reduce__(self) -> tuple[object, tuple[str, ...]]:
        return os.system, self.arguments


def test_what_a_hostile_pickle_would_call_is_named() -> None:
    chained = b"cbuiltins\ngetattr\n(cbuiltins\n__import__\nS'x'\ntR."
    assert "would import builtins.__import__.x" in decode(chained, choose="pickle").notes[1]
    for protocol in PROTOCOLS:
        found = decode(pickle.dumps([Runs("id"), Runs("a", "b")], protocol))
        assert [child.type_name for child in found.root.children] == ["posix.system()"] * 2
        assert [child.value for child in found.root.children[1].children] == ["a", "b"]
        assert found.notes == ("nothing of it was run", "loading it would import and call posix.system")


def operands(name: str) -> st.SearchStrategy[bytes]:
    """Return operands of an instruction, mostly right ones."""
    number = st.integers(0, 6)
    match next(one for one in pickletools.opcodes if one.name == name).arg:
        case None:
            return st.just(b"")
        case argument if argument.name.startswith(("uint", "int")):
            size = int(argument.name[-1])
            return number.map(lambda value: value.to_bytes(size, "little"))
        case argument if argument.n == pickletools.UP_TO_NEWLINE:
            return st.sampled_from([b"0\n", b"1\n", b"'a'\n", b"m\nA\n", b"builtins\nset\n", b"datetime\ndatetime\n"])
        case argument if argument.name == "float8":
            return st.just(bytes(8))
        case argument:
            size = int(argument.name[-1])
            return st.binary(max_size=4).map(lambda piece: len(piece).to_bytes(size, "little") + piece)


PROGRAMS = st.lists(
    st.sampled_from(pickletools.opcodes).flatmap(
        lambda one: operands(one.name).map(lambda operand: one.code.encode("latin-1") + operand)
    ),
    max_size=60,
).map(lambda pieces: b"\x80\x04" + b"".join(pieces))


@given(PROGRAMS, st.booleans())
def test_any_program_is_read_within_the_limits(data: bytes, is_whole: bool) -> None:
    for name in ("pickle", "pickle instructions"):
        for program in (data, data + b"."):
            assert within(decode(program, choose=name, limits=SMALL, is_whole=is_whole), SMALL)


def long_programs() -> list[bytes]:
    """Return programs that do much with few bytes."""
    return [
        b"\x80\x04" + b"]" * 100_000,
        b"\x80\x04" + b"(" * 100_000,
        b"\x80\x04]" + b"2" * 100_000 + b".",
        b"\x80\x04]" + b"2a" * 50_000 + b".",
        b"\x80\x04" + b"]\x85" * 50_000 + b".",
        b"\x80\x04K\x01" + b"\x85" * 100_000 + b".",
        b"\x80\x04K\x01" + b"K\x02\x86" * 30_000 + b".",
        b"\x80\x04}" + b"K\x01\x85}s" * 20_000 + b".",
        b"\x80\x04" + b"K\x01" * 50_000,
        b"\x80\x04cm\nA\n" + b")\x81" * 50_000 + b".",
        b"\x80\x04" + b"}" * 100_000 + b"b" * 99_999 + b".",
        b"\x80\x04]\x94" + b"(h\x00h\x00e" * 20_000 + b".",
        b"\x80\x04K\x01" + b"\x94" * 500_000 + b".",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("number", range(13))
def test_a_program_that_does_much_ends_at_a_limit(number: int) -> None:
    data = long_programs()[number]
    for is_whole in (True, False):
        for limits in (DecodingLimits(), SMALL):
            found = decode(data, choose="pickle", is_whole=is_whole, limits=limits)
            assert within(found, limits)
            assert sys.getrefcount(found) > 0


def test_the_instructions_are_the_second_choice() -> None:
    data = pickle.dumps({"a": 1, "b": [1, 2]}, 2)
    assert choices(data).fitting[:2] == ("pickle", "pickle instructions")
    found = decode(data, choose="pickle instructions")
    assert found.form is ValueForm.LISTING
    rows = [(row.depth, row.node.name.value) for row in outline(found.root) if row.node.name]
    assert [name for _, name in rows] == [opcode.name for opcode, _, _ in pickletools.genops(data)]
    assert max(depth for depth, _ in rows) == 3


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ({"a": 1, "b": 2}, "pickle {2}"),
        ("ann", 'pickle "ann"'),
        (Plain(a=1), f"pickle {HERE}.Plain {{1}}"),
        (datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), 'pickle datetime "2026-01-02 03:04:05 UTC"'),
        (1536236969740, "pickle 1536236969740 › 2018-09-06 12:29:29.740 UTC"),
    ],
)
def test_a_pickle_in_one_line(value: object, line: str) -> None:
    assert known(summarise(pickle.dumps(value))).text == line


def test_what_copyreg_makes_is_an_object_of_its_class() -> None:
    copyreg_names = {name for name in ("_reconstructor", "__newobj__", "__newobj_ex__") if hasattr(copyreg, name)}
    assert len(copyreg_names) == 3
    for protocol in (0, 1):
        found: Decoded = decode(pickle.dumps(Items([1]), protocol))
        assert found.root.type_name == f"{HERE}.Items"
        assert not any("copyreg" in note for note in found.notes)


def test_what_stands_before_the_bytes_of_an_array_of_joblib_is_read() -> None:
    # joblib writes the elements of an array behind the object that describes it, and goes on behind them.
    written = pickle.dumps({"kind": "weights", "shape": (4,), "layers": [1, 2, 3], "next": None})
    for raw in (b"\xff" + bytes(32), bytes(range(200, 255))):
        found = decode(written[:-2] + raw + written[-2:])
        assert found.chain == ("pickle",)
        assert found.truncated
        assert any(note.startswith("damaged behind") for note in found.notes)
        assert {one.value for row in outline(found.root) if (one := row.node).kind is ValueKind.TEXT} >= {"weights"}
    described = pickle.dumps(["joblib.numpy_pickle", "NumpyArrayWrapper", (4,), [1, 2, 3]])
    notes = decode(described[:-2] + b"\xff" + bytes(32) + described[-2:]).notes
    assert notes[-1].startswith("joblib writes the elements of arrays")
