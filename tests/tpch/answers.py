#!/usr/bin/env python3
"""The right answers to the TPC-H queries, computed with DuckDB.

    tests/tpch/answers.py make  --data DIR --out tests/tpch/answers-sf0.01
    tests/tpch/answers.py check --data DIR --planish target/release/planish

`make` writes one answer file per query: data of any scale factor goes in, made by
`bench/setup.sh 0.01` for the stored ones. `check` compares what the binary prints over the same
data with DuckDB's answers, for any scale factor. Run it with the Python of the bench venv.

An answer file is CSV with three header lines: column names, DuckDB's types, and the place of
each column in ORDER BY (empty where it has none). NULL is an empty field, an empty string `""`.

DuckDB runs with PostgreSQL's rules: division of integers gives an integer, NULLs sort last
ascending and first descending. Comparison: decimals are exact where both sides are decimals of
one scale; where they differ (DuckDB averages and divides decimals as doubles) values may differ
by one unit in the last place of the coarser one. Rows come in ORDER BY order, ties as sets.
"""

import argparse
import csv
import io
import re
import subprocess
import sys
from decimal import ROUND_HALF_UP, Decimal, localcontext
from pathlib import Path

import duckdb

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "bench"))
from run import query_files, split_statements, tables_of  # noqa: E402

# Output columns of each query's ORDER BY, by position.
ORDER_BY = {
    "q1": [0, 1],
    "q2": [0, 2, 1, 3],
    "q3": [1, 2],
    "q4": [0],
    "q5": [1],
    "q6": [],
    "q7": [0, 1, 2],
    "q8": [0],
    "q9": [0, 1],
    "q10": [2],
    "q11": [1],
    "q12": [0],
    "q13": [1, 0],
    "q14": [],
    "q15": [0],
    "q16": [3, 0, 1, 2],
    "q17": [],
    "q18": [4, 3],
    "q19": [],
    "q20": [0],
    "q21": [1, 0],
    "q22": [0],
}


def field(value):
    """A value as a CSV field."""
    if value is None:
        return ""
    text = repr(value) if isinstance(value, float) else str(value)
    if isinstance(value, Decimal):
        text = format(value, "f")
    if text == "" or any(c in text for c in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def open_duckdb(data):
    con = duckdb.connect()
    con.execute("SET integer_division = true")
    con.execute("SET default_null_order = 'postgres'")
    for name, path in tables_of(data):
        con.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{path}')")
    return con


def answer(con, script):
    """(names, types, rows) of the one statement of the script that returns rows."""
    found = None
    for sql in split_statements(script):
        result = con.execute(sql)
        is_query = sql.lstrip("( \n").lower().startswith(("select", "with"))
        if is_query:
            names = [d[0] for d in result.description]
            found = names, [str(d[1]) for d in result.description], result.fetchall()
    return found


def make(args):
    con = open_duckdb(args.data)
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    for file in query_files(args.queries, args.only):
        names, types, rows = answer(con, file.read_text())
        places = ORDER_BY[file.stem]
        order = [places.index(i) + 1 if i in places else None for i in range(len(names))]
        lines = [",".join(map(field, line)) for line in [names, types, order, *rows]]
        (out / f"{file.stem}.csv").write_text("\n".join(lines) + "\n")
        print(f"{file.stem}: {len(rows)} rows")


def scale_of(text):
    return len(text.partition(".")[2])


def equal(ours, theirs, kind):
    """Whether the text `ours` stands for DuckDB's value `theirs` of the type `kind`."""
    if theirs is None or ours == "":
        return theirs is None and ours == ""
    if kind == "DOUBLE":
        try:
            if "e" in ours.lower() or scale_of(ours) > 12:
                return abs(float(ours) - theirs) <= 1e-9 * max(1.0, abs(theirs))
            return abs(Decimal(ours) - Decimal(theirs)) <= Decimal(1).scaleb(-scale_of(ours))
        except ArithmeticError:
            return False
    if kind.startswith("DECIMAL"):
        scale = int(re.search(r",\s*(\d+)\)", kind).group(1))
        coarser = min(scale, scale_of(ours))
        if coarser == scale == scale_of(ours):
            return Decimal(ours) == theirs
        with localcontext(prec=60):
            unit = Decimal(1).scaleb(-coarser)
            a = Decimal(ours).quantize(unit, ROUND_HALF_UP)
            return abs(a - theirs.quantize(unit, ROUND_HALF_UP)) <= unit
    return ours == str(theirs)


def exact(kind):
    return kind != "DOUBLE" and not kind.startswith("DECIMAL")


def compare(names, types, places, theirs, ours):
    """None, or what differs first. Both are rows; `ours` of text."""
    if len(ours) != len(theirs):
        return f"{len(ours)} rows instead of {len(theirs)}"
    for n, (a, b) in enumerate(zip(ours, theirs)):
        for i in places:
            if not equal(a[i], b[i], types[i]):
                return f"row {n + 1} is out of order: {names[i]} is {a[i]} instead of {b[i]}"
    keys = [i for i, t in enumerate(types) if exact(t)]
    ours = sorted(ours, key=lambda row: [row[i] for i in keys])
    theirs = sorted(theirs, key=lambda row: ["" if row[i] is None else str(row[i]) for i in keys])
    for a, b in zip(ours, theirs):
        for i, name in enumerate(names):
            if not equal(a[i], b[i], types[i]):
                return f"{name} is {a[i]} instead of {b[i]} in {dict(zip(names, b))}"
    return None


def check(args):
    con = open_duckdb(args.data)
    wrong = 0
    files = query_files(args.queries, args.only)
    for file in files:
        names, types, theirs = answer(con, file.read_text())
        command = [args.planish, str(args.data), "--format", "csv", "-f", str(file)]
        command += [word for setting in args.set for word in ("--set", setting)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if ran.returncode != 0:
            fault = ran.stderr.strip()
        else:
            # A row of one NULL is an empty line, which the csv module reads as no fields.
            ours = [row or [""] for row in csv.reader(io.StringIO(ran.stdout))]
            fault = compare(names, types, ORDER_BY[file.stem], theirs, ours[1:])
        wrong += fault is not None
        print(f"{file.stem}: {fault or 'right'}", flush=True)
    print(f"{len(files) - wrong} of {len(files)} right")
    return wrong > 0


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("mode", choices=["make", "check"])
    p.add_argument("--data", required=True, help="folder of Parquet files, one per table")
    p.add_argument("--queries", default=HERE / "queries")
    p.add_argument("--only", type=lambda s: set(s.split(",")), default=set())
    p.add_argument("--out", help="folder for the answers (make)")
    p.add_argument("--planish", help="the binary (check)")
    p.add_argument("--set", action="append", default=[], help="KEY=VALUE for planish; repeatable")
    args = p.parse_args()
    return make(args) if args.mode == "make" else check(args)


if __name__ == "__main__":
    sys.exit(main())
