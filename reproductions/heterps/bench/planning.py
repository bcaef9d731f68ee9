#!/usr/bin/python3
"""Tables of the output of heterps_bench, and of planner_bench, beside the numbers of the paper: planning.py FILE.json...

build/bin/heterps_bench > build/heterps.json
build/bin/planner_bench exact pareto > build/planners.json
"""
import json
import os
import sys

PAPER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "paper_heterps.json")
BASELINES = ["rl-rnn", "bayesian", "genetic", "greedy", "heuristic", "gpu-only", "cpu-only"]
PLANNERS = ["exact", "rl-lstm"] + BASELINES


def table(title, header, rows):
    rows = [header] + [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(header))]
    lines = [title] + ["  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    return "\n".join(lines) + "\n"


def seconds(value):
    return f"{value:.6f}" if value < 0.1 else f"{value:.3f}" if value < 100 else f"{value:.0f}"


def percent(value):
    return "-" if value is None else f"{100 * value:.1f}"


def paper():
    with open(PAPER, encoding="utf-8") as file:
        return json.load(file)


def exact_table(found):
    rows = [(e["case"], e["requests"] * e["times"], f"{e['proven']}/{e['requests']}", f"{e['mostGap']:.1e}",
             e["mostStages"], f"{1000 * e['seconds']['median']:.3f}", f"{1000 * e['seconds']['p99']:.3f}",
             f"{1000 * e['processorSeconds']['median']:.3f}", f"{1000 * e['processorSeconds']['p99']:.3f}")
            for e in found]
    return table("exact (milliseconds; processor: of the one thread alone)",
                 ["case", "runs", "proven", "most gap", "stages", "median", "p99", "processor", "p99"], rows)


def pareto_table(found):
    rows = [(e["model"], e["points"], e["complete"], f"{1000 * e['processorSeconds']:.2f}") for e in found]
    return table("Pareto fronts, whole", ["model", "points", "complete", "processor ms"], rows)


def provision_table(found):
    published = paper()["Figure 4"]["rows"]
    excess_cost = {}
    for e in found:
        ours = next(o["usd"] for o in found if o["method"] == "exact" and o["minThroughput"] == e["minThroughput"])
        if e["usd"] is None:
            excess_cost.setdefault(e["method"], []).append(None)
        else:
            excess_cost.setdefault(e["method"], []).append(e["usd"] / ours - 1)
    rows = []
    for method, values in excess_cost.items():
        most = max((v for v in values if v is not None), default=None)
        rows.append((method, percent(most), "-" if most is None else percent(most / (1 + most)),
                     published.get(method, "-"), sum(v is None for v in values)))
    return table("Figure 4: provisioning of the optimum's schedule, CTRDNN, several throughputs (percent)",
                 ["method", "excess over exact, up to", "exact saves, up to", "paper, up to", "no plan"], rows)


def table2(found):
    published = paper()["Table 2"]["rows"]
    rows = []
    for e in found:
        row = published[str(e["layers"])]
        brute = seconds(e["bruteSeconds"]) + ("" if e["bruteMeasured"] else " E")
        same = "-"
        if e.get("bruteUsd") is not None:
            same = abs(e["exact"]["usd"] / e["bruteUsd"] - 1) <= 1e-9
        rows.append((e["layers"], e["types"], brute, row[f"BF({e['types']})"], seconds(e["rl-lstm"]["seconds"]),
                     row["RL"], seconds(e["exact"]["seconds"]), same,
                     percent(e["rl-lstm"]["usd"] / e["exact"]["usd"] - 1)))
    return table("Table 2: CTRDNN, seconds (E: estimated)",
                 ["layers", "types", "brute force", "paper", "rl-lstm", "paper RL", "exact", "exact = brute force",
                  "rl-lstm above, %"], rows)


def table3(found):
    published = paper()["Table 3"]["rows"]
    rows = []
    for key, values in published.items():
        model, types = (key.split(" (")[0], int(key.split("(")[1][:-1])) if "(" in key else (key, 2)
        for e in found:
            if (e["model"], e["types"]) == (model, types):
                rows.append((key, e["planner"], seconds(e["seconds"]), values.get(e["planner"], "-")))
    return table("Table 3: seconds of each planner (median of seeds)", ["model", "planner", "ours", "paper"], rows)


def quality_table(found):
    cells = {(e["model"], e["types"], e["planner"]): e for e in found}
    cases = sorted({(e["model"], e["types"]) for e in found})
    rows = []
    for model, types in cases:
        row = [model, types]
        for planner in PLANNERS:
            e = cells[(model, types, planner)]
            row.append("no plan" if "above" not in e else percent(e["above"]["median"]) +
                       (f" ({e['withoutPlan']}/{e['runs']} none)" if e["withoutPlan"] else ""))
        rows.append(row)
    return table("Cost above the optimum, percent (median of seeds)", ["model", "types"] + PLANNERS, rows)


def excess_cost(found, wanted, reference):
    """The largest excess cost of each baseline over `reference`, over the (model, types) that `wanted` selects."""
    cells = {(e["model"], e["types"], e["planner"]): e for e in found if "above" in e}
    out = {}
    for (model, types, planner), e in cells.items():
        base = cells.get((model, types, reference))
        if planner in BASELINES and wanted(model, types) and base is not None:
            value = (1 + e["above"]["median"]) / (1 + base["above"]["median"]) - 1
            out[planner] = max(out.get(planner, -1), value)
    return out


def figures_table(found):
    figures = [("Figures 5 and 6, 1 to 16 types", lambda m, t: m == "matchnet-16" and t <= 16),
               ("Figures 5 and 6, 32 types", lambda m, t: m == "matchnet-16" and t == 32),
               ("Figures 5 and 6, 64 types", lambda m, t: m == "matchnet-16" and t == 64),
               ("Figures 8 and 9", lambda m, t: t == 2)]
    text = ""
    for name, wanted in figures:
        published = paper()[name]["rows"]
        of_rl, of_exact = excess_cost(found, wanted, "rl-lstm"), excess_cost(found, wanted, "exact")
        rows = [(b, percent(of_rl.get(b)), percent(of_exact.get(b)), published.get(b, "-")) for b in BASELINES]
        text += table(f"{name}: excess cost, percent, up to",
                      ["baseline", "than rl-lstm", "than exact", "paper: than RL"], rows)
    least = [(e["throughputOverLimit"], e) for e in found if "throughputOverLimit" in e]
    if least:
        worst, e = min(least, key=lambda item: item[0])
        text += (f"Figures 7 and 10: the least throughput over its limit is {worst:.3f} "
                 f"({e['planner']}, {e['model']}, {e['types']} types); without a plan: " +
                 (", ".join(sorted({f"{e['planner']} {e['model']} {e['types']}" for e in found
                                    if e["withoutPlan"] == e["runs"]})) or "none") + "\n")
    return text


def figure11(found):
    """USD of each planner's plan above that of exact, in percent, by the cost model and by the simulator; and which part of the goal
    the simulator says that exact's plan reaches."""
    cells = {(e["pools"], e["model"], e["partOfMost"], e["planner"]): e for e in found}
    text = ""
    for judge, field in (("the cost model", "usd"), ("the simulator", "simulatedUsd")):
        for pools in dict.fromkeys(e["pools"] for e in found):
            rows = []
            for model, part in dict.fromkeys((e["model"], e["partOfMost"]) for e in found):
                mine = [cells[(pools, model, part, planner)] for planner in PLANNERS]
                best = mine[0].get(field)
                row = [model, f"{100 * part:.0f}", mine[0].get("stages", "-"), "-" if best is None else f"{best:.4f}"]
                if field == "simulatedUsd":
                    row.append(percent(mine[0]["simulatedThroughput"] / mine[0]["goal"]) if best else "-")
                rows.append(row + [percent(e[field] / best - 1) if field in e and best else "none" for e in mine[1:]])
            text += table(f"Figure 11, {pools}: USD of 45 million samples by {judge}; other plans, percent above exact",
                          ["model", "goal, % of the most", "stages", "exact"] +
                          (["reaches, % of the goal"] if field == "simulatedUsd" else []) + PLANNERS[1:], rows)
    return text


def tables(found):
    parts = {"exact": exact_table, "pareto": pareto_table, "provision": provision_table, "table2": table2, "figure11": figure11}
    text = [make(found[name]) for name, make in parts.items() if name in found]
    if "planners" in found:
        text += [quality_table(found["planners"]), table3(found["planners"]), figures_table(found["planners"])]
    return "\n".join(text)


if __name__ == "__main__":
    merged = {}
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as opened:
            merged.update(json.load(opened))
    print(tables(merged))
