#!/usr/bin/env python3
"""Recomputes the bill of a job from its logs, and compares it with the job's own.

    bill.py FOLDER

FOLDER holds the logs of the coordinators (coordinator*.log), lives.json (when each process of the job began and ended, and when
the job was over) and bill.json (status.goodput). The exit status is 0 if the categories of both sum to what was paid within 1 %, and
no category differs by more than 5 % of it. Training and lost training are compared together: the lines have no step between the
moments when the use of the units changes, so how long the lost ones took is only interpolated here.

The script shares nothing with common/goodput and worker/coordinator/core/activity.cc but the line that a coordinator logs when
the use of its units changes. It does not read what the coordinator counted: it measures the times between the lines, cuts them
by the lives of the processes, and finds what was lost by the steps of the lines.
"""
import collections
import glob
import json
import os
import re
import sys

LINE = re.compile(r"activity (\w+) since=([\d.]+) step=(\d+) units=(\S*) waited=([\d.]+) committed=([\d.]+)")
TOLERANCE = 0.01  # of the sums
CATEGORIES = 0.05


def lines_of(folder):
    """(time, activity, step, units by pool, idle units, waited, coordinator, time of the last commit) of all coordinators."""
    found = []
    for path in sorted(glob.glob(os.path.join(folder, "coordinator*.log"))):
        name = os.path.basename(path)[:-len(".log")]
        with open(path, encoding="utf-8", errors="replace") as file:
            for text in file:
                match = LINE.search(text)
                if not match:
                    continue
                units, idle = collections.Counter(), collections.Counter()
                for part in filter(None, match.group(4).split(",")):
                    fields = part.split(":")
                    (idle if len(fields) == 3 else units)[fields[0]] += int(fields[1])
                found.append((float(match.group(2)), match.group(1), int(match.group(3)), units, idle, float(match.group(5)), name, float(match.group(6))))
    return sorted(found, key=lambda line: line[0])


def life_of(line, lives):
    """The process that logged the line: (name, number). A coordinator that is started again has another one."""
    for number, life in enumerate(lives):
        if life["name"] == line[6] and life["began"] - 0.05 <= line[0] <= life["ended"] + 0.05:
            return (line[6], number)
    return (line[6], None)


def largest(counters):
    result = collections.Counter()
    for counter in counters:
        result |= counter
    return result


def segments(lines, lives):
    """Pieces of time with one activity each, as the coordinators saw them, and the seconds that trainers waited for samples.

    Between two coordinators the units stand still. Members return to a new one after each other: all that return have stood still
    since the one before ended.
    """
    owners = [life_of(line, lives) for line in lines]
    ends = {(life["name"], number): life["ended"] for number, life in enumerate(lives)}
    arrivals = {}  # by index of the first line of a process: what returned to it, and the index after its first recovery
    for i, owner in enumerate(owners):
        if i == 0 or owner == owners[i - 1]:
            continue
        last = i
        while last < len(lines) and owners[last] == owner and lines[last][1] in ("recovery", "move"):
            last += 1
        arrivals[i] = (largest(line[3] for line in lines[i:last]), last)
    pieces, waited, before, arriving = [], 0.0, {}, (collections.Counter(), 0)
    for i, (begin, activity, step, units, idle, so_far, _, _) in enumerate(lines):
        waited += max(0.0, so_far - before.get(owners[i], 0.0))
        before[owners[i]] = so_far
        if i in arrivals:
            arriving = arrivals[i]
        if i < arriving[1]:
            units = arriving[0]
        if i + 1 == len(lines):
            break
        end, next_step = lines[i + 1][0], lines[i + 1][2]
        if owners[i] == owners[i + 1]:
            pieces.append([begin, end, activity, step, next_step, units, idle, lines[i + 1][7]])
            continue
        death = begin if activity == "none" else min(end, max(begin, ends.get(owners[i], end)))
        held = units if activity != "none" or not pieces else pieces[-1][5]
        pieces.append([begin, death, activity, step, max(step, next_step), units, idle, death])
        gap = lines[i + 1][1] if activity == "none" and lines[i + 1][1] in ("recovery", "move") else "recovery"
        pieces.append([death, end, gap, next_step, next_step, held & arrivals[i + 1][0], collections.Counter(), end])
    return pieces, waited


def bill(folder):
    with open(os.path.join(folder, "lives.json"), encoding="utf-8") as file:
        given = json.load(file)
    lives, over = given["lives"], given["over"]
    paid = collections.Counter()
    idle_after = collections.Counter()
    for life in lives:
        paid[life["pool"]] += life["ended"] - life["began"]
        idle_after[life["pool"]] += max(0.0, life["ended"] - max(over, life["began"]))
    pieces, waited = segments(lines_of(folder), lives)
    seconds = collections.defaultdict(collections.Counter)
    halted = None  # the last training: its begin, the time since its last commit, its last step, its units
    trained = []  # [begin, end, first step, last step, units] of training that is not lost
    for begin, end, activity, step, next_step, units, idle, committed in pieces:
        if activity == "none" or end <= begin:
            continue
        # Training goes on from the step that was committed last: what was computed of the next one is lost.
        if activity == "training" and halted and halted[2] == step:
            for pool, count in halted[3].items():
                seconds[pool]["training"] -= count * halted[1]
                seconds[pool]["lost"] += count * halted[1]
        if activity != "recovery":
            halted = None
        # The state went back: what was trained after that step is lost.
        while trained and trained[-1][3] > step:
            b, e, first, last, of = trained.pop()
            at = b if step <= first else b + (e - b) * (step - first) / (last - first)
            for pool, count in of.items():
                seconds[pool]["training"] -= count * (e - at)
                seconds[pool]["lost"] += count * (e - at)
            if at > b:
                trained.append((b, at, first, step, of))
        of = collections.Counter(units)
        of[""] = 1
        for pool, count in of.items():
            seconds[pool][activity] += count * (end - begin)
        for pool, count in idle.items():
            seconds[pool]["idle"] += count * (end - begin)
        if activity == "training":
            trained.append((begin, end, step, max(step, next_step), of))
            halted = (begin, min(end - begin, max(0.0, end - committed)), max(step, next_step), of)
    total = collections.Counter()
    for pool, amount in paid.items():
        known = sum(seconds[pool].values())
        seconds[pool]["idle"] += idle_after[pool]
        seconds[pool]["startUp"] += amount - known - idle_after[pool]
        total.update(seconds[pool])
    total["training"] -= waited
    total["dataWait"] += waited
    return sum(paid.values()), total


def main(folder):
    paid, mine = bill(folder)
    with open(os.path.join(folder, "bill.json"), encoding="utf-8") as file:
        theirs = json.load(file)["seconds"]
    differences = {name: mine[name] - theirs.get(name, 0) for name in set(mine) | set(theirs)}
    differences["training"] = differences.get("training", 0) + differences.pop("lost", 0)
    worst = max(map(abs, differences.values()))
    sums = max(abs(sum(theirs.values()) - paid), abs(sum(mine.values()) - paid))
    print(f"{'paid unit-seconds':18} {paid:10.2f}   by the job   by the logs")
    for name in sorted(set(mine) | set(theirs)):
        print(f"{name:18} {theirs.get(name, 0):23.2f} {mine[name]:13.2f} {100 * (mine[name] - theirs.get(name, 0)) / paid:+8.2f} %")
    print(f"largest difference {100 * worst / paid:.2f} % of what was paid, of the sums {100 * sums / paid:.3f} %")
    return 0 if worst <= CATEGORIES * paid and sums <= TOLERANCE * paid else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
