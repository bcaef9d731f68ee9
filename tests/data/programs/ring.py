"""A program for torchrun without PyTorch: the ranks add a number in each step, by rank 0, over sockets of the standard library.

Rank 0 prints each step, saves at SIGUSR1 and every 50 steps, and all continue from that. Arguments: folder, steps, seconds of a
step and, if the program is not to end before a test has seen what it waits for, a file: the last step begins when it exists. Then,
if not 50, after how many steps it saves.
"""
import json
import os
import signal
import socket
import struct
import sys
import time

folder, steps, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
until = sys.argv[4] if len(sys.argv) > 4 else ""
every = int(sys.argv[5]) if len(sys.argv) > 5 else 50
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
wanted = []
signal.signal(signal.SIGUSR1, lambda *_: wanted.append(True))


def receive(connection):
    data = b""
    while len(data) < 8:
        part = connection.recv(8 - len(data))
        if not part:
            raise ConnectionError("a peer has closed its connection")
        data += part
    return struct.unpack("!q", data)[0]


def connect():
    deadline = time.time() + 60
    while True:
        try:
            return socket.create_connection(address)
        except OSError:
            if time.time() > deadline:
                raise
            time.sleep(0.05)


saved = os.path.join(folder, "latest.json")
state = {"step": 0, "sum": 0}
if os.path.exists(saved):
    with open(saved, encoding="utf-8") as file:
        state = json.load(file)
peers = []
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
    if rank == 0:
        total = 1 + sum(receive(peer) for peer in peers)
        for peer in peers:
            peer.sendall(struct.pack("!q", total))
    else:
        peers[0].sendall(struct.pack("!q", 1))
        total = receive(peers[0])
    state = {"step": step, "sum": state["sum"] + total // world}
    if rank == 0:
        print(f"step {step} loss {1 / step:.5f}", flush=True)
        if wanted or step % every == 0 or step == steps:
            wanted.clear()
            save()
