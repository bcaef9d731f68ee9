// Chooses what is shown by the address (#NAMESPACE/NAME: a job; else all), and updates it every two seconds.

import { byId } from "./dom.js";
import { jobPage } from "./job_view.js";
import { jobs, pools, total } from "./overview.js";
import { prices } from "./prices_view.js";

const INTERVAL = 2000;
let timer = null;

async function read(path) {
  const response = await fetch(path);
  const body = await response.json().catch(() => null);
  if (response.ok && body !== null) return body;
  throw new Error(body?.message || `${path}: HTTP ${response.status}`);
}

function chosen() {
  const [namespace, name] = location.hash.slice(1).split("/").map(decodeURIComponent);
  return name ? { namespace, name } : null;
}

// Keeps the keyboard's focus and the selection when nothing has changed.
function show(element, ...children) {
  const text = children.map((c) => c.outerHTML).join("");
  if (element.dataset.shown === text) return;
  element.dataset.shown = text;
  element.replaceChildren(...children);
}

async function showPrices() {
  const since = new Date(Date.now() - Number(byId("period").value) * 1000).toISOString();
  try {
    const answer = await read(`api/prices?${new URLSearchParams({ since })}`);
    const shown = prices(answer, Date.now());
    byId("prices-problem").textContent = "";
    show(byId("prices-chart"), shown.chart);
    show(byId("prices-table"), ...(answer.series.length ? [shown.list] : []));
  } catch (error) {
    byId("prices-problem").textContent = error.message;
  }
}

async function showOverview() {
  const view = await read("api/overview");
  byId("total").textContent = total(view.total);
  show(byId("jobs"), jobs(view.jobs));
  show(byId("pools"), pools(view.pools));
  await showPrices();
}

async function showJob({ namespace, name }) {
  const job = await read(`api/jobs/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`);
  show(byId("job"), ...jobPage(job, Date.now()));
}

async function update() {
  clearTimeout(timer);
  const job = chosen();
  byId("where").textContent = job ? "" : "jobs, pools and prices";
  try {
    await (job ? showJob(job) : showOverview());
    byId("overview").hidden = job !== null;
    byId("job").hidden = job === null;
    byId("error").hidden = true;
    byId("state").textContent = `updated ${new Date().toLocaleTimeString()}`;
    document.body.dataset.shown = job ? `${job.namespace}/${job.name}` : "overview";
  } catch (error) {
    byId("error").hidden = false;
    byId("error").textContent = error.message;
    byId("state").textContent = "out of date";
  }
  timer = setTimeout(update, document.hidden ? 10 * INTERVAL : INTERVAL);
}

addEventListener("hashchange", update);
byId("period").addEventListener("change", showPrices);
update();
