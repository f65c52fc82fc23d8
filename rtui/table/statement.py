"""A statement of SQL over keys: read, checked and written anew before Polars gets it.

Polars' SQL opens files (`read_csv('…')`, a name in quotes) and takes DROP and DELETE. So it never gets what somebody
typed: sqlglot parses that, and `_Writer` writes each node of the tree by its class, from a list of those that are
allowed. A class, an argument of a node or a function that is not listed is an error, and since Polars gets the new
text, it does not matter where the two parsers disagree.

The new text differs from the old one where Polars would be wrong or surprising: sums and lengths are 64 bits wide,
fractions are floats, unknown values come last in any order, and columns of a result are named as they were typed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, NoReturn

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.parser import Parser
from sqlglot.tokens import TokenType

from rtui.analysis.query.query import NOWHERE, Problem, QuerySpan
from rtui.keyspace.text.display import SafeText, display_text
from rtui.keyspace.text.matching import nearest_word

LONGEST: Final = 16_000
"""Characters of a statement at most."""

DEEPEST: Final = 40
"""Parentheses and subqueries within each other at most: Polars' parser ends at 50."""

MOST_NODES: Final = 4_000

LONGEST_ALIAS: Final = 200

TABLES: Final[Mapping[str, Mapping[str, str]]] = {
    "keys": {
        "key": "the key; bytes that are not UTF-8 as \\xff",
        "key_quoted": "every byte of it, for redis-cli --quoted-input",
        "pattern": "its pattern, such as user:<id>",
        "type": "string, hash, …",
        "encoding": "listpack, hashtable, …",
        "node": "host:port of the primary that serves it",
        "database": "number of the database",
        "slot": "hash slot",
        "ttl_ms": "time to live in milliseconds; -1 without a TTL",
        "expires_at": "when it expires (UTC); null without a TTL",
        "memory_bytes": "MEMORY USAGE",
        "length": "elements, or bytes of a string",
        "idle_s": "idle time in seconds",
        "frequency": "LFU counter",
    },
    "patterns": {
        "pattern": "the pattern",
        "keys": "number of keys",
        "memory_bytes": "their MEMORY USAGE, summed",
        "max_memory_bytes": "the largest of them",
        "without_ttl": "keys that never expire",
    },
    "findings": {
        "severity": "error, warn or info",
        "rule": "the rule that is broken",
        "place": "the namespace, pattern, type or server",
        "title": "the finding in a sentence",
        "keys": "number of keys",
        "memory_bytes": "their memory",
        "query": "the query that finds these keys",
    },
}
"""The tables and their columns, with what these hold."""

FUNCTIONS: Final[Mapping[str, tuple[int, int]]] = {
    "ABS": (1, 1), "AVG": (1, 1), "CEIL": (1, 1), "COALESCE": (1, 9), "CONCAT": (1, 9), "COUNT": (1, 1),
    "DATE_PART": (2, 2), "DENSE_RANK": (0, 0), "ENDS_WITH": (2, 2), "EXP": (1, 1), "FLOOR": (1, 1),
    "GREATEST": (2, 9), "IF": (3, 3), "IFNULL": (2, 2), "LAG": (1, 2), "LEAD": (1, 2), "LEAST": (2, 9),
    "LEFT": (2, 2), "LENGTH": (1, 1), "LN": (1, 1), "LOG10": (1, 1), "LOG2": (1, 1), "LOWER": (1, 1), "LTRIM": (1, 1),
    "MAX": (1, 1), "MEDIAN": (1, 1), "MIN": (1, 1), "MOD": (2, 2), "NULLIF": (2, 2), "OCTET_LENGTH": (1, 1),
    "POWER": (2, 2), "QUANTILE_CONT": (2, 2), "QUANTILE_DISC": (2, 2), "RANK": (0, 0), "REGEXP_LIKE": (2, 3),
    "REPLACE": (3, 3), "REVERSE": (1, 1), "RIGHT": (2, 2), "ROUND": (1, 2), "ROW_NUMBER": (0, 0), "RTRIM": (1, 1),
    "SIGN": (1, 1), "SPLIT_PART": (3, 3), "SQRT": (1, 1), "STARTS_WITH": (2, 2), "STDDEV": (1, 1), "STRFTIME": (2, 2),
    "STRPOS": (2, 2), "SUBSTR": (2, 3), "SUM": (1, 1), "TRIM": (1, 1), "UPPER": (1, 1), "VARIANCE": (1, 1),
}  # fmt: skip
"""The functions, with the least and the most arguments: of those that Polars has, the ones without side effects that do
what their name says. Their results depend on their arguments alone."""

