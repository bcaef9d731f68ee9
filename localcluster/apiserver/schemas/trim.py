#!/usr/bin/env python3
"""Makes builtin.json: the definitions of Kubernetes' OpenAPI document that the built-in kinds refer to.

    python3 trim.py KUBERNETES/api/openapi-spec/swagger.json GENERATED.PROTO... > builtin.json

Descriptions are shortened to their first sentence, and $refs become plain definition names. "x-proto" contains the
field numbers of the generated.proto files: it maps each number to a property or, for a message whose fields belong to
its parent, to another such map.
"""
import json
import re
import sys

KINDS = [
    "io.k8s.api.core.v1." + k for k in (
        "Namespace", "Pod", "Service", "ConfigMap", "Secret", "Node", "ResourceQuota", "LimitRange", "Event",
        "ServiceAccount", "Binding")
] + [
    "io.k8s.api.networking.v1.NetworkPolicy",
    "io.k8s.api.policy.v1.PodDisruptionBudget",
    "io.k8s.api.policy.v1.Eviction",
    "io.k8s.api.coordination.v1.Lease",
    "io.k8s.api.scheduling.v1.PriorityClass",
    "io.k8s.api.autoscaling.v1.Scale",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
    "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Status",
    "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
]


def trim(node):
    if isinstance(node, list):
        return [trim(n) for n in node]
    if not isinstance(node, dict):
        return node
    out = {}
    for key, value in node.items():
        if key == "x-kubernetes-group-version-kind":
            continue
        if key == "description" and isinstance(value, str):
            first = re.split(r"(?<=[.])\s", value.strip(), maxsplit=1)[0]
            value = first if len(first) <= 120 else first[:117].rsplit(" ", 1)[0] + "..."
        elif key == "$ref" and isinstance(value, str):
            value = value.rsplit("/", 1)[-1]
        else:
            value = trim(value)
        out[key] = value
    return out


def refs(node):
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref" and isinstance(value, str):
                yield value
            else:
                yield from refs(value)
    elif isinstance(node, list):
        for item in node:
            yield from refs(item)


def read_protos(paths):
    messages = {}
    for path in paths:
        package, message = "", None
        with open(path, encoding="utf-8") as f:
            for line in f:
                if m := re.match(r"package ([\w.]+);", line):
                    package = m[1]
                elif m := re.match(r"message (\w+) {", line):
                    message = messages.setdefault(f"{package}.{m[1]}", {})
                elif m := re.match(r"  (?:optional |repeated )?(map<.*>|[\w.]+) (\w+) = (\d+);", line):
                    kind = m[1] if m[1].startswith((".", "map")) else f"{package}.{m[1]}"
                    message[m[3]] = (m[2], kind.lstrip("."))
    return messages


def numbers(messages, fields, properties):
    out = {}
    for number, (name, kind) in fields.items():
        if name in properties:
            out[number] = name
        elif kind in messages:
            out[number] = numbers(messages, messages[kind], properties)
    return out


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        definitions = json.load(f)["definitions"]
    out, todo = {}, list(KINDS)
    while todo:
        name = todo.pop()
        if name not in out:
            out[name] = trim(definitions[name])
            todo += refs(out[name])
    messages = read_protos(sys.argv[2:])
    for name, definition in out.items():
        fields = messages.get(name.removeprefix("io.").replace("k8s.api.", "k8s.io.api.")
                              .replace("k8s.apimachinery", "k8s.io.apimachinery"))
        if fields and "properties" in definition:
            definition["x-proto"] = numbers(messages, fields, definition["properties"])
    print("{")
    print(",\n".join(f"{json.dumps(k)}:{json.dumps(v, sort_keys=True, separators=(',', ':'))}"
                     for k, v in sorted(out.items())))
    print("}")


main()
