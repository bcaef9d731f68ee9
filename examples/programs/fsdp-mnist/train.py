"""Trains a small network on MNIST with FSDP, on CPUs. Knows nothing of Medley:

  torchrun --nproc_per_node 2 train.py --data ../../lenet --checkpoints /tmp/fsdp

Each process holds its share of the weights and of the optimizer's state, and saves that share with
torch.distributed.checkpoint at SIGUSR1, every 100 steps and at the end. It continues from what was saved on any number of
processes, which then share it anew.
"""
import argparse
import gzip
import os
import shutil
import signal

import numpy
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

parser = argparse.ArgumentParser()
parser.add_argument("--data", required=True)
parser.add_argument("--checkpoints", required=True)
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--batch", type=int, default=512)
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
    return torch.from_numpy(read(name, 16).reshape(-1, 784).copy())


def labels(name):
    return torch.from_numpy(read(name, 8).astype(numpy.int64))


x, y = images("train-images-idx3-ubyte.gz"), labels("train-labels-idx1-ubyte.gz")
torch.manual_seed(1)
net = torch.nn.Sequential(torch.nn.Linear(784, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512), torch.nn.ReLU(),
                          torch.nn.Linear(512, 10))
mesh = init_device_mesh("cpu", (world,))
for layer in net:
    if isinstance(layer, torch.nn.Linear):
        fully_shard(layer, mesh=mesh)
fully_shard(net, mesh=mesh)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
newest = os.path.join(args.checkpoints, "newest")  # names the newest folder that is complete
done = 0


def state():
    weights, moments = get_state_dict(net, optimizer)
    return {"net": weights, "optimizer": moments}


def saved():
    """The folder that `newest` names, or nothing."""
    try:
        with open(newest, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def save(step):
    """All processes: each writes its share, and the first one says that all have."""
    before, folder = saved(), f"step-{step}"
    dcp.save(state(), checkpoint_id=os.path.join(args.checkpoints, folder))
    if rank != 0:
        return
    with open(newest + ".tmp", "w", encoding="utf-8") as file:
        file.write(folder)
    os.replace(newest + ".tmp", newest)
    if before and before != folder:
        shutil.rmtree(os.path.join(args.checkpoints, before))


if saved():
    found = state()
    dcp.load(found, checkpoint_id=os.path.join(args.checkpoints, saved()))
    set_state_dict(net, optimizer, model_state_dict=found["net"], optim_state_dict=found["optimizer"])
    done = int(saved().removeprefix("step-"))
    if rank == 0:
        print(f"continues after step {done} on {world} processes", flush=True)

steps_per_epoch = len(x) // args.batch
for step in range(done + 1, args.steps + 1):
    epoch, at = divmod(step - 1, steps_per_epoch)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(epoch))
    mine = order[at * args.batch:(at + 1) * args.batch][rank::world]
    loss = torch.nn.functional.cross_entropy(net(x[mine] / 255), y[mine])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    # All take part in a save, and the signal may come to one of them a step earlier than to another.
    sums = torch.tensor([loss.item(), float(bool(wanted))])
    dist.all_reduce(sums)
    if rank == 0:
        print(f"step {step} loss {sums[0].item() / world:.4f}", flush=True)
    if sums[1] > 0 or step % 100 == 0 or step == args.steps:
        wanted.clear()
        save(step)

with torch.no_grad():  # all processes: each has only a share of the weights
    right = net(images("t10k-images-idx3-ubyte.gz") / 255).argmax(1) == labels("t10k-labels-idx1-ubyte.gz")
if rank == 0:
    print(f"test accuracy {right.float().mean().item():.4f}", flush=True)
dist.destroy_process_group()
