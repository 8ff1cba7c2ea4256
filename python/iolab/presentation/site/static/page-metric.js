// One metric of a benchmark over its runs: typical values, spreads, the rounds themselves, and where the level changed.

import * as address from "./address.js";
import { get } from "./api.js";
import { h, section } from "./dom.js";
import * as format from "./format.js";
import { benchmarkHead, changesOverTime } from "./page-benchmark.js";
import { plot } from "./plot.js";
import { table } from "./table.js";

const WORKLOADS_SHOWN = 12;

export async function metricPage([name, metric]) {
  const page = await get(`benchmarks/${name}/${metric}.json`);
  const info = page.metrics[page.metric];
  const shown = page.workloads.slice(0, WORKLOADS_SHOWN);
  const left = page.lines_left_out + page.workloads.slice(WORKLOADS_SHOWN).length;
  return {
    title: `${info.label}: ${page.title}`,
    content: [
      benchmarkHead(page, [["metric", info.help]]),
      page.runs.length < page.runs_total ? h("p", { class: "hint" }, `The newest ${page.runs.length} of ${page.runs_total} runs.`) : null,
      changesOverTime(page, "None is known."),
      h("p", { class: "hint" }, "Lines join typical values; an upright is half the distance between the quartiles to each side; small marks are rounds. Drag to zoom, double-click to see all. A click on a point leads to where the number comes from."),
      shown.map((one, place) => lines(page, info, one, place)),
      left ? h("p", { class: "hint" }, `${left} more are left out.`) : null,
    ],
  };
}

function lines(page, info, { workload, lines: settings }, place) {
  const scale = format.scale(info.unit, settings.flatMap((one) => one.typical));
  const at = Object.fromEntries(page.runs.map((run, number) => [run.id, number]));
  const marks = (page.changes || []).filter((one) => one.workload === workload && at[one.since] !== undefined)
    .map((one) => ({ at: at[one.since], bad: one.regressed, text: `${one.verdict} under ${one.setting}` }));
  const text = (number) => (page.runs[number] ? `${format.day(page.runs[number].started_unix_ns)} ${page.runs[number].kernel}` : "");
  return section(`${workload}${scale.suffix ? `, ${scale.suffix}` : ""}`,
    plot({
      id: `p${place}`, label: `${info.label} of ${workload} over ${page.runs.length} runs`, x: page.runs.map((_, number) => number),
      lines: settings.map((one) => ({ name: one.setting, y: one.typical, spread: one.spread, rounds: one.rounds })),
      xText: (number) => (page.runs[number] ? format.day(page.runs[number].started_unix_ns) : ""), scale, yLabel: info.label, marks,
      onPoint: (line, number) => (location.hash = address.toNumber(page.runs[number].id, workload, settings[line].setting, page.metric)),
    }),
    h("details", {}, h("summary", {}, "As a table"), table({ id: `t${place}`, caption: `${info.label} of ${workload}`, rows: page.runs.map((run, number) => ({ run, number })).reverse(), columns: [
      { name: "run", value: ({ run }) => run.name, cell: ({ run }) => h("a", { href: address.to(`r/${run.id}`) }, text(at[run.id]) || run.name) },
      { name: "date", value: ({ run }) => format.date(run.started_unix_ns) },
      ...settings.map((one) => ({ name: one.setting, numeric: true, value: ({ number }) => one.typical[number], cell: ({ run, number }) => (one.typical[number] === null ? "-" : h("a", { href: address.toNumber(run.id, workload, one.setting, page.metric) }, scale.spread(one.typical[number], one.spread[number]))) })),
    ] })));
}
