#!/usr/bin/env python3
"""`medley predict`, PyTorch and ONNX Runtime give equal numbers for exported models of every kind (docs/use/model.md).

The models have random weights and are written here by NumPy, so the files are read by what did not write them. One model
comes from `medley run`. Parts whose Python package is missing are not run, and said so.
"""
import contextlib
import csv
import importlib.util
import io
import json
import os
import runpy
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
STARTED = set()  # scripts that were run as programs

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
metadata: {name: NAME}
spec:
  model: {name: ctrdnn, parameters: {embeddingDim: 4, embeddingRows: 4096, hidden: [16, 8]}, task: TASK}
  data:
    train: {uri: file:///data/train.csv, format: csv}
    test: {uri: file:///data/train.csv, format: csv}
    schema:
      label: LABEL
      categorical: [1, 3, 6, 8, 9, 13]
      numeric: [0, 2, 4, 10, 11]
      numericBuckets: 8
    volume: {hostPath: {path: FOLDER}, mountPath: /data}MORE
  training: {epochs: 4, batchSize: 64, microBatches: 1}
  objective: {maxUsdPerHour: "2"}
"""

ADULT = {"formatVersion": 1, "delimiter": ",", "header": False, "label": {"column": 14, "positive": ">50K"},
         "missing": ["", "?", "NULL", "NA"], "numericBuckets": 0, "hash": {"rows": 512}}


# Jobs that `medley run` trains: task, label, a metric, outputs, more of spec.data. Hours a week (of which 7 in 15 are 40),
# status in marriage.
TRAINED = {
    "small": ("binary", '{column: 14, positive: ">50K"}', "auc", 1, ""),
    "weighted": ("binary", '{column: 14, positive: ">50K"}', "logLoss", 1, "\n    weight: 12"),
    "hours": ("regression", "{column: 12}", "r2", 1, ""),
    "logarithm": ("regression", "{column: 12, transform: Log1p}", "mae", 1, ""),
    "status": ("multiClass", "{column: 5}", "balancedAccuracy", 7, ""),
}


def have(package):
    if importlib.util.find_spec(package):
        return True
    print(f"[   NOTE   ] NOT RUN: the Python package {package} is missing", flush=True)
    return False


def write_export(folder, layers, categorical, task, label):
    """An export with random weights; `layers` lack their parameters."""
    import numpy
    random = numpy.random.default_rng(3)
    os.makedirs(os.path.join(folder, "numpy"))
    numeric = [{"column": column, "log": column == 10, "mean": 0.75, "inverseDeviation": 0.03125}
               for column in (0, 4, 10, 12)]
    schema = dict(ADULT, numeric=numeric, label=label or ADULT["label"],
                  categorical=[{"column": column, "field": i} for i, column in enumerate(categorical)])
    width, widths, tensors = len(numeric), {}, {}
    for layer in layers:
        shapes = {}
        if layer["kind"] == "Embedding":
            dim = layer.pop("dim")
            shapes = {"table": [512, dim]}
            width = 0 if layer.get("input") == "ids" else len(numeric)
            width += dim * (1 if layer["combine"] == "sum" else layer.get("fields", len(categorical)))
            layer["outputs"] = width
        elif layer["kind"] == "FullyConnected":
            taken = widths[layer["inputs"][0]] if "inputs" in layer else width
            shapes = {"weight": [taken, layer["outputs"]], "bias": [layer["outputs"]]}
        elif layer["kind"] == "Cross":
            shapes = {"weight": [layer["outputs"]] * 2, "bias": [layer["outputs"]]}
        width = widths[layer["name"]] = layer.get("outputs", 0)
        if not shapes:
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
    for name, value in (("schema", schema), ("model", dict(task, formatVersion=2, model="test", layers=layers))):
        with open(os.path.join(folder, name + ".json"), "w", encoding="utf-8") as file:
            json.dump(value, file)


def linear(name, outputs, activation="relu", source="previous"):
    return {"name": name, "kind": "FullyConnected", "input": source, "outputs": outputs, "activation": activation}


def embedding(dim, combine):
    return {"name": "e", "kind": "Embedding", "combine": combine, "dim": dim}


def ctrdnn(outputs):
    return [embedding(6, "concatenate"), linear("a", 50), linear("b", 33), linear("c", outputs, "none"), LOSS]


def combine(name, kind, first, second, outputs):
    return {"name": name, "kind": kind, "inputs": [first, second], "outputs": outputs}


def tower(number, first, fields, source):
    layer = dict(embedding(6, "concatenate"), name=f"e{number}", firstField=first, fields=fields, input=source)
    return [layer, linear(f"a{number}", 24)]


def vectors(name, kind, inputs, outputs, **more):
    return dict({"name": name, "kind": kind, "inputs": inputs, "outputs": outputs}, **more)


LOSS = {"name": "loss", "kind": "Loss"}
# Every kind of layer with vectors: 4 numbers, 3 ids with rows of 4.
VECTORS = [
    {"name": "n", "kind": "Numerics", "outputs": 4}, dict(embedding(4, "concatenate"), input="ids"),
    vectors("pairs", "Interaction", ["n", "e"], 6, dim=4), vectors("fm", "FactorizationMachine", ["n", "e"], 1, dim=4),
    vectors("part", "Slice", ["e"], 6, dim=4, first=1), vectors("most", "Pool", ["part"], 2, dim=2, combine="max"),
    vectors("mean", "Pool", ["n", "part"], 2, dim=2, combine="mean"), vectors("sum", "Pool", ["e"], 6, dim=6, combine="sum"),
    vectors("match", "Match", ["n", "e"], 12, dim=2), vectors("dot", "InnerProduct", ["most", "mean"], 1),
    vectors("cosine", "Cosine", ["most", "mean"], 1), vectors("x", "Concat", ["n", "e"], 16), vectors("c1", "Cross", ["x"], 16),
    vectors("c2", "Cross", ["x", "c1"], 16), dict(linear("deep", 10, "tanh"), inputs=["x"]),
    vectors("all", "Concat", ["pairs", "fm", "sum", "match", "dot", "cosine", "c2", "deep"], 53), linear("a", 3, "none"),
    dict(linear("b", 3, "none"), inputs=["deep"]), vectors("added", "Add", ["a", "b"], 3), LOSS]
CLASSES = {"task": "multiClass", "classes": ["<=50K", ">50K", 'say "a, b"']}
# layers, categorical columns, fields of model.json, label of schema.json
MODELS = {
    "ctrdnn": (ctrdnn(1), [1, 3, 9], {}, {}),
    "logistic": ([embedding(1, "sum"), linear("a", 1, "none"), LOSS], [1, 3, 9], {}, {}),
    "mlp": ([linear("a", 20, "tanh", "numerics"), linear("b", 5, "sigmoid"), linear("c", 1, "none"), LOSS], [], {}, {}),
    "regression": (ctrdnn(1), [1, 3, 9], {"task": "regression", "label": {"mean": 2.5, "deviation": 0.75}},
                   {"column": 2}),
    "logarithm": (ctrdnn(1), [1, 3, 9],
                  {"task": "regression", "label": {"mean": 2.5, "deviation": 0.75, "transform": "log1p"}},
                  {"column": 2}),
    "classes": (ctrdnn(3), [1, 3, 9], CLASSES, {"column": 14}),
    "classes-logistic": ([embedding(3, "sum"), linear("a", 3, "none"), LOSS], [1, 3, 9], CLASSES, {"column": 14}),
    "residual": ([embedding(6, "concatenate"), linear("a", 20), linear("b", 9), linear("c", 20),
                  combine("d", "Add", "a", "c", 20), linear("e1", 1, "none"), LOSS], [1, 3, 9], {}, {}),
    "two-tower": (tower(1, 0, 2, "ids") + tower(2, 2, 1, "ids, numerics") +
                  [combine("product", "Multiply", "a1", "a2", 24), linear("b", 3, "none"), LOSS], [1, 3, 9], CLASSES,
                  {"column": 14}),
    "vectors": (VECTORS, [1, 3, 9], CLASSES, {"column": 14}),
    "labels": (ctrdnn(2), [1, 3, 9], {"task": "multiLabel"}, {"columns": [15, 16]}),
}


def run(*command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=300, check=False, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout}")
    return done.stdout


def run_script(name, *arguments):
    """Runs a script of EXAMPLES and returns its output: as a program the first time, then in this process, where PyTorch, which
    takes a second, is imported already.
    """
    path = os.path.join(EXAMPLES, name)
    if name not in STARTED:
        STARTED.add(name)
        return run(sys.executable, path, *arguments)
    before, output = (sys.argv, sys.path), io.StringIO()
    sys.argv, sys.path = [path, *arguments], [EXAMPLES, *sys.path]
    try:
        with contextlib.redirect_stdout(output):
            runpy.run_path(path, run_name="__main__")
    finally:
        sys.argv, sys.path = before
    return output.getvalue()


def numbers(output):
    """All numbers of the lines, one line after the other."""
    return [float(field) for line in output.split() for field in line.split(",")]


def compare(what, expected, output):
    found = numbers(output)
    if len(found) != len(expected):
        sys.exit(f"{what}: {len(found)} predictions instead of {len(expected)}")
    # Numbers above 1 have larger steps between two floats.
    worst = max(abs(a - b) / max(1, abs(b)) for a, b in zip(found, expected))
    if worst > TOLERANCE:
        sys.exit(f"{what}: differs by {worst} from medley predict")
    print(f"{what}: {len(found)} predictions, largest difference {worst:.1e}", flush=True)


def check(name, export, data, folder, outputs=1):
    medley = os.path.join(BIN, "medley")
    expected = numbers(run(medley, "predict", export, data, "--all"))
    if len(expected) != ROWS * outputs or max(expected) - min(expected) < 0.001:
        sys.exit(f"{name}: {len(expected)} predictions from {min(expected)} to {max(expected)}")
    if have("torch"):
        compare(f"{name}, PyTorch", expected,
                run_script("pytorch_predict.py", export, data))
    onnx = os.path.join(folder, name + ".onnx")
    run(medley, "onnx", export, "-o", onnx)
    if have("onnxruntime"):
        compare(f"{name}, ONNX Runtime", expected,
                run_script("onnx_predict.py", export, onnx, data))
    if have("safetensors"):
        import numpy
        from safetensors.numpy import load_file
        for tensor, values in load_file(os.path.join(export, "model.safetensors")).items():
            if not numpy.array_equal(values, numpy.load(os.path.join(export, "numpy", tensor + ".npy"))):
                sys.exit(f"{name}: the safetensors and the NumPy file of {tensor} differ")


def check_evaluation(name, export, data, metric, output):
    """`medley evaluate` finds what the summary of the run says."""
    quality = json.loads(run(os.path.join(BIN, "medley"), "evaluate", export, data, "-o", "json"))
    line = next(line for line in output.splitlines() if line.startswith(f"test {metric} "))
    if abs(quality[metric] - float(line.split()[2])) > 0.00011:
        sys.exit(f"{name}: {metric} is {quality[metric]} by medley evaluate, but: {line}")


def check_classes(export, data):
    """Without --all: the most probable class, as a field of a CSV file, and its probability."""
    medley = os.path.join(BIN, "medley")
    everything = [line.split(",") for line in run(medley, "predict", export, data, "--all").splitlines()]
    short = list(csv.reader(run(medley, "predict", export, data).splitlines()))
    for line, (name, probability) in zip(everything, short):
        best = max(range(len(line)), key=lambda i: float(line[i]))
        if name != CLASSES["classes"][best] or probability != line[best]:
            sys.exit(f"classes: {name} with {probability}, but the probabilities are {line}")
    if len(short) != ROWS:
        sys.exit(f"classes: {len(short)} predictions instead of {ROWS}")


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
        for name, (layers, categorical, task, label) in MODELS.items():
            export = os.path.join(folder, name)
            # The test changes the layers.
            write_export(export, [dict(layer) for layer in layers], categorical, task, label)
            check(name, export, data, folder, layers[-2]["outputs"])
        check_classes(os.path.join(folder, "classes"), data)
        for name, (task, label, metric, outputs, more) in TRAINED.items():
            with open(os.path.join(folder, "job.yaml"), "w", encoding="utf-8") as file:
                job = JOB.replace("FOLDER", folder).replace("NAME", name).replace("MORE", more)
                file.write(job.replace("TASK", task).replace("LABEL", label))
            output = run(os.path.join(BIN, "medley"), "run", "job.yaml", "--plain", cwd=folder)
            if f"\ntest {metric} " not in output:
                sys.exit(f"{name}: the summary lacks test {metric}:\n{output}")
            check(name, os.path.join(folder, f"{name}-model"), data, folder, outputs)
            check_evaluation(name, os.path.join(folder, f"{name}-model"), data, metric, output)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
