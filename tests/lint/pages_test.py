#!/usr/bin/env python3
"""What the lints of generated pages and of tables decide, on small examples."""
import os
import sys
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import check_dead  # noqa: E402
import check_decisions  # noqa: E402
import check_figures  # noqa: E402
import check_layers  # noqa: E402
import check_maps  # noqa: E402
import check_sizes  # noqa: E402
import check_status  # noqa: E402
import check_words  # noqa: E402


class ArrowsTest(unittest.TestCase):
    ARROWS = {"a": [], "b": ["a"], "c": ["a", "b"]}

    def test_a_table_that_says_what_the_code_does_is_fine(self):
        self.assertEqual(check_layers.table_problems(self.ARROWS, {"a": set(), "b": {"a"}, "c": {"a", "b"}}), [])

    def test_each_difference_is_named(self):
        for used, problem in (({"a": set(), "b": {"a"}, "c": {"a"}}, "no file of c includes b"),
                              ({"a": set(), "b": {"a"}}, "c has no sources"),
                              ({"a": set(), "b": {"a"}, "c": {"a", "b"}, "c/d": set()}, "c/d: no row")):
            with self.subTest(problem):
                found = check_layers.table_problems(self.ARROWS, used)
                self.assertEqual(len(found), 1)
                self.assertIn(problem, found[0])

    def test_a_circle_of_any_length_is_found_once(self):
        self.assertEqual(check_layers.circles(self.ARROWS), [])
        self.assertEqual(len(check_layers.circles({"a": ["b"], "b": ["a"]})), 1)
        self.assertEqual(len(check_layers.circles({"a": ["b"], "b": ["c"], "c": ["d"], "d": ["b"]})), 1)
        self.assertEqual(check_layers.circles({"cli": ["cli/run"], "cli/run": ["cli"]}), [])

    def test_fakes_belong_to_what_they_stand_for(self):
        self.assertEqual(check_layers.owner("kube/client/testing"), "kube/client")
        self.assertEqual(check_layers.owner("kube/client"), "kube/client")


class MapTest(unittest.TestCase):
    def test_the_first_sentence(self):
        for text, sentence in (("# a\n\nPurpose: reads `x.h` and\nprices. More.\n", "Reads `x.h` and prices."),
                               ("# a\nKeeps [rows](b.md).\n\nMore.", "Keeps rows."), ("# a\n**Purpose.** Sums. B", "Sums."),
                               ("# a\n<!-- note -->\nAll of ADR 0.5 and e.g. this. Then", "All of ADR 0.5 and e.g. this."),
                               ("# a\n\n| file | what |\n|---|---|\n", None), ("# a\n\n- one\n", None), ("# a\n", None),
                               ("# a\n\n**Data in:** x. **Data out:** y.\n", None), ("# a\n\nno end\n", None), ("text.\n", None)):
            with self.subTest(text):
                self.assertEqual(check_maps.first_sentence(text), sentence)

    def test_folders_of_tests_have_no_row(self):
        paths = ["kube/a.h", "kube/client/testing/b.h", "reproductions/t/tests/c.cc", "tests/unit/d.cc", "cli/README.md"]
        self.assertEqual(check_maps.folders_of(paths), ["kube", "proto"])

    def test_a_readme_that_is_missing_or_says_nothing_is_a_problem(self):
        texts = {"a/README.md": "# a\nDoes a.\n", "b/README.md": "# b\n", "c/README.md": "# c\n" + "long " * 50 + ".\n"}
        sentences, problems = check_maps.read_sentences(["a", "b", "c", "d"], texts.get)
        self.assertEqual(sentences, {"a": "Does a."})
        self.assertEqual([p.split("/")[0].split(":")[0] for p in problems], ["b", "c", "d"])

    def test_rows_stand_in_the_order_of_the_arrows(self):
        arrows = {"kube/b": ["kube/z"], "kube/z": ["common/base"], "kube/a": ["kube/b"]}
        made = check_maps.section({f: f"Is {f}." for f in arrows}, arrows)
        self.assertLess(made.index("Is kube/z."), made.index("Is kube/b."))
        self.assertLess(made.index("Is kube/b."), made.index("Is kube/a."))
        self.assertIn("| Is kube/b. | `kube/z` |", made)
        page = f"before\n{check_maps.BEGIN}\nold\n{check_maps.END}\nafter\n"
        self.assertEqual(check_maps.replaced(check_maps.replaced(page, made), made), check_maps.replaced(page, made))
        self.assertIsNone(check_maps.replaced("nothing", made))


