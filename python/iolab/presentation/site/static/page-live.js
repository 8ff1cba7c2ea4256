// Runs in progress, with their trials as they end.

import * as address from "./address.js";
import { getAgain } from "./api.js";
import { facts, h, section } from "./dom.js";
import * as format from "./format.js";
import { table } from "./table.js";

export async function livePage(_, meta) {
  if (!meta.live) throw new Error("runs in progress are shown by `iolab serve`; these pages are files");
  const { running, metrics } = await getAgain("live.json");
  return {
    title: "In progress",
    content: running.length ? running.map((found, place) => one(found, place, metrics)) : h("p", {}, "No run on this machine is in progress."),
  };
}

function one({ run, trials_done: done, trials_expected: expected, metric, trials }, place, metrics) {
  const info = metrics[metric];
  const scale = format.scale(info?.unit || "", trials.map((row) => row.value));
  const bar = expected ? h("progress", { max: expected, value: Math.min(done, expected), "aria-label": `${done} of ${expected} trials` }) : null;
  return section(run.title || run.name,
    facts([["run", h("a", { href: address.to(`r/${run.id}`) }, run.name)], ["machine", run.machine], ["trials", expected ? `${done} of ${expected}` : String(done)], ["done", bar]]),
    table({ id: `w${place}`, caption: "Trials", rows: [...trials].reverse(), empty: "No trial has ended.", columns: [
      { name: "trial", numeric: true, value: (row) => row.trial },
      { name: "round", numeric: true, value: (row) => (row.status === "running" ? null : row.round + 1) },
      { name: "workload", value: (row) => row.workload },
      { name: "setting", value: (row) => row.setting },
      { name: "status", value: (row) => row.status, cell: (row) => (row.status === "ok" ? "ok" : h("span", { class: row.status === "running" ? "badge running" : "problem" }, row.status)) },
      { name: "seconds", numeric: true, value: (row) => (row.duration_ns === null ? null : row.duration_ns / 1e9), cell: (row) => (row.duration_ns === null ? "" : (row.duration_ns / 1e9).toFixed(1)) },
      { name: info ? `${info.label}${scale.suffix ? `, ${scale.suffix}` : ""}` : "value", numeric: true, value: (row) => row.value, cell: (row) => (row.value === null ? "" : scale.number(row.value)) },
    ] }));
}
