#!/usr/bin/env python3
"""Runs the scripts of examples/programs as their users would (program_examples_test).

Each script runs first without Medley, as processes with the variables that torchrun gives, on two ranks and from there on one.
Then `medley run` runs its job, whose scenario says what happens meanwhile and what is expected. examples/programs/ddp-mnist is left out:
docs_use_test runs it. hf-trainer needs what ./dev setup programs installs.
"""
import os
import re
import socket
import subprocess
import sys
import tempfile

SOURCE = os.environ["MEDLEY_SOURCE_DIR"]
BIN = os.environ["MEDLEY_BIN_DIR"]
WHEELS = os.path.join(SOURCE, "build", "wheels-programs")
FOLDER = os.path.join(SOURCE, "examples", "programs")
BOUND = 600  # seconds of one run, which only ends one that hangs
# script: (arguments but for the steps, its argument for what it saves, steps of the two runs, the accuracy that it must reach)
SCRIPTS = {
    "numpy-sockets": (["--data", "../../lenet"], "--saved", (200, 260), 0.85),
    "hf-trainer": ([], "--output", (60, 80), 0.75),
}


def environment():
    found = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    found["PATH"] = f"{WHEELS}/bin:/usr/bin:/bin"
    return found


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def launch(name, world, steps, saved):
    """What rank 0 prints."""
    arguments, option, _, _ = SCRIPTS[name]
    command = ["python3", "train.py", *arguments, option, saved, "--steps", str(steps)]
    port, ranks = str(free_port()), []
    for rank in range(world):
        variables = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(world), "LOCAL_WORLD_SIZE": str(world),
                     "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        ranks.append(subprocess.Popen(command, cwd=os.path.join(FOLDER, name), env={**environment(), **variables}, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
    try:
        printed = [each.communicate(timeout=BOUND)[0] for each in ranks]
    finally:
        for each in ranks:
            each.kill()
    for rank, each in enumerate(ranks):
        assert each.returncode == 0, f"{name}: rank {rank} ended with {each.returncode}:\n{printed[rank]}"
    return printed[0]


def first_step(printed):
    return int(re.search(r"^step (\d+) loss", printed, re.M).group(1))


def alone(name, folder):
    _, _, (steps, more), least = SCRIPTS[name]
    saved = os.path.join(folder, "saved")
    printed = launch(name, 2, steps, saved)
    assert first_step(printed) == 1 and f"step {steps} loss" in printed, printed
    printed = launch(name, 1, more, saved)
    assert first_step(printed) == steps + 1, printed
    accuracy = float(re.search(r"test accuracy ([\d.]+)", printed).group(1))
    assert accuracy >= least, f"{name}: accuracy {accuracy}, expected {least}"
    print(f"{name}: {accuracy} on its own")


def with_medley(name, folder):
    saved = os.path.join(folder, "exported")
    command = [os.path.join(BIN, "medley"), "run", os.path.join(FOLDER, name, "job.yaml"), "--export", saved]
    ran = subprocess.run(command, cwd=folder, env=environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         timeout=BOUND, check=False)
    assert ran.returncode == 0, f"{name}: medley run ended with {ran.returncode}:\n{ran.stdout}"
    assert re.search(r"condition\s+Complete", ran.stdout), ran.stdout
    assert "exported model" not in ran.stdout, ran.stdout
    assert os.listdir(saved), f"{name}: nothing was saved"
    for pause in re.findall(r"^(?:rescale|recovery) .*paused for .*$", ran.stdout, re.M):
        assert "from the program's start to its first step" in pause, pause
        print(f"{name}: {pause}")


def main():
    for name in SCRIPTS:
        if name == "hf-trainer" and not os.path.isdir(WHEELS):
            print(f"NOT TESTED: {name}: ./dev setup programs installs what it needs", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory() as folder:
            alone(name, folder)
            with_medley(name, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
