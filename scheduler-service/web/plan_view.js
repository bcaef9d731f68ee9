// Renders a plan, the reasons why there is none, and the Pareto front of plans.

import { colourOf, duration, node, number, table, usd } from "./dom.js";
import { lineChart } from "./chart.js";

const MAX_RANGES = 4;  // of operations, in a row

const types = (plan) => plan.stages.map((s) => `${s.units} ${s.resourceType}`).join(" + ") +
  (plan.serverUnits ? ` + ${plan.serverUnits} for servers` : "") + (plan.trainersWithRows ? ", embedding rows in the trainers" : "");

export function stages(plan, layers) {
  const bar = node("div", { class: "bar", role: "img",
    "aria-label": plan.stages.map((s) => `layers ${s.firstLayer} to ${s.lastLayer} on ${s.units} ${s.resourceType}`).join(", ") });
  for (const stage of plan.stages) {
    const part = node("div", { "data-stage": stage.resourceType }, node("strong", {}, `${stage.units} ${stage.resourceType}`),
      node("br"), stage.firstLayer === stage.lastLayer ? `layer ${stage.firstLayer}` : `layers ${stage.firstLayer}–${stage.lastLayer}`);
    part.style.flex = String(stage.lastLayer - stage.firstLayer + 1);
    part.style.background = colourOf(stage.resourceType);
    part.title = layers.slice(stage.firstLayer, stage.lastLayer + 1).map((l) => l.name).join(", ");
    bar.append(part);
  }
  const rows = plan.stages.map((s) => [`${s.firstLayer}–${s.lastLayer}`, s.resourceType, number(s.units), number(s.throughput),
    number(s.computeSeconds * 1000, 3), number(s.commSeconds * 1000, 3)]);
  return [bar, table("Stages", [["Layers"], ["Type"], ["Units", true], ["Samples/s", true], ["Compute (ms)", true],
    ["Communication (ms)", true]], rows)];
}

export function summary(answer) {
  const plan = answer.plan;
  const proof = answer.gap > 0 ? `; no plan costs less than ${usd(answer.lowerBoundUsd)} (gap ${number(answer.gap * 100, 3)} %)`
    : "; this is proven to be the cheapest plan";
  const rows = plan.trainersWithRows ? ` The embedding rows are in ${plan.trainersWithRows} trainer${plan.trainersWithRows > 1 ? "s" : ""}: no parameter servers.` : "";
  return `${number(plan.throughput)} samples/s for ${usd(plan.costPerHour)}/h, ${usd(plan.costUsd)} in ` +
    `${duration(plan.executionSeconds)}${proof}. Planned by ${answer.planner} in ${number(answer.planningSeconds * 1000, 3)} ms ` +
    `with prices of catalog revision ${answer.catalogRevision}${answer.prediction ? `, corrected with ${answer.prediction.observations} observations` : ""}.` +
    rows + answer.notes.map((note) => ` Note: ${note}.`).join("");
}

// Plans for the fastest step have placements of operations instead of stages of layers.
export function placements(plan, layers) {
  const name = (i) => layers[i]?.name ?? String(i);
  const range = ({ first = 0, end }) => (end - first === 1 ? name(first) : `${name(first)} to ${name(end - 1)}`);
  const operations = (ranges) => {
    const shown = ranges.slice(0, MAX_RANGES).map(range).join(", ");
    return ranges.length <= MAX_RANGES ? shown : `${shown} and ${number(ranges.length - MAX_RANGES)} more`;
  };
  const count = (ranges) => ranges.reduce((sum, { first = 0, end }) => sum + end - first, 0);
  const reduction = ({ replicas, sync }) => {
    if (replicas.length < 2) return "";
    const algorithm = (sync?.algorithm ?? "").replace("ALLREDUCE_ALGORITHM_", "").toLowerCase().replaceAll("_", " ") || "automatic";
    return sync?.root ? `${algorithm}, by ${sync.root}` : algorithm;
  };
  const stages = plan.stages ?? [];
  if (stages.length) {
    return [table("Stages", [["Layers"], ["Pool"], ["Units", true]],
      stages.map((s) => [range(s.operations ?? s), s.pool ?? "", number(s.units)]))];
  }
  const rows = plan.placements.map((p) => [operations(p.operations), number(count(p.operations)),
    p.replicas.map((r) => (p.replicas.length > 1 ? `${r.device} ${number(r.share * 100, 3)} %` : r.device)).join(", "), reduction(p)]);
  return [table("Placements", [["Operations"], ["Number", true], ["Devices, with their part of the batch"], ["Gradients"]], rows)];
}

export function stepSummary(answer) {
  const plan = answer.stepTime;
  const bound = plan.lowerBoundSeconds > 0 ? `; no plan takes less than ${number(plan.lowerBoundSeconds * 1000)} ms` : "";
  const money = [plan.usdPerHour > 0 ? `${usd(plan.usdPerHour)} an hour` : "",
    plan.secondsToEnd > 0 ? `${plan.usd > 0 ? usd(plan.usd) + " in " : ""}${duration(plan.secondsToEnd)} to the end` : ""]
    .filter((text) => text).join(", ");
  return `${number(plan.seconds * 1000)} ms a step, ${number(plan.throughput)} samples/s, by the simulator${bound}. ` +
    `${money ? money + ". " : ""}Planned by ` +
    `${answer.planner} in ${number(answer.planningSeconds * 1000, 3)} ms.` + answer.notes.map((note) => ` Note: ${note}.`).join("");
}

// One fact a line.
export function explanation(text) {
  return node("ul", { class: "facts" }, text.split("\n").filter((line) => line).map((line) => node("li", {}, line)));
}

export function stepAlternatives(list) {
  return table("Compared with other plans", [["Plan"], ["Step (ms)", true], ["USD/h", true], [""]],
    list.map((a) => [a.label, a.failure ? "" : number(a.seconds * 1000), a.usdPerHour > 0 ? usd(a.usdPerHour) : "", a.failure ?? ""]));
}

export function reasons(list, title) {
  return node("div", { class: "reasons" }, node("strong", {}, title),
    node("ul", {}, list.map((r) => node("li", { "data-constraint": r.constraint }, r.message))));
}

export function alternatives(list) {
  if (!list.length) return null;
  return table("Compared with one type only", [["Plan"], ["USD", true], ["USD/h", true], ["Samples/s", true], ["Units"]],
    list.map((a) => (a.plan ? [a.label, usd(a.plan.costUsd), usd(a.plan.costPerHour), number(a.plan.throughput), types(a.plan)]
      : [a.label, "", "", "", a.reasons.map((r) => r.message).join("; ")])));
}

export function front(plans, onPlan) {
  const points = plans.map((plan) => ({ x: plan.throughput, y: plan.costUsd, plan,
    title: `${number(plan.throughput)} samples/s, ${usd(plan.costUsd)}, ${duration(plan.executionSeconds)}: ${types(plan)}` }));
  return lineChart([{ name: "front", points }], { label: "Cost of the whole job by throughput", xLabel: "samples/s",
    yLabel: "USD", dots: true, onPoint: (p) => onPlan(p.plan, p.title) });
}
