#!/usr/bin/env python3
"""Runs the scripts of examples/programs as their users would (program_examples_SCRIPT_test).

Each script runs first without Medley, on two ranks and from there on one: with the variables that torchrun gives, or, where PyTorch has
one that starts, by torchrun. Then `medley run` runs its job, whose scenario says what happens meanwhile and what is expected.
Scripts for PyTorch 2 move from two ranks to one, a rank is killed after it, and they learn what an undisturbed run has learned.
examples/programs/ddp-mnist is left out: docs_use_test runs it. Scripts that need what ./dev setup programs installs are NOT RUN
without it.

    MEDLEY_SOURCE_DIR=$PWD MEDLEY_BIN_DIR=$PWD/build/bin tests/integration/run/program_examples_test.py [SCRIPT...]
"""
import glob
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading

SOURCE = os.environ["MEDLEY_SOURCE_DIR"]
BIN = os.environ["MEDLEY_BIN_DIR"]
FOLDER = os.path.join(SOURCE, "examples", "programs")
BOUND = 600  # seconds of one run, which only ends one that hangs
# script: (folder of its Python below build/, arguments but for the steps, its argument for what it saves, steps of the two runs on its
# own, the accuracy that it must reach)
SCRIPTS = {
    "numpy-sockets": ("", ["--data", "../../lenet"], "--saved", (200, 260), 0.85),
    "hf-trainer": ("wheels-programs", [], "--output", (60, 80), 0.75),
    "fsdp-mnist": ("wheels-torch-2", ["--data", "../../lenet"], "--checkpoints", (50, 60), 0.89),
    "lightning-mnist": ("wheels-torch-2", ["--data", "../../lenet"], "--checkpoints", (50, 60), 0.89),
}
# Both scripts for PyTorch 2 train the same network on the same samples: the steps of their jobs, and the test accuracy of a run
# without Medley that nothing disturbs. Steps that were trained twice or left out would change it.
JOB_STEPS, UNDISTURBED, NOISE = 500, 0.9741, 0.003


def has_torchrun(name):
    return SCRIPTS[name][0] == "wheels-torch-2"


def environment(name):
    found = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    found["PATH"] = f"{SOURCE}/build/{SCRIPTS[name][0]}/bin:/usr/bin:/bin"
    return found


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def arguments_of(name, steps, saved):
    _, arguments, option, _, _ = SCRIPTS[name]
    return ["train.py", *arguments, option, saved, "--steps", str(steps)]


def by_torchrun(name, world, steps, saved):
    """What the ranks print."""
    command = ["python3", "-m", "torch.distributed.run", "--nproc_per_node", str(world), "--master_port", str(free_port())]
    ran = subprocess.run(command + arguments_of(name, steps, saved), cwd=os.path.join(FOLDER, name), env=environment(name), text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=BOUND, check=False)
    assert ran.returncode == 0, f"{name}: torchrun ended with {ran.returncode}:\n{ran.stdout}"
    return ran.stdout


def by_hand(name, world, steps, saved):
    """What rank 0 prints."""
    port, ranks = str(free_port()), []
    for rank in range(world):
        variables = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(world), "LOCAL_WORLD_SIZE": str(world),
                     "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        ranks.append(subprocess.Popen(["python3", *arguments_of(name, steps, saved)], cwd=os.path.join(FOLDER, name),
                                      env={**environment(name), **variables}, text=True, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT))
    try:
        printed = [each.communicate(timeout=BOUND)[0] for each in ranks]
    finally:
        for each in ranks:
            each.kill()
    for rank, each in enumerate(ranks):
        assert each.returncode == 0, f"{name}: rank {rank} ended with {each.returncode}:\n{printed[rank]}"
    return printed[0]


def launch(name, world, steps, saved):
    return (by_torchrun if has_torchrun(name) else by_hand)(name, world, steps, saved)


def first_step(printed):
    return int(re.search(r"^step (\d+) loss", printed, re.M).group(1))


def accuracy_in(printed):
    return float(re.search(r"test accuracy ([\d.]+)", printed).group(1))


def alone(name, folder):
    *_, (steps, more), least = SCRIPTS[name]
    saved = os.path.join(folder, "saved")
    printed = launch(name, 2, steps, saved)
    assert first_step(printed) == 1 and f"step {steps} loss" in printed, printed
    printed = launch(name, 1, more, saved)
    assert first_step(printed) == steps + 1, printed
    reached = accuracy_in(printed)
    assert reached >= least, f"{name}: accuracy {reached}, expected {least}"
    print(f"{name}: {reached} on its own", flush=True)


def ranks_below(folder):
    """The processes of the script whose files are below the folder."""
    found = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                words = file.read().split("\0")
        except OSError:
            continue
        if any(word.endswith("train.py") for word in words) and any(word.startswith(folder) for word in words):
            found.append(int(path.split("/")[2]))
    return found


def with_medley(name, folder, kill):
    """The folder with what the job has saved. `kill`: a rank is killed after the move."""
    saved, printed, killed = os.path.join(folder, "exported"), "", []
    command = [os.path.join(BIN, "medley"), "run", os.path.join(FOLDER, name, "job.yaml"), "--plain", "--export", saved,
               "--folder", os.path.join(folder, "run")]
    with subprocess.Popen(command, cwd=folder, env=environment(name), text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT) as run:
        watchdog = threading.Timer(BOUND, run.kill)
        watchdog.start()
        for line in run.stdout:
            printed += line
            if kill and not killed and "Rescaled: generation 1 -> 2" in line:
                killed = ranks_below(os.path.join(folder, "run"))
                assert len(killed) == 1, f"{name}: one rank was expected, found {killed}:\n{printed}"
                os.kill(killed[0], signal.SIGKILL)
        watchdog.cancel()
    assert run.returncode == 0, f"{name}: medley run ended with {run.returncode}:\n{printed}"
    assert re.search(r"condition\s+Complete", printed), printed
    assert "exported model" not in printed, printed
    assert os.listdir(saved), f"{name}: nothing was saved"
    if kill:
        assert killed and "was killed by SIGKILL" in printed and re.search(r"^recovery ", printed, re.M), printed
    for pause in re.findall(r"^(?:rescale|recovery) .*paused for .*$", printed, re.M):
        assert "from the program's start to its first step" in pause, pause
        print(f"{name}: {pause}", flush=True)
    return saved


def run(name):
    with tempfile.TemporaryDirectory() as folder:
        alone(name, folder)
        saved = with_medley(name, folder, has_torchrun(name))
        if not has_torchrun(name):
            return
        # It has nothing left to train, and says what it has learned.
        printed = by_hand(name, 1, JOB_STEPS, os.path.join(saved, os.listdir(saved)[0]))
        assert f"continues after step {JOB_STEPS} on 1 processes" in printed, printed
        reached = accuracy_in(printed)
        assert abs(reached - UNDISTURBED) <= NOISE, f"{name}: accuracy {reached}, and {UNDISTURBED} undisturbed"
        print(f"{name}: {reached} with a move and a kill, {UNDISTURBED} undisturbed", flush=True)


def main():
    missing = 0
    for name in [word.replace("_", "-") for word in sys.argv[1:]] or SCRIPTS:
        python = SCRIPTS[name][0]
        if python and not os.path.exists(os.path.join(SOURCE, "build", python, "installed.txt")):
            print(f"NOT RUN: examples/programs/{name}: ./dev setup programs installs what it needs", file=sys.stderr, flush=True)
            missing += 1
            continue
        run(name)
    return 77 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
