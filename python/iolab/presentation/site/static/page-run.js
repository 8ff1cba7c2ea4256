// A run: verdicts with what needs attention first, sweeps, all numbers. And one number: its rounds, its records.

import * as address from "./address.js";
import { get } from "./api.js";
import { facts, h, section, warnings } from "./dom.js";
import { interval, reachOf, strip } from "./draw.js";
import * as format from "./format.js";
import { changeColumns, short, verdicts } from "./rows.js";
import { sweepSections } from "./sweep.js";
import { table } from "./table.js";
import { badgeOf, chosenMargin, severity, verdictAt } from "./verdict.js";

const FACTS_FIRST = ["kernel", "machine", "CPU", "CPUs", "memory", "filesystem", "device", "device model", "scheduler", "iolab"];

export async function runPage([id], meta) {
  const page = await get(`run/${id}.json`);
  const { run } = page;
  return {
    title: run.title || run.name,
    content: [
      facts([["run", run.name], ["date", format.date(run.started_unix_ns)], ["machine", page.hardware_in_words], ["kernel", run.kernel], ["rounds", page.rounds], ["trials", run.trials], ["against the baseline", verdicts(run)], ["tags", run.tags.join(", ")], ["note", run.note]]),
      conclusions(page.sentences),
      links(page, meta),
      warnings([...page.problems, ...page.doubts]),
      page.changes.length ? section("Changed over time with this run", table({ id: "o", caption: "Changed over time with this run", columns: changeColumns(page.metrics), rows: page.changes.map((row) => ({ ...row, benchmark: run.benchmark, hardware: run.hardware })) })) : null,
      section("Verdicts", page.judged.length ? [h("p", { class: "hint" }, `Between the settings of this run, against ${page.baseline}, and not over time; the mark is the ratio, the line its 95 % interval, the band the margin of same (${margin(page)}). A number opens its rounds and records.`), judgedTable(page.judged, page.metrics, page.same_within, { ours: run.id, theirs: run.id })] : h("p", {}, "There is nothing to compare.")),
      sweepSections(page),
      section("All numbers", table({ id: "n", caption: "All numbers", columns: measuredColumns(page), rows: page.measured, filter: true }),
        page.measured_left_out ? h("p", { class: "hint" }, `${page.measured_left_out} more are left out: iolab show has all.`) : null),
      section("The machine and the options", table({ id: "f", caption: "Facts", columns: [{ name: "what", value: ([name]) => name }, { name: "is", value: ([, value]) => value }], rows: Object.entries(page.facts).sort(([a], [b]) => rank(a) - rank(b)), filter: true, empty: "nothing is on record" })),
    ],
  };
}

/** @param {string[]} sentences what verdicts come to */
export function conclusions(sentences) {
  return sentences.map((text) => h("p", { class: /^(Undecided|Why undecided)/.test(text) ? "hint" : "lead" }, text));
}

function rank(name) {
  const place = FACTS_FIRST.indexOf(name);
  return place < 0 ? FACTS_FIRST.length : place;
}

function margin(page) {
  return `${((chosenMargin() ?? page.same_within) * 100).toPrecision(3).replace(/\.?0+$/, "")} %`;
}

function links(page, meta) {
  const { run } = page;
  const beside = (one, name, pair) => one && [h("a", { href: address.to(`r/${one.id}`) }, name), " ", meta.live ? h("a", { href: address.to(`c/${pair}`) }, `Compare with the ${name.toLowerCase()}`) : null, " "];
  return h("p", { class: "links" },
    h("a", { href: `api/run/${run.id}/experiment.toml`, target: "_blank", rel: "noopener" }, "Exact experiment"), " ",
    h("a", { href: `api/run/${run.id}/machine.json`, target: "_blank", rel: "noopener" }, "Machine"), " ",
    h("a", { href: address.to(`b/${run.benchmark}-${run.hardware}`) }, "Benchmark"), " ",
    beside(page.previous, "Earlier run", `${page.previous?.id}/${run.id}`), beside(page.next, "Later run", `${run.id}/${page.next?.id}`));
}

/**
 * Comparisons, what needs attention first.
 * @param {any[]} judged
 * @param {{ours: string, theirs: string}} runs ids of the runs of the baseline and of the candidate
 * @param {string} [id] in the address
 */
