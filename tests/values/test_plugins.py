"""Decoders of a user's own: found by their entry point, held to the limits, alone with their failures."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint

import pytest

from rtui.values import (
    Decoder,
    DecodingLimits,
    DecodingStep,
    ValueForm,
    ValueKind,
    ValueNode,
    alternatives,
    decode,
    decoder_names,
    outline,
    plugins,
)

MARK = b"ORDER:"


class Orders:
    """A decoder as a package would have it."""

    name = "orders"

    def sniff(self, data: bytes) -> float | None:
        return 1.0 if data.startswith(MARK) else None

    def decode(self, data: bytes, limits: DecodingLimits) -> object:
        number, state = data[len(MARK) :].split(b",")
        return {"number": int(number), "state": state.decode(), "lines": [None, True, 1.5, b"\xff"]}


class Unpacks(Orders):
    name = "unpacks"

    def decode(self, data: bytes, limits: DecodingLimits) -> object:
        return gzip.decompress(data[len(MARK) :])


class Fails(Orders):
    name = "fails"

    def decode(self, data: bytes, limits: DecodingLimits) -> object:
        raise KeyError("no such order \x1b[31m")


class FailsToSniff(Orders):
    name = "fails to sniff"

    def sniff(self, data: bytes) -> float | None:
        raise RecursionError("too deep")


class Large(Orders):
    name = "large"

    def decode(self, data: bytes, limits: DecodingLimits) -> object:
        return bytes(10 * limits.output_bytes)


class Deep(Orders):
    name = "deep"

    def decode(self, data: bytes, limits: DecodingLimits) -> object:
        inner: list[object] = []
        inner.append(inner)
        return [inner, *range(100_000)]


class Stepwise(Orders):
    name = "stepwise"

    def decode(self, data: bytes, limits: DecodingLimits) -> object:
        return DecodingStep(ValueNode(ValueKind.TEXT, "one"), ("a note",), truncated=True, form=ValueForm.TEXT)


class Shapeless:
    name = "shapeless"


Install = Callable[..., None]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    def put(*classes: str) -> None:
        found = tuple(EntryPoint(name, f"{__name__}:{name}", plugins.GROUP) for name in classes)
        monkeypatch.setattr(plugins, "entry_points", lambda group: found if group == plugins.GROUP else ())
        plugins.plugin_formats.cache_clear()

    yield put
    plugins.plugin_formats.cache_clear()


DATA = MARK + b"7,paid"


def test_a_plugin_decodes_what_it_recognises(install: Install) -> None:
    install("Orders")
    found = decode(DATA)
    assert found.chain == ("orders",)
    assert [(child.name and child.name.value, child.kind, child.value) for child in found.root.children] == [
        ("number", ValueKind.NUMBER, "7"),
        ("state", ValueKind.TEXT, "paid"),
        ("lines", ValueKind.LIST, ""),
    ]
    assert decode(b"anything else").chain == ("text",)
    assert "orders" in decoder_names()
    assert alternatives(DATA)[0] == "orders"


def test_what_a_plugin_unpacks_is_decoded_further(install: Install) -> None:
    install("Unpacks")
    assert decode(MARK + gzip.compress(b'{"a": 1}', mtime=0)).chain == ("unpacks", "JSON")


def test_a_plugin_is_found_inside_of_other_layers(install: Install) -> None:
    install("Orders")
    assert decode(gzip.compress(DATA, mtime=0)).chain == ("gzip", "orders")


def test_a_failure_is_named_and_the_value_shown_without_the_plugin(install: Install) -> None:
    install("Fails")
    found = decode(DATA)
    assert found.chain == ("text",)
    assert found.notes == ("fails failed with KeyError: 'no such order \\x1b[31m'",)


def test_a_failure_to_recognise_is_named_once(install: Install) -> None:
    install("FailsToSniff")
    found = decode(gzip.compress(DATA, mtime=0))
    assert found.chain == ("gzip", "text")
    assert found.notes == ("fails to sniff failed with RecursionError: too deep",)


def test_a_plugin_that_was_chosen_and_fails_leaves_the_bytes(install: Install) -> None:
    install("Fails")
    found = decode(DATA, choose="fails")
    assert (found.chain, found.form, found.data) == (("fails",), ValueForm.HEX, DATA)
    assert found.notes


def test_what_a_plugin_returns_is_held_to_the_limits(install: Install) -> None:
    install("Large", "Deep")
    assert len(decode(DATA, choose="large › hex").data) == DecodingLimits().output_bytes
    found = decode(DATA, choose="deep")
    assert found.truncated
    assert sum(1 for _ in outline(found.root)) <= DecodingLimits().elements


def test_a_plugin_may_say_more_with_a_step(install: Install) -> None:
    install("Stepwise")
    found = decode(DATA)
    assert (found.root.value, found.notes, found.truncated, found.form) == ("one", ("a note",), True, ValueForm.TEXT)


@pytest.mark.parametrize("name", ["Shapeless", "Missing"])
def test_a_plugin_that_can_not_be_loaded_says_so_when_it_is_chosen(install: Install, name: str) -> None:
    install(name)
    assert decode(DATA).chain == ("text",)
    assert decode(DATA).notes == ()
    found = decode(DATA, choose=name)
    assert found.notes[0].startswith(f"{name} can't be loaded: ")


def test_the_class_has_the_shape_of_a_decoder() -> None:
    assert isinstance(Orders(), Decoder)
