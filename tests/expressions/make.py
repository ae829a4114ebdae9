#!/usr/bin/env python3
"""Writes cases.tsv: expressions, and what DuckDB says of each over the rows of tables.sql.

    tests/expressions/make.py        (with the Python of the benchmark's venv)

A line is: table, expression, values in the order of `id`; a single `error` where the expression
fails on a row. DuckDB divides integers as integers. Values are in the form that
crates/planish/tests/expressions.rs makes of ours: whole numbers as such, other numbers with nine
digits, `\\t`, `\\n` and `|` in text escaped.
"""

import datetime
import math
import re
from decimal import Decimal
from itertools import product
from pathlib import Path

import duckdb

HERE = Path(__file__).resolve().parent
NUMBERS = ["i8", "i16", "i32", "i64", "f32", "f64", "d9", "d18", "d38"]
COLUMNS = NUMBERS + ["b", "s", "dt", "ts"]
TYPES = ["TINYINT", "SMALLINT", "INTEGER", "BIGINT", "REAL", "DOUBLE", "DECIMAL(9, 2)",
         "DECIMAL(18, 4)", "DECIMAL(38, 6)", "BOOLEAN", "VARCHAR", "DATE", "TIMESTAMP"]
UNSIGNED = ["u8", "u16", "u32", "u64"]
UNSIGNED_TYPES = ["TINYINT UNSIGNED", "SMALLINT UNSIGNED", "INTEGER UNSIGNED", "BIGINT UNSIGNED"]
ZONED = "TIMESTAMP WITH TIME ZONE"
ZONE = "Europe/Berlin"
PARTS = ["year", "month", "day", "quarter", "week", "dow", "doy", "hour", "minute", "epoch",
         "isodow", "decade", "century"]
