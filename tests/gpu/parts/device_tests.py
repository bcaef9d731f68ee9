"""The tests of worker/device and worker/aten. On a GPU none of them may be skipped."""
import json
import os

import kit

TESTS = ("worker_device_test", "worker_aten_test", "worker_aten_layers_test")


def cases(report):
    for suite in report["testsuites"]:
        for case in suite["testsuite"]:
            yield f"{suite['name']}.{case['name']}", case


def run(name):
    report = os.path.join(kit.SCRATCH, name + ".json")
    code, out, err = kit.call([kit.program(name), f"--gtest_output=json:{report}"], threads=1)
    if not os.path.exists(report):  # it crashed: the last test that began is the one
        began = [line for line in out.splitlines() if line.startswith("[ RUN")]
        kit.row(name, f"exit status {code} in {began[-1].split()[-1] if began else 'no test'}: {kit.last_line(err)}", holds=False)
        return
    with open(report, encoding="utf-8") as file:
        found = dict(cases(json.load(file)))
    skipped = [case for case, it in found.items() if it.get("result") == "SKIPPED" or "skipped" in it]
    failed = [case for case, it in found.items() if it.get("failures")]
    for case in failed:
        kit.row(f"{name}: {case}", found[case]["failures"][0]["failure"][:300], holds=False)
    passed = len(found) - len(skipped) - len(failed)
    kit.row(f"{name}: passed of {len(found)}", passed, "", "all of them" if kit.ON_GPU else "all that need no GPU",
            code == 0 and len(found) > 0 and not failed and (not kit.ON_GPU or not skipped))
    for case in skipped:
        kit.skip(f"{name}: {case}", "it needs a GPU")


if __name__ == "__main__":
    for each in TESTS:
        run(each)
