#!/usr/bin/env python3
"""Checks the CRDs of deploy/crds: structural schemas, bounds, and a description of every field for `kubectl explain`.

`check_crds.py --write` also writes the reference tables of docs/use/api.md, which must be up to date.
"""
import os
import re
import sys

import yaml

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CRDS = ("trainingjobs.yaml", "resourcepools.yaml")
DOCUMENT = "docs/use/api.md"
LONGEST = 400  # characters of a description, so that kubectl explain stays readable


def fields(schema, path):
    """Yields (path, schema) of every field below, depth first; items are 'path[]', map values 'path{}'."""
    for name, field in schema.get("properties", {}).items():
        where = f"{path}.{name}" if path else name
        yield where, field
        yield from fields(field, where)
    if "items" in schema:
        yield from inner(schema["items"], path + "[]")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from inner(schema["additionalProperties"], path + "{}")


def inner(schema, path):
    """True for paths that need a description: not items and map values themselves, but the fields in them."""
    yield path, schema
    yield from fields(schema, path)


def unbounded(field):
    """What a field of a spec lacks. The status is not bounded, because only the operator writes it."""
    kind = field.get("type")
    if kind in ("integer", "number") and not {"minimum", "maximum"} <= field.keys():
        yield f"{'an' if kind == 'integer' else 'a'} {kind} without minimum and maximum"
    text = kind == "string" or field.get("x-kubernetes-int-or-string")
    if text and not {"maxLength", "enum", "format"} & field.keys():
        yield "a string without maxLength, enum or format"
    if kind == "array" and "maxItems" not in field:
        yield "an array without maxItems: rules over it could cost without bound"
    # What Kubernetes defines (volume sources, pod templates) is bounded as a whole by operator/api/bounds.h as well.
    is_map = "additionalProperties" in field or field.get("x-kubernetes-preserve-unknown-fields")
    if is_map and "maxProperties" not in field:
        yield "a map without maxProperties"


def check_field(path, field):
    if path in ("apiVersion", "kind", "metadata"):
        return  # Kubernetes documents these
    anonymous = path.endswith(("[]", "{}"))
    text = field.get("description", "")
    if not anonymous and not text:
        yield "no description"
    if text and not re.match(r"^[A-Z0-9].*\.$", text, re.S):
        yield f"description is no sentence: {text!r}"
    if len(text) > LONGEST:
        yield f"description of {len(text)} characters; at most {LONGEST}"
    if "type" not in field and not field.get("x-kubernetes-int-or-string"):
        yield "no type"
    if path == "spec" or path.startswith("spec."):
        yield from unbounded(field)
    for rule in field.get("x-kubernetes-validations", []):
        if not rule.get("message"):
            yield f"a rule without a sentence: {rule.get('rule')}"


def problems_of(name, crd):
    for version in crd["spec"]["versions"]:
        schema = version["schema"]["openAPIV3Schema"]
        for path, field in [("(top)", schema), *fields(schema, "")]:
            for problem in check_field(path, field):
                yield f"{name}: {path}: {problem}"
        if "status" not in version.get("subresources", {}):
            yield f"{name}: no status subresource"
        for column in version["additionalPrinterColumns"]:
            text = column.get("description", "")
            if not re.match(r"^[A-Z].*\.$", text):
                yield f"{name}: column {column['name']}: description is no sentence: {text!r}"


def kind_of(field):
    if "enum" in field:
        return "one of " + ", ".join(f"`{v}`" if v != "" else "`\"\"`" for v in field["enum"])
    if field.get("x-kubernetes-int-or-string"):
        if "pattern" in field:
            return "quantity"
        return f"integer, {field['minimum']} to {field['maximum']}, or string"
    kind = field.get("type", "")
    if kind == "array":
        return "list of " + kind_of(field["items"]).replace("list of", "lists of")
    if kind == "object" and "additionalProperties" in field:
        return "map of " + kind_of(field["additionalProperties"])
    low, high = field.get("minimum"), field.get("maximum")
    if low is not None and high is not None:
        return f"{kind}, {low} to {high}"
    if low is not None:
        return f"{kind}, at least {low}"
    return kind


def constant(value):
    text = yaml.safe_dump(value, default_flow_style=True).strip().removesuffix("...").strip()
    return f"`{text}`"


def table(schema, part):
    """A Markdown table with a row for each field below `part` ('spec' or 'status')."""
    rows = ["| field | type | default | meaning |", "|---|---|---|---|"]
    required = {}
    for path, field in [("", schema), *fields(schema, "")]:
        required[path] = set(field.get("required", []))
        if not path.startswith(part + ".") or path.endswith(("[]", "{}")):
            continue
        parent, _, name = path.rpartition(".")
        default = constant(field["default"]) if "default" in field and field["default"] != {} else ""
        if name in required.get(parent, set()) and part == "spec":
            default = "required"
        text = field.get("description", "").replace("|", "\\|")
        rules = [rule["message"] for rule in field.get("x-kubernetes-validations", [])]
        if rules:
            text += " *Refused otherwise:* " + "; ".join(rules) + "."
        rows.append(f"| `{path[len(part) + 1:]}` | {kind_of(field)} | {default} | {text} |")
    return "\n".join(rows)


def reference(crds):
    parts = []
    for crd in crds.values():
        kind = crd["spec"]["names"]["kind"]
        schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        for part in ("spec", "status"):
            parts.append(f"### {kind}.{part}\n{table(schema, part)}\n")
    return "\n".join(parts)


def main():
    crds = {}
    for name in CRDS:
        with open(os.path.join(ROOT, "deploy/crds", name), encoding="utf-8") as file:
            crds[name] = yaml.safe_load(file)
    problems = [p for name, crd in crds.items() for p in problems_of(name, crd)]
    with open(os.path.join(ROOT, DOCUMENT), encoding="utf-8") as file:
        document = file.read()
    begin, end = "<!-- reference: tests/lint/check_crds.py --write -->\n", "<!-- end of reference -->"
    if begin not in document or end not in document:
        problems.append(f"{DOCUMENT}: the markers around the reference are missing")
    else:
        head, rest = document.split(begin, 1)
        fresh = head + begin + reference(crds) + end + rest.split(end, 1)[1]
        if fresh != document and "--write" in sys.argv[1:]:
            with open(os.path.join(ROOT, DOCUMENT), "w", encoding="utf-8") as file:
                file.write(fresh)
        elif fresh != document:
            problems.append(f"{DOCUMENT}: the reference is out of date: run tests/lint/check_crds.py --write")
    for problem in problems:
        print(problem)
    print(f"check_crds: {len(crds)} kinds, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
