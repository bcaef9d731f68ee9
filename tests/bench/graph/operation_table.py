#!/usr/bin/python3
"""Makes a table of what operation_bench printed: operation_table.py < FILE. Milliseconds of a step, measured (simulated)."""
import json
import statistics
import sys

rows = {}
for line in sys.stdin:
    row = json.loads(line)
    if "planner" in row:
        rows.setdefault((row["model"], row["part"]), {})[row["planner"]] = row
planners = list(next(iter(rows.values())))
print("| model | communication / computation | " + " | ".join(planners) + " | best baseline / graph |")
print("|---" * (len(planners) + 3) + "|")
gains, errors = [], []
for (model, part), by_planner in rows.items():
    cells = []
    for planner in planners:
        measured, simulated = by_planner[planner]["measuredSeconds"], by_planner[planner]["simulatedSeconds"]
        cells.append(f"{1000 * measured:,.0f} ({1000 * simulated:,.0f})")
        errors.append(simulated / measured - 1)
    best = min(row["measuredSeconds"] for planner, row in by_planner.items() if planner != "graph")
    gains.append(best / by_planner["graph"]["measuredSeconds"])
    print(f"| {model} | {part} | " + " | ".join(cells) + f" | {gains[-1]:.2f} |")
absolute = [abs(error) for error in errors]
print(f"\ngraph is {statistics.median(gains):.2f} times as fast as the best baseline in the median, {min(gains):.2f} at least;"
      f" simulated against measured: median {100 * statistics.median(absolute):.1f} %, from {100 * min(errors):.1f} to {100 * max(errors):.1f} %")
