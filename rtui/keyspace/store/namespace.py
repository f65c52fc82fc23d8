"""One namespace of the tree: a count and packed suffixes until someone opens it, its children afterwards."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Generic, Protocol, TypeAlias, TypeVar

from rtui.keyspace.store.packed_names import Chunk, PackedNames, count_inline
from rtui.keyspace.text.segments import Segment

CHILD_BATCH = 512
"""The number of children in a batch of `Namespace.child_batches`: about half a millisecond of work."""


class Estimated(Protocol):
    """A number of keys estimated from a sample, with its confidence interval."""

    @property
    def low(self) -> float:
        """The lower end of the interval."""

    @property
    def value(self) -> float:
        """The likeliest number."""

    @property
    def high(self) -> float:
        """The upper end of the interval."""


V = TypeVar("V")

SHARD_ABOVE = 1 << 13
"""A dict with more entries than this is turned into a `ShardedDict`: to grow one of this size takes half a
millisecond."""

SHARDS = 64
"""The number of dicts that the entries are divided among; a power of two."""


class ShardedDict(Generic[V]):
    """A dict that never takes long to grow, for hundreds of thousands of namespaces in one; unordered.

    A dict of half a million entries that grows moves all of them at once, for tens of milliseconds. Here, entries are
    divided among 64 dicts by their hashes, and each grows on its own.
    """

    __slots__ = ("shards",)

    def __init__(self, entries: dict[bytes, V]) -> None:
        self.shards: list[dict[bytes, V]] = [{} for _ in range(SHARDS)]
        """The shards; the last bits of a key's hash are the number of its shard."""
        for key, value in entries.items():
            self[key] = value

    def __len__(self) -> int:
        return sum(map(len, self.shards))

    def __contains__(self, key: bytes) -> bool:
        return key in self.shards[hash(key) & SHARDS - 1]

    def __getitem__(self, key: bytes) -> V:
        return self.shards[hash(key) & SHARDS - 1][key]

    def __setitem__(self, key: bytes, value: V) -> None:
        self.shards[hash(key) & SHARDS - 1][key] = value

    def __delitem__(self, key: bytes) -> None:
        del self.shards[hash(key) & SHARDS - 1][key]

    def get(self, key: bytes) -> V | None:
        return self.shards[hash(key) & SHARDS - 1].get(key)

    def values(self) -> Iterator[V]:
        return chain.from_iterable(shard.values() for shard in self.shards)


Child: TypeAlias = "Namespace | bytes | int"
"""A namespace; its inline suffixes until somebody accesses it; only its count if its names were dropped."""

Children: TypeAlias = "dict[bytes, Child] | ShardedDict[Child]"