class DecisionsTest(unittest.TestCase):
    NAMES = ["0002-two.md", "0007-seven.md", "0009-nine.md"]

    def read(self, status, name="0002-two.md", title="2. Two", date="2026-11-29"):
        return check_decisions.read_head(name, f"# {title}\n\n*{date}. {status}.*\n\n**Context.** x\n", self.NAMES)

    def test_a_head_has_number_date_and_status(self):
        for status in ("Accepted", "Superseded by [7](0007-seven.md)", "Accepted, changed by [7](0007-seven.md) and [9](0009-nine.md)"):
            with self.subTest(status):
                self.assertEqual(self.read(status), ((2, "Two", "2026-11-29", status), []))

    def test_what_is_wrong_is_named(self):
        for changes, problem in (({"status": "Fine"}, "none of the forms"), ({"status": "Accepted", "title": "3. Two"}, "number 3"),
                                 ({"status": "Accepted", "date": "2026-13-01"}, "no date"),
                                 ({"status": "Superseded by [8](0008-eight.md)"}, "no decision 8"),
                                 ({"status": "Superseded by [9](0007-seven.md)"}, "no decision 9"),
                                 ({"status": "Superseded by [2](0002-two.md)"}, "no later decision")):
            with self.subTest(problem):
                self.assertIn(problem, " ".join(self.read(**changes)[1]))
        self.assertIn("does not begin", check_decisions.read_head("0002-two.md", "# 2. Two\n\n**Context.**", self.NAMES)[1][0])

    def test_the_list_has_a_row_for_each(self):
        heads = {name: self.read("Accepted", name, f"{int(name[:4])}. Title")[0] for name in self.NAMES}
        self.assertEqual(len(check_decisions.table(heads).splitlines()), 2 + len(self.NAMES))
        self.assertIn("| 7 | [Title](0007-seven.md) | 2026-11-29 | Accepted |", check_decisions.table(heads))


class FiguresTest(unittest.TestCase):
    RECORDS = [{"section": "A", "figure": f, "measured": "1 s", "bar": "< 2 s", "reached": True, "command": "x", "machine": "m",
                "date": "2026-11-21"} for f in ("one", "two")]
    BENCH = {"machine": {"processors": "2 x P", "load_before": 0.25}, "at": "2026-12-01T10:00:00+00:00", "figures": [
        {"figure": "two", "measured": "3 s", "bar": "< 2 s", "command": "y", "reached": False, "details": {}},
        {"figure": "one", "measured": "not measured: no program", "bar": "", "command": "x", "reached": False, "details": {}},
        {"figure": "three", "measured": "4", "bar": "", "command": "z", "reached": True, "details": {}}]}

    def test_what_was_measured_again_replaces_the_figure_and_keeps_its_place(self):
        found = check_figures.taken(self.RECORDS, self.BENCH)
        self.assertEqual([r["figure"] for r in found], ["one", "two", "three"])
        self.assertEqual(found[0], self.RECORDS[0])
        self.assertEqual((found[1]["section"], found[1]["measured"], found[1]["date"]), ("A", "3 s", "2026-12-01"))
        self.assertEqual(found[1]["machine"], "2 x P, load 0.2 before")
        self.assertEqual(found[2]["section"], check_figures.NEW_SECTION)
        self.assertEqual(check_figures.problems_of(found), [])

    def test_a_row_has_machine_and_date_and_says_when_its_bar_is_missed(self):
        made = check_figures.section(check_figures.taken(self.RECORDS, self.BENCH))
        self.assertIn("| one | 1 s | < 2 s | `x` | m | 2026-11-21 |", made)
        self.assertIn("| two | 3 s (**bar missed**) |", made)

    def test_an_answer_of_the_readme_may_only_have_measured_numbers(self):
        readme = ("x\n\n| question | measured answer | where |\n|---|---|---|\n| fast? | 1 s, 1,000 times | x |\n| true? | 7 % and 3 % | x |\n\n"
                  "```text\nit took 7 s\n```\n")
        found = check_figures.unmeasured(readme, ["1.0 s of 1,000"])
        self.assertEqual(len(found), 1)
        self.assertIn("the answer 'true?' has 3,", found[0])

    def test_incomplete_and_repeated_records_are_problems(self):
        for change in ({"date": ""}, {"date": "2026-02-30"}, {"machine": " "}, {"command": None}, {"reached": "yes"}, {"bar": None},
                       {"figure": "two"}):
            with self.subTest(change):
                self.assertEqual(len(check_figures.problems_of([{**self.RECORDS[0], **change}, self.RECORDS[1]])), 1)


