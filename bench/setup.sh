#!/usr/bin/env bash
# Prepares the benchmark: the peers in a Python venv, and TPC-H data as Parquet.
#
#   bench/setup.sh [SCALE_FACTOR]...        (default: 1)
#
# Everything goes to $PLANISH_BENCH (default ~/.cache/planish-bench), outside the checkout:
#   venv/         DuckDB, Polars, DataFusion and PyArrow from PyPI, versions pinned below
#   tools/bin/    tpchgen-cli from crates.io
#   tpch-sf<SF>/  one Parquet file per table
# What is there already is kept. Needs: cargo, python3 with the venv module, a C compiler.
set -euo pipefail

home=${PLANISH_BENCH:-$HOME/.cache/planish-bench}
mkdir -p "$home"

if [ ! -x "$home/venv/bin/python" ]; then
    python3 -m venv "$home/venv"
fi
"$home/venv/bin/pip" install --quiet \
    duckdb==2.0.1 polars==2.1.0 datafusion==55.0.0 pyarrow==26.0.1

if [ ! -x "$home/tools/bin/tpchgen-cli" ]; then
    cargo install tpchgen-cli --version 4.0.0 --locked \
        --root "$home/tools" --target-dir "$home/build"
    rm -rf "$home/build"
fi

for sf in "${@:-1}"; do
    out="$home/tpch-sf$sf"
    if [ -e "$out/region.parquet" ]; then
        continue
    fi
    mkdir -p "$out.part"
    "$home/tools/bin/tpchgen-cli" parquet -s "$sf" --output-dir "$out.part"
    mv "$out.part" "$out"
done
echo "data: $home/tpch-sf{$(IFS=,; echo "${*:-1}")}   python: $home/venv/bin/python"
