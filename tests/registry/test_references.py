"""What values point to, and who should point to a key."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.registry.expectations import ReferenceSource, json_steps, json_values
from rtui.registry.load import read_registry
from rtui.registry.registry import Registry, RegistryEntry

TEXT = """
[placeholders]
entity = ["user", "order"]
userId = "int"

[[pattern]]
pattern = "<entity>:list"
type = "set"
references = [{ from = "member", to = "<entity>:<member>" }]

[[pattern]]
pattern = "user:<userId>:orders"
type = "set"
references = [{ from = "member", to = "order:<member>", twin = "order:index:user:<userId>" }]

[[pattern]]
pattern = "order:index:user:<userId>"
type = "set"

[[pattern]]
pattern = "user:index:email:<email>"
type = "string"
references = [{ from = "value", to = "user:<value>" }]

[[pattern]]
pattern = "session:<id>"
type = "hash"
references = [{ from = "field:userId", to = "user:<value>" }, { from = "key", to = "lock:<id>" }]

[[pattern]]
pattern = "tags:<entity>"
references = [{ from = "member", to = "<member>" }]

[[pattern]]
pattern = "<entity>:<id>"
references = [{ from = "json:lines[].dishId", to = "dish:<value>" }]
"""


@pytest.fixture(scope="module")
def registry() -> Registry:
    return read_registry(TEXT)


def entry(registry: Registry, key: bytes) -> tuple[RegistryEntry, dict[str, bytes]]:
    index = registry.matcher.match(key)
    assert index is not None
    return registry.entries[index], registry.matcher.fields(key, index)


def names(registry: Registry, key: bytes, *values: bytes) -> list[bytes]:
    found, fields = entry(registry, key)
    return [name for reference in found.references for name in reference.names(fields, values)]


def test_members_and_values_fill_the_target(registry: Registry) -> None:
    assert names(registry, b"user:list", b"1", b"2") == [b"user:1", b"user:2"]
    assert names(registry, b"user:index:email:ann@example.com", b"7") == [b"user:7"]
    assert names(registry, b"session:x", b"7") == [b"user:7", b"lock:x"]


def test_members_can_be_whole_names(registry: Registry) -> None:
    assert names(registry, b"tags:user", b"app:cache:user:1", b"x") == [b"app:cache:user:1", b"x"]


def test_a_twin_has_the_name_of_the_other_index(registry: Registry) -> None:
    found, fields = entry(registry, b"user:7:orders")
    assert found.references[0].twin_name(fields) == b"order:index:user:7"
    assert entry(registry, b"user:list")[0].references[0].twin_name({}) is None


def test_who_points_here_as_far_as_the_name_says_it(registry: Registry) -> None:
    found = [(one.key, one.value) for one in registry.incoming(b"order:17")]
    assert found == [(b"order:list", b"17")]
    assert [(one.key, one.value) for one in registry.incoming(b"lock:x")] == [(b"session:x", None)]
    assert registry.incoming(b"nothing:here:at:all") == []


@given(st.integers(0, 10**9))
def test_a_reference_can_be_followed_back(number: int) -> None:
    registry = read_registry(TEXT)
    value = b"%d" % number
    (target,) = names(registry, b"order:list", value)
    assert (b"order:list", value) in [(one.key, one.value) for one in registry.incoming(target)]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("roleId", [b"4"]),
        ("name", ["Zoë".encode()]),
        ("lines[].dishId", [b"1", b"x"]),
        ("address.city.code", [b"9"]),
        ("missing", []),
        ("roleId.deeper", []),
        ("lines", []),
        ("flag", []),
    ],
)
def test_values_in_json(path: str, expected: list[bytes]) -> None:
    document = {
        "roleId": 4,
        "name": "Zoë",
        "lines": [{"dishId": 1}, {"dishId": "x"}, {"other": 1}, 5],
        "address": {"city": {"code": 9}},
        "flag": True,
    }
    assert json_values(json.dumps(document).encode(), path) == expected


def test_lists_can_be_the_whole_document() -> None:
    assert json_values(b'[{"id": 1}, {"id": 2}]', "[].id") == [b"1", b"2"]


@given(st.binary(max_size=60))
def test_any_bytes_are_json_or_none(text: bytes) -> None:
    found = json_values(text, "a.b[]")
    assert found is None or isinstance(found, list)


def test_deep_json_is_refused_without_harm() -> None:
    assert json_values(b"[" * 100_000, "a") is None


@pytest.mark.parametrize("path", ["", "a..b", "a[", "a[0]", "."])
def test_what_is_no_path(path: str) -> None:
    with pytest.raises(ValueError):
        json_steps(path)


def test_every_source_says_of_which_types_it_is() -> None:
    assert all(source.placeholder is None or source.types for source in ReferenceSource)
