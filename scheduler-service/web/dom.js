// Elements, numbers and colours.

const SVG = "http://www.w3.org/2000/svg";
// Colours that people with red-green colour blindness can distinguish (Okabe and Ito), dark enough for white text.
const COLOURS = ["#0072b2", "#b45f06", "#00785a", "#a3477f", "#5b5ea6", "#8a6d00", "#2f6f8f", "#7a3b1d"];

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === false || value === undefined || value === null) continue;
    element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat()) if (child !== null && child !== undefined) element.append(child);
  return element;
}

export function node(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

export function svg(name, attributes, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

export const byId = (id) => document.getElementById(id);

const colours = new Map();

export function colourOf(name) {
  if (!colours.has(name)) colours.set(name, COLOURS[colours.size % COLOURS.length]);
  return colours.get(name);
}

export function number(value, digits = 4) {
  if (value === undefined || value === null || !Number.isFinite(Number(value))) return "";
  return Number(value).toLocaleString("en-US", { maximumSignificantDigits: digits });
}

export const usd = (value) => (value ? `$${number(value)}` : "$0");

export function duration(seconds) {
  if (!(seconds > 0)) return "0 s";
  if (seconds < 120) return `${number(seconds, 3)} s`;
  if (seconds < 7200) return `${number(seconds / 60, 3)} min`;
  if (seconds < 172800) return `${number(seconds / 3600, 3)} h`;
  return `${number(seconds / 86400, 3)} d`;
}

// `columns`: [title, is a number]; `rows`: lists of cells.
export function table(caption, columns, rows) {
  const cls = (column) => (column[1] ? "number" : false);
  return node("table", {}, node("caption", {}, caption),
    node("thead", {}, node("tr", {}, columns.map((c) => node("th", { scope: "col", class: cls(c) }, c[0])))),
    node("tbody", {}, rows.map((row) => node("tr", {}, row.map((cell, i) => node("td", { class: cls(columns[i]) }, cell))))));
}
