# ruff: noqa: S608
"""Statements of SQL: what is refused, what Polars gets instead of the text, and what comes of it."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rtui
from rtui.table.statement import FUNCTIONS, LONGEST, TABLES, StatementError, read_statement
from rtui.table.statement_tables import FINDINGS, KEYS, context, result_of

HELP = (Path(rtui.__file__).parent / "help" / "sql.md").read_text()

EXAMPLES = [
    " ".join(line.strip() for line in block.splitlines())
    for block in re.findall(r"\n\n((?:    (?:SELECT|WITH).*\n(?:    .*\n)*))", HELP)
]


def run(sql: str, rows: dict[str, list[object]] | None = None, most: int = 1_000) -> list[tuple[object, ...]]:
    """Run a statement on some rows of `keys`, other columns are unknown."""
    statement, rows = read_statement(sql), rows or {}
    height = max(map(len, rows.values()), default=0)
    keys = pl.DataFrame({name: rows.get(name, [None] * height) for name in KEYS}, schema=KEYS)
    frames = {"keys": keys.lazy(), "findings": pl.LazyFrame(schema=FINDINGS)}
    found = pl.SQLContext(frames={one: frames[one] for one in statement.tables}).execute(statement.sql)
    return found.head(most).collect(engine="streaming").rows()


HOSTILE = [
    # files and functions that return tables
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM READ_PARQUET('/tmp/x')",
    "SELECT * FROM scan_csv('/etc/passwd') k",
    "SELECT key FROM keys, read_json('/etc/passwd')",
    "SELECT key FROM keys LEFT JOIN read_ipc('x') USING (key)",
    "SELECT * FROM '/etc/passwd'",
    'SELECT * FROM "/etc/passwd"',
    "SELECT * FROM \"read_csv('/etc/passwd')\"",
    "SELECT * FROM unnest(ARRAY[1, 2]) AS t",
    "SELECT unnest(key) FROM keys",
    "SELECT * FROM LATERAL (SELECT 1)",
    "SELECT * FROM (VALUES (1)) AS t (x)",
    "TABLE keys",
    "FROM keys",
    "SELECT key FROM (SELECT * FROM read_csv('x')) s",
    "SELECT (SELECT count(*) FROM read_csv('x')) FROM keys",
    "SELECT key FROM keys WHERE key IN (SELECT * FROM read_csv('x'))",
    "WITH a AS (SELECT * FROM read_csv('x')) SELECT * FROM a",
    "SELECT key FROM keys UNION ALL SELECT * FROM read_csv('x')",
    # other tables
    "SELECT * FROM secrets",
    "SELECT * FROM information_schema.tables",
    "SELECT * FROM main.keys",
    "SELECT key FROM keys UNION SELECT key FROM other",
    "SELECT k.key FROM keys k JOIN pg_catalog.pg_user u ON k.key = u.key",
    # what changes something, or says how something is done
    "DROP TABLE keys",
    "DELETE FROM keys",
    "CREATE TABLE x AS SELECT * FROM keys",
    "TRUNCATE TABLE keys",
    "INSERT INTO keys SELECT * FROM keys",
    "UPDATE keys SET name = ''",
    "WITH a AS (SELECT key FROM keys) DELETE FROM keys",
    "WITH a AS (DELETE FROM keys) SELECT * FROM a",
    "SELECT key INTO x FROM keys",
    "SELECT key FROM keys FOR UPDATE",
    "COPY keys TO '/tmp/x'",
    "ATTACH 'x' AS y",
    "PRAGMA x",
    "SET x = 1",
    "EXPLAIN SELECT key FROM keys",
    "SHOW TABLES",
    "DESCRIBE keys",
    "CALL x()",
    # several statements, and what hides one
    "SELECT key FROM keys; DROP TABLE keys",
    "SELECT key FROM keys; SELECT key FROM keys",
    "SELECT key FROM keys; -- x\n DROP TABLE keys",
    "/* SELECT */ DROP TABLE keys",
    "SELECT key FROM keys /* */ ; /* */ DELETE FROM keys",
    "--\nDROP TABLE keys",
    "SELECT key FROM /*! read_csv('x') */ nothing",
    "SELECT /*+ HINT */ key FROM keys",
    "",
    " ; ",
    "--",
    "'",
    "SELECT 'x FROM keys",
    'SELECT "x FROM keys',
    "SELECT /* key FROM keys",
    # names
    "WITH keys AS (SELECT 1 AS x) SELECT * FROM keys",
    'WITH "KEYS" AS (SELECT 1 AS x) SELECT * FROM keys',
    "WITH a AS (SELECT key FROM keys), a AS (SELECT type FROM keys) SELECT * FROM a",
    "WITH RECURSIVE a AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM a) SELECT * FROM a",
    "WITH a AS (SELECT * FROM b), b AS (SELECT key FROM keys) SELECT * FROM a",
    "SELECT * FROM (WITH a AS (SELECT key FROM keys) SELECT * FROM a) s",
    "WITH a (x) AS (SELECT key FROM keys) SELECT x FROM a",
    "SELECT key AS \"a\x00b\" FROM keys",
    'SELECT key AS "" FROM keys',
    f'SELECT key AS "{"a" * 300}" FROM keys',
    'SELECT key AS "a\x1b[31m" FROM keys',
    "SELECT key, key FROM keys",
    "SELECT a.b.c.key FROM keys",
    # values that are no plain values
    "SELECT now() FROM keys",
    "SELECT CURRENT_TIMESTAMP FROM keys",
    "SELECT random() FROM keys",
    "SELECT getenv('HOME') FROM keys",
    "SELECT version() FROM keys",
    "SELECT x'00' FROM keys",
    "SELECT $1 FROM keys",
    "SELECT :x FROM keys",
    "SELECT ? FROM keys",
    "SELECT @x FROM keys",
    "SELECT {'a': 1} FROM keys",
    "SELECT [1] FROM keys",
    "SELECT ARRAY[1] FROM keys",
    "SELECT (1, 2) FROM keys",
    "SELECT key -> 'x' FROM keys",
    "SELECT key[1] FROM keys",
    "SELECT CAST(key AS BLOB) FROM keys",
    "SELECT CAST(key AS DECIMAL(10, 2)[]) FROM keys",
    "SELECT INTERVAL '1 day' FROM keys",
    "SELECT key COLLATE x FROM keys",
    "SELECT count(*) FILTER (WHERE slot > 1) FROM keys",
    "SELECT sum(slot) OVER (ORDER BY slot ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM keys",
    "SELECT sum(*) FROM keys",
    "SELECT max(DISTINCT slot) FROM keys",
    "SELECT split_part(key) FROM keys",
    'SELECT "sum"(slot) FROM keys',
    "SELECT keys.sum(slot) FROM keys",
    "SELECT key LIKE 'a' ESCAPE '!' FROM keys",
    "SELECT EXISTS (SELECT 1 FROM keys) FROM keys",
    "SELECT slot = ANY (SELECT slot FROM keys) FROM keys",
    "SELECT COLUMNS('x') FROM keys",
    "SELECT * EXCLUDE (key) FROM keys",
    "SELECT * REPLACE (1 AS key) FROM keys",
    # clauses
    "SELECT DISTINCT ON (type) key FROM keys",
    "SELECT key FROM keys NATURAL JOIN patterns",
    "SELECT key FROM keys ASOF JOIN patterns ON slot > keys",
    "SELECT key FROM keys TABLESAMPLE (10)",
    "SELECT key FROM keys PIVOT (sum(slot) FOR type IN ('a'))",
    "SELECT count(*) FROM keys GROUP BY ROLLUP (type)",
    "SELECT count(*) FROM keys GROUP BY GROUPING SETS ((type))",
    "SELECT key FROM keys FETCH FIRST 1 ROWS ONLY",
    "SELECT key FROM keys LIMIT (SELECT 1)",
    "SELECT key FROM keys LIMIT -1",
    "SELECT key FROM keys LIMIT 1 BY type",
    "SELECT key FROM keys LATERAL VIEW explode(x) t AS y",
    "SELECT key FROM keys WINDOW w AS (ORDER BY slot)",
    "SELECT FROM keys",
    "SELECT 1",
    # numbers and sizes
    "SELECT quantile_cont(slot, 2) FROM keys",
    "SELECT quantile_cont(slot, slot) FROM keys",
    "SELECT 99999999999999999999 FROM keys",
    "SELECT 1e999 FROM keys",
    "SELECT key FROM keys LIMIT 99999999999999999999",
    f"SELECT '{'a' * LONGEST}' FROM keys",
    f"SELECT {'(' * 100}1{')' * 100} FROM keys",
    f"SELECT {'(' * 5_000}1{')' * 5_000} FROM keys",
    f"SELECT {'NOT ' * 3_000}TRUE FROM keys",
    f"SELECT {'- ' * 3_000}1 FROM keys",
    f"SELECT {'abs(' * 60}1{')' * 60} FROM keys",
    f"SELECT {', '.join(['1'] * 5_000)} FROM keys",
    f"SELECT key FROM {'(SELECT * FROM ' * 60}keys{') s' * 60}",
    " UNION ALL ".join(["SELECT key FROM keys"] * 60),
]  # fmt: skip


@pytest.mark.parametrize("sql", HOSTILE, ids=lambda sql: repr(sql[:60]))
def test_a_hostile_statement_is_refused(sql: str) -> None:
    with pytest.raises(StatementError) as refused:
        read_statement(sql)
    problem = refused.value.problem
    assert problem.sentence.isprintable()
    assert 0 <= problem.span.start <= problem.span.end <= len(sql)


@given(
    st.text(max_size=60)
    | st.lists(
        st.sampled_from([*"'\"();,.*-/%", "SELECT", "FROM", "keys", "key", "AS", "a", "/*", "*/", "--", "\n"]),
        max_size=20,
    ).map(" ".join)
)
def test_any_text_is_refused_or_names_only_the_tables(text: str) -> None:
    for sql in (text, f"SELECT key FROM keys {text}", f"SELECT {text} FROM keys"):
        try:
            statement = read_statement(sql)
        except StatementError:
            continue
        assert statement.tables <= TABLES.keys()
        try:
            run(sql)
        except pl.exceptions.PolarsError as error:
            assert "No such file" not in str(error)


@given(st.text(st.characters(codec="utf-8"), max_size=40))
def test_a_literal_and_a_name_mean_the_same_to_polars(text: str) -> None:
    literal = "'" + text.replace("'", "''") + "'"
    assert run(f"SELECT {literal} AS x FROM keys", {"key": ["a"]}) == [(text,)]
    if text and text.isprintable():
        name = '"' + text.replace('"', '""') + '"'
        assert run(f"SELECT x.{name} FROM (SELECT slot AS {name} FROM keys) AS x", {"slot": [7]}) == [(7,)]


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT kye FROM keys", "There is no column kye; did you mean key?"),
        ("SELECT idle FROM keys", "There is no column idle; did you mean idle_s?"),
        ("SELECT ttl FROM keys", "There is no column ttl; did you mean ttl_ms?"),
        ("SELECT count(*) FROM kyes", "There is no table kyes: there is keys, patterns or findings; "
         "did you mean keys?"),
        ("SELECT lenght(key) FROM keys", "There is no function lenght; did you mean length?"),
        ("SELECT key FORM keys", "FORM is not expected here; did you mean FROM?"),
        ("SELECT key FROM keys WEHRE slot = 1", "WEHRE is not expected here; did you mean WHERE?"),
        ("SELECT type FROM keys GRUOP BY type", "GRUOP is not expected here; did you mean GROUP?"),
        ('SELECT key FROM keys WHERE type = "hash"',
         "There is no column hash: text stands in single quotes, names in double ones."),
        ("DROP TABLE keys", "Begin with SELECT or WITH, not with DROP: rtui only reads."),
    ],
)  # fmt: skip
def test_an_error_names_the_word_and_what_was_meant(sql: str, said: str) -> None:
    with pytest.raises(StatementError) as refused:
        read_statement(sql)
    assert str(refused.value) == said
    span = refused.value.problem.span
    assert sql[span.start : span.end].strip('"') in said


ARGUMENTS = {
    "SPLIT_PART": "key, ':', 1", "STRFTIME": "expires_at, '%Y'", "DATE_PART": "'year', expires_at",
    "LEFT": "key, 1", "RIGHT": "key, 1", "ROUND": "slot, 1", "REPLACE": "key, 'a', 'b'",
    "QUANTILE_CONT": "slot, 0.5", "QUANTILE_DISC": "slot, 0.5", "IF": "slot > 1, 1, 2", "REGEXP_LIKE": "key, 'a', 'i'",
    "STARTS_WITH": "key, 'a'", "ENDS_WITH": "key, 'a'", "STRPOS": "key, 'a'", "SUBSTR": "key, 1, 2",
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_polars_has_each_function(name: str) -> None:
    of_text = {"LENGTH", "LOWER", "LTRIM", "OCTET_LENGTH", "REVERSE", "RTRIM", "TRIM", "UPPER", "CONCAT"}
    given = ARGUMENTS.get(name, ", ".join(["key" if name in of_text else "slot"] * max(FUNCTIONS[name][0], 0)))
    window = " OVER (ORDER BY slot)" if name in ("ROW_NUMBER", "RANK", "DENSE_RANK", "LAG", "LEAD") else ""
    assert len(run(f"SELECT {name}({given}){window} AS x FROM keys", {"key": ["a:b"], "slot": [2]})) == 1


ROWS: dict[str, list[object]] = {
    "key": ["a:1", "b:2", "c", None], "type": ["hash", "hash", "set", "set"], "slot": [1, 2, None, None],
    "memory_bytes": [1 << 40, 1 << 41, None, None],
}  # fmt: skip


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT Type, COUNT(*) FROM KEYS GROUP BY type ORDER BY 1", [("hash", 2), ("set", 2)]),
        ("SELECT type, sum(slot) s FROM keys GROUP BY type ORDER BY s DESC", [("hash", 3), ("set", None)]),
        ("SELECT type, sum(slot) s FROM keys GROUP BY type ORDER BY s", [("hash", 3), ("set", None)]),
        ("SELECT type, sum(slot) s FROM keys GROUP BY type ORDER BY s NULLS FIRST", [("set", None), ("hash", 3)]),
        ("SELECT sum(CASE WHEN slot > 0 THEN 2000000000 ELSE 2000000000 END) FROM keys", [(8_000_000_000,)]),
        ("SELECT sum(length(key) - 3) FROM keys", [(-2,)]),
        ("SELECT sum(memory_bytes * 0.5) FROM keys", [(1.5 * (1 << 40),)]),
        ("SELECT key FROM keys WHERE key NOT LIKE 'a%' ORDER BY key", [("b:2",), ("c",)]),
        ("SELECT key FROM keys WHERE slot NOT BETWEEN 1 AND 1", [("b:2",)]),
        ("SELECT key FROM keys WHERE slot NOT IN (1, 5)", [("b:2",)]),
        ("SELECT key FROM keys WHERE NOT (slot = 1) OR slot IS NULL ORDER BY 1", [("b:2",), ("c",), (None,)]),
        ("SELECT split_part(key, ':', 1) AS p FROM keys WHERE slot IS NOT NULL ORDER BY p DESC", [("b",), ("a",)]),
        ("SELECT k.slot, j.slot AS other FROM keys k JOIN keys j ON k.slot = j.slot ORDER BY 1", [(1, 1), (2, 2)]),
        ("SELECT count(*) FROM keys k, keys j", [(16,)]),
        ("SELECT 1 - 2 - 3 AS a, 2 * (3 + 4) AS b, 8 / 2 / 2 AS c FROM keys LIMIT 1", [(-4, 14, 2.0)]),
        ("SELECT row_number() OVER (PARTITION BY type ORDER BY slot) n FROM keys ORDER BY n", [(1,), (1,), (2,), (2,)]),
        ("(SELECT slot FROM keys WHERE slot = 1) UNION ALL SELECT 9 AS slot FROM keys LIMIT 1", None),
        ("WITH a AS (SELECT slot FROM keys), b AS (SELECT * FROM a) SELECT max(slot) FROM b", [(2,)]),
        ("SELECT key FROM keys WHERE slot = (SELECT max(slot) FROM keys)", [("b:2",)]),
        ("SELECT slot FROM keys WHERE regexp_like(key, '^(a|a)*:[0-9]+$')", [(1,)]),
    ],
    ids=lambda one: one[:50] if isinstance(one, str) else "",
)  # fmt: skip
def test_results(sql: str, expected: list[tuple[object, ...]] | None) -> None:
    found = run(sql, ROWS)
    assert found == expected if expected is not None else len(found) == 1


def test_many_conditions_in_a_row_are_not_deep() -> None:
    many = " OR ".join(f"slot = {number}" for number in range(400))
    assert run(f"SELECT key FROM keys WHERE {many} ORDER BY slot", ROWS) == [("a:1",), ("b:2",)]


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("SELECT count(*) FROM keys", set()),
        ("SELECT type FROM keys ORDER BY memory_bytes", {"type", "memory_bytes"}),
        ("SELECT * FROM keys", set(TABLES["keys"])),
        ("SELECT k.* FROM keys k", set(TABLES["keys"])),
        ("SELECT keys FROM patterns", {"pattern"}),
        ("SELECT pattern FROM patterns WHERE without_ttl > 1", {"pattern", "ttl_ms"}),
        ("SELECT * FROM patterns", {"pattern", "ttl_ms", "memory_bytes"}),
        ("SELECT * FROM findings", set()),
        ("SELECT x FROM (SELECT length AS x FROM keys) s", {"length"}),
    ],
)
def test_the_columns_that_decide_a_result(sql: str, columns: set[str]) -> None:
    assert read_statement(sql).columns == columns


def test_the_help_has_ten_examples_and_each_runs() -> None:
    assert len(EXAMPLES) == 10
    for sql in EXAMPLES:
        statement = read_statement(sql)
        result_of(statement.sql, sorted(statement.tables), {}, 10)


def test_the_help_names_all_functions_and_columns() -> None:
    block = re.search(r"Functions are:\n\n((?:    .*\n)+)", HELP)
    assert block is not None and block[1].split() == sorted(name.lower() for name in FUNCTIONS)
    assert all(re.search(rf"\b{name}\b", HELP) for columns in TABLES.values() for name in columns)


def test_the_tables_have_the_columns_that_they_are_said_to_have() -> None:
    assert list(KEYS) == list(TABLES["keys"])
    assert list(FINDINGS) == list(TABLES["findings"])
    made = context({}, ["patterns"]).execute("SELECT * FROM patterns").collect_schema()
    assert made.names() == list(TABLES["patterns"])
