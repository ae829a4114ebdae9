#!/usr/bin/env python3
"""Fills in what DuckDB answers to the queries of .slt files, under PostgreSQL's rules.

    tests/slt/fill.py tests/slt/*.slt       (with the Python of the benchmark's venv)

Rewrites the column types and the rows below `----` of each query. Left alone are statements
that must fail, and records after a comment `# by hand`, whose expectation a reader of
PostgreSQL's documentation wrote. `skipif planish` marks what Planish does not do yet, or does
otherwise; the comment before it says why. Review the diff before you commit it.

Values are written as the runner (crates/planish/tests/slt.rs) writes them: NULL, `(empty)` for an
empty string, numbers that are no integers with at most six decimals and no trailing zeros.
"""

import re
import sys
from decimal import Decimal
from pathlib import Path

import duckdb

DATA = Path(__file__).resolve().parent.parent.parent / "examples/data"


def text(value):
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (float, Decimal)):
        digits = f"{value:.6f}"
        return "0" if float(digits) == 0 else digits.rstrip("0").rstrip(".")
    value = str(value)
    return value if value else "(empty)"


def kind(duck_type):
    name = str(duck_type)
    if name.startswith(("DECIMAL", "DOUBLE", "FLOAT")):
        return "R"
    return "I" if re.fullmatch("U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?", name) else "T"


def connect():
    con = duckdb.connect()
    con.execute("SET integer_division = true")
    con.execute("SET error_on_division_by_zero = false")
    con.execute("SET default_null_order = 'postgres'")
    con.execute("SET lambda_syntax = 'ENABLE_SINGLE_ARROW'")
    con.execute(f"CREATE VIEW sales AS FROM '{DATA}/sales.parquet'")
    con.execute(f"CREATE VIEW stores AS FROM '{DATA}/stores.csv'")
    con.execute(f"CREATE VIEW products AS FROM '{DATA}/products.csv'")
    return con


def filled(record, con):
    """The record, its expectation replaced."""
    lines = record.split("\n")
    head = next(i for i, line in enumerate(lines) if not line.startswith(("#", "skipif ")))
    words = lines[head].split()
    if words[0] == "statement":
        if words[1] == "ok":
            con.execute("\n".join(lines[head + 1 :]))
        return record
    if words[0] != "query" or "# by hand" in lines[:head]:
        return record
    end = lines.index("----") if "----" in lines else len(lines)
    result = con.execute("\n".join(lines[head + 1 : end]))
    types = "".join(kind(d[1]) for d in result.description)
    rows = [" ".join(map(text, row)) for row in result.fetchall()]
    if "rowsort" in words:
        rows.sort()
    lines[head] = " ".join(["query", types, *(w for w in words[1:] if w == "rowsort")])
    return "\n".join([*lines[:end], "----", *rows])


def main():
    count = 0
    for name in sys.argv[1:]:
        path, con = Path(name), connect()
        records = re.split(r"\n{2,}", path.read_text().strip())
        out = []
        for record in records:
            try:
                has_sql = any(not line.startswith("#") for line in record.split("\n"))
                out.append(filled(record, con) if has_sql else record)
            except duckdb.Error as e:
                sys.exit(f"{path}: {e}\n{record}")
        count += len(records)
        path.write_text("\n\n".join(out) + "\n")
    print(f"{count} records in {len(sys.argv) - 1} files")


if __name__ == "__main__":
    main()
