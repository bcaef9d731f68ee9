#!/usr/bin/env python3
"""The types that cmake/job_types.py makes accept what the schemas accept, and refuse what they refuse for its shape.

The judge of types is a walk of typing's own hints, as type checkers do; the judge of the schemas is jsonschema. Declarations of
TypeScript are read into such hints.
"""
import glob
import os
import re
import subprocess
import sys
import types
import typing
import unittest

import jsonschema
import yaml

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "../..")
sys.path[:0] = [os.path.join(HERE, "../../cmake")]
import job_types  # noqa: E402

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def documents(path):
    with open(path, encoding="utf-8") as file:
        return [each for each in yaml.load_all(file, Loader=LOADER) if isinstance(each, dict)]


CRDS = [documents(os.path.join(ROOT, "deploy/crds", name))[0] for name in ("trainingjobs.yaml", "resourcepools.yaml")]
SCHEMAS = {crd["spec"]["names"]["kind"]: crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] for crd in CRDS}
MADE = types.ModuleType("medley_types")
exec(job_types.module(CRDS), MADE.__dict__)  # pylint: disable=exec-used
sys.modules["medley_types"] = MADE  # where typing looks for the names of hints


# A type as TypeScript writes it: what one part of a union may be.
TS_NAMES = {"string": str, "number": float, "boolean": bool, "unknown": typing.Any}


def read_type(text, known):
    """The hint of a type of TypeScript, of the forms that job_types.py writes. Raises KeyError for another."""
    parts = [part.strip() for part in re.findall(r'"[^"]*"|(?:[^|"<>]|<.*>)+', text) if part.strip()]
    if all(part.startswith('"') for part in parts):
        return typing.Literal[tuple(part[1:-1] for part in parts)]
    hints = []
    for part in parts:
        outer = re.fullmatch(r"(Array|Record)<(.*)>", part)
        if outer and outer.group(1) == "Array":
            hints.append(list[read_type(outer.group(2), known)])
        elif outer:
            key, value = outer.group(2).split(", ", 1)
            hints.append(dict[{"string": str}[key], read_type(value, known)])
        else:
            hints.append(known[part] if part in known else TS_NAMES[part])
    # `number` is an integer or not: JSON of TypeScript has one type for both.
    return hints[0] if len(hints) == 1 else hints[0] | hints[1]


def read_declarations(text):
    """name -> TypedDict, of the interfaces in a file of declarations."""
    found = {}
    text = re.sub(r"/\*\*.*?\*/", "", text, flags=re.S)
    for name, body in re.findall(r"^export interface (\w+) \{\n(.*?)^\}$", text, re.S | re.M):
        fields = {}
        for line in filter(str.strip, body.split("\n")):
            field, optional, kind = re.fullmatch(r"  (\w+)(\??): (.+);", line).groups()
            hint = read_type(kind, found)
            fields[field] = hint if optional else typing.Required[hint]
        found[name] = typing.TypedDict(name, fields, total=False)
    return found


