#!/usr/bin/env python3
"""What cmake/test_targets.py, check_build.py, ./dev test and the scripts of tests/cluster decide."""
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../../cmake")]
import check_build  # noqa: E402
import check_format  # noqa: E402
import check_images  # noqa: E402
import check_namespaces  # noqa: E402
import check_style  # noqa: E402
import check_walls  # noqa: E402
import check_words  # noqa: E402
import test_targets  # noqa: E402
import tree  # noqa: E402


def case(command, *labels):
    return {"command": command, "properties": [{"name": "LABELS", "value": list(labels)}]}


class ImagesTest(unittest.TestCase):
    def test_base_images_have_digests(self):
        one, other = (f"debian:12-slim@sha256:{digit * 64}" for digit in "ab")
        for text, problems in ((f"FROM {one} AS build\nRUN x\nFROM build AS more\nFROM scratch\nCOPY --from=build / /\n", 0),
                               ("FROM debian:12-slim AS build\nFROM scratch\n", 1), ("from debian\n", 1),
                               (f"FROM --platform=linux/amd64 {one}\n", 0), ("FROM --platform=linux/amd64 debian:12\n", 1),
                               (f"FROM {one[:-1]}\n", 1), ("ARG BASE=x\nFROM ${BASE}\n", 1), ("FROM later\nFROM x AS later\n", 2),
                               (f"FROM {one} AS a\nFROM {other}\n", 1), ("FROM debian:12-slim # AS scratch\n", 1)):
            with self.subTest(text):
                self.assertEqual(len(check_images.check({"Dockerfile": text})), problems)
        self.assertEqual(len(check_images.check({"a": f"FROM {one}", "b": f"FROM {other}"})), 1)


class FormatTest(unittest.TestCase):
    def test_files_that_were_read_before_are_not_read_again(self):
        paths = ["tests/lint/tree.py", "tests/lint/check_format.py"]
        current = check_format.digests("14", "settings", paths)
        with tempfile.TemporaryDirectory() as folder:
            known = os.path.join(folder, "formatted.txt")
            self.assertEqual(check_format.unknown(current, known), paths)
            check_format.remember(current, known)
            self.assertEqual(check_format.unknown(current, known), [])
            changed = {**current, paths[0]: "0" * 64}
            self.assertEqual(check_format.unknown(changed, known), paths[:1])
            for version, settings in (("15", "settings"), ("14", "others")):
                self.assertEqual(check_format.unknown(check_format.digests(version, settings, paths), known), paths)
            check_format.remember(current, os.path.join(folder, "no-build", "formatted.txt"))
            self.assertEqual(os.listdir(folder), ["formatted.txt"])


class StyleTest(unittest.TestCase):
    def test_each_rule_finds_what_it_forbids(self):
        for text in ("x = std::chrono::steady_clock::now();", "  sleep(1);", "usleep(3);", "std::random_device r;", "  srand(1);",
                     "  x = rand();", "absl::Mutex m;", "t.detach();", "using namespace std;", "kSync1F1B", "SCHEDULE_KIND_GPIPE",
                     "GTEST_SKIP()", "// XXX", "// TODO: later"):
            with self.subTest(text):
                self.assertEqual(len(check_style.rules_for("cli/a.cc", text)), 1)
        for text in ("remove_all(folder)", "EXPECT_LT(clock.Steady() - begin, limit)"):
            with self.subTest(text):
                self.assertEqual(len(check_style.rules_for("tests/unit/cli/a_test.cc", text)), 1)
                self.assertEqual(check_style.rules_for("cli/a.cc", text), [])
        self.assertEqual(check_style.rules_for("cli/a.cc", "int x = 0;"), [])
        self.assertEqual(check_style.rules_for("common/base/clock.cc", "steady_clock::now()"), [])


