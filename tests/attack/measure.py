"""What an attack costs a process: the peak of its memory and the descriptors that it keeps."""
import dataclasses
import os
import time


@dataclasses.dataclass
class Row:
    """One line of the table that tests/attack/run prints."""
    attack: str
    outcome: str
    ok: bool
    peak_mib: float = 0.0  # 0: no process was measured
    fds_before: int = 0
    fds_after: int = 0
    made: bool = True  # False: this machine does not allow the attack; `outcome` says why


def peak_mib(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return 0.0


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


class Watched:
    """Measures a process between `with` and its end: the peak begins anew, and descriptors get a while to close."""

    def __init__(self, pid, patience=60):
        self.pid, self.patience = pid, patience
        self.peak, self.before, self.after = 0.0, 0, 0

    def __enter__(self):
        try:
            with open(f"/proc/{self.pid}/clear_refs", "w", encoding="ascii") as refs:
                refs.write("5")  # resets VmHWM
        except OSError:
            pass  # the peak then counts from the start of the process, which is stricter
        self.before = descriptors(self.pid)
        return self

    def __exit__(self, kind, value, trace):
        if kind is not None:
            return
        end = time.monotonic() + self.patience
        self.after = descriptors(self.pid)
        while self.after > self.before and time.monotonic() < end:
            time.sleep(0.2)
            self.after = descriptors(self.pid)
        self.peak = peak_mib(self.pid)

    def row(self, attack, outcome, ok, limit_mib=256):
        """`ok` and the bounds: memory below `limit_mib`, and no descriptor more than before."""
        bounded = self.peak <= limit_mib and self.after <= self.before
        return Row(attack, outcome, ok and bounded, self.peak, self.before, self.after)
