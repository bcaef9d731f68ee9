#!/usr/bin/env python3
"""`medley predict`, `medley evaluate` and `medley onnx` of models from PyTorch equal eager PyTorch within 1e-6.

Each model is exported by torch.export, its weights are changed as a training would, and eager PyTorch, `medley predict` and
ONNX Runtime compute the same samples. Needs PyTorch 2.5 or newer, NumPy and onnxruntime; another Python that has them:

    program_test.py [--python PYTHON] [MODEL...]

Parts whose package is missing are not run, and said so. `worker_program_test` compares the same with stored numbers.
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
SAMPLES, TOLERANCE = 37, 1e-6

if "--python" in sys.argv:
    at = sys.argv.index("--python")
    os.execv(sys.argv[at + 1], [sys.argv[at + 1], sys.argv[0]] + sys.argv[1:at] + sys.argv[at + 2:])

import numpy  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402

F = nn.functional


class Mlp(nn.Module):
    def __init__(self, activation):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(5, 16), activation, nn.Dropout(0.5), nn.Linear(16, 3))

    def forward(self, x):
        return self.layers(x)


class Conv(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Sequential(nn.Conv2d(2, 6, 3, padding="same"), nn.BatchNorm2d(6), nn.ReLU(inplace=True), nn.MaxPool2d(2))
        self.b = nn.Sequential(nn.Conv2d(6, 6, 3, padding=1, groups=2), nn.GroupNorm(3, 6), nn.Hardswish(), nn.AvgPool2d(2))
        self.up = nn.ConvTranspose2d(6, 4, 2, stride=2)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(4, 3)

    def forward(self, image):
        x = self.b(self.a(image))
        return self.head(self.pool(self.up(x)).flatten(1))


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(3, 3, 3, padding=1)
        self.norm = nn.BatchNorm1d(3)
        self.head = nn.Linear(24, 3)

    def forward(self, x):
        y = self.norm(self.conv(x))
        y += x
        y = F.max_pool1d(F.leaky_relu_(y), 1)
        return self.head(torch.cat([y, y.transpose(1, 2).reshape(-1, 3, 8)[:, :0]], 1).flatten(1))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(16, 3)

    def forward(self, ids):
        position = torch.arange(ids.shape[1]).unsqueeze(0).to(torch.float32)
        x = self.embedding(ids) * 4 + torch.sin(position).unsqueeze(-1)
        return self.head(self.encoder(x).mean(1))


class Causal(nn.Module):
    """A small GPT: tied weights, causal attention, layer norm without a bias; the last token's logits."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(11, 8)
        self.qkv = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)
        self.norm = nn.LayerNorm(8, bias=False)
        self.head = nn.Linear(8, 11, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids):
        x = self.tokens(ids)
        q, k, v = self.qkv(self.norm(x)).chunk(3, dim=-1)
        split = [t.view(t.shape[0], t.shape[1], 2, 4).transpose(1, 2) for t in (q, k, v)]
        y = F.scaled_dot_product_attention(*split, is_causal=True).transpose(1, 2).flatten(2)
        return self.head(x + self.out(y))[:, -1]


