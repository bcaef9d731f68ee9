#!/usr/bin/env python3
"""Records the answers of `medley plan` to 1,000 questions, compares two records, and compares a program with the record of the tree.

  planning_questions.py record MEDLEY FILE [--count 1000] [--links]   # MEDLEY: the program; FILE: a line of JSON a question
  planning_questions.py compare BEFORE AFTER                          # what changed, and why
  planning_questions.py check MEDLEY [--count 1000]                   # unchanged, better or worse than planning_answers.jsonl.gz
  planning_questions.py keep FILE                                     # makes planning_answers.jsonl.gz of a record

Questions: the requests of examples/plan with other throughputs, and random chains of 2 to 20 layers on 1 to 6 types, with
and without micro-batches, constraints, servers and quotas; with --links the same with micro-batches, unlike links between types,
some of them missing or in one direction only, and measured allreduces. The same numbers make the same questions."""
import argparse
import collections
import gzip
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ["ctrdnn-16", "2emb-10", "matchnet-16", "nce-5"]
ANSWERS = ROOT / "tests/bench/planning_answers.jsonl.gz"
SAME = 1e-6  # relative, of costs: JSON has fewer digits than the planners


def example_question(number):
    rng = random.Random(number)
    request = yaml.safe_load((ROOT / f"examples/plan/{EXAMPLES[number % len(EXAMPLES)]}.yaml").read_text())
    constraints = request.setdefault("constraints", {})
    constraints["minThroughput"] = constraints.get("minThroughput", 1000) * 4 ** rng.uniform(-1, 1)
    request["training"]["microBatches"] = rng.choice([0, 0, 4, 16])
    return request


def random_layer(rng, name, types, served):
    profiles = []
    for t, speed in enumerate(types):
        profiles.append({"resourceType": f"t{t}", "computeSeconds": rng.uniform(0.001, 0.05) / speed,
                         "computeParallel": rng.uniform(0.5, 1), "syncSeconds": rng.uniform(0, 0.02),
                         "transferSeconds": rng.uniform(0, 0.01), "commParallel": rng.uniform(0.3, 1),
                         "serverSeconds": rng.uniform(0.0005, 0.01) if served else 0})
    return {"name": name, "weightBytes": rng.uniform(1e5, 1e7), "outputBytes": rng.randrange(100, 20000), "profiles": profiles}


def random_question(number):
    rng = random.Random(number)
    types = [1.0] + [rng.uniform(0.5, 12) for _ in range(rng.randrange(6))]
    servers = rng.random() < 0.3
    request = {
        "model": {"name": f"random-{number}",
                  "layers": [random_layer(rng, f"l{i}", types, servers and i == 0) for i in range(rng.randrange(2, 21))]},
        "training": {"profileBatchSize": 64, "samplesPerEpoch": 1e7, "microBatches": rng.choice([0, 0, 4, 16])},
        "constraints": {},
        "resources": [{"name": f"t{t}", "class": "GPU" if t else "CPU", "limit": rng.randrange(2, 64),
                       "pricePerUnitHour": rng.uniform(0.1, 4) if t else rng.uniform(0.02, 0.3)} for t in range(len(types))],
        "serverType": "t0"}
    if rng.random() < 0.5:
        request["constraints"]["minThroughput"] = rng.uniform(200, 6000)
    if rng.random() < 0.2:
        request["constraints"]["maxUnits"] = rng.randrange(2, 40)
    if request["training"]["microBatches"] and rng.random() < 0.5:
        for resource in request["resources"]:
            resource |= {"processorSecondsPerMessage": rng.uniform(0, 2e-4), "processorSecondsPerByte": rng.uniform(0, 2e-9)}
    return request


def question(number):
    return example_question(number) if number % 5 == 0 else random_question(number)


