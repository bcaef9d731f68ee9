"""Which library the dynamic loader takes a symbol from.

LibTorch's libraries let out symbols of gloo, oneDNN and others that are linked into them. Debian's libraries have the same
names with other contents, so a program of Medley that got LibTorch's would fail in ways that nothing explains.
"""
import os
import re
import subprocess

# In a mangled name each part has its length before it.
OURS = re.compile(r"4gloo|6google8protobuf|4absl|4grpc|^grpc_|4dnnl|^dnnl_")
LINE = re.compile(r"binding file (\S+) \[\d+\] to (\S+) \[\d+\]: normal symbol `([^']+)'")


def strangers(lines, torch):
    """(file, library of LibTorch, symbol) of each symbol of OURS that a file not of `torch` gets from a library of `torch`."""
    found = set()
    for line in lines:
        match = LINE.search(line)
        if match is None:
            continue
        user, library, symbol = match.groups()
        inside = [os.path.realpath(path).startswith(torch + "/") for path in (user, library)]
        if inside == [False, True] and OURS.search(symbol):
            found.add((user, library, symbol))
    return sorted(found)


def count(lines):
    return sum(1 for line in lines if LINE.search(line))


def trace(program, argument, environment=None):
    """Starts `program ARGUMENT` with all symbols bound at once, and returns the loader's lines, the exit status and the end of
    what the program wrote to standard error."""
    done = subprocess.run([program, argument], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=120, check=False,
                          env={**(environment or os.environ), "LD_DEBUG": "bindings", "LD_BIND_NOW": "1"})
    lines = done.stderr.decode("utf-8", "replace").splitlines()
    other = [line for line in lines if not re.match(r"\s*\d+:", line)]
    return lines, done.returncode, "\n".join(other)[-400:]
