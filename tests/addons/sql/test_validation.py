"""What a query may be: refused with its place and the reason, before any record comes."""

import duckdb
import pytest

from parquet_sink.addons.sql.engine import engine
from parquet_sink.addons.sql.functions import FUNCTIONS
from parquet_sink.addons.sql.query import WrongQuery, query
from tests.messages import saying

REFUSED: list[tuple[str, ...]] = [
    ("SELECT sum(a) AS s FROM records", "Line 1, column 8", "function sum", "aggregate"),
    ("SELECT count(*) AS s FROM records", "function count_star", "aggregate"),
    ("SELECT a FROM records GROUP BY a", "GROUP BY", "not possible", "by itself"),
    ("SELECT a FROM records GROUP BY ALL", "GROUP BY", "not possible", "by itself"),
    ("SELECT a FROM records HAVING true", "HAVING", "not possible"),
    ("SELECT a FROM records JOIN other USING (a)", "a join", "not possible"),
    ("SELECT a FROM records, other", "a join", "not possible"),
    ("SELECT a FROM records r, unnest(r.l)", "a join", "not possible"),
    ("SELECT row_number() OVER () AS n FROM records", "a window function", "not possible"),
    ("SELECT sum(a) OVER (ORDER BY b) AS n FROM records", "a window function", "not possible"),
    ("SELECT a FROM records QUALIFY row_number() OVER () = 1", "QUALIFY", "not possible"),
    ("SELECT a FROM records\nORDER BY a", "Line 2, column 10", "ORDER BY", "not possible"),
    ("SELECT a FROM records LIMIT 3", "LIMIT and OFFSET", "not possible"),
    ("SELECT a FROM records LIMIT 3%", "LIMIT and OFFSET", "not possible"),
    ("SELECT a FROM records OFFSET 3", "LIMIT and OFFSET", "not possible"),
    ("SELECT a FROM records USING SAMPLE 3", "USING SAMPLE", "not possible"),
    ("SELECT a FROM records TABLESAMPLE 10%", "TABLESAMPLE", "not possible"),
    ("SELECT DISTINCT a FROM records", "DISTINCT", "not possible"),
    ("SELECT DISTINCT ON (a) a FROM records", "DISTINCT", "not possible"),
    ("SELECT a FROM records UNION SELECT a FROM records", "UNION, EXCEPT and INTERSECT", "not possible"),
    ("SELECT a FROM (SELECT a FROM records)", "a subquery", "not possible"),
    ("SELECT (SELECT max(a) FROM records) AS m FROM records", "a subquery", "not possible"),
    ("SELECT a FROM records WHERE a IN (SELECT 1)", "a subquery", "not possible"),
    ("SELECT a FROM records WHERE EXISTS (SELECT 1)", "a subquery", "not possible"),
    ("SELECT a FROM records WHERE a = ANY(b)", "a subquery", "not possible"),
    ("SELECT a FROM orders", "Line 1, column 15", "no table orders", "say FROM records"),
    ("SELECT a FROM main.records", "no table records", "say FROM records"),
    ("SELECT a FROM '/etc/passwd'", "no table /etc/passwd", "say FROM records"),
    ("SELECT a FROM 'x.parquet'", "no table x.parquet", "say FROM records"),
    ("WITH x AS (SELECT * FROM read_csv('x')) SELECT a FROM records", "WITH", "not possible"),
    ("SELECT * FROM read_csv('x')", "a table function", "not possible"),
    ("SELECT * FROM read_parquet('x')", "a table function", "not possible"),
    ("SELECT * FROM read_text('x')", "a table function", "not possible"),
    ("SELECT * FROM glob('*')", "a table function", "not possible"),
    ("SELECT * FROM duckdb_settings()", "a table function", "not possible"),
    ("SELECT read_text('x') AS t FROM records", "function read_text", "a table function"),
    ("SELECT 1 AS one", "a query without a table", "not possible"),
    ("VALUES (1)", "VALUES", "not possible"),
    ("ATTACH 'x'", "write one SELECT statement"),
    ("COPY records TO 'x'", "write one SELECT statement"),
    ("PRAGMA version", "write one SELECT statement"),
    ("SET threads=9", "write one SELECT statement"),
    ("INSTALL httpfs", "write one SELECT statement"),
    ("CREATE TABLE t AS SELECT 1", "write one SELECT statement"),
    ("DROP TABLE records", "write one SELECT statement"),
    ("EXPLAIN SELECT a FROM records", "write one SELECT statement"),
    ("SELECT a FROM records; SELECT b FROM records", "one statement", "not several"),
    ("DESCRIBE records", "SHOW, DESCRIBE and SUMMARIZE", "not possible"),
    ("SUMMARIZE records", "SHOW, DESCRIBE and SUMMARIZE", "not possible"),
    ("", "write one SELECT statement"),
    ("SELECT random() AS r FROM records", "function random", "the same each time"),
    ("SELECT uuid() AS r FROM records", "function uuid", "the same each time"),
    ("SELECT now() AS r FROM records", "function now", "the same each time"),
    ("SELECT current_date AS r FROM records", "current_date", "the same each time"),
    ("SELECT a FROM records WHERE t < CURRENT_TIMESTAMP", "the same each time"),
    ("SELECT a -> '$.x' AS x FROM records", "->", "not possible", "write lambda"),
    ("SELECT list_transform(l, x -> x + 1) AS x FROM records", "->", "not possible", "write lambda"),
    ("SELECT lpad(a, n, '0') AS x FROM records", "lpad", "at most 10,000", "the length"),
    ("SELECT list_resize(a, 99999999) AS x FROM records", "list_resize", "at most 10,000"),
    ("SELECT format(a, 1) AS x FROM records", "format", "takes a text", "what it fills"),
    ("SELECT format('{:>99999}', a) AS x FROM records", "format", "at most 10,000", "a width"),
    ("SELECT format('{:{}}', a, n) AS x FROM records", "format", "at most 10,000", "a width"),
    ("SELECT format('{:.99999f}', a) AS x FROM records", "format", "at most 10,000", "a width"),
    ("SELECT printf('%099999d', a) AS x FROM records", "printf", "at most 10,000", "a width"),
    ("SELECT printf('%-*d', n, a) AS x FROM records", "printf", "at most 10,000", "a width"),
    ("SELECT printf('%.*f', n, a) AS x FROM records", "printf", "at most 10,000", "a width"),
    ("SELECT list_transform(l, lambda x: unnest(m)) AS x FROM records", "unnest", "not possible", "within a lambda"),
    ("SELECT * RENAME (a.b AS c) FROM records", "RENAME", "field of an object", "not possible"),
    ("SELECT repeat(a, 9) AS x FROM records", "function repeat", "a table function"),
    ("SELECT range(a) AS x FROM records", "function range is"),
    ("SELECT current_localtimestamp() AS r FROM records", "function current_localtimestamp"),
    ("SELECT nextval('s') AS r FROM records", "the same each time"),
    ("SELECT current_setting('threads') AS r FROM records", "the same each time"),
    ("SELECT age(a::TIMESTAMP) AS r FROM records", "function age", "not among the functions"),
    ('SELECT from_json(a, \'{"t": "TIMETZ"}\') AS r FROM records', "from_json", "a time zone", "the same each time"),
    ("SELECT json_transform(a, '[\"Time With Time Zone\"]') AS r FROM records", "the same each time"),
    ("SELECT list_aggregate(a, 'reservoir_quantile') AS r FROM records", "function list_aggregate", "not among"),
    ("SELECT CASE WHEN random() > 1 THEN 1 END AS r FROM records", "function random"),
    ("SELECT a FROM records WHERE random() < 0.5", "function random"),
    ("SELECT * REPLACE (random() AS a) FROM records", "function random"),
    ("SELECT list_transform(l, lambda x: random()) AS r FROM records", "function random"),
    ("SELECT [random() FOR x IN l] AS r FROM records", "function random"),
    ("SELECT {'a': [random()]} AS r FROM records", "function random"),
    ("SELECT a[random()] AS r FROM records", "function random"),
    ("SELECT a IN (random()) AS r FROM records", "function random"),
    ("SELECT a BETWEEN 1 AND random() AS r FROM records", "function random"),
    ("SELECT NOT (random() = 1 OR a) AS r FROM records", "function random"),
    ("SELECT random()::VARCHAR AS r FROM records", "function random"),
    ("SELECT foo(a) AS r FROM records", "Line 1, column 8", "function foo", "not known to DuckDB"),
    ("SELECT json_serialize_sql('SELECT 1') AS r FROM records", "json_serialize_sql", "not among the functions"),
    ("SELECT a + 1 FROM records", "an expression", "needs a name"),
    ("SELECT a, b AS a FROM records", "two columns", "called a"),
    ("SELECT *, * FROM records", "more than one *"),
    ("SELECT COLUMNS('x') FROM records", "COLUMNS", "not possible"),
    ("SELECT COLUMNS(*) + 1 AS x FROM records", "COLUMNS", "not possible"),
    ("SELECT other.* FROM records", "no table other", "say FROM records"),
    ("SELECT $1 AS x FROM records", "a parameter"),
    ("SELECT ? AS x FROM records", "a parameter"),
    ("SELECT #1 AS x FROM records", "a column by its number", "not possible"),
    ("SELECT a COLLATE nocase AS x FROM records", "COLLATE", "not possible"),
    ("SELECT a::mood AS x FROM records", "type mood", "not among the types"),
    ("SELECT a::ENUM('x') AS x FROM records", "type enum", "not among the types"),
    ("SELECT a.upper() AS x FROM records", "write upper(...)"),
    ("SELECT upper(a, 1) AS x FROM records", "No function matches"),
    ("SELECT a FROM records WHERE unnest(b) = 1", "unnest in WHERE", "not possible"),
    ("SELECT unnest(unnest(a)) AS x FROM records", "Nested UNNEST"),
    ("SELECT unnest(a, recursive := true) AS x FROM records", "unnest", "a list alone"),
    ("SELECT a FROM records WHERE", "Line 1, column 23", "no SQL", "syntax error"),
    ("SELEC a FROM records", "Line 1, column 1", "no SQL", "syntax error", '"SELEC"'),
    ("SELECT 'ü' AS x,\n  sum(a) AS s FROM records", "Line 2, column 3", "function sum"),
    ("SELECT 'ü', sum(a) AS s FROM records", "an expression", "needs a name"),
]
"""Each query, and what its refusal says."""