_WIDENED: Final = frozenset({"LENGTH", "OCTET_LENGTH", "STRPOS", "DATE_PART"})
"""Functions whose results Polars gives 32 bits."""

_QUANTILES: Final = frozenset({"QUANTILE_CONT", "QUANTILE_DISC"})
"""Functions whose second argument is a number as it stands."""

_TYPES: Final[Mapping[str, str]] = {
    "BIGINT": "BIGINT", "INT": "BIGINT", "DOUBLE": "DOUBLE", "FLOAT": "DOUBLE", "DECIMAL": "DOUBLE",
    "VARCHAR": "VARCHAR", "TEXT": "VARCHAR", "BOOLEAN": "BOOLEAN", "DATE": "DATE", "TIMESTAMP": "TIMESTAMP",
    "DATETIME": "TIMESTAMP",
}  # fmt: skip
"""Types that CAST takes, as they are written."""

_OPERATORS: Final[Mapping[type[exp.Expression], str]] = {
    exp.And: "AND", exp.Or: "OR", exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.DPipe: "||", exp.Like: "LIKE",
    exp.ILike: "ILIKE", exp.NullSafeEQ: "IS NOT DISTINCT FROM", exp.NullSafeNEQ: "IS DISTINCT FROM",
}  # fmt: skip

_CHAINED: Final = (exp.And, exp.Or, exp.Add, exp.Mul, exp.DPipe)
"""Operators of which many in a row need no parentheses: each would be a level for Polars."""

_NEGATED: Final = (exp.Like, exp.ILike, exp.In, exp.Between)
"""Classes that say NOT themselves."""

_SETS: Final[Mapping[type[exp.Expression], str]] = {
    exp.Union: "UNION", exp.Except: "EXCEPT", exp.Intersect: "INTERSECT",
}  # fmt: skip

_JOINS: Final = frozenset({"", "INNER", "LEFT", "RIGHT", "FULL", "CROSS"})


@dataclass(frozen=True, slots=True)
class Statement:
    """A checked statement."""

    text: str
    """As it was typed."""
    sql: str
    """As Polars gets it."""
    tables: frozenset[str]
    columns: frozenset[str]
    """The columns of `keys` that decide the result."""