COMPARISONS = ["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]


def digits(number):
    mantissa, exponent = f"{number:.8e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def text(value):
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Decimal):
        return str(int(value)) if value == int(value) else digits(float(value))
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        if math.isinf(value):
            return "inf" if value > 0 else "-inf"
        return str(int(value)) if value == int(value) and abs(value) < 1e15 else digits(value)
    if isinstance(value, datetime.datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S.%f").rjust(26, "0")
    if isinstance(value, datetime.date):
        return value.isoformat()
    value = str(value)
    for raw, escaped in (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("|", "\\p")):
        value = value.replace(raw, escaped)
    return f"'{value}'"


def cases():
    for a, b in product(NUMBERS, NUMBERS):
        for op in COMPARISONS + ["+", "-", "*"]:
            yield f"{a} {op} {b}"
        yield f"{a} / nullif({b}, 0)"
        yield f"{a} % nullif({b}, 0)"
    for a in ["b", "s", "dt", "ts"]:
        for op in COMPARISONS:
            yield f"{a} {op} {a}"
            yield f"{a} {op} (CASE WHEN id % 2 = 0 THEN {a} END)"
    for op in COMPARISONS:
        yield f"dt {op} ts"
        for number in NUMBERS:
            for literal in ["0", "1", "-1", "42", "0.01", "300", "1e0"]:
                yield f"{number} {op} {literal}"
    for column, target in product(COLUMNS, TYPES):
        yield f"CAST({column} AS {target})"
        yield f"TRY_CAST({column} AS {target})"
    for literal in ["'1'", "' 12 '", "'1.5'", "'-0'", "'abc'", "'1e3'", "'t'", "'2024-01-31'",
                    "'2024-01-31 10:11:12'", "'nan'", "'Infinity'", "'300'", "''", "NULL"]:
        for target in TYPES:
            yield f"TRY_CAST(CASE WHEN id > 0 THEN {literal} END AS {target})"
    for number in NUMBERS:
        for f in ["abs({})", "-{}", "round({})", "floor({})", "ceil({})", "{} IS NULL",
                  "{} IS NOT NULL", "sign({})", "coalesce({}, 7)", "nullif({}, 1)",
                  "{} BETWEEN 0 AND 42", "{} NOT BETWEEN -1 AND 1", "{} IN (1, 42)",
                  "{} NOT IN (1, 42)", "{} IN (1, NULL)", "{} NOT IN (1, NULL)",
                  "CASE {} WHEN 1 THEN 'one' WHEN 42 THEN 'many' ELSE 'other' END",
                  "CASE WHEN {0} > 0 THEN {0} WHEN {0} < 0 THEN -1 END",
                  "greatest({}, 2)", "least({}, 2)", "greatest({}, NULL)",
                  "{0} + NULL", "{0} = NULL", "{0} <> {0}"]:
            yield f.format(number)
    for number in ["f64", "f32", "d9", "i32"]:
        for f in ["sqrt(abs({}))", "exp({} / 1000)", "power({}, 2)", "sin({})", "cos({})",
                  "atan({})", "cbrt({})", "trunc({})", "isnan(CAST({} AS DOUBLE))", "round({}, 1)",
                  "ln(abs({}) + 1)", "log10(abs({}) + 1)", "degrees({})", "radians({})"]:
            yield f.format(number)
    for a, b in product(["i8", "i16", "i32", "i64"], repeat=2):
        for op in ["&", "|"]:
            yield f"{a} {op} {b}"
    for a, b in product(["b", "i32 > 0", "s IS NULL", "NULL", "true", "false"], repeat=2):
        yield f"{a} AND {b}"
        yield f"{a} OR {b}"
        yield f"({a}) = ({b})"
    for a in ["b", "i32 > 1", "f64 > 0", "s = ''", "CAST(NULL AS BOOLEAN)"]:
        for test in ["TRUE", "FALSE", "UNKNOWN", "NOT TRUE", "NOT FALSE", "NOT UNKNOWN"]:
            if "UNKNOWN" in test:
                test = test.replace("UNKNOWN", "NULL")
            yield f"({a}) IS {test}"
        yield f"NOT ({a})"
        yield f"CASE WHEN {a} THEN 1 WHEN NOT ({a}) THEN 2 ELSE 3 END"
        yield f"CASE WHEN {a} THEN i32 END"
    patterns = ["%", "_%", "a%", "%c", "%b%", "A_c", "abc", "", "%%", "a.b*c", "%ß", "日%", "___",
                "100%", "%pad%", "Z%a", "%ö%ß"]
    for pattern in patterns:
        for op in ["LIKE", "NOT LIKE", "ILIKE", "NOT ILIKE"]:
            yield f"s {op} '{pattern}'"
    for pattern in ["abc", "b", "%b%", "a_c", "(a|A)bc", "[aA]%", "a.b*c", "", "4*2", "4+2", "[^a]%"]:
        yield f"s SIMILAR TO '{pattern}'"
        yield f"s NOT SIMILAR TO '{pattern}'"
    yield "s LIKE '100!%!_%' ESCAPE '!'"
    yield "s LIKE s"
    yield "s LIKE NULL"
    for f in ["upper(s)", "lower(s)", "length(s)", "trim(s)", "ltrim(s)", "rtrim(s)", "reverse(s)",
              "s || 'x'", "'x' || s || s", "s || NULL", "substr(s, 2)", "substr(s, 2, 2)",
              "substr(s, 0, 2)", "substr(s, -1)", "left(s, 2)", "right(s, 2)", "left(s, -1)",
              "right(s, -1)", "repeat(s, 2)", "replace(s, 'b', 'xx')", "replace(s, '', 'x')",
              "lpad(s, 5, '*')", "rpad(s, 5, '*')", "lpad(s, 2, '*')", "strpos(s, 'b')",
              "strpos(s, '')", "starts_with(s, 'a')", "contains(s, 'b')", "concat(s, i32)",
              "concat(s, NULL, 'x')", "concat_ws('-', s, NULL, 'x')", "ascii(s)", "chr(65)",
              "split_part(s, 'b', 1)", "split_part(s, 'b', 2)", "split_part(s, 'z', 3)",
              "translate(s, 'abc', 'xy')", "md5(s)", "coalesce(s, 'none')", "nullif(s, 'abc')",
              "s IN ('abc', '42')", "s NOT IN ('abc', '42')", "s IN ('abc', NULL)",
              "s BETWEEN 'a' AND 'b'", "greatest(s, 'b')", "least(s, 'b')",
              "regexp_replace(s, '[aA]', 'X')", "octet_length(CAST(s AS BLOB))", "bit_length(s)",
              "CASE s WHEN 'abc' THEN 1 WHEN '' THEN 2 END", "levenshtein(s, 'abc')"]:
        yield f
    for column in ["dt", "ts"]:
        for part in PARTS:
            yield f"date_part('{part}', {column})"
            yield f"EXTRACT({part} FROM {column})"
        for part in ["year", "quarter", "month", "week", "day", "hour", "minute", "second"]:
            yield f"date_trunc('{part}', {column})"
        for interval in ["1 day", "1 month", "-1 month", "1 year", "90 minutes"]:
            yield f"{column} + INTERVAL '{interval}'"
            yield f"{column} - INTERVAL '{interval}'"
        for op in COMPARISONS:
            yield f"{column} {op} DATE '1970-01-01'"
            yield f"{column} {op} TIMESTAMP '2000-02-29 12:30:15.5'"
        yield f"{column} BETWEEN DATE '1960-01-01' AND DATE '2001-01-01'"
        yield f"{column} IN (DATE '1970-01-01', DATE '2024-12-31')"
        yield f"coalesce({column}, {column})"
    yield "dt - DATE '1970-01-01'"
    # Guards.
    for a, b in [("i32", "100"), ("i64", "7"), ("d9", "1")]:
        yield f"{a} <> 0 AND {b} / {a} > 3"
        yield f"{a} = 0 OR {b} / {a} > 3"
        yield f"CASE WHEN {a} <> 0 THEN {b} / {a} END"
        yield f"CASE WHEN {a} = 0 THEN NULL ELSE {b} % {a} END"
        yield f"coalesce({a}, {b} / ({a} - {a}))"
    yield "CASE WHEN s = '42' THEN CAST(s AS INTEGER) END"
    yield "s = '42' AND CAST(s AS INTEGER) > 1"
    yield "i32 < 1000 AND CAST(i32 AS TINYINT) > 0"


def unsigned_and_zoned_cases():
    numbers = UNSIGNED + ["i32", "i64", "f64", "d9"]
    for a, b in product(numbers, numbers):
        if a not in UNSIGNED and b not in UNSIGNED:
            continue
        for op in COMPARISONS + ["+", "-", "*"]:
            yield f"{a} {op} {b}"
        yield f"{a} / nullif({b}, 0)"
        yield f"{a} % nullif({b}, 0)"
    for number in UNSIGNED:
        for op, literal in product(COMPARISONS, ["0", "1", "-1", "255", "300", "0.5"]):
            yield f"{number} {op} {literal}"
        for f in ["abs({})", "round({})", "coalesce({}, 7)", "nullif({}, 1)", "{} IN (1, 255)",
                  "{} NOT IN (1, NULL)", "{} BETWEEN 1 AND 255", "greatest({}, 2)", "least({}, 2)",
                  "CASE {} WHEN 1 THEN 'one' WHEN 255 THEN 'many' ELSE 'other' END"]:
            yield f.format(number)
        for op in ["&", "|"]:
            yield f"{number} {op} {number}"
        for target in TYPES + UNSIGNED_TYPES:
            yield f"CAST({number} AS {target})"
            yield f"TRY_CAST({number} AS {target})"
    for column, target in product(["i32", "i64", "f64", "d9", "s"], UNSIGNED_TYPES):
        yield f"CAST({column} AS {target})"
        yield f"TRY_CAST({column} AS {target})"
    for literal, target in product(["'1'", "'-1'", "'255'", "'256'", "'x'", "NULL"], UNSIGNED_TYPES):
        yield f"TRY_CAST(CASE WHEN id > 0 THEN {literal} END AS {target})"
    for op in COMPARISONS:
        for other in ["tz", "ts", "dt", "(CASE WHEN id % 2 = 0 THEN tz END)", "DATE '2024-03-31'",
                      f"CAST('2024-03-31 01:00:00+00' AS {ZONED})"]:
            yield f"tz {op} {other}"
    for part in PARTS:
        yield f"date_part('{part}', tz)"
        yield f"EXTRACT({part} FROM tz)"
    for part in ["year", "quarter", "month", "week", "day", "hour", "minute", "second"]:
        yield f"date_trunc('{part}', tz)"
    for interval in ["1 day", "1 month", "-1 month", "1 year", "90 minutes", "1 hour"]:
        yield f"tz + INTERVAL '{interval}'"
        yield f"tz - INTERVAL '{interval}'"
    for column, target in [("tz", "TIMESTAMP"), ("tz", "DATE"), ("ts", ZONED), ("dt", ZONED),
                           ("tz", "BIGINT"), ("tz", "BOOLEAN")]:
        yield f"CAST({column} AS {target})"
        yield f"TRY_CAST({column} AS {target})"
    for literal in ["'2024-03-31 01:30:00+00'", "'2024-03-31 01:30:00'", "'2024-03-31'", "'x'",
                    "'2024-07-01T12:00:00Z'", "'2024-07-01 12:00:00-05:30'", "''", "NULL"]:
        yield f"TRY_CAST(CASE WHEN id > 0 THEN {literal} END AS {ZONED})"
    yield from ["coalesce(tz, tz)", "nullif(tz, tz)", "tz IS NULL", "greatest(tz, tz)",
                f"tz BETWEEN CAST('2000-01-01 00:00:00Z' AS {ZONED}) AND tz",
                f"tz IN (CAST('1970-01-01 00:00:00Z' AS {ZONED}))", "tz - tz < INTERVAL '1 day'",
                "CASE WHEN tz > ts THEN 'later' ELSE 'not' END"]


def duck(sql):
    """Unsigned types have names of their own in DuckDB."""
    return re.sub(r"(TINYINT|SMALLINT|INTEGER|BIGINT) UNSIGNED", r"U\1", sql)


def main():
    con = duckdb.connect()
    con.execute("SET integer_division = true")
    con.execute(f"SET TimeZone = '{ZONE}'")
    con.execute(duck((HERE / "tables.sql").read_text()))
    lines = []
    tables = [("edge", cases), ("mild", cases), ("other", unsigned_and_zoned_cases)]
    for table, exprs in tables:
        for expr in dict.fromkeys(exprs()):
            try:
                rows = con.execute(f"SELECT {duck(expr)} FROM {table} ORDER BY id").fetchall()
                values = "|".join(text(row[0]) for row in rows)
            except (duckdb.BinderException, duckdb.ParserException, duckdb.CatalogException):
                continue
            except duckdb.Error:
                values = "error"
            except (ValueError, OverflowError):
                continue  # a date that Python has not
            lines.append(f"{table}\t{expr}\t{values}\n")
    (HERE / "cases.tsv").write_text("".join(lines))
    print(len(lines), "cases,", sum(line.endswith("\terror\n") for line in lines), "errors")


main()