def misfit(value, hint, path="it"):
    """Why a value is not of a type, or None."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if hint is typing.Any:
        return None
    if origin in (typing.Required, typing.NotRequired):
        return misfit(value, parts[0], path)
    if origin is typing.Literal:
        return None if value in parts else f"{path} is not one of {parts}"
    if origin is types.UnionType:
        return None if any(misfit(value, each) is None for each in parts) else f"{path} is not one of {parts}"
    if origin is list:
        wrong = (misfit(item, parts[0], f"{path}[{i}]") for i, item in enumerate(value)) if isinstance(value, list) else [f"{path} is no list"]
        return next((each for each in wrong if each), None)
    if origin is dict:
        wrong = (misfit(item, parts[1], f"{path}.{key}") for key, item in value.items()) if isinstance(value, dict) else [f"{path} is no object"]
        return next((each for each in wrong if each), None)
    if typing.is_typeddict(hint):
        if not isinstance(value, dict):
            return f"{path} is no object"
        hints = typing.get_type_hints(hint)
        if missing := hint.__required_keys__ - value.keys():
            return f"{path} lacks {sorted(missing)}"
        wrong = (misfit(item, hints[key], f"{path}.{key}") if key in hints else f"{path} has no {key}" for key, item in value.items())
        return next((each for each in wrong if each), None)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return None
    return None if type(value) is hint else f"{path} is no {hint.__name__}"


def strict(schema):
    """A schema for jsonschema that also refuses unknown fields, without what is no shape: bounds, patterns, lengths."""
    kept = {key: value for key, value in schema.items() if key in ("type", "enum", "required")}
    if schema.get("x-kubernetes-int-or-string"):
        return {"type": ["integer", "string"]}
    if schema.get("properties") and not schema.get("x-kubernetes-preserve-unknown-fields"):
        kept["properties"] = {name: strict(field) for name, field in schema["properties"].items()}
        kept["additionalProperties"] = False
    elif isinstance(schema.get("additionalProperties"), dict):
        kept["additionalProperties"] = strict(schema["additionalProperties"])
    else:
        kept.pop("required", None)  # of what Kubernetes defines
    if "items" in schema:
        kept["items"] = strict(schema["items"])
    return kept


def samples(schema):
    """Values of a schema: a whole one, and the same with one thing wrong at a time, each with whether it is right."""
    if schema.get("x-kubernetes-int-or-string"):
        return [(3, True), ("x", True), (None, False), (1.5, False), ([], False)]
    if "enum" in schema:
        return [(schema["enum"][0], True), ("no such value", False), (7, False)]
    kind = schema.get("type")
    if kind == "array":
        inner = samples(schema["items"])
        return [([value], good) for value, good in inner] + [("x", False), ({}, False)]
    if kind == "object" and schema.get("properties") and not schema.get("x-kubernetes-preserve-unknown-fields"):
        below = {name: samples(field) for name, field in schema["properties"].items()}
        whole = {name: values[0][0] for name, values in below.items()}
        found = [(whole, True), ({**whole, "noSuchField": 1}, False), ([], False), ("x", False)]
        found += [({**whole, name: value}, good) for name, values in below.items() for value, good in values[1:]]
        return found + [({key: value for key, value in whole.items() if key != name}, name not in schema.get("required", []))
                        for name in whole]
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return [({"a": value}, good) for value, good in samples(schema["additionalProperties"])] + [("x", False)]
    return {"string": [("x", True), (1, False), (["x"], False)], "boolean": [(True, True), ("true", False), (1, False)],
            "integer": [(1, True), ("1", False), (1.5, False), (True, False)], "number": [(1.5, True), (2, True), ("1", False)],
            "object": [({"any": [1]}, True), ("x", False)]}[kind]


TYPESCRIPT = job_types.module(CRDS, job_types.TypeScript())
DECLARED = read_declarations(TYPESCRIPT)


class JobTypesTest(unittest.TestCase):
    def test_typescript_declares_what_python_does(self):
        self.assertEqual(list(DECLARED), [name for name, each in vars(MADE).items() if typing.is_typeddict(each)])

        def same(ours, theirs, path):
            origin, parts = typing.get_origin(ours), typing.get_args(ours)
            if typing.is_typeddict(ours):
                self.assertEqual(ours.__required_keys__, theirs.__required_keys__, path)
                hints, others = typing.get_type_hints(ours), typing.get_type_hints(theirs)
                self.assertEqual(list(hints), list(others), path)
                for key, hint in hints.items():
                    same(hint, others[key], f"{path}.{key}")
            elif origin in (list, dict):
                self.assertEqual(typing.get_origin(theirs), origin, path)
                same(parts[-1], typing.get_args(theirs)[-1], path)
            elif origin is types.UnionType:
                self.assertEqual(set(typing.get_args(theirs)), {float if part is int else part for part in parts}, path)
            else:
                self.assertEqual(theirs, float if ours is int else ours, path)

        for kind in SCHEMAS:
            same(getattr(MADE, kind), DECLARED[kind], kind)

    def test_a_wrong_declaration_is_seen(self):
        for broken in (TYPESCRIPT.replace("uri: string;", "uri: text;", 1), TYPESCRIPT.replace("embeddingDim?:", "embeddingDim!:", 1)):
            with self.assertRaises((KeyError, AttributeError)):
                read_declarations(broken)
        optional = read_declarations(TYPESCRIPT.replace("  uri: string;", "  uri?: string;", 1))
        self.assertNotEqual(optional["TrainingJobSpecModelExported"].__required_keys__,
                            DECLARED["TrainingJobSpecModelExported"].__required_keys__)

    def test_every_example_is_of_its_type(self):
        paths = glob.glob(os.path.join(ROOT, "examples/**/*.yaml"), recursive=True) + glob.glob(
            os.path.join(ROOT, "tests/data/manifests/good/*.yaml"))
        found = 0
        for path in sorted(paths):
            for document in documents(path):
                kind = document.get("kind")
                if kind in SCHEMAS:
                    found += 1
                    with self.subTest(os.path.relpath(path, ROOT)):
                        self.assertIsNone(misfit(document, getattr(MADE, kind)))
        self.assertGreater(found, 30)

    def test_types_and_schemas_agree_about_every_field(self):
        for kind, schema in SCHEMAS.items():
            judge = jsonschema.Draft7Validator(strict(schema))
            count = 0
            for value, good in samples({**schema, "properties": {name: field for name, field in schema["properties"].items()
                                                                 if name in ("spec", "status")}}):
                if not isinstance(value, dict):
                    continue
                whole = {"apiVersion": "medley.dev/v1alpha1", "kind": kind, "metadata": {"name": "x"}, **value}
                count += 1
                why = misfit(whole, getattr(MADE, kind))
                self.assertEqual((why is None, judge.is_valid(whole)), (good, good), f"{kind}: {why}: {str(value)[:400]}")
            self.assertGreater(count, 200, kind)

    def test_a_new_field_is_of_the_type(self):
        crd = documents(os.path.join(ROOT, "deploy/crds/trainingjobs.yaml"))[0]
        spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        spec["data"]["properties"]["schema"]["properties"]["someThing"] = {"type": "number", "description": "What it \\ is."}
        made = types.ModuleType("made")
        exec(job_types.module([crd]), made.__dict__)  # pylint: disable=exec-used
        self.assertEqual(made.TrainingJobSpecDataSchema.__annotations__["someThing"], float)

    def test_the_example_writes_objects_of_the_types(self):
        script = os.path.join(ROOT, "examples/python/write_job.py")
        text = subprocess.run([sys.executable, script, "a/b.csv", "y", "x", "z"], check=True, capture_output=True, text=True).stdout
        pool, job = yaml.safe_load_all(text)
        for each in (pool, job):
            self.assertIsNone(misfit(each, getattr(MADE, each["kind"])))
        self.assertEqual(job["spec"]["data"]["schema"]["numeric"], ["x", "z"])


if __name__ == "__main__":
    sys.exit(unittest.main())
