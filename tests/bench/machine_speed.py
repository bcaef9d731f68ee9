"""How fast the machine was between two moments, by build/bin/machine_speed, which works beside what a bench measures."""
import statistics
import subprocess
import threading


class Speed:
    """Measures until it is closed. Thread-safe."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdout=subprocess.PIPE, text=True)  # pylint: disable=consider-using-with
        self.steps = []
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        for line in self.process.stdout:
            ended, seconds = line.split()
            self.steps.append((float(ended), float(seconds)))

    def seconds(self, begin, end):
        """Median of the processor seconds of a step between two times of time.monotonic()."""
        found = [seconds for ended, seconds in list(self.steps) if begin <= ended <= end]
        if not found:
            raise RuntimeError(f"machine_speed measured nothing in {end - begin:.1f} s")
        return statistics.median(found)

    def close(self):
        self.process.kill()
        self.process.communicate()
        self.thread.join()
