#!/usr/bin/env python3
"""Makes libraries by which PyTorch's wheel can be imported on a machine without a GPU and without NVIDIA's libraries, which have 2 GB.

  cmake/without_cuda.py PACKAGES        the folder with torch, and with nvidia/cu13 for those of NVIDIA's libraries that are small

PyTorch for Linux comes from the package index with CUDA only, and its libraries need NVIDIA's to be loaded. Nothing calls
them where no GPU is found. For each one that is missing, a library with its name is made below PACKAGES/nvidia, where PyTorch
looks for it. Each function in it ends the program with a sentence. Needs g++ and binutils.
"""
import os
import re
import subprocess
import sys

NVIDIA = re.compile(r"^lib(cu|nccl|nv)[A-Za-z]*[._]")
SYMBOL = re.compile(r"^(cu|nccl|nv)[A-Za-z]")


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def libraries(folder):
    return [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names if ".so" in name]


def needed(path):
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "--dynamic", path)))


def symbols(path, which):
    found = (line.split()[-1].split("@")[0] for line in output("nm", "--dynamic", which, path).splitlines())
    return {name for name in found if SYMBOL.match(name)}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    torch, nvidia = os.path.join(sys.argv[1], "torch", "lib"), os.path.join(sys.argv[1], "nvidia")
    own, present = libraries(torch), libraries(nvidia)
    names = {name for path in own for name in needed(path) if NVIDIA.match(name)}
    names -= {"libcuda.so.1", *(os.path.basename(path) for path in own + present)}  # the driver, which a GPU needs anyway
    wanted = set().union(*(symbols(path, "--undefined-only") for path in own))
    wanted -= set().union(*(symbols(path, "--defined-only") for path in own + present))
    source = "#include <cstdio>\n#include <cstdlib>\nextern \"C\" {\n[[noreturn]] void medley_without_cuda() {\n" \
             "  std::fputs(\"a library of NVIDIA was called that cmake/without_cuda.py has made\\n\", stderr);\n  std::abort();\n}\n"
    source += "".join(f"void {name}() __attribute__((alias(\"medley_without_cuda\")));\n" for name in sorted(wanted)) + "}\n"
    made = os.path.join(nvidia, "cu13", "lib", "without-cuda.so")
    os.makedirs(os.path.dirname(made), exist_ok=True)
    subprocess.run(["g++", "-shared", "-fPIC", "-O1", "-w", "-o", made, "-x", "c++", "-"], input=source, text=True, check=True)
    for name in sorted(names):
        os.symlink(os.path.basename(made), os.path.join(os.path.dirname(made), name))
    print(f"{len(wanted)} functions in {' '.join(sorted(names))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
