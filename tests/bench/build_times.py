#!/usr/bin/python3
"""Where the time of a build goes: the programs of the demo and everything, the ten most expensive objects, and how many objects
include the heavy headers.

  ./dev bench build [--dir build]

Reads what ninja keeps of the last build of each object (.ninja_log, .ninja_deps): run it after a cold build on an idle
machine. Seconds are wall-clock time of one compiler process while as many run as there are processors. What ccache
had already compiled shows as nearly nothing.
"""
import argparse
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lint"))
import check_build  # noqa: E402

# What a header's name stands for; one that many objects include belongs behind an interface or in a precompiled header.
HEAVY = {
    "gRPC": r"/grpcpp/grpcpp\.h$|/grpcpp/server_context\.h$|/grpcpp/client_context\.h$",
    "generated protobuf": r"\.pb\.h$",
    "nlohmann json": r"/nlohmann/json\.hpp$",
    "Boost.Beast": r"/boost/beast/(core|http)\.hpp$",
    "yaml-cpp": r"/yaml-cpp/yaml\.h$",
    "LibTorch": r"/(torch|ATen)/.*\.h$",
    "CLI11": r"/CLI/CLI\.hpp$",
    "Eigen": r"/Eigen/Core$",
    "GoogleMock": r"/gmock/gmock\.h$",
    "prometheus-cpp": r"/prometheus/registry\.h$",
}


def objects(folder):
    """Object -> seconds, of the last time it was built."""
    seconds = {}
    with open(os.path.join(folder, ".ninja_log"), encoding="utf-8") as file:
        for line in file:
            if line.startswith("#"):
                continue
            start, end, _, output, _ = line.rstrip("\n").split("\t")
            seconds[output] = (int(end) - int(start)) / 1000
    return seconds


def includes(folder):
    """Object -> the files that it was compiled from."""
    listed = subprocess.run(["ninja", "-C", folder, "-t", "deps"], capture_output=True, text=True, check=True).stdout
    found, current = {}, None
    for line in listed.splitlines():
        named = re.match(r"(\S+): #deps", line)
        if named:
            current = found.setdefault(named.group(1), [])
        elif current is not None and line.startswith("    "):
            current.append(line.strip())
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", default="build", help="the build folder")
    folder = parser.parse_args().dir
    if not os.path.exists(os.path.join(folder, ".ninja_log")):
        print(f"{folder} has no .ninja_log: run ./dev build first", file=sys.stderr)
        return 1
    seconds = {name: s for name, s in objects(folder).items() if name.endswith((".o", ".gch"))}
    sources, (read, _) = includes(folder), check_build.texts(folder)
    for goal, found in check_build.own_objects(folder).items():
        print(f"{goal}: {len(found)} objects, {sum(seconds.get(name, 0) for name in found) / 60:.1f} min of compiler time, "
              f"{sum(read.get(name, 0) for name in found):.0f} MB of text")
    print(f"{len(seconds)} objects, {sum(seconds.values()) / 60:.1f} min of compiler time; the ten most expensive:")
    for name, s in sorted(seconds.items(), key=lambda item: -item[1])[:10]:
        print(f"  {s:6.1f} s  {re.sub(r'CMakeFiles/|[.]dir', '', name)}")
    print("objects that read a heavy header (not those that get it precompiled):")
    for label, pattern in HEAVY.items():
        users = [name for name, files in sources.items() if any(re.search(pattern, f) for f in files)]
        print(f"  {len(users):4d}  {label:20s} {sum(seconds.get(name, 0) for name in users) / 60:5.1f} min in all")
    return 0


if __name__ == "__main__":
    sys.exit(main())
