#!/usr/bin/python3
"""Jobs with deadlines on recorded spot capacity: runs every policy, and makes the tables of docs/design/economics.md.

  tests/bench/economics/deadlines.py                 runs build/bin/deadline_bench, writes deadlines.csv.gz and the tables
  tests/bench/economics/deadlines.py --check         fails when the page is not what deadlines.csv.gz gives, runs nothing
  tests/bench/economics/deadlines.py --sample        runs it on examples/traces/spot only, and prints the tables

The records are in ../shared/data/spot, or in the folder that $MEDLEY_SPOT names; they are no part of the repository.
"""
import argparse
import collections
import csv
import gzip
import io
import os
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
RESULTS = os.path.join(ROOT, "tests/bench/economics/deadlines.csv.gz")
PAGE = os.path.join(ROOT, "docs/design/economics.md")
BEGIN, END = "<!-- deadlines: made by tests/bench/economics/deadlines.py -->", "<!-- end of deadlines -->"
PAPER = {"optimum": ["multi_region_oracle_dp"], "up-s": ["multi_region_rc_cr_threshold_eager_failover"],
         "up-a": ["multi_region_availability_probe_simple"], "up-ap": ["multi_region_probe_cost_ratio"],
         "published": ["unified_cost_model_risk", "unified_cost_model_rate_ratio"]}
NAMES = {"medley": "Medley", "optimum": "the optimum, which knows the future", "up-s": "Uniform Progress, cheapest zone first",
         "up-a": "Uniform Progress, most available zone first", "up-ap": "Uniform Progress, availability by price",
         "first-plan": "the zone of the first plan", "cheapest-now": "the cheapest units now", "on-demand": "on-demand units only"}
FIGURES = {"v100": "V100", "deadline_sensitivity": "H100, deadlines", "region_scaling": "H100, zones"}


def run(folder):
    done = subprocess.run([os.path.join(ROOT, "build/bin/deadline_bench"), folder], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr.strip() or "deadline_bench failed")
    return done.stdout


def cases_of(text):
    cases = collections.OrderedDict()
    for row in csv.DictReader(io.StringIO(text)):
        key = (row["set"], row["figure"], row["scenario"], row["workHours"], row["startHours"])
        cases.setdefault(key, {})[row["policy"]] = row
    # A job that even the optimum cannot finish in time says nothing about policies.
    return {key: rows for key, rows in cases.items() if "optimum" in rows}


def published(rows, policy):
    for name in PAPER[policy]:
        if "paper:" + name in rows:
            return float(rows["paper:" + name]["usd"])
    return None


def usd(rows, policy):
    """As the authors' simulator counts: without the tick in which the work ends."""
    return float(rows[policy]["paperUsd"])


def group(cases, wanted, figure=None):
    return [rows for key, rows in cases.items() if key[0] == wanted and figure in (None, key[1])]


def reproduction(cases):
    out = ["| comparison | jobs | policy | published, mean USD | here | largest difference |", "|---|---|---|---|---|---|"]
    for figure, title in FIGURES.items():
        rows = group(cases, "published", figure)
        for policy in ("optimum", "up-s", "up-a", "up-ap"):
            pairs = [(published(r, policy), usd(r, policy)) for r in rows if published(r, policy) is not None]
            if not pairs:
                continue
            worst = max(abs(b / a - 1) for a, b in pairs)
            out.append(f"| {title} | {len(pairs)} | {NAMES[policy]} | {statistics.mean(a for a, _ in pairs):,.2f} | "
                       f"{statistics.mean(b for _, b in pairs):,.2f} | {100 * worst:.2f} % |")
    return out


def ratios(rows, policy, base):
    return sorted(usd(r, policy) / base(r) for r in rows)


def against(title, rows, base):
    out = []
    for policy in ("medley", "up-s", "first-plan", "cheapest-now", "on-demand"):
        values = ratios(rows, policy, base)
        late = sum(r[policy]["inTime"] == "0" for r in rows)
        mean = statistics.mean(usd(r, policy) for r in rows) / statistics.mean(base(r) for r in rows)
        out.append(f"| {title} | {len(rows)} | {NAMES[policy]} | {mean:.3f} | {statistics.median(values):.3f} | "
                   f"{values[-1]:.3f} | {late} |")
    return out