@pytest.mark.parametrize(("text", "words"), [(text, words) for text, *words in REFUSED])
def test_refused(text: str, words: list[str]) -> None:
    """What is no projection, condition or unnest of one record by itself is refused with the reason."""
    with pytest.raises(WrongQuery, match=saying(*words)):
        query(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT order_id, amount * 1.19 AS gross FROM records WHERE status <> 'test'",
        "FROM records",
        "SELECT * EXCLUDE (a) REPLACE (b + 1 AS b) RENAME (c AS d) FROM records",
        "SELECT r.*, r.a.b AS c, _key, _offset FROM records AS r",
        "SELECT list_transform(l, lambda x, i: x.q + i) AS x, [y.a FOR y IN l IF y.b > 1.5] AS y FROM records",
        "SELECT CASE a WHEN 1 THEN 'x' ELSE 'y' END AS x, a IN (1, 2) AS i, a BETWEEN 1 AND 2 AS w FROM records",
        "SELECT a LIKE 'x%' AS l, a ~ 'x' AS r, a || 'x' AS c, -a AS m, a ->> '$.x' AS j FROM records",
        "SELECT TRY_CAST(a AS DECIMAL(9, 2)) AS d, a::TIMESTAMPTZ AS t, a::STRUCT(x INT)[] AS s\nFROM records",
        "SELECT lpad(a, 10, '0') AS x, format('{:>9} {{99999}}', b) AS f FROM records",
        "SELECT printf('%5.2f of 99999%%', c) AS p FROM records",
        "SELECT date_trunc('day', a::TIMESTAMP) + INTERVAL 1 DAY AS d, extract(year FROM a::DATE) AS y FROM records",
        "SELECT {'x': a, 'y': [a]} AS s, MAP {'a': 1} AS m, coalesce(a, b) AS c, nullif(a, '') AS n FROM records",
        'SELECT from_json(a, \'{"time": "TIMESTAMP WITH TIME ZONE", "with": "TIME"}\') AS j FROM records',
        "SELECT unnest(items).sku AS sku, a[1] AS f, a[1:2] AS s, a['b'] AS e, TRY(a::INT) AS t\nFROM records -- why",
    ],
)
def test_accepted(text: str) -> None:
    """Projections, expressions, conditions, lambdas and unnest are possible."""
    assert query(text).text == text


