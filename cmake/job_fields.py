#!/usr/bin/env python3
"""Makes, from the schema of TrainingJob, the C++ structs of a job's spec, their defaults and what reads them.

  job_fields.py deploy/crds/trainingjobs.yaml OUT   writes into the folder OUT: job_fields.h, job_fields.inc (which job_spec.cc
                                                    includes) and job_schema.inc (which job_schema.cc includes)

CMake runs it (common/model/CMakeLists.txt). A field of the schema below a struct of STRUCTS becomes a member with its type, default
and description, and is read; the tables say only where C++ differs from that. A file is written only if its text changes.
"""
import json
import os
import re
import sys
import textwrap

import yaml

# struct -> the object that it is, what the struct is for, and objects below whose fields are members of it too. A struct that
# another holds comes before it.
STRUCTS = {
    "LayerSpec": ("model.layers[]", "One layer of spec.model.layers.", []),
    "CutSpec": ("model.cut", "How a model from PyTorch is divided into operations: worker/cut/cut.h.", []),
    "ModelSpec": ("model", "What is trained.", ["parameters", "exported", "torchScript"]),
    "EvaluationSpec": ("training.evaluation",
                       "When models are evaluated before the end of the training: exactly one number is above 0.", []),
    "EarlyStoppingSpec": ("training.earlyStopping", "Training stops when the metric has not improved by more than min_delta "
                          "in `patience` evaluations in a row.", []),
    "ClassWeightsSpec": ("training.classWeights",
                         "Factors of the losses of samples by their class. Evaluations count every sample once.", []),
    "ScheduleSpec": ("training.optimizer.schedule",
                     "How the learning rate changes with the number of the step (worker/params/rate_schedule.h).", []),
    "TrainingSpec": ("training", "How it is trained.", ["optimizer"]),
    "CheckpointSpec": ("checkpoint", "When and where checkpoints are saved.", ["volume"]),
}

# Fields that are no member of these structs, and why.
SKIPPED = {
    "model.task": "it says how labels are read: SchemaSpec::task",
    "training.sync": "the operator reads it into a plan (operator/api/training_job.h)",
    "checkpoint.volume.hostPath": "pods see only the path at which it is mounted",
    **{f"checkpoint.volume.{kind}": "refused" for kind in
       ("emptyDir", "ephemeral", "gitRepo", "configMap", "secret", "downwardAPI", "projected", "image")},
}

# Members whose names are not those of the fields.
NAMES = {
    "model.exported.uri": "exported_uri",
    "model.torchScript.uri": "torchscript_uri",
    "training.optimizer.name": "optimizer",
    "checkpoint.interval": "interval_seconds",
    "checkpoint.volume.mountPath": "path",
}

# Members of another type than the schema's.
TYPES = {"training.seed": "uint64_t"}

# What an absent field means where the schema cannot have a default, because its rules refuse the field in some jobs.
ABSENT = {
    "model.task": "binary",
    "model.loss": "mse",
    "model.parameters.hidden": [400, 400, 400],
    "model.parameters.dropout": 0,
    "model.cut.depth": 1,
    "data.validation.seed": 1,
    "data.inputs[].scale": 1,
    "data.schema.dayFirst": False,
    "data.schema.label.count": 1,
    "data.schema.label.transform": "None",
    "training.optimizer.beta1": 0.9,
    "training.optimizer.beta2": 0.999,
    "training.optimizer.alpha": 0.99,
    "training.optimizer.momentum": 0,
    "training.optimizer.nesterov": False,
    "training.classWeights.balanced": False,
    "training.tensorBoard": False,
}

# Numbers whose absence code asks about, though it means one of ABSENT.
OPTIONAL = {"training.optimizer.beta1", "training.optimizer.beta2", "training.optimizer.alpha",
            "training.optimizer.momentum"}
# Texts whose absence code asks about: they are empty then.
EMPTY = {"model.loss"}
# Numbers that are 0 when absent, where the schema allows no 0.
ZERO = {"model.layers[].out", "model.layers[].fraction", "training.evaluation.everyEpochs", "training.evaluation.everySteps",
        "training.optimizer.schedule.everySteps", "training.optimizer.schedule.steps", "training.earlyStopping.patience"}

# Functions of a struct, which job_spec.cc defines.
FUNCTIONS = {"ModelSpec": ["// Whether it comes from a file of PyTorch.", "bool imported() const;"]}

DURATION = "(ms|s|m|h)"
HEADER = "// Made by cmake/job_fields.py from deploy/crds/trainingjobs.yaml.\n"


def snake(name):
    return re.sub(r"([A-Z])", lambda match: "_" + match.group(1).lower(), name)


def at(schema, path):
    for name in path.split("."):
        schema = schema["properties"][name.removesuffix("[]")]
        if name.endswith("[]"):
            schema = schema["items"]
    return schema


def default_of(path, field):
    return field["default"] if "default" in field else ABSENT.get(path)


def scalar(path, field):
    """The C++ type of a value, or None: an object or what a schema does not type."""
    if path in TYPES:
        return TYPES[path]
    kind = field.get("type")
    if kind == "string":
        return "double" if DURATION in field.get("pattern", "") else "std::string"
    if kind == "integer":
        return "int64_t" if field.get("format") == "int64" else "int"
    return {"number": "double", "boolean": "bool"}.get(kind)


