#!/usr/bin/env python3
"""Recomputes the bill of a job from its logs, and compares it with the job's own.

    bill.py FOLDER

FOLDER holds the logs of the coordinators (coordinator*.log), lives.json (when each process of the job began and ended, and when
the job was over), bill.json (status.goodput) and, in it or in a folder of it, steps.jsonl (when each step was committed). The exit
status is 0 if the categories of both sum to what was paid within 1 %, and no category differs by more than 2 % of it. Most differ by
less than 0.1 %. Where a coordinator ends while members are replaced, the job does not know which of them are new.

The script shares nothing with common/goodput and worker/coordinator/core/activity.cc but the lines that a coordinator writes when
the use of its units changes, when a step is committed, and when a member has connected. It does not read what the coordinator
counted: it measures the times between the lines, cuts them by the lives of the processes, and finds what was lost by the steps.
"""
import bisect
import collections
import datetime
import glob
import json
import os
import re
import sys

CONNECTED = re.compile(r'"time":"([^"]+)".*"msg":"member connected","member":"([^"]+)"')
LINE = re.compile(r"activity (\w+) since=([\d.]+) step=(\d+) units=(\S*) committed=([\d.]+)")
TOLERANCE = 0.01  # of the sums
CATEGORIES = 0.02


def lines_of(folder):
    """(time, activity, step, units by pool, idle units, coordinator, time of the last commit) of all coordinators."""
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
                found.append((float(match.group(2)), match.group(1), int(match.group(3)), units, idle, name, float(match.group(5))))
    return sorted(found, key=lambda line: line[0])


class Steps:
    """When steps were committed, and what trainers waited for, by steps.jsonl."""

    def __init__(self, folder):
        self.times, self.steps = [], []  # of each line with a time, in their order
        self.waits = []  # [step, kind, seconds, whether the step was lost later]
        for path in glob.glob(os.path.join(folder, "**", "steps.jsonl"), recursive=True):
            with open(path, encoding="utf-8") as file:
                for line in map(json.loads, file):
                    if "rollback_to" in line:
                        for wait in self.waits:
                            wait[3] = wait[3] or wait[0] > line["rollback_to"]
                    if "unix_seconds" not in line:
                        continue
                    self.times.append(line["unix_seconds"])
                    self.steps.append(line["step"])
                    for kind, seconds in (("dataWait", line.get("data_seconds")), ("checkpoint", line.get("checkpoint_seconds"))):
                        if seconds:
                            self.waits.append([line["step"], kind, seconds, False])

    def time_of(self, step, begin, end):
        """When the step, or the last one before it, was committed in that time; None: no line says it."""
        for i in range(bisect.bisect_right(self.times, end + 0.001) - 1, -1, -1):
            if self.times[i] < begin:
                return None
            if self.steps[i] <= step:
                return self.times[i]
        return None

    def last_in(self, begin, end):
        """The last step that was committed in that time; 0: none was."""
        i = bisect.bisect_right(self.times, end + 0.001) - 1
        return self.steps[i] if i >= 0 and self.times[i] >= begin else 0


def connections(folder, lives):
    """For each process the time at which it first connected to a coordinator, and so no longer started; None: it never did."""
    first = [None] * len(lives)
    for path in glob.glob(os.path.join(folder, "coordinator*.log")):
        with open(path, encoding="utf-8", errors="replace") as file:
            for match in filter(None, map(CONNECTED.search, file)):
                time = datetime.datetime.fromisoformat(match.group(1).replace("Z", "+00:00")).timestamp()
                for i, life in enumerate(lives):
                    if life["name"] == match.group(2) and life["began"] <= time <= life["ended"] + 0.05:
                        first[i] = min(first[i] or time, time)
    return first


def stood(begin, end, most, lives, first):
    """[(begin, end, units)] of that time: of the units that return to a coordinator, those whose processes had started and lived."""
    members = [(life["pool"], c, life["ended"]) for life, c in zip(lives, first) if c is not None and life["pool"]]
    cuts = sorted({begin, end} | {t for _, c, ended in members for t in (c, ended) if begin < t < end})
    for a, b in zip(cuts, cuts[1:]):
        alive = collections.Counter(pool for pool, c, ended in members if c <= (a + b) / 2 < ended)
        yield a, b, most & alive


def life_of(line, lives):
    """The process that logged the line: (name, number). A coordinator that is started again has another one."""
    for number, life in enumerate(lives):
        if life["name"] == line[5] and life["began"] - 0.05 <= line[0] <= life["ended"] + 0.05:
            return (line[5], number)
    return (line[5], None)


def largest(counters):
    result = collections.Counter()
    for counter in counters:
        result |= counter
    return result


