"""A string, a field or an element as what its bytes mean: which decoders were chosen, what of its tree is folded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from rtui.keyspace.text.display import SafeText
from rtui.tui.browse.value_rows import Item, ItemKind, ValueRow
from rtui.tui.kit.layout import MARGIN, display, display_text, prose
from rtui.tui.kit.styled_text import Line, Role, Span, clip, cut, gap, literal, wrap
from rtui.values import Decoded, Form, Kind, Node, alternatives, decode, outline

MAX_INDENT: Final = 20
"""Deeper nodes are not indented further."""

FOLDED_FROM: Final = 4
"""Maps and lists at this depth are folded at first, so that a deep value shows its upper levels."""

TEXT_LINES: Final = 12
"""One line of a text is wrapped into at most so many lines."""

_TEXT_LIMIT: Final = 512
_ROLES: Final = {Kind.NUMBER: Role.LIST, Kind.CONSTANT: Role.SET, Kind.BYTES: Role.MUTED, Kind.NOTE: Role.MUTED}


@dataclass(frozen=True, slots=True)
class Document:
    """Decoded bytes, and how they are shown."""

    data: bytes
    found: Decoded
    choices: tuple[str, ...]
    """What may be chosen instead, the best first."""
    is_whole: bool = True
    chosen: int = 0
    """Which of the choices is shown."""
    folded: frozenset[tuple[int, ...]] = frozenset()
    by_name: bool = False
    """Whether the members of maps are sorted by their names."""

    @property
    def title(self) -> SafeText:
        """The decoders in their order, as `base64 › gzip › JSON`."""
        return display_text(self.found.title, limit=60)

    @property
    def is_plain(self) -> bool:
        """Whether nothing was decoded: it is text or bytes as they are."""
        return len(self.found.chain) == 1 and self.found.form in (Form.TEXT, Form.HEX) and not self.found.notes

    def toggled(self, path: tuple[int, ...], *, fold: bool | None = None) -> Document:
        """Return it with a node folded, or unfolded, or the other way round for None."""
        wanted = path not in self.folded if fold is None else fold
        return replace(self, folded=self.folded | {path} if wanted else self.folded - {path})


def open_document(data: bytes, *, is_whole: bool = True, chosen: int | None = None) -> Document:
    """Return bytes decoded as what they are, or by the choice of this number; may take a quarter of a second."""
    found = decode(data, is_whole=is_whole)
    choices = alternatives(data, is_whole=is_whole, found=found)
    number = (chosen or 0) % len(choices)
    if number:
        found = decode(data, is_whole=is_whole, choose=choices[number])
    deep = frozenset(row.path for row in outline(found.root) if row.depth >= FOLDED_FROM and row.node.children)
    return Document(data, found, choices, is_whole, number, deep)


def next_choice(document: Document) -> Document:
    """Return the same bytes by the next choice of decoders; may take a quarter of a second."""
    following = open_document(document.data, is_whole=document.is_whole, chosen=document.chosen + 1)
    return replace(following, by_name=document.by_name)


def document_rows(document: Document, width: int) -> list[ValueRow]:
    """Return the rows of a document for a panel of this width."""
    found = document.found
    match found.form:
        case Form.HEX:
            rows = list(hex_rows(found.root.raw, 0, width))
        case Form.TEXT:
            rows = list(text_rows(found.root.raw, width))
        case _:
            rows = list(_tree_rows(document, width))
    if not rows:
        rows = [ValueRow(line) for line in prose(literal("(empty)"), width, Role.FAINT)]
    for note in found.notes:
        rows += [ValueRow(()), *(ValueRow(line) for line in prose(display_text(note), width, Role.MUTED))]
    if found.truncated and not document.is_whole:
        note = literal("this is the beginning of the value only")
        rows += [ValueRow(()), *(ValueRow(line) for line in prose(note, width, Role.MUTED))]
    return rows


def text_rows(data: bytes, width: int) -> Iterator[ValueRow]:
    """Yield the lines of a text, each wrapped; a wrapped line is one item."""
    room = width - 2 * MARGIN
    for raw in data.split(b"\n"):
        item = Item(ItemKind.TEXT, raw)
        for part in wrap(display(raw, limit=room * TEXT_LINES), room, TEXT_LINES):
            yield ValueRow((gap(MARGIN), Span(part)), item)


def hex_rows(data: bytes, offset_bytes: int, width: int) -> Iterator[ValueRow]:
    """Yield the lines of a hex dump that begins at this offset of the value."""
    room = width - 2 * MARGIN
    step = next((n for n in (16, 8) if 10 + 3 * n + 1 + n <= room), 4)
    for at in range(0, len(data), step):
        piece = data[at : at + step]
        shown = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in piece)
        line = (
            gap(MARGIN),
            Span(SafeText(f"{offset_bytes + at:08x}  "), Role.FAINT),
            Span(SafeText(f"{piece.hex(' '):<{3 * step}} ")),
            Span(SafeText(shown), Role.MUTED),
        )
        yield ValueRow(line, Item(ItemKind.TEXT, piece))


def _tree_rows(document: Document, width: int) -> Iterator[ValueRow]:
    """Yield a row for each node that is not inside a folded one."""
    room = width - 2 * MARGIN
    for row in outline(document.found.root, folded=document.folded.__contains__, by_name=document.by_name):
        node = row.node
        mark = literal("  ")
        if node.children:
            mark = literal("▸ ") if row.is_folded else literal("▾ ")
        line: list[Span] = [gap(MARGIN), gap(2 * min(row.depth, MAX_INDENT)), Span(mark, Role.FAINT)]
        if node.name is not None:
            is_alone = node.kind is Kind.NOTE and not node.value  # an instruction without an operand
            line += [Span(_plain_text(node.name), Role.HASH), Span(literal("" if is_alone else ": "), Role.FAINT)]
        line += _value_spans(node, room)
        item = Item(ItemKind.NODE, node_bytes(node), node=node, path=row.path)
        yield ValueRow(clip(tuple(line), width - MARGIN), item)


def node_bytes(node: Node) -> bytes:
    """Return what copying a node gives: its value, or of a map or list the whole of it as text."""
    if node.kind not in (Kind.MAP, Kind.LIST):
        return node.raw
    return "\n".join(_text_lines(node)).encode("utf-8", "surrogatepass")


def _text_lines(node: Node) -> Iterator[str]:
    """Yield a map or list as indented text, one node a line."""
    for row in outline(node):
        name = f"{_quoted(row.node.name)}: " if row.node.name is not None and row.depth else ""
        opening = {Kind.MAP: "{}", Kind.LIST: "[]"}.get(row.node.kind, "")
        shown = opening if opening else _quoted(row.node)
        yield f"{'  ' * row.depth}{name}{shown}"


def _quoted(node: Node) -> str:
    text = node.raw.decode("utf-8", "backslashreplace")
    return f'"{text}"' if node.kind is Kind.TEXT else text


def _plain_text(node: Node) -> SafeText:
    """Return a name or a single value: text between quotes."""
    if node.kind is Kind.TEXT and isinstance(node.value, str):
        return SafeText(f'"{display_text(node.value, limit=_TEXT_LIMIT)}"')
    if isinstance(node.value, bytes):
        return display(node.value, limit=_TEXT_LIMIT)
    return display_text(node.value, limit=_TEXT_LIMIT)


def _value_spans(node: Node, room: int) -> Line:
    """Return what stands for a node behind its name."""
    type_name = display_text(node.type_name, limit=32)
    spans: list[Span] = []
    if node.kind in (Kind.MAP, Kind.LIST):
        count = node.total if node.total is not None else len(node.children)
        shown = f"{{{count:,}}}" if node.kind is Kind.MAP else f"[{count:,}]"
        spans.append(Span(SafeText(shown), Role.MUTED))
    else:
        spans.append(Span(cut(_plain_text(node), max(room, 8)), _ROLES.get(node.kind, Role.TEXT)))
    if type_name:
        spans += [gap(2), Span(type_name, Role.FAINT)]
    if node.is_cut:
        spans.append(Span(literal(" … cut"), Role.WARN))
    return tuple(spans)
