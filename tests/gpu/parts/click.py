"""CTR-DNN, HeterPS's model of click rates, by Medley's own layers on the device, against eager PyTorch on the same device.

26 fields of 1,000,001 rows of 10 numbers, 13 numbers, three layers of 400, Adagrad, one thread. Medley's rows are in the memory of the
device, as PyTorch's are, then in the host's with a tenth of them in a cache on the device, and then in the host's, as those of parameter servers: each step copies those that it uses to the device and their
gradients back. The losses are compared with those of Medley's layers on the CPU.
"""
import json
import os
import re
import sys

import numpy

import kit

sys.path.insert(0, os.path.join(kit.SOURCE, "tests/bench/peers"))
import criteo_shape  # noqa: E402

ROWS, BATCHES, LOSS_STEPS, LOSS_BAR, STEP_BAR = 1_000_001, 8, 10, 1e-4, 1 / 1.5


def write_data(path, samples):
    """Columns: the label, 13 numbers, 26 categories."""
    ids, numerics, labels = criteo_shape.generate(samples, ROWS, 1)
    numbers = numpy.char.mod("%.4f", numerics)
    with open(path, "w", encoding="ascii") as file:
        for label, some, keys in zip(labels, numbers.tolist(), ids.tolist()):
            file.write(f"{int(label)},{','.join(some)},{','.join(map(str, keys))}\n")


def write_spec(path, data, batch):
    spec = {
        "model": {"name": "ctrdnn", "parameters": {"embeddingDim": 10, "embeddingRows": ROWS, "hidden": [400, 400, 400]}},
        "data": {"train": {"format": "csv", "uri": f"file://{data}"},
                 "schema": {"label": {"column": 0, "positive": "1"}, "numeric": list(range(1, 14)), "categorical": list(range(14, 40))}},
        "training": {"batchSize": batch, "microBatches": 1, "optimizer": {"name": "adagrad", "learningRate": 0.01}},
    }
    with open(path, "w", encoding="utf-8") as file:
        json.dump(spec, file)


def train(spec, device, steps, rows="host"):
    code, out, err = kit.call([kit.program("exported_bench"), spec, "--device", device, "--rows", rows, "--steps", str(steps)], seconds=40)
    return (json.loads(out), "") if code == 0 else (None, kit.last_line(err))


def compare(batch, spec, steps):
    what = f"ctrdnn, batch {batch}"
    ours, error = train(spec, kit.DEVICE, steps, "device" if kit.ON_GPU else "host")
    if ours is None:
        kit.row(f"{what}: trains", error, holds=False)
        return
    if kit.ON_GPU:
        expected, error = train(spec, "cpu", LOSS_STEPS)
        found = max(abs(a / b - 1) for a, b in zip(ours["losses"], expected["losses"])) if expected else error
        kit.row(f"{what}: losses of {LOSS_STEPS} steps from the CPU's", float(f"{found:.2g}") if expected else error, "",
                f"<= {LOSS_BAR}", bool(expected) and found <= LOSS_BAR)
        kit.row(f"{what}: copied to the GPU a step", ours["bytes_in"], "bytes")
        kit.row(f"{what}: copied from the GPU a step", ours["bytes_out"], "bytes")
    else:
        kit.skip(f"{what}: losses from the CPU's, and what a step copies", "it needs a GPU")
    first, last = ours["losses"][0], ours["losses"][-1]
    kit.row(f"{what}: loss after {steps} steps", float(f"{last:.4g}"), "", f"below {first:.4g}, the first", last < first)
    script = os.path.join(kit.SOURCE, "tests/bench/peers/torch_ctrdnn.py")
    code, out, err = kit.call([sys.executable, script, "--batch", str(batch), "--seconds", "3", "--device", kit.DEVICE], 40)
    rate = re.search(r"(\d+) samples/s wall", out)
    if code != 0 or not rate:
        kit.row(f"{what}: eager PyTorch trains", kit.last_line(err), holds=False)
        return
    mine, theirs = 1e3 * ours["mean_seconds"], 1e3 * batch / int(rate.group(1))
    kit.row(f"{what}: a step", float(f"{mine:.4g}"), "ms")
    kit.row(f"{what}: a step of eager PyTorch", float(f"{theirs:.4g}"), "ms")
    kit.row(f"{what}: times PyTorch's step", float(f"{mine / theirs:.3g}"), "", f"<= {STEP_BAR:.2f}" if kit.ON_GPU else "",
            mine / theirs <= STEP_BAR if kit.ON_GPU else None)
    if not kit.ON_GPU:
        return
    cached, error = train(spec, kit.DEVICE, steps, "cache")
    kit.row(f"{what}, a tenth of the rows cached: a step", float(f"{1e3 * cached['mean_seconds']:.4g}") if cached else error, "ms",
            holds=None if cached else False)
    if cached:
        apart = max(abs(a / b - 1) for a, b in zip(cached["losses"], ours["losses"]))
        kit.row(f"{what}, a tenth of the rows cached: losses from those of whole tables", float(f"{apart:.2g}"), "", f"<= {LOSS_BAR}", apart <= LOSS_BAR)
    host, error = train(spec, kit.DEVICE, steps)
    kit.row(f"{what}, rows on the host: a step", float(f"{1e3 * host['mean_seconds']:.4g}") if host else error, "ms", holds=None if host else False)


def main():
    batches = (4096, 16384) if kit.ON_GPU else (512,)
    data = os.path.join(kit.SCRATCH, "criteo.csv")
    write_data(data, BATCHES * batches[-1])
    for batch in batches:
        spec = os.path.join(kit.SCRATCH, f"spec-{batch}.json")
        write_spec(spec, data, batch)
        compare(batch, spec, 40 if kit.ON_GPU else 16)


if __name__ == "__main__":
    sys.exit(main())
