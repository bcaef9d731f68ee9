// Renders the jobs, with what each of them waits for, and the pools.

import { duration, node, number, table, usd } from "./dom.js";

const wide = (content) => node("div", { class: "wide" }, content);

export const badge = (status) => node("span", { class: `badge ${status}` }, status || "Pending");

export const address = (namespace, name) => `#${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;

function progress(job) {
  if (job.progressPercent === undefined) return "";
  return node("span", {}, node("progress", { max: 100, value: job.progressPercent, "aria-label": "progress" }),
    ` ${job.progressPercent} %`);
}

export function jobs(list) {
  if (!list.length) return node("p", {}, "There are no jobs here. Start one with kubectl apply or medley run.");
  return wide(table("", [["Job"], ["Status"], ["Progress"], ["Samples/s", true], ["Left", true], ["USD/h", true], ["Spent", true],
    ["Plan"]], list.map((job) => [
    node("a", { href: address(job.namespace, job.name) }, `${job.namespace}/${job.name}`),
    badge(job.status), progress(job), job.throughput ? number(job.throughput) : "",
    job.remainingSeconds === undefined ? "" : duration(job.remainingSeconds),
    job.usdPerHour ? usd(job.usdPerHour) : "", usd(job.spentUsd),
    node("span", {}, job.problem ? node("span", { class: "problem" }, job.problem) : job.plan)])));
}

export function pools(list) {
  if (!list.length) return node("p", {}, "No pools, or this user is not allowed to see them (ClusterRole medley-pool-viewer).");
  return wide(table("", [["Pool"], ["Class"], ["USD/unit-h", true], ["Source"], ["Used", true], ["Free", true], ["Limit", true], [""]],
    list.map((pool) => [pool.name, pool.class, pool.usdPerUnitHour ? usd(pool.usdPerUnitHour) : "", pool.priceSource || "",
      number(pool.used), number(pool.free), pool.limit ? number(pool.limit) : "",
      node("span", { class: "problem" }, pool.problem || "")])));
}

export function total(sum) {
  const saved = sum.savedUsd > 0 ? `, ${usd(sum.savedUsd)} less than with the first plans` : "";
  return `${sum.jobs} jobs, ${sum.training} training, ${usd(sum.usdPerHour)}/h; ${usd(sum.spentUsd)} spent${saved}`;
}
