#!/usr/bin/python3
"""A CTR-DNN as a plain training loop in Python torch: the reference for a trainer.

  torch_ctrdnn.py [--batch 512] [--steps 100 | --seconds 6] [--processes 1] [--set criteo|adult] [--data FILE]
                  [--device cpu|cuda]

One embedding table for all fields (sparse gradients) + the numbers, an MLP, Adagrad (torch's, which updates only the rows
touched). --set criteo: 26 fields x dim 10 of 1,000,001 rows, 13 numbers, MLP 400-400-400; adult: the model of
examples/adult.yaml (8 fields and 6 bucketed numbers x dim 16 of 65,536 rows, MLP 256-128). --data reads their CSV into
memory before the measurement starts; without it, samples like Criteo's are generated. One thread per process.
--processes 2 trains data-parallel with DistributedDataParallel over gloo, --batch samples each. Prints samples/s.
"""
import argparse
import os
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")

import numpy
import torch
import torch.distributed
import torch.multiprocessing

from criteo_shape import SETS, load

WARM_UP = 20


class CtrDnn(torch.nn.Module):
    def __init__(self, rows, dim, hidden, fields, numerics):
        super().__init__()
        self.table = torch.nn.Embedding(rows, dim, sparse=True)
        torch.nn.init.uniform_(self.table.weight, -0.05, 0.05)
        widths = (fields * dim + numerics,) + hidden
        layers = []
        for before, after in zip(widths, widths[1:]):
            layers += [torch.nn.Linear(before, after), torch.nn.ReLU(inplace=True)]
        self.layers = torch.nn.Sequential(*layers, torch.nn.Linear(hidden[-1], 1))

    def forward(self, ids, numerics):
        return self.layers(torch.cat([self.table(ids).flatten(1), numerics], 1)).squeeze(1)


def train(rank, options):
    torch.set_num_threads(1)
    torch.manual_seed(1)
    shape = SETS[options.set]
    data = load(options, shape)
    # The samples of a replica, shuffled once, so that the training loop only takes slices.
    order = numpy.random.default_rng(1).permutation(len(data[2]))[rank::options.processes]
    ids, numerics, labels = (torch.from_numpy(numpy.ascontiguousarray(x[order])).to(options.device) for x in data)
    model = CtrDnn(shape["rows"], shape["dim"], shape["hidden"], ids.shape[1], numerics.shape[1]).to(options.device)
    if options.processes > 1:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(options.port))
        torch.distributed.init_process_group("gloo", rank=rank, world_size=options.processes)
        model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
    criterion = torch.nn.BCEWithLogitsLoss()
    batches = len(labels) // options.batch

    def run(first, count):
        for step in range(first, first + count):
            at = step % batches * options.batch
            end = at + options.batch
            optimizer.zero_grad(set_to_none=True)
            loss = criterion(model(ids[at:end], numerics[at:end]), labels[at:end])
            loss.backward()
            optimizer.step()
        return loss.item()

    run(0, WARM_UP)  # allocates memory, and on a GPU loads kernels
    start = time.perf_counter()
    run(0, WARM_UP)
    steps = options.steps
    if options.seconds > 0:
        steps = torch.tensor([max(1, int(WARM_UP * options.seconds / (time.perf_counter() - start)))])
        if options.processes > 1:
            torch.distributed.broadcast(steps, 0)  # all replicas train the same number of steps
        steps = int(steps)
    wall, cpu = time.perf_counter(), time.process_time()
    loss = run(WARM_UP, steps)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    if rank == 0:
        samples = steps * options.batch
        print(f"torch {torch.__version__} processes {options.processes} batch {options.batch}: "
              f"{samples * options.processes / wall:.0f} samples/s wall, {samples / cpu:.0f} samples per CPU second, "
              f"{steps} steps, loss {loss:.4f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=0, help="train for about this time, instead of --steps")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="cuda needs --processes 1")
    parser.add_argument("--port", type=int, default=29731)
    parser.add_argument("--set", choices=sorted(SETS), default="criteo")
    parser.add_argument("--data", help="CSV file")
    parser.add_argument("--cache", help="cache the contents of --data in this .npz file")
    options = parser.parse_args()
    if options.set == "adult" and options.data is None:
        parser.error("--set adult needs --data")
    if options.device == "cuda" and options.processes > 1:
        parser.error("--device cuda needs --processes 1")
    if options.processes == 1:
        train(0, options)
    else:
        torch.multiprocessing.spawn(train, args=(options,), nprocs=options.processes)


if __name__ == "__main__":
    main()
