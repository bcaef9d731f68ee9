"""What the parts of the GPU kit share: where things are, and how a row of results is printed."""
import json
import os
import subprocess
import sys
import time

KIT = os.environ.get("MEDLEY_KIT", "")  # the unpacked kit
DEVICE = os.environ.get("MEDLEY_KIT_DEVICE", "cpu")  # cpu or cuda
ON_GPU = DEVICE == "cuda"
SCRATCH = os.environ.get("MEDLEY_KIT_SCRATCH", "")  # an empty folder of this part
END = float(os.environ.get("MEDLEY_KIT_END") or time.monotonic() + 3600)  # when this part is cut off, by time.monotonic()
SOURCE = os.path.join(KIT, "source")  # the files of the repository that the kit has


def left():
    """Seconds until this part is cut off."""
    return END - time.monotonic()


def row(what, figure, unit="", bar="", holds=None):
    """Prints a result. bar: what it should be, in words; holds: whether it is, None where there is no bar."""
    line = {"what": what, "figure": figure, "unit": unit, "bar": bar, "holds": None if holds is None else bool(holds)}
    print(json.dumps({key: value for key, value in line.items() if value not in ("", None)}), flush=True)


def skip(what, why):
    """Prints that something was not measured, and why: on a GPU that counts as failed."""
    print(json.dumps({"what": what, "skipped": why, **({"holds": False} if ON_GPU else {})}), flush=True)


def say(text):
    """For log.txt."""
    print(text, file=sys.stderr, flush=True)


def program(name):
    for folder in ("bin", "tests"):
        path = os.path.join(KIT, folder, name)
        if os.path.exists(path):
            return path
    raise SystemExit(f"the kit has no program {name}")


def environment(threads=1, **more):
    """Of the programs. One thread for a figure that is compared with PyTorch on one thread."""
    return {**os.environ, "MEDLEY_SOURCE_DIR": SOURCE, "MEDLEY_BIN_DIR": os.path.join(KIT, "bin"),
            "OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads), **more}


def call(command, seconds=None, threads=1, **more):
    """Runs a program and returns (exit status, standard output, standard error); the status is None if it took too long."""
    say("+ " + " ".join(command))
    try:
        done = subprocess.run(command, capture_output=True, env=environment(threads, **more), stdin=subprocess.DEVNULL,
                              timeout=max(1, min(seconds or 1e9, left() - 1)), check=False)
    except subprocess.TimeoutExpired as expired:
        say((expired.stderr or b"").decode("utf-8", "replace"))
        return None, (expired.stdout or b"").decode("utf-8", "replace"), "it took too long"
    out, err = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
    say(out[-20_000:] + err[-4000:])
    return done.returncode, out, err


def last_line(text):
    lines = text.strip().splitlines()
    return lines[-1][:400] if lines else "no output"
