// Handles user actions.

import { call, normalize, post, setToken, takeToken, token } from "./api.js";
import { byId, node } from "./dom.js";
import * as view from "./plan_view.js";
import { prices } from "./prices_view.js";
import { clearSimulation, showSimulation } from "./simulation.js";

const CONSTRAINTS = ["minThroughput", "maxCostPerHour", "deadlineSeconds", "budgetUsd"];

function showError(error) {
  byId("error").hidden = error === null;
  byId("error").textContent = error === null ? "" : error.message;
}

function showRequest(request) {
  byId("text").value = JSON.stringify(request, null, 1);
  for (const name of CONSTRAINTS) byId(name).value = request.constraints?.[name] || "";
  const planner = request.planner?.name || "exact";
  if ([...byId("planner").options].some((o) => o.value === planner)) byId("planner").value = planner;
}

// The request in the text area, with the values of the form's fields.
async function request() {
  const out = await normalize(byId("text").value);
  out.constraints = { ...(out.constraints || {}) };
  for (const name of CONSTRAINTS) {
    const value = Number(byId(name).value);
    if (value > 0) out.constraints[name] = value;
    else delete out.constraints[name];
  }
  out.planner = { ...(out.planner || {}), name: byId("planner").value };
  return out;
}

// Runs one action at a time and shows its error.
async function attempt(what, work) {
  const buttons = [byId("plan"), byId("front")];
  buttons.forEach((b) => { b.disabled = true; });
  byId("status").textContent = `${what} …`;
  showError(null);
  try {
    await work();
    byId("status").textContent = "";
  } catch (error) {
    showError(error);
    byId("status").textContent = "";
  } finally {
    buttons.forEach((b) => { b.disabled = false; });
  }
}

function showPlan(plan, layers) {
  byId("stages").replaceChildren(...view.stages(plan, layers));
}

async function plan() {
  const asked = await request();
  const answer = await post("v1/plan", asked);
  byId("answer").hidden = false;
  clearSimulation();
  byId("stages").replaceChildren();
  byId("reasons").replaceChildren();
  if (answer.feasible && answer.stepTime) {
    byId("summary").textContent = view.stepSummary(answer);
    byId("stages").replaceChildren(...view.placements(answer.executionPlan, asked.model.layers),
      view.explanation(answer.stepTime.explanation));
  } else if (answer.feasible) {
    byId("summary").textContent = view.summary(answer);
    showPlan(answer.plan, asked.model.layers);
  } else {
    byId("summary").textContent = "No plan meets the constraints.";
    byId("reasons").replaceChildren(view.reasons(answer.reasons, "These constraints cannot be met together:"));
  }
  const others = answer.stepTime ? view.stepAlternatives(answer.stepTime.alternatives) : view.alternatives(answer.alternatives);
  byId("alternatives").replaceChildren(...(others ? [others] : []));
  if (answer.feasible) showSimulation(asked, answer);  // not awaited: the page can plan again meanwhile
}

async function front() {
  const asked = await request();
  const answer = await post("v1/pareto", { request: asked, maxPoints: 64 });
  byId("pareto").hidden = false;
  byId("pareto-point").textContent = "";
  if (answer.plans.length === 0) {
    byId("pareto-summary").textContent = "No plan meets the constraints.";
    byId("pareto-chart").replaceChildren(view.reasons(answer.reasons, "These constraints cannot be met together:"));
    return;
  }
  byId("pareto-summary").textContent = `${answer.plans.length} plans: no other plan is both cheaper and faster than one of them` +
    (answer.complete ? "." : ". The time budget ended before all such plans were found.");
  byId("pareto-chart").replaceChildren(view.front(answer.plans, (_, title) => { byId("pareto-point").textContent = title; }));
}

async function loadPrices() {
  const since = new Date(Date.now() - Number(byId("period").value) * 1000).toISOString();
  const query = new URLSearchParams({ since });
  if (byId("price-type").value) query.set("type", byId("price-type").value);
  try {
    const answer = await call(`v1/prices?${query}`);
    const shown = prices(answer, Date.now());
    byId("prices-summary").textContent = `Revision ${answer.catalogRevision}.`;
    byId("prices-chart").replaceChildren(shown.chart);
    byId("prices-table").replaceChildren(...(answer.series.length ? [shown.list] : []));
  } catch (error) {
    byId("prices-summary").textContent = error.message;
  }
}

async function loadExample() {
  showRequest(await call(`examples/${byId("example").value}.json`));
}

// What a planner does for one objective, and its options.
function goalText(goal) {
  const what = goal.objective === "OBJECTIVE_STEP_TIME" ? "Fewest seconds of a step" : "Least cost";
  const options = goal.options.map((o) => `${o.name} (${o.defaultValue})`).join(", ");
  return `${what}: ${goal.description}` + (options ? `. Options: ${options}` : "");
}

async function load() {
  const [planners, examples] = await Promise.all([call("v1/planners"), call("examples/index.json")]);
  byId("planner").replaceChildren(...planners.planners.map((p) =>
    node("option", { value: p.name, title: p.goals.map(goalText).join("\n") }, p.name)));
  byId("planner").value = "exact";
  byId("example").replaceChildren(...examples.map((name) => node("option", { value: name }, name)));
  await loadExample();
  await loadPrices();
  document.body.dataset.loaded = "true";
}

takeToken();
byId("token").value = token();
addEventListener("hashchange", () => {  // the link was opened in the tab of this page
  if (!takeToken()) return;
  byId("token").value = token();
  attempt("Loading", load);
});
byId("token").addEventListener("change", () => { setToken(byId("token").value); attempt("Loading", load); });
byId("form").addEventListener("submit", (event) => { event.preventDefault(); attempt("Planning", plan); });
byId("front").addEventListener("click", () => attempt("Planning", front));
byId("example").addEventListener("change", () => attempt("Loading", loadExample));
byId("period").addEventListener("change", loadPrices);
byId("price-type").addEventListener("change", loadPrices);
attempt("Loading", load);
