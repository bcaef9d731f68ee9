#!/usr/bin/python3
"""The CTR-DNN of tests/bench/model_bench.cc as a plain loop of Python torch: the yardstick for a trainer.

  torch_ctrdnn.py [--batch 512] [--steps 100] [--processes 1]

26 fields x dim 10 in one table of 1,000,001 rows (sparse gradients) + 13 numbers, MLP 400-400-400-1, Adagrad (torch's, which
updates only the rows touched). One thread a process. --processes 2 trains data-parallel with DistributedDataParallel over
gloo, --batch samples each. Prints one line: wall and CPU samples a second.
"""
import argparse
import os
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import torch
import torch.distributed
import torch.multiprocessing

from criteo_shape import generate

ROWS, FIELDS, DIM, NUMERICS, HIDDEN = 1000001, 26, 10, 13, (400, 400, 400)


class CtrDnn(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(ROWS, DIM, sparse=True)
        torch.nn.init.uniform_(self.table.weight, -0.05, 0.05)
        widths = (FIELDS * DIM + NUMERICS,) + HIDDEN
        layers = []
        for before, after in zip(widths, widths[1:]):
            layers += [torch.nn.Linear(before, after), torch.nn.ReLU(inplace=True)]
        self.layers = torch.nn.Sequential(*layers, torch.nn.Linear(HIDDEN[-1], 1))

    def forward(self, ids, numerics):
        return self.layers(torch.cat([self.table(ids).flatten(1), numerics], 1)).squeeze(1)


def train(rank, options):
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = CtrDnn()
    if options.processes > 1:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(options.port))
        torch.distributed.init_process_group("gloo", rank=rank, world_size=options.processes)
        model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
    criterion = torch.nn.BCEWithLogitsLoss()
    data = [torch.from_numpy(x) for x in generate(64 * options.batch, ROWS, 1 + rank)]
    warm_up = 5
    for step in range(warm_up + options.steps):
        if step == warm_up:
            wall, cpu = time.perf_counter(), time.process_time()
        at = step % 64 * options.batch
        ids, numerics, labels = (x[at:at + options.batch] for x in data)
        optimizer.zero_grad(set_to_none=True)
        loss = criterion(model(ids, numerics), labels)
        loss.backward()
        optimizer.step()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    if rank == 0:
        samples = options.steps * options.batch * options.processes
        print(f"torch {torch.__version__} processes {options.processes} batch {options.batch}: "
              f"{samples / wall:.0f} samples/s wall, {samples / cpu:.0f} samples per CPU second of a process, "
              f"loss {loss.item():.4f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--port", type=int, default=29731)
    options = parser.parse_args()
    if options.processes == 1:
        train(0, options)
    else:
        torch.multiprocessing.spawn(train, args=(options,), nprocs=options.processes)


if __name__ == "__main__":
    main()
