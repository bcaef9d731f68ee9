#!/usr/bin/env python3
"""`medley predict`, PyTorch and ONNX Runtime give equal numbers for exported models of every kind (docs/use/model.md).

The models have random weights and are written here by NumPy, so the files are read by what did not write them. One model
comes from `medley run`. Parts whose Python package is missing are not run, and said so.
"""
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
BIN = os.environ.get("MEDLEY_BIN_DIR", os.path.join(ROOT, "build", "bin"))
EXAMPLES = os.path.join(ROOT, "examples", "python")
TOLERANCE = 1e-5
ROWS = 700
SKIPPED = 77  # for ctest

JOB = """
apiVersion: medley.dev/v1alpha1
kind: ResourcePool
metadata: {name: local}
spec:
  class: CPU
  unit: {resources: {cpu: 400m, memory: 512Mi}}
  limit: 4
  price: {usdPerUnitHour: "0.10"}
---
apiVersion: medley.dev/v1alpha1
kind: TrainingJob
metadata: {name: small}
spec:
  model: {name: ctrdnn, parameters: {embeddingDim: 4, embeddingRows: 4096, hidden: [16, 8]}}
  data:
    train: {uri: file:///data/train.csv, format: csv}
    schema:
      label: {column: 14, positive: ">50K"}
      categorical: [1, 3, 5, 6, 7, 8, 9, 13]
      numeric: [0, 2, 4, 10, 11, 12]
      numericBuckets: 8
    volume: {hostPath: {path: FOLDER}, mountPath: /data}
  training: {epochs: 1, batchSize: 128, microBatches: 1}
  objective: {maxUsdPerHour: "2"}
"""

ADULT = {"formatVersion": 1, "delimiter": ",", "header": False, "label": {"column": 14, "positive": ">50K"},
         "missing": ["", "?", "NULL", "NA"], "numericBuckets": 0, "hash": {"rows": 512}}


def have(package):
    if importlib.util.find_spec(package):
        return True
    print(f"[   NOTE   ] NOT RUN: the Python package {package} is missing", flush=True)
    return False


def write_export(folder, layers, categorical):
    """An export with random weights; `layers` lack their parameters."""
    import numpy
    random = numpy.random.default_rng(3)
    os.makedirs(os.path.join(folder, "numpy"))
    numeric = [{"column": column, "log": column == 10, "mean": 0.75, "inverseDeviation": 0.03125}
               for column in (0, 4, 10, 12)]
    schema = dict(ADULT, numeric=numeric,
                  categorical=[{"column": column, "field": i} for i, column in enumerate(categorical)])
    width, tensors = len(numeric), {}
    for layer in layers:
        if layer["kind"] == "Embedding":
            dim = layer.pop("dim")
            shapes = {"table": [512, dim]}
            width += dim * (1 if layer["combine"] == "sum" else len(categorical))
            layer["outputs"] = width
        elif layer["kind"] == "FullyConnected":
            shapes = {"weight": [width, layer["outputs"]], "bias": [layer["outputs"]]}
            width = layer["outputs"]
        else:
            continue
        layer["parameters"] = {}
        for name, shape in shapes.items():
            tensor = f"{layer['name']}.{name}"
            tensors[tensor] = random.uniform(-0.3, 0.3, shape).astype(numpy.float32)
            numpy.save(os.path.join(folder, "numpy", tensor + ".npy"), tensors[tensor])
            layer["parameters"][name] = {"tensor": tensor, "shape": shape}
    header, offset = {}, 0
    for name, values in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [offset, offset + values.nbytes]}
        offset += values.nbytes
    text = json.dumps(header).encode()
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + b"".join(values.tobytes() for values in tensors.values()))
    for name, value in (("schema", schema), ("model", {"formatVersion": 1, "model": "test", "layers": layers})):
        with open(os.path.join(folder, name + ".json"), "w", encoding="utf-8") as file:
            json.dump(value, file)


def linear(name, outputs, activation="relu", source="previous"):
    return {"name": name, "kind": "FullyConnected", "input": source, "outputs": outputs, "activation": activation}


def embedding(dim, combine):
    return {"name": "e", "kind": "Embedding", "combine": combine, "dim": dim}


LOSS = {"name": "loss", "kind": "Loss"}
MODELS = {
    "ctrdnn": ([embedding(6, "concatenate"), linear("a", 50), linear("b", 33), linear("c", 1, "none"), LOSS], [1, 3, 9]),
    "logistic": ([embedding(1, "sum"), linear("a", 1, "none"), LOSS], [1, 3, 9]),
    "mlp": ([linear("a", 20, "tanh", "numerics"), linear("b", 5, "sigmoid"), linear("c", 1, "none"), LOSS], []),
}


def run(*command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=300, check=False, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout}")
    return done.stdout


def compare(what, expected, output):
    found = [float(line) for line in output.split()]
    if len(found) != len(expected):
        sys.exit(f"{what}: {len(found)} predictions instead of {len(expected)}")
    worst = max(abs(a - b) for a, b in zip(found, expected))
    if worst > TOLERANCE:
        sys.exit(f"{what}: differs by {worst} from medley predict")
    print(f"{what}: {len(found)} predictions, largest difference {worst:.1e}", flush=True)


def check(name, export, data, folder):
    medley = os.path.join(BIN, "medley")
    expected = [float(line) for line in run(medley, "predict", export, data).split()]
    if len(expected) != ROWS or max(expected) - min(expected) < 0.001:
        sys.exit(f"{name}: {len(expected)} predictions from {min(expected)} to {max(expected)}")
    if have("torch"):
        compare(f"{name}, PyTorch", expected,
                run(sys.executable, os.path.join(EXAMPLES, "pytorch_predict.py"), export, data))
    onnx = os.path.join(folder, name + ".onnx")
    run(medley, "onnx", export, "-o", onnx)
    if have("onnxruntime"):
        compare(f"{name}, ONNX Runtime", expected,
                run(sys.executable, os.path.join(EXAMPLES, "onnx_predict.py"), export, onnx, data))
    if have("safetensors"):
        import numpy
        from safetensors.numpy import load_file
        for tensor, values in load_file(os.path.join(export, "model.safetensors")).items():
            if not numpy.array_equal(values, numpy.load(os.path.join(export, "numpy", tensor + ".npy"))):
                sys.exit(f"{name}: the safetensors and the NumPy file of {tensor} differ")


def main():
    if not all([have("numpy"), have("xxhash")]):
        return SKIPPED
    folder = tempfile.mkdtemp(prefix="medley-model-test-")
    try:
        with open(os.path.join(ROOT, "examples", "data", "adult.train.csv"), encoding="utf-8") as file:
            lines = [line for line in file if line.strip()]
        data = os.path.join(folder, "train.csv")
        with open(data, "w", encoding="utf-8") as file:
            file.writelines(lines[:ROWS])
        for name, (layers, categorical) in MODELS.items():
            export = os.path.join(folder, name)
            write_export(export, layers, categorical)
            check(name, export, data, folder)
        with open(os.path.join(folder, "job.yaml"), "w", encoding="utf-8") as file:
            file.write(JOB.replace("FOLDER", folder))
        run(os.path.join(BIN, "medley"), "run", "job.yaml", "--plain", cwd=folder)
        check("trained", os.path.join(folder, "small-model"), data, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
