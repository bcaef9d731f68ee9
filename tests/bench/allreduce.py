#!/usr/bin/python3
"""Measures every allreduce algorithm among 2 and 4 processes over loopback: a table, and with --plot a drawing
of it. AUTO follows a table that is measured before over the same transport, as profilers do
(build/allreduce-profile*.json).

  tests/bench/allreduce.py [--rounds 5] [--seconds 0.3] [--no-tls] [--plot FILE.svg]

Needs build/bin/allreduce_bench. Writes build/allreduce.json. The algorithms take turns, so other load meets all of them;
of each, the median round counts.
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROFILES = {tls: os.path.join(ROOT, f"build/allreduce-profile{'-tls' * tls}.json") for tls in (False, True)}
RANKS = (2, 4)
NEAR_FASTEST, NEAR_SHARE = 1.10, 0.9
LEAST, LEAST_OF_BEST = 1 / 1.05, 1.2  # of ring / AUTO: at every size, at the best
LEAST_OF_MEMORY = 1.3  # of ring / shared memory, at every size
SIZES = [4096 << (2 * i) for i in range(8)]  # 4 KiB to 64 MiB
ALGORITHMS = ("auto", "ring", "recursive-doubling", "centralized", "linear")
COLOURS = {"auto": "#1f6f43", "ring": "#b3541e", "recursive-doubling": "#3b5b92", "centralized": "#777777", "linear": "#a08020",
           "memory": "#9b3d78"}
WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 430, 300, 56, 40, 56


MEMORY = "memory"  # what processes of one machine do, whatever the algorithm


def once(ranks, size, algorithm, tls, seconds):
    command = [os.path.join(ROOT, "build/bin/allreduce_bench"), "--ranks", str(ranks), "--bytes", str(size), "--algorithm",
               "ring" if algorithm == MEMORY else algorithm, "--seconds", str(seconds)] + (["--tls"] if tls else [])
    if algorithm == MEMORY:
        command.append("--shared-memory")
    if algorithm == "auto":
        command += ["--profile", PROFILES[tls]]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    result = json.loads(done.stdout)
    return result["us"], result["resolved"]


def measure(rounds, seconds, transports):
    """Microseconds by (ranks, tls, size, algorithm), all rounds; what AUTO means by (ranks, tls, size)."""
    found, meant = {}, {}
    for _ in range(rounds):
        for ranks in RANKS:
            for size in SIZES:
                for tls in transports:
                    for algorithm in ALGORITHMS + (() if tls else (MEMORY,)):
                        key = (ranks, tls, size, algorithm)
                        us, resolved = once(ranks, size, algorithm, tls, seconds)
                        found.setdefault(key, []).append(us)
                        if algorithm == "auto":
                            meant[ranks, tls, size] = resolved
    return found, meant


def name_of(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


def table(found):
    columns = ALGORITHMS + (MEMORY,)
    rows = ["| processes | size | " + " | ".join(columns) + " | ring / auto | the same with TLS | ring / memory |",
            "|---|---|" + "---|" * (len(columns) + 3)]
    for ranks in RANKS:
        for size in SIZES:
            plain = [statistics.median(found[ranks, False, size, a]) for a in columns]
            cells = [f"{us / 1000:.2f}" for us in plain]
            cells += [f"{gain(found, ranks, tls, size):.2f}" if (ranks, tls, size, "ring") in found else "-"
                      for tls in (False, True)]
            cells.append(f"{gain(found, ranks, False, size, MEMORY):.2f}")
            rows.append(f"| {ranks} | {name_of(size)} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def gain(found, ranks, tls, size, algorithm="auto"):
    """How many times as fast AUTO (or another) is as the ring: the median over rounds, in each of which both took turns."""
    pairs = zip(found[ranks, tls, size, "ring"], found[ranks, tls, size, algorithm])
    return statistics.median(ring / other for ring, other in pairs)


def panel(found, ranks, offset):
    """Bandwidth (bytes of the result per second) over size, both logarithmic."""
    least, most = 0.0003, 10.0  # GB/s
    out = [f'<text x="{offset + LEFT}" y="46" font-weight="bold">{ranks} processes</text>']

    def y(value):
        part = (math.log10(max(value, least)) - math.log10(least)) / (math.log10(most) - math.log10(least))
        return HEIGHT - BOTTOM - part * (HEIGHT - BOTTOM - TOP)
    step = (WIDTH - LEFT - 14) / (len(SIZES) - 1)
    for value in (0.001, 0.01, 0.1, 1):
        out.append(f'<path d="M{offset + LEFT} {y(value):.1f}h{WIDTH - LEFT - 14}" stroke="#ddd"/>'
                   f'<text x="{offset + LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value:g}</text>')
    for i, size in enumerate(SIZES):
        if i % 2 == 0 or i == len(SIZES) - 1:
            out.append(f'<text x="{offset + LEFT + i * step:.1f}" y="{HEIGHT - 20}" text-anchor="middle">{name_of(size)}</text>')
    for algorithm in (MEMORY, *reversed(ALGORITHMS)):
        points = [f"{offset + LEFT + i * step:.1f} "
                  f"{y(size / statistics.median(found[ranks, False, size, algorithm]) / 1000):.1f}"
                  for i, size in enumerate(SIZES)]
        width = 3 if algorithm == "auto" else 1.6
        out.append(f'<path d="M{"L".join(points)}" fill="none" stroke="{COLOURS[algorithm]}" stroke-width="{width}"/>')
    return out


def plot(found):
    width = WIDTH * len(RANKS)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" font-family="sans-serif" font-size="12">',
           "<title>Bandwidth of allreduce algorithms over loopback, by size</title>",
           f'<rect width="{width}" height="{HEIGHT}" fill="white"/>']
    labels = {"auto": "AUTO", MEMORY: "shared memory"}
    for i, algorithm in enumerate(ALGORITHMS + (MEMORY,)):
        label = labels.get(algorithm, algorithm)
        x = LEFT + i * 132
        out.append(f'<path d="M{x} 14h22" stroke="{COLOURS[algorithm]}" stroke-width="3"/><text x="{x + 28}" y="18">{label}</text>')
    for i, ranks in enumerate(RANKS):
        out += panel(found, ranks, i * WIDTH)
    out.append(f'<text x="14" y="{HEIGHT / 2:.0f}" transform="rotate(-90 14 {HEIGHT / 2:.0f})" text-anchor="middle">GB/s</text>')
    out.append("</svg>\n")
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--no-tls", action="store_true", help="measure only plain text, which takes half as long")
    parser.add_argument("--plot", metavar="FILE", help="draw the bandwidths into an SVG file")
    options = parser.parse_args()
    transports = (False,) if options.no_tls else (False, True)
    for tls in transports:
        with open(PROFILES[tls], "w", encoding="utf-8") as out:
            subprocess.run([os.path.join(ROOT, "build/bin/allreduce_bench"), "--measure"] + ["--tls"] * tls, stdout=out,
                           check=True, timeout=300)
    found, meant = measure(options.rounds, options.seconds, transports)
    rings = {key for key, algorithm in meant.items() if algorithm == "ring"}
    with open(os.path.join(ROOT, "build/allreduce.json"), "w", encoding="utf-8") as out:
        json.dump({"ringOverAuto": {f"{ranks}/{size}{'/tls' * tls}": gain(found, ranks, tls, size)
                                    for ranks in RANKS for size in SIZES for tls in transports
                                    if (ranks, tls, size) not in rings},
                   "microseconds": [[*key, values] for key, values in found.items()]}, out, indent=1)
    if options.plot:
        with open(options.plot, "w", encoding="utf-8") as out:
            out.write(plot(found))
    print(table(found))
    for ranks in RANKS:
        for tls in transports:
            report(found, rings, ranks, tls)
        memory = min(gain(found, ranks, False, size, MEMORY) for size in SIZES)
        compare(f"{ranks} processes", "shared memory, least", memory, LEAST_OF_MEMORY)
    against_fastest(found, meant)


def against_fastest(found, meant):
    """What AUTO means against the fastest of all algorithms in hindsight, both from the same measurements."""
    ratios = {}
    for (ranks, tls, size), chosen in meant.items():
        times = {algorithm: statistics.median(found[ranks, tls, size, algorithm]) for algorithm in ALGORITHMS[1:]}
        ratios[f"{ranks} x {name_of(size)}{', TLS' * tls}"] = times[chosen] / min(times.values())
    near = sum(ratio <= NEAR_FASTEST for ratio in ratios.values()) / len(ratios)
    far = ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items() if ratio > NEAR_FASTEST)
    print(f"AUTO / the fastest algorithm: at most {NEAR_FASTEST} at {100 * near:.0f} % of {len(ratios)} sizes, bar "
          f"{100 * NEAR_SHARE:.0f} %: {'reached' if near >= NEAR_SHARE else 'MISSED'}" + (f"; others: {far}" if far else ""))


def report(found, rings, ranks, tls):
    """Where AUTO is the ring, both are the same code: their ratio there only shows how well the machine measures."""
    who = f"{ranks} processes{', TLS' * tls}"
    ratios = [gain(found, ranks, tls, size) for size in SIZES if (ranks, tls, size) not in rings] or [1.0]
    same = [name_of(size) for size in SIZES if (ranks, tls, size) in rings]
    print(f"{who}: AUTO is the ring at {', '.join(same) or 'no size'}")
    compare(who, "AUTO, least", min(ratios), LEAST)
    compare(who, "AUTO, best", max(ratios), LEAST_OF_BEST)


def compare(who, what, value, bar):
    print(f"{who}, ring / {what}: {value:.2f}, bar {bar:.2f}: {'reached' if value >= bar else 'MISSED'}")


if __name__ == "__main__":
    main()
