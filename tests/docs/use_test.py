#!/usr/bin/env python3
"""Follows the pages of docs/use literally, as a new user would (docs_use_test).

One shell reads the pages in the order of the site, so that a page can use what the page before it started. Its folder is
new and contains what a clone has (links to examples/, deploy/ and charts/); `medley` and the other programs are in PATH, and
no kubeconfig of the caller is seen. Pages of docs/design with commands are read afterwards, each by a shell and in a
folder of its own. A block fails when its exit status is another than the page says, when it does not print what the page
promises, or when it takes longer than its bound. In the end everything that the pages started is ended.

    MEDLEY_BIN_DIR=build/bin tests/docs/use_test.py [PAGE...]
"""
import ctypes
import os
import select
import signal
import shutil
import subprocess
import sys
import tempfile
import time

import pages
import tree

PR_SET_CHILD_SUBREAPER = 36
END = "end-of-block-4f1c"
CLONE = ("examples", "deploy", "charts", "docs", "proto")


class Failure(Exception):
    pass


class Shell:
    """A bash that is given one block after the other."""

    def __init__(self, folder, bin_dir):
        keep = ("LANG", "LC_ALL", "TERM", "ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS", "LD_LIBRARY_PATH")
        environment = {name: os.environ[name] for name in keep if name in os.environ}
        environment.update(HOME=os.path.join(folder, "home"), TMPDIR=os.path.join(folder, "tmp"),
                           PATH=f"{bin_dir}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        os.makedirs(environment["HOME"])
        os.makedirs(environment["TMPDIR"])
        self.clone = os.path.join(folder, "medley")
        os.makedirs(os.path.join(self.clone, "build"))
        for name in CLONE:
            os.symlink(os.path.join(tree.ROOT, name), os.path.join(self.clone, name))
        os.symlink(bin_dir, os.path.join(self.clone, "build", "bin"))
        self.blocks = os.path.join(folder, "blocks")
        os.makedirs(self.blocks)
        self.count = 0
        # As an interactive shell has it, a job in the background is a process group of its own (-m).
        self.process = subprocess.Popen(["/bin/bash", "--noprofile", "--norc", "-m"], cwd=self.clone, env=environment,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        os.set_blocking(self.process.stdout.fileno(), False)

    def run(self, script, seconds, may_fail=False):
        """(exit status, output). Raises Failure when the time is over or the shell has ended."""
        self.count += 1
        file = os.path.join(self.blocks, f"{self.count}.sh")
        with open(file, "w", encoding="utf-8") as out:
            out.write(script)
        # A failing line ends the block, as it would stop a reader. Only a block that is to fail gets a subshell, since others
        # export variables and start jobs.
        command = f"set -eo pipefail; trap 's=$?; echo; echo {END} $s' EXIT; . {file} </dev/null; trap - EXIT; set +e; " \
                  f"echo; echo {END} 0\n"
        if may_fail:
            command = f"( set -eo pipefail; . {file} ) </dev/null; s=$?; echo; echo {END} $s\n"
        self.process.stdin.write(command.encode())
        self.process.stdin.flush()
        output, deadline = b"", time.monotonic() + seconds
        while time.monotonic() < deadline:
            ready, _, _ = select.select([self.process.stdout], [], [], min(0.5, max(0, deadline - time.monotonic())))
            if not ready:
                continue
            part = self.process.stdout.read()
            if part:
                output += part
            text = output.decode(errors="replace")
            if f"\n{END} " in text and text.endswith("\n"):
                before, _, after = text.rpartition(f"\n{END} ")
                return int(after.split()[0]), before
            if not part and self.process.poll() is not None:
                raise Failure(f"the shell ended: {text}")
        raise Failure(f"not done after {seconds:.0f} s:\n{output.decode(errors='replace')}")


def children_of(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def descendants(pid):
    found = []
    for child in children_of(pid):
        found += [child, *descendants(child)]
    return found


def end_everything(seconds=20):
    """Ends what the shells started, politely first. The test adopts orphans, so that all are descendants of it."""
    started = time.monotonic()
    sent = set()
    while True:
        alive = descendants(os.getpid())
        if not alive:
            return
        late = time.monotonic() - started > seconds
        for pid in alive:
            if late or pid not in sent:
                sent.add(pid)
                try:
                    os.kill(pid, signal.SIGKILL if late else signal.SIGTERM)
                    os.kill(pid, signal.SIGCONT)
                except ProcessLookupError:
                    pass
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.05)


def follow(path, shell):
    page = pages.Page(path)
    for block in page.blocks:
        where = f"{path}:{block.line}"
        if block.file:
            with open(os.path.join(shell.clone, block.file), "w", encoding="utf-8") as out:
                out.write(block.text)
            continue
        if not block.is_commands() or block.not_run is not None:
            continue
        started = time.monotonic()
        try:
            status, output = shell.run(block.script(), block.within, block.exit_status != 0)
        except Failure as failure:
            raise Failure(f"{where}: {failure}\ncommands:\n{block.script()}") from None
        print(f"{time.monotonic() - started:6.1f} s  {where}", flush=True)
        if status != block.exit_status:
            raise Failure(f"{where}: exit status {status}, expected {block.exit_status}\ncommands:\n{block.script()}\n"
                          f"output:\n{output}")
        for text in block.prints:
            if text not in output:
                raise Failure(f"{where}: does not print '{text}'\ncommands:\n{block.script()}\noutput:\n{output}")


def has_commands(path):
    return any(block.is_commands() and block.not_run is None for block in pages.Page(path).blocks)


def main():
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise SystemExit("prctl(PR_SET_CHILD_SUBREAPER) failed")
    bin_dir = os.path.abspath(os.environ.get("MEDLEY_BIN_DIR") or os.path.join(tree.ROOT, "build", "bin"))
    for program in ("medley", "medley-operator", "medley-scheduler", "medley-worker"):
        if not os.access(os.path.join(bin_dir, program), os.X_OK):
            raise SystemExit(f"{program} is not in {bin_dir}: build it, or set MEDLEY_BIN_DIR")
    wanted = sys.argv[1:]
    use = [path for path in pages.order_of_use() if not wanted or path in wanted]
    others = [path for path in pages.written_pages() if path.startswith("docs/design/") and has_commands(path)
              and (not wanted or path in wanted)]
    started, failed = time.monotonic(), 0
    folder = tempfile.mkdtemp(prefix="medley-docs-")
    try:
        for number, group in enumerate([use, *([path] for path in others)]):
            if not group:
                continue
            shell = Shell(os.path.join(folder, str(number)), bin_dir)
            try:
                for path in group:
                    follow(path, shell)
            except Failure as failure:
                print(f"FAILED {failure}", flush=True)
                failed += 1
            finally:
                end_everything()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"docs_use_test: {len(use) + len(others)} pages in {time.monotonic() - started:.0f} s, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