class SizesTest(unittest.TestCase):
    LISTED = check_sizes.read_list("# why\n450 a/long.cc\n230 a/long.h\n")

    def problems(self, **changes):
        return check_sizes.problems_of({"a/long.cc": 450, "a/long.h": 230, "a/fits.cc": 400, "a/fits.h": 200, **changes}, self.LISTED)

    def test_what_is_listed_with_its_size_is_fine(self):
        self.assertEqual(self.LISTED, {"a/long.cc": 450, "a/long.h": 230})
        self.assertEqual(self.problems(), [])

    def test_the_list_only_shrinks(self):
        for change, problem in (({"a/long.cc": 451}, "may not grow"), ({"a/new.cc": 401}, "more than 400"), ({"a/new.h": 201}, "more than 200"),
                                ({"a/long.cc": 449}, "only 449 lines"), ({"a/long.h": 200}, "need not be listed")):
            with self.subTest(problem):
                found = self.problems(**change)
                self.assertEqual(len(found), 1)
                self.assertIn(problem, found[0])
        self.assertIn("does not exist", check_sizes.problems_of({"a/long.cc": 450}, self.LISTED)[0])

    def test_writing_never_adds_or_raises(self):
        self.assertEqual(check_sizes.shrunk({"a/long.cc": 440, "a/long.h": 200, "a/new.cc": 500}, self.LISTED), {"a/long.cc": 440})
        self.assertEqual(check_sizes.shrunk({"a/long.cc": 460, "a/long.h": 231}, self.LISTED), self.LISTED)

    def test_tests_have_another_limit(self):
        for path in ("tests/unit/a_test.cc", "reproductions/tapp/tests/a.cc", "kube/client/testing/a.h", "a.py"):
            self.assertIsNone(check_sizes.limit_of(path))
        self.assertEqual((check_sizes.limit_of("worker/a.cc"), check_sizes.limit_of("worker/a.h")), (400, 200))


class DeadTest(unittest.TestCase):
    def found(self, header, source="", user="", test="Used(); Shut(); Open();"):
        return [name for _, name in check_dead.dead({"kube/a.h": header, "kube/a.cc": source, "kube/b.cc": user, "tests/a_test.cc": test})]

    def test_what_only_a_test_calls_is_found(self):
        self.assertEqual(self.found("// Used() is.\nbool Used(int a);\n", "bool Used(int a) { return a; }"), ["Used"])
        self.assertEqual(self.found("class A {\n  int Open() const { return 1; }\n};\n"), ["Open"])
        self.assertEqual(self.found("std::vector<int> Shut(std::span<const int> all,\n int b);", "std::vector<int> Shut() {}", "// Shut()"), ["Shut"])

    def test_what_a_program_or_a_bench_calls_is_not(self):
        self.assertEqual(self.found("bool Used(int a);", "bool Used(int a) { return a; }", "x = Used(1);"), [])
        self.assertEqual(self.found("bool Used(int a);", "bool Used(int a) { return a; }\nvoid B() { Used(1); }"), [])
        self.assertEqual(self.found("class A {\n  int Open() const { return 1; }\n};\n", "a.Open();"), [])
        self.assertEqual(self.found("bool Used(int a);\ninline bool Two() { return Used(2); }", "bool Used() {}", "Two();"), [])
        self.assertEqual(self.found("template <typename T>\nbool Two(T t) {\n  return t.Parse(1);\n}", "", "Two();"), [])
        self.assertEqual(check_dead.dead({"kube/a.h": "bool Used();", "tests/bench/b.cc": "Used();"}), [])


