#!/usr/bin/env python3
"""Writes the jobs of this folder: models of click prediction as layers, on the data of examples/data.

  examples/zoo/generate.py [--check]

They differ in their layers, and a few in their training; the data, the pools and the rest are the same, so that they can be
compared. --check writes nothing and fails if a file differs from the generated one.
"""
import os
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(FOLDER))
sys.dont_write_bytecode = True
import generated  # noqa: E402

IDS = 14  # of a sample: 8 categorical columns and 6 bucketed numbers


def layer(name, kind, **fields):
    parts = [f"name: {name}", f"kind: {kind}"]
    for key, value in fields.items():
        value = {True: "true", False: "false"}.get(value, value) if isinstance(value, bool) else value
        parts.append(f"{key}: [{', '.join(value)}]" if isinstance(value, list) else f"{key}: {value}")
    return "{" + ", ".join(parts) + "}"


def dense(name, widths, first=None):
    """Fully connected layers with relu: name1, name2, ..."""
    return [layer(f"{name}{i + 1}", "FullyConnected", **({"inputs": [first]} if first and i == 0 else {}), out=width,
                  activation="relu") for i, width in enumerate(widths)]


def end(*inputs):
    return [layer("out", "FullyConnected", **({"inputs": list(inputs)} if inputs else {}), out=1), layer("loss", "Loss")]


def ctrdnn(dim, widths):
    """Numbers, embedding, concatenation, len(widths) + 1 fully connected layers, loss."""
    return [layer("numbers", "Numerics"), layer("embedding", "Embedding", out=dim, numerics=False),
            layer("concat", "Concat", inputs=["numbers", "embedding"]), *dense("fc", widths), *end()]