def segments(lines, lives, first):
    """Pieces of time with one activity each, as the coordinators saw them.

    Between two coordinators the units stand still. Members return to a new one after each other: all that return have stood still
    since the one before ended.
    """
    owners = [life_of(line, lives) for line in lines]
    ends = {(life["name"], number): life["ended"] for number, life in enumerate(lives)}
    arrivals = {}  # by index of the first line of a process: what returned to it, and the index after its first recovery
    for i, owner in enumerate(owners):
        if i == 0 or owner == owners[i - 1]:
            continue
        last = i  # until the first one has left: those that come later are new
        while last < len(lines) and owners[last] == owner and lines[last][1] in ("recovery", "move"):
            if last > i and sum(lines[last][3].values()) < sum(lines[last - 1][3].values()):
                break
            last += 1
        # With the last one of a hand-over the job trains on at once.
        adopted = lines[last:last + 1] if last < len(lines) and owners[last] == owner and lines[last - 1][1] == "move" else []
        arrivals[i] = (largest(line[3] for line in lines[i:last] + [line for line in adopted if line[1] == "training"]), last)
    starts = sorted(arrivals)
    for i, after in reversed(list(zip(starts, starts[1:]))):
        if arrivals[i][1] == after:  # it ended before all had returned
            arrivals[i] = (largest([arrivals[i][0], arrivals[after][0]]), after)
    pieces, arriving = [], (collections.Counter(), 0)

    def add(begin, end, activity, step, next_step, units, idle, committed):
        for a, b, of in stood(begin, end, units, lives, first) if end > begin else ():
            pieces.append([a, b, activity, step, next_step, of, idle, committed])
    for i, (begin, activity, step, units, idle, _, _) in enumerate(lines):
        if i in arrivals:
            arriving = arrivals[i]
        returning = i < arriving[1]
        if returning:
            units = arriving[0]
        if i + 1 == len(lines):
            break
        end, next_step = lines[i + 1][0], lines[i + 1][2]
        if owners[i] == owners[i + 1]:
            if returning:
                add(begin, end, activity, step, next_step, units, idle, lines[i + 1][6])
            else:
                pieces.append([begin, end, activity, step, next_step, units, idle, lines[i + 1][6]])
            continue
        death = begin if activity == "none" else min(end, max(begin, ends.get(owners[i], end)))
        held = units if activity != "none" or not pieces else pieces[-1][5]
        if returning:
            add(begin, death, activity, step, max(step, next_step), units, idle, death)
        else:
            pieces.append([begin, death, activity, step, max(step, next_step), units, idle, death])
        gap = lines[i + 1][1] if activity in ("none", "move") and lines[i + 1][1] in ("recovery", "move") else "recovery"
        add(death, end, gap, next_step, next_step, held & arrivals[i + 1][0], None, end)  # nobody leads the job
    return pieces


def bill(folder):
    with open(os.path.join(folder, "lives.json"), encoding="utf-8") as file:
        given = json.load(file)
    lives, over = given["lives"], given["over"]
    paid = collections.Counter()
    idle_after = collections.Counter()
    for life in lives:
        paid[life["pool"]] += life["ended"] - life["began"]
        idle_after[life["pool"]] += max(0.0, life["ended"] - max(over, life["began"]))
    steps = Steps(folder)
    pieces = segments(lines_of(folder), lives, connections(folder, lives))
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
        # The state went back: what was trained after that step is lost. A coordinator that has started again knows the step only when
        # its members train.
        while activity == "training" and trained and trained[-1][3] > step:
            b, e, first, last, of = trained.pop()
            at = b if step <= first else steps.time_of(step, b, e)
            if at is None:  # a step of which no coordinator has written when it was committed
                at = b + (e - b) * (step - first) / (last - first)
            for pool, count in of.items():
                seconds[pool]["training"] -= count * (e - at)
                seconds[pool]["lost"] += count * (e - at)
            if at > b:
                trained.append((b, at, first, step, of))
        of = collections.Counter(units)
        of[""] = 0 if idle is None else 1
        for pool, count in of.items():
            seconds[pool][activity] += count * (end - begin)
        for pool, count in (idle or {}).items():
            seconds[pool]["idle"] += count * (end - begin)
        if activity == "training":
            last = max(step, next_step, steps.last_in(begin, end))
            trained.append((begin, end, step, last, of))
            halted = (begin, min(end - begin, max(0.0, end - committed)), last, of)
    total = collections.Counter()
    for pool, amount in paid.items():
        known = sum(seconds[pool].values())
        seconds[pool]["idle"] += idle_after[pool]
        seconds[pool]["startUp"] += amount - known - idle_after[pool]
        total.update(seconds[pool])
    for _, kind, amount, lost in steps.waits:
        total["lost" if lost else "training"] -= amount
        total[kind] += amount
    return sum(paid.values()), total


def main(folder):
    paid, mine = bill(folder)
    with open(os.path.join(folder, "bill.json"), encoding="utf-8") as file:
        theirs = json.load(file)["seconds"]
    differences = {name: mine[name] - theirs.get(name, 0) for name in set(mine) | set(theirs)}
    worst = max(map(abs, differences.values()))
    sums = max(abs(sum(theirs.values()) - paid), abs(sum(mine.values()) - paid))
    print(f"{'paid unit-seconds':18} {paid:10.2f}   by the job   by the logs")
    for name in sorted(set(mine) | set(theirs)):
        print(f"{name:18} {theirs.get(name, 0):23.2f} {mine[name]:13.2f} {100 * (mine[name] - theirs.get(name, 0)) / paid:+8.2f} %")
    print(f"largest difference {100 * worst / paid:.2f} % of what was paid, of the sums {100 * sums / paid:.3f} %")
    return 0 if worst <= CATEGORIES * paid and sums <= TOLERANCE * paid else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
