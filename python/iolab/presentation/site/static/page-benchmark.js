// A benchmark on one hardware: its metrics as small lines, its changes, its runs. And kernels x settings.

import * as address from "./address.js";
import { get } from "./api.js";
import { facts, h, section } from "./dom.js";
import { spark } from "./draw.js";
import * as format from "./format.js";
import { asRow, changeColumns, runColumns } from "./rows.js";
import { table } from "./table.js";
import { badgeOf, chosenMargin, direction, verdictAt } from "./verdict.js";

/** What stands at the top of each page of a benchmark. */
export function benchmarkHead(page, extra = []) {
  const here = `b/${page.id}-${page.hardware}`;
  return h("div", {}, facts([["machine", page.hardware_in_words], ["runs", (page.runs_total ?? "").toLocaleString?.("en-US")], ...extra]),
    h("p", { class: "links" }, h("a", { href: address.to(here) }, "Benchmark"), " ", h("a", { href: address.to(`${here}/matrix`) }, "Kernels × settings")));
}

/** What changed in the history, regressions apart from the rest. `page`: with `changes`, null while they are looked for. */
export function changesOverTime(page, none) {
  const rows = (page.changes || []).map((row) => ({ ...row, benchmark: page.id, hardware: page.hardware }));
  rows.sort((a, b) => (b.since_unix_ns || 0) - (a.since_unix_ns || 0));
  const others = rows.filter((row) => !row.regressed);
  const columns = changeColumns(page.metrics);
  return [
    section("Regressions over time", page.changes === null ? h("p", { class: "hint" }, "iolab is reading the history.") : table({ id: "a", caption: "Regressions over time", columns, rows: rows.filter((row) => row.regressed), empty: none })),
    others.length ? section("Other changes over time", table({ id: "o", caption: "Other changes over time", columns, rows: others })) : null,
  ];
}

export async function benchmarkPage([name]) {
  const page = await get(`benchmarks/${name}.json`);
  const others = Object.entries(page.metrics).filter(([key]) => !page.compared.includes(key));
  return {
    title: page.title,
    content: [
      benchmarkHead(page),
      changesOverTime(page, "None is known. A change needs ten runs to show."),
      section("Metrics", h("p", { class: "hint" }, "Typical values over the last 60 runs. A name opens the metric with its intervals and rounds, a number opens its rounds."),
        table({ id: "s", caption: "Metrics", columns: seriesColumns(page), rows: page.series, filter: true }),
        page.series_left_out ? h("p", { class: "hint" }, `${page.series_left_out} more are left out.`) : null),
      others.length ? section("Other metrics", h("p", { class: "metrics" }, others.map(([, one]) => [h("a", { href: address.to(`b/${page.id}-${page.hardware}/${one.id}`), title: one.help }, one.label), " "]))) : null,
      page.elsewhere.length ? section("On other hardware", h("p", { class: "hint" }, "Runs on other hardware are never in one line with these; iolab compares them only when you ask for it."), h("ul", {}, page.elsewhere.map((one) => h("li", {}, h("a", { href: address.to(`b/${page.id}-${one.hardware}`) }, one.hardware_in_words), ` (${one.runs} runs)`)))) : null,
      section("Runs", table({ id: "r", caption: "Runs", columns: runColumns({ benchmark: false }), rows: page.runs.map(asRow), filter: true })),
    ],
  };
}

function seriesColumns(page) {
  const info = (row) => page.metrics[row.metric];
  return [
    { name: "metric", value: (row) => info(row).label, cell: (row) => h("a", { href: address.to(`b/${page.id}-${page.hardware}/${info(row).id}`), title: info(row).help }, info(row).label) },
    { name: "workload", value: (row) => row.workload },
    { name: "setting", value: (row) => row.setting },
    { name: "over the runs", value: (row) => row.last, cell: (row) => spark(row.typical, [], `${info(row).label}, ${row.typical.length} runs`) },
    { name: "newest", numeric: true, value: (row) => row.last, cell: (row) => (row.last === null ? "-" : h("a", { href: address.toNumber(row.last_run, row.workload, row.setting, row.metric) }, newest(row, info(row)))) },
    { name: "rounds", numeric: true, value: (row) => row.last_n },
  ];
}

function newest(row, info) {
  const scale = format.scale(info.unit, [row.last]);
  return `${scale.spread(row.last, row.last_spread)} ${scale.suffix}`.trim();
}

export async function matrixPage([name]) {
  const page = await get(`benchmarks/${name}/matrix.json`);
  const against = address.get("v") === "k" ? "by_kernel" : "by_setting";
  const choose = h("select", { "aria-label": "Compared with", onchange: () => (address.put({ v: choose.value }), dispatchEvent(new HashChangeEvent("hashchange"))) },
    h("option", { value: "" }, "the baseline on the same kernel"), h("option", { value: "k", selected: against === "by_kernel" }, "the same setting on the first kernel"));
  return {
    title: `${page.title}: kernels × settings`,
    content: [
      benchmarkHead(page),
      h("p", {}, h("label", {}, "Compared with ", choose)),
      h("p", { class: "hint" }, against === "by_kernel" ? "Runs on two kernels are not interleaved: drift is in these differences." : "The newest of several runs on a kernel; settings are compared within its rounds.", " The stronger the colour, the larger the change."),
      page.matrices.map((matrix) => heat(matrix, page, against)),
      page.matrices.length ? null : h("p", {}, "No run has a kernel on record."),
    ],
  };
}

function heat(matrix, page, against) {
  const info = page.metrics[matrix.metric];
  const scale = format.scale(info.unit, matrix.rows.flatMap((row) => row.cells.map((cell) => cell.typical)));
  const cellOf = (row, setting) => row.cells.find((cell) => cell.setting === setting);
  const columns = [
    { name: "kernel", value: (row) => row.kernel },
    ...matrix.settings.map((setting) => ({
      name: setting, numeric: true,
      value: (row) => cellOf(row, setting)?.typical ?? null,
      cell: (row) => heatCell(cellOf(row, setting), matrix, setting, info, scale, against),
    })),
  ];
  const id = `m${page.matrices.indexOf(matrix)}`;
  return section(`${matrix.workload}: ${info.label}${scale.suffix ? `, ${scale.suffix}` : ""}`, table({ id, caption: `${matrix.workload}: ${info.label}`, columns, rows: matrix.rows }));
}

function heatCell(cell, matrix, setting, info, scale, against) {
  if (!cell || cell.typical === null) return "-";
  const judged = cell[against];
  const link = h("a", { href: address.toNumber(cell.run, matrix.workload, setting, matrix.metric) }, scale.spread(cell.typical, cell.spread));
  if (!judged) return h("div", { class: "heat" }, link, h("div", { class: "hint" }, against === "by_setting" ? "baseline" : "first kernel"));
  const shade = ["same", "undecided"].includes(verdictAt(judged, chosenMargin())) ? 0 : Math.min(45, 10 + 60 * Math.abs(Math.log(judged.ratio || 1)));
  const tone = { "-1": "--slower", 0: "--changed", 1: "--faster" }[direction(info.nature, judged.ratio)];
  return h("div", { class: "heat", style: { background: shade ? `color-mix(in srgb, var(${tone}) ${shade.toFixed(0)}%, transparent)` : "none" } },
    link, h("div", {}, badgeOf(judged)), h("div", { class: "small" }, format.changeWithInterval(judged.ci_low, judged.ratio, judged.ci_high)));
}