class WordsTest(unittest.TestCase):
    def test_the_sieve_lets_nothing_pass_that_the_pattern_matches(self):
        words = check_words.unused_words(tree.read(check_words.GLOSSARY))
        pattern, sieve = check_words.pattern_of(words), check_words.Sieve(words)
        self.assertFalse(sieve.may_match("int generation = 0;  // Moderation and Duration"))
        matched = 0
        for word in words:
            camel = word.title().replace(" ", "")
            for text in (word, word.upper(), word.capitalize(), f"k{camel}", f"Is{camel}Now", f"{word.replace(' ', '_')}_", f"{word}s",
                         f"HTTP{camel}", word.replace(" ", "\n  // "), word.replace(" ", "\n# ").capitalize()):
                hit = list(check_words.hits(text, pattern))
                matched += bool(hit)
                self.assertTrue(sieve.may_match(text) or not hit, text)
        self.assertGreater(matched, 6 * len(words))


class PortsTest(unittest.TestCase):
    def test_control_planes_that_start_side_by_side_have_ports_of_their_own(self):
        # 640 of 10,000 ports: some would be equal by chance.
        calls, shells = 80, 8
        with tempfile.TemporaryDirectory() as folder:
            script = f"set -euo pipefail; . '{HERE}/../cluster/kubernetes/lib.sh'; for i in {{1..{calls}}}; do free_port; echo; done"
            running = [subprocess.Popen(["bash", "-c", script], stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, "MEDLEY_CLUSTER_PORTS": folder}) for _ in range(shells)]
            ports = [port for shell in running for port in shell.communicate()[0].split()]
        self.assertEqual(len(ports), calls * shells)
        self.assertEqual(len(set(ports)), len(ports))


class WallsTest(unittest.TestCase):
    HEADERS = {"a.h": "struct AState {\n  int x = 0;\n};\n", "b.h": "struct BState {};\n", "all.h": "struct AllState {};\n"}

    def test_a_concern_changes_its_own_state(self):
        for path, line, problems in (("a.cc", "void F(AState& own, const AllState& view) { own.x = view.b.y; }", 0),
                                     ("a.cc", "void F(BState& other);", 1), ("a.cc", "void F(AllState& all);", 1),
                                     ("b.h", "void F(const AState& a, BState& own);", 0),
                                     ("core.cc", "  AState& a = all_.a;", 1), ("core.cc", "  all_.a.x = 1;", 1),
                                     ("core.cc", "  ++all_.a.x;", 1), ("core.cc", "  all_.a.list.clear();", 1),
                                     ("core.cc", "  all_.a.next->x += 2;", 1), ("core.cc", "  if (all_.a.x == 1) F(all_.a, all_);", 0),
                                     ("core.cc", "  const AState& a = all_.a;  // all_.a.x = 1", 0),
                                     ("core.cc", "  all_.a.y->set_z(1);", 1)):
            with self.subTest(line):
                text = self.HEADERS.get(path, "") + line
                self.assertEqual(len(check_walls.check(self.HEADERS | {path: text}, "AllState", r"all_")), problems)

    def test_the_owner_of_a_state_is_its_concern(self):
        for owner, problems in (("a", 0), ("b", 1)):
            with self.subTest(owner):
                header = f'struct AState {{\n  static constexpr char kOwner[] = "{owner}";\n  int x = 0;\n}};\n'
                self.assertEqual(len(check_walls.check({"a.h": header}, "AllState", r"all_")), problems)


    def test_the_service_has_no_name_of_a_paper(self):
        for line, problems in (("int x;  // HeterPS, Equation 5", 0), ("double equation5 = 0;", 1), ("enum { kTappPolicy };", 1),
                               ('add("tapp", kOptions);', 1), ('add("rl-lstm", "LSTM policy (HeterPS)");', 0),
                               ("bool heterogeneous = true;", 0), ("HETERPS_RATIO = 1;", 1), ("int group_of_thesis = 0;", 1)):
            with self.subTest(line):
                self.assertEqual(len(check_walls.papers("a.h", line)), problems)


