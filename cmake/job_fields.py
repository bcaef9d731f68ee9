#!/usr/bin/env python3
"""Makes, from the schema of TrainingJob, the C++ structs of a job's spec, their defaults and what reads them.

  job_fields.py deploy/crds/trainingjobs.yaml OUT   writes into the folder OUT, for each entry of FILES, a header with the structs
                                                    and a source (.inc) with the functions that read them, and job_schema.inc,
                                                    the schema without its texts

CMake runs it (common/model/CMakeLists.txt). A field of the schema below a struct of STRUCTS becomes a member with its type, default
and description, and is read; the tables of job_tables.py say only where C++ differs from that. A file is written only if its text
changes.
"""
import json
import os
import re
import sys
import textwrap

import yaml

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from job_tables import (ABSENT, COLUMN_NAMES, CONSTANTS, DERIVED, EMPTY, ENUMS, FILES, FLAGS, FUNCTIONS, MOVED, NAMES, OPTIONAL,
                        PRESENT, SKIPPED, STRUCTS, TYPES, VISITED, WITHIN, ZERO)  # noqa: E402

DURATION, DECIMAL, PERCENT = "(ms|s|m|h)", r"^[0-9]+(\.[0-9]+)?$", r"^[0-9]+(\.[0-9]+)?%$"
BYTES = "^[1-9][0-9]*(Mi|Gi|Ti)$"
HEADER = "// Made by cmake/job_fields.py from deploy/crds/trainingjobs.yaml.\n"


def snake(name):
    return re.sub(r"([A-Z])", lambda match: "_" + match.group(1).lower(), name)


def at(schema, path):
    for name in path.split("."):
        schema = schema["properties"][name.removesuffix("[]")]
        if name.endswith("[]"):
            schema = schema["items"]
    return schema


def places(struct):
    """The objects that a struct is."""
    where = STRUCTS[struct][0]
    return [where] if isinstance(where, str) else list(where)


def default_of(path, field):
    return field["default"] if "default" in field else ABSENT.get(path)


def is_column(field):
    return field.get("x-kubernetes-int-or-string", False)


# Texts that are numbers: how they are read, and what one of them means.
def seconds(text):
    parts = re.findall(r"([0-9.]+)(ms|s|m|h)", text)
    return sum(float(number) * {"ms": 1e-3, "s": 1, "m": 60, "h": 3600}[unit] for number, unit in parts)


def bytes_of(text):
    return float(text[:-2]) * {"Mi": 2**20, "Gi": 2**30, "Ti": 2**40}[text[-2:]]


MEASURES = {"Bytes": (lambda pattern: pattern == BYTES, bytes_of),
            "Seconds": (lambda pattern: DURATION in pattern, seconds),
            "Quantity": (lambda pattern: pattern == DECIMAL, float),
            "Percent": (lambda pattern: pattern == PERCENT, lambda text: float(text[:-1]) / 100)}


def measure(field):
    """The key of MEASURES, or None."""
    if field.get("type") != "string":
        return None
    return next((name for name, (matches, _) in MEASURES.items() if matches(field.get("pattern", ""))), None)


def scalar(path, field):
    """The C++ type of a value, or None: an object or what a schema does not type."""
    if path in TYPES:
        return TYPES[path]
    kind = field.get("type")
    if kind == "string":
        return "double" if measure(field) else "std::string"
    if kind == "integer":
        return "int64_t" if field.get("format") == "int64" else "int"
    return {"number": "double", "boolean": "bool"}.get(kind)


def literal(value):
    if isinstance(value, list):
        return "{" + ", ".join(literal(v) for v in value) + "}"
    return json.dumps(value)


