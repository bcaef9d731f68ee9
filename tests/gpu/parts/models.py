"""Models against eager PyTorch on the same device: the time of a step, losses and gradients against float64.

Rounds of Medley and of PyTorch alternate, so that both meet the same machine. PyTorch is not made to wait for the device after
each step. Both compute in float32, without TF32.
"""
import copy
import json
import os
import statistics
import sys
import time

import numpy
import torch

import kit
import zoo

ROUNDS = 3
LOSS_STEPS = 10
LOSS_BAR, GRADIENT_BAR = 1e-3, 1e-3
LAUNCH_BOUND = ("lenet", "mlp")  # whose kernels take less time than their launches
WITHOUT_GRAPHS = (*LAUNCH_BOUND, "transformer")  # that also run without: each run takes some seconds of the part
GRAPH_BAR = 0.6  # of eager PyTorch's step, for those
LEAST_SECONDS = {"bert": 40, "resnet50": 40}  # of a model: with less time left it is not begun; others need 12


class Eager:
    """The model in PyTorch, as a user writes it."""

    def __init__(self, model, module, data, labels, dtype=torch.float32):
        self.model = model
        self.module = module.to(kit.DEVICE).to(dtype)
        self.data = [torch.from_numpy(values) for values in data.values()]
        self.data = [values.to(dtype) if values.is_floating_point() else values for values in self.data]
        self.labels = torch.from_numpy(labels)
        if kit.ON_GPU:  # each step copies its batch, as a data loader with pinned memory lets it
            self.data, self.labels = [values.pin_memory() for values in self.data], self.labels.pin_memory()
        self.optimizer = torch.optim.SGD(self.module.parameters(), lr=model.rate)
        self.next = 0

    def wait(self):
        if kit.ON_GPU:
            torch.cuda.synchronize()

    def step(self):
        first = self.next * self.model.batch % len(self.labels)
        some = slice(first, first + self.model.batch)
        self.optimizer.zero_grad()
        batch, labels = ([values[some].to(kit.DEVICE, non_blocking=True) for values in each] for each in (self.data, [self.labels]))
        loss = self.model.loss(self.module(*batch), labels[0])
        loss.backward()
        self.optimizer.step()
        self.next += 1
        return loss

    def seconds(self, steps):
        for _ in range(3):
            self.step()
        self.wait()
        start = time.perf_counter()
        for _ in range(steps):
            self.step()
        self.wait()
        return (time.perf_counter() - start) / steps


def losses(eager):
    return [float(eager.step()) for _ in range(LOSS_STEPS)]


def gradients(model, module, data, labels, dtype):
    """Of the first batch, in `dtype`."""
    module = copy.deepcopy(module).to(kit.DEVICE).to(dtype)
    some = [torch.from_numpy(values[:model.batch]).to(kit.DEVICE) for values in data.values()]
    some = [values.to(dtype) if values.is_floating_point() else values for values in some]
    model.loss(module(*some), torch.from_numpy(labels[:model.batch]).to(kit.DEVICE)).backward()
    return {name: p.grad.to_dense().contiguous().cpu().numpy().ravel() for name, p in module.named_parameters() if p.grad is not None}


def read_gradients(path):
    found = {}
    with open(path, "rb") as file:
        while line := file.readline():
            name, count = line.decode().rsplit(" ", 1)
            found[name] = numpy.frombuffer(file.read(4 * int(count)), "<f4")
    return found


def deviation(ours, exact):
    """The largest of all parameters, relative by norm. Gradients that are zero but for rounding, as of a bias before batch norm,
    are compared with the largest."""
    most = max(float(numpy.linalg.norm(values)) for values in exact.values())
    worst = 0.0
    for name, values in exact.items():
        if name not in ours:
            return 1.0, f"there is no gradient of {name}"
        if not numpy.isfinite(ours[name]).all():
            return float("inf"), f"the gradient of {name} is not finite"
        size = max(float(numpy.linalg.norm(values)), 1e-5 * most)
        worst = max(worst, float(numpy.linalg.norm(ours[name] - values)) / size)
    return worst, ""


def train(spec, steps, *more):
    code, out, err = kit.call([kit.program("exported_bench"), spec, "--device", kit.DEVICE, "--steps", str(steps), *more],
                              seconds=120)
    return (json.loads(out), "") if code == 0 else (None, kit.last_line(err))