class NamespacesTest(unittest.TestCase):
    def test_a_folder_has_its_namespace(self):
        for path, text, problems in (("worker/data/a.h", "namespace medley::worker {\nint x;\n}\n", 0),
                                     ("worker/data/a.h", "namespace medley::worker::data {\nint x;\n}\n", 0),
                                     ("worker/data/a.h", "namespace medley::data {\nint x;\n}\n", 1),
                                     ("worker/data/a.h", "namespace medley::workers {\nint x;\n}\n", 1),
                                     ("common/base/testing/a.h", "namespace medley::base {\nint x;\n}\n", 0),
                                     ("common/rpc/a.h", "namespace medley::base {\nclass A;\nstruct B;\n}  // namespace medley::base\n", 0),
                                     ("common/rpc/a.h", "namespace medley::base {\nclass A {};\n}\n", 1),
                                     ("operator/api/a.h", "namespace medley::ops {\nint x;\n}\n", 0),
                                     ("operator/api/a.h", "namespace medley::operator {\nint x;\n}\n", 1)):
            with self.subTest(text):
                self.assertEqual(len(check_namespaces.check({path: text}, set())), problems)

    def test_an_exception_that_is_not_needed_is_a_problem(self):
        files = {"worker/cut/a.h": "namespace medley::cut {\nint x;\n}\n"}
        self.assertEqual(check_namespaces.check(files, {("worker/cut", "medley::cut")}), [])
        self.assertEqual(len(check_namespaces.check(files, {("worker/cut", "medley::cut"), ("worker/data", "medley::data")})), 1)


class NeededTest(unittest.TestCase):
    def test_a_program_needs_itself_and_a_script_all_programs(self):
        build = os.path.realpath("/b")
        program, script = case([f"{build}/tests/a_test", "--gtest_filter=*"]), case(["/usr/bin/python3", "/s/b_test.py"], "integration")
        self.assertEqual(test_targets.needed(build, [program]), (["a_test"], False))
        self.assertEqual(test_targets.needed(build, [script]), ([], True))
        self.assertEqual(test_targets.needed(build, [program, script, program]), (["a_test"], True))
        # A script that starts a test's program needs that one.
        self.assertEqual(test_targets.needed(build, [case(["/s/real-api", "run", f"{build}/tests/a_test"])]), (["a_test"], False))

    def test_programs_that_are_not_built_yet_are_known(self):
        with tempfile.TemporaryDirectory() as build:
            os.mkdir(os.path.join(build, "below"))
            for folder, text in (("", 'add_test(a_test "/b/tests/a_test" "--x")\nsubdirs("below")\nsubdirs("nothing")\n'),
                                 ("below", 'add_test([=[c_test]=] "/b/tests/c")\n'
                                           'add_test([=[e_test]=] "/b/tests/other")\nset_tests_properties(e_test)\n')):
                with open(os.path.join(build, folder, "CTestTestfile.cmake"), "w", encoding="utf-8") as file:
                    file.write(text)
            found = test_targets.all_programs(build)
        self.assertEqual(found, {"a_test": "/b/tests/a_test", "c_test": "/b/tests/c", "e_test": "/b/tests/other"})

    def test_a_script_of_a_wing_needs_the_wing_alone(self):
        build, script = os.path.realpath("/b"), case(["/usr/bin/python3", "/s/b_test.py"], "reproductions")
        self.assertEqual(test_targets.needed(build, [script]), (["reproductions"], False))
        program = case([f"{build}/tests/a_test"], "reproductions")
        self.assertEqual(test_targets.needed(build, [program]), (["a_test"], False))
        self.assertEqual(test_targets.needed(build, [script, case(["python3", "x"])]), (["reproductions"], True))

    def test_a_new_build_begins_with_the_longest_tests(self):
        measured = test_targets.seconds_of("# seconds\nlong 581\nabsent 9  # another build has it\n\n")
        self.assertEqual(measured, {"long": 581, "absent": 9})
        timeout = [{"name": "TIMEOUT", "value": 600.0}]
        tests = [{"name": "long", "properties": timeout}, {"name": "other", "properties": timeout}, {"name": "lint"}]
        self.assertEqual(test_targets.cost_data(tests, measured), "lint 1 0\nlong 1 581\nother 1 30\n---\n")
        names = test_targets.seconds_of(tree.read("tests/lint/test_seconds.txt"))
        self.assertGreater(len(names), 10)

    def test_lints_need_nothing(self):
        lint = case(["/usr/bin/python3", "/s/lint.py"], "lint")
        self.assertEqual(test_targets.needed("/b", [lint, case(["python3", "x"], "script")]), ([], False))
        self.assertEqual(test_targets.needed("/b", []), ([], False))

    def test_the_slowest_come_first(self):
        with tempfile.NamedTemporaryFile("w", suffix=".xml") as report:
            cases = "".join(f'<testcase name="t{i}" time="{i}.5"/>' for i in range(20))
            report.write(f"<testsuite>{cases}</testsuite>")
            report.flush()
            found = test_targets.slowest(report.name)
        self.assertEqual((len(found), found[0], found[-1]), (10, (19.5, "t19"), (10.5, "t10")))