HEAD = ["| jobs | number | policy | mean cost | median | largest | late |", "|---|---|---|---|---|---|---|"]


def optimum(rows):
    return usd(rows, "optimum")


def bars(cases):
    out = ["| comparison | jobs | Medley against the published policy: median | mean | largest | Medley against the optimum: mean |",
           "|---|---|---|---|---|---|"]
    for figure, title in FIGURES.items():
        rows = [r for r in group(cases, "published", figure) if published(r, "published") is not None]
        if not rows:
            continue
        values = ratios(rows, "medley", lambda r: published(r, "published"))
        mean = statistics.mean(usd(r, "medley") for r in rows)
        out.append(f"| {title} | {len(rows)} | {statistics.median(values):.3f} | "
                   f"{mean / statistics.mean(published(r, 'published') for r in rows):.3f} | {values[-1]:.3f} | "
                   f"{mean / statistics.mean(optimum(r) for r in rows):.3f} |")
    return out


def counts(cases):
    out = ["| units that a job needs in one zone | jobs | policy | mean cost | median | largest | late |", "|---|---|---|---|---|---|---|"]
    scenarios = sorted({key[2] for key in cases if key[0] == "counts"}, key=lambda name: int(name.split()[0]))
    for scenario in scenarios:
        out += against(scenario, [rows for key, rows in cases.items() if key[0] == "counts" and key[2] == scenario], optimum)
    return out


def tables(text):
    cases = cases_of(text)
    out = ["### The published comparison is reproduced", "", *reproduction(cases), "",
           "### Medley against the published policy", "", *bars(cases), "",
           "### Against the optimum, on the published jobs", "", *HEAD]
    for figure, title in FIGURES.items():
        if group(cases, "published", figure):
            out += against(title, group(cases, "published", figure), optimum)
    others = [(figure, title) for figure, title in (("v100", "V100"), ("h100", "H100")) if group(cases, "other", figure)]
    if others:
        out += ["", "### Against the optimum, on jobs that nobody published", "", *HEAD]
        for figure, title in others:
            out += against(title, group(cases, "other", figure), optimum)
    if group(cases, "counts"):
        out += ["", "### Jobs of several units", "", *counts(cases)]
    return "\n".join(out)


def page_with(text):
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    begin, end = page.index(BEGIN) + len(BEGIN), page.index(END)
    return page, page[:begin] + "\n" + tables(text) + "\n" + page[end:]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--sample", action="store_true")
    parser.add_argument("--take", help="a file with what deadline_bench printed, instead of running it")
    arguments = parser.parse_args()
    if arguments.sample:
        print(tables(run(os.path.join(ROOT, "examples/traces/spot"))))
        return
    if arguments.check:
        with gzip.open(RESULTS, "rt", encoding="utf-8") as file:
            page, wanted = page_with(file.read())
        if page != wanted:
            sys.exit("docs/design/economics.md: its tables are not those of tests/bench/economics/deadlines.csv.gz: "
                     "run tests/bench/economics/deadlines.py")
        return
    folder = os.environ.get("MEDLEY_SPOT", os.path.join(os.path.dirname(ROOT), "shared/data/spot"))
    if arguments.take:
        with open(arguments.take, encoding="utf-8") as file:
            text = file.read()
    elif os.path.isdir(folder):
        text = run(folder)
    else:
        sys.exit(f"deadlines.py: SKIPPED: the recorded capacity is not in {folder}; $MEDLEY_SPOT names another folder, and --sample "
                 "runs the share of it that the repository has")
    with open(RESULTS, "wb") as file:
        file.write(gzip.compress(text.encode(), mtime=0))
    _, page = page_with(text)
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(page)
    print(tables(text))


if __name__ == "__main__":
    main()