def with_links(number):
    """Where the units of a type are linked, its synchronisation takes what two of them need over that link."""
    rng, request = random.Random(-1 - number), question(number)
    types = [resource["name"] for resource in request["resources"]]
    request["training"]["microBatches"] = request["training"]["microBatches"] or rng.choice([4, 16])
    request["links"] = [{"from": a, "to": b, "latencySeconds": rng.choice([0, rng.uniform(0, 1e-3)]),
                         "bytesPerSecond": 10 ** rng.uniform(7.5, 10)} for a in types for b in types if rng.random() < 0.7]
    own = {link["from"]: link for link in request["links"] if link["from"] == link["to"]}
    request["allreduces"] = []
    for t in types:
        latency, speed = (own[t]["latencySeconds"], own[t]["bytesPerSecond"]) if t in own else (1e-4, 1e9)
        request["allreduces"].append({"resourceType": t, "ranks": 2, "bytes": 4096, "algorithm": "ALLREDUCE_ALGORITHM_RING",
                                      "seconds": 2 * latency + 4096 / speed})
    for layer in request["model"]["layers"]:
        for profile in layer["profiles"]:
            if profile["resourceType"] in own and not profile.get("serverSeconds"):
                link = own[profile["resourceType"]]
                profile["syncSeconds"] = 2 * link["latencySeconds"] + layer.get("weightBytes", 0) / link["bytesPerSecond"]
    return request


def answer(medley, folder, links, number):
    request = with_links(number) if links else question(number)
    file = pathlib.Path(folder, f"{number}.json")
    file.write_text(json.dumps(request))
    done = subprocess.run([medley, "plan", "-o", "json", str(file)], capture_output=True, text=True)
    if not done.stdout:
        return {"question": number, "error": done.stderr.strip()}
    out = json.loads(done.stdout)
    plan = out.get("plan")
    record = {"question": number, "microBatches": request["training"]["microBatches"], "feasible": bool(plan),
              "milliseconds": 1000 * out.get("planningSeconds", 0)}
    if plan:
        record |= {"usd": plan["costUsd"], "throughput": plan["throughput"], "gap": out.get("gap", 0),
                   "least": request["constraints"].get("minThroughput", 0),
                   "simulated": out.get("simulated"), "notes": out.get("notes", []),
                   "stages": [[s.get("firstLayer", 0), s.get("lastLayer", 0), s["resourceType"], s["units"]]
                              for s in plan["stages"]]}
    return record


def record(medley, path, count, links):
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        lines = [json.dumps(one) for one in pool.map(lambda n: answer(medley, folder, links, n), range(count))]
    pathlib.Path(path).write_text("\n".join(lines) + "\n")


def neighbours(stages):
    return any(a[2] == b[2] for a, b in zip(stages, stages[1:]))


def reason(before, after):
    """Why an answer changed."""
    if before["feasible"] != after["feasible"]:
        return "newly feasible" if after["feasible"] else "NO LONGER FEASIBLE"
    if not after["feasible"] or before["stages"] == after["stages"]:
        return "the same"
    if any("simulator prefers" in note for note in after["notes"]):
        return "the simulator's choice"
    if after["microBatches"]:
        return "a boundary's costs"
    if after["usd"] < before["usd"] * (1 - SAME):
        return "cheaper, neighbours of one type" if neighbours(after["stages"]) else "cheaper, OTHER REASON"
    return "another plan of the same cost" if after["usd"] <= before["usd"] * (1 + SAME) else "MORE EXPENSIVE"