class Member:
    """A member of a struct: its declarations, and the statement that reads it from `reader` into `out`."""

    def __init__(self, path, field, reader, present=False, out="out."):
        self.name = NAMES.get(path, snake(path.rpartition(".")[2]))
        self.comment = field.get("description", "")
        self.more = []  # other members that hold a part of the value
        key, out = json.dumps(path.rpartition(".")[2]), out + self.name
        struct = next((name for name in STRUCTS if {path, path + "[]"} & set(places(name))), None)
        default = default_of(path, field)
        kind = scalar(path, field)
        initial = ""
        if struct and field["type"] == "array":
            self.type = f"std::vector<{struct}>"
            self.read = f"for (const Reader& item : {reader}.List({key})) Read{struct}(item, {out}.emplace_back());"
        elif struct and (present or path in PRESENT):
            self.type = struct
            self.read = f"Read{struct}({reader}.Child({key}), {out});"
        elif struct:
            self.type = f"std::optional<{struct}>"
            self.read = f"if ({reader}.Has({key})) Read{struct}({reader}.Child({key}), {out}.emplace());"
        elif is_column(field) or is_column(field.get("items", {})):
            several = field.get("type") == "array"
            names = COLUMN_NAMES[path]
            self.type, initial = ("std::vector<int>", "") if several else ("int", "-1")
            if "." not in names:
                self.more = [f"std::{'vector<std::string>' if several else 'string'} {names};"]
            self.read = f"Read{'Columns' if several else 'Column'}({reader}, {key}, {out}, {out.removesuffix(self.name)}{names});"
        elif path in ENUMS:
            values = field["enum"]
            self.type, initial = ENUMS[path], f"{ENUMS[path]}::k{default}"
            self.read = f"ReadEnum({reader}, {key}, {{{', '.join(map(json.dumps, values))}}}, {out});"
        elif path in FLAGS:
            self.type, initial = "bool", literal(default == FLAGS[path])
            self.read = f"{out} = {reader}.String({key}, {json.dumps(default)}) == {json.dumps(FLAGS[path])};"
        elif measure(field):
            self.type = kind
            initial = "0" if default is None and path in ZERO else literal(MEASURES[measure(field)][1](default))
            self.read = f"Read{measure(field)}({reader}, {key}, {out});"
        elif kind:
            number = kind not in ("std::string", "bool")
            absent = path in OPTIONAL or (number and default is None and path not in ZERO)
            self.type = f"std::optional<{kind}>" if absent else kind
            initial = "" if absent or path in EMPTY else literal(default) if default is not None else \
                "0" if number else "false" if kind == "bool" else ""
            self.read = f"if ({reader}.Has({key})) {reader}.Read({key}, {out}.emplace());" if absent else \
                f"{reader}.Read({key}, {out});"
        elif field.get("type") == "array":
            item = scalar(path + "[]", field["items"])
            self.type, initial = f"std::vector<{item}>", literal(default) if default else ""
            self.read = f"{out} = {reader}.Strings({key});" if item == "std::string" else f"{reader}.Read({key}, {out});"
        elif isinstance(field.get("additionalProperties"), dict):
            value = scalar(path + "{}", field["additionalProperties"])
            self.type = f"std::map<std::string, {value}>"
            self.read = f"ReadNumbers({reader}, {key}, {out});" if value == "double" else f"{out} = {reader}.StringMap({key});"
        else:
            sys.exit(f"job_fields.py: spec.{path}: no struct of STRUCTS, and no type that has a member")
        self.declarations = [f"{self.type} {self.name}{' = ' + initial if initial else ''};", *self.more]


def members(path, schema, parts, within, reader="reader"):
    """The members of the object at `path` and of its `parts`, lines that make readers of the parts, and statements that read what
    is a member elsewhere. `within`: fields that the struct has in another struct."""
    found, lines, elsewhere = [], [], []
    for name, field in schema["properties"].items():
        where = f"{path}.{name}"
        if where in SKIPPED or name in within:
            continue
        if name in parts:
            lines.append(f"const Reader {name} = {reader}.Child({json.dumps(name)});")
            inner, more, moved = members(where, field, parts, within, name)
            found, lines, elsewhere = found + inner, lines + more, elsewhere + moved
        elif where in MOVED:
            holder = next(NAMES.get(each, snake(each.rpartition(".")[2])) for each in places(MOVED[where]))
            elsewhere.append(Member(where, field, reader, out=f"out.{holder}.").read)
        else:
            found.append(Member(where, field, reader, present=name in schema.get("required", [])))
    return found, lines, elsewhere


def wrapped(text):
    return ["  // " + line for line in textwrap.wrap(text, 112)]


def enums_of(spec, structs):
    """Declarations of the enumerations of these structs' fields."""
    lines = []
    for path, name in ENUMS.items():
        if any(path.startswith(place + ".") for struct in structs for place in places(struct)):
            lines.append(f"enum class {name} {{ {', '.join('k' + value for value in at(spec, path)['enum'])} }};")
    return lines + [""] if lines else []


def constants_of(spec, structs):
    lines = []
    for name, (path, source, text) in CONSTANTS.items():
        if not any(path.startswith(place + ".") for struct in structs for place in places(struct)):
            continue
        field = at(spec, path)
        number = field.get(source) or next(iter(re.findall(source, field["description"])), None)
        if number is None:
            sys.exit(f"job_fields.py: spec.{path} does not say {source}")
        lines += [f"// {text}", f"inline constexpr size_t {name} = {number};"]
    return lines + [""] if lines else []


