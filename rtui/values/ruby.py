"""Ruby's Marshal format as a structure: classes are named, no object is created.

The format is that of doc/marshal.rdoc in Ruby's source, version 4.8: a type byte for each value, integers of one to
five bytes, symbols that are written once and referred to by number.
"""

from __future__ import annotations

from typing import Final

from rtui.values.source import CERTAIN, Format, Reader, ValueSource, read_tree, recognises
from rtui.values.tree import Budget, DecodingStep, Invalid, ValueKind, ValueNode

MAGIC: Final = b"\x04\x08"
_CONSTANTS: Final = {b"0": "nil", b"T": "true", b"F": "false"}
_NAMED: Final = {b"c": "class", b"m": "module", b"M": "class or module"}
_MAX_BIGNUM_BYTES: Final = 64


class RubyReader(Reader):
    """Reads one marshalled value."""

    def __init__(self, source: ValueSource, budget: Budget) -> None:
        super().__init__(source, budget, len(MAGIC))
        self._symbols: list[str] = []

    def read(self) -> None:
        code = self.take(1)
        simple = _CONSTANTS.get(code)
        if simple is not None:
            self.add(ValueKind.CONSTANT, simple)
            return
        match code:
            case b"i":
                self.add_number(self._fixnum())
            case b'"':
                self.add_string(self._size())
            case b":" | b";":
                self.at -= 1
                self.add(ValueKind.TEXT, self._symbol(), "symbol")
            case b"[":
                self._list()
            case b"{" | b"}":
                self._hash(has_default=code == b"}")
            case b"o" | b"S":
                self._fields(self._symbol())
            case b"f":
                self.add(ValueKind.NUMBER, self.take(self._size()).decode("latin-1"))
            case b"l":
                self._bignum()
            case _:
                self._wrapped(code)

    def _wrapped(self, code: bytes) -> None:
        """Read a rare type, or a wrapper around another value: its class, instance variables, a module it was extended
        with."""
        match code:
            case b"I":
                self._with_variables()
            case b"c" | b"m" | b"M":
                self.add_string(self._size(), type_name=_NAMED[code])
            case b"/":
                self.add_string(self._size(), type_name="regular expression")
                self.byte()
            case b"@":
                self.add(ValueKind.NOTE, f"the same as object {self._fixnum()}")
            case b"u":
                self.add_string(self._size_after_symbol(), is_text=False, type_name=f"{self._class}, dumped by itself")
            case b"U" | b"d" | b"C" | b"e":
                words = {b"e": "extended with "}.get(code, "")
                node = self.add(ValueKind.LIST, "", f"{words}{self._symbol()}")
                self.enter(node)
                self.read()
                self.leave()
            case _:
                raise Invalid(f"has no type {code!r}")

    _class = ""

    def _size_after_symbol(self) -> int:
        self._class = self._symbol()
        return self._size()

    def _fixnum(self) -> int:
        """Read an integer: 0, a small one offset by 5, or the (signed) count of the bytes that follow."""
        first = self.integer(1, signed=True)
        if first == 0:
            return 0
        if abs(first) > 4:
            return first - 5 if first > 0 else first + 5
        number = self.integer(abs(first), "little")
        return number if first > 0 else number - (1 << (8 * -first))

    def _size(self) -> int:
        size = self._fixnum()
        if size < 0:
            raise Invalid("has a negative length")
        return size

    def _symbol(self) -> str:
        """Read a symbol, or the number of an earlier one."""
        code = self.take(1)
        has_encoding = code == b"I"
        if has_encoding:
            code = self.take(1)
        if code == b":":
            self.budget.spend()
            name = self.take(self._size()).decode("utf-8", "surrogateescape")
            self._symbols.append(name)
            if has_encoding:
                self._skip_encoding()
            return name
        at = self._size() if code == b";" else len(self._symbols)
        if at >= len(self._symbols):
            raise Invalid("has a symbol that it never named")
        return self._symbols[at]

    def _skip_encoding(self) -> None:
        """Read the encoding of a symbol: `E` and a boolean, or `encoding` and a string."""
        for _ in range(self._size()):
            self._symbol()
            if self.take(1) == b'"':
                self.take(self._size())

    def _list(self) -> None:
        count = self._size()
        self.enter(self.add(ValueKind.LIST, total=count))
        for _ in range(count):
            self.read()
        self.leave()

    def _hash(self, *, has_default: bool) -> None:
        count = self._size()
        self.enter(self.add(ValueKind.MAP, total=count + has_default))
        for _ in range(count):
            self.read()
            self.take_as_name()
            self.read()
        if has_default:
            self.name = ValueNode(ValueKind.NOTE, "default")
            self.read()
        self.leave()

    def _fields(self, class_name: str) -> None:
        count = self._size()
        self.enter(self.add(ValueKind.MAP, "", class_name, total=count))
        self._variables(count)
        self.leave()

    def _variables(self, count: int) -> None:
        for _ in range(count):
            self.name = ValueNode(ValueKind.TEXT, self._symbol())
            self.read()

    def _with_variables(self) -> None:
        """Read a value with instance variables; the encoding of a string, one of them, becomes its type name."""
        parent = self._open[-1] if self._open else None
        node = self.add(ValueKind.LIST, "", "with variables")
        self.enter(node)
        self.read()
        value = node.children[0]
        count = self._size()
        kept = len(node.children)
        self._variables(count)
        self.leave()
        variables = node.children[kept:]
        encodings = {"E": {"true": "", "false": "US-ASCII"}}
        if all(variable.name is not None and variable.name.value in ("E", "encoding") for variable in variables):
            value.name = node.name
            for variable in variables:
                known = encodings.get(str(variable.name.value) if variable.name else "", {})
                encoding = known.get(str(variable.value), str(variable.value))
                value.type_name = ", ".join(filter(None, (value.type_name, encoding)))
            if parent is None:
                self.root = value
            else:
                parent.children[-1] = value

    def _bignum(self) -> None:
        sign = self.take(1)
        size = 2 * self._size()
        if size > _MAX_BIGNUM_BYTES:
            self.add_string(size, is_text=False, type_name="integer, little endian")
            return
        number = self.integer(size, "little")
        self.add_number(-number if sign == b"-" else number)


def _sniff(source: ValueSource, budget: Budget) -> float | None:
    if not source.data.startswith(MAGIC) or len(source.data) < 3:
        return None
    return CERTAIN if recognises(RubyReader(source, budget.probe()), source) else None


def _read(source: ValueSource, budget: Budget) -> DecodingStep:
    if not source.data.startswith(MAGIC):
        raise Invalid("begins with 04 08")
    return read_tree(RubyReader(source, budget), source)


FORMATS: Final = (Format("Ruby Marshal", _sniff, _read),)
