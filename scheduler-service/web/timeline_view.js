// Renders the simulation of a plan: predictions, memory, and the timeline, drawn from its Chrome trace.
//
// All names come from requests. They become text nodes and attributes, never markup.

import { ticks } from "./chart.js";
import { node, number, svg, table } from "./dom.js";

// A browser stays responsive with this many; what is left out is said beside the picture and is in the trace.
const MAX_DEVICES = 24, MAX_BARS = 3000, MAX_MEMORY_ROWS = 40, MAX_IDS = 3;
const CATEGORIES = [["forward", "forward"], ["backward", "backward"], ["update", "update"], ["reduction", "reduction"],
  ["messages", "messages and rows"]];
// Computation, collectives and messages of a device, below each other: [top, height] in pixels.
const LANES = [[2, 18], [21, 7], [29, 7]];
const ROW = 40, TOP = 6, BOTTOM = 22, MIN_WIDTH = 960, MAX_WIDTH = 6000, LABELS = 110;
const BAR_WIDTH = 14;  // on average, on the device that computes the most bars
const TICK_WIDTH = 150;

const milliseconds = (micros) => `${number(micros / 1000, 4)} ms`;

function bytes(value) {
  let unit = "B";
  for (const next of ["KiB", "MiB", "GiB", "TiB"]) {
    if (value < 1024) break;
    value /= 1024;
    unit = next;
  }
  return `${number(value, 3)} ${unit}`;
}

function laneOf(list) {
  if (list === "compute" || list === "server") return 0;
  return list === "collective" || list.startsWith("served by ") ? 1 : 2;
}

// The trace as devices, each with its bars in order of their start.
function read(trace) {
  const devices = new Map(), lists = new Map();
  for (const event of trace.traceEvents) {
    if (event.ph !== "M") continue;
    if (event.name === "process_name") devices.set(event.pid, { id: event.args.name, bars: [] });
    if (event.name === "thread_name") lists.set(event.tid, event.args.name);
  }
  for (const event of trace.traceEvents) {
    if (event.ph !== "X") continue;
    const list = lists.get(event.tid);
    devices.get(event.pid).bars.push({ ...event, list, lane: laneOf(list) });
  }
  return [...devices.values()];
}

// Parameter servers, which the compiler names; their pool may be that of trainers.
const isServer = (device) => device.id.startsWith("server/");

// At most MAX_DEVICES, from the servers and all pools in turn, in the order of the program.
function chooseDevices(devices, simulated) {
  const byPool = new Map();
  simulated.forEach((device, i) => {
    const key = JSON.stringify([isServer(device), device.pool]);
    if (!byPool.has(key)) byPool.set(key, []);
    byPool.get(key).push(i);
  });
  const chosen = [];
  for (let k = 0; chosen.length < Math.min(MAX_DEVICES, devices.length); ++k) {
    for (const list of byPool.values()) if (k < list.length && chosen.length < MAX_DEVICES) chosen.push(list[k]);
  }
  return chosen.sort((a, b) => a - b).map((i) => devices[i]);
}

function sentence(bar, device, origin) {
  const what = [bar.args.operations && `operations ${bar.args.operations}`,
    bar.args.microBatch === undefined ? "" : `micro-batch ${bar.args.microBatch}`, `step ${bar.args.step}`];
  return `${bar.name} (${bar.cat}) on ${device.id}, ${bar.list}: ${what.filter(Boolean).join(", ")}; starts at ` +
    `${milliseconds(bar.ts - origin)}, takes ${milliseconds(bar.dur)}`;
}

// The picture of `bars`, which are in order of their row and start. `onBar` gets the text of a selected bar.
function draw(rows, bars, label, onBar) {
  const first = Math.min(...bars.map((b) => b.ts)), last = Math.max(...bars.map((b) => b.ts + b.dur));
  const counts = new Array(rows).fill(0);
  for (const bar of bars) if (bar.lane === 0) ++counts[bar.row];
  const width = Math.min(Math.max(Math.max(...counts) * BAR_WIDTH, MIN_WIDTH), MAX_WIDTH);
  const height = TOP + ROW * rows + BOTTOM;
  const x = (time) => 2 + ((time - first) / (last - first || 1)) * (width - 40);
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, tabindex: 0, role: "application", "aria-label": label,
    "aria-describedby": "timeline-keys" });
  picture.style.width = `${width}px`;
  for (const time of ticks(0, last - first, Math.floor(width / TICK_WIDTH))) {
    const at = x(first + time);
    picture.append(svg("line", { class: "grid", x1: at, x2: at, y1: TOP, y2: height - BOTTOM }),
      svg("text", { x: at, y: height - 6, "text-anchor": time === 0 ? "start" : "middle" }, milliseconds(time)));
  }
  for (let i = 0; i < rows; ++i) {
    picture.append(svg("line", { class: "grid", x1: 0, x2: width, y1: TOP + ROW * i, y2: TOP + ROW * i }));
  }
  bars.forEach((bar, i) => {
    const [top, size] = LANES[bar.lane];
    bar.rect = svg("rect", { class: bar.cat, "data-bar": i, x: x(bar.ts).toFixed(2), y: TOP + ROW * bar.row + top,
      width: Math.max(x(bar.ts + bar.dur) - x(bar.ts), 0.5).toFixed(2), height: size },
    svg("title", {}, sentence(bar, bar.device, first)));
    picture.append(bar.rect);
  });
  let selected = null;
  const select = (index) => {
    selected?.rect.classList.remove("selected");
    selected = bars[index];
    selected.rect.classList.add("selected");
    onBar(sentence(selected, selected.device, first));
  };
  const onPointer = (event) => { if (event.target.dataset.bar) select(Number(event.target.dataset.bar)); };
  picture.addEventListener("mouseover", onPointer);
  picture.addEventListener("click", onPointer);
  picture.addEventListener("keydown", (event) => {
    const next = neighbour(bars, selected, event.key);
    if (next < 0) return;
    event.preventDefault();
    select(next);
    selected.rect.scrollIntoView({ block: "nearest", inline: "nearest" });
  });
  return picture;
}