class Tokens(nn.Module):
    """A class for each token."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(11, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, ids):
        return self.head(torch.cumsum(self.embedding(ids), 1))


class TwoInputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.left = nn.Linear(4, 6)
        self.embedding = nn.Embedding(9, 6, padding_idx=0)
        self.frozen = nn.Linear(6, 6)
        self.head = nn.Linear(6, 3)
        self.register_buffer("scale", torch.tensor([0.5, 2.0, 1.0, 1.0, 0.25, 1.5]))
        for parameter in self.frozen.parameters():
            parameter.requires_grad_(False)

    def forward(self, x, ids):
        left = torch.relu(self.left(x))
        mask = (ids != 0).to(x.dtype).unsqueeze(-1)
        right = (self.embedding(ids) * mask).sum(1) / mask.sum(1).clamp(min=1.0)
        right = torch.where(right > 0, right, right.masked_fill(right < -1, -0.5)) * self.scale
        return self.head(torch.sigmoid(self.frozen(left * right)) + left)


class Bags(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = nn.Embedding(40, 2, sparse=True)
        self.bag = nn.EmbeddingBag(30, 4, mode="mean", sparse=True)
        self.head = nn.Linear(3 * 2 + 4, 3)

    def forward(self, ids, more):
        return self.head(torch.cat([self.rows(ids).flatten(1), self.bag(more)], 1))


class Numbers(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)

    def forward(self, x):
        ids = (x > 0).to(torch.int64) * 2 + 1
        a, b = torch.softmax(x, 1).split([1, 3], 1)
        y = torch.pow(x + 2, 2) * 0.5 - ids / 3 + torch.stack([a.squeeze(1)] * 4, 1) - torch.full_like(x, 0.5)
        return self.fc(y) + torch.log1p(torch.exp(b)) - torch.rsub(b.amax(1, keepdim=True), 2, alpha=0.5)


class Regression(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(5, 1)

    def forward(self, x):
        return F.softplus(F.rms_norm(self.fc(x) * x, [5])).sum(1, keepdim=True)


class Recurrent(nn.Module):
    """Layers of several kinds, with and without a state of their own, and cells step by step."""

    def __init__(self, layer, width, cell=None, state=False):
        super().__init__()
        self.layer, self.cell, self.state, self.lstm = layer, cell, state, isinstance(layer, nn.LSTM)
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        x = x if self.layer.batch_first else x.transpose(0, 1)
        if self.state:
            rows = self.layer.num_layers * (2 if self.layer.bidirectional else 1)
            samples = x.shape[0] if self.layer.batch_first else x.shape[1]
            begin = torch.full((rows, samples, self.layer.hidden_size), 0.25)
            y, last = self.layer(x, (begin, begin * 2) if self.lstm else begin)
        else:
            y, last = self.layer(x)
        y = y if self.layer.batch_first else y.transpose(0, 1)
        # torch.export of PyTorch 2.11 gives the states of an LSTM an axis that they do not have.
        states = [part.reshape(-1, y.shape[0], self.layer.hidden_size) for part in (last if self.lstm else (last, last))]
        hidden, memory = states
        z = torch.cat([y.mean(1), hidden[-1] + memory[0]], 1)
        if self.cell is not None:
            carried = self.cell(y[:, 0])
            for step in range(1, 4):
                carried = self.cell(y[:, step], carried)
            z = torch.cat([z, carried[1] if self.lstm else carried], 1)
        return self.head(z)


# The model, its inputs (name: integers below, shape), and its task with the number of outputs.
X = {"x": (0, (5,))}
STEPS = {"x": (0, (4, 5))}
MODELS = {
    "mlp": (lambda: Mlp(nn.ReLU()), X, "multiClass", 3),
    "mlp-gelu": (lambda: Mlp(nn.GELU()), X, "multiClass", 3),
    "mlp-tanh-gelu": (lambda: Mlp(nn.GELU(approximate="tanh")), X, "multiLabel", 3),
    "mlp-silu": (lambda: Mlp(nn.SiLU()), X, "multiClass", 3),
    "mlp-mish": (lambda: Mlp(nn.Mish()), X, "multiClass", 3),
    "mlp-elu": (lambda: Mlp(nn.ELU(0.7)), X, "multiClass", 3),
    "mlp-prelu": (lambda: Mlp(nn.PReLU(16)), X, "multiClass", 3),
    "mlp-hardtanh": (lambda: Mlp(nn.ReLU6()), X, "multiClass", 3),
    "conv": (Conv, {"image": (0, (2, 8, 8))}, "multiClass", 3),
    "residual": (Residual, {"x": (0, (3, 8))}, "multiClass", 3),
    "encoder": (Encoder, {"ids": (20, (6,))}, "multiClass", 3),
    "causal": (Causal, {"ids": (11, (7,))}, "multiClass", 11),
    "tokens": (Tokens, {"ids": (11, (7,))}, "multiClass", 3),
    "two-inputs": (TwoInputs, {"x": (0, (4,)), "ids": (9, (3,))}, "multiClass", 3),
    "bags": (Bags, {"ids": (40, (3,)), "more": (30, (4,))}, "multiClass", 3),
    "numbers": (Numbers, {"x": (0, (4,))}, "multiClass", 3),
    "regression": (Regression, X, "regression", 1),
    "lstm": (lambda: Recurrent(nn.LSTM(5, 6, batch_first=True), 12), STEPS, "multiClass", 3),
    "lstm-deep": (lambda: Recurrent(nn.LSTM(5, 4, 3, dropout=0.3, bidirectional=True), 12, state=True), STEPS, "multiClass", 3),
    "lstm-cell": (lambda: Recurrent(nn.LSTM(5, 4, bias=False), 14, nn.LSTMCell(4, 6)), STEPS, "multiClass", 3),
    "gru": (lambda: Recurrent(nn.GRU(5, 6, 2), 12, state=True), STEPS, "multiClass", 3),
    "gru-both": (lambda: Recurrent(nn.GRU(5, 4, bias=False, batch_first=True, bidirectional=True), 12), STEPS, "multiClass", 3),
    "gru-cell": (lambda: Recurrent(nn.GRU(5, 4), 14, nn.GRUCell(4, 6)), STEPS, "multiClass", 3),
    "rnn": (lambda: Recurrent(nn.RNN(5, 4, bidirectional=True), 18, nn.RNNCell(8, 6)), STEPS, "multiClass", 3),
    "rnn-relu": (lambda: Recurrent(nn.RNN(5, 4, 2, nonlinearity="relu"), 14, nn.RNNCell(4, 6, nonlinearity="relu")), STEPS,
                 "multiClass", 3),
}


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def write_safetensors(path, state):
    header, offset, seen = {}, 0, {}
    for name, tensor in state.items():
        if tensor.data_ptr() in seen and tensor.numel() > 1:
            continue
        seen[tensor.data_ptr()] = name
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [offset, offset + 4 * tensor.numel()]}
        offset += 4 * tensor.numel()
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in header:
            file.write(state[name].to(torch.float32).contiguous().numpy().tobytes())


def write_export(folder, model, inputs, task, outputs, tokens):
    """As the coordinator writes it: the archive with the first weights, the weights of the training beside it."""
    os.makedirs(folder)
    sample = tuple(values[:5] for values in inputs.values())
    batch = torch.export.Dim("batch", min=1)
    model.train()
    program = torch.export.export(model, sample, dynamic_shapes=tuple({0: batch} for _ in sample))
    torch.export.save(program, os.path.join(folder, "program.pt2"))
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
        for name, tensor in model.state_dict().items():  # other buffers do not change
            if name in trained or name.endswith("running_mean"):
                tensor += 0.1 * torch.randn(tensor.shape, generator=generator)
    write_safetensors(os.path.join(folder, "model.safetensors"), model.state_dict())
    text = {"format": "medley-model", "formatVersion": 1, "model": "exported", "task": task,
            "program": {"file": "program.pt2", "format": "torch.export", "result": ""},
            "layers": [{"name": "all", "kind": "Imported", "module": "Mixed", "inputs": [], "outputs": outputs * tokens},
                       {"name": "loss", "kind": "Loss", "loss": {"multiClass": "crossEntropy", "regression": "mse"}.get(task, "logLoss")}]}
    if task == "multiClass":
        text["classes"] = [f"class {i}" for i in range(outputs)]
    schema = {"formatVersion": 1, "delimiter": ",", "header": False, "label": {"column": -1, "columns": []}, "precision": "float64",
              "categorical": [], "numeric": [], "hash": {"rows": 1},
              "inputs": [{"name": name, "type": "int64" if values.dtype == torch.int64 else "float32",
                          "shape": list(values.shape[1:]), "scale": 0.5, "mean": [0.25], "std": [2.0]}
                         for name, values in inputs.items()],
              "arrays": {"format": "npy", "labels": tokens if task != "multiLabel" else outputs}}
    for name, value in (("model", text), ("schema", schema)):
        with open(os.path.join(folder, name + ".json"), "w", encoding="utf-8") as file:
            json.dump(value, file)


def probabilities(task, logits):
    return {"multiClass": lambda x: torch.softmax(x, -1), "multiLabel": torch.sigmoid}.get(task, lambda x: x)(logits)


def compare(what, expected, found):
    found = numpy.asarray(found, dtype=numpy.float64).reshape(expected.shape)
    worst = float(numpy.max(numpy.abs(found - expected) / numpy.maximum(1, numpy.abs(expected))))
    print(f"{what}: {len(expected)} samples, largest difference {worst:.1e}", flush=True)
    if not worst <= TOLERANCE:
        sys.exit(f"{what}: differs by {worst} from eager PyTorch")


def check(name, folder):
    make, shapes, task, outputs = MODELS[name]
    torch.manual_seed(1)
    model = make()
    stored, inputs = {}, {}
    for argument, (below, shape) in shapes.items():
        if below:
            stored[argument] = inputs[argument] = torch.randint(0, below, (SAMPLES, *shape))
        else:
            stored[argument] = torch.randn(SAMPLES, *shape)
            inputs[argument] = ((stored[argument].double() * 0.5 - 0.25) / 2.0).float()
    export = os.path.join(folder, name)
    tokens = 7 if name == "tokens" else 1
    write_export(export, model, inputs, task, outputs, tokens)
    model.eval()
    with torch.no_grad():
        expected = probabilities(task, model(*inputs.values())).double().numpy().reshape(SAMPLES, -1)
    files = []
    for argument, values in stored.items():
        path = os.path.join(folder, argument + ".npy")
        numpy.save(path, values.numpy())
        files.append(f"{argument}={path}")
    medley = os.path.join(BIN, "medley")
    text = run(medley, "predict", export, *files, "--all")
    compare(f"{name}, medley predict", expected, [[float(field) for field in line.split(",")] for line in text.split()])
    if task == "multiClass":
        labels = os.path.join(folder, "labels.npy")
        chosen = numpy.arange(SAMPLES * tokens) % outputs
        numpy.save(labels, chosen.astype(numpy.int64).reshape((SAMPLES, tokens) if tokens > 1 else SAMPLES))
        quality = json.loads(run(medley, "evaluate", export, *files, "--labels", labels, "-o", "json"))
        loss = -float(numpy.mean(numpy.log(expected.reshape(-1, outputs)[numpy.arange(SAMPLES * tokens), chosen])))
        compare(f"{name}, medley evaluate", numpy.array([loss]), [quality["logLoss"]])
    onnx = os.path.join(folder, name + ".onnx")
    run(medley, "onnx", export, "-o", onnx)
    if importlib.util.find_spec("onnxruntime") is None:
        print("[   NOTE   ] NOT RUN: the Python package onnxruntime is missing", flush=True)
        return
    import onnxruntime
    session = onnxruntime.InferenceSession(onnx, providers=["CPUExecutionProvider"])
    found = session.run(None, {argument: values.numpy() for argument, values in inputs.items()})[0]
    compare(f"{name}, ONNX Runtime", expected, found)


def main():
    folder = tempfile.mkdtemp()
    try:
        for name in sys.argv[1:] or MODELS:
            check(name, folder)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
