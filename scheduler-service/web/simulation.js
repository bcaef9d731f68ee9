// Asks for the simulation of the plan on the page and shows it. Only the last plan counts: a new one ends the question
// about the one before, whose answer is then ignored.

import { post } from "./api.js";
import { byId } from "./dom.js";
import * as view from "./timeline_view.js";

const TIMEOUT_SECONDS = 60;

let current = null;  // the AbortController of the plan on the page
let traceUrl = "";

function clear() {
  for (const id of ["timeline-memory", "timeline-predictions", "timeline-picture"]) byId(id).replaceChildren();
  byId("timeline-point").textContent = "";
  byId("timeline-oom").hidden = true;
  byId("timeline-link").hidden = true;
  byId("timeline-keys").hidden = true;
  if (traceUrl) URL.revokeObjectURL(traceUrl);
  traceUrl = "";
}

// Ends the question that is open, and hides the section.
export function clearSimulation() {
  current?.abort();
  current = null;
  clear();
  byId("timeline").hidden = true;
}

function show(answer, simulated) {
  byId("timeline-oom").textContent = `The plan needs more memory than its devices have: ${simulated.outOfMemory}.`;
  byId("timeline-oom").hidden = simulated.outOfMemory === "";
  byId("timeline-predictions").replaceChildren(view.predictions(answer.plan, simulated));
  byId("timeline-memory").replaceChildren(...view.memory(simulated.devices));
  const onBar = (text) => { byId("timeline-point").textContent = text; };
  byId("timeline-picture").replaceChildren(...view.timeline(simulated, onBar));
  traceUrl = URL.createObjectURL(new Blob([simulated.trace], { type: "application/json" }));
  byId("timeline-trace").href = traceUrl;
  byId("timeline-link").hidden = false;
  byId("timeline-keys").hidden = false;
}

// `request`: what was planned; `answer`: its plan. Errors are shown in the section.
export async function showSimulation(request, answer) {
  clearSimulation();
  const mine = new AbortController();
  current = mine;
  let late = false;
  const timer = setTimeout(() => { late = true; mine.abort(); }, TIMEOUT_SECONDS * 1000);
  byId("timeline").hidden = false;
  byId("timeline-status").textContent = "Simulating …";
  try {
    const simulated = await post("v1/simulate", { plan: answer.executionPlan, request, timeline: true }, mine.signal);
    if (current !== mine) return;
    show(answer, simulated);
    byId("timeline-status").textContent = "";
  } catch (error) {
    if (current !== mine) return;
    clear();
    byId("timeline-status").textContent = late ? `The simulation took longer than ${TIMEOUT_SECONDS} s and was ended.`
      : `The plan cannot be simulated: ${error.message}`;
  } finally {
    clearTimeout(timer);
  }
}