def in_simulator(records):
    """How often the later answer is better in the simulator, and how far the closed form of either is off there."""
    def keeps(one):
        return one.get("simulated") and one["simulated"]["throughput"] >= (1 - SAME) * one.get("least", 0)

    kept = [sum(1 for one in of if keeps(one)) for of in records]
    both = [pair for pair in zip(*records) if all(keeps(one) for one in pair)]
    print(f"plans that keep their constraints in the simulator: {kept[0]}, then {kept[1]}; {len(both)} in both")
    if not both:
        return
    ratios = [after["simulated"]["costUsd"] / before["simulated"]["costUsd"] for before, after in both]
    better, worse = sum(r < 1 - SAME for r in ratios), sum(r > 1 + SAME for r in ratios)
    print(f"in the simulator: {better} cheaper, {worse} more expensive, {len(both) - better - worse} as before; "
          f"all together {statistics.fmean(ratios) - 1:+.2%}")
    for name, which in (("before", 0), ("after", 1)):
        errors = [abs(pair[which]["usd"] / pair[which]["simulated"]["costUsd"] - 1) for pair in both]
        print(f"closed form, {name}: off by a median of {statistics.median(errors):.1%}, mean {statistics.fmean(errors):.1%}")


def compare(before_file, after_file):
    records = [[json.loads(line) for line in pathlib.Path(f).read_text().splitlines()] for f in (before_file, after_file)]
    reasons, savings = collections.Counter(), []
    for before, after in zip(*records):
        why = "ERROR" if "error" in before or "error" in after else reason(before, after)
        reasons[why] += 1
        if why.startswith("cheaper"):
            savings.append(1 - after["usd"] / before["usd"])
        if why.isupper() or any(word.isupper() and len(word) > 3 for word in why.split()):
            print(json.dumps({"why": why, "before": before, "after": after}))
    for why, count in reasons.most_common():
        print(f"{count:5}  {why}")
    in_simulator(records)
    if savings:
        savings.sort()
        print(f"saved where cheaper: median {savings[len(savings) // 2]:.1%}, mean {sum(savings) / len(savings):.1%}, "
              f"p90 {savings[len(savings) * 9 // 10]:.1%}")
    return 1 if any(why.isupper() for why in reasons) else 0


def keep(path):
    """What `check` needs of a record."""
    lines = []
    for one in map(json.loads, pathlib.Path(path).read_text().splitlines()):
        lines.append(json.dumps({key: one[key] for key in ("question", "feasible", "usd", "stages") if key in one}, separators=(",", ":")))
    ANSWERS.write_bytes(gzip.compress(("\n".join(lines) + "\n").encode(), 9, mtime=0))


def verdict(before, after):
    if "error" in after:
        return "error"
    if before["feasible"] != after["feasible"]:
        return "better" if after["feasible"] else "worse"
    if not after["feasible"] or abs(after["usd"] - before["usd"]) <= SAME * before["usd"]:
        return "unchanged"
    return "better" if after["usd"] < before["usd"] else "worse"


def check(medley, count):
    recorded = [json.loads(line) for line in gzip.decompress(ANSWERS.read_bytes()).decode().splitlines()][:count]
    verdicts = collections.Counter()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        answers = pool.map(lambda before: answer(medley, folder, False, before["question"]), recorded)
        for before, after in zip(recorded, answers):
            said = verdict(before, after)
            verdicts[said] += 1
            if said != "unchanged":
                print(json.dumps({"verdict": said, "before": before, "after": after}))
    print(", ".join(f"{count} {said}" for said, count in verdicts.most_common()))
    return 1 if verdicts["worse"] or verdicts["error"] else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("record")
    one.add_argument("medley")
    one.add_argument("file")
    one.add_argument("--count", type=int, default=1000)
    one.add_argument("--links", action="store_true")
    two = commands.add_parser("compare")
    two.add_argument("before")
    two.add_argument("after")
    three = commands.add_parser("check")
    three.add_argument("medley")
    three.add_argument("--count", type=int, default=1000)
    four = commands.add_parser("keep")
    four.add_argument("file")
    args = parser.parse_args()
    if args.command == "check":
        return check(args.medley, args.count)
    if args.command == "keep":
        keep(args.file)
        return 0
    if args.command == "record":
        record(args.medley, args.file, args.count, args.links)
        return 0
    return compare(args.before, args.after)


if __name__ == "__main__":
    sys.exit(main())
