// The learning curve of a job: one chart for losses and errors, one for scores that are better when they are higher.

import { lineChart } from "./chart.js";
import { node, number } from "./dom.js";

const isLoss = (name) => /loss|entropy|^(mse|mae|rmse)$/.test(name);
const isCount = (name) => name.endsWith("samples");

function points(evaluations, value) {
  return evaluations.map((e) => ({ x: e.step, y: value(e), title: `step ${e.step}, epoch ${e.epochs}: ${number(value(e))}` }))
    .filter((p) => Number.isFinite(p.y));
}

function chart(title, series) {
  if (!series.some((s) => s.points.length)) return null;
  return node("figure", { "data-chart": title }, node("figcaption", {}, title),
    lineChart(series.filter((s) => s.points.length), { label: title, xLabel: "step", yLabel: title, dots: true }));
}

export function curve(evaluations) {
  if (!evaluations?.length) return null;
  const names = [...new Set(evaluations.flatMap((e) => Object.keys(e.metrics || {})))].filter((n) => !isCount(n)).sort();
  const of = (name) => ({ name, points: points(evaluations, (e) => e.metrics?.[name]) });
  const losses = [{ name: "training loss", points: points(evaluations, (e) => e.loss) }, ...names.filter(isLoss).map(of)];
  const charts = [chart("Loss", losses), chart("Scores on the test data", names.filter((n) => !isLoss(n)).map(of))];
  return node("div", { class: "charts" }, charts.filter(Boolean));
}
