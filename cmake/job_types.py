#!/usr/bin/env python3
"""Makes, from the schemas of TrainingJob and ResourcePool, types for programs that write jobs or read their status.

  job_types.py CRD... OUT...   writes each OUT, if its text changes: a module of Python (.py), or declarations of TypeScript (.d.ts)

Each object of a schema becomes a TypedDict, or an interface, by whose names editors complete and type checkers refuse what is not
there. What an object may hold beside its fields (pod templates, volume sources) is Any, or unknown. Bounds, patterns and rules are not
types: an API server and `medley run` check them. CMake runs it (common/model/CMakeLists.txt).
"""
import json
import keyword
import os
import sys
import textwrap

import yaml

HEAD = '''"""Types of Medley's objects. Made by cmake/job_types.py from deploy/crds."""
from typing import Any, Literal, Required, TypedDict
'''


class Types:
    """The types of objects, those first that others name. A language says how it writes each."""

    def __init__(self):
        self.classes = {}  # name -> its text, in the order of the file

    def of(self, name, schema):
        """The type of a value, as the language writes it. `name`: of the type of an object, if it becomes one."""
        kind = schema.get("type")
        if schema.get("x-kubernetes-int-or-string"):
            return self.one_of([self.SCALARS["integer"], self.SCALARS["string"]])
        if "enum" in schema:
            return self.literal(schema["enum"])
        if kind == "array":
            return self.list_of(self.of(name + "Item", schema["items"]))
        if isinstance(schema.get("additionalProperties"), dict):
            return self.map_of(self.of(name + "Value", schema["additionalProperties"]))
        if schema.get("properties") and not schema.get("x-kubernetes-preserve-unknown-fields"):
            fields = {field: (self.of(name + field[0].upper() + field[1:], below), field in schema.get("required", []),
                              below.get("description", "")) for field, below in schema["properties"].items()}
            self.classes[name] = self.declared(name, schema.get("description", ""), fields)
            return name
        return self.map_of(self.ANY) if kind == "object" else self.SCALARS.get(kind, self.ANY)

    @staticmethod
    def one_of(kinds):
        return " | ".join(kinds)


class Python(Types):
    HEAD = HEAD
    ANY = "Any"
    SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}

    @staticmethod
    def literal(values):
        return f"Literal[{', '.join(map(repr, values))}]"

    @staticmethod
    def list_of(kind):
        return f"list[{kind}]"

    @staticmethod
    def map_of(kind):
        return f"dict[str, {kind}]"

    @staticmethod
    def declared(name, description, members):
        """The class of an object with fields: name -> its type, whether it is required, its description."""
        fields = {field: (f"Required[{kind}]" if required else kind, comment) for field, (kind, required, comment) in members.items()}
        text = textwrap.fill(description.replace("\\", "\\\\"), 110)
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
        return "\n".join(lines)


class TypeScript(Types):
    HEAD = "// Types of Medley's objects. Made by cmake/job_types.py from deploy/crds.\n"
    ANY = "unknown"
    SCALARS = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean"}

    @staticmethod
    def literal(values):
        return " | ".join(map(json.dumps, values))

    @staticmethod
    def list_of(kind):
        return f"Array<{kind}>"

    @staticmethod
    def map_of(kind):
        return f"Record<string, {kind}>"

    @staticmethod
    def declared(name, description, members):
        def text(words, indent):  # which editors show
            lines = textwrap.wrap(words.replace("*/", "* /"), 108)
            return [f"{indent}/** {lines[0]} */"] if len(lines) == 1 else \
                [f"{indent}/**", *(f"{indent} * {line}" for line in lines), f"{indent} */"] if lines else []

        lines = [*text(description, ""), f"export interface {name} {{"]
        for field, (kind, required, comment) in members.items():
            lines += [*text(comment, "  "), f"  {field}{'' if required else '?'}: {kind};"]
        return "\n".join(lines + ["}"])


def module(crds, types=None):
    """The text of the file. `crds`: the parsed definitions."""
    types = types or Python()
    for crd in crds:
        (version,), group = crd["spec"]["versions"], crd["spec"]["group"]
        schema = version["schema"]["openAPIV3Schema"]
        kind = crd["spec"]["names"]["kind"]
        fields = {**schema["properties"], "kind": {"enum": [kind]}, "apiVersion": {"enum": [f"{group}/{version['name']}"]}}
        types.of(kind, {**schema, "properties": fields, "required": ["apiVersion", "kind", "metadata", *schema.get("required", [])]})
    return "\n\n\n".join([types.HEAD.rstrip(), *types.classes.values()]) + "\n"


def main():
    crds = []
    for path in sys.argv[1:]:
        if path.endswith(".yaml"):
            with open(path, encoding="utf-8") as file:
                crds.append(yaml.safe_load(file))
            continue
        text = module(crds, TypeScript() if path.endswith(".d.ts") else Python())
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if not os.path.exists(path) or open(path, encoding="utf-8").read() != text:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)


if __name__ == "__main__":
    main()