class ChooseTest(unittest.TestCase):
    def test_the_wing_is_left_out_unless_it_or_single_tests_are_chosen(self):
        with open(os.path.join(HERE, "../../dev"), encoding="utf-8") as file:
            function = re.search(r"^wing=.*?^}$", file.read(), re.M | re.S).group()
        without, wing = ["-LE", "^reproductions$"], ["-L", "^reproductions$"]
        for given, chosen in (([], without), (["-j", "4"], ["-j", "4", *without]), (["reproductions"], wing),
                              (["reproductions", "-R", "tapp"], [*wing, "-R", "tapp"]), (["-R", "tapp"], ["-R", "tapp"]),
                              (["-L", "reproductions"], ["-L", "reproductions"]), (["--rerun-failed"], ["--rerun-failed"])):
            with self.subTest(given):
                done = subprocess.run(["bash", "-c", function + '\nchoose_tests "$@"\nprintf "%s\\n" "${chosen[@]}"', "dev", *given],
                                      capture_output=True, text=True, check=True)
                self.assertEqual(done.stdout.split("\n")[:-1], chosen)


class BuildTest(unittest.TestCase):
    BARS, HEADERS = check_build.read_table("# a comment\n\ndemo | 10 | 100  # why\neverything | 20 | 200\na.h | 40\n")

    def test_a_goal_within_its_line_is_fine(self):
        self.assertEqual((self.BARS, self.HEADERS), ({"demo": (10, 100), "everything": (20, 200)}, {"a.h": 40}))
        self.assertEqual(check_build.grown({"demo": (10, 100.0), "everything": (1, 1.0)}, self.BARS), [])

    def test_growth_is_told(self):
        self.assertEqual(check_build.grown({"demo": (11, 100.0)}, self.BARS), ["demo has 11 objects, more than 10"])
        self.assertIn("demo reads 101 MB of text, more than 100", check_build.grown({"demo": (10, 100.6)}, self.BARS)[0])
        self.assertEqual(check_build.grown({"other": (1, 1.0)}, self.BARS), ["other has no line"])

    def test_a_header_of_values_rebuilds_a_fifth_or_what_its_line_allows(self):
        read, objects = {"1.o": 1.0, "2.o": 3.0, "wing.o": 5.0}, {"1.o", "2.o"}
        shares = check_build.rebuilt(read, {"a.h": {"1.o", "wing.o"}, "b.h": objects}, objects)
        self.assertEqual(shares, {"a.h": 25, "b.h": 100})
        self.assertIn("a change of b.h rebuilds 100 % of everything, more than 20", check_build.spread(shares, self.HEADERS)[0])
        self.assertEqual(check_build.spread({"a.h": 40.0, "b.h": 20.0}, self.HEADERS), [])
        self.assertEqual(check_build.spread({"a.h": 19.6}, self.HEADERS), ["a.h needs no line: a change rebuilds 20 %"])
        self.assertEqual(check_build.spread({}, self.HEADERS), ["a.h has a line and is read by nothing"])

    def test_the_default_target_has_nothing_of_the_wing(self):
        self.assertEqual(check_build.strayed({"a/b.o", "tests/reproductions/c.o"}), [])
        self.assertEqual(len(check_build.strayed({"a/b.o", "reproductions/tapp/c.o"})), 1)


if __name__ == "__main__":
    unittest.main()