def struct_of(spec, struct):
    """The lines that declare a struct, and those that read it."""
    _, text, parts = STRUCTS[struct]
    path, *others = places(struct)
    schema = at(spec, path)
    for other in others:
        if set(at(spec, other)["properties"]) != set(schema["properties"]):
            sys.exit(f"job_fields.py: spec.{path} and spec.{other} are both {struct}, but have other fields")
    inner, member = WITHIN.get(struct, (None, None))
    within = set(at(spec, places(inner)[0])["properties"]) if inner else set()
    found, lines, elsewhere = members(path, schema, parts, within)
    reads = lines + [each.read for each in found] + elsewhere
    for moved in (each for each, holder in MOVED.items() if holder == struct):
        found.append(Member(moved, at(spec, moved), ""))
    header = ["\n".join("// " + line for line in textwrap.wrap(text, 116)), f"struct {struct} {{"]
    names = []
    for each in found:
        header += wrapped(each.comment) + ["  " + line for line in each.declarations]
        names += [each.name, *(re.search(r"(\w+);$", line).group(1) for line in each.more)]
    if inner:
        header += [f"  {inner} {member};"]
        reads.append(f"Read{inner}(reader, out.{member});")
        names.append(member)
    for declaration, comment in DERIVED.get(struct, []):
        header += wrapped(comment) + [f"  {declaration};"]
        names.append(re.search(r"(\w+)( =.*)?$", declaration).group(1))
    if len(set(names)) < len(names):
        sys.exit(f"job_fields.py: {struct} has two members of one name: NAMES gives another ({', '.join(sorted(names))})")
    if struct in FUNCTIONS:
        header += ["", *("  " + line for line in FUNCTIONS[struct])]
    header += ["};"]
    if struct in VISITED:
        header += [f"template <typename F>\nvoid ForEachMember(const {struct}& value, F f) {{",
                   *(f"  f(value.{name});" for name in names), "}"]
    source = [f"void Read{struct}(const Reader& reader, {struct}& out) {{", *("  " + line for line in reads), "}\n"]
    return header + [""], source


def code_of(spec, name="job_fields"):
    """The text of the header and of the source of an entry of FILES."""
    _, namespace, text, includes, structs = FILES[name]
    header = [HEADER + f"//\n// {text} Immutable values.\n#pragma once\n",
              "#include <cstddef>\n#include <cstdint>\n#include <map>\n#include <optional>\n#include <string>\n#include <vector>\n",
              *(f'#include "{include}"' for include in includes), *([""] if includes else []), f"namespace {namespace} {{\n",
              *constants_of(spec, structs), *enums_of(spec, structs)]
    source = [HEADER]
    for struct in structs:
        declared, reads = struct_of(spec, struct)
        header, source = header + declared, source + reads
    return "\n".join(header + [f"}}  // namespace {namespace}\n"]), "\n".join(source)


def is_path(field):
    """Whether it names a file or folder that pods open: a text that the pattern or a rule lets begin with file:///."""
    rules = (rule["rule"] for rule in field.get("x-kubernetes-validations", []))
    return field.get("type") == "string" and any("file:///" in text for text in (field.get("pattern", ""), *rules))


def bare(path, schema):
    """The schema without texts and rules, with `x-absent` where an absent field means a value of ABSENT, and `x-path` at paths."""
    kept = {key: value for key, value in schema.items() if key not in ("description", "x-kubernetes-validations")}
    if path in ABSENT:
        kept["x-absent"] = ABSENT[path]
    if is_path(schema):
        kept["x-path"] = True
    if "properties" in kept:
        kept["properties"] = {name: bare(f"{path}.{name}" if path else name, field)
                              for name, field in kept["properties"].items()}
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(kept.get(key), dict):
            kept[key] = bare(path + mark, kept[key])
    return kept


def check(spec):
    """Every path of a table is a field."""
    for path in {*SKIPPED, *NAMES, *TYPES, *ABSENT, *OPTIONAL, *ZERO, *EMPTY, *MOVED, *PRESENT, *ENUMS, *FLAGS, *COLUMN_NAMES,
                 *(path for path, _, _ in CONSTANTS.values()), *(where for struct in STRUCTS for where in places(struct))}:
        try:
            at(spec, path)
        except KeyError:
            sys.exit(f"job_fields.py: spec.{path} is no field of the schema")


def main():
    crd, out = sys.argv[1:]
    with open(crd, encoding="utf-8") as file:
        versions = yaml.safe_load(file)["spec"]["versions"]
    spec = versions[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    check(spec)
    schema = json.dumps(bare("", spec), separators=(",", ":"))
    made = {os.path.join("common/model", "job_schema.inc"): f'R"MEDLEY({schema})MEDLEY"\n'}
    for name, (folder, *_) in FILES.items():
        path = os.path.join(folder, name)
        made[path + ".h"], made[path + ".inc"] = code_of(spec, name)
    for name, text in made.items():
        path = os.path.join(out, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        old = open(path, encoding="utf-8").read() if os.path.exists(path) else None
        if old != text:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)


if __name__ == "__main__":
    main()
