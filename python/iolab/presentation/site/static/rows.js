// Columns that several tables have.

import * as address from "./address.js";
import { h } from "./dom.js";
import * as format from "./format.js";
import { badge, severity } from "./verdict.js";

/** The columns of a table of runs; `beside`: more, beside the verdicts. */
export function runColumns({ benchmark = true, beside = [] } = {}) {
  return [
    { name: "run", value: (run) => run.name, cell: (run) => h("a", { href: address.to(`r/${run.id}`), title: run.note || null }, short(run.name, 44)) },
    { name: "against the baseline", value: worst, words: counts, cell: verdicts, wrap: true, hint: "how many settings differ from the baseline, and how; sorted by what is slower or worse" },
    ...beside,
    { name: "date", value: (run) => run.date, hint: "when its first trial began, UTC" },
    ...(benchmark ? [{ name: "title", value: (run) => run.title, cell: (run) => (run.benchmark ? h("a", { href: address.to(`b/${run.benchmark}-${run.hardware}`) }, short(run.title || "untitled", 60)) : run.title) }] : []),
    { name: "machine", value: (run) => run.machine },
    { name: "kernel", value: (run) => run.kernel },
    { name: "settings", value: (run) => run.settings.join(", "), cell: (run) => short(run.settings.join(", "), 40) },
    { name: "tags", value: (run) => run.tags.join(" "), cell: (run) => [run.tags.map((tag) => h("span", { class: "tag" }, tag)), run.note ? h("span", { class: "hint" }, ` ${short(run.note, 40)}`) : null] },
  ];
}

/** A run as tables take it. */
export function asRow(run) {
  return { ...run, date: format.date(run.started_unix_ns) };
}

/** The verdicts of a run in words, or what it is instead of done. In no colour of alarm: a setting that is slower than
 * the baseline in every run is a trade-off. */
export function verdicts(run) {
  const found = counts(run);
  const state = run.state === "done" ? null : h("span", { class: `badge ${run.state}` }, run.state);
  const failed = run.trials_not_ok ? h("span", { class: "problem" }, ` ${run.trials_not_ok} of ${run.trials} trials not ok`) : null;
  return [state, found.length || state ? found : h("span", { class: "hint" }, "nothing to compare"), failed];
}

function counts(run) {
  return Object.entries(run.verdicts).sort(([a], [b]) => severity(a) - severity(b)).map(([verdict, count]) => `${count} ${verdict}`).join(", ");
}

function worst(run) {
  const found = Object.keys(run.verdicts).map(severity);
  return found.length ? Math.min(...found) : null;
}

/** At most so many characters. */
export function short(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

/** The table's columns of changes in histories. The first says what changed, down to the setting: on a phone the others
 * may be out of sight. `benchmark`: the column of what it was measured by, if rows differ in it. */
export function changeColumns(metrics, benchmark = null) {
  const metric = (row) => metrics[row.metric]?.label || row.metric;
  const link = (row) => h("a", { href: address.to(`b/${row.benchmark}-${row.hardware}/${metrics[row.metric]?.id}`), title: metrics[row.metric]?.help }, metric(row));
  const where = (row) => `${row.workload}, ${row.setting}`;
  const what = benchmark
    ? { ...benchmark, words: (row) => `${benchmark.value(row)}: ${metric(row)}, ${where(row)}`, cell: (row) => [benchmark.cell(row), h("div", { class: "hint" }, link(row), `, ${where(row)}`)] }
    : { name: "metric", value: metric, words: (row) => `${metric(row)}, ${where(row)}`, cell: (row) => [link(row), h("div", { class: "hint" }, where(row))], hint: "with workload and setting" };
  const scaleOf = (row) => format.scale(metrics[row.metric]?.unit || "", [row.before, row.after]);
  return [
    what,
    { name: "verdict", value: (row) => severity(row.verdict), words: (row) => row.verdict, cell: (row) => [badge(row.verdict), row.stands ? null : h("span", { class: "hint" }, " undone since")] },
    { name: "change", numeric: true, value: (row) => (row.before ? row.after / row.before - 1 : null), cell: shareOf, wrap: true },
    { name: "changed there too", value: (row) => row.differs.map((one) => `${one.what}: ${one.before} -> ${one.after}`).join("; "), cell: (row) => row.differs.slice(0, 3).map((one) => h("div", { class: "hint" }, `${one.what}: ${short(one.before, 30)} → ${short(one.after, 30)}`)), hint: "what else differs between the runs on both sides" },
    { name: "since", value: (row) => format.date(row.since_unix_ns), cell: (row) => h("a", { href: address.to(`r/${row.since}`) }, format.date(row.since_unix_ns) || "the run") },
    { name: "before", numeric: true, value: (row) => row.before, cell: (row) => h("a", { href: address.to(`r/${row.earliest}`), title: "the earliest run that may be the first at the new level" }, scaleOf(row).text(row.before)) },
    { name: "after", numeric: true, value: (row) => row.after, cell: (row) => h("a", { href: address.toNumber(row.since, row.workload, row.setting, row.metric) }, scaleOf(row).text(row.after)) },
  ];
}

/** `-36.0 % [-36.3 %, -35.8 %]` of a change in a history. */
export function shareOf(row) {
  if (row.before <= 0 || row.before + row.low <= 0) return "";
  return format.changeWithInterval(1 + row.low / row.before, row.after / row.before, 1 + row.high / row.before);
}
