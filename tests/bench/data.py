#!/usr/bin/python3
"""Measures how fast tables are read: MB of the text a second and core, for each format of files.

  tests/bench/data.py [--rows 300000] [--rounds 5] [--seed 1] [--keep FOLDER]

Generates a table of Criteo's shape with `medley data generate`, writes it in every format (Parquet and Arrow with pyarrow, on
which ./dev bench data sets PYTHONPATH), and reads each with build/bin/data_bench, in turn. The text is that of the CSV
file for all formats. Exit status 1 if a format does not reach its target.
"""
import argparse
import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.path.join(ROOT, "build/bin")
TARGETS = {"data.csv": 300, "data.csv.gz": 150, "data.parquet": 400}  # MB/s of the text to rows


def write_columns(folder, table):
    import pyarrow
    from pyarrow import csv, feather, parquet
    texts = csv.ConvertOptions(column_types={f"c{i}": pyarrow.string() for i in range(1, 27)})
    columns = csv.read_csv(table, convert_options=texts)
    parquet.write_table(columns, os.path.join(folder, "data.parquet"))
    feather.write_feather(columns, os.path.join(folder, "data.arrow"), compression="lz4")


def generate(folder, options):
    for ending in ("csv", "tsv", "libsvm"):
        subprocess.run([os.path.join(BIN, "medley"), "data", "generate", os.path.join(folder, "data." + ending), "--rows",
                        str(options.rows), "--seed", str(options.seed)], check=True)
    table = os.path.join(folder, "data.csv")
    with open(table, "rb") as plain, gzip.open(table + ".gz", "wb", 6) as packed:
        shutil.copyfileobj(plain, packed)
    subprocess.run(["zstd", "-q", "-f", table], check=True)
    write_columns(folder, table)
    return ["parquet=" + os.path.join(folder, "data.parquet"), "arrow=" + os.path.join(folder, "data.arrow"), "csv=" + table, "tsv=" + os.path.join(folder, "data.tsv"), "libsvm=" + os.path.join(folder, "data.libsvm"),
            "csv=" + table + ".gz", "csv=" + table + ".zst"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=300000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", metavar="FOLDER", help="leave the files there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="medley-bench-data-") as temporary:
        folder = options.keep or temporary
        os.makedirs(folder, exist_ok=True)
        files = generate(folder, options)
        text_bytes = os.path.getsize(os.path.join(folder, "data.csv"))
        command = [os.path.join(BIN, "data_bench"), "--text-bytes", str(text_bytes), "--rounds", str(options.rounds), *files]
        out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    print(f"{options.rows} rows, {text_bytes / 1e6:.0f} MB of text")
    print(out, end="")
    failed = 0
    for name, target in TARGETS.items():
        measured = float(re.search(rf"^{re.escape(name)} +(\d+)", out, re.M).group(1))
        print(f"{name}: {measured:.0f} MB/s, target {target}: {'reached' if measured >= target else 'missed'}")
        failed += measured < target
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
