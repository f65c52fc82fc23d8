"""The help screen: every command with its keys, from the declarations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Final

from textual.binding import Binding, BindingType

from rtui.keyspace.text.display import SafeText
from rtui.tui.kit.choice import CardScreen
from rtui.tui.kit.command import Group, Owner, ScreenCommand
from rtui.tui.kit.layout import prose
from rtui.tui.kit.styled_text import Line, Role, Span, gap, left, line_width, literal

KEY_CELLS: Final = 14
"""Width of the column of keys."""

TITLE_CELLS: Final = 18
"""Width of the column of titles."""

LEGEND: Final = (
    literal(
        "1,204 is exact. ≥ 1,204 is at least so many: not everything has been seen. ≈ 1.20k is an estimate, "
        "from a sample or by the server. – means that there is nothing to show; denied means that the server "
        "refuses to say."
    ),
    literal(
        "KiB, MiB and GiB are 1,024 bytes and its powers; k, M and G behind a count are thousands, millions "
        "and billions. All times are in UTC."
    ),
    literal(
        "What is copied goes to tmux within tmux, else to the clipboard program of a desktop, else to the terminal by "
        "OSC 52, which never confirms it, so that it says “sent” and not “copied”. Where none of these takes a text, "
        "it is shown to be selected; the last entry of Y does that anywhere. w writes a table to a file."
    ),
    literal(
        "rtui only reads. What it may send is a closed list: rtui commands prints that list, and rtui acl "
        "prints a user with just these rights."
    ),
)
"""What the marks and units mean, below the commands."""

GLOSSARY: Final = (
    (literal("namespace"), literal(
        "All keys whose names begin alike, up to a separator: shop:user: holds shop:user:1 and shop:user:2.")),
    (literal("pattern {id}"), literal(
        "Stands for the part in which otherwise equal names differ, such as a number or a UUID.")),
    (literal("hash slot"), literal(
        "One of the 16,384 parts into which a cluster divides its keys; CRC16 of the name decides which.")),
    (literal("hash tag"), literal(
        "A part of a name in braces; only it is hashed, so that all keys with the same tag share a slot.")),
    (literal("encoding"), literal(
        "How the server stores a value in memory, such as listpack or hashtable; OBJECT ENCODING tells it.")),
    (literal("NO-TOUCH"), literal(
        "A mode of the connection (Redis 7.2 and later, Valkey) in which reading a key does not count as a use of "
        "it.")),
    (literal("idle time"), literal(
        "How long ago a key was last used, or last written under the policies whose names end in lrm.")),
    (literal("LFU frequency"), literal(
        "A counter from 0 to 255 that grows with use and falls with time; servers keep it under the LFU policies.")),
    (literal("expiry cliff"), literal(
        "A time in which far more keys of a namespace expire than in the time around it.")),
    (literal("command log"), literal(
        "Every command that rtui has sent, with the bytes of its replies; a bulk connection's are counted by name. "
        "Passwords are never in it. --log FILE writes it, readable by its owner only.")),
    (literal("estimate"), literal(
        "A figure for all keys worked out from a random sample; its 95 % interval says how far to trust it.")),
)  # fmt: skip
"""Terms that need a word, and what they mean."""


PAGES: Final = {
    Group.VALUE: (literal(
        "A value is shown by what its bytes are: gzip, zlib, zstd, LZ4, snappy and brotli are unpacked; msgpack, CBOR, "
        "BSON, Avro, protobuf, JSON, base64, tokens, UUIDs and times are read, one within the other. The layers are "
        "named above the rows; d chooses others. Pickle and objects of PHP, Java and Ruby are disassembled and never "
        "run, tokens are never verified, and what a decoder makes is bounded in size, depth and time."
    ),),
    Group.FIND: (literal(
        "A key is found if all terms apply to it: a part of its name, a glob, re:, in: a namespace, pattern:, tag:, "
        "slot:, type:, enc:, and ttl, expires, idle, freq, size and len with a figure, such as ttl<10m or size>1M. "
        "An exclamation mark before a term turns it round. A fact is asked only of keys that may still be found."
    ),),
}  # fmt: skip
"""What has to be said of a group besides its commands."""

FOCUSED: Final[dict[str, SafeText]] = {
    Owner.TREE: literal("tree"),
    Owner.ROWS: literal("value"),
    Owner.TABLE: literal("tables of an analysis"),
    Owner.FOUND: literal("keys found by a query"),
    Owner.ENTRIES: literal("command log"),
}
"""How what has the keyboard is called, by an owner of commands that it is."""


def groups_for(commands: Sequence[ScreenCommand], owners: Sequence[str]) -> list[Group]:
    """Return the groups in the order in which somebody wants them for whom `owners` carry commands out.

    `owners` begin with what has the keyboard and end with the screen around it; what belongs to other screens follows.
    """
    first: dict[Group, None] = {}
    for owner in owners:
        of_owner = {command.group for command in commands if command.owner == owner} - {Group.APP}
        first |= dict.fromkeys(group for group in Group if group in of_owner)
    return list(first | dict.fromkeys(Group))


class HelpScreen(CardScreen[None]):
    """Lists the commands, those of what has the keyboard first; any of the usual keys closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark,f1", "dismiss", "Close", show=False)]

    def __init__(self, commands: Sequence[ScreenCommand], owners: Sequence[str] = ()) -> None:
        """`owners` of commands are what has the keyboard, what that is in, and last the screen."""
        focused = next((FOCUSED[owner] for owner in owners if owner in FOCUSED), None)
        super().__init__("Help" if focused is None else f"Help: {focused}", "help")
        self._commands, self._groups = commands, groups_for(commands, owners)

    def lines(self, width: int) -> list[Line]:
        """Return the list."""
        return help_lines(self._commands, width, self._groups)


def help_lines(commands: Sequence[ScreenCommand], width: int, groups: Iterable[Group] = Group) -> list[Line]:
    """Return the commands under their headings, then the marks and terms, for a panel of this width."""
    lines: list[Line] = []
    for group in groups:
        lines += [(), (gap(1), Span(SafeText(group.value), Role.ACCENT))]
        for command in commands:
            if command.group is not group or command.owner is Owner.CONNECT:
                continue
            head: Line = (
                gap(1),
                Span(left(SafeText(command.key_text or "–"), KEY_CELLS), Role.STRONG),
                Span(left(SafeText(command.title), TITLE_CELLS)),
            )
            lines += _described(head, SafeText(command.help), width)
        for paragraph in PAGES.get(group, ()):
            lines += [(), *prose(paragraph, width, Role.MUTED)]
    lines += [(), (gap(1), Span(literal("Figures"), Role.ACCENT))]
    for sentence in LEGEND:
        lines += prose(sentence, width, Role.MUTED)
    lines += [(), (gap(1), Span(literal("Terms"), Role.ACCENT))]
    for term, meaning in GLOSSARY:
        lines += _described((gap(1), Span(left(term, KEY_CELLS), Role.STRONG)), meaning, width)
    return lines


def _described(head: Line, text: SafeText, width: int) -> list[Line]:
    """Return a command with its help beside it, or below it where it is narrow."""
    room = width - line_width(head) - 1
    if room < 24:
        return [head, *((gap(3), *line) for line in prose(text, width - 3, Role.MUTED))]
    first, *rest = prose(text, room + 2, Role.MUTED)
    indent = gap(line_width(head))
    return [(*head, *first[1:]), *((indent, *line[1:]) for line in rest)]
