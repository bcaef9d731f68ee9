#!/usr/bin/python3
"""Replays recorded prices for several strategies: a table, and with --docs the plots of docs/design/economics.md.

  tests/bench/economics/report.py [--docs] [--json FILE]

Needs build/bin/economics_bench. Writes build/economics.json.
"""
import argparse
import datetime
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
SCENARIOS = ["aws-us"]
DRAWN = {0: "#1f6f43", 1: "#b3541e", 2: "#555555", 3: "#3b5b92"}  # strategy -> colour
WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 860, 300, 60, 40, 64


def measure():
    files = [f"tests/bench/economics/{name}.yaml" for name in SCENARIOS]
    done = subprocess.run(["build/bin/economics_bench", *files], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr.strip() or "economics_bench failed")
    with open(os.path.join(ROOT, "build/economics.json"), "w", encoding="utf-8") as out:
        out.write(done.stdout)
    return json.loads(done.stdout)


def table(scenario):
    ours = scenario["outcomes"][0]["usd"]
    rows = ["| strategy | USD | against Medley | hours | moves | time above the floor |", "|---|---|---|---|---|---|"]
    for o in scenario["outcomes"]:
        rows.append(f"| {o['strategy']} | {o['usd']:,.0f} | {100 * (o['usd'] / ours - 1):+.1f} % | {o['hours']:,.0f} | "
                    f"{o['moves']} | {100 * o['shareAboveFloor']:.4f} % |")
    return "\n".join(rows)


def path(steps, begin, end, most):
    """A step line through (time, USD/h)."""
    def x(time):
        return LEFT + (time - begin) / (end - begin) * (WIDTH - LEFT - 10)

    def y(usd):
        return HEIGHT - BOTTOM - usd / most * (HEIGHT - BOTTOM - TOP)
    parts, last = [], None
    for time, usd, _ in steps:
        if last is None:
            parts.append(f"M{x(time):.1f} {y(usd):.1f}")
        elif abs(y(usd) - last) >= 0.05:
            parts.append(f"H{x(time):.1f}V{y(usd):.1f}")
        last = y(usd)
    parts.append(f"H{x(steps[-1][0]):.1f}")
    return "".join(parts)


def plot(scenario):
    drawn = [(i, scenario["outcomes"][i]) for i in DRAWN]
    begin = drawn[0][1]["steps"][0][0]
    end = max(o["steps"][-1][0] for _, o in drawn)
    most = 1.05 * max(step[1] for _, o in drawn for step in o["steps"])
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
           f'<title>USD per hour of one job over recorded prices, {scenario["scenario"]}</title>',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']
    for i in range(5):
        usd = most * i / 4
        y = HEIGHT - BOTTOM - i / 4 * (HEIGHT - BOTTOM - TOP)
        out.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - 10}" stroke="#ddd"/>'
                   f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{usd:.1f}</text>')
    for i in range(6):
        time = begin + (end - begin) * i / 5
        day = datetime.datetime.fromtimestamp(time, datetime.timezone.utc).date().isoformat()
        anchor = "start" if i == 0 else "end" if i == 5 else "middle"
        out.append(f'<text x="{LEFT + i / 5 * (WIDTH - LEFT - 10):.1f}" y="{HEIGHT - 16}" text-anchor="{anchor}">{day}</text>')
    out.append(f'<text x="14" y="{HEIGHT / 2:.0f}" transform="rotate(-90 14 {HEIGHT / 2:.0f})" text-anchor="middle">USD/h</text>')
    for n, (i, o) in enumerate(reversed(drawn)):
        out.append(f'<path d="{path(o["steps"], begin, end, most)}" fill="none" stroke="{DRAWN[i]}" stroke-width="1.6"/>')
        x, y = LEFT + (n % 2) * 400, 18 + (n // 2) * 18
        out.append(f'<path d="M{x} {y - 4}h22" stroke="{DRAWN[i]}" stroke-width="3"/>'
                   f'<text x="{x + 28}" y="{y}">{o["strategy"]}: {o["usd"]:,.0f} USD</text>')
    out.append("</svg>\n")
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", action="store_true", help="write docs/design/economics-*.svg")
    parser.add_argument("--json", help="use build/economics.json of an earlier run instead of measuring")
    arguments = parser.parse_args()
    if arguments.json:
        with open(arguments.json, encoding="utf-8") as earlier:
            scenarios = json.load(earlier)
    else:
        scenarios = measure()
    for scenario in scenarios:
        print(f"\n{scenario['scenario']}: {scenario['days']:.0f} days, {scenario['changes']} recorded prices, "
              f"floor {scenario['minThroughput']:,.0f} samples/s\n")
        print(table(scenario))
        if arguments.docs:
            with open(os.path.join(ROOT, f"docs/design/economics-{scenario['scenario']}.svg"), "w", encoding="utf-8") as out:
                out.write(plot(scenario))


if __name__ == "__main__":
    main()
