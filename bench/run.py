#!/usr/bin/env python3
"""Times the same SQL on the same Parquet files through Planish and its peers.

    bench/run.py --data ~/.cache/planish-bench/tpch-sf1 --queries tests/tpch/queries

Run it with the Python of the venv that bench/setup.sh makes. Each engine is one long-lived
process with `--threads` threads. Queries are interleaved: for each query every engine runs once
to warm up, then each of `--runs` rounds runs all engines once; the best run counts. Results go
to the engine's own memory (Arrow or a data frame), not to a file or a screen. A query file may
hold several statements; its time is their sum. An engine that fails a query shows FAIL, and the
query does not count in that engine's means. Peak memory is the process's VmHWM (Linux).
"""

import argparse
import json
import math
import os
import queue
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

PEERS = ["duckdb", "polars", "datafusion"]
ROOT = Path(__file__).resolve().parent.parent


# ---------------------------------------------------------------------------------------------
# Inside a peer's process: one JSON request a line on stdin, one answer a line on stdout.


def tables_of(data):
    """(name, path) of every Parquet file of the folder."""
    return [(p.stem, str(p)) for p in sorted(Path(data).glob("*.parquet"))]


def open_duckdb(data, threads):
    import duckdb

    con = duckdb.connect()
    con.execute(f"SET threads = {threads}")
    con.execute("SET integer_division = true")
    con.execute("SET default_null_order = 'postgres'")
    for name, path in tables_of(data):
        con.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{path}')")

    def run(sql):
        result = con.execute(sql)
        if result.description is None:
            return 0
        return result.to_arrow_table().num_rows

    return run, duckdb.__version__


def open_polars(data, threads):
    import polars

    assert polars.thread_pool_size() == threads, "POLARS_MAX_THREADS is set by the parent"
    ctx = polars.SQLContext()
    for name, path in tables_of(data):
        ctx.register(name, polars.scan_parquet(path))

    def run(sql):
        # Polars' SQL has no views; a lazy frame under the view's name is the same thing.
        view = re.fullmatch(r"create view (\w+)\s*(?:\(([^)]*)\))?\s+as\s(.*)", sql, re.I | re.S)
        if view:
            frame = ctx.execute(view.group(3))
            if view.group(2):
                names = [name.strip() for name in view.group(2).split(",")]
                frame = frame.rename(dict(zip(frame.collect_schema().names(), names)))
            ctx.register(view.group(1), frame)
            return 0
        view = re.fullmatch(r"drop view (\w+)", sql, re.I)
        if view:
            ctx.unregister(view.group(1))
            return 0
        return ctx.execute(sql).collect(engine="streaming").height

    return run, polars.__version__


def open_datafusion(data, threads):
    import datafusion

    config = datafusion.SessionConfig({"datafusion.execution.target_partitions": str(threads)})
    runtime = datafusion.RuntimeEnvBuilder()
    ctx = datafusion.SessionContext(config, runtime)
    for name, path in tables_of(data):
        ctx.register_parquet(name, path)

    def run(sql):
        return sum(batch.num_rows for batch in ctx.sql(sql).collect())

    return run, datafusion.__version__


def serve(engine, data, threads):
    """Answers requests until stdin closes."""
    run, version = globals()[f"open_{engine}"](data, threads)
    print(json.dumps({"version": version}), flush=True)
    for line in sys.stdin:
        start = time.perf_counter()
        try:
            rows = run(json.loads(line))
            answer = {"ms": (time.perf_counter() - start) * 1e3, "rows": rows}
        except BaseException as e:  # Polars panics derive from BaseException
            answer = {"error": f"{type(e).__name__}: {e}"}
        print(json.dumps(answer), flush=True)


# ---------------------------------------------------------------------------------------------
# The parent.


class Failed(Exception):
    """A statement that an engine did not answer."""


class Engine:
    """A child process and a thread that turns its lines into a queue, so that waits time out."""

    def __init__(self, name, command, env=None, watch="stdout", stderr=None):
        self.name, self.command, self.watch = name, command, watch
        self.env = {**os.environ, **(env or {})}
        self.stderr = stderr
        self.process, self.peak_kb = None, 0

    def start(self):
        pipes = {"stdout": subprocess.DEVNULL, "stderr": self.stderr}
        pipes[self.watch] = subprocess.PIPE
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, text=True, env=self.env, **pipes
        )
        self.lines = queue.Queue()
        threading.Thread(
            target=self._read, args=(getattr(self.process, self.watch), self.lines), daemon=True
        ).start()

    @staticmethod
    def _read(pipe, lines):
        for line in pipe:
            lines.put(line)
        lines.put(None)

    def send(self, text):
        if self.process is None or self.process.poll() is not None:
            self.start()
            self.greet()
        try:
            self.process.stdin.write(text)
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # the reader sees the end of the process and its last words

    def greet(self):
        pass

    def line(self, timeout):
        """The next line, or None at the end of the process."""
        try:
            return self.lines.get(timeout=timeout)
        except queue.Empty:
            self.note_peak()
            self.process.kill()
            self.process.wait()
            raise Failed(f"no answer within {timeout} s") from None

    def note_peak(self):
        try:
            status = Path(f"/proc/{self.process.pid}/status").read_text()
            found = re.search(r"VmHWM:\s+(\d+)", status)
            self.peak_kb = max(self.peak_kb, int(found.group(1)) if found else 0)
        except OSError:
            pass

    def close(self):
        if self.process is not None and self.process.poll() is None:
            self.note_peak()
            self.process.stdin.close()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()


