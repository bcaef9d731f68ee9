#!/usr/bin/env python3
"""What cmake/job_fields.py makes of a schema, and what it refuses. The example is the schema itself with one more field."""
import os
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
                 'out.some_thing = reader.Seconds("someThing", out.some_thing);'),
                ({"type": "array", "items": {"type": "integer"}}, "std::vector<int> some_thing;", 'reader.Read("someThing"'),
                ({"type": "array", "items": {"type": "string"}}, "std::vector<std::string> some_thing;", 'reader.Strings("someThing")'),
                ({"type": "object", "additionalProperties": {"type": "number"}}, "std::map<std::string, double> some_thing;",
                 'ReadNumbers(reader, "someThing"')):
            with self.subTest(field):
                header, source = job_fields.code_of(spec_with("training.someThing", {**field, "description": "What it is."}))
                self.assertIn("  // What it is.\n  " + member, header)
                self.assertIn(read, source)

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