def compare_values(name, model, module, data, labels, spec, folder):
    file = os.path.join(folder, "gradients")
    ours, error = train(spec, LOSS_STEPS, "--gradients", file)
    if ours is None:
        kit.row(f"{name}: trains", error, holds=False)
        return None
    exact = gradients(model, module, data, labels, torch.float64)
    own, _ = deviation(gradients(model, module, data, labels, torch.float32), exact)
    found, problem = deviation(read_gradients(file), exact)
    bar = max(GRADIENT_BAR, 3 * own)
    kit.row(f"{name}: gradients from float64", problem or float(f"{found:.2g}"), "", f"<= {bar:.1g}; PyTorch's own {own:.1e}",
            not problem and found <= bar)
    exact = losses(Eager(model, copy.deepcopy(module), data, labels, torch.float64))
    eager = Eager(model, copy.deepcopy(module), data, labels)
    found, own = (max(abs(a - b) / abs(b) for a, b in zip(some, exact)) for some in (ours["losses"], losses(eager)))
    bar = max(LOSS_BAR, 3 * own)
    kit.row(f"{name}: losses of {LOSS_STEPS} steps from float64", float(f"{found:.2g}"), "", f"<= {bar:.1g}; PyTorch's own {own:.1e}",
            found <= bar)
    return eager


def compare_graphs(name, model, spec, graphs):
    """`graphs`: steps with kernels that the GPU records and does again. The same with kernels that are given one by one."""
    if not kit.ON_GPU:
        kit.skip(f"{name}: calls done again", "it needs a GPU")
        return
    plain, error = train(spec, model.steps, "--no-graphs")
    if plain is None:
        kit.row(f"{name}: without graphs", error, holds=False)
        return
    found = graphs["recordings"]
    fixed = name in LAUNCH_BOUND  # rows of tables, which the host has, are others in each step
    kit.row(f"{name}: calls done again", found["done_again"], found["reason"], "more than those one by one" if fixed else "",
            found["done_again"] > found["one_by_one"] and not found["reason"] if fixed else None)
    kit.row(f"{name}: memory of graphs", round(found["bytes"] / 2**20, 1), "MiB")
    kit.row(f"{name}: a step without graphs", float(f"{1e3 * plain['mean_seconds']:.4g}"), "ms")
    apart = max(abs(a - b) / max(abs(b), 1e-9) for a, b in zip(graphs["losses"], plain["losses"]))
    kit.row(f"{name}: losses from those without graphs", float(f"{apart:.2g}"), "", f"<= {LOSS_BAR}", apart <= LOSS_BAR)


def compare_seconds(name, model, eager, spec):
    ratios, ours, theirs, last = [], [], [], None
    for _ in range(ROUNDS):
        found, error = train(spec, model.steps)
        if found is None:
            kit.row(f"{name}: ms a step", error, holds=False)
            return
        last = found
        ours.append(1e3 * found["mean_seconds"])
        theirs.append(1e3 * eager.seconds(model.steps))
        ratios.append(ours[-1] / theirs[-1])
    kit.row(f"{name}, batch {model.batch}: a step", float(f"{statistics.median(ours):.4g}"), "ms")
    kit.row(f"{name}, batch {model.batch}: a step of eager PyTorch", float(f"{statistics.median(theirs):.4g}"), "ms")
    ratio = float(f"{statistics.median(ratios):.3g}")
    bar = (f"<= {GRAPH_BAR}", ratio <= GRAPH_BAR) if kit.ON_GPU and name in LAUNCH_BOUND else ("", None)
    kit.row(f"{name}: times PyTorch's step ({min(ratios):.2f} to {max(ratios):.2f})", ratio, "", *bar)
    if name in WITHOUT_GRAPHS:
        compare_graphs(name, model, spec, last)
    if "bytes_in" not in last:
        return
    if not all(values.is_floating_point() for values in eager.data):  # whole numbers are rows of tables, which the host has
        kit.row(f"{name}: copied to the GPU a step", last["bytes_in"], "bytes")
        kit.row(f"{name}: copied from the GPU a step", last["bytes_out"], "bytes")
        return
    inputs = model.batch * sum(4 * values[0].numel() for values in [*eager.data, eager.labels])
    kit.row(f"{name}: copied to the GPU a step", last["bytes_in"], "bytes", f"inputs and labels, {inputs}",
            last["bytes_in"] == inputs)
    kit.row(f"{name}: copied from the GPU a step", last["bytes_out"], "bytes", "a loss, 8", last["bytes_out"] == 8)


def main():
    torch.set_num_threads(1)
    torch.backends.cudnn.allow_tf32 = False
    for name, model in zoo.models(kit.ON_GPU).items():
        if kit.left() < LEAST_SECONDS.get(name, 12):
            kit.skip(name, "no time left")
            continue
        folder = os.path.join(kit.SCRATCH, name)
        os.makedirs(folder)
        try:
            module, data, labels = zoo.export(model, folder)
            spec = zoo.write_spec(model, folder)
            eager = compare_values(name, model, module, data, labels, spec, folder)
            if eager is not None:
                compare_seconds(name, model, eager, spec)
        except Exception as error:  # the next model may still tell something
            kit.row(name, f"{type(error).__name__}: {kit.last_line(str(error))}", holds=False)
        if kit.ON_GPU:
            torch.cuda.empty_cache()


if __name__ == "__main__":
    sys.exit(main())
