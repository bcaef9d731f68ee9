// Renders a plan, the reasons why there is none, and the Pareto front of plans.

import { colourOf, duration, node, number, table, usd } from "./dom.js";
import { lineChart } from "./chart.js";

const types = (plan) => plan.stages.map((s) => `${s.units} ${s.resourceType}`).join(" + ") +
  (plan.serverUnits ? ` + ${plan.serverUnits} for servers` : "");

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
  return `${number(plan.throughput)} samples/s for ${usd(plan.costPerHour)}/h, ${usd(plan.costUsd)} in ` +
    `${duration(plan.executionSeconds)}${proof}. Planned by ${answer.planner} in ${number(answer.planningSeconds * 1000, 3)} ms ` +
    `with prices of catalog revision ${answer.catalogRevision}${answer.prediction ? `, corrected with ${answer.prediction.observations} observations` : ""}.` +
    answer.notes.map((note) => ` Note: ${note}.`).join("");
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
