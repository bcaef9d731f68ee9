"""The timeline of a plan on the web page, in a headless Chromium: of real plans, simulated by a real service."""
import json
import os
import shutil
import sys
import tempfile
import unittest

from harness import SOURCE, Scheduler, wait_for  # also finds devtools
from devtools import Browser

import yaml

SHOTS = os.path.join(os.environ["MEDLEY_BIN_DIR"], "..", "web")
BARS = "#timeline-picture .scroll rect"
TOKEN = "0123456789abcdef-token"
READY = "!document.getElementById('plan').disabled"


def example(name):
    with open(os.path.join(SOURCE, "examples", "plan", name + ".yaml"), encoding="utf-8") as file:
        return yaml.safe_load(file)


class TimelineTest(unittest.TestCase):
    def start(self, *options):
        scheduler = Scheduler(*options)
        self.addCleanup(lambda: self.assertEqual(scheduler.close(), 0))
        self.browser = Browser()
        self.addCleanup(self.browser.close)
        self.browser.command("Page.navigate", url=f"http://127.0.0.1:{scheduler.rest}/")
        return scheduler

    def folder(self):
        path = tempfile.mkdtemp(prefix="medley-timeline-test-")
        self.addCleanup(shutil.rmtree, path)
        return path

    def open(self):
        self.start()
        self.browser.wait(f"document.body?.dataset.loaded === 'true' && {READY}")

    def texts(self, selector):
        return self.browser.evaluate(f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.textContent)")

    def count(self, selector):
        return self.browser.evaluate(f"document.querySelectorAll({json.dumps(selector)}).length")

    def plan(self, request):
        """Plans `request` as the page shows it, so that its constraints do not come from another example's fields."""
        self.browser.evaluate(f"document.getElementById('text').value = {json.dumps(json.dumps(request))}")
        throughput = request.get("constraints", {}).get("minThroughput", "")
        self.browser.evaluate(f"document.getElementById('minThroughput').value = '{throughput}'")
        self.browser.evaluate("document.getElementById('plan').click()")
        self.browser.wait(READY)
        self.assertEqual(self.texts("#error"), [""])

    def simulated(self):
        self.browser.wait("!document.getElementById('timeline-link').hidden")

    def download(self):
        """The events of the Chrome trace."""
        downloads = self.folder()
        self.browser.command("Browser.setDownloadBehavior", behavior="allow", downloadPath=downloads)
        self.browser.evaluate("document.getElementById('timeline-trace').click()")
        path = os.path.join(downloads, "trace.json")
        wait_for("the download", lambda: os.path.exists(path) and os.path.getsize(path) > 0)
        with open(path, encoding="utf-8") as file:
            return json.load(file)["traceEvents"]

    def shot(self, name):
        self.browser.screenshot(os.path.join(SHOTS, name + ".png"))

    def key(self, name):
        self.browser.command("Input.dispatchKeyEvent", type="keyDown", key=name, code=name)
        return self.texts("#timeline-point")[0]

    def test_a_plan_of_operations(self):
        self.open()
        self.browser.evaluate("""(() => { const e = document.getElementById('example'); e.value = 'two-branches';
            e.dispatchEvent(new Event('change')); })()""")
        self.browser.wait(f"document.getElementById('planner').value === 'graph' && {READY}")
        self.browser.evaluate("document.getElementById('plan').click()")
        self.browser.wait(READY)
        self.assertEqual(self.texts("#error"), [""])
        self.simulated()
        self.assertRegex(self.texts("#summary")[0], r"ms a step, .* no plan takes less than .* Planned by graph")
        self.assertEqual(self.texts("#stages caption"), ["Placements"])
        cells = self.texts("#stages tbody td")
        self.assertIn("concat to dense1", cells)
        self.assertTrue(any(cell.startswith("centralized, by ") for cell in cells), cells)
        self.assertIn("EV-AR", self.texts("#alternatives td"))
        self.assertEqual(self.texts("#timeline-predictions tbody tr td:first-child"), ["simulation"])
        simulated = float(self.texts("#timeline-predictions tbody tr td:nth-child(2)")[0])
        planned = float(self.texts("#summary")[0].split(" ms a step")[0])
        self.assertAlmostEqual(simulated / planned, 1, delta=0.005)  # over the links of the cluster, not those of pools
        # Devices that are alike share a row.
        devices = ", ".join(self.texts("#timeline-memory tbody td:first-child")).split(", ")
        self.assertEqual(sorted(devices), ["fast-0", "fast-1", "slow-0", "slow-1"])
        lists = [e["args"]["name"] for e in self.download() if e["name"] == "thread_name"]
        self.assertTrue(any(name.startswith("served by ") for name in lists), lists)
        self.shot("timeline-operations")

    def test_a_plan_has_a_timeline(self):
        self.open()
        self.plan(example("ctrdnn-16"))
        self.simulated()
        self.assertEqual(self.texts("#timeline-status"), [""])
        names = self.texts("#timeline-picture .names text")
        self.assertEqual(len(names), 18)  # 15 CPUs, a GPU, two servers
        self.assertTrue(any(name.startswith("v100/0") for name in names), names)
        self.assertEqual(self.texts("#timeline-picture .legend li"),
                         ["forward", "backward", "update", "reduction", "messages and rows"])
        for category in ("forward", "backward", "update", "messages"):
            self.assertGreater(self.count(f"{BARS}.{category}"), 0, category)
        colours = self.browser.evaluate(f"[...new Set([...document.querySelectorAll('{BARS}')]"
                                        ".map(e => getComputedStyle(e).fill))].length")
        self.assertGreaterEqual(colours, 4)
        titles = self.texts(f"{BARS}.forward title")
        self.assertTrue(any("(forward) on v100/0, compute: operations concat..loss, micro-batch 0, step " in t
                            for t in titles), titles[:3])
        self.assertRegex(titles[0], "starts at [0-9.]+ ms, takes [0-9.]+ ms$")
        self.assertRegex(self.texts("#timeline-picture .scroll text")[-1], " ms$")

        # The simulation and the cost model predict for the same samples of a step.
        rows = self.browser.evaluate("[...document.querySelectorAll('#timeline-predictions tbody tr')]"
                                     ".map(r => [...r.cells].map(c => c.textContent))")
        self.assertEqual([row[0] for row in rows], ["simulation", "cost model of the planner"])
        samples = [float(row[1]) * float(row[2].replace(",", "")) for row in rows]
        self.assertAlmostEqual(samples[0] / samples[1], 1, delta=0.01)
        devices = self.texts("#timeline-memory tbody tr")
        self.assertTrue(any(row.startswith("v100/0") and "16 GiB" in row for row in devices), devices)
        self.assertTrue(any(row.startswith("cpu/0, cpu/1 and") and "none" in row for row in devices), devices)
        self.assertTrue(self.browser.evaluate("document.getElementById('timeline-oom').hidden"))

        # The link has the trace, whose bars are those drawn.
        events = self.download()
        self.assertEqual(len([e for e in events if e["ph"] == "X"]), self.count(BARS))
        self.browser.screenshot(os.path.join(SHOTS, "service-timeline.png"), element="timeline")  # docs/operate
        self.assertEqual(self.browser.problems, [])

    def test_keyboard_narrow_and_dark(self):
        self.open()
        self.plan(example("ctrdnn-16"))
        self.simulated()
        self.browser.evaluate("document.querySelector('#timeline-picture .scroll svg').focus()")
        first = self.key("ArrowRight")
        self.assertIn("on cpu/0", first)
        second = self.key("ArrowRight")
        self.assertIn("on cpu/0", second)
        self.assertNotEqual(first, second)
        self.assertIn("on cpu/1", self.key("ArrowDown"))
        self.assertIn("on cpu/0", self.key("ArrowUp"))
        self.assertIn("on cpu/0", self.key("ArrowUp"))  # the first device stays
        self.assertEqual(self.count(f"{BARS}.selected"), 1)

        light = self.browser.evaluate(f"getComputedStyle(document.querySelector('{BARS}.forward')).fill")
        self.browser.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        self.assertNotEqual(self.browser.evaluate(f"getComputedStyle(document.querySelector('{BARS}.forward')).fill"), light)
        self.browser.command("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=1, mobile=False)
        scrolls = "(e => e.scrollWidth > e.clientWidth)(document.querySelector('#timeline-picture .scroll'))"
        self.browser.wait(scrolls)
        box = self.browser.evaluate("document.querySelector('.timeline').getBoundingClientRect().right")
        self.assertLessEqual(box, 390)
        self.assertLessEqual(self.browser.evaluate("document.documentElement.scrollWidth"), 390)
        self.shot("timeline-dark-narrow")

    def test_a_large_plan_is_drawn_in_part(self):
        self.open()
        self.plan(example("matchnet-16"))
        self.simulated()
        self.assertGreater(self.count(BARS), 1000)
        self.assertLessEqual(self.count(BARS), 3000)
        names = " ".join(self.texts("#timeline-picture .names text"))
        self.assertTrue(all(pool in names for pool in ("cpu/", "v100/", "server/")), names)
        self.assertRegex(self.texts("#timeline .note")[0], "^The picture has 24 of [0-9]+ devices, some of each pool")
        self.shot("timeline-large")

    def test_a_late_answer_does_not_replace_the_next(self):
        self.open()
        # The first simulation's answer waits, and the page cannot end it, until the second is shown.
        self.browser.evaluate("""(() => { const real = window.fetch; let first = true;
            window.fetch = (path, options) => {
              if (!String(path).includes("simulate") || !first) return real(path, options);
              first = false;
              return new Promise((resolve, reject) => { window.release = () => {
                const answer = real(path, {...options, signal: undefined});
                answer.then(resolve, reject);
                return answer.then(r => r.clone().text()).then(t => t.length); }; });
            }; })()""")
        self.plan(example("2emb-10"))
        self.assertEqual(self.texts("#timeline-status"), ["Simulating …"])
        self.plan(example("ctrdnn-16"))
        self.simulated()
        before = self.texts("#timeline-predictions")
        self.assertGreater(self.browser.evaluate("window.release()"), 1000)
        self.browser.evaluate("new Promise(r => setTimeout(() => requestAnimationFrame(r)))")
        self.assertEqual(self.texts("#timeline-predictions"), before)
        self.assertEqual(len(self.texts("#timeline-picture .names text")), 18)

        # Without a plan there is no timeline.
        infeasible = example("infeasible")
        self.plan(infeasible)
        self.assertTrue(self.browser.evaluate("document.getElementById('timeline').hidden"))
        self.assertEqual(self.count(BARS), 0)

    def test_refusals(self):
        self.open()
        big = example("ctrdnn-16")
        big["training"]["microBatches"] = 4000
        self.plan(big)
        self.browser.wait("document.getElementById('timeline-status').textContent.startsWith('The plan cannot')")
        self.assertIn("100000", self.texts("#timeline-status")[0].replace(",", ""))
        self.assertEqual(self.count(BARS), 0)

        # The planner's limit counts parameters, the simulation activations, too.
        small = example("ctrdnn-16")
        for resource in small["resources"]:
            if resource["name"] == "v100":
                resource["memoryBytes"] = 2e7
        self.plan(small)
        self.simulated()
        sentence = self.texts("#timeline-oom")[0]
        self.assertRegex(sentence, "device v100/0 has 19.1 MiB of memory, the plan needs .* MiB; the largest parts are "
                                   "activations of")
        self.assertFalse(self.browser.evaluate("document.getElementById('timeline-oom').hidden"))
        self.shot("timeline-memory")

    def test_a_simulation_without_an_answer_is_ended(self):
        self.open()
        self.browser.evaluate("""(() => { const real = window.fetch, wait = window.setTimeout;
            window.setTimeout = (work, delay) => wait(work, delay === 60000 ? 0 : delay);
            window.fetch = (path, options) => String(path).includes("simulate")
              ? new Promise((_, reject) => options.signal.addEventListener("abort", () => reject(options.signal.reason)))
              : real(path, options); })()""")
        self.plan(example("ctrdnn-16"))
        self.browser.wait("document.getElementById('timeline-status').textContent.includes('longer than 60 s')")
        self.assertIn("samples/s", self.texts("#summary")[0])  # the plan stays

    def test_names_are_text(self):
        self.open()
        request = example("ctrdnn-16")
        for layer in request["model"]["layers"]:
            layer["name"] += "<img src=x onerror=alert(1)>\"'&"
        self.plan(request)
        self.simulated()
        self.assertTrue(any("<img src=x onerror=alert(1)>\"'&" in title for title in self.texts(f"{BARS} title")))
        self.assertEqual(self.count("img"), 0)
        self.assertEqual(self.browser.problems, [])

    def test_with_a_token(self):
        path = os.path.join(self.folder(), "token")
        with open(path, "w", encoding="utf-8") as file:
            file.write(TOKEN)
        os.chmod(path, 0o600)
        self.start("--token-file", path)
        wait_for("the page", lambda: self.texts("#error") not in ([], [""]))
        self.browser.evaluate(f"""(e => {{ e.value = "{TOKEN}"; e.dispatchEvent(new Event("change")); }})
            (document.getElementById("token"))""")
        self.browser.wait(f"document.body?.dataset.loaded === 'true' && {READY}")
        self.plan(example("ctrdnn-16"))
        self.simulated()
        self.assertGreater(self.count(BARS), 100)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
