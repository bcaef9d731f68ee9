#!/usr/bin/env python3
"""Follows the recipes of CONTRIBUTING.md with an example each, on copies of the files in memory.

A step is `NUMBER. `FILE`, at `PLACE`: what to do`. The file must exist and have the place. The example's text is added after the
line of the place. What names the new thing (code, page, manifest, test) must agree before the first step and after the last one. When
one step is left out, it must disagree, but for the steps in NOT_SEEN: so a step that the recipe lacks would be noticed.
"""
import os
import re
import sys
import unittest

import pages  # noqa: F401  (puts tests/lint on the path)
import check_metrics
import metric_names
import tree
import yaml

PAGE = "CONTRIBUTING.md"
CC = ".cc"  # of files that do not exist
STEP = re.compile(r"^(\d+)\. `([^`]+)`, at `([^`]+)`: ", re.M)


def recipes(page):
    """{title: [(file, place)]} of the section Recipes. Numbers of steps must count from 1."""
    part = page[page.index("\n## Recipes\n"):].split("\n## ")[1]
    found = {}
    for text in part.split("\n### ")[1:]:
        title, _, body = text.partition("\n")
        steps = STEP.findall(body)
        assert [int(n) for n, _, _ in steps] == list(range(1, len(steps) + 1)), f"{PAGE}: '{title}': the steps are not 1, 2, 3, ..."
        assert len(re.findall(r"^\d+\. ", body, re.M)) == len(steps), f"{PAGE}: '{title}': a step is not `N. `FILE`, at `PLACE`: ...`"
        found[title] = [(file, place) for _, file, place in steps]
    return found


class Copies:
    """The files of the tree as they would be."""

    def __init__(self):
        self.texts = {}

    def read(self, path):
        return self.texts[path] if path in self.texts else tree.read(path)

    def follow(self, path, place, change):
        """`change`: a text to add after the line of the place, or (old, new) to replace everywhere."""
        text = self.read(path)
        assert place in text, f"{path} has no `{place}`"
        if isinstance(change, tuple):
            assert change[0] in text, f"{path} has no `{change[0]}`"
            self.texts[path] = text.replace(*change)
        else:
            end = text.index("\n", text.index(place)) + 1
            self.texts[path] = text[:end] + change + "\n" + text[end:]


def agree(problems, what, one, other):
    for name in sorted(one - other):
        problems.append(f"{name} is missing from {what}")


# What names things of each kind must agree. Each takes read(path) and returns sentences.

def metrics(read):
    problems = []
    named = {m for line in read("scheduler-service/handlers/admission.cc").split("\n") if not line.lstrip().startswith("//")
             for m in check_metrics.LITERAL.findall(line)}
    documented = {m.group(1) for m in map(metric_names.ROW.match, read("docs/operate/metrics.md").split("\n")) if m}
    agree(problems, "docs/operate/metrics.md", named, documented)
    exported = {m for path in tree.all_files() if path.startswith("scheduler-service/") and path.endswith(".cc")
                for m in check_metrics.LITERAL.findall(read(path))}
    agree(problems, "scheduler-service", {m for m in documented if m.startswith("medley_scheduler_")}, exported)
    return problems