@dataclass(slots=True, eq=False, repr=False)
class Namespace:
    """All keys that share a prefix up to and including a separator.

    It is in one of three states. *Unopened*, it has a count and the suffixes of its keys: of `shop:user:1` the
    namespace `shop:` keeps `user:1`. *Dropped*, it has only the count. *Listed*, its suffixes have been, or are being,
    divided among children, the namespaces `children` and the names of `keys` directly below. Children of each kind are
    numbered by ordinals in their order of arrival. A child that nobody has accessed is not an object yet, see `Child`.
    """

    label: bytes = b""
    """The segment with the separator that ends it; empty for the root."""
    separator: bytes = b""
    """The separator at the end of the label; for the root, the store's only separator or empty."""
    parent: Namespace | None = None
    """The namespace that contains it; None for the root."""
    root: Namespace = field(init=False)
    """The root of its tree; a reset gives the store another one."""
    count: int = 0
    """The keys seen below this namespace so far, at any depth."""
    children: Children | None = None
    """The namespaces directly below by label; None unless listed."""
    labels: list[bytes] = field(init=False)
    keys: PackedNames | None = None
    """The names of the keys directly below by ordinal; None while there are none."""
    suffixes: PackedNames | bytes | None = None
    """The suffixes of an unopened namespace: packed, or inline."""
    pending: deque[Chunk] | None = None
    """The suffixes left to divide while the namespace is being opened, else None."""
    dropped: bool = False
    """Whether only the count is kept, so that listing its children needs a scan of this prefix."""
    refilling: bool = False
    """Whether a scan of this prefix is filling it."""
    own_scan: bool = False
    """Whether a scan of this prefix fills or has filled it; keys that other scans find below are not counted again."""
    skipped: int = 0
    """The keys that other scans found below while it was refilling."""
    unlisted: int = 0
    """The keys counted here that are in no child, because there was no memory left for their names."""
    estimate: Estimated | None = None
    """The count estimated from a sample, until estimates are dropped."""
    expected: dict[tuple[Segment, ...], Estimated] | None = None
    """Estimates of namespaces below by their path from here, until this one is opened."""
    java_separator: bytes = b""
    """For the root, the byte behind the mark of names that Java has serialised, see `segments`."""
    brace_before: bool = field(init=False)
    """Whether the prefix contains a `{`, so that no hash tag can begin below."""
    _ordinal: int = -1
    """The ordinal when it was last looked up."""

    def __post_init__(self) -> None:
        parent = self.parent
        self.labels = _NO_LABELS
        self.root = self if parent is None else parent.root
        self.brace_before = b"{" in self.label or (parent is not None and parent.brace_before)

    def __repr__(self) -> str:
        return f"<Namespace {self.path()!r} count={self.count}>"

    @property
    def name(self) -> bytes:
        return self.label[: len(self.label) - len(self.separator)]

    @property
    def listed(self) -> bool:
        """Whether its children can be listed, perhaps only some of them until it is `opened`."""
        return self.children is not None

    @property
    def opened(self) -> bool:
        return self.children is not None and self.pending is None and not self.refilling

    @property
    def key_total(self) -> int:
        return 0 if self.keys is None else len(self.keys)

    @property
    def ordinal(self) -> int:
        """Its number among the namespaces of its parent; -1 for the root and for a removed namespace."""
        parent = self.parent
        if parent is None or parent.children is None or parent.children.get(self.label) is not self:
            return -1
        known = self._ordinal
        if not (0 <= known < len(parent.labels) and parent.labels[known] == self.label):
            self._ordinal = parent.labels.index(self.label)
        return self._ordinal

    @property
    def suffix_bytes(self) -> int:
        return self.suffixes.size_bytes if isinstance(self.suffixes, PackedNames) else len(self.suffixes or b"")

    def upwards(self) -> Iterator[Namespace]:
        node: Namespace | None = self
        while node is not None:
            yield node
            node = node.parent

    def is_exact(self, *, complete: bool) -> bool:
        """Whether the count is a total; `complete` says whether counts of the whole keyspace are.

        It is not while a namespace above is being divided, or if one above had no memory for names.
        """
        for node in self.upwards():
            if node is not self and not (node.opened and node.unlisted == 0):
                return False
            complete = complete or (node.own_scan and not node.refilling)
        return complete

    def path(self) -> bytes:
        """Return the prefix of all keys below, separators included."""
        return b"".join([node.label for node in self.upwards()][::-1])

    def segments(self) -> tuple[Segment, ...]:
        found = [Segment(node.name, node.separator) for node in self.upwards() if node.parent is not None]
        return tuple(reversed(found))

    def child(self, label: bytes) -> Namespace:
        """Return the child namespace with this label, as an object from now on; KeyError if there is none."""
        children = self.listed_children()
        child = children[label]
        if isinstance(child, Namespace):
            return child
        # Only a store with one separator keeps children that are no objects: all labels end with the same one.
        node = Namespace(label, self.separator, self)
        if isinstance(child, bytes):
            node.count, node.suffixes = count_inline(child), child
        else:
            node.count, node.dropped = child, True
        children[label] = node
        return node

    def namespace_at(self, ordinal: int) -> Namespace:
        child = self.child(self.labels[ordinal])
        child._ordinal = ordinal
        return child

    def separator_at(self, ordinal: int) -> bytes:
        child = self.listed_children()[self.labels[ordinal]]
        return child.separator if isinstance(child, Namespace) else self.separator

    def count_at(self, ordinal: int) -> int:
        """Return the count of the child namespace with this number, without making it an object."""
        child = self.listed_children()[self.labels[ordinal]]
        if isinstance(child, Namespace):
            return child.count
        return count_inline(child) if isinstance(child, bytes) else child

    def weights(self, ordinals: Sequence[int]) -> list[float]:
        """Return the weights of child namespaces for sorting: their counts, or estimates while those are larger."""
        children, labels = self.listed_children(), self.labels
        found: list[float] = []
        for ordinal in ordinals:
            child = children[labels[ordinal]]
            if isinstance(child, bytes):
                found.append(child[0])  # The number of inline names.
            elif isinstance(child, int):
                found.append(child)
            else:
                estimate = child.estimate
                found.append(child.count if estimate is None else max(child.count, estimate.value))
        return found

    def key_at(self, ordinal: int) -> bytes:
        if self.keys is None:
            raise IndexError(ordinal)
        return self.keys[ordinal]

    def listed_children(self) -> Children:
        """Return the children of a listed namespace; KeyError if it is not listed."""
        if self.children is None:
            raise KeyError(self.label)
        return self.children

    def sharded_children(self) -> ShardedDict[Child] | None:
        """Return the children in a `ShardedDict`, which replaces the dict of a large namespace; None for small ones."""
        if isinstance(self.children, dict) and len(self.labels) > SHARD_ABOVE:
            self.children = ShardedDict(self.children)
        return self.children if isinstance(self.children, ShardedDict) else None

    def child_batches(self) -> Iterator[list[tuple[bytes, Child]]]:
        """Yield (label, child) of all children in batches, including children that arrive meanwhile.

        It ends early if the children are dropped meanwhile.
        """
        start = 0
        while self.children is not None and start < len(self.labels):
            yield [(label, self.children[label]) for label in self.labels[start : start + CHILD_BATCH]]
            start += CHILD_BATCH

    def add_count(self, more: int) -> None:
        for node in self.upwards():
            node.count += more

    def forget_children(self) -> None:
        self.children = self.keys = self.pending = None
        self.labels = _NO_LABELS
        self.unlisted = 0


_NO_LABELS: list[bytes] = []
"""The labels of every unlisted namespace; never changed."""
