"""Processor time of a process and its descendants, by member of a job and thread."""
import os
import re


def _children():
    children = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                    children.setdefault(int(file.read().rsplit(")", 1)[1].split()[1]), []).append(int(name))
            except OSError:
                pass
    return children


def processor_seconds(pid):
    """Of those that run now: {(MEDLEY_MEMBER or "other", process, thread, its name): seconds}."""
    children, seconds, left = _children(), {}, [pid]
    while left:
        process = left.pop()
        left += children.get(process, [])
        try:
            with open(f"/proc/{process}/environ", "rb") as file:
                member = re.search(rb"MEDLEY_MEMBER=([^\0]*)", file.read())
            role = member.group(1).decode() if member else ""
            for thread in os.listdir(f"/proc/{process}/task"):
                with open(f"/proc/{process}/task/{thread}/comm", encoding="utf-8", errors="replace") as file:
                    name = file.read().strip()
                with open(f"/proc/{process}/task/{thread}/schedstat", encoding="utf-8") as file:
                    seconds[(role or "other", process, thread, name)] = int(file.read().split()[0]) / 1e9
        except OSError:
            pass
    return seconds


def between(before, after, key):
    """Seconds by key((member, process, thread, name)) of the threads that ran at both moments."""
    sums = {}
    for thread, value in after.items():
        if thread in before:
            sums[key(thread)] = sums.get(key(thread), 0) + value - before[thread]
    return sums
