#!/usr/bin/python3
"""Tables of what synchronisation_bench printed: summary.py FILE... (lines of JSON). Medians, and quartiles in brackets."""
import collections
import json
import statistics
import sys


def median(values):
    """Of values of which those below 0 were not reached; None when at least half of them were not."""
    ordered = sorted(value if value >= 0 else float("inf") for value in values)
    middle = statistics.median_low(ordered) if ordered[(len(ordered) - 1) // 2] == float("inf") else statistics.median(ordered)
    return None if middle == float("inf") else middle


def text(values):
    reached = [value for value in values if value >= 0]
    found = median(values)
    if found is None:
        return f"- ({len(reached)} of {len(values)})"
    if len(reached) < 3 or len(reached) < len(values):
        return f"{found:.1f} ({len(reached)} of {len(values)})"
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{found:.1f} [{low:.1f}, {high:.1f}]"


def table(rows, keys, columns):
    groups = collections.defaultdict(list)
    for row in rows:
        groups[tuple(row[key] for key in keys)].append(row)
    print("| " + " | ".join([*keys, "runs", *columns]) + " |")
    print("|" + "---|" * (len(keys) + len(columns) + 1))
    for group, members in groups.items():
        cells = [text([member[column] for member in members]) for column in columns]
        print("| " + " | ".join([*map(str, group), str(len(members)), *cells]) + " |")
    return groups


def against_best(groups, column):
    """Each flexible setting over the best fixed one, for each condition."""
    conditions = collections.defaultdict(dict)
    for group, members in groups.items():
        conditions[group[:-1]][group[-1]] = median([member[column] for member in members])
    for condition, found in conditions.items():
        fixed = [value for name, value in found.items()
                 if not name.startswith("flexible") and name != "fast group only" and value is not None]
        if not fixed:
            continue
        best = min(fixed)
        name = next(name for name, value in found.items() if value == best)
        ratios = ", ".join(f"{other} {value / best:.2f}" if value is not None else f"{other} not reached"
                           for other, value in found.items() if other.startswith("flexible"))
        print(f"  {column}, {' '.join(map(str, condition))}: best fixed {name}; {ratios} times its seconds")


def main():
    parts = collections.defaultdict(list)
    for file in sys.argv[1:]:
        with open(file, encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                parts[row["part"]].append(row)
    for part, rows in parts.items():
        print(f"\n## {part}\n")
        if part == "delays":
            groups = table(rows, ["kind", "delay", "setting"], ["loss 0.1", "loss 0.05"])
            for column in ("loss 0.1", "loss 0.05"):
                against_best(groups, column)
        elif part == "changing":
            for row in rows:
                row["best %"] = 100 * row["best"]
            columns = ["accuracy 0.8", "accuracy 0.9", "accuracy 0.95", "accuracy 0.97"]
            groups = table(rows, ["delay", "setting"], [*columns, "best %"])
            for column in columns:
                against_best(groups, column)
        elif part in ("groups", "gpus"):
            for row in rows:
                row["best %"] = 100 * row["best"]
                row["ms a step"] = 1000 * row["seconds"] / max(1, row["steps"] - 10)
            columns = [column for column in rows[0] if column.startswith("accuracy")]
            condition = "variance" if part == "groups" else "set"
            groups = table(rows, [condition, "setting"], [*columns, "best %", "ms a step"])
            for column in columns:
                against_best(groups, column)
        elif part == "slow":
            for row in rows:
                row["ms a step"] = 1000 * row["measured seconds"] / row["measured steps"]
            table(rows, ["setting"], ["measured steps", "measured seconds", "ms a step"])
        else:
            for row in rows:
                row["accuracy %"] = 100 * row["accuracy"]
            groups = table(rows, ["setting"], ["accuracy %"])
            means = {group[0]: statistics.mean(row["accuracy %"] for row in members) for group, members in groups.items()}
            first = next(iter(means))
            for name, value in means.items():
                print(f"  {name}: mean {value:.2f} %, {value - means[first]:+.2f} points against {first}")


if __name__ == "__main__":
    main()
