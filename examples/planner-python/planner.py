#!/usr/bin/python3
"""A planner for Medley's scheduling service, as a process of its own: hill climbing from random schedules.

It has no cost model. It only guesses what a schedule costs and sends what its guess likes; the service computes the units
and the true cost of each candidate, and decides.
"""
import argparse
import concurrent.futures
import importlib
import itertools
import os
import random
import subprocess
import sys
import tempfile

import grpc

PROTO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "proto")


def generate(folder):
    """Generates the messages of planner.proto and returns their module."""
    files = [f"medley/{name}.proto" for name in ("planner/v1/planner", "scheduler/v1/scheduler", "plan/v1/plan",
                                                 "profile/v1/profile")]
    subprocess.run(["protoc", f"-I{PROTO}", f"--python_out={folder}", *files], check=True)
    sys.path.insert(0, folder)
    return importlib.import_module("medley.planner.v1.planner_pb2")


def schedules(request, rng, starts):
    """Yields different schedules: the resource type of each layer. Each start guesses anew what time and changes cost."""
    seconds = [{p.resource_type: p.compute_seconds + p.sync_seconds for p in layer.profiles
                if p.resource_type in {resource.name for resource in request.resources}} for layer in request.model.layers]
    sent = set()
    for _ in range(starts):
        price = {r.name: r.price_per_unit_hour * rng.expovariate(1) for r in request.resources}
        change = rng.expovariate(4) * sum(min(s * price[n] for n, s in layer.items()) for layer in seconds) / len(seconds)

        def guess(schedule):
            return (sum(layer[name] * price[name] for layer, name in zip(seconds, schedule)) +
                    change * sum(a != b for a, b in itertools.pairwise(schedule)))

        schedule = tuple(rng.choice(list(layer)) for layer in seconds)
        for i in rng.choices(range(len(seconds)), k=8 * len(seconds)):
            schedule = min(schedule, (*schedule[:i], rng.choice(list(seconds[i])), *schedule[i + 1:]), key=guess)
        if schedule not in sent:
            sent.add(schedule)
            yield schedule


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--listen", default="127.0.0.1:7072", help="HOST:PORT or unix:PATH")
    parser.add_argument("--starts", type=int, default=200, help="random schedules to climb from")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="medley-planner-") as folder:
        pb = generate(folder)

    def solve(question, context):  # grpc ends the generator when the service cancels the call
        print(f"solving {question.request.model.name} with seed {question.seed}", flush=True)
        for schedule in schedules(question.request, random.Random(question.seed), options.starts):
            yield pb.SolveResponse(schedule=schedule)

    handler = grpc.unary_stream_rpc_method_handler(solve, pb.SolveRequest.FromString, pb.SolveResponse.SerializeToString)
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(4), maximum_concurrent_rpcs=4)
    server.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler("medley.planner.v1.PlannerService", {"Solve": handler})])
    server.add_insecure_port(options.listen)
    server.start()
    print(f"ready at {options.listen}", flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main()
