#!/usr/bin/env python3
"""Makes, from the schemas of TrainingJob and ResourcePool, types for programs in Python that write jobs or read their status.

  job_types.py CRD... OUT   writes the module OUT, if its text changes

Each object of a schema becomes a TypedDict, by whose names editors complete and type checkers refuse what is not there. What an object
may hold beside its fields (pod templates, volume sources) is Any. Bounds, patterns and rules are not types: an API server and `medley
run` check them. CMake runs it (common/model/CMakeLists.txt).
"""
import keyword
import os
import sys
import textwrap

import yaml

HEAD = '''"""Types of Medley's objects. Made by cmake/job_types.py from deploy/crds."""
from typing import Any, Literal, Required, TypedDict
'''


class Types:
    """The classes of one definition, those first that others name."""

    def __init__(self):
        self.classes = {}  # name -> its text, in the order of the module

    def of(self, name, schema):
        """The type of a value, as Python writes it. `name`: of the class, if it becomes one."""
        kind = schema.get("type")
        if schema.get("x-kubernetes-int-or-string"):
            return "int | str"
        if "enum" in schema:
            return f"Literal[{', '.join(map(repr, schema['enum']))}]"
        if kind == "array":
            return f"list[{self.of(name + 'Item', schema['items'])}]"
        if isinstance(schema.get("additionalProperties"), dict):
            return f"dict[str, {self.of(name + 'Value', schema['additionalProperties'])}]"
        if schema.get("properties") and not schema.get("x-kubernetes-preserve-unknown-fields"):
            self.add(name, schema)
            return name
        return {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "object": "dict[str, Any]"}.get(kind, "Any")

    def add(self, name, schema):
        """Makes the class of an object with fields."""
        required = schema.get("required", [])
        fields = {}
        for field, below in schema["properties"].items():
            kind = self.of(name + field[0].upper() + field[1:], below)
            fields[field] = (f"Required[{kind}]" if field in required else kind, below.get("description", ""))
        text = textwrap.fill(schema.get("description", "").replace("\\", "\\\\"), 110)
        if any(keyword.iskeyword(field) for field in fields):  # no name of a class's member
            lines = ["# " + line for line in text.split("\n") if line] + [f"{name} = TypedDict({name!r}, {{"]
            for field, (kind, comment) in fields.items():
                lines += ["    # " + line for line in textwrap.wrap(comment, 110)] + [f"    {field!r}: {kind},"]
            lines.append("}, total=False)")
        else:
            lines = [f"class {name}(TypedDict, total=False):"]
            lines += [f'    """{text}"""' if "\n" not in text else '    """' + text.replace("\n", "\n    ") + '"""', ""] if text else []
            for field, (kind, comment) in fields.items():
                lines += ["    # " + line for line in textwrap.wrap(comment, 110)] + [f"    {field}: {kind}"]
        self.classes[name] = "\n".join(lines)


def module(crds):
    """The text of the module. `crds`: the parsed definitions."""
    types = Types()
    for crd in crds:
        (version,), group = crd["spec"]["versions"], crd["spec"]["group"]
        schema = version["schema"]["openAPIV3Schema"]
        kind = crd["spec"]["names"]["kind"]
        fields = {**schema["properties"], "kind": {"enum": [kind]}, "apiVersion": {"enum": [f"{group}/{version['name']}"]}}
        types.of(kind, {**schema, "properties": fields, "required": ["apiVersion", "kind", "metadata", *schema.get("required", [])]})
    return "\n\n\n".join([HEAD.rstrip(), *types.classes.values()]) + "\n"


def main():
    *paths, out = sys.argv[1:]
    crds = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            crds.append(yaml.safe_load(file))
    text = module(crds)
    os.makedirs(os.path.dirname(out), exist_ok=True)
    if not os.path.exists(out) or open(out, encoding="utf-8").read() != text:
        with open(out, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
