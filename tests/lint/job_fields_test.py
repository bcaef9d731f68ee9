#!/usr/bin/env python3
"""What cmake/job_fields.py makes of a schema, and what it refuses. The example is the schema itself with one more field."""
import os
import re
import sys
import unittest

import yaml

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../../cmake")]
import job_fields  # noqa: E402


def spec_with(path="", field=None):
    with open(os.path.join(HERE, "../../deploy/crds/trainingjobs.yaml"), encoding="utf-8") as file:
        crd = yaml.load(file, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    if path:
        parent, _, name = path.rpartition(".")
        job_fields.at(spec, parent)["properties"][name] = field
    return spec


class JobFieldsTest(unittest.TestCase):
    def test_a_field_of_each_type_becomes_a_member_that_is_read(self):
        for field, member, read in (
                ({"type": "number"}, "std::optional<double> some_thing;", 'Has("someThing")) reader.Read("someThing", out.some_thing.emplace'),
                ({"type": "number", "default": 0.5}, "double some_thing = 0.5;", 'reader.Read("someThing", out.some_thing);'),
                ({"type": "integer", "format": "int64", "default": 7}, "int64_t some_thing = 7;", 'reader.Read("someThing"'),
                ({"type": "boolean", "default": True}, "bool some_thing = true;", 'reader.Read("someThing"'),
                ({"type": "boolean"}, "bool some_thing = false;", 'reader.Read("someThing"'),
                ({"type": "string", "default": "a\"b"}, r'std::string some_thing = "a\"b";', 'reader.Read("someThing"'),
                ({"type": "string", "pattern": "^([0-9]+(ms|s|m|h))+$", "default": "1m30s"}, "double some_thing = 90.0;",
                 'ReadSeconds(reader, "someThing", out.some_thing);'),
                ({"type": "string", "pattern": "^[1-9][0-9]*(Mi|Gi|Ti)$", "default": "3Mi"}, "double some_thing = 3145728.0;",
                 'ReadBytes(reader, "someThing", out.some_thing);'),
                ({"type": "array", "items": {"type": "integer"}}, "std::vector<int> some_thing;", 'reader.Read("someThing"'),
                ({"type": "array", "items": {"type": "string"}}, "std::vector<std::string> some_thing;", 'reader.Strings("someThing")'),
                ({"type": "object", "additionalProperties": {"type": "number"}}, "std::map<std::string, double> some_thing;",
                 'ReadNumbers(reader, "someThing"')):
            with self.subTest(field):
                header, source = job_fields.code_of(spec_with("training.someThing", {**field, "description": "What it is."}))
                self.assertIn("  // What it is.\n  " + member, header)
                self.assertIn(read, source)

    def test_a_field_of_the_data_becomes_a_member_that_is_read_and_visited(self):
        for path, field, member, read in (
                ("data.schema.someThing", {"type": "number", "default": 0.5}, "double some_thing = 0.5;",
                 'reader.Read("someThing", out.some_thing);'),
                ("data.schema.label.someThing", {"type": "boolean"}, "bool some_thing = false;",
                 'label.Read("someThing", out.some_thing);'),
                ("data.inputs[].someThing", {"type": "string"}, "std::string some_thing;", 'reader.Read("someThing", out.some_thing);')):
            with self.subTest(path):
                header, source = job_fields.code_of(spec_with(path, {**field, "description": "What it is."}), "data_fields")
                self.assertIn("  // What it is.\n  " + member, header)
                self.assertIn("  f(value.some_thing);\n", header)
                self.assertIn("  " + read, source)

    def test_a_field_of_the_operator_becomes_a_member_that_is_read(self):
        for path, field, member, read in (
                ("objective.someThing", {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?$", "default": "2.5"},
                 "double some_thing = 2.5;", 'ReadQuantity(reader, "someThing", out.some_thing);'),
                ("elasticity.replan.someThing", {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?%$", "default": "12.5%"},
                 "double some_thing = 0.125;", 'ReadPercent(replan, "someThing", out.some_thing);'),
                ("runPolicy.someThing", {"type": "integer", "format": "int32", "default": 3}, "int some_thing = 3;",
                 'reader.Read("someThing", out.some_thing);')):
            with self.subTest(path):
                header, source = job_fields.code_of(spec_with(path, field), "job_policies")
                self.assertIn("  " + member, header)
                self.assertIn("  " + read, source)

    def test_an_enumeration_has_the_values_of_the_schema_in_their_order(self):
        spec = spec_with()
        job_fields.at(spec, "runPolicy.cleanPodPolicy")["enum"] = ["Running", "Never"]
        header, source = job_fields.code_of(spec, "job_policies")
        self.assertIn("enum class CleanPodPolicy { kRunning, kNever };", header)
        self.assertIn('ReadEnum(reader, "cleanPodPolicy", {"Running", "Never"}, out.clean_pod_policy);', source)

    def test_constants_are_those_of_the_schema(self):
        spec = spec_with()
        job_fields.at(spec, "data.schema.label.classes")["maxItems"] = 1234
        numeric = job_fields.at(spec, "data.schema.numeric")
        numeric["description"] = numeric["description"].replace("at most 4096 columns", "at most 99 columns")
        header, _ = job_fields.code_of(spec, "data_fields")
        self.assertIn("inline constexpr size_t kMostClasses = 1234;", header)
        self.assertIn("inline constexpr size_t kMostColumns = 99;", header)
        numeric["description"] = "Columns."
        with self.assertRaisesRegex(SystemExit, "spec.data.schema.numeric does not say"):
            job_fields.code_of(spec, "data_fields")

    def test_sources_of_one_struct_have_the_same_fields(self):
        with self.assertRaisesRegex(SystemExit, "spec.data.train and spec.data.test are both SourceSpec, but have other fields"):
            job_fields.code_of(spec_with("data.test.someThing", {"type": "string"}), "data_fields")

    def test_what_names_a_file_for_pods_is_a_path(self):
        # Texts of whose name or description one expects a path, but that are none, and why.
        none = {"data.volume.mountPath": "where pods have a volume, which the kubelet mounts there",
                "checkpoint.volume.mountPath": "as the one of data",
                "checkpoint.uri": "an address of an object store, which is the same for every process",
                "program.command[]": "what the program alone understands",
                "program.progress.tensorBoard": "as the next one",
                "program.checkpoint.done.file": "a path in the pods, as the program's arguments name it",
                "data.volume.hostPath.path": "a path of the node", "checkpoint.volume.hostPath.path": "a path of the node"}
        found = set()

        def walk(path, field):
            if path.startswith("template"):  # which Medley passes on
                return
            text = (path.rpartition(".")[2] + " " + field.get("description", "")).lower()
            if field.get("type") == "string" and "enum" not in field and re.search(r"\b(uri|path|file|files|folder|archive|mountpath)\b", text):
                found.add(path)
                self.assertEqual(job_fields.bare(path, field).get("x-path", False), path not in none, path)
            for name, below in field.get("properties", {}).items():
                walk(f"{path}.{name}" if path else name, below)
            for key in ("items", "additionalProperties"):
                if isinstance(field.get(key), dict):
                    walk(path + "[]", {**field[key], "description": field.get("description", "") + field[key].get("description", "")})

        walk("", spec_with())
        self.assertLessEqual({*none, "model.initialFrom", "checkpoint.from", "data.train.files[]", "data.validation.labels"}, found)

    def test_a_field_of_the_optimizer_is_read_from_there(self):
        _, source = job_fields.code_of(spec_with("training.optimizer.someThing", {"type": "number", "default": 1}))
        self.assertIn('  optimizer.Read("someThing", out.some_thing);', source)

    def test_what_has_no_place_is_refused(self):
        for path, field, why in (("training.someThing", {"type": "object"}, "no struct of STRUCTS"),
                                 ("training.learningRate", {"type": "number"}, "two members of one name")):
            with self.subTest(path), self.assertRaisesRegex(SystemExit, why):
                job_fields.code_of(spec_with(path, field))

    def test_a_table_that_names_no_field_is_refused(self):
        spec = spec_with()
        job_fields.check(spec)
        del spec["properties"]["training"]["properties"]["seed"]
        with self.assertRaisesRegex(SystemExit, "spec.training.seed is no field"):
            job_fields.check(spec)

    def test_the_schema_as_data_has_bounds_and_no_texts(self):
        bare = job_fields.bare("", spec_with())
        epochs = job_fields.at(bare, "training.epochs")
        self.assertEqual((epochs["minimum"], epochs["maximum"], epochs["default"]), (1, 1000000, 1))
        self.assertNotIn("description", epochs)
        self.assertNotIn("x-kubernetes-validations", bare)
        self.assertEqual(job_fields.at(bare, "data.inputs[].scale")["x-absent"], 1)


if __name__ == "__main__":
    sys.exit(unittest.main())
