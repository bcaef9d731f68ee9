#!/usr/bin/env python3
"""The kit's runner with parts that are made up, and what the packer and the table decide."""
import importlib.machinery
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "parts")]


def load(name):
    loader = importlib.machinery.SourceFileLoader(name, os.path.join(HERE, name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


import bindings  # noqa: E402
import table  # noqa: E402

runner, packer = load("run"), load("pack")
ROW = "print('{\"what\": \"a\", \"figure\": 1}', flush=True)\n"
GOOD = ROW
PARTS = {name: GOOD for name, _, _ in runner.PARTS}


def runs(pid):
    """Whether the process runs; one that ended and that nobody has waited for does not."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


class RunTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="kit-test-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.torch = os.path.join(self.folder, "site", "torch")
        os.makedirs(self.torch)
        with open(os.path.join(self.torch, "__init__.py"), "w", encoding="utf-8") as file:
            file.write("raise SystemExit('the runner must not import it')\n")
        self.write_version("2.11.0+cu130")
        shutil.copy(os.path.join(HERE, "run"), self.folder)

    def write_version(self, version):
        with open(os.path.join(self.torch, "version.py"), "w", encoding="utf-8") as file:
            file.write(f"from typing import Optional\n__version__ = '{version}'\ndebug = False\n")

    def make_kit(self, parts):
        source = os.path.join(self.folder, "source")
        os.makedirs(os.path.join(source, "parts"))
        with open(os.path.join(source, "kit.json"), "w", encoding="utf-8") as file:
            json.dump({"commit": "c" * 40, "torch": "2.11.0+cu130"}, file)
        for name, text in parts.items():
            with open(os.path.join(source, "parts", name.replace("-", "_") + ".py"), "w", encoding="utf-8") as file:
                file.write(text)
        with tarfile.open(os.path.join(self.folder, "kit.txz"), "w:xz") as tar:
            tar.add(source, ".")

    def run_kit(self, *arguments):
        environment = {**os.environ, "PYTHONPATH": os.path.join(self.folder, "site")}
        environment.pop("OUT", None)
        environment["TMPDIR"] = os.path.join(self.folder, "tmp")
        os.makedirs(environment["TMPDIR"], exist_ok=True)
        return subprocess.run([sys.executable, os.path.join(self.folder, "run"), "--cpu", *arguments], capture_output=True,
                              text=True, env=environment, cwd=self.folder, check=False, timeout=100)

    def results(self):
        with open(os.path.join(self.folder, "gpu-kit-results", "results.json"), encoding="utf-8") as file:
            return json.load(file)

    def test_all_parts_in_their_order(self):
        self.make_kit(PARTS)
        done = self.run_kit()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([part["part"] for part in self.results()["parts"]], [name for name, _, _ in runner.PARTS])
        self.assertEqual({part["status"] for part in self.results()["parts"]}, {"passed"})
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        self.assertEqual(lines, self.results()["parts"])
        self.assertEqual(os.listdir(os.path.join(self.folder, "tmp")), [], "the unpacked kit is removed")

    def test_a_part_that_fails_stops_no_other(self):
        bad = {"start": "import sys; sys.stderr.write('line\\n' * 500 + 'what went wrong'); raise SystemExit(3)\n", "models": ROW + "print('{\"what\": \"b\", \"figure\": 2, \"holds\": false}')\n",
               "memory": "pass\n", "faults": "print('no row')\n", "device-tests": "import os; os.kill(os.getpid(), 11)\n",
               "switch": "print('{\"what\": \"a\", \"skipped\": \"it needs a GPU\"}')\n"}
        self.make_kit({**PARTS, **bad})
        done = self.run_kit()
        self.assertEqual(done.returncode, 1, done.stderr)
        found = {part["part"]: part for part in self.results()["parts"]}
        self.assertEqual({name: part["status"] for name, part in found.items()},
                         {"start": "failed", "device-tests": "failed", "models": "failed", "click": "passed", "heterps": "passed", "memory": "failed",
                          "faults": "failed", "switch": "skipped"})
        self.assertEqual(found["start"]["why"], "exit status 3")
        self.assertEqual(found["models"]["why"], "b")
        self.assertIn("line\nwhat went wrong\n", done.stderr, "only the output of a run in CI is kept")
        self.assertLess(done.stderr.count("line\n"), 100)
        self.assertEqual(found["memory"]["why"], "it measured nothing")

    def test_what_was_measured_before_the_end_is_kept(self):
        hang = ROW + "import subprocess, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" \
                     "child = subprocess.Popen(['sleep', '1000'])\nopen(%r, 'w').write(str(child.pid))\ntime.sleep(1000)\n"
        pid = os.path.join(self.folder, "pid")
        self.make_kit({**PARTS, "start": hang % pid})
        done = self.run_kit("start", "switch", "--minutes", "0.12")
        self.assertEqual(done.returncode, 1)
        first, second = self.results()["parts"]
        self.assertEqual((first["status"], first["rows"]), ("cut off", [{"what": "a", "figure": 1}]))
        self.assertEqual(second["status"], "not begun")
        with open(pid, encoding="utf-8") as file:
            self.assertFalse(runs(file.read()), "what the part started must end with it")

    def test_another_pytorch_is_refused_by_one_sentence(self):
        self.make_kit(PARTS)
        self.write_version("2.9.1+cu128")
        done = self.run_kit()
        self.assertEqual(done.returncode, 2)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn("this kit was built for PyTorch 2.11.0+cu130", done.stderr)
        self.assertIn("2.9.1+cu128", done.stderr)
        shutil.rmtree(self.torch)
        self.assertIn("has no PyTorch", self.run_kit().stderr)

    def test_a_kit_that_is_not_whole_is_refused(self):
        self.assertIn("there is no", self.run_kit().stderr)
        self.make_kit(PARTS)
        path = os.path.join(self.folder, "kit.txz")
        with open(path, "rb") as file:
            content = file.read()
        with open(path, "wb") as file:
            file.write(content[:len(content) // 2])
        done = self.run_kit()
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)
        self.assertIn("is no whole kit", done.stderr)

    def test_the_parts_fit_into_nine_minutes(self):
        self.assertLessEqual(sum(on_gpu for _, on_gpu, _ in runner.PARTS), 9 * 60 - 20)

    def test_an_unknown_part_is_refused(self):
        self.make_kit(PARTS)
        done = self.run_kit("modles")
        self.assertEqual(done.returncode, 2)
        self.assertIn("the parts are start, device-tests, models", done.stderr)


class BindingsTest(unittest.TestCase):
    LINE = "   123:\tbinding file {} [0] to {} [0]: normal symbol `{}' [V1]"

    def found(self, user, library, symbol):
        return bindings.strangers([self.LINE.format(user, library, symbol)], "/site/torch")

    def test_only_symbols_of_others_from_libtorch(self):
        gloo = "_ZN4gloo7ContextD1Ev"
        self.assertEqual(self.found("/kit/bin/worker", "/site/torch/lib/libtorch_cpu.so", gloo),
                         [("/kit/bin/worker", "/site/torch/lib/libtorch_cpu.so", gloo)])
        self.assertEqual(self.found("/kit/bin/worker", "/kit/lib/libgloo.so", gloo), [])
        self.assertEqual(self.found("/site/torch/lib/libtorch_cpu.so", "/site/torch/lib/libtorch_cpu.so", gloo), [])
        self.assertEqual(self.found("/kit/bin/worker", "/site/torch/lib/libtorch_cpu.so", "_ZN2at5emptyEv"), [])
        for symbol in ("_ZN6google8protobuf7MessageD2Ev", "_ZN4absl6StatusC1Ev", "_ZNK4grpc6Status2okEv", "grpc_init", "dnnl_sgemm"):
            self.assertEqual(len(self.found("/kit/bin/worker", "/site/torch/lib/libtorch.so", symbol)), 1, symbol)

    def test_the_loader_of_this_machine_says_it_so(self):
        lines, code, _ = bindings.trace(sys.executable, "--version")
        self.assertEqual(code, 0)
        self.assertGreater(bindings.count(lines), 100)


class PackTest(unittest.TestCase):
    def test_what_every_linux_has_stays_out(self):
        for name in ("libc.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libm.so.6", "libcuda.so.1", "ld-linux-x86-64.so.2"):
            self.assertTrue(packer.HOST.match(name), name)
        for name in ("libcares.so.2", "libgrpc.so.29", "libcurl.so.4", "libdnnl.so.2", "libmd.so.0", "libresolver.so.1"):
            self.assertFalse(packer.HOST.match(name), name)

    def test_a_path_of_this_machine_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "program"), "wb") as file:
                file.write(b"\x7fELF\0/home/me/medley/worker/x.cc\0")
            with self.assertRaisesRegex(packer.Refusal, "program has a path of this machine in it: /home/me/medley/worker/x.cc"):
                packer.check_paths(folder, ["/home/me/medley"])
            packer.check_paths(folder, ["/home/you"])

    def test_the_same_files_give_the_same_bytes(self):
        with tempfile.TemporaryDirectory() as folder:
            kits = []
            for name in ("a", "b"):
                os.makedirs(os.path.join(folder, name, "bin"))
                for file in ("bin/x", "y") if name == "a" else ("y", "bin/x"):
                    with open(os.path.join(folder, name, file), "w", encoding="utf-8") as out:
                        out.write(file)
                packer.pack(os.path.join(folder, name), os.path.join(folder, name + ".txz"))
                with open(os.path.join(folder, name + ".txz"), "rb") as file:
                    kits.append(file.read())
            self.assertEqual(kits[0], kits[1])


class TableTest(unittest.TestCase):
    def test_cells_are_figures_or_empty(self):
        rows = [{"what": "bert, batch 32: a step", "figure": 12.5, "unit": "ms"},
                {"what": "bert, batch 32: a step of eager PyTorch", "figure": 10.1, "unit": "ms"},
                {"what": "bert: gradients from float64", "figure": 0.5, "holds": False}]
        run = {"machine": "NVIDIA H100", "commit": "abcdef0123", "began": "2026-12-01T10:00Z", "parts": [{"part": "models", "rows": rows}]}
        text = table.table([run])
        self.assertIn("| what | NVIDIA H100, abcdef01, 2026-12-01 |", text)
        self.assertIn("| bert: a step | 12.5 ms |", text)
        self.assertIn("| bert: a step of eager PyTorch | 10.1 ms |", text)
        self.assertIn("| bert: gradients from float64 | 0.5 (**failed**) |", text)
        self.assertIn("| lenet: a step |  |", text)
        self.assertIn("no run on a GPU yet", table.table([]))


if __name__ == "__main__":
    unittest.main()
