#!/usr/bin/python3
"""Cuts examples/traces/spot out of recorded spot capacity: one window of each published comparison.

  examples/traces/spot/sample.py FOLDER

FOLDER has the files that README.md names. Window 3 of the V100 record (of 59.9 hours each) and window 0 of the H100 record.
"""
import csv
import gzip
import io
import os
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
V100_FIRST, V100_TICKS, V100_START = 3 * 1106, 1106, 179.725
V100_ZONES = ["us-east-1c", "us-east-2b", "us-west-2a"]
H100_TICKS = 311


def read(path):
    with (gzip.open(path, "rt") if path.endswith(".gz") else open(path, encoding="utf-8")) as file:
        return list(csv.reader(file))


def write(name, rows):
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    with open(os.path.join(HERE, name), "wb") as file:  # without a time, so that the bytes stay
        file.write(gzip.compress(text.getvalue().encode(), mtime=0))


def main():
    folder = sys.argv[1]
    rows = read(os.path.join(folder, "v100-aws-2023.csv.gz"))
    kept = [0] + [i for i, name in enumerate(rows[0]) if name.split(":")[0] in V100_ZONES]
    window = rows[:1] + rows[1 + V100_FIRST:1 + V100_FIRST + V100_TICKS]
    write("v100-aws-2023.csv.gz", [[row[i] for i in kept] for row in window])
    write("h100-gcp-2025.csv.gz", read(os.path.join(folder, "h100-gcp-2025.csv"))[:1 + H100_TICKS])
    shutil.copyfile(os.path.join(folder, "h100-gcp-2025-prices.csv"), os.path.join(HERE, "h100-gcp-2025-prices.csv"))
    shutil.copyfile(os.path.join(folder, "aws-egress.csv.gz"), os.path.join(HERE, "aws-egress.csv.gz"))
    costs = read(os.path.join(folder, "published-costs.csv.gz"))
    start, policy = costs[0].index("windowStartHours"), costs[0].index("policy")
    out = costs[:1]
    for row in costs[1:]:
        if row[policy] == "rc_cr_threshold":
            continue
        if row[0] == "v100" and abs(float(row[start]) - V100_START) < 1e-3:
            row[start] = "0"  # the sample begins with the window
            out.append(row)
        elif row[0] != "v100" and float(row[start]) == 0:
            out.append(row)
    write("published-costs.csv.gz", out)


if __name__ == "__main__":
    main()
