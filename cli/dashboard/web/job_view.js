// Renders one job: its state, learning curve, plan, money, switches, events, and what medley explain says.

import { course, curve } from "./curve.js";
import { colourOf, duration, node, number, table, usd } from "./dom.js";
import { badge } from "./overview.js";

const wide = (content) => node("div", { class: "wide" }, content);
const heading = (text) => node("h2", {}, text);
const fact = (name, value) => (value === "" || value === undefined || value === null ? null
  : node("div", {}, node("dt", {}, name), node("dd", {}, value)));

const ago = (time, now) => (time ? duration((now - Date.parse(time)) / 1000) : "");

function names(layers, all) {
  const [first, last] = layers.split("-").map(Number);
  const name = (i) => all[i] || String(i);
  return last === undefined || first === last ? name(first) : `${name(first)} … ${name(last)}`;
}

function facts(status) {
  const seen = status.observed || {}, cost = status.cost || {};
  const metrics = Object.entries(seen.metrics || {}).map(([name, value]) => fact(name, number(value)));
  return node("dl", { class: "facts" }, [
    fact("epoch", seen.epoch), fact("samples", seen.samplesTotal ? `${number(seen.samples, 6)} of ${number(seen.samplesTotal, 6)}` : ""),
    fact("samples/s", seen.throughput ? number(seen.throughput) : ""), fact("left", seen.eta),
    fact("training loss", seen.loss ? number(seen.loss) : ""), ...metrics,
    fact("best model", seen.best ? `epoch ${seen.best.epoch}, step ${seen.best.step}: ${seen.best.metric} ${number(seen.best.value)} on the ${seen.best.data.toLowerCase()} data` : ""),
    fact("exported model", seen.exported ? `the ${seen.exported.model.toLowerCase()} one: epoch ${seen.exported.epoch}, step ${seen.exported.step}` : ""),
    fact("USD/h", cost.usdPerHour === undefined ? "" : usd(cost.usdPerHour)), fact("spent", cost.spentUsd === undefined ? "" : usd(cost.spentUsd)),
    fact("saved by moves", cost.savedUsd === undefined ? "" : usd(cost.savedUsd)), fact("restarts", status.restarts || ""),
  ].filter(Boolean));
}

function plan(job) {
  const made = job.status.plan;
  if (!made) return [];
  const stages = made.stages || [];
  const count = (s) => { const [a, b] = s.layers.split("-").map(Number); return (b === undefined ? a : b) - a + 1; };
  const bar = node("div", { class: "bar", role: "img", "aria-label": stages.map((s) => `layers ${s.layers} on ${s.units} of ${s.pool}`).join(", ") });
  for (const stage of stages) {
    const part = node("div", { "data-stage": stage.pool }, node("strong", {}, `${stage.units} × ${stage.pool}`), node("br"),
      names(stage.layers, job.layerNames));
    part.style.flex = String(count(stage));
    part.style.background = colourOf(stage.pool);
    bar.append(part);
  }
  const price = (pool) => (job.usdPerUnitHour[pool] ? usd(job.usdPerUnitHour[pool]) : "");
  const rows = stages.map((s, i) => [String(i), names(s.layers, job.layerNames), s.pool, number(s.units), price(s.pool),
    s.throughput ? number(s.throughput) : "", s.zone || ""]);
  if (made.servers) rows.push(["–", "parameter servers", made.serverPool, number(made.servers), price(made.serverPool), "", ""]);
  if (made.trainersWithRows) rows.push(["–", "embedding rows", "in the trainers", number(made.trainersWithRows), "", "", ""]);
  for (const [i, s] of stages.entries()) {
    if (s.tables) rows.push([String(i), "embedding tables", ({ Device: "in the GPU's memory", Cache: "cached in the GPU's memory" })[s.tables] || "in the memory of hosts", "", "", "", ""]);
  }
  const others = (made.alternatives || []).map((a) => [a.label, a.throughput ? number(a.throughput) : "", a.usdPerHour ? usd(a.usdPerHour) : "",
    a.usdTotal ? usd(a.usdTotal) : "", a.reason || ""]);
  return [heading("Plan"),
    node("p", {}, `Generation ${made.generation} by ${made.planner}: ${number(made.throughput)}${made.throughputSpread ? ` ± ${number(Math.max(1, 100 * made.throughputSpread), 2)} %` : ""} samples/s for ${usd(made.usdPerHour)}/h` +
      (made.usdTotal ? `, ${usd(made.usdTotal)} for the samples that remained` : "")),
    bar, wide(table("Stages", [["Stage"], ["Layers"], ["Pool"], ["Units", true], ["USD/unit-h", true], ["Samples/s", true], ["Zone"]], rows)),
    others.length ? wide(table("The best plans on one pool only", [["Plan"], ["Samples/s", true], ["USD/h", true], ["USD", true], [""]], others)) : null];
}

function switches(status, now) {
  const list = [...(status.rescales || [])].reverse();
  if (!list.length) return [];
  return [heading("Generation switches"), wide(table("", [["Ago", true], ["Switch"], ["Why"], ["Pause (s)", true], ["Steps lost", true]],
    list.map((s) => [ago(s.at, now), `${s.recovery ? "recovery" : "rescale"} ${s.fromGeneration} → ${s.toGeneration}`, s.reason,
      number(s.pauseSeconds, 3), number(s.lostSteps)])))];
}

function events(list, now) {
  if (!list.length) return [];
  return [heading("Events"), wide(table("", [["Ago", true], ["Times", true], ["Reason"], ["Object"], ["Message"]],
    list.map((e) => [ago(e.at, now), number(e.count), e.reason, e.object, e.message])))];
}

export function jobPage(job, now) {
  const status = job.status || {};
  const seen = status.observed || {};
  const notable = (status.conditions || []).filter((c) => c.message && ((c.type === "Failed" && c.status === "True") ||
    (c.type === "Planned" && c.status !== "True") || (c.type === "PoolsUsable" && c.status === "False") ||
    (["Restarting", "Rescaling", "Suspended"].includes(c.type) && c.status === "True")));
  const shown = curve(seen);
  const trained = course(seen.course);
  return [
    node("h2", {}, `${job.namespace}/${job.name} `, badge(status.phase)),
    seen.samplesTotal ? node("progress", { max: 100, value: seen.progressPercent, "aria-label": "progress" }) : null,
    ...notable.map((c) => node("p", { class: "problem" }, `${c.message} (${c.type}, ${c.reason})`)),
    facts(status),
    trained ? heading("Training") : null, trained,
    heading("Learning curve"),
    shown || node("p", {}, "No model has been evaluated yet. spec.training.evaluation says how often that is done."),
    ...plan(job), ...switches(status, now), ...events(job.events, now),
    heading("In words"), node("pre", { id: "explain" }, job.explain.join("\n")),
  ].filter(Boolean);
}
