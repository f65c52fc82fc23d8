"""Python pickles as a list of their instructions.

A pickle is a program, and loading one runs what it says. So it is only taken apart, by `pickletools.genops`, which
reads instructions and operands and executes nothing. What would be imported and called is said in a note.
"""

from __future__ import annotations

import pickletools
from typing import Final

from rtui.values.formats import CERTAIN, LIKELY, Format
from rtui.values.limits import Budget, Cut, Exceeded, Invalid
from rtui.values.source import Source
from rtui.values.tree import Form, Kind, Node, Step

_PROTOCOLS: Final = frozenset(range(2, 6))
_TEXT_STARTS: Final = (b"(dp", b"(lp", b"(ip", b"(c", b"ccopy_reg\n", b"c__builtin__\n")
"""How values of protocol 0 and 1 begin that are more than one number or text; they have no mark."""

MAX_GLOBALS: Final = 20
MAX_INTEGER_BITS: Final = 512
NEVER_LOADED: Final = "a pickle is a program: this is its disassembly, nothing of it was run"
_CALLS: Final = frozenset({"REDUCE", "NEWOBJ", "NEWOBJ_EX", "INST", "OBJ", "BUILD"})
_TEXTS: Final = frozenset({"SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "UNICODE"})
_GETS: Final = frozenset({"GET", "BINGET", "LONG_BINGET"})
_PUTS: Final = frozenset({"PUT", "BINPUT", "LONG_BINPUT"})


class _Disassembly:
    """The instructions of a pickle, what it would import and whether it would call that."""

    def __init__(self, source: Source, budget: Budget) -> None:
        self.source = source
        self.budget = budget
        self.root = Node(Kind.LIST, type_name="pickle")
        self.globals: dict[str, None] = {}
        self.calls = False
        self.end = 0
        """Where the last instruction ends, once STOP was read."""
        self._path = [self.root]
        self._texts: list[str] = []
        self._memo: dict[int, str] = {}

    def run(self) -> None:
        """Read all instructions; raises Cut, Invalid or Exceeded."""
        try:
            for opcode, operand, at in pickletools.genops(self.source.data):
                self.budget.spend()
                self._follow(opcode.name, operand)
                self._add(opcode, operand)
                if opcode.name == "STOP":
                    self.end = (at or 0) + 1
        except (ValueError, OverflowError, AttributeError, IndexError, UnicodeError) as error:
            if not self.root.children or self.source.is_whole:
                raise Invalid(f"can't be taken apart: {error}") from None
            raise Cut from None

    def _add(self, opcode: pickletools.OpcodeInfo, operand: object) -> None:
        """Add an instruction; those behind a MARK stand below it until one takes them."""
        takes_mark = pickletools.markobject in opcode.stack_before
        if takes_mark and len(self._path) > 1:
            self._path.pop()
        node = _operand(operand)
        node.name = Node(Kind.NOTE, opcode.name)
        self._path[-1].children.append(node)
        if opcode.name == "MARK" and len(self._path) < self.budget.limits.depth:
            node.kind = Kind.LIST
            self._path.append(node)

    def _follow(self, name: str, operand: object) -> None:
        """Keep the last texts, since a class is named by the two before STACK_GLOBAL."""
        if name in _TEXTS and isinstance(operand, str):
            self._texts = [*self._texts[-1:], operand]
        elif name == "MEMOIZE":
            self._memo[len(self._memo)] = self._texts[-1] if self._texts else ""
        elif name in _PUTS and isinstance(operand, int):
            self._memo[operand] = self._texts[-1] if self._texts else ""
        elif name in _GETS and isinstance(operand, int):
            self._texts = [*self._texts[-1:], self._memo.get(operand, "")]
        elif name in ("GLOBAL", "INST"):
            self.globals[str(operand).replace(" ", ".", 1)] = None
        elif name == "STACK_GLOBAL":
            self.globals[".".join(self._texts)] = None
        self.calls = self.calls or name in _CALLS

    @property
    def notes(self) -> tuple[str, ...]:
        """What loading it would do."""
        names = list(self.globals)
        if not names:
            return (NEVER_LOADED,)
        more = f" and {len(names) - MAX_GLOBALS:,} more" if len(names) > MAX_GLOBALS else ""
        verb = "import and call" if self.calls else "import"
        return (NEVER_LOADED, f"loading it would {verb} {', '.join(names[:MAX_GLOBALS])}{more}")


def _operand(operand: object) -> Node:
    """Return the operand of an instruction."""
    match operand:
        case None:
            return Node(Kind.NOTE)
        case bytes() | bytearray():
            return Node(Kind.BYTES, bytes(operand))
        case str():
            return Node(Kind.TEXT, operand)
        case bool():
            return Node(Kind.CONSTANT, repr(operand))
        case int() if operand.bit_length() > MAX_INTEGER_BITS:
            return Node(Kind.NOTE, f"an integer of {operand.bit_length():,} bits")
    return Node(Kind.NUMBER, repr(operand))


def _sniff(source: Source, budget: Budget) -> float | None:
    """Recognise the protocol's mark with instructions behind it; protocols 0 and 1 by how most values begin."""
    data = source.data
    is_marked = len(data) >= 2 and data[0] == 0x80 and data[1] in _PROTOCOLS
    if not is_marked and not data.startswith(_TEXT_STARTS) and data[:2] not in (b"}q", b"]q"):
        return None
    found = _Disassembly(source, budget.probe())
    try:
        found.run()
    except Exceeded:
        pass
    except Cut:
        return CERTAIN if is_marked else LIKELY
    except Invalid:
        return None
    else:
        if found.end != len(data):
            return None
    return CERTAIN if is_marked else LIKELY


def _read(source: Source, budget: Budget) -> Step:
    found = _Disassembly(source, budget)
    notes: tuple[str, ...] = ()
    truncated = not source.is_whole
    try:
        found.run()
        if found.end < len(source.data):
            notes = (f"{len(source.data) - found.end:,} bytes follow the pickle",)
    except Cut:
        truncated = True
    except (Exceeded, Invalid) as stopped:
        if not found.root.children:
            raise
        notes, truncated = ((f"it {stopped}" if isinstance(stopped, Invalid) else str(stopped)),), True
    found.root.is_cut = truncated
    return Step(found.root, (*found.notes, *notes), truncated, Form.LISTING)


FORMATS: Final = (Format("pickle", _sniff, _read),)
"""The decoder of this module."""
