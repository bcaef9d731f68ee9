"""Trains a small network on MNIST with DistributedDataParallel, on CPUs. Knows nothing of Medley:

  torchrun --nproc_per_node 2 train.py --data ../../lenet --checkpoints /tmp/ddp

Saves at SIGUSR1 and every 100 steps, and continues from what it has saved, on any number of processes.
"""
import argparse
import gzip
import os
import signal

import numpy
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser()
parser.add_argument("--data", required=True)
parser.add_argument("--checkpoints", required=True)
parser.add_argument("--steps", type=int, default=600)
parser.add_argument("--batch", type=int, default=256)
args = parser.parse_args()

wanted = []
signal.signal(signal.SIGUSR1, lambda *_: wanted.append(True))
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))


def read(name, header):
    with gzip.open(os.path.join(args.data, name)) as file:
        return numpy.frombuffer(file.read(), dtype=numpy.uint8, offset=header)


def images(name):
    return torch.from_numpy(read(name, 16).astype(numpy.float32).reshape(-1, 784) / 255)


def labels(name):
    return torch.from_numpy(read(name, 8).astype(numpy.int64))


x, y = images("train-images-idx3-ubyte.gz"), labels("train-labels-idx1-ubyte.gz")
torch.manual_seed(1)
net = torch.nn.Sequential(torch.nn.Linear(784, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
model = DistributedDataParallel(net)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
latest = os.path.join(args.checkpoints, "latest.pt")
done = 0
if os.path.exists(latest):
    saved = torch.load(latest)
    done = saved["step"]
    net.load_state_dict(saved["net"])
    optimizer.load_state_dict(saved["optimizer"])
    if rank == 0:
        print(f"continues after step {done} on {world} processes", flush=True)


def save(step):
    if rank != 0:
        return
    os.makedirs(args.checkpoints, exist_ok=True)
    torch.save({"step": step, "net": net.state_dict(), "optimizer": optimizer.state_dict()}, latest + ".tmp")
    os.replace(latest + ".tmp", latest)


steps_per_epoch = len(x) // args.batch
for step in range(done + 1, args.steps + 1):
    epoch, at = divmod(step - 1, steps_per_epoch)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(epoch))
    mine = order[at * args.batch:(at + 1) * args.batch][rank::world]
    loss = torch.nn.functional.cross_entropy(model(x[mine]), y[mine])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if rank == 0:
        print(f"step {step} loss {loss.item():.4f}", flush=True)
    if wanted or step % 100 == 0 or step == args.steps:
        wanted.clear()
        save(step)

if rank == 0:
    with torch.no_grad():
        right = net(images("t10k-images-idx3-ubyte.gz")).argmax(1) == labels("t10k-labels-idx1-ubyte.gz")
    print(f"test accuracy {right.float().mean().item():.4f}", flush=True)
