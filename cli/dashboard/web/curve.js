// The course of a job, and its learning curve: one chart for losses and errors, one for scores that are better when they are higher.

import { lineChart } from "./chart.js";
import { node, number } from "./dom.js";

const isLoss = (name) => /loss|entropy|^(mse|mae|rmse)$/.test(name);
const isCount = (name) => name.endsWith("samples");

// The step of the best evaluation: as the status says, else by the first of the usual scores. undefined: not known.
export function bestStep(seen, evaluations) {
  const known = seen.best?.step ?? seen.bestStep;
  if (known !== undefined) return known;
  const [name, sign] = [["auc", 1], ["accuracy", 1], ["r2", 1], ["logLoss", -1], ["mse", -1], ["loss", -1]]
    .find(([n]) => evaluations.some((e) => Number.isFinite(e.metrics?.[n]))) ?? [];
  if (name === undefined) return undefined;
  return evaluations.filter((e) => Number.isFinite(e.metrics?.[name]))
    .reduce((best, e) => (sign * e.metrics[name] > sign * best.metrics[name] ? e : best)).step;
}

function points(evaluations, value, best) {
  return evaluations.map((e) => ({ x: e.step, y: value(e), best: e.step === best,
    title: `step ${e.step}, epoch ${e.epochs}: ${number(value(e))}${e.step === best ? ", the best epoch" : ""}` }))
    .filter((p) => Number.isFinite(p.y));
}

function chart(title, series) {
  if (!series.some((s) => s.points.length)) return null;
  return node("figure", { "data-chart": title }, node("figcaption", {}, title),
    lineChart(series.filter((s) => s.points.length), { label: title, xLabel: "step", yLabel: title, dots: true }));
}

// Every job has this one, with test data or without: up to 60 points from the first step to the last.
export function course(list) {
  const line = (name, value) => ({ name, points: list.map((p) => ({ x: p.step, y: value(p), title: `step ${p.step}: ${number(value(p))}` })) });
  const one = (title, series) => node("figure", { "data-chart": title }, node("figcaption", {}, title),
    lineChart([series], { label: `${title}, ${list.length} points`, xLabel: "step", yLabel: title }));
  if (!list?.length) return null;
  return node("div", { class: "charts" }, one("Training loss", line("training loss", (p) => p.loss)),
    one("Samples/s", line("samples/s", (p) => p.throughput)));
}

export function curve(seen) {
  const evaluations = seen.evaluations;
  if (!evaluations?.length) return null;
  const best = bestStep(seen, evaluations);
  const names = [...new Set(evaluations.flatMap((e) => Object.keys(e.metrics || {})))].filter((n) => !isCount(n)).sort();
  const of = (name) => ({ name, points: points(evaluations, (e) => e.metrics?.[name], best) });
  const losses = [{ name: "training loss", points: points(evaluations, (e) => e.loss, best) }, ...names.filter(isLoss).map(of)];
  const charts = [chart("Loss", losses), chart("Scores on the test data", names.filter((n) => !isLoss(n)).map(of))];
  const epoch = evaluations.find((e) => e.step === best)?.epochs;
  return node("div", {}, node("div", { class: "charts" }, charts.filter(Boolean)),
    epoch === undefined ? null : node("p", { id: "best" }, `The best evaluation so far is that of epoch ${epoch}, step ${best}; its points have a ring.`));
}
