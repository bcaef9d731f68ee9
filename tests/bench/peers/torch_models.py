"""The peer of models.py: trains a model of examples/ eagerly in PyTorch and prints losses and the median seconds of a step.

  torch_models.py NAME FOLDER --steps N [--batch B] [--rate R] [--archive FILE] [--gradients FILE] [--threads T]
                  [--device cpu|cuda]

FOLDER holds the inputs as NPY files with the names of the arguments of forward, and labels.npy. With --archive the model is that
of an exported program (PyTorch 2.9 or newer), else that of the example's export.py with the seed 1 (any version).
"""
import argparse
import importlib.util
import json
import os
import time

import numpy
import torch

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
MODELS = {"lenet": "LeNet", "resnet": "make", "resnet18": "make", "transformer": "Tokens", "two-tower": "TwoTower"}
INPUTS = {"lenet": ["image"], "resnet": ["input"], "resnet18": ["input"], "transformer": ["numbers", "words"],
          "two-tower": ["numbers", "traits", "terms", "trades"]}


def load(name, folder):
    """The model of an example, or of resnet18.py, as its script makes it."""
    path = os.path.join(folder, name, "export.py")
    if not os.path.exists(path):
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".py")
    where = importlib.util.spec_from_file_location(name.replace("-", "_"), path)
    module = importlib.util.module_from_spec(where)
    where.loader.exec_module(module)
    torch.manual_seed(1)
    return getattr(module, MODELS[name])().train()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("folder")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rate", type=float, default=0.05)
    parser.add_argument("--archive")
    parser.add_argument("--gradients")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.backends.cudnn.allow_tf32 = False  # float32, as on the CPU
    model = torch.export.load(args.archive).module() if args.archive else load(args.name, os.path.join(ROOT, "examples"))
    model = model.to(args.device)
    inputs, labels = ([torch.from_numpy(numpy.load(os.path.join(args.folder, f"{each}.npy"))).to(args.device) for each in names]
                      for names in (INPUTS[args.name], ["labels"]))
    labels = labels[0]
    binary = args.name in ("transformer", "two-tower")
    optimizer = torch.optim.SGD(model.parameters(), lr=args.rate)
    losses, seconds = [], []
    for step in range(args.steps):
        rows = torch.arange(step * args.batch, (step + 1) * args.batch, device=args.device) % len(labels)
        some, wanted = [each[rows] for each in inputs], labels[rows]
        start = time.perf_counter()
        optimizer.zero_grad()
        logits = model(*some)
        if binary:
            loss = torch.nn.functional.binary_cross_entropy_with_logits(logits[:, 0], wanted.float())
        else:
            loss = torch.nn.functional.cross_entropy(logits, wanted)
        loss.backward()
        if step == 0 and args.gradients:
            with open(args.gradients, "wb") as out:
                for name, parameter in model.named_parameters():
                    values = parameter.grad.to_dense().contiguous().cpu().numpy().astype("<f4")
                    out.write(f"{name} {values.size}\n".encode() + values.tobytes())
        optimizer.step()
        losses.append(loss.item())
        seconds.append(time.perf_counter() - start)
    print(json.dumps({"losses": losses, "seconds": sorted(seconds)[len(seconds) // 2], "torch": torch.__version__}))


if __name__ == "__main__":
    main()
