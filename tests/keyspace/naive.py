"""A naive model of a keyspace: a list of keys, divided again for every question."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from typing import Any

from hypothesis import strategies as st

from rtui.keyspace.store.namespace import Child, Namespace
from rtui.keyspace.store.packed_names import Chunk, PackedNames, SplitNames, count_inline, pack_inline, unpack_inline
from rtui.keyspace.store.routing import CHILD_BYTES, NAMESPACE_BYTES
from rtui.keyspace.store.store import NamespaceStore
from rtui.keyspace.text.segments import Segment, Separators

Path = tuple[Segment, ...]

KEYS = st.lists(
    st.sampled_from([b":", b":", b"::", b"/", b"{", b"}", b"a", b"b", b"bb", b"", b"\xff", b"x" * 70]), max_size=7
).map(b"".join)
"""Keys full of everything that matters for a tree; a segment may be too long for inline packing."""

SEPARATOR_SETS = st.sampled_from([(b":",), (b":", b"/"), (b"::",), (b"::", b":"), ()])


@dataclass(frozen=True)
class Guess:
    """An estimate as the store sees it."""

    low: float = 0.0
    value: float = 10.0
    high: float = 20.0


class Ticking:
    """A clock that advances a second whenever it is read, so that every slice is as short as possible."""

    def __init__(self) -> None:
        self._ticks = count()

    def __call__(self) -> float:
        return float(next(self._ticks))


def divided(keys: list[bytes], separators: Separators) -> dict[Path, tuple[Counter[Segment], Counter[bytes]]]:
    """For each namespace: how many keys are below each of its namespaces, and its keys."""
    tree: dict[Path, tuple[Counter[Segment], Counter[bytes]]] = {(): (Counter(), Counter())}
    for key in keys:
        path: Path = ()
        for segment in separators.segments(key):
            namespaces, names = tree.setdefault(path, (Counter(), Counter()))
            if segment.separator:
                namespaces[segment] += 1
            else:
                names[segment.name] += 1
            path = (*path, segment)
    return tree


def kept_below(node: Namespace) -> list[bytes]:
    """The suffixes of all keys that are kept below a namespace, wherever they are."""
    found: list[bytes] = []
    waiting = [(node, b"")]
    while waiting:
        node, prefix = waiting.pop()
        found += [prefix + name for name in node.keys or ()]
        found += [prefix + name for chunk in node.pending or () for name in chunk.names()]
        found += [
            prefix + name
            for name in (unpack_inline(node.suffixes) if isinstance(node.suffixes, bytes) else node.suffixes or ())
        ]
        for label, child in children_of(node):
            if isinstance(child, Namespace):
                waiting.append((child, prefix + label))
            elif isinstance(child, bytes):
                found += [prefix + label + name for name in unpack_inline(child)]
    return found


def children_of(node: Namespace) -> list[tuple[bytes, Child]]:
    return [] if node.children is None else [(label, node.children[label]) for label in node.labels]


def check_memory(store: NamespaceStore) -> None:
    """The store accounts for all that it holds, except for children that became objects only by being accessed."""
    held = objects = 0
    waiting = [store.root]
    while waiting:
        node = waiting.pop()
        held += 0 if node.keys is None else node.keys.size_bytes
        held += sum(chunk.size_bytes for chunk in node.pending or ())
        held += (
            len(node.suffixes)
            if isinstance(node.suffixes, bytes)
            else 0
            if node.suffixes is None
            else node.suffixes.size_bytes
        )
        for _, child in children_of(node):
            held += CHILD_BYTES
            if isinstance(child, Namespace):
                objects += 1
                waiting.append(child)
            elif isinstance(child, bytes):
                held += len(child)
    counted, rest = divmod(store.memory.held_bytes - held, NAMESPACE_BYTES)
    assert rest == 0
    assert 0 <= counted <= objects


def check_store(store: NamespaceStore, keys: list[bytes]) -> None:
    """Counts, labels and names are those of the model; a namespace being opened may list only a part of them."""
    tree = divided(keys, store.separators)
    assert store.keys == len(keys)
    assert Counter(kept_below(store.root)) == Counter(keys)
    check_memory(store)
    waiting: list[Namespace] = [store.root]
    while waiting:
        node = waiting.pop()
        assert node.count == len(kept_below(node))
        if node.children is None:
            continue
        namespaces, names = tree.get(node.segments(), (Counter(), Counter()))
        listed = Counter(
            {
                Segment(label[: -len(node.separator_at(ordinal))], node.separator_at(ordinal)): node.count_at(ordinal)
                for ordinal, label in enumerate(node.labels)
            }
        )
        assert len(node.labels) == len(node.children)
        if node.opened:
            assert +listed == namespaces
            assert Counter(node.keys or ()) == names
        else:
            assert listed <= namespaces
            assert Counter(node.keys or ()) <= names
        for _, child in children_of(node):
            if isinstance(child, Namespace):
                assert child.parent is node
                waiting.append(child)
            elif isinstance(child, bytes):
                assert count_inline(child) == len(unpack_inline(child))


def shape(child: Child) -> Any:
    """All that a store knows of a namespace and what is below; names and namespaces in no order."""
    if isinstance(child, int):
        return child
    if isinstance(child, bytes):
        return sorted(unpack_inline(child))
    kept = child.suffixes
    return (
        (child.separator, child.count, child.dropped, child.refilling, child.own_scan, child.skipped, child.unlisted),
        child.estimate,
        sorted(unpack_inline(kept)) if isinstance(kept, bytes) else kept and (sorted(kept), kept.size_bytes),
        sorted(child.keys or ()),
        sorted(name for chunk in child.pending or () for name in chunk.names()),
        {label: shape(below) for label, below in children_of(child)},
    )


def check_same(one: NamespaceStore, other: NamespaceStore) -> None:
    """Two stores know the same, and account for the same memory."""
    assert shape(one.root) == shape(other.root)
    assert one.memory.held_bytes == other.memory.held_bytes
    assert (one.memory.full, one.memory.dropped) == (other.memory.full, other.memory.dropped)
    check_memory(other)


def split_names(keys: list[bytes], separators: Separators) -> SplitNames:
    """Keys split at separators of one byte each, as the compiled engine hands them over."""
    flat, divided_names = separators.group_batch(keys)
    groups = {label: rests for label, _, rests in divided_names}
    inline = {label: packed for label, names in groups.items() if (packed := pack_inline(names)) is not None}
    others = [(label, chunk) for label, names in groups.items() if label not in inline for chunk in chunks_of(names)]
    return SplitNames(len(keys), chunks_of(flat), list(inline), list(inline.values()), others)


def chunks_of(names: list[bytes]) -> list[Chunk]:
    return list(PackedNames(names).release())


def find(store: NamespaceStore, path: Iterable[Segment]) -> Namespace | None:
    """Return the namespace at this path, None if it is not listed."""
    node = store.root
    for name, separator in path:
        if node.children is None or name + separator not in node.children:
            return None
        node = node.child(name + separator)
    return node


def naturally(name: bytes) -> list[tuple[int, int, bytes, int]]:
    """A number that stands alone is one thing, before any digit that does not; so is any other byte."""
    found = []
    for part in re.findall(rb"[0-9A-Za-z\x80-\xff]+|.", name, re.DOTALL):
        digits = (part.lstrip(b"0") or b"0") if part.isdigit() else b""
        if digits:
            found.append((48, len(digits), digits, len(part) - len(digits)))
        else:
            found.extend((byte, 0 if byte < 48 else 1 << 30, b"", 0) for byte in part)
    return found