def literal(value):
    if isinstance(value, list):
        return "{" + ", ".join(literal(v) for v in value) + "}"
    return json.dumps(value)


def seconds(text):
    parts = re.findall(r"([0-9.]+)(ms|s|m|h)", text)
    return sum(float(number) * {"ms": 1e-3, "s": 1, "m": 60, "h": 3600}[unit] for number, unit in parts)


class Member:
    """A member of a struct: its declaration, and the statement that reads it from `reader` into `out`."""

    def __init__(self, path, field, reader):
        self.name = NAMES.get(path, snake(path.rpartition(".")[2]))
        self.comment = field.get("description", "")
        key, out = json.dumps(path.rpartition(".")[2]), "out." + self.name
        struct = next((name for name, (where, _, _) in STRUCTS.items() if where in (path, path + "[]")), None)
        default = default_of(path, field)
        kind = scalar(path, field)
        if struct and field["type"] == "array":
            self.type, initial = f"std::vector<{struct}>", ""
            self.read = f"for (const Reader& item : {reader}.List({key})) Read{struct}(item, {out}.emplace_back());"
        elif struct and path == "model.cut":  # its absence means what its own defaults say
            self.type, initial = struct, ""
            self.read = f"Read{struct}({reader}.Child({key}), {out});"
        elif struct:
            self.type, initial = f"std::optional<{struct}>", ""
            self.read = f"if ({reader}.Has({key})) Read{struct}({reader}.Child({key}), {out}.emplace());"
        elif kind == "double" and field["type"] == "string":
            self.type, initial = kind, literal(seconds(default))
            self.read = f"{out} = {reader}.Seconds({key}, {out});"
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
            self.type, initial = f"std::map<std::string, {value}>", ""
            self.read = f"ReadNumbers({reader}, {key}, {out});" if value == "double" else f"{out} = {reader}.StringMap({key});"
        else:
            sys.exit(f"job_fields.py: spec.{path}: no struct of STRUCTS, and no type that has a member")
        self.declaration = f"{self.type} {self.name}{' = ' + initial if initial else ''};"


def members(path, schema, parts, reader="reader"):
    """The members of the object at `path` and of its `parts`, and lines that make readers of the parts."""
    found, lines = [], []
    for name, field in schema["properties"].items():
        where = f"{path}.{name}"
        if where in SKIPPED:
            continue
        if name in parts:
            lines.append(f"const Reader {name} = {reader}.Child({json.dumps(name)});")
            inner, more = members(where, field, [], name)
            found, lines = found + inner, lines + more
        else:
            found.append(Member(where, field, reader))
    return found, lines


def code_of(spec):
    header = [HEADER + "//\n// The parts of a TrainingJob's spec that are as the schema says. Immutable values.\n#pragma once\n",
              "#include <cstdint>\n#include <map>\n#include <optional>\n#include <string>\n#include <vector>\n",
              "namespace medley::model {\n"]
    source = [HEADER]
    for struct, (path, text, parts) in STRUCTS.items():
        found, lines = members(path, at(spec, path), parts)
        names = [member.name for member in found]
        if len(set(names)) < len(names):
            sys.exit(f"job_fields.py: {struct} has two members of one name: NAMES gives another ({', '.join(sorted(names))})")
        header += [f"// {text}", f"struct {struct} {{"]
        for member in found:
            header += ["  // " + line for line in textwrap.wrap(member.comment, 112)] + ["  " + member.declaration]
        header += ["", *("  " + line for line in FUNCTIONS[struct])] if struct in FUNCTIONS else []
        header += ["};\n"]
        source += [f"void Read{struct}(const Reader& reader, {struct}& out) {{"]
        source += ["  " + line for line in lines + [member.read for member in found]] + ["}\n"]
    return "\n".join(header + ["}  // namespace medley::model\n"]), "\n".join(source)


def bare(path, schema):
    """The schema without texts and rules, with `x-absent` where an absent field means a value of ABSENT."""
    kept = {key: value for key, value in schema.items() if key not in ("description", "x-kubernetes-validations")}
    if path in ABSENT:
        kept["x-absent"] = ABSENT[path]
    if "properties" in kept:
        kept["properties"] = {name: bare(f"{path}.{name}" if path else name, field)
                              for name, field in kept["properties"].items()}
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(kept.get(key), dict):
            kept[key] = bare(path + mark, kept[key])
    return kept


def check(spec):
    """Every path of a table is a field."""
    for path in {*SKIPPED, *NAMES, *TYPES, *ABSENT, *OPTIONAL, *ZERO, *EMPTY, *(where for where, _, _ in STRUCTS.values())}:
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
    header, source = code_of(spec)
    os.makedirs(out, exist_ok=True)
    schema = json.dumps(bare("", spec), separators=(",", ":"))
    for name, text in (("job_fields.h", header), ("job_fields.inc", source),
                       ("job_schema.inc", f'R"MEDLEY({schema})MEDLEY"\n')):
        path = os.path.join(out, name)
        old = open(path, encoding="utf-8").read() if os.path.exists(path) else None
        if old != text:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)


if __name__ == "__main__":
    main()
