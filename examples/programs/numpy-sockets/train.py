"""Logistic regression on MNIST with numpy, data-parallel over plain sockets: no PyTorch. Knows nothing of Medley:

  torchrun --nproc_per_node 2 train.py --data ../../lenet --saved /tmp/numpy

or any other launcher that sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Rank 0 adds up the gradients of all. It saves
at SIGUSR1 and every 50 steps, and continues from what it has saved, on any number of processes.
"""
import argparse
import gzip
import os
import signal
import socket
import time

import numpy

parser = argparse.ArgumentParser()
parser.add_argument("--data", required=True)
parser.add_argument("--saved", required=True)
parser.add_argument("--steps", type=int, default=300)
parser.add_argument("--batch", type=int, default=512)
args = parser.parse_args()
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
wanted = []
signal.signal(signal.SIGUSR1, lambda *_: wanted.append(True))


def read(name, header):
    with gzip.open(os.path.join(args.data, name)) as file:
        return numpy.frombuffer(file.read(), dtype=numpy.uint8, offset=header)


def images(name):
    return read(name, 16).reshape(-1, 784).astype(numpy.float32) / 255


def connect():
    """Rank 0: the sockets of the others; another rank: that of rank 0."""
    # MASTER_PORT itself may be taken: torchrun's own store listens there.
    address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]) + 1
    if rank == 0:
        with socket.create_server(("", address[1]), backlog=world) as server:
            server.settimeout(300)
            return [server.accept()[0] for _ in range(world - 1)]
    deadline = time.monotonic() + 300
    while True:
        try:
            return [socket.create_connection(address, timeout=5)]
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def receive(peer, like):
    data = bytearray(like.nbytes)
    view = memoryview(data)
    while view:
        got = peer.recv_into(view)
        if got == 0:
            raise ConnectionError("a peer has closed its connection")
        view = view[got:]
    return numpy.frombuffer(data, dtype=like.dtype).reshape(like.shape)


def add_up(mine):
    """The sum of `mine` over all ranks, the same bits on each."""
    if rank == 0:
        total = mine + sum(receive(peer, mine) for peer in peers)
        for peer in peers:
            peer.sendall(total.tobytes())
        return total
    peers[0].sendall(mine.tobytes())
    return receive(peers[0], mine)


x, y = images("train-images-idx3-ubyte.gz"), read("train-labels-idx1-ubyte.gz", 8).astype(numpy.int64)
weights, done = numpy.zeros((785, 10), numpy.float32), 0  # the last row is the bias
latest = os.path.join(args.saved, "latest.npz")
if os.path.exists(latest):
    with numpy.load(latest) as saved:
        weights, done = saved["weights"], int(saved["step"])
peers = connect()
for peer in peers:
    peer.settimeout(None)
if rank == 0 and done:
    print(f"continues after step {done} on {world} processes", flush=True)


def save(step):
    os.makedirs(args.saved, exist_ok=True)
    with open(latest + ".tmp", "wb") as file:
        numpy.savez(file, weights=weights, step=step)
    os.replace(latest + ".tmp", latest)


def scores(samples):
    return samples @ weights[:-1] + weights[-1]


for step in range(done + 1, args.steps + 1):
    chosen = numpy.random.default_rng(step).integers(len(x), size=args.batch)[rank::world]
    z = scores(x[chosen])
    p = numpy.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    truth = numpy.arange(len(chosen)), y[chosen]
    loss = -numpy.log(p[truth] + 1e-12).sum()
    p[truth] -= 1
    gradient = numpy.concatenate([x[chosen].T @ p, p.sum(axis=0, keepdims=True), numpy.full((1, 10), loss)])
    total = add_up(gradient.astype(numpy.float32)) / args.batch
    weights = weights - numpy.float32(0.5) * total[:-1]
    if rank == 0:
        print(f"step {step} loss {total[-1, 0]:.4f}", flush=True)
        if wanted or step % 50 == 0 or step == args.steps:
            wanted.clear()
            save(step)

if rank == 0:
    right = scores(images("t10k-images-idx3-ubyte.gz")).argmax(1) == read("t10k-labels-idx1-ubyte.gz", 8)
    print(f"test accuracy {right.mean():.4f}", flush=True)