class Peer(Engine):
    def __init__(self, name, data, threads):
        command = [sys.executable, __file__, "--serve", name]
        command += ["--data", str(data), "--threads", str(threads)]
        env = {"POLARS_MAX_THREADS": str(threads)} if name == "polars" else None
        super().__init__(name, command, env, stderr=subprocess.DEVNULL)

    def greet(self):
        first = self.line(60)
        if first is None:
            raise Failed("the process does not start")
        self.version = json.loads(first)["version"]

    def run(self, statements, timeout):
        total, rows = 0.0, 0
        for sql in statements:
            self.send(json.dumps(sql) + "\n")
            line = self.line(timeout)
            if line is None:
                raise Failed("the process ended")
            answer = json.loads(line)
            self.note_peak()
            if "error" in answer:
                raise Failed(answer["error"])
            total, rows = total + answer["ms"], max(rows, answer["rows"])
        return total, rows


class Planish(Engine):
    """The binary, fed with SQL; `--timing` prints one line per statement to stderr."""

    def __init__(self, binary, data, threads, settings):
        command = [str(binary), str(data), "--timing", "--format", "csv"]
        command += ["--set", f"datafusion.execution.target_partitions={threads}"]
        for setting in settings:
            command += ["--set", setting]
        super().__init__("planish", command, watch="stderr")
        asked = subprocess.run([binary, "--version"], capture_output=True, text=True, check=True)
        self.version = asked.stdout.split()[-1]

    def run(self, statements, timeout):
        total = 0.0
        for sql in statements:
            self.send(sql + ";\n")
            said = []
            while True:
                line = self.line(timeout)
                if line is None:
                    raise Failed(" ".join(said).strip() or "the process ended")
                timing = re.fullmatch(r"Time: ([0-9.]+) ms\s*", line)
                if timing:
                    total += float(timing.group(1))
                    break
                said.append(line.strip())
            self.note_peak()
        return total, None


