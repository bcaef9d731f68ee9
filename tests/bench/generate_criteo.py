#!/usr/bin/python3
"""Writes a CSV file of samples like Criteo's: label, 13 numbers, 26 categorical values in hexadecimal. Deterministic.

  generate_criteo.py FILE [--rows 200000] [--seed 1]
"""
import argparse
import os
import sys

import numpy

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers"))
from criteo_shape import generate

VALUES = 1 << 32  # categorical values are 32-bit numbers, as in the original data


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--rows", type=int, default=200000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    ids, numerics, labels = generate(options.rows, VALUES, options.seed)
    part = options.file + ".part"
    with open(part, "w", encoding="ascii") as out:
        for label, numbers, values in zip(labels.astype(numpy.int64).tolist(), numerics.tolist(), ids.tolist()):
            out.write(f"{label}," + ",".join(f"{x:.4f}" for x in numbers) + "," +
                      ",".join(f"{v:08x}" for v in values) + "\n")
    os.replace(part, options.file)


if __name__ == "__main__":
    main()
