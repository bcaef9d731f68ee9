"""The web page in a headless Chromium: it loads, plans, and shows the Pareto front, prices and reasons."""
import json
import os
import shutil
import sys
import tempfile
import unittest
import urllib.parse

from harness import PRICES, Scheduler, request, wait_for  # also finds devtools
from devtools import Browser

SHOTS = os.path.join(os.environ["MEDLEY_BIN_DIR"], "..", "web")

SET = """(id, value) => { const e = document.getElementById(id); e.value = value;
e.dispatchEvent(new Event("change", {bubbles: true})); }"""


class WebTest(unittest.TestCase):
    def setUp(self):
        self.scheduler = Scheduler()
        self.browser = Browser()
        # Publish two more revisions, for the history.
        for revision, price in ((2, "0.05"), (3, "0.03")):
            self.scheduler.set_prices(PRICES.replace("0.04", price))
            wait_for("revision", lambda: request(self.scheduler, "GET", "/v1/catalog").json()["catalog"]["revision"] == str(revision))
        self.browser.command("Page.navigate", url=f"http://127.0.0.1:{self.scheduler.rest}/")
        self.browser.wait("document.body?.dataset.loaded === 'true' && !document.getElementById('plan').disabled")

    def tearDown(self):
        self.browser.close()
        self.assertEqual(self.scheduler.close(), 0)

    def set(self, name, value):
        self.browser.evaluate(f"({SET})({json.dumps(name)}, {json.dumps(value)})")

    def texts(self, selector):
        return self.browser.evaluate(f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.textContent)")

    def click(self, name):
        self.browser.evaluate(f"document.getElementById('{name}').click()")
        self.browser.wait("!document.getElementById('plan').disabled")

    def pick(self, example):
        self.set("example", example)
        self.browser.wait("!document.getElementById('plan').disabled")

    def test_plan_a_model(self):
        self.pick("ctrdnn-16")
        self.assertIn("layers", self.browser.evaluate("document.getElementById('text').value"))
        self.click("plan")
        self.assertEqual(self.texts("#error"), [""])
        stages = self.texts("#stages .bar > div")
        self.assertGreater(len(stages), 1, stages)
        self.assertTrue(any("v100" in s for s in stages) and any("cpu" in s for s in stages), stages)
        self.assertIn("proven to be the cheapest", self.texts("#summary")[0])
        self.assertTrue(any("cpu only" in row for row in self.texts("#alternatives tr")))

        self.click("front")
        self.assertEqual(self.texts("#error"), [""])
        self.assertGreater(self.browser.evaluate("document.querySelectorAll('#pareto-chart circle').length"), 1)
        self.browser.evaluate("document.querySelector('#pareto-chart circle').dispatchEvent(new Event('focus'))")
        self.assertIn("samples/s", self.texts("#pareto-point")[0])

        self.assertIn("Revision 3", self.texts("#prices-summary")[0])
        self.assertEqual(self.browser.evaluate("document.querySelectorAll('#prices-chart path[fill=none]').length"), 2)
        self.assertEqual(len(self.texts("#prices-table tbody tr")), 2)
        self.browser.screenshot(os.path.join(SHOTS, "plan.png"))

        # Use the fields to set another planner and a higher throughput.
        self.set("planner", "greedy")
        self.set("minThroughput", "30000")
        self.click("plan")
        self.assertIn("Planned by greedy", self.texts("#summary")[0])
        self.assertEqual(self.browser.problems, [])

    def test_infeasible_request_shows_reasons(self):
        self.pick("infeasible")
        self.click("plan")
        self.assertIn("No plan", self.texts("#summary")[0])
        reasons = self.texts("#reasons li")
        self.assertGreaterEqual(len(reasons), 1)
        self.assertTrue(self.browser.evaluate("document.querySelector('#reasons li').dataset.constraint"))
        self.assertEqual(self.texts("#stages .bar > div"), [])
        self.browser.screenshot(os.path.join(SHOTS, "why-not.png"))
        self.assertEqual(self.browser.problems, [])

    def test_invalid_request_shows_the_error(self):
        self.set("text", "model:\n  layerz: []\n")
        self.click("plan")
        self.assertEqual(self.texts("#error"), ["model.layerz: unknown field; did you mean `layers`?"])
        # YAML works like JSON.
        yaml = self.browser.evaluate("fetch('examples/ctrdnn-16.json').then(r => r.text())")
        self.set("text", "# a comment: this is YAML\n" + yaml)
        self.click("plan")
        self.assertEqual(self.texts("#error"), [""])
        self.assertIn("samples/s", self.texts("#summary")[0])
        # The console has the error response as a failed load, and nothing else.
        self.assertEqual([p for p in self.browser.problems if "400" not in p], [])


class LinkTest(unittest.TestCase):
    """The page of a service with a token, opened by the link that medley run prints, on a phone."""
    TOKEN = "0123456789abcdef-token+/="

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="medley-link-test-")
        tokens = os.path.join(self.folder, "tokens")
        with open(tokens, "w", encoding="utf-8") as file:
            file.write(self.TOKEN + "\n")
        self.scheduler = Scheduler("--token-file", tokens)
        self.page = f"http://127.0.0.1:{self.scheduler.rest}/"
        self.browser = Browser()

    def tearDown(self):
        self.browser.close()
        self.assertEqual(self.scheduler.close(), 0)
        shutil.rmtree(self.folder, ignore_errors=True)

    def fits(self, what):
        width, inner = self.browser.evaluate("[document.scrollingElement.scrollWidth, window.innerWidth]")
        self.assertLessEqual(width, inner, what)

    def opened(self):
        self.browser.wait("document.body?.dataset.loaded === 'true' && !document.getElementById('plan').disabled")

    def test_the_token_of_the_link_works_and_leaves_the_address(self):
        self.browser.command("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=2, mobile=True)
        self.browser.command("Page.navigate", url=self.page + "#token=" + urllib.parse.quote(self.TOKEN, safe=""))
        self.opened()
        self.assertEqual(self.browser.evaluate("location.href"), self.page)
        history = self.browser.command("Page.getNavigationHistory")["entries"]
        self.assertNotIn("token", " ".join(entry["url"] for entry in history))
        self.fits("as it opens")
        self.browser.evaluate("document.getElementById('plan').click()")
        self.browser.wait("!document.getElementById('plan').disabled && !document.getElementById('answer').hidden")
        self.browser.wait("document.querySelectorAll('#timeline svg').length > 0")
        self.fits("with a plan and its timeline")
        self.browser.evaluate("document.getElementById('front').click()")
        self.browser.wait("!document.getElementById('plan').disabled && document.querySelectorAll('#pareto-chart circle').length > 1")
        self.fits("with the front")
        self.browser.screenshot(os.path.join(SHOTS, "service-phone.png"))
        # The tab keeps it; the log of the service does not have it.
        self.browser.command("Page.reload")
        self.opened()
        self.assertEqual(self.browser.problems, [])
        self.assertNotIn(self.TOKEN, self.scheduler.log())

    def test_a_link_that_is_opened_in_the_same_tab_replaces_the_token(self):
        self.browser.command("Page.navigate", url=self.page)
        self.browser.wait("document.getElementById('error')?.hidden === false")
        self.assertIn("token", self.browser.evaluate("document.getElementById('error').textContent"))
        self.browser.command("Page.navigate", url=self.page + "#token=" + urllib.parse.quote(self.TOKEN, safe=""))
        self.opened()
        self.assertEqual(self.browser.evaluate("location.href"), self.page)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
