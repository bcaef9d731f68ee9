"""A program for torchrun without PyTorch: the ranks train a line by least squares, and add a number in each step, by rank 0, over
sockets of the standard library.

Rank 0 prints each step, saves at SIGUSR1 and every 50 steps, and all continue from that. A step is the same on any number of ranks,
but for the rounding of sums. What is saved after the last step says how well the line fits other samples: test_loss. Arguments: folder, steps, seconds of a
step and, if the program is not to end before a test has seen what it waits for, a file: the last step begins when it exists. Then,
if not 50, after how many steps it saves. Then a file, to which rank 0 adds a line for each step, before it is reported.
"""
import json
import os
import random
import signal
import socket
import struct
import sys
import time

folder, steps, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
until = sys.argv[4] if len(sys.argv) > 4 else ""
every = int(sys.argv[5]) if len(sys.argv) > 5 else 50
record = sys.argv[6] if len(sys.argv) > 6 else ""
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
VALUES = struct.Struct("!4d")  # the number, and a gradient
BATCH = 8
wanted = []
signal.signal(signal.SIGUSR1, lambda *_: wanted.append(True))


def receive(connection):
    data = b""
    while len(data) < VALUES.size:
        part = connection.recv(VALUES.size - len(data))
        if not part:
            raise ConnectionError("a peer has closed its connection")
        data += part
    return VALUES.unpack(data)


def connect():
    deadline = time.time() + 60
    while True:
        try:
            return socket.create_connection(address)
        except OSError:
            if time.time() > deadline:
                raise
            time.sleep(0.05)


def sample(seed):
    source = random.Random(seed)
    x = (source.uniform(-1, 1), source.uniform(-1, 1), 1.0)
    return x, 2 * x[0] - 3 * x[1] + 0.5 + source.gauss(0, 0.1)


def error(weights, seed):
    x, y = sample(seed)
    return sum(w * v for w, v in zip(weights, x)) - y, x


def gradient(weights, step):
    """Of this rank's part of the step's samples."""
    total = [0.0, 0.0, 0.0]
    for i in range(rank, BATCH, world):
        wrong, x = error(weights, step * BATCH + i)
        total = [t + 2 * wrong * v / BATCH for t, v in zip(total, x)]
    return total


saved = os.path.join(folder, "latest.json")
state = {"step": 0, "sum": 0, "weights": [0.0, 0.0, 0.0]}
if os.path.exists(saved):
    with open(saved, encoding="utf-8") as file:
        state = json.load(file)
peers = []
if rank == 0 and record:
    os.makedirs(os.path.dirname(record), exist_ok=True)
if rank == 0:
    server = socket.create_server(("", address[1]))
    peers = [server.accept()[0] for _ in range(world - 1)]
else:
    peers = [connect()]


def save():
    os.makedirs(folder, exist_ok=True)
    with open(saved + ".tmp", "w", encoding="utf-8") as file:
        json.dump(state, file)
    os.replace(saved + ".tmp", saved)
    wanted.clear()


for step in range(state["step"] + 1, steps + 1):
    time.sleep(seconds / world)
    while until and step == steps and not os.path.exists(until):
        time.sleep(0.02)
        if wanted and rank == 0:
            save()
    mine = (1.0, *gradient(state["weights"], step))
    if rank == 0:
        total = [sum(values) for values in zip(mine, *(receive(peer) for peer in peers))]
        for peer in peers:
            peer.sendall(VALUES.pack(*total))
    else:
        peers[0].sendall(VALUES.pack(*mine))
        total = receive(peers[0])
    weights = [w - 0.02 * g for w, g in zip(state["weights"], total[1:])]
    state = {"step": step, "sum": state["sum"] + int(total[0]) // world, "weights": weights}
    if step == steps:
        state["test_loss"] = sum(error(weights, 2**40 + seed)[0] ** 2 for seed in range(500)) / 500
    if rank == 0 and record:
        with open(record, "a", encoding="utf-8") as file:
            file.write(f"{step}\n")
    if rank == 0:
        print(f"step {step} loss {1 / step:.5f}", flush=True)
        if wanted or step % every == 0 or step == steps:
            wanted.clear()
            save()
