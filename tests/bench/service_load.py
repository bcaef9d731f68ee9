#!/usr/bin/python3
"""Measures medley-scheduler under load, over REST: distinct and repeated requests, a constant rate, and memory.

  tests/bench/service_load.py [--seconds 10] [--rate 100] [--requests 1000000] [PART...]

Parts: distinct (requests/s of distinct requests, CTRDNN-16, exact), rate (latency at a constant rate of such requests,
from the time at which each was due), cached (requests/s of one repeated request), memory (resident size after warm-up
and after --requests requests). Needs wrk. Prints one line of JSON. The service and the load share the machine.
"""
import argparse
import asyncio
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import yaml

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.path.join(ROOT, "build/bin/medley-scheduler")
LUA = os.path.join(ROOT, "tests/bench/service_requests.lua")
CONNECTIONS = 4  # as many as the service processes at the same time


class Service:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="medley-load-")
        with open(os.path.join(ROOT, "examples/plan/ctrdnn-16.yaml"), encoding="utf-8") as file:
            self.question = yaml.safe_load(file)
        self.question["planner"] = {"name": "exact"}
        self.request = os.path.join(self.folder, "request.json")
        with open(self.request, "w", encoding="utf-8") as file:
            json.dump(self.question, file)
        ports = os.path.join(self.folder, "ports")
        with open(os.path.join(self.folder, "log"), "w", encoding="utf-8") as log:
            self.process = subprocess.Popen([PROGRAM, "--grpc-listen", "127.0.0.1:0", "--rest-listen", "127.0.0.1:0",
                                             "--port-file", ports, "--log-level", "warn"], stdout=log, stderr=log)
        end = time.monotonic() + 30
        while not os.path.exists(ports):
            if time.monotonic() > end or self.process.poll() is not None:
                raise SystemExit("medley-scheduler does not start: ./dev build")
            time.sleep(0.02)
        with open(ports, encoding="utf-8") as file:
            self.port = json.load(file)["rest"]
        self.asked = 0

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        shutil.rmtree(self.folder, ignore_errors=True)

    def rss_mib(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:")) / 1024

    def wrk(self, seconds, distinct, connections=CONNECTIONS):
        """Requests/s, and the number of responses with a code other than 200."""
        environment = {**os.environ, "REQUEST": self.request, "DISTINCT": "1" if distinct else "0", "START": str(self.asked)}
        done = subprocess.run(["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "-s", LUA,
                               f"http://127.0.0.1:{self.port}/v1/plan"], env=environment, capture_output=True, text=True, check=True)
        count = int(re.search(r"(\d+) requests in", done.stdout).group(1))
        rate = float(re.search(r"Requests/sec:\s*([\d.]+)", done.stdout).group(1))
        bad = re.search(r"Non-2xx or 3xx responses: (\d+)", done.stdout)
        errors = re.search(r"Socket errors: (.*)", done.stdout)
        self.asked += count + connections
        if errors:
            raise SystemExit(f"wrk: socket errors: {errors.group(1)}")
        return rate, count, int(bad.group(1)) if bad else 0


async def constant_rate(service, rate, seconds):
    """Latencies in seconds, measured from the time at which each request was due."""
    free = asyncio.Queue()
    for _ in range(16):
        free.put_nowait(await asyncio.open_connection("127.0.0.1", service.port))
    latencies, bad = [], 0

    async def ask(due, body):
        nonlocal bad
        reader, writer = await free.get()
        writer.write(b"POST /v1/plan HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
                     + body)
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(re.search(rb"(?i)content-length: (\d+)", head).group(1)))
        latencies.append(time.perf_counter() - due)
        bad += b" 200 " not in head[:20]
        free.put_nowait((reader, writer))
    bodies = []
    for i in range(int(rate * seconds)):
        floor = service.question["constraints"]["minThroughput"]
        question = {**service.question, "constraints": {"minThroughput": floor - 1 - i * 1e-4}}
        bodies.append(json.dumps(question).encode())
    begin = time.perf_counter() + 0.1
    tasks = []
    for i, body in enumerate(bodies):
        due = begin + i / rate
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        tasks.append(asyncio.create_task(ask(due, body)))
    await asyncio.gather(*tasks)
    return latencies, bad


def distinct(service, options):
    rate, count, bad = service.wrk(options.seconds, True)
    return {"requests_per_second": rate, "requests": count, "not_200": bad}


def rate(service, options):
    service.wrk(2, True)
    latencies, bad = asyncio.run(constant_rate(service, options.rate, options.seconds))
    at = statistics.quantiles(latencies, n=1000, method="inclusive")
    return {"rate": options.rate, "requests": len(latencies), "not_200": bad, "p50_ms": at[499] * 1e3, "p90_ms": at[899] * 1e3,
            "p99_ms": at[989] * 1e3, "max_ms": max(latencies) * 1e3}


def cached(service, options):
    found, count, bad = service.wrk(options.seconds, False, connections=8)
    return {"requests_per_second": found, "requests": count, "not_200": bad}


def memory(service, options):
    # Warm up: fill the cache and run every thread.
    service.wrk(10, True)
    service.wrk(2, False)
    warm, done, sizes = service.rss_mib(), 0, []
    while done < options.requests:
        # Mostly repeated requests, which are fast, and new ones between them, which replace cache entries.
        done += service.wrk(10, False, connections=8)[1]
        done += service.wrk(5, True)[1]
        sizes.append(round(service.rss_mib(), 1))
    return {"warm_mib": round(warm, 1), "end_mib": sizes[-1], "most_mib": max(sizes), "requests": done, "mib": sizes}


PARTS = {"distinct": distinct, "rate": rate, "cached": cached, "memory": memory}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rate", type=float, default=100)
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART")
    options = parser.parse_args()
    found = {}
    for part in options.parts or PARTS:
        service = Service()
        try:
            found[part] = PARTS[part](service, options)
        finally:
            service.close()
        print(f"{part}: {found[part]}", file=sys.stderr, flush=True)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
