"""A rule about names that a client has serialised: Java's own format, in which other clients don't look for keys."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from rtui.analysis.findings.finding import Amount, Basis, Draft, amount, of_namespace
from rtui.analysis.findings.places import example_keys
from rtui.analysis.report.document import Node, NodeKind
from rtui.keyspace.text.display import quoted
from rtui.keyspace.text.java_names import MARK

JAVA: Final = "name-java-serialised"


def has_java_names(basis: Basis) -> bool:
    """Whether there are names that Java has serialised."""
    return bool(_marked(basis))


def _marked(basis: Basis) -> list[Node]:
    """Return the namespaces that all such names are below: one for each separator that may end the mark."""
    top = basis.report.summary.root.children
    return [node for node in top if node.name == MARK and node.kind is NodeKind.LITERAL]


def java_names(basis: Basis) -> Iterator[Draft]:
    """Find the keys below the mark of names that Java has serialised."""
    for node in _marked(basis):
        path, memory = (basis.report.summary.root, node), amount(basis.cells.memory(node.stats))
        keys = amount(basis.cells.amount(node.stats.keys)) or Amount(0)
        title = f"{keys.keys()} have a Java-serialised name: JdkSerializationRedisSerializer wrote it"
        evidence = [f"example: {quoted(key)}" for key in example_keys(path)[:1]]
        make = partial(of_namespace, basis, JAVA, path, title=title, keys=keys, memory=memory, evidence=evidence)
        yield Draft(keys, memory, make)