def test_functions_are_stable() -> None:
    """DuckDB says of every function on the list that it depends on arguments and time zone alone, or it is a macro."""
    with engine().lock:
        kinds = {name: engine().kind_of(name) for name in FUNCTIONS - {"unnest"}}
    assert {name: kind for name, kind in kinds.items() if kind != "other"} == {}


def test_engine_is_locked() -> None:
    """Even a query that was not validated reads no file, loads nothing, and changes no setting."""
    work = engine()
    for statement in (
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd.csv'",
        "SELECT * FROM glob('/*')",
        "COPY (SELECT 1) TO '/tmp/parquet-sink-sql-test'",
        "ATTACH '/tmp/parquet-sink-sql-test.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET lock_configuration = false",
        "SET threads = 4",
        "SET TimeZone = 'Europe/Berlin'",
        "SET Calendar = 'buddhist'",
        "SET memory_limit = '8GB'",
        "RESET temp_directory",
    ):
        with work.lock, pytest.raises(duckdb.Error):
            work._do(statement)
    settings = (
        "SELECT name, value FROM duckdb_settings() WHERE name IN ('threads', 'temp_directory', 'TimeZone', 'Calendar')"
    )
    with work.lock:
        assert sorted(work._do(settings)) == [
            ("Calendar", "gregorian"),
            ("TimeZone", "UTC"),
            ("temp_directory", ""),
            ("threads", "1"),
        ]
