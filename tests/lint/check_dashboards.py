#!/usr/bin/env python3
"""Checks the Grafana dashboards of deploy/dashboards: complete, without overlaps, and using existing metrics."""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

import metric_names

ROOT = metric_names.ROOT
COLUMNS = 24
PROMTOOL = "/usr/bin/promtool"
MACROS = {"$__rate_interval": "5m", "$__range": "6h", "$__interval": "1m"}
WORDS = re.compile(r"\b((?:medley|controller_runtime|workqueue|rest_client|process)_[a-z0-9_]+|up)\b")


def plain(query, variables=()):
    """The query as Prometheus gets it, with some value for each variable."""
    for macro, value in MACROS.items():
        query = query.replace(macro, value)
    for name in variables:
        query = query.replace("${" + name + "}", ".*").replace("$" + name, ".*")
    return query


def dashboards():
    found = {}
    for path in sorted(glob.glob(os.path.join(ROOT, "charts", "medley", "dashboards", "*.json"))):
        with open(path, encoding="utf-8") as file:
            found[os.path.basename(path)] = json.load(file)
    return found


def targets(dashboard):
    return [(panel, target) for panel in dashboard["panels"] for target in panel.get("targets", [])]


def series_of(query):
    """The names of the series in a query, without labels and their values."""
    bare = re.sub(r"\{[^}]*\}", "", query)
    bare = re.sub(r"\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)", "", bare)
    return set(WORDS.findall(bare))


def check_grid(panels):
    problems, taken = [], {}
    for panel in panels:
        grid = panel["gridPos"]
        if grid["w"] < 1 or grid["h"] < 1 or grid["x"] < 0 or grid["x"] + grid["w"] > COLUMNS:
            problems.append(f"panel {panel['id']}: is outside the grid")
        for x in range(grid["x"], grid["x"] + grid["w"]):
            for y in range(grid["y"], grid["y"] + grid["h"]):
                if (x, y) in taken:
                    problems.append(f"panels {taken[x, y]} and {panel['id']} overlap")
                    return problems
                taken[x, y] = panel["id"]
    return problems


def check_panel(panel):
    problems = []
    if not panel.get("title"):
        problems.append("has no title")
    if panel["type"] == "row":
        return problems
    if not panel.get("description"):
        problems.append("has no description")
    if not panel["fieldConfig"]["defaults"].get("unit"):
        problems.append("has no unit")
    if not panel.get("targets"):
        problems.append("has no query")
    for part in [panel, *panel.get("targets", [])]:
        if part.get("datasource") != {"type": "prometheus", "uid": "${datasource}"}:
            problems.append("a data source that is not the variable")
    letters = [target["refId"] for target in panel.get("targets", [])]
    if len(letters) != len(set(letters)):
        problems.append("two queries have the same letter")
    return problems


def check_variables(dashboard):
    problems = []
    variables = dashboard["templating"]["list"]
    names = [variable["name"] for variable in variables]
    if names[:1] != ["datasource"] or variables[0]["type"] != "datasource":
        problems.append("the first variable must be the data source")
    if len(names) != len(set(names)):
        problems.append("two variables have the same name")
    asked = json.dumps([dashboard["panels"], [v.get("query") for v in variables]])
    for variable in variables:
        for field in ("label", "description"):
            if not variable.get(field):
                problems.append(f"variable {variable['name']}: no {field}")
        if not re.search(r"\$\{?" + variable["name"] + r"\b", asked):
            problems.append(f"variable {variable['name']}: nothing uses it")
        if variable["type"] == "query" and variable["datasource"]["uid"] != "${datasource}":
            problems.append(f"variable {variable['name']}: a data source that is not the variable")
    for name in set(re.findall(r"\$\{?([a-z]+)\b", " ".join(t["expr"] for _, t in targets(dashboard)))):
        if name not in names:
            problems.append(f"variable {name} is used but not defined")
    return problems


def check_queries(named):
    """Parses the queries with promtool, as recording rules. `named`: {where: query}."""
    rules = [{"record": f"q{index}", "expr": query} for index, query in enumerate(named.values())]
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", prefix="medley-queries-") as file:
        json.dump({"groups": [{"name": "queries", "rules": rules}]}, file)
        file.flush()
        done = subprocess.run([PROMTOOL, "check", "rules", file.name], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return []
    where = list(named)
    words = re.sub(r'"q(\d+)"', lambda match: where[int(match.group(1))], done.stderr)
    return [words.strip()]


def main():
    if not os.access(PROMTOOL, os.X_OK):
        print(f"check_dashboards: {PROMTOOL} is missing: install Debian's package prometheus, as ./dev does")
        return 1
    problems = []
    made = subprocess.run([sys.executable, os.path.join(ROOT, "deploy", "dashboards", "make.py"), "--check"],
                          capture_output=True, text=True, check=False)
    if made.returncode != 0:
        problems.append((made.stdout + made.stderr).strip())
    known = {series for metric in metric_names.documented().values() for series in metric.series()} | {"up"}
    found = dashboards()
    named = {}
    for file, dashboard in found.items():
        variables = [variable["name"] for variable in dashboard["templating"]["list"]]
        ids = [panel["id"] for panel in dashboard["panels"]]
        if len(ids) != len(set(ids)):
            problems.append(f"{file}: two panels have the same id")
        problems += [f"{file}: {problem}" for problem in check_grid(dashboard["panels"]) + check_variables(dashboard)]
        for panel in dashboard["panels"]:
            problems += [f"{file}: {panel.get('title')}: {problem}" for problem in check_panel(panel)]
        for panel, target in targets(dashboard):
            where = f"{file}: {panel['id']} {panel['title']}: {target['refId']}"
            named[where] = plain(target["expr"], variables)
            problems += [f"{where}: {name} is not in docs/operate/metrics.md" for name in series_of(target["expr"]) - known]
    for what in ("uid", "title"):
        values = [dashboard[what] for dashboard in found.values()]
        if len(values) != len(set(values)):
            problems.append(f"two dashboards have the same {what}")
    with open(os.path.join(ROOT, "charts", "medley", "alerts", "medley.yaml"), encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if "summary:" not in line and "description:" not in line and "alert:" not in line and not line.startswith("#"):
                problems += [f"alerts/medley.yaml:{number}: {name} is not in docs/operate/metrics.md"
                             for name in series_of(line) - known]
    problems += check_queries(named)
    for problem in problems:
        print(problem)
    print(f"check_dashboards: {len(found)} dashboards, {len(named)} queries, {len(problems)} problems")
    return 1 if problems or len(found) != 3 else 0


if __name__ == "__main__":
    sys.exit(main())
