"""Generates samples like the Criteo data, with the same distributions as tests/bench/criteo_shape.h."""
import numpy

CARDINALITIES = [1396, 553, 2594031, 698469, 290, 23, 12048, 608, 3, 65156, 5309, 2186509, 3128, 26, 12750, 1537323,
                 10, 5002, 2118, 4, 1902327, 17, 15, 135790, 94, 84305]


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
