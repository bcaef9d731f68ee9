#!/usr/bin/env python3
"""dashboard_browser.py URL NAMESPACE FOLDER: clicks through the page of medley dashboard, on a desktop and on a phone."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "browser"))
from devtools import Browser  # noqa: E402
from waiting import wait_for  # noqa: E402


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


def texts(browser, selector):
    return browser.evaluate(f"[...document.querySelectorAll({selector!r})].map(e => e.textContent)")


def fits(browser, what):
    width, inner = browser.evaluate("[document.scrollingElement.scrollWidth, window.innerWidth]")
    expect(width <= inner, f"{what} is {width} px wide on a screen of {inner} px")


def main(url, namespace, folder):
    browser = Browser()
    try:
        browser.command("Page.navigate", url=url)
        browser.wait("document.body?.dataset.shown === 'overview'")
        expect(any("Running" in row and "41 %" in row for row in texts(browser, "#jobs tr")), texts(browser, "#jobs tr"))
        expect(any("Queued" in row and "waits for" in row for row in texts(browser, "#jobs tr")), texts(browser, "#jobs tr"))
        expect(len(texts(browser, "#pools tbody tr")) == 2, texts(browser, "#pools tr"))
        browser.screenshot(os.path.join(folder, "dashboard.png"), 700)

        browser.evaluate("[...document.querySelectorAll('#jobs a')].find(a => a.textContent.endsWith('/adult')).click()")
        browser.wait(f"document.body.dataset.shown === '{namespace}/adult'")
        expect(browser.evaluate("location.hash") == f"#{namespace}/adult", "the address does not name the job")
        charts = browser.evaluate("[...document.querySelectorAll('figure')].map(f => f.dataset.chart)")
        expect(charts == ["Training loss", "Samples/s", "Loss", "Scores on the test data"], charts)
        expect(browser.evaluate("document.querySelectorAll('figure circle').length") == 8, "points of the curve")
        lines = browser.evaluate("[...document.querySelectorAll('figure')].slice(0, 2)"
                                 ".map(f => (f.querySelector('path[fill=none][stroke]').getAttribute('d').match(/[ML]/g) || []).length)")
        expect(lines == [3, 3], f"the course has 3 points: {lines}")
        rings = texts(browser, "figure circle.best title")
        expect(len(rings) == 4 and all("epoch 2" in r and "the best epoch" in r for r in rings), rings)
        expect("epoch 2, step 1000" in texts(browser, "#best")[0], texts(browser, "#best"))
        stages = texts(browser, ".bar > div")
        expect(len(stages) == 2 and "4 × cpu-spot" in stages[0] and "fc1 … loss" in stages[1], stages)
        rows = texts(browser, "#job tr")
        for part in ("parameter servers", "recovery 2 → 3", "needed 9, available 8", "generation 3 -> 4"):
            expect(any(part in row for row in rows), f"no row has {part!r}: {rows}")
        expect("limits the throughput" in texts(browser, "#explain")[0], "what medley explain says is missing")
        browser.screenshot(os.path.join(folder, "job.png"), 1060)

        browser.command("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=2, mobile=True)
        fits(browser, "the page of a job")
        browser.screenshot(os.path.join(folder, "job-phone.png"))
        browser.evaluate("document.querySelector('header a').click()")
        browser.wait("document.body.dataset.shown === 'overview' && !document.getElementById('overview').hidden")
        fits(browser, "the overview")

        # Without a scheduling service the page says how to see prices over time.
        wait_for("the sentence", lambda: "--server HOST:PORT" in texts(browser, "#prices-problem")[0])
        browser.evaluate("location.hash = '#" + namespace + "/nobody'")
        browser.wait("!document.getElementById('error').hidden")
        expect("'nobody' does not exist" in texts(browser, "#error")[0], texts(browser, "#error"))
        unexpected = [p for p in browser.problems if "404" not in p]  # the two refusals above
        expect(not unexpected, unexpected)
    finally:
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