export function judgedTable(judged, metrics, sameWithin, runs, id = "v") {
  const reach = reachOf(judged);
  const at = (one) => verdictAt(one, chosenMargin());
  const rows = [...judged].sort((a, b) => severity(at(a)) - severity(at(b)));
  const scaleOf = (one) => format.scale(metrics[one.metric].unit, [one.baseline, one.candidate]);
  const number = (one, value, run, setting) => (value === null ? "-" : one.job ? scaleOf(one).text(value) : h("a", { href: address.toNumber(run, one.workload, setting, one.metric) }, scaleOf(one).text(value)));
  return table({ id, caption: "Verdicts", rows, filter: true, columns: [
    { name: "verdict", value: (one) => at(one), cell: badgeOf },
    { name: "metric", value: (one) => metrics[one.metric].label, cell: (one) => h("span", { title: `${one.metric}: ${metrics[one.metric].help}` }, metrics[one.metric].label) },
    { name: "change", numeric: true, wrap: true, value: (one) => (one.ratio === null ? null : one.ratio - 1), cell: (one) => h("span", { title: one.notes.join("; ") || null }, format.changeWithInterval(one.ci_low, one.ratio, one.ci_high) || one.notes[0] || "") },
    { name: "how large, how sure", value: (one) => one.ratio, cell: (one) => interval(one, chosenMargin() ?? sameWithin, reach, at(one)), hint: "sorted by the ratio" },
    { name: "workload", value: (one) => (one.job ? `${one.workload}, job ${one.job}` : one.workload) },
    { name: "setting", value: (one) => one.setting, cell: (one) => h("span", { title: `against ${one.against}` }, short(one.setting, 50)) },
    { name: "baseline", numeric: true, value: (one) => one.baseline, cell: (one) => number(one, one.baseline, runs.ours, one.against) },
    { name: "candidate", numeric: true, value: (one) => one.candidate, cell: (one) => number(one, one.candidate, runs.theirs, one.setting) },
    { name: "q", numeric: true, value: (one) => one.q_value, cell: (one) => (one.q_value === null ? "" : one.q_value < 0.001 ? "<0.001" : one.q_value.toFixed(3)), hint: "p adjusted for the number of comparisons" },
    { name: "rounds", numeric: true, value: (one) => one.n },
  ] });
}

function measuredColumns(page) {
  const scaleOf = (one) => format.scale(page.metrics[one.metric].unit, [one.typical]);
  return [
    { name: "metric", value: (one) => page.metrics[one.metric].label, cell: (one) => h("a", { href: address.to(`b/${page.run.benchmark}-${page.run.hardware}/${page.metrics[one.metric].id}`), title: page.metrics[one.metric].help }, page.metrics[one.metric].label) },
    { name: "workload", value: (one) => one.workload },
    { name: "setting", value: (one) => one.setting },
    { name: "typical", numeric: true, value: (one) => one.typical, cell: (one) => (one.typical === null ? h("span", { title: one.reason }, "-") : h("a", { href: address.toNumber(page.run.id, one.workload, one.setting, one.metric) }, scaleOf(one).text(one.typical))) },
    { name: "spread", numeric: true, value: (one) => one.spread, cell: (one) => (one.spread === null ? "" : scaleOf(one).text(one.spread)), hint: "half the distance between the quartiles" },
    { name: "rounds", numeric: true, value: (one) => one.n },
  ];
}

export async function numberPage([id, , place]) {
  const page = await get(`run/${id}.json`);
  const one = page.measured.find((it) => address.placeId(it.workload, it.setting, it.metric) === place);
  if (!one) throw new Error("the run has no such number");
  const info = page.metrics[one.metric];
  const beside = page.measured.filter((it) => it.workload === one.workload && it.metric === one.metric);
  const scale = format.scale(info.unit, beside.flatMap((it) => it.rounds));
  const trials = page.trials[one.workload]?.[one.setting] || [];
  const judged = page.judged.filter((it) => it.workload === one.workload && it.metric === one.metric);
  return {
    title: `${info.label}: ${one.workload} under ${one.setting}`,
    content: [
      facts([["typical", scale.spread(one.typical, one.spread) + (scale.suffix ? ` ${scale.suffix}` : "")], ["metric", `${one.metric}: ${info.help}`], ["rounds", one.n], ["machine", page.hardware_in_words], ["kernel", page.run.kernel], ["date", format.date(page.run.started_unix_ns)]]),
      h("p", { class: "links" }, h("a", { href: address.to(`r/${id}`) }, "Run"), " ", h("a", { href: `api/run/${id}/experiment.toml`, target: "_blank", rel: "noopener" }, "Exact experiment"), " ", h("a", { href: `api/run/${id}/machine.json`, target: "_blank", rel: "noopener" }, "Machine"), " ", h("a", { href: address.to(`b/${page.run.benchmark}-${page.run.hardware}/${info.id}`) }, "Over the runs")),
      section("The rounds", h("p", { class: "hint" }, "Each mark is a round; the upright is the typical value, the line half the distance between the quartiles to each side."), strip([...beside].sort((a, b) => (a.setting < b.setting ? -1 : 1)).map((it) => ({ ...it, name: it.setting })), scale.text),
        table({ id: "t", caption: "Rounds", rows: one.rounds.map((value, round) => ({ value, round, trial: trials[round] ?? null })), columns: [
          { name: "round", numeric: true, value: (row) => row.round + 1 },
          { name: "value", numeric: true, value: (row) => row.value, cell: (row) => (row.value === null ? "-" : scale.text(row.value)) },
          { name: "record", value: (row) => row.trial, cell: (row) => (row.trial === null ? "" : h("a", { href: `api/run/${id}/trials/${row.trial}.json`, target: "_blank", rel: "noopener" }, `trial ${row.trial}`)) },
        ] })),
      judged.length ? section("Verdicts", judgedTable(judged, page.metrics, page.same_within, { ours: id, theirs: id })) : null,
    ],
  };
}
