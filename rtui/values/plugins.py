"""The user's own decoders, found by the entry point group `rtui.decoders`.

A package offers one in its pyproject.toml:

    [project.entry-points."rtui.decoders"]
    orders = "our_package.decoders:OrderDecoder"

The object, or the result of calling the class, implements `Decoder`. An exception costs only the decoder: the value is
shown as if it were not installed, and a note names it. Its output is held to the limits, its time is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Final, Protocol, runtime_checkable

from rtui.values.source import Format, ValueSource
from rtui.values.tree import Budget, DecodingLimits, DecodingStep, Exceeded, Invalid, ValueForm, ValueKind, ValueNode

GROUP: Final = "rtui.decoders"
MAX_NAME: Final = 40
MAX_MESSAGE: Final = 200
MAX_REPR: Final = 1_000
MAX_INTEGER_BITS: Final = 256


@runtime_checkable
class Decoder(Protocol):
    """The interface of a plugin."""

    name: str
    """The name that is shown, of at most 40 characters."""

    def sniff(self, data: bytes) -> float | None:
        """Return the confidence that these are its bytes, above 0 and at most 1, or None.

        0.7 is for a well-formed value of a format without a mark of its own, 1 for one with a mark. `data` may be only
        the beginning of a value.
        """

    def decode(self, data: bytes, limits: DecodingLimits) -> object:
        """Return bytes, which are decoded further, or the value: text, numbers, None, dicts and lists of these.

        A `ValueNode` or a `DecodingStep` may be returned for anything else. An exception is shown as the decoder's
        failure.
        """


@cache
def plugin_formats() -> tuple[Format, ...]:
    """Return the installed decoders; one that can't be loaded fails when it is chosen."""
    return tuple(map(_loaded, sorted(entry_points(group=GROUP))))


def _loaded(entry: EntryPoint) -> Format:
    try:
        made = entry.load()
        decoder = made() if isinstance(made, type) else made
        if not isinstance(decoder, Decoder):
            return _broken(entry.name, "it has no name, sniff and decode")
        return as_format(decoder)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the plugin's
        return _broken(entry.name, f"{type(error).__name__}: {error}")


def _broken(name: str, why: str) -> Format:
    def read(_source: ValueSource, _budget: Budget) -> DecodingStep:
        raise Invalid(f"can't be loaded: {why}")

    return Format(name[:MAX_NAME], lambda _source, _budget: None, read)


def as_format(decoder: Decoder) -> Format:
    """Return a plugin as a format that raises only the exceptions of decoders, and obeys the limits."""

    def sniff(source: ValueSource, _budget: Budget) -> float | None:
        try:
            confidence = decoder.sniff(source.data)
            return None if confidence is None else min(1.0, float(confidence))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the plugin's
            raise _failed(error) from None

    def read(source: ValueSource, budget: Budget) -> DecodingStep:
        try:
            found = decoder.decode(source.data, budget.limits)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the plugin's
            raise _failed(error) from None
        return _as_step(found, source, budget)

    return Format(str(decoder.name)[:MAX_NAME], sniff, read)


def _failed(error: Exception) -> Invalid:
    return Invalid(f"failed with {type(error).__name__}: {str(error)[:MAX_MESSAGE]}")


def _as_step(found: object, source: ValueSource, budget: Budget) -> DecodingStep:
    """Return the result of a plugin as a step within the limits."""
    limit = budget.limits.output_bytes
    truncated = not source.is_whole
    notes: tuple[str, ...] = ()
    form = ValueForm.TREE
    if isinstance(found, DecodingStep):
        step = found
        found, notes, truncated, form = step.content, step.notes, step.truncated, step.form
    if isinstance(found, (bytes, bytearray, memoryview)):
        data = bytes(found[:limit])
        if len(found) > limit:
            notes = (*notes, f"only the first {limit:,} bytes that come out of it are shown")
        return DecodingStep(data, notes, truncated or len(found) > limit)
    if isinstance(found, ValueNode):
        return DecodingStep(found, notes, truncated, form)
    tree = _PlainTree(budget)
    budget.spend()
    root = tree.node(found)
    if tree.stopped:
        notes, truncated = (*notes, tree.stopped), True
    form = ValueForm.TEXT if root.kind is ValueKind.TEXT else ValueForm.TREE
    return DecodingStep(root, notes, truncated, form)


class _PlainTree:
    """Builds nodes from plain Python values, up to the limits; other objects are shown by their `repr`."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.stopped = ""
        """The limit that was reached, as a sentence."""

    def node(self, value: object, depth: int = 0) -> ValueNode:
        """Return a value with its contents as a node."""
        match value:
            case Mapping():
                return self._container(ValueKind.MAP, value.items(), depth)
            case list() | tuple() | set() | frozenset():
                return self._container(ValueKind.LIST, ((None, item) for item in value), depth)
        return _scalar(value, self.budget.limits.output_bytes)

    def _container(self, kind: ValueKind, pairs: Iterable[tuple[object, object]], depth: int) -> ValueNode:
        node = ValueNode(kind)
        if depth >= self.budget.limits.depth:
            self.stopped = f"levels deeper than {depth} are not shown"
            node.is_cut = True
            return node
        for name, item in pairs:
            try:
                self.budget.spend()
            except Exceeded as reached:
                self.stopped = str(reached)
                node.is_cut = True
                break
            child = self.node(item, depth + 1)
            child.name = self.node(name, depth + 1) if kind is ValueKind.MAP else None
            node.children.append(child)
        return node


def _scalar(value: object, limit: int) -> ValueNode:
    """Return a value without children as a node."""
    found: tuple[ValueKind, str | bytes]
    match value:
        case None | bool():
            found = ValueKind.CONSTANT, {None: "null", True: "true", False: "false"}[value]
        case int() if abs(value) >= 1 << MAX_INTEGER_BITS:
            found = ValueKind.NOTE, f"an integer of {value.bit_length():,} bits"
        case int() | float():
            found = ValueKind.NUMBER, repr(value)
        case str():
            found = ValueKind.TEXT, value[:limit]
        case bytes() | bytearray():
            found = ValueKind.BYTES, bytes(value[:limit])
        case _:
            found = ValueKind.NOTE, repr(value)[:MAX_REPR]
    return ValueNode(found[0], found[1], type(value).__name__ if found[0] is ValueKind.NOTE else "")