class StatementError(ValueError):
    """A statement that is not run, with what is wrong with it and where."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.sentence)
        self.problem = problem


def read_statement(text: str) -> Statement:
    """Check a statement and write it anew; raises StatementError."""
    if len(text) > LONGEST:
        raise StatementError(Problem(NOWHERE, SafeText(f"the statement has more than {LONGEST:,} characters")))
    try:
        tokens = _Dialect().tokenize(text)
        if not tokens or tokens[0].token_type not in _BEGINNINGS:
            word = display_text(tokens[0].text, limit=40) if tokens else "nothing"
            raise StatementError(
                Problem(NOWHERE, SafeText(f"begin with SELECT or WITH, not with {word}: rtui only reads"))
            )
        return _Writer(text, _one(_Parser(dialect=_Dialect()).parse(tokens, text))).statement()
    except SqlglotError as error:
        raise StatementError(_problem_of(error, text)) from None
    except RecursionError:
        raise StatementError(Problem(NOWHERE, _TOO_DEEP)) from None


_TOO_DEEP: Final = SafeText(f"the statement is nested deeper than {DEEPEST} levels")


class _Dialect(Dialect):  # type: ignore[misc]
    """SQL as it is typed: unknown values come last unless the statement says otherwise."""

    NULL_ORDERING = "nulls_are_last"


class _Parser(Parser):  # type: ignore[misc]
    """Knows no function: each is a name with arguments, to be looked up in FUNCTIONS."""

    FUNCTIONS: ClassVar[Any] = {}
    FUNCTION_PARSERS: ClassVar[Any] = {name: Parser.FUNCTION_PARSERS[name] for name in ("CAST", "TRY_CAST")}
    NO_PAREN_FUNCTIONS: ClassVar[Any] = {}
    NO_PAREN_FUNCTION_PARSERS: ClassVar[Any] = {"CASE": Parser.NO_PAREN_FUNCTION_PARSERS["CASE"]}


def _one(trees: Iterable[Any]) -> exp.Expression:
    found = [tree for tree in trees if tree is not None]
    if len(found) != 1:
        raise StatementError(Problem(NOWHERE, SafeText("only one statement is possible")))
    one: exp.Expression = found[0]
    if type(one) not in (exp.Select, exp.Subquery, *_SETS):
        raise StatementError(Problem(NOWHERE, SafeText(f"only one SELECT is possible, not {_words(one)}")))
    return one


def _problem_of(error: SqlglotError, text: str) -> Problem:
    """Return the place where the parser could not go on; a word before it that nearly is a keyword is meant."""
    details = getattr(error, "errors", None)
    if not details:
        return Problem(NOWHERE, SafeText("the statement can't be read: a quote or a comment is not closed"))
    marked, before = details[0].get("highlight") or "", details[0].get("start_context") or ""
    start = text.find(before + marked) + len(before) if marked else len(text)
    for word in reversed([*_WORD.finditer(text, 0, start + len(marked))][-3:]):
        near = nearest_word(word[0].upper(), _KEYWORDS, least=0.75)
        if near is not None and near != word[0].upper():
            span = QuerySpan(word.start(), word.end())
            return Problem(span, SafeText(f"{display_text(word[0], limit=40)} is not expected here"), (near,))
    said = f"{display_text(marked, limit=40)} is not expected here" if marked else "something is missing"
    return Problem(QuerySpan(start, start + len(marked)), SafeText(said))


_WORD: Final = re.compile(r"[A-Za-z]{3,12}")

_KEYWORDS: Final = (
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP",
    "HAVING",
    "ORDER",
    "LIMIT",
    "OFFSET",
    "JOIN",
    "UNION",
    "BETWEEN",
)


@dataclass
class _Writer:
    """Writes one statement."""

    text: str
    tree: exp.Expression
    _tables: set[str] = field(default_factory=set)
    _ctes: list[str] = field(default_factory=list)
    _stars: bool = False
    _depth: int = 0
    _used: set[str] = field(default_factory=set)
    _names: list[str] = field(default_factory=list)
    """All columns and aliases, wherever they are visible: Polars sees to that."""

    def statement(self) -> Statement:
        for count, node in enumerate(self.tree.walk()):
            if count > MOST_NODES:
                self._refuse(node, f"the statement has more than {MOST_NODES:,} parts")
        asked = {node.name.lower() for node in self.tree.find_all(exp.Table)}
        self._names = [name for table, columns in TABLES.items() if table in asked for name in columns]
        self._names += [node.alias for node in self.tree.find_all(exp.Alias)]
        sql = self._query(self.tree, is_outermost=True)
        if not self._tables:
            self._refuse(self.tree, f"say from which table: {_or(TABLES)}")
        return Statement(self.text, sql, frozenset(self._tables), self._columns())

    def _columns(self) -> frozenset[str]:
        """Return the columns of `keys` that are read, those behind other tables included."""
        found = set(TABLES["keys"]) & self._used if "keys" in self._tables else set()
        if self._stars and "keys" in self._tables:
            found |= set(TABLES["keys"])
        if "patterns" in self._tables:
            used = set(TABLES["patterns"]) if self._stars else self._used
            found |= {"pattern"} | {source for name, source in PATTERN_SOURCES.items() if name in used}
        return frozenset(found)

    # parts

    def _query(self, node: exp.Expression, *, is_outermost: bool = False) -> str:
        with_ = node.args.get("with_")
        before = ""
        if with_ is not None:
            if not is_outermost:
                self._refuse(with_, "WITH stands at the beginning of a statement only")
            before = self._with(with_)
        if isinstance(node, exp.Subquery):
            self._only(node, "this", "with_", *_ENDS)
            return f"{before}({self._deeper(self._query, node.this)}){self._ends(node)}"
        if type(node) in _SETS:
            self._only(node, "this", "expression", "distinct", "with_", *_ENDS)
            how = "" if node.args.get("distinct", True) else " ALL"
            sides = [self._deeper(self._query, node.args[side]) for side in ("this", "expression")]
            return f"{before}{f' {_SETS[type(node)]}{how} '.join(sides)}{self._ends(node)}"
        if not isinstance(node, exp.Select):
            self._refuse_class(node)
        return f"{before}{self._select(node)}"

    def _with(self, node: exp.Expression) -> str:
        self._only(node, "expressions")
        parts = []
        for one in node.expressions:
            self._only(one, "this", "alias")
            self._only(one.args["alias"], "this", "columns")
            if one.args["alias"].args.get("columns"):
                self._refuse(one, "name the columns of a WITH by AS in its SELECT")
            name = one.alias
            if name.lower() in {*TABLES, *(other.lower() for other in self._ctes)}:
                self._refuse(one.args["alias"], f"there is a table {display_text(name)} already: name it otherwise")
            parts.append(f"{self._name(one.args['alias'].this)} AS ({self._deeper(self._query, one.this)})")
            self._ctes.append(name)
        return f"WITH {', '.join(parts)} "

    def _select(self, node: exp.Expression) -> str:
        self._only(
            node, "expressions", "distinct", "from_", "joins", "where", "group", "having", "qualify", "with_", *_ENDS
        )
        distinct = node.args.get("distinct")
        if distinct is not None:
            self._only(distinct)
        after = ""
        if (source := node.args.get("from_")) is not None:
            self._only(source, "this")
            after = f" FROM {self._source(source.this)}"
        after += "".join(self._join(join) for join in node.args.get("joins") or ())
        if not node.expressions:
            self._refuse(node, "say which columns: SELECT key, memory_bytes FROM keys")
        text = f"SELECT {'DISTINCT ' if distinct is not None else ''}{self._projections(node.expressions)}{after}"
        if (where := node.args.get("where")) is not None:
            text += f" WHERE {self._value(where.this)}"
        if (group := node.args.get("group")) is not None:
            self._only(group, "expressions", "all")
            text += f" GROUP BY {'ALL' if group.args.get('all') else self._values(group.expressions)}"
        for name in ("having", "qualify"):
            if (condition := node.args.get(name)) is not None:
                text += f" {name.upper()} {self._value(condition.this)}"
        return text + self._ends(node)

    def _projections(self, nodes: Iterable[exp.Expression]) -> str:
        """Return the columns of a result, each with a name that no other one has."""
        taken, parts = set[str](), []
        for node in nodes:
            if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
                parts.append(self._value(node))
                continue
            inner, name = node, self._title(node)
            if isinstance(node, exp.Alias):
                self._only(node, "this", "alias")
                inner, name = node.this, node.alias
                self._name(node.args["alias"])
            if name in taken:
                self._refuse(node, f"there are two columns {display_text(name)}: name one with AS")
            taken.add(name)
            parts.append(f"{self._value(inner)} AS {_quoted(name)}")
        return ", ".join(parts)

    def _title(self, node: exp.Expression) -> str:
        """Return the name of a column without AS: that of the column, or the text of the expression."""
        if isinstance(node, exp.Column):
            return self._found(node.name) or node.name
        title: str = _Dialect().generate(node, comments=False, normalize_functions="lower")
        return display_text(title, limit=LONGEST_ALIAS)

    def _found(self, name: str) -> str | None:
        """Return a column as it is spelt where it is made."""
        if name in self._names:
            return name
        return next((one for one in self._names if one.lower() == name.lower()), None)

    def _ends(self, node: exp.Expression) -> str:
        text = ""
        if (order := node.args.get("order")) is not None:
            self._only(order, "expressions")
            text += f" ORDER BY {', '.join(self._ordered(one) for one in order.expressions)}"
        for name in ("limit", "offset"):
            if (end := node.args.get(name)) is not None:
                if type(end) not in (exp.Limit, exp.Offset):
                    self._refuse_class(end)
                self._only(end, "expression")
                if not (isinstance(end.expression, exp.Literal) and end.expression.this.isdecimal()):
                    self._refuse(end, f"{name.upper()} takes a whole number")
                text += f" {name.upper()} {self._whole(end.expression)}"
        return text

    def _ordered(self, node: exp.Expression) -> str:
        if not isinstance(node, exp.Ordered):
            self._refuse_class(node)
        self._only(node, "this", "desc", "nulls_first")
        nulls = "FIRST" if node.args.get("nulls_first") else "LAST"
        return f"{self._value(node.this)} {'DESC' if node.args.get('desc') else 'ASC'} NULLS {nulls}"

    def _source(self, node: exp.Expression) -> str:
        if isinstance(node, exp.Subquery):
            self._only(node, "this", "alias")
            self._only(node.args.get("alias"), "this")
            name = f" AS {self._name(node.args['alias'].this)}" if node.alias else f" AS {_quoted('subquery')}"
            return f"({self._deeper(self._query, node.this)}){name}"
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            self._refuse(node, f"a table is {_or(TABLES)}; functions, files and lists of values are none")
        self._only(node, "this", "alias")
        self._only(node.args.get("alias"), "this")
        name = node.name
        if name in self._ctes:
            found = name
        elif name.lower() in TABLES:
            found = name.lower()
            self._tables.add(found)
        else:
            near = nearest_word(name.lower(), [*TABLES, *self._ctes])
            said = f"there is no table {display_text(name, limit=80)}: there is {_or(TABLES)}"
            self._refuse(node, said, () if near is None else (near,))
        return f"{_quoted(found)} AS {self._name(node.args['alias'].this) if node.alias else _quoted(found)}"

    def _join(self, node: exp.Expression) -> str:
        self._only(node, "this", "side", "kind", "on", "using")
        side, kind = (str(node.args.get(name) or "").upper() for name in ("side", "kind"))
        how = side or kind
        if how not in _JOINS or kind not in ("", "INNER", "OUTER", "CROSS"):
            self._refuse(node, f"joins are {_or(sorted(_JOINS - {''}))}")
        source, on, using = self._source(node.this), node.args.get("on"), node.args.get("using")
        if on is None and not using:
            return f" CROSS JOIN {source}"
        if on is not None:
            return f" {how or 'INNER'} JOIN {source} ON {self._value(on)}"
        return f" {how or 'INNER'} JOIN {source} USING ({', '.join(self._column_name(one) for one in using)})"

    # values

    def _values(self, nodes: Iterable[exp.Expression]) -> str:
        return ", ".join(self._value(node) for node in nodes)

    def _deeper(self, write: Callable[[exp.Expression], str], node: exp.Expression) -> str:
        self._depth += 1
        if self._depth > DEEPEST:
            raise StatementError(Problem(NOWHERE, _TOO_DEEP))
        text = write(node)
        self._depth -= 1
        return text

    def _value(self, node: exp.Expression) -> str:
        if node.args.get("negate") and type(node) in _NEGATED:
            node.set("negate", None)
            return f"(NOT {self._deeper(self._value, node)})"
        if type(node) in _OPERATORS:
            return f"({self._operation(node)})"
        write = _VALUES.get(type(node))
        if write is None:
            self._refuse_class(node)
        return self._deeper(lambda one: write(self, one), node)

    def _operation(self, node: exp.Expression) -> str:
        """Return an operator with both sides; what stands left of many alike is without parentheses."""
        self._only(node, "this", "expression", "safe", "typed")
        rights, kind, word = [], type(node), _OPERATORS[type(node)]
        while kind in _CHAINED and type(node.this) is kind:
            rights.append(node.expression)
            node = node.this
            self._only(node, "this", "expression", "safe", "typed")
        parts = [node.this, node.expression, *reversed(rights)]
        return f" {word} ".join(self._deeper(self._value, one) for one in parts)

    def _paren(self, node: exp.Expression) -> str:
        self._only(node, "this")
        return self._value(node.this)

    def _subquery(self, node: exp.Expression) -> str:
        self._only(node, "this")
        return f"({self._query(node.this)})"

    def _star(self, node: exp.Expression) -> str:
        self._only(node)
        self._stars = True
        return "*"

    def _column(self, node: exp.Expression) -> str:
        self._only(node, "this", "table")
        table = node.args.get("table")
        before = ""
        if table is not None:
            lower = table.name.lower()
            before = f"{self._name(table, lower if lower in TABLES else table.name)}."
        if isinstance(node.this, exp.Star):
            return before + self._star(node.this)
        return before + self._column_name(node.this)

    def _column_name(self, node: exp.Expression) -> str:
        if not isinstance(node, exp.Identifier):
            self._refuse_class(node)
        name = self._found(node.name)
        if name is None:
            typed, known = node.name, dict.fromkeys(self._names)
            near = _MEANT.get(typed.lower()) or nearest_word(typed.lower(), known)
            meant = (near,) if near in known else ()
            hint = "" if meant else f": there is {', '.join(known)}" if known else ": no table is named"
            if node.args.get("quoted") and not meant:
                hint = ": text stands in single quotes, names in double ones"
            self._refuse(node, f"there is no column {display_text(typed, limit=80)}{hint}", meant)
        self._used.add(name)
        return self._name(node, name)

    def _literal(self, node: exp.Expression) -> str:
        self._only(node, "this", "is_string")
        if node.args.get("is_string"):
            return "'" + str(node.this).replace("'", "''") + "'"
        text = str(node.this)
        if text.isdecimal():
            return self._whole(node)
        try:
            number = float(text)
        except ValueError:
            self._refuse(node, f"{display_text(text, limit=40)} is no number")
        if number in (float("inf"), float("-inf")):
            self._refuse(node, f"{display_text(text, limit=40)} is too large")
        return f"CAST('{number!r}' AS DOUBLE)"

    def _whole(self, node: exp.Expression) -> str:
        text = str(node.this)
        if not text.isascii() or len(text) > 19 or int(text) >= 1 << 63:
            self._refuse(node, f"{display_text(text, limit=40)} is too large: numbers have 64 bits")
        return str(int(text))

    def _word(self, node: exp.Expression) -> str:
        self._only(node, "this")
        return "NULL" if isinstance(node, exp.Null) else "TRUE" if node.this else "FALSE"

    def _prefixed(self, node: exp.Expression) -> str:
        self._only(node, "this")
        return f"({'NOT' if isinstance(node, exp.Not) else '-'} {self._value(node.this)})"

    def _is(self, node: exp.Expression) -> str:
        self._only(node, "this", "expression", "negate")
        if not isinstance(node.expression, exp.Null):
            self._refuse(node, "IS takes NULL only")
        return f"({self._value(node.this)} IS {'NOT ' if node.args.get('negate') else ''}NULL)"

    def _between(self, node: exp.Expression) -> str:
        self._only(node, "this", "low", "high")
        low, high = self._value(node.args["low"]), self._value(node.args["high"])
        return f"({self._value(node.this)} BETWEEN {low} AND {high})"

    def _in(self, node: exp.Expression) -> str:
        self._only(node, "this", "expressions", "query")
        query = node.args.get("query")
        if query is None:
            return f"({self._value(node.this)} IN ({self._values(node.expressions)}))"
        query = query.this if isinstance(query, exp.Subquery) else query
        return f"({self._value(node.this)} IN ({self._query(query)}))"

    def _case(self, node: exp.Expression) -> str:
        self._only(node, "this", "ifs", "default")
        text = "CASE" if node.this is None else f"CASE {self._value(node.this)}"
        for one in node.args["ifs"]:
            self._only(one, "this", "true")
            text += f" WHEN {self._value(one.this)} THEN {self._value(one.args['true'])}"
        default = node.args.get("default")
        return f"({text}{'' if default is None else f' ELSE {self._value(default)}'} END)"

    def _cast(self, node: exp.Expression) -> str:
        self._only(node, "this", "to", "safe", "_type")
        kind = node.args["to"]
        name = kind.this.name if isinstance(kind.this, exp.DType) else ""
        if name not in _TYPES or any(kind.args.get(one) for one in ("expressions", "nested", "values", "kind")):
            self._refuse(node, f"CAST takes {_or(dict.fromkeys(_TYPES.values()))}")
        word = "TRY_CAST" if isinstance(node, exp.TryCast) else "CAST"
        return f"{word}({self._value(node.this)} AS {_TYPES[name]})"

    def _function(self, node: exp.Expression) -> str:
        self._only(node, "this", "expressions")
        name = str(node.this).upper() if isinstance(node.this, str) else ""
        if name not in FUNCTIONS:
            typed = display_text(str(node.name or node.this), limit=40).lower()
            near = nearest_word(name.lower(), [one.lower() for one in FUNCTIONS])
            self._refuse(node, f"there is no function {typed}", () if near is None else (near,))
        least, most = FUNCTIONS[name]
        given = list(node.expressions)
        if not least <= len(given) <= most:
            takes = str(least) if least == most else f"{least} to {most}"
            self._refuse(node, f"{name.lower()} takes {takes} arguments, not {len(given)}")
        distinct = ""
        if given and isinstance(given[0], exp.Distinct):
            self._only(given[0], "expressions")
            if name not in ("COUNT", "SUM", "AVG") or len(given[0].expressions) != 1:
                self._refuse(node, "DISTINCT stands in count, sum and avg, before one column")
            distinct, given = "DISTINCT ", list(given[0].expressions)
        if name == "COUNT" and isinstance(given[0], exp.Star):
            self._only(given[0])
            return "COUNT(*)"
        if any(isinstance(one, exp.Star) for one in given):
            self._refuse(node, "* stands in count(*) only")
        arguments = self._values(given)
        if name in _QUANTILES:
            arguments = f"{self._value(given[0])}, {self._share(given[1])}"
        if name == "SUM" and not isinstance(given[0], exp.Column):
            arguments = f"{arguments} + CAST(0 AS BIGINT)"
        text = f"{name}({distinct}{arguments})"
        return f"CAST({text} AS BIGINT)" if name in _WIDENED else text

    def _share(self, node: exp.Expression) -> str:
        text = str(node.this) if isinstance(node, exp.Literal) else ""
        if not re.fullmatch(r"0?\.[0-9]{1,9}|[01](\.0{1,9})?", text):
            self._refuse(node, "a quantile is a number from 0 to 1")
        return text if text[0] != "." else f"0{text}"

    def _window(self, node: exp.Expression) -> str:
        self._only(node, "this", "partition_by", "order", "over")
        if not isinstance(node.this, exp.Anonymous) or node.args.get("over") not in (None, "OVER"):
            self._refuse_class(node)
        parts = []
        if node.args.get("partition_by"):
            parts.append(f"PARTITION BY {self._values(node.args['partition_by'])}")
        if (order := node.args.get("order")) is not None:
            self._only(order, "expressions")
            parts.append(f"ORDER BY {', '.join(self._ordered(one) for one in order.expressions)}")
        return f"{self._function(node.this)} OVER ({' '.join(parts)})"

    # names and refusals

    def _name(self, node: exp.Expression, name: str | None = None) -> str:
        if not isinstance(node, exp.Identifier):
            self._refuse_class(node)
        name = node.name if name is None else name
        if not name or len(name) > LONGEST_ALIAS or not name.isprintable():
            self._refuse(node, f"a name has 1 to {LONGEST_ALIAS} printable characters")
        return _quoted(name)

    def _only(self, node: exp.Expression | None, *expected: str) -> None:
        """Refuse a node with other arguments than these; absent ones are None, False or empty."""
        for name, value in () if node is None else node.args.items():
            if name not in expected and value not in (None, False, []):
                self._refuse(node, f"{_words(node)} with {name.strip('_').replace('_', ' ').upper()} is not possible")

    def _refuse_class(self, node: exp.Expression) -> NoReturn:
        self._refuse(node, f"{_words(node)} is not possible here")

    def _refuse(self, node: exp.Expression | None, why: str, meant: tuple[str, ...] = ()) -> NoReturn:
        start = -1 if node is None else _start(node)
        span = NOWHERE if start < 0 or node is None else QuerySpan(start, _end(node))
        raise StatementError(Problem(span, SafeText(why), meant))


_BEGINNINGS: Final = (TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN)

_ENDS: Final = ("order", "limit", "offset")

_VALUES: Final[Mapping[type[exp.Expression], Callable[[_Writer, Any], str]]] = {
    exp.Anonymous: _Writer._function, exp.Between: _Writer._between, exp.Boolean: _Writer._word,
    exp.Case: _Writer._case, exp.Cast: _Writer._cast, exp.Column: _Writer._column, exp.In: _Writer._in,
    exp.Is: _Writer._is, exp.Literal: _Writer._literal, exp.Neg: _Writer._prefixed, exp.Not: _Writer._prefixed,
    exp.Null: _Writer._word, exp.Paren: _Writer._paren, exp.Star: _Writer._star, exp.Subquery: _Writer._subquery,
    exp.TryCast: _Writer._cast, exp.Window: _Writer._window,
}  # fmt: skip
"""How each class of values is written; other classes are refused."""

PATTERN_SOURCES: Final = {
    "memory_bytes": "memory_bytes", "max_memory_bytes": "memory_bytes", "without_ttl": "ttl_ms",
}  # fmt: skip
"""The columns of `keys` that columns of `patterns` are made of."""

_MEANT: Final = {
    "name": "key", "name_quoted": "key_quoted", "ttl": "ttl_ms", "size": "memory_bytes", "memory": "memory_bytes",
    "bytes": "memory_bytes", "len": "length", "idle": "idle_s", "idle_seconds": "idle_s", "freq": "frequency",
    "enc": "encoding", "db": "database", "namespace": "pattern", "count": "keys", "expires": "expires_at",
}  # fmt: skip
"""Other names that people know columns by."""


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _or(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} or {last}"


def _words(node: exp.Expression) -> str:
    return re.sub("(?<=[a-z])(?=[A-Z])", " ", type(node).__name__).upper()


def _start(node: exp.Expression) -> int:
    return min((one.meta["start"] for one in _placed(node)), default=-1)


def _end(node: exp.Expression) -> int:
    return max((one.meta["end"] + 1 for one in _placed(node)), default=0)


def _placed(node: exp.Expression) -> Iterable[exp.Expression]:
    """Return the parts of a node whose places in the text are known; of a function, its name."""
    if isinstance(node, exp.Anonymous) and "start" in node.meta:
        return [node]
    return [one for one in node.walk() if "start" in one.meta]
