#!/usr/bin/python3
"""Checks charts/medley and the files generated from it: link to the CRDs, table of values, schema, deploy/medley.yaml.

    tests/lint/check_chart.py           lists the files that are out of date
    tests/lint/check_chart.py --write   writes them (./dev manifests)

The table of the operator's rights in docs/operate/security.md is made of the rendered roles and permission_reasons.yaml.

values.yaml is the only source of keys, defaults and descriptions; values.schema.json adds types. deploy/medley.yaml is
the chart rendered with deploy/values.yaml; without helm this file is not checked, and a line says so.
"""
import json
import os
import re
import shutil
import subprocess
import sys

import yaml  # Debian's python3-yaml

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CHART = os.path.join(ROOT, "charts/medley")
REASONS = os.path.join(ROOT, "tests/lint/permission_reasons.yaml")
RIGHTS_BEGIN, RIGHTS_END = "<!-- rights: made by ./dev manifests -->", "<!-- end of rights -->"
BEGIN, END = "<!-- values: made by ./dev manifests -->", "<!-- end of values -->"
# The newest Kubernetes version that the chart is tested with. Without it helm may assume 1.20.
KUBE_VERSION = "1.34.0"


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def find_helm():
    cache = os.environ.get("MEDLEY_CLUSTER_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "medley-cluster")
    cached = os.path.join(cache, "bin/helm")
    return cached if os.access(cached, os.X_OK) else shutil.which("helm")


def described_values(text):
    """{path of a key with a comment: its description}."""
    found, stack, comment = {}, [], []
    for line in text.splitlines():
        if re.fullmatch(r"\s*", line):
            comment = []
            continue
        said = re.fullmatch(r"\s*# ?(.*)", line)
        if said:
            comment.append(said.group(1))
            continue
        key = re.match(r"( *)([A-Za-z][\w.-]*):", line)
        if key:
            depth = len(key.group(1))
            stack = [(d, k) for d, k in stack if d < depth] + [(depth, key.group(2))]
            if comment:
                found[tuple(k for _, k in stack)] = " ".join(comment)
        comment = []
    return found


def at(values, path):
    for key in path:
        values = values[key]
    return values


def undescribed(values, described, path=()):
    """The paths of values that have no comment, neither their own nor one of an enclosing key."""
    if path in described:
        return []
    if isinstance(values, dict) and values:
        return [p for key, value in values.items() for p in undescribed(value, described, path + (key,))]
    return [path]


def table(values, described):
    rows = ["| key | default | meaning |", "|---|---|---|"]
    for path, text in described.items():
        default = json.dumps(at(values, path), ensure_ascii=False)
        cell = text.replace("|", "\\|")
        rows.append(f"| `{'.'.join(path)}` | `{default}` | {cell} |")
    return "\n".join(rows)


def put_descriptions(schema, described):
    for path, text in described.items():
        node = schema
        for key in path:
            node = node["properties"][key]
        node["description"] = text


def schema_gaps(schema, values, described, path=()):
    """The differences between the schema and the values."""
    problems = []
    properties = schema.get("properties")
    if properties is None:
        return problems
    if schema.get("additionalProperties") is not False:
        problems.append(f"{'.'.join(path)}: additionalProperties must be false where properties are named")
    for key in values:
        if key not in properties:
            problems.append(f"{'.'.join(path + (key,))}: not in values.schema.json")
    for key, part in properties.items():
        here = path + (key,)
        if key == "global" and not path:
            continue  # a key of helm itself
        if key not in values:
            if path not in described:
                problems.append(f"{'.'.join(here)}: in values.schema.json, not in values.yaml")
        elif isinstance(values[key], dict):
            problems += schema_gaps(part, values[key], described, here)
    return problems


def render(helm):
    """deploy/medley.yaml."""
    ran = subprocess.run([helm, "template", "medley", CHART, "--namespace", "medley-system", "--kube-version", KUBE_VERSION,
                          "--skip-tests", "--values", os.path.join(ROOT, "deploy/values.yaml")],
                         capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise SystemExit(f"check_chart: helm template: {ran.stderr}")
    lines = [line for line in ran.stdout.splitlines()
             if not re.match(r"# Source: |\s+(app.kubernetes.io/managed-by: Helm|helm.sh/chart: )", line)]
    return read(os.path.join(ROOT, "deploy/namespace.yaml")) + "\n".join(lines).rstrip() + "\n"


def rights(manifests):
    """{(scope, resource): {verb}} of the operator's account; scope as in permission_reasons.yaml."""
    objects = [each for each in yaml.safe_load_all(manifests) if each]
    roles = {(each["kind"], each["metadata"]["name"]): each["rules"] for each in objects if each["kind"].endswith("Role")}
    found = {}
    for binding in objects:
        if not binding["kind"].endswith("RoleBinding") or not any(
                subject["kind"] == "ServiceAccount" and subject["name"] == "medley-operator"
                for subject in binding.get("subjects", [])):
            continue
        name = binding["roleRef"]["name"]
        scope = "own" if binding["kind"] == "RoleBinding" else "jobs" if name.endswith("-jobs") else "cluster"
        for rule in roles[(binding["roleRef"]["kind"], name)]:
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    key = (scope, f"{resource}.{group}" if group else resource)
                    found.setdefault(key, set()).update(rule["verbs"])
    return found


def rights_table(found, reasons):
    """Returns (the table, the differences between rights and reasons)."""
    known = {(scope, resource): dict(verbs) for scope, resources in reasons.items() for resource, verbs in resources.items()}
    problems = [f"permission_reasons.yaml: no reason for {verb} of {resource} ({scope})"
                for (scope, resource), verbs in sorted(found.items()) for verb in sorted(verbs - set(known.get((scope, resource), ())))]
    problems += [f"permission_reasons.yaml: the chart has no {verb} of {resource} ({scope})"
                 for (scope, resource), verbs in known.items() for verb in sorted(set(verbs) - found.get((scope, resource), set()))]
    where = {"cluster": "all of the cluster", "jobs": "namespaces with jobs", "own": "its own namespace"}
    rows = ["| where | resource | right: reason |", "|---|---|---|"]
    for (scope, resource), verbs in known.items():
        said = "; ".join(f"**{verb}**: {reason}" for verb, reason in verbs.items())
        rows.append(f"| {where[scope]} | `{resource}` | {said} |")
    return "\n".join(rows), problems


def wanted():
    """Returns ({file: its wanted content}, the problems that --write cannot fix)."""
    files, problems = {}, []
    if os.path.realpath(os.path.join(CHART, "crds")) != os.path.realpath(os.path.join(ROOT, "deploy/crds")):
        problems.append("charts/medley/crds: must be a link to deploy/crds, the only source of the CRDs")
    text = read(os.path.join(CHART, "values.yaml"))
    values, described = yaml.safe_load(text), described_values(text)
    problems += [f"values.yaml: {'.'.join(path)} has no comment" for path in undescribed(values, described)]
    readme_path = os.path.join(CHART, "README.md")
    readme = read(readme_path)
    before, rest = readme.split(BEGIN)
    files[readme_path] = before + BEGIN + "\n" + table(values, described) + "\n" + END + rest.split(END)[1]
    schema_path = os.path.join(CHART, "values.schema.json")
    schema = json.loads(read(schema_path))
    problems += schema_gaps(schema, values, described)
    put_descriptions(schema, described)
    files[schema_path] = json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
    helm = find_helm()
    if helm:
        files[os.path.join(ROOT, "deploy/medley.yaml")] = render(helm)
        table_of_rights, gaps = rights_table(rights(files[os.path.join(ROOT, "deploy/medley.yaml")]),
                                             yaml.safe_load(read(REASONS)))
        problems += gaps
        page = os.path.join(ROOT, "docs/operate/security.md")
        before, rest = read(page).split(RIGHTS_BEGIN)
        files[page] = before + RIGHTS_BEGIN + "\n" + table_of_rights + "\n" + RIGHTS_END + rest.split(RIGHTS_END)[1]
    else:
        print("check_chart: SKIPPED deploy/medley.yaml and docs/operate/security.md: helm is not installed (./dev cluster build helm builds it)")
    return files, problems


def main():
    write = sys.argv[1:] == ["--write"]
    files, problems = wanted()
    for path, text in files.items():
        if os.path.exists(path) and read(path) == text:
            continue
        name = os.path.relpath(path, ROOT)
        if write:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            print(f"wrote {name}")
        else:
            problems.append(f"{name}: out of date: run ./dev manifests")
    for problem in problems:
        print(problem)
    print(f"check_chart: {len(files)} files, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
