// Line charts in SVG: axes with round numbers, lines or steps, and points that the mouse and the keyboard can reach.

import { colourOf, node, number, svg } from "./dom.js";

const WIDTH = 800, HEIGHT = 300, LEFT = 70, RIGHT = 20, TOP = 15, BOTTOM = 40;

export function ticks(low, high, count = 5) {
  if (!(high > low)) return [low];
  const raw = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
  const out = [];
  for (let v = Math.ceil(low / step) * step; v <= high + step * 1e-9; v += step) out.push(v + 0);  // + 0: no -0
  return out;
}

function range(values) {
  const low = Math.min(...values), high = Math.max(...values);
  const margin = (high - low || Math.abs(high) || 1) * 0.05;
  return [low - margin, high + margin];
}

function axes(x, y, options) {
  const group = svg("g", {});
  for (const v of ticks(...y.range)) {
    group.append(svg("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y.at(v), y2: y.at(v) }),
      svg("text", { x: LEFT - 6, y: y.at(v) + 4, "text-anchor": "end" }, options.yText(v)));
  }
  for (const v of ticks(...x.range)) {
    group.append(svg("text", { x: x.at(v), y: HEIGHT - BOTTOM + 18, "text-anchor": "middle" }, options.xText(v)));
  }
  group.append(svg("path", { class: "axis", d: `M${LEFT} ${TOP}V${HEIGHT - BOTTOM}H${WIDTH - RIGHT}` }),
    svg("text", { x: (LEFT + WIDTH) / 2, y: HEIGHT - 4, "text-anchor": "middle" }, options.xLabel),
    svg("text", { transform: `translate(14 ${HEIGHT / 2}) rotate(-90)`, "text-anchor": "middle" }, options.yLabel));
  return group;
}

function path(points, x, y, steps) {
  let d = "";
  for (const p of points) {
    if (!d) d = `M${x.at(p.x).toFixed(1)} ${y.at(p.y).toFixed(1)}`;
    else d += (steps ? `H${x.at(p.x).toFixed(1)}V` : `L${x.at(p.x).toFixed(1)} `) + y.at(p.y).toFixed(1);
  }
  return d;
}

function dot(point, name, x, y, onPoint) {
  const circle = svg("circle", { class: point.best ? "point best" : "point", cx: x.at(point.x).toFixed(1), cy: y.at(point.y).toFixed(1), r: 5,
    fill: colourOf(name), tabindex: 0, role: "listitem", "aria-label": point.title }, svg("title", {}, point.title));
  for (const event of ["mouseenter", "focus", "click"]) circle.addEventListener(event, () => onPoint(point));
  return circle;
}

// `series`: [{name, points: [{x, y, title, best}]}], where the best points have a ring; options: label, xLabel, yLabel, xText, yText, steps, dots, onPoint.
export function lineChart(series, options) {
  const all = series.flatMap((s) => s.points);
  if (all.length === 0) return node("p", {}, "Nothing to show.");
  const settings = { xText: (v) => number(v, 3), yText: (v) => number(v, 3), onPoint: () => {}, ...options };
  const scale = (values, from, to) => {
    const [low, high] = range(values);
    return { range: [low, high], at: (v) => from + ((v - low) / (high - low)) * (to - from) };
  };
  const x = scale(all.map((p) => p.x), LEFT, WIDTH - RIGHT);
  const y = scale(all.map((p) => p.y), HEIGHT - BOTTOM, TOP);
  const chart = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: settings.dots ? "list" : "img", "aria-label": settings.label },
    axes(x, y, settings));
  for (const s of series) {
    chart.append(svg("path", { d: path(s.points, x, y, settings.steps), fill: "none", stroke: colourOf(s.name), "stroke-width": 2 }));
    if (settings.dots) chart.append(...s.points.map((p) => dot(p, s.name, x, y, settings.onPoint)));
  }
  if (series.length < 2) return chart;
  return node("div", {}, chart, legend(series.map((s) => s.name)));
}

export function legend(names) {
  return node("ul", { class: "legend" }, names.map((name) => {
    const swatch = node("span", { class: "swatch" });
    swatch.style.background = colourOf(name);
    return node("li", {}, swatch, name);
  }));
}
