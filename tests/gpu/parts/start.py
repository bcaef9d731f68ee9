"""Does everything start here? The machine, the programs, and whose symbols they get."""
import os
import platform
import shutil
import subprocess

import bindings
import kit

# Programs, what makes each say something and end, and its exit status then. medley-torchscript, which only Medley starts, refuses.
PROGRAMS = {"medley": ("--help", 0), "medley-operator": ("--help", 0), "medley-scheduler": ("--help", 0),
            "medley-worker": ("--help", 0), "medley-worker-torch": ("--help", 0), "medley-torchscript": ("--help", 1),
            "exported_bench": ("--help", 0), "worker_device_test": ("--gtest_list_tests", 0),
            "worker_aten_test": ("--gtest_list_tests", 0), "worker_aten_layers_test": ("--gtest_list_tests", 0)}


def machine():
    kit.row("system", f"{platform.freedesktop_os_release().get('PRETTY_NAME', 'unknown')}, {platform.release()}")
    kit.row("CPUs", os.cpu_count())
    kit.row("memory", round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1), "GiB")
    if not kit.ON_GPU:
        kit.skip("the card", "--cpu")
        return
    smi = shutil.which("nvidia-smi", path=os.environ.get("PATH", "") + ":/usr/local/nvidia/bin")
    if smi is None:
        kit.row("cards: name, driver, memory, compute capability", "there is no nvidia-smi")
        return
    done = subprocess.run([smi, "--query-gpu=name,driver_version,memory.total,compute_cap", "--format=csv,noheader"],
                          capture_output=True, text=True, timeout=60, check=False)
    cards = done.stdout.strip().splitlines()
    kit.row("cards: name, driver, memory, compute capability", cards or kit.last_line(done.stderr), "", "at least one", bool(cards))


def main():
    machine()
    torch, strangers = os.path.realpath(os.path.join(kit.KIT, "torch")), []
    for name, (argument, status) in PROGRAMS.items():
        path = kit.program(name)
        libraries = subprocess.run(["ldd", path], capture_output=True, text=True, timeout=60, check=False)
        missing = [line.split()[0] for line in libraries.stdout.splitlines() if "not found" in line]
        if missing:
            kit.row(f"{name} finds its libraries", f"missing: {' '.join(missing)}", holds=False)
            continue
        lines, code, said = bindings.trace(path, argument, kit.environment())
        kit.row(f"{name} {argument}", "starts" if code == status else f"exit status {code}: {kit.last_line(said)}", "", "", code == status)
        found = bindings.strangers(lines, torch)
        strangers += found
        kit.say(f"{name}: {bindings.count(lines)} symbols bound; from LibTorch's libraries by mistake: {found}")
        if bindings.count(lines) == 0:
            kit.row(f"{name}: symbols bound", 0, "", "the loader says which", False)
    kit.row("symbols of gloo, protobuf, absl, grpc or oneDNN from LibTorch's libraries", len(strangers), "", "0", not strangers)


if __name__ == "__main__":
    main()
