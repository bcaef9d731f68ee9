#!/usr/bin/env python3
"""Checks the rules of buf's STANDARD category that apply here, and comments on messages, enums, services and RPCs."""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def snake(name):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).upper()


def check(path, text):
    rel = os.path.relpath(path, os.path.join(ROOT, "proto"))
    problems = []

    def say(line, message):
        problems.append(f"proto/{rel}:{line}: {message}")

    package = re.search(r"^package ([\w.]+);", text, re.M)
    if not package or package.group(1).replace(".", "/") != os.path.dirname(rel):
        say(1, "PACKAGE_DIRECTORY_MATCH: the package must be the folder's path")
    elif not re.search(r"\.v\d+$", package.group(1)):
        say(1, "PACKAGE_VERSION_SUFFIX: the package must end in .v1")
    enum = None
    first_value = False
    seen_requests = set()
    previous = ""
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        match = re.match(r"(message|enum|service|rpc) (\w+)", stripped)
        if match:
            kind, name = match.groups()
            if not previous.startswith("//"):
                say(number, f"COMMENTS: {kind} {name} has no comment")
            if kind == "enum":
                enum, first_value = name, True
            if kind == "service" and not name.endswith("Service"):
                say(number, f"SERVICE_SUFFIX: {name}")
            if kind == "rpc":
                types = re.match(r"rpc \w+\((?:stream )?(\w+)\) returns \((?:stream )?(\w+)\)", stripped)
                if not types or types.groups() != (name + "Request", name + "Response"):
                    say(number, f"RPC_REQUEST_RESPONSE_STANDARD_NAME: {name}")
                if name in seen_requests:
                    say(number, f"RPC_REQUEST_RESPONSE_UNIQUE: {name}")
                seen_requests.add(name)
        elif enum and stripped == "}":
            enum = None
        elif enum:
            value = re.match(r"(\w+) = (\d+);", stripped)
            if value:
                if not value.group(1).startswith(snake(enum) + "_"):
                    say(number, f"ENUM_VALUE_PREFIX: {value.group(1)}")
                if first_value and (value.group(2) != "0" or not value.group(1).endswith("_UNSPECIFIED")):
                    say(number, f"ENUM_ZERO_VALUE_SUFFIX: {value.group(1)}")
                first_value = False
        else:
            field = re.match(r"(?:repeated |optional )?(?:map<[^>]+>|[\w.]+) (\w+) = \d+;", stripped)
            if field and not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", field.group(1)):
                say(number, f"FIELD_LOWER_SNAKE_CASE: {field.group(1)}")
        if stripped:
            previous = stripped
    return problems


def main():
    problems = []
    files = 0
    for base, _, names in os.walk(os.path.join(ROOT, "proto")):
        for name in sorted(names):
            if name.endswith(".proto"):
                files += 1
                path = os.path.join(base, name)
                problems += check(path, open(path, encoding="utf-8").read())
    for problem in problems:
        print(problem)
    print(f"check_proto: {files} files, {len(problems)} problems")
    return 1 if problems or files == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
