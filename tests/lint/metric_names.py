"""Reads docs/operate/metrics.md, for check_metrics, check_dashboards and tests/integration/observability."""
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGE = os.path.join(ROOT, "docs", "operate", "metrics.md")
ROW = re.compile(r"^\| `([a-z][a-z0-9_]*)` \| ([a-z]+) \|([^|]*)\| (.+) \|$")
SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("_sum", "_count")}


class Metric:
    def __init__(self, name, kind, labels, tells):
        self.name, self.kind, self.labels, self.tells = name, kind, labels, tells

    def series(self):
        """The names of its series in queries."""
        return [self.name + suffix for suffix in SUFFIXES.get(self.kind, ("",))]


def documented(path=PAGE):
    """Returns {name: Metric} in the page's order. Raises ValueError for an incomplete or a repeated row."""
    found = {}
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            match = ROW.match(line.rstrip("\n"))
            if not match:
                if re.match(r"^\| `(medley|controller_runtime|workqueue|rest_client|process)_", line):
                    raise ValueError(f"{path}:{number}: not | `name` | type | `labels` | tells |")
                continue
            name, kind, labels, tells = match.groups()
            if name in found:
                raise ValueError(f"{path}:{number}: {name} is listed twice")
            labels = set(re.findall(r"`([a-z_]+)`", labels))
            if name.startswith("medley_job_"):
                labels |= {"namespace", "job"}
            found[name] = Metric(name, kind, labels, tells)
    return found
