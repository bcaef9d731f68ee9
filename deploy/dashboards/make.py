#!/usr/bin/env python3
"""Writes charts/medley/dashboards/*.json. With --check it only says whether they are up to date."""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
import control_plane
import fleet
import job

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.path.join(ROOT, "charts", "medley", "dashboards")


def texts():
    """{file name: content}"""
    return {name: json.dumps(module.make().json(), indent=1, ensure_ascii=False) + "\n"
            for name, module in (("fleet.json", fleet), ("job.json", job), ("control-plane.json", control_plane))}


def main():
    stale = []
    for name, text in texts().items():
        path = os.path.join(FOLDER, name)
        before = open(path, encoding="utf-8").read() if os.path.exists(path) else ""
        if before == text:
            continue
        stale.append(name)
        if "--check" not in sys.argv:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
    if "--check" in sys.argv and stale:
        print("not as deploy/dashboards/make.py writes them: " + ", ".join(stale))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