def halves(dim):
    return [layer("user", "Embedding", out=dim, fields=IDS // 2, numerics=False),
            layer("item", "Embedding", out=dim, first=IDS // 2, numerics=False)]


def wide(first):
    """The weight of each id is the first number of its row: a linear form of ids and numbers."""
    return [layer("numbers", "Numerics"), layer("embedding", "Embedding", out=17, numerics=False),
            layer("weights", "Slice", dim=17, out=1), layer("vectors", "Slice", inputs=["embedding"], dim=17, first=1, out=16),
            layer("wide_ids", "Pool", inputs=["weights"], dim=1, combine="sum"),
            layer("wide_numbers", "FullyConnected", inputs=["numbers"], out=1),
            *first,
            layer("joined", "Concat", inputs=["numbers", "vectors"]),
            *dense("deep", [128, 64]), layer("deep_out", "FullyConnected", out=1)]


MODELS = {
    "wide-and-deep": (
        "Wide & Deep (Cheng and others 2016): a linear form of the ids and numbers, plus a network of their vectors.",
        [*wide([]), layer("logit", "Add", inputs=["wide_ids", "wide_numbers", "deep_out"]), layer("loss", "Loss")]),
    "deepfm": (
        "DeepFM (Guo and others 2017): a factorisation machine and a network that share their embedding.",
        [*wide([layer("fm", "FactorizationMachine", inputs=["vectors"], dim=16)]),
         layer("logit", "Add", inputs=["wide_ids", "wide_numbers", "fm", "deep_out"]), layer("loss", "Loss")]),
    "dlrm": (
        "DLRM (Naumov and others 2019): a network of the numbers, the products of its output and all rows with each other, "
        "a network of these.",
        [layer("numbers", "Numerics"), *dense("bottom", [64, 16]),
         layer("embedding", "Embedding", out=16, numerics=False),
         layer("pairs", "Interaction", inputs=["bottom2", "embedding"], dim=16),
         layer("joined", "Concat", inputs=["bottom2", "pairs"]), *dense("top", [128, 64]), *end()]),
    "dcn-v2": (
        "DCN V2 (Wang and others 2021), parallel structure: cross layers beside a network of the same features.",
        [layer("features", "Embedding", out=8), layer("cross1", "Cross"),
         layer("cross2", "Cross", inputs=["features", "cross1"]), layer("cross3", "Cross", inputs=["features", "cross2"]),
         *dense("deep", [128, 64], "features"), layer("joined", "Concat", inputs=["cross3", "deep2"]), *end()]),
    "ctrdnn-7-low": (
        "CTRDNN1 of HeterPS, 7 layers, the low dimension. The widths are those of Paddle's public CTR-DNN.",
        ctrdnn(10, [400, 400])),
    "ctrdnn-7-high": (
        "CTRDNN2 of HeterPS, 7 layers, the high dimension. The paper prints no widths: ours.",
        ctrdnn(64, [2048, 1024])),
    "ctrdnn-8": (
        "CTRDNN of HeterPS with 8 layers. The paper prints no widths: those of examples/models/ctrdnn-8.yaml.",
        ctrdnn(9, [512, 256, 128])),
    "ctrdnn-12": (
        "CTRDNN of HeterPS with 12 layers. The paper prints no widths: those of examples/models/ctrdnn-12.yaml.",
        ctrdnn(9, [512] * 2 + [256] * 2 + [128] * 2 + [64])),
    "ctrdnn-16": (
        "CTRDNN of HeterPS with 16 layers. The paper prints no widths: those of examples/models/ctrdnn-16.yaml.",
        ctrdnn(9, [512] * 2 + [256] * 4 + [128] * 4 + [64])),
    "ctrdnn-20": (
        "CTRDNN of HeterPS with 20 layers. The paper prints no widths: those of examples/models/ctrdnn-20.yaml.",
        ctrdnn(9, [512] * 2 + [256] * 6 + [128] * 6 + [64])),
    "2emb": (
        "2EMB of HeterPS, 10 layers: two embeddings, pooled. The paper prints no widths: those of examples/models/2emb-10.yaml.",
        [*halves(16), layer("user_sum", "Pool", inputs=["user"], dim=16), layer("item_sum", "Pool", inputs=["item"], dim=16),
         layer("joined", "Concat", inputs=["user_sum", "item_sum"]), *dense("fc", [256, 128, 64]), *end()]),
    "matchnet": (
        "MATCHNET of HeterPS, 16 layers of nine kinds. The paper names only its number of layers: two towers, their cosine and "
        "the products of their vectors, after Paddle's text matching; pools where that has recurrence and convolution.",
        [*halves(16), layer("user_max", "Pool", inputs=["user"], dim=16, combine="max"),
         layer("item_max", "Pool", inputs=["item"], dim=16, combine="max"),
         layer("user_fc", "FullyConnected", inputs=["user_max"], out=64, activation="tanh"),
         layer("item_fc", "FullyConnected", inputs=["item_max"], out=64, activation="tanh"),
         layer("match", "Match", inputs=["user", "item"], dim=16),
         layer("match_fc", "FullyConnected", out=64, activation="relu"),
         layer("cosine", "Cosine", inputs=["user_fc", "item_fc"]),
         layer("product", "Multiply", inputs=["user_fc", "item_fc"]),
         layer("joined", "Concat", inputs=["user_fc", "item_fc", "match_fc", "cosine", "product"]),
         *dense("fc", [128, 64, 32]), *end()]),
    "nce": (
        "NCE of HeterPS, 5 layers: the mean of the first ids' rows against the row of the last id and 5 rows that are drawn. "
        "The paper names only its number of layers.",
        [layer("context", "Embedding", out=32, fields=IDS - 1, numerics=False),
         layer("target", "Embedding", out=32, first=IDS - 1, negatives=5, numerics=False),
         layer("mean", "Pool", inputs=["context"], dim=32, combine="mean"),
         layer("scores", "Match", inputs=["target", "mean"], dim=32), layer("loss", "Loss", negatives=5)]),
}
# Those that learn better otherwise: epochs, learning rate.
TRAINING = {"nce": (6, 0.05)}
RATE = 0.01


def job(name):
    text, layers = MODELS[name]
    epochs, rate = TRAINING.get(name, (3, RATE))
    lines = "\n".join(f"    - {each}" for each in layers)
    words, comment = text.split(), "#"
    for word in words:
        comment += ("\n#" if len(comment.rsplit("\n", 1)[-1]) + len(word) > 118 else "") + " " + word
    return f"""{comment}
# Written by generate.py. Run it: build/bin/medley run examples/zoo/{name}.yaml
apiVersion: medley.dev/v1alpha1
kind: ResourcePool
metadata: {{name: small, annotations: {{run.medley.dev/simulate: "true"}}}}
spec:
  class: CPU
  unit: {{resources: {{cpu: 300m, memory: 2Gi}}}}
  nodeSelector: {{medley.dev/machine: small}}
  limit: 2
  price: {{usdPerUnitHour: "0.04"}}
---
apiVersion: medley.dev/v1alpha1
kind: ResourcePool
metadata: {{name: large, annotations: {{run.medley.dev/simulate: "true"}}}}
spec:
  class: CPU
  unit: {{resources: {{cpu: 900m, memory: 4Gi}}}}
  nodeSelector: {{medley.dev/machine: large}}
  limit: 1
  price: {{usdPerUnitHour: "0.15"}}
---
apiVersion: medley.dev/v1alpha1
kind: TrainingJob
metadata: {{name: {name}}}
spec:
  model:
    parameters: {{embeddingRows: 4096}}
    layers:
{lines}
  data:
    train: {{uri: file:///data/adult.train.csv, format: csv}}
    test: {{uri: file:///data/adult.test.csv, format: csv}}
    schema:
      label: {{column: 14, positive: ">50K"}}
      categorical: [1, 3, 5, 6, 7, 8, 9, 13]
      numeric: [0, 2, 4, 10, 11, 12]
      numericBuckets: 32
    volume: {{hostPath: {{path: ./../data}}, mountPath: /data}}
  training:
    epochs: {epochs}
    batchSize: 512
    microBatches: 4
    optimizer: {{name: adagrad, learningRate: {rate}}}
  objective: {{minimize: Usd}}
  resources: {{pools: [small, large]}}
"""


def main():
    options = generated.parser(__doc__).parse_args()
    return generated.write_or_check(FOLDER, ((name, job(name)) for name in MODELS), options.check)


if __name__ == "__main__":
    sys.exit(main())