def training_fields(read):
    """Fields of spec.training, its first level."""
    problems = []
    crd = yaml.load(read("deploy/crds/trainingjobs.yaml"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    fields = {name for name, field in spec["training"]["properties"].items() if field["type"] in ("number", "integer")}
    documented = set(re.findall(r"\| `training\.(\w+)` \| (?:number|integer)", read("docs/use/api.md")))
    agree(problems, "docs/use/api.md", fields, documented)
    agree(problems, "deploy/crds/trainingjobs.yaml", documented, fields)
    # Members are made from the schema, and a field that no program reads is one that does nothing.
    snake = {re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower() for name in fields}
    used = {m for path in tree.all_files() if path.startswith(("worker/", "operator/")) and path.endswith(".cc")
            for m in re.findall(r"\btraining(?:\.|->)(\w+)", read(path))}
    agree(problems, "worker/", snake, used)
    return problems


def schema_fields(read):
    """The same of spec.data.schema: flags and numbers."""
    problems = []
    crd = yaml.load(read("deploy/crds/trainingjobs.yaml"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    fields = {name for name, field in spec["data"]["properties"]["schema"]["properties"].items()
              if field.get("type") in ("boolean", "number", "integer")}
    documented = set(re.findall(r"\| `data\.schema\.(\w+)` \| (?:boolean|number|integer)", read("docs/use/api.md")))
    agree(problems, "docs/use/api.md", fields, documented)
    agree(problems, "deploy/crds/trainingjobs.yaml", documented, fields)
    snake = {re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower() for name in fields}
    used = {m for path in tree.all_files() if path.startswith("worker/") and path.endswith(".cc")
            for m in re.findall(r"\bschema_?(?:\(\))?(?:\.|->)(\w+)", read(path))}
    agree(problems, "worker/", snake, used)
    return problems


def feeds(read):
    problems = []
    types = set(re.findall(r'\{"([a-z-]+)", \[=\]', read("scheduler-service/feeds/factory.cc")))
    agree(problems, "docs/operate/prices-feeds.md", types, set(re.findall(r"^## ([a-z-]+)$", read("docs/operate/prices-feeds.md"), re.M)))
    agree(problems, "factory_test.cc", types,
          set(re.findall(r'Make\("([a-z-]+)"', read("tests/unit/scheduler-service/feeds/factory_test.cc"))))
    made = set(re.findall(r"Make(\w+)Feed\(std::string name", read("scheduler-service/feeds/feeds.h")))
    used = set(re.findall(r"Make(\w+)Feed\(name", read("scheduler-service/feeds/factory.cc")))
    agree(problems, "factory.cc", made, used)
    agree(problems, "feeds.h", used, made)
    sources = {re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower() + "_feed" + CC for name in made}
    agree(problems, "scheduler-service/feeds/CMakeLists.txt", sources, set(re.findall(r"\w+\.cc", read("scheduler-service/feeds/CMakeLists.txt"))))
    return problems


def formats(read):
    problems = []
    table = re.findall(r'\{"(\w+)", FormatKind::k(\w+)', read("common/model/data_format.cc"))
    accepted = {name for name, _ in table}
    kinds = set(re.findall(r"^  k(\w+),?", read("common/model/data_format.h"), re.M))
    agree(problems, "data_format.cc", kinds, {kind for _, kind in table})
    agree(problems, "data_format.h", {kind for _, kind in table}, kinds)
    for values in re.findall(r"format: \{type: string, enum: \[([^\]]*)\]", read("deploy/crds/trainingjobs.yaml")):
        agree(problems, "deploy/crds/trainingjobs.yaml", accepted, set(values.split(", ")))
        agree(problems, "data_format.cc", set(values.split(", ")), accepted)
    row = re.search(r"\| `data\.train\.format` \|([^|]*)", read("docs/use/api.md")).group(1)
    agree(problems, "docs/use/api.md", accepted, set(re.findall(r"`(\w+)`", row)))
    arrays = {name for name, kind in table if kind not in ("Rows", "Pairs", "Columns")}
    agree(problems, "docs/use/pytorch.md", arrays, set(re.findall(r"`(\w+)` \(", read("docs/use/pytorch.md"))))
    parsers = {name.lower() for name in re.findall(r"\bParse(\w+)\(", read("worker/data/array_format.h"))}
    agree(problems, "worker/data/array_format.h", arrays - {"raw"}, parsers)
    chosen = {name.lower() for name in re.findall(r"\bParse(\w+)\(", read("worker/data/array_file.cc"))}
    agree(problems, "worker/data/array_file.cc", parsers, chosen)
    tested = {name.lower() for name in re.findall(r"\bParse(\w+)\(", read("tests/unit/worker/data/array_format_test.cc"))}
    agree(problems, "array_format_test.cc", parsers, tested)
    return problems


def planners(read):
    problems = []
    declared = set(re.findall(r"> Make(\w+)\(\);", read("scheduler-service/planner/planners.h")))
    registered = set(re.findall(r"registry\.Add\(Make(\w+)\(", read("scheduler-service/planner/builtin.cc")))
    for other in ("planner/auto_on_devices.h", "hierarchy/hierarchy_planner.h", "graph/graph_planners.h"):  # on devices
        registered -= set(re.findall(r"> Make(\w+)\(", read("scheduler-service/" + other)))
    agree(problems, "builtin.cc", declared, registered)
    agree(problems, "planners.h", registered, declared)
    names = {re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower() for name in registered}
    goal = read("docs/planners.md").split("## Goal: cost")[1].split("\n## ")[0]
    agree(problems, "docs/planners.md", names, set(re.findall(r"`([a-z-]+)`", goal)))
    return problems


# For each recipe: what must agree, and what its steps would add, in their order.
EXAMPLES = {
    "A metric": (metrics, [
        '  example_ = &metrics->GetCounter("medley_scheduler_examples_total", "Examples");',
        "| `medley_scheduler_examples_total` | counter | | examples |"]),
    "A field of TrainingJob": (training_fields, [
        '                  exampleRate: {type: number, minimum: 0, maximum: 1, description: "An example."}',
        "| `training.exampleRate` | number, 0 to 1 |  | An example. |",
        "  if (training.example_rate) optimizer.example_rate = static_cast<float>(*training.example_rate);",
        '    {"training.exampleRate", kProfile, "another factor costs the same"},',
        "  # with exampleRate"]),
    "A price feed": (feeds, [
        "std::unique_ptr<Feed> MakeExamplePricesFeed(std::string name, FetcherMaker fetcher);",
        "    example_prices_feed" + CC,
        '          {"example-prices", [=](const std::string& name, document::Reader) { return MakeExamplePricesFeed(name, make_fetcher); }},',
        '  const auto example = Make("example-prices", "{}");',
        "medley_fuzz(NAME example_prices SRCS example_prices_fuzz" + CC + " DEPS medley::sched_feeds)",
        ("\n## azure-retail", "\n## example-prices\n\nAn example.\n\n## azure-retail")]),
    "A data format": (formats, [
        "absl::StatusOr<ArrayHeader> ParseExr(std::string_view head);",
        "    case model::FormatKind::kExr: return ParseExr(bytes);",
        "  kExr,",
        '    {"exr", FormatKind::kExr},',
        ("enum: [csv, tsv, libsvm, parquet, arrow, idx, npy, raw]", "enum: [csv, tsv, libsvm, parquet, arrow, idx, npy, exr, raw]"),
        ("`npy`, `raw` |", "`npy`, `exr`, `raw` |"),
        "    ParseExr(head);",
        "`exr` (an example),"]),
    "A planner": (planners, [
        "    example_search" + CC,
        "std::unique_ptr<StagePlanner> MakeExampleSearch();",
        "  registry.Add(MakeExampleSearch());",
        "| `example-search` | an example | all |"]),
}
# Steps that no check sees: a text for people, a test, a choice of the author.
NOT_SEEN = {"A field of TrainingJob": {4, 5}, "A price feed": {5}, "A data format": set(), "A planner": {1}, "A metric": set()}


class RecipesTest(unittest.TestCase):
    def test_every_recipe_has_an_example(self):
        self.assertEqual(set(recipes(tree.read(PAGE))), set(EXAMPLES))

    def test_following_a_recipe_leaves_nothing_out(self):
        for title, steps in recipes(tree.read(PAGE)).items():
            check, changes = EXAMPLES[title]
            self.assertEqual(len(steps), len(changes), f"'{title}' has {len(steps)} steps, its example {len(changes)}")
            copies = Copies()
            self.assertEqual(check(copies.read), [], f"before '{title}'")
            for (file, place), change in zip(steps, changes):
                with self.subTest(title, file=file):
                    copies.follow(file, place, change)
            self.assertEqual(check(copies.read), [], f"after all steps of '{title}'")

    def test_a_field_of_the_data_touches_three_files(self):
        steps = (("deploy/crds/trainingjobs.yaml", "dayFirst: {type: boolean",
                  '                      exampleRate: {type: number, minimum: 0, maximum: 1, default: 0, description: "An example."}'),
                 ("docs/use/api.md", "`data.schema.dayFirst`", "| `data.schema.exampleRate` | number, 0 to 1 | 0 | An example. |"),
                 ("worker/data/row_parser.cc", "schema_.day_first", "  const double rate = schema_.example_rate;"))
        self.assertEqual(schema_fields(Copies().read), [])
        for left_out in range(len(steps) + 1):
            copies = Copies()
            for number, step in enumerate(steps):
                if number != left_out:
                    copies.follow(*step)
            with self.subTest(without=left_out):
                self.assertEqual(schema_fields(copies.read) == [], left_out == len(steps))

    def test_every_step_is_needed(self):
        for title, steps in recipes(tree.read(PAGE)).items():
            check, changes = EXAMPLES[title]
            for left_out in range(len(steps)):
                if left_out + 1 in NOT_SEEN[title]:
                    continue
                copies = Copies()
                for number, ((file, place), change) in enumerate(zip(steps, changes)):
                    if number != left_out:
                        copies.follow(file, place, change)
                with self.subTest(title, without=steps[left_out]):
                    self.assertNotEqual(check(copies.read), [], "nothing notices that this step was left out")

    def test_a_place_that_is_missing_is_noticed(self):
        with self.assertRaisesRegex(AssertionError, "has no `no such place`"):
            Copies().follow(PAGE, "no such place", "x")
        with self.assertRaises(OSError):
            Copies().follow("no/such/file" + CC, "x", "y")
        with self.assertRaisesRegex(AssertionError, "a step is not"):
            recipes("x\n## Recipes\n\n### A thing\n\n1. `a.cc`, at `b`: do.\n2. Do more.\n\n## Next\n")


if __name__ == "__main__":
    os.chdir(tree.ROOT)
    sys.exit(unittest.main())
