// Runs in progress: the verdicts up to now, how long it takes yet, the trials as a plot and as a table.

import * as address from "./address.js";
import { getAgain } from "./api.js";
import { facts, h, section } from "./dom.js";
import * as format from "./format.js";
import { conclusions, judgedTable } from "./page-run.js";
import { plot } from "./plot.js";
import { table } from "./table.js";

const LINES_MAX = 10;

export async function livePage(_, meta) {
  if (!meta.live) throw new Error("runs in progress are shown by `iolab serve`; these pages are files");
  const { running, metrics } = await getAgain("live.json");
  return {
    title: "In progress",
    content: running.length ? running.map((found, place) => one(found, place, metrics)) : h("p", {}, "No run on this machine is in progress."),
  };
}

function one(found, place, metrics) {
  const { run, trials_done: done, trials_expected: expected, left_s: left, judged } = found;
  const bar = expected ? h("progress", { max: expected, value: Math.min(done, expected), "aria-label": `${done} of ${expected} trials` }) : null;
  return section(run.title || run.name,
    facts([["run", h("a", { href: address.to(`r/${run.id}`) }, run.name)], ["machine", run.machine], ["trials", expected ? `${done} of ${expected}` : String(done)], ["done", bar], ["time left", left === null ? "unknown" : `about ${format.span(left)}`]]),
    conclusions(found.sentences),
    h("h3", {}, "Verdicts up to now"),
    judged.length ? judgedTable(judged, metrics, found.same_within, { ours: run.id, theirs: run.id }, `v${place}`) : h("p", { class: "hint" }, "None yet: a verdict needs a round of the baseline and of another setting."),
    trialsOf(found, place, metrics));
}

function trialsOf({ metric, trials }, place, metrics) {
  const info = metrics[metric];
  const scale = format.scale(info?.unit || "", trials.map((row) => row.value));
  const title = info ? `${info.label}${scale.suffix ? `, ${scale.suffix}` : ""}` : "value";
  return [
    info ? h("h3", {}, `${title}, by round`) : null,
    info ? byRound(trials, place, info, scale) : null,
    h("h3", {}, "Trials"),
    table({ id: `w${place}`, caption: "Trials", rows: [...trials].reverse(), empty: "No trial has ended.", columns: [
      { name: "trial", numeric: true, value: (row) => row.trial },
      { name: "round", numeric: true, value: (row) => (row.status === "running" ? null : row.round + 1) },
      { name: "workload", value: (row) => row.workload },
      { name: "setting", value: (row) => row.setting },
      { name: "status", value: (row) => row.status, cell: (row) => (row.status === "ok" ? "ok" : h("span", { class: row.status === "running" ? "badge running" : "problem" }, row.status)) },
      { name: "seconds", numeric: true, value: (row) => (row.duration_ns === null ? null : row.duration_ns / 1e9), cell: (row) => (row.duration_ns === null ? "" : (row.duration_ns / 1e9).toFixed(1)) },
      { name: title, numeric: true, value: (row) => row.value, cell: (row) => (row.value === null ? "" : scale.number(row.value)) },
    ] }),
  ];
}

/** A line for each workload under each setting. */
function byRound(trials, place, info, scale) {
  const ended = trials.filter((row) => row.value !== null);
  const x = [...new Set(ended.map((row) => row.round + 1))].sort((a, b) => a - b);
  const several = new Set(ended.map((row) => row.workload)).size > 1;
  /** @type {Map<string, any[]>} */
  const rows = new Map();
  for (const row of ended) {
    const name = several ? `${row.workload}, ${row.setting}` : row.setting;
    rows.set(name, [...(rows.get(name) || []), row]);
  }
  const lines = [...rows].slice(0, LINES_MAX).map(([name, found]) => ({ name, y: x.map((round) => found.find((row) => row.round + 1 === round)?.value ?? null) }));
  if (!lines.length) return h("p", { class: "hint" }, "No trial has a value yet.");
  return [
    plot({ id: `p${place}`, label: `${info.label} by round`, x, lines, xText: String, scale, xLabel: "round", yLabel: info.label }),
    rows.size > LINES_MAX ? h("p", { class: "hint" }, `${rows.size - LINES_MAX} more lines are left out.`) : null,
  ];
}
