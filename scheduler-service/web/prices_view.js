// Renders prices over time.

import { lineChart } from "./chart.js";
import { duration, node, number, table, usd } from "./dom.js";

const MOST_LINES = 12;

function nameOf(entry) {
  if (entry.resourceType) return entry.resourceType;
  const o = entry.offering || {};
  return [o.instanceType, o.capacityType, o.zone || o.region].filter(Boolean).join(" ");
}

const priceOf = (x) => x.pricePerUnitHour || x.pricePerInstanceHour;

function timeText(span) {
  return (v) => {
    const t = new Date(v).toISOString();
    if (span > 3 * 86400e3) return t.slice(5, 10);
    return span > 600e3 ? t.slice(11, 16) : t.slice(11, 19);
  };
}

export function prices(answer, now) {
  const series = answer.series.map((s) => {
    const points = s.points.map((p) => ({ x: Date.parse(p.time), y: priceOf(p), title: `${p.time}: ${usd(priceOf(p))}/h` }));
    // The last price is still valid, so extend its line to the current time.
    if (points.length) points.push({ ...points[points.length - 1], x: now });
    return { name: nameOf(s.current), points };
  }).filter((s) => s.points.length);
  const times = series.flatMap((s) => s.points.map((p) => p.x));
  const chart = lineChart(series.slice(0, MOST_LINES), { label: "Prices over time", xLabel: "UTC", yLabel: "USD per hour",
    steps: true, xText: timeText(Math.max(...times) - Math.min(...times)) });
  const rows = answer.series.map((s) => [nameOf(s.current), usd(priceOf(s.current)), s.current.quality || "", s.current.source,
    duration(s.ageSeconds), s.relativeChange ? `${s.relativeChange > 0 ? "+" : ""}${number(s.relativeChange * 100, 3)} %` : ""]);
  const list = table("Current prices", [["Type"], ["USD/h", true], ["Quality"], ["Source"], ["Age", true], ["Last change", true]], rows);
  return { chart: series.length ? chart : node("p", {}, "No prices have been published."), list };
}
