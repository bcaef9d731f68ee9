"""Runs the processes of a job with parameter servers, and adds up what its trainers measure.

A script calls `measure`, which starts it again once for each process, with `--role server-0`, `trainer-1` and so on. A trainer calls
`train`, which speaks with `measure` by lines: it says when it is warm, waits until all are, trains for some seconds and says what it
has done.
"""
import json
import os
import signal
import socket
import subprocess
import sys
import time

WARM_UP = 20  # steps


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _expect(process, wanted):
    """The rest of the next line that begins with `wanted`; other lines are the framework's own."""
    for line in process.stdout:
        if line.startswith(wanted):
            return line[len(wanted):].strip()
    raise SystemExit(f"{wanted}: exit status {process.wait()} instead: see the errors above")


def _processor_seconds(processes):
    """That the processes have used, with all their threads."""
    ticks = 0
    for each in processes:
        with open(f"/proc/{each.pid}/stat", encoding="ascii", errors="replace") as file:
            ticks += sum(map(int, file.read().rsplit(")", 1)[1].split()[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def measure(servers, trainers, environment_of, arguments):
    """{"samples_per_second", "processor_seconds_per_sample", "loss", "steps"} of all trainers; processor time is of servers, too.
    environment_of(role, index) is the environment of a process."""
    processes = []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # ends them, too

    def start(role, index):
        command = [sys.executable, *arguments, "--role", f"{role}-{index}"]
        processes.append(subprocess.Popen(command, env=environment_of(role, index), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        return processes[-1]

    try:
        for index in range(servers):
            start("server", index)
        running = [start("trainer", index) for index in range(trainers)]
        for each in running:
            _expect(each, "medley: ready")
        for each in running:
            each.stdin.write("warm up\n")
            each.stdin.flush()
        for each in running:
            _expect(each, "medley: warm")
        before = _processor_seconds(processes)
        for each in running:
            each.stdin.write("train\n")
            each.stdin.flush()
        found = [json.loads(_expect(each, "medley: trained")) for each in running]
        processor = _processor_seconds(processes) - before
    finally:
        for each in processes:
            each.kill()
            each.wait()
    return {"samples_per_second": sum(each["samples"] / each["seconds"] for each in found),
            "processor_seconds_per_sample": processor / sum(each["samples"] for each in found),
            "loss": found[0]["loss"], "steps": sum(each["steps"] for each in found)}


def _say(text):
    print(f"\nmedley: {text}", flush=True)


def train(seconds, run, loss_of):
    """In a trainer. run(seconds or None) trains for about that long, or for a few steps, and returns its samples and steps."""
    _say("ready")
    sys.stdin.readline()
    run(None)
    _say("warm")
    sys.stdin.readline()
    begin = time.perf_counter()
    samples, steps = run(seconds)
    taken = time.perf_counter() - begin
    _say("trained " + json.dumps({"samples": samples, "steps": steps, "loss": loss_of(), "seconds": taken}))
    sys.stdin.readline()  # until it is killed: the others still train
