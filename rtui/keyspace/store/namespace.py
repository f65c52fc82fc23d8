"""One namespace of the tree: a count and packed suffixes until someone opens it, its children afterwards."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Protocol, TypeAlias

from rtui.keyspace.store.packed_names import Chunk, Packed, count_of
from rtui.keyspace.store.sharded_dict import WideDict
from rtui.keyspace.text.segments import Segment


class Estimated(Protocol):
    """A number of keys known from a sample, with the interval in which the truth lies."""

    @property
    def low(self) -> float:
        """The lower end of the interval."""

    @property
    def value(self) -> float:
        """The likeliest number."""

    @property
    def high(self) -> float:
        """The upper end of the interval."""


Child: TypeAlias = "Namespace | bytes | int"
"""A namespace; a handful of suffixes while nobody looked at it; its mere count where they were dropped."""

Children: TypeAlias = "dict[bytes, Child] | WideDict[Child]"
"""Namespaces by label."""


class Namespace:
    """All keys that share a prefix up to and including a separator.

    A child that nobody looked at yet is not an object, see `Child`. Ordinals number the children of each kind in order
    of arrival.
    """

    __slots__ = (
        "_ordinal",
        "brace_behind",
        "children",
        "count",
        "dropped",
        "estimate",
        "expected",
        "kept",
        "keys",
        "label",
        "labels",
        "parent",
        "passed",
        "pending",
        "refilling",
        "root",
        "sealed",
        "separator",
        "unlisted",
    )

    label: bytes
    """The segment with the separator that ends it; the root's is empty."""

    separator: bytes
    """The separator at the end of the label; for the root, the store's only separator or empty."""

    root: Namespace
    """The top of the tree that it belongs to; a store that was reset has another."""

    count: int
    """Keys seen under this namespace so far, at any depth."""

    children: Children | None
    """The namespaces directly below by label, in order of arrival; None while nobody opened this one."""

    labels: list[bytes]
    """The labels of the children by ordinal."""

    keys: Packed | None
    """The names of the keys directly below by ordinal; None as long as there is none."""

    kept: Packed | bytes | None
    """The suffixes of an unopened namespace: packed, or a handful."""

    pending: deque[Chunk] | None
    """Suffixes that an opening has yet to divide; None when no opening is under way."""

    dropped: bool
    """Only the count is kept; listing what is below needs a scan of this prefix."""

    refilling: bool
    """A scan of this prefix is filling it."""

    sealed: bool
    """A scan of this prefix says what is here, and keys that another scan meets under it are known already."""

    passed: int
    """Keys that another scan met under this prefix while it was refilling."""

    unlisted: int
    """Keys counted here that are in no child, because there was no memory left to name them."""

    estimate: Estimated | None
    """What a sample says of the count, until it is dropped."""

    expected: dict[tuple[Segment, ...], Estimated] | None
    """What a sample says of namespaces below, until this one is opened."""

    brace_behind: bool
    """Whether the prefix has a `{`, so that no hash tag can begin below."""

    def __init__(self, label: bytes = b"", separator: bytes = b"", parent: Namespace | None = None) -> None:
        self.label = label
        self.separator = separator
        self.parent = parent
        self.root = self if parent is None else parent.root
        self.count = 0
        self.children = None
        self.labels = _NO_LABELS
        self.keys = None
        self.kept = None
        self.pending = None
        self.dropped = self.refilling = self.sealed = False
        self.unlisted = self.passed = 0
        self.estimate = None
        self.expected = None
        self.brace_behind = b"{" in label or (parent is not None and parent.brace_behind)
        self._ordinal = -1

    def __repr__(self) -> str:
        return f"<Namespace {self.path()!r} count={self.count}>"

    @property
    def name(self) -> bytes:
        """The segment without its separator."""
        return self.label[: len(self.label) - len(self.separator)]

    @property
    def listed(self) -> bool:
        """Whether its children can be listed, though not all of them before `opened`."""
        return self.children is not None

    @property
    def opened(self) -> bool:
        """Whether all that is kept of it has been divided among its children."""
        return self.children is not None and self.pending is None and not self.refilling

    @property
    def namespace_total(self) -> int:
        """How many namespaces are listed directly below."""
        return len(self.labels)

    @property
    def key_total(self) -> int:
        """How many keys are listed directly below."""
        return 0 if self.keys is None else len(self.keys)

    @property
    def ordinal(self) -> int:
        """Its number among the namespaces of its parent; -1 for the root and for one that is gone."""
        parent = self.parent
        if parent is None or parent.children is None or parent.children.get(self.label) is not self:
            return -1
        known = self._ordinal
        if not (0 <= known < len(parent.labels) and parent.labels[known] == self.label):
            self._ordinal = parent.labels.index(self.label)
        return self._ordinal

    def is_exact(self, *, complete: bool) -> bool:
        """Whether the count is a total, if the whole keyspace's is; it is not while a parent is being divided."""
        at: Namespace | None = self
        while at is not None:
            complete = complete or (at.sealed and not at.refilling)
            at = at.parent
            if at is not None and not (at.opened and at.unlisted == 0):
                return False
        return complete

    def path(self) -> bytes:
        """The prefix that all keys below share, separators included."""
        labels = [self.label]
        node = self.parent
        while node is not None:
            labels.append(node.label)
            node = node.parent
        return b"".join(reversed(labels))

    def segments(self) -> tuple[Segment, ...]:
        """The segments from the first level down to this one."""
        found = []
        node: Namespace | None = self
        while node is not None and node.parent is not None:
            found.append(Segment(node.name, node.separator))
            node = node.parent
        return tuple(reversed(found))

    def namespace_at(self, ordinal: int) -> Namespace:
        """The child namespace with this number, the same object each time."""
        child = self.child(self.labels[ordinal])
        child._ordinal = ordinal
        return child

    def child(self, label: bytes) -> Namespace:
        """The child namespace with this label, made an object if it was not one; KeyError if there is none."""
        children = self._children()
        child = children[label]
        if isinstance(child, Namespace):
            return child
        # Only a store with one separator keeps handfuls, and then every label ends with the same one.
        node = Namespace(label, self.separator, self)
        if isinstance(child, bytes):
            node.count, node.kept = count_of(child), child
        else:
            node.count, node.dropped = child, True
        children[label] = node
        return node

    def separator_at(self, ordinal: int) -> bytes:
        """The separator that ends the label of the child namespace with this number."""
        child = self._children()[self.labels[ordinal]]
        return child.separator if isinstance(child, Namespace) else self.separator

    def count_at(self, ordinal: int) -> int:
        """The count of the child namespace with this number, without making it an object."""
        child = self._children()[self.labels[ordinal]]
        if isinstance(child, Namespace):
            return child.count
        return count_of(child) if isinstance(child, bytes) else child

    def weights(self, ordinals: Sequence[int]) -> list[float]:
        """What child namespaces are sorted by: their counts, or what is expected of them while that is more."""
        children, labels = self._children(), self.labels
        found: list[float] = []
        for ordinal in ordinals:
            child = children[labels[ordinal]]
            if isinstance(child, bytes):
                found.append(child[0])
            elif isinstance(child, int):
                found.append(child)
            else:
                estimate = child.estimate
                found.append(child.count if estimate is None else max(child.count, estimate.value))
        return found

    def forget_children(self) -> None:
        """Make it an unopened namespace."""
        self.children = self.keys = self.pending = None
        self.labels = _NO_LABELS
        self.unlisted = 0

    def key_at(self, ordinal: int) -> bytes:
        """The name of the key directly below with this number."""
        if self.keys is None:
            raise IndexError(ordinal)
        return self.keys[ordinal]

    def _children(self) -> Children:
        """The children of a listed namespace."""
        if self.children is None:
            raise KeyError(self.label)
        return self.children


_NO_LABELS: list[bytes] = []
"""Stands for the labels of every namespace that nobody opened; never changed."""