class ShapesTest(unittest.TestCase):
    def found(self, text, path="a_test.cc"):
        return [number for number, _ in check_words.shapes(path, text)]

    def test_names_that_are_fragments_are_found(self):
        for name in ("DatesThatAreNone", "DisruptionsAreNoFailures", "TextsThatAreNoneAreRefused", "IgnoresWhatIsNoTime", "WhatNoClientDoes",
                     "ProgramsThatCannotBe", "F2_AChildIsNoCreation", "NamesTheFirstThatIsNot"):
            with self.subTest(name):
                self.assertEqual(self.found(f"\nTEST_F(SomeTest, {name}) {{"), [2])
        self.assertEqual(self.found("    def test_noise_is_no_slowness(self):", "a.py"), [1])

    def test_sentences_are_fine(self):
        for name in ("DisruptionsAreNotFailures", "ItIsNowRead", "IsNoLongerUsed", "IsNoWorseThanOthers", "ANoteSaysWhyThereAreNoGroups",
                     "OneOfNone", "APlanThatCannotBeStoredIsNotRun", "AnyIsNonemptyText"):
            with self.subTest(name):
                self.assertEqual(self.found(f"TEST(SomeTest, {name}) {{"), [])

    def test_comments_that_begin_with_of(self):
        self.assertEqual(self.found("// Of a job.\nint x;  // of a job\n  // For a job.\n# Of the host.\n// A sum\n// Of two is meant.\n"), [1, 4])
        self.assertEqual(self.found("# Of mice and men", "a.md"), [])


class StatusTest(unittest.TestCase):
    def test_names_of_tests_in_loops_are_known(self):
        cmake = ('foreach(part a b)\n  add_test(NAME x_${part}_test COMMAND y)\nendforeach()\nmedley_test(NAME c_test SRCS c.cc)\n'
                 'function(f)\n  medley_test(NAME ${A}_d_test)\nendfunction()\n')
        self.assertEqual(check_status.tests_of(cmake), {"x_a_test", "x_b_test", "c_test"})

    def test_names_of_benches(self):
        dev = ('case $1 in\n  bench)\n    [ "${2:-}" != build ] || exec x\n    case "${2:-}" in\n      agent | tapp) x ;;\n      *) y ;;\n'
               '    esac\n    case "${2:-}" in graph|rewards)\n      z ;;\n    esac ;;\n  lint) x ;;\n')
        run = 'x\nSECTIONS = {"pause": pause, "plan_a": f}\nGROUPS = {"plan": ["plan_a"]}\n'
        self.assertEqual(check_status.benches_of(dev, run), {"build", "agent", "tapp", "graph", "rewards", "pause", "plan_a", "plan"})

    def test_a_row_names_a_test_that_exists(self):
        page = ("# x\n| a | b |\n\n## Works\n\n| what | shown by |\n|---|---|\n| one `code` | `a_test`, `./dev bench pause` |\n| two | nothing |\n"
                "| three | `b_test` |\n\n## Not yet\n| no | `c_test` |\n")
        rows = check_status.rows_of(page)
        self.assertEqual([number for number, _ in rows], [8, 9, 10])
        problems = check_status.problems_of(rows, {"a_test", "./dev bench pause", "code"}.__contains__)
        self.assertEqual(len(problems), 2)
        self.assertIn(":9: a row that names no test", problems[0])
        self.assertIn(":10: there is no test and no bench b_test", problems[1])


if __name__ == "__main__":
    unittest.main()
