"""The samples on which peers train: generated like the Criteo data, with the same distributions as tests/bench/criteo_shape.h, or read from
a CSV file."""
import csv
import os

import numpy

CARDINALITIES = [1396, 553, 2594031, 698469, 290, 23, 12048, 608, 3, 65156, 5309, 2186509, 3128, 26, 12750, 1537323,
                 10, 5002, 2118, 4, 1902327, 17, 15, 135790, 94, 84305]
SETS = {
    "criteo": dict(rows=1000001, dim=10, hidden=(400, 400, 400), label=0, positive="1", categorical=range(14, 40),
                   numeric=range(1, 14), buckets=0),
    "adult": dict(rows=65536, dim=16, hidden=(256, 128), label=14, positive=">50K", categorical=(1, 3, 5, 6, 7, 8, 9, 13),
                  numeric=(0, 2, 4, 10, 11, 12), buckets=32),
}
SETS["ctrdnn1"] = {**SETS["criteo"], "hidden": (400, 400)}  # CTRDNN1 of HeterPS, examples/zoo/ctrdnn-7-low.yaml


def mix64(x):
    with numpy.errstate(over="ignore"):
        x = x + numpy.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        return x ^ (x >> numpy.uint64(31))


def zipf_rank(u, n, exponent=1.1):
    end = (n + 1.0) ** (1 - exponent)
    x = (1 - u * (1 - end)) ** (1 / (1 - exponent))
    return numpy.minimum(n - 1, x.astype(numpy.int64) - 1)


def generate(samples, embedding_rows, seed):
    """ids [samples, 26] int64, numerics [samples, 13] float32, labels [samples] float32."""
    rng = numpy.random.default_rng(seed)
    ids = numpy.empty((samples, 26), dtype=numpy.int64)
    logit = numpy.full(samples, -1.0)
    for field, cardinality in enumerate(CARDINALITIES):
        rank = zipf_rank(rng.random(samples), cardinality).astype(numpy.uint64)
        mixed = mix64(rank ^ numpy.uint64(field << 40))
        ids[:, field] = (mixed % numpy.uint64(embedding_rows)).astype(numpy.int64)
        logit += ((mixed >> numpy.uint64(40)).astype(numpy.float64) * 2.0 ** -24 - 0.5) * 0.8
    numerics = rng.uniform(-1.7, 1.7, (samples, 13)).astype(numpy.float32)
    logit += 0.1 * numerics.sum(axis=1)
    labels = (rng.random(samples) < 1 / (1 + numpy.exp(-logit))).astype(numpy.float32)
    return ids, numerics, labels


def read_csv(path, shape):
    """ids [samples, fields] int64, numerics [samples, numbers] float32, labels [samples] float32."""
    with open(path, newline="", encoding="utf-8") as file:
        lines = [line for line in csv.reader(file, skipinitialspace=True) if line]
    columns = list(zip(*lines))
    labels = numpy.array([x.rstrip(".") == shape["positive"] for x in columns[shape["label"]]], dtype=numpy.float32)
    numbers = [numpy.array(columns[c], dtype=numpy.float64) for c in shape["numeric"]]
    categories = [numpy.unique(columns[c], return_inverse=True)[1] for c in shape["categorical"]]
    if shape["buckets"] > 0:
        quantiles = numpy.arange(1, shape["buckets"]) / shape["buckets"]
        categories += [numpy.searchsorted(numpy.unique(numpy.quantile(x, quantiles)), x, side="right") for x in numbers]
    ids = [mix64(c.astype(numpy.uint64) ^ numpy.uint64(field << 40)) % numpy.uint64(shape["rows"])
           for field, c in enumerate(categories)]
    scaled = [(x - x.mean()) / max(x.std(), 1e-12) for x in numbers]
    return (numpy.stack(ids, 1).astype(numpy.int64), numpy.stack(scaled, 1).astype(numpy.float32), labels)


def load(options, shape):
    if options.data is None:
        return generate(64 * options.batch * options.processes, shape["rows"], 1)
    cache = options.cache
    if cache and os.path.exists(cache):
        with numpy.load(cache) as kept:
            return kept["ids"], kept["numerics"], kept["labels"]
    ids, numerics, labels = read_csv(options.data, shape)
    if cache:
        numpy.savez(cache, ids=ids, numerics=numerics, labels=labels)
    return ids, numerics, labels