def split_statements(text):
    """The statements of a script: cut at `;` outside of quotes and comments."""
    token = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|--[^\n]*|/\*.*?\*/|;|[^'\"/;-]+|.", re.S)
    statements, current = [], ""
    for piece in token.findall(text):
        if piece == ";":
            statements.append(current)
            current = ""
        elif not piece.startswith(("--", "/*")):
            current += piece
    statements.append(current)
    return [s.strip() for s in statements if s.strip()]


def query_files(folder, wanted):
    def key(path):
        return [int(n) if n.isdigit() else n for n in re.split(r"(\d+)", path.stem)]

    files = sorted(Path(folder).glob("*.sql"), key=key)
    return [f for f in files if not wanted or f.stem in wanted]


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def measure(engines, files, runs, timeout):
    """{query: {engine: {"ms", "runs", "rows"} or {"error"}}}"""
    results = {}
    for file in files:
        statements = split_statements(file.read_text())
        row = results[file.stem] = {}
        for turn in range(runs + 1):
            # Another engine begins in each round, so that none always follows the same one.
            for engine in engines[turn % len(engines) :] + engines[: turn % len(engines)]:
                if "error" in row.get(engine.name, {}):
                    continue
                try:
                    ms, rows = engine.run(statements, timeout)
                except Failed as e:
                    row[engine.name] = {"error": str(e)}
                    continue
                cell = row.setdefault(engine.name, {"runs": [], "rows": rows})
                if turn > 0:
                    cell["runs"].append(round(ms, 3))
                    cell["ms"] = min(cell["runs"])
        print(f"\r{file.stem:8}", end="", file=sys.stderr, flush=True)
    print("\r" + " " * 8 + "\r", end="", file=sys.stderr)
    return results


def summarize(results, names):
    """Geometric means of planish's (or the first engine's) time over each peer's and the best's."""
    subject, peers = names[0], names[1:]
    ratios = {peer: [] for peer in peers}
    best = []
    for row in results.values():
        own = row[subject].get("ms")
        times = {p: row[p]["ms"] for p in peers if "ms" in row[p]}
        row_best = min(times.values(), default=None)
        if own is None:
            continue
        for peer, ms in times.items():
            ratios[peer].append(own / ms)
        if row_best:
            best.append(own / row_best)
            row["ratio_to_best_peer"] = round(own / row_best, 3)
    return {
        "subject": subject,
        "answered": {n: sum("ms" in row[n] for row in results.values()) for n in names},
        "queries": len(results),
        "geomean_ms": {
            n: geomean([r[n]["ms"] for r in results.values() if "ms" in r[n]]) for n in names
        },
        "geomean_ratio": {p: geomean(r) for p, r in ratios.items()},
        "geomean_ratio_to_best_peer": geomean(best),
        "worst_ratio_to_best_peer": max(best, default=None),
    }


def print_table(results, names, summary, peaks):
    def number(value, digits=2):
        return "-" if value is None else f"{value:.{digits}f}"

    subject = names[0]
    peer_best = len(names) > 1
    print("".join([f"{'query':8}"] + [f"{n:>12}" for n in names] + [f"{'x best':>9}"] * peer_best))
    for query, row in results.items():
        cells = [f"{number(row[n].get('ms'), 1) if 'ms' in row[n] else 'FAIL':>12}" for n in names]
        ratio = [f"{number(row.get('ratio_to_best_peer')):>9}"] * peer_best
        print("".join([f"{query:8}"] + cells + ratio))
    means = [f"{number(summary['geomean_ms'][n], 1):>12}" for n in names]
    print("".join([f"{'geomean':8}"] + means) + "   ms, over the queries each engine answers")
    counts = [f"{summary['answered'][n]}/{summary['queries']}".rjust(12) for n in names]
    print("".join([f"{'answered':8}"] + counts))
    print("".join([f"{'peak MB':8}"] + [f"{peaks[n] / 1024:>12.0f}" for n in names]))
    for peer, ratio in summary["geomean_ratio"].items():
        print(f"{subject} / {peer}: {number(ratio)}")
    if peer_best:
        print(
            f"{subject} / best peer per query: {number(summary['geomean_ratio_to_best_peer'])}"
            f" (worst query {number(summary['worst_ratio_to_best_peer'])})"
        )
    for query, row in results.items():
        for name in names:
            if "error" in row[name]:
                print(f"FAIL {query} {name}: {row[name]['error'][:300]}")


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--data", required=True, help="folder of Parquet files, one per table")
    p.add_argument("--queries", help="folder of .sql files")
    p.add_argument("--only", default="", help="query names, comma separated, e.g. q1,q18")
    p.add_argument("--engines", default=",".join(["planish", *PEERS]))
    p.add_argument("--planish", default=None, help="the binary (default: target/release/planish)")
    p.add_argument("--set", action="append", default=[], help="KEY=VALUE for planish; repeatable")
    p.add_argument("--runs", type=int, default=5)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--timeout", type=float, default=120, help="seconds per statement")
    p.add_argument("--json", help="write all figures to this file")
    p.add_argument("--serve", help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.serve:
        return serve(args.serve, args.data, args.threads)

    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    binary = Path(args.planish or target / "release/planish")
    names = args.engines.split(",")
    for name in names:
        if name not in ["planish", *PEERS]:
            p.error(f"unknown engine {name}")
    if not args.queries:
        p.error("--queries is required")
    if "planish" in names and not binary.exists():
        p.error(f"{binary} does not exist; build it with: cargo build --release")
    files = query_files(args.queries, set(filter(None, args.only.split(","))))
    if not files or not tables_of(args.data):
        p.error("no queries or no Parquet files found")

    engines = [
        Planish(binary, args.data, args.threads, args.set)
        if name == "planish"
        else Peer(name, args.data, args.threads)
        for name in names
    ]
    load = os.getloadavg()[0]
    try:
        results = measure(engines, files, args.runs, args.timeout)
    finally:
        for engine in engines:
            engine.close()
    peaks = {e.name: e.peak_kb for e in engines}
    summary = summarize(results, names)
    versions = {e.name: getattr(e, "version", None) for e in engines}
    print(
        f"{args.data}, best of {args.runs}, {args.threads} threads, "
        f"load {load:.1f} at the start; " + ", ".join(f"{n} {v}" for n, v in versions.items())
    )
    print_table(results, names, summary, peaks)
    if args.json:
        report = {
            "data": str(args.data),
            "queries": str(args.queries),
            "runs": args.runs,
            "threads": args.threads,
            "load_at_start": load,
            "cpus": os.cpu_count(),
            "versions": versions,
            "peak_rss_kb": peaks,
            "summary": summary,
            "results": results,
        }
        # Beside the target and renamed, so that a stopped run leaves the old figures whole.
        folder = Path(args.json).resolve().parent
        with tempfile.NamedTemporaryFile("w", dir=folder, delete=False) as f:
            json.dump(report, f, indent=1)
        os.replace(f.name, args.json)


if __name__ == "__main__":
    main()