// The bar that an arrow key leads to: the next of the device, or on another device the one nearest in time.
function neighbour(bars, from, key) {
  const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[key];
  if (!step) return -1;
  if (!from) return bars.length ? 0 : -1;
  const at = bars.indexOf(from);
  if (step[0] !== 0) return bars[at + step[0]]?.row === from.row ? at + step[0] : at;
  let best = -1;
  for (let row = from.row + step[1]; best < 0 && bars.some((b) => (b.row - row) * step[1] >= 0); row += step[1]) {
    bars.forEach((bar, i) => {
      if (bar.row === row && (best < 0 || Math.abs(bar.ts - from.ts) < Math.abs(bars[best].ts - from.ts))) best = i;
    });
  }
  return best < 0 ? at : best;
}

// The names stay where they are while the picture beside them is scrolled.
function deviceNames(rows) {
  const height = TOP + ROW * rows.length + BOTTOM;
  const names = svg("svg", { class: "names", viewBox: `0 0 ${LABELS} ${height}`, "aria-hidden": "true" },
    rows.map((d, i) => svg("text", { x: 0, y: TOP + ROW * i + 16 }, d.id.length > 16 ? `${d.id.slice(0, 15)}…` : d.id,
      svg("title", {}, d.id))));
  names.style.width = `${LABELS}px`;
  return names;
}

function legend() {
  return node("ul", { class: "legend" }, CATEGORIES.map(([category, text]) => {
    const square = svg("rect", { class: category, width: 10, height: 10 });
    return node("li", {}, svg("svg", { class: "swatch", viewBox: "0 0 10 10", "aria-hidden": "true" }, square), text);
  }));
}

// The picture with its legend and a sentence about what is left out. `onBar` gets the text of a selected bar.
export function timeline(simulated, onBar) {
  const all = read(JSON.parse(simulated.trace));
  const rows = chooseDevices(all, simulated.devices);
  const total = all.reduce((sum, d) => sum + d.bars.length, 0);
  // When there are too many, the longest are drawn: the others are hardly visible.
  const bars = rows.flatMap((device, row) => device.bars.map((bar) => ({ ...bar, device, row })))
    .sort((a, b) => b.dur - a.dur || a.ts - b.ts).slice(0, MAX_BARS).sort((a, b) => a.row - b.row || a.ts - b.ts);
  if (bars.length === 0) return [node("p", {}, "No instruction of this plan takes time.")];
  const label = `Timeline of ${rows.length} devices, ${number(simulated.secondsPerStep * 1000)} ms a step`;

  const picture = node("div", { class: "scroll" }, draw(rows.length, bars, label, onBar));
  const box = node("div", { class: "timeline" }, deviceNames(rows), picture);
  const left = [];
  if (rows.length < all.length) left.push(`${rows.length} of ${number(all.length)} devices, some of each pool`);
  if (bars.length < total) left.push(`${number(bars.length, 9)} of ${number(total, 9)} instructions, the longest of these devices`);
  const notes = left.length ? [`The picture has ${left.join(", and ")}; the trace has ${number(total, 9)} instructions.`] : [];
  if (simulated.timelineCut) {
    notes.push("There are more than the service returns, so the last ones of the three steps are missing.");
  }
  return [legend(), box, ...(notes.length ? [node("p", { class: "note" }, notes.join(" "))] : [])];
}

// `plan`: as the cost model predicts it; unset where the planner has used the simulator itself.
export function predictions(plan, simulated) {
  const row = (name, throughput, seconds) => [name, number(seconds * 1000), number(throughput)];
  const rows = [row("simulation", simulated.throughput, simulated.secondsPerStep)];
  if (plan) rows.push(row("cost model of the planner", plan.throughput, simulated.samples / plan.throughput));
  return table("Predictions", [["By"], ["Step (ms)", true], ["Samples/s", true]], rows);
}

// Devices that are alike have one row.
export function memory(devices) {
  const rows = new Map();
  for (const d of devices) {
    const cells = [d.pool, `${(d.computes * 100).toFixed()} %`, bytes(d.memoryBytes),
      d.memoryLimitBytes > 0 ? bytes(d.memoryLimitBytes) : "none", d.largest];
    const key = JSON.stringify([isServer(d), cells]);
    if (!rows.has(key)) rows.set(key, { ids: [], cells });
    rows.get(key).ids.push(d.id);
  }
  const columns = [["Devices"], ["Pool"], ["Computes", true], ["Peak memory", true], ["Limit", true], ["Most of it"]];
  const list = table("Memory", columns, [...rows.values()].slice(0, MAX_MEMORY_ROWS).map((r) => [
    r.ids.length <= MAX_IDS ? r.ids.join(", ") : `${r.ids.slice(0, MAX_IDS - 1).join(", ")} and ${r.ids.length - MAX_IDS + 1} more`,
    ...r.cells]));
  if (rows.size <= MAX_MEMORY_ROWS) return [list];
  return [list, node("p", { class: "note" }, `${number(rows.size - MAX_MEMORY_ROWS)} more rows are left out.`)];
}
