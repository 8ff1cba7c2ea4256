// The first page: what regressed, what is in progress, benchmarks, the newest runs. And the list of all runs.

import * as address from "./address.js";
import { get } from "./api.js";
import { h, section } from "./dom.js";
import { spark } from "./draw.js";
import * as format from "./format.js";
import { parse } from "./query.js";
import { asRow, changeColumns, runColumns, shareOf, short, verdicts } from "./rows.js";
import { table } from "./table.js";
import { chosenMargin } from "./verdict.js";

export async function overviewPage(_, meta) {
  const page = await get("overview.json");
  const changes = page.changes.map((row) => ({ ...row, ...row.change })).filter(isBeyondMargin);
  const [regressed, others] = [changes.filter((row) => row.regressed), changes.filter((row) => !row.regressed)];
  const placed = { name: "benchmark", value: (row) => row.title, cell: (row) => h("a", { href: address.to(`b/${row.benchmark}-${row.hardware}`), title: row.hardware_in_words }, short(row.title, 60)) };
  const columns = changeColumns(page.metrics, placed);
  const waiting = page.pending ? h("p", { class: "hint", role: "status" }, `iolab is reading the history of ${page.pending} more benchmarks.`) : null;
  return {
    title: meta.title,
    content: [
      conclusion(regressed, page, meta),
      !regressed.length && !page.pending ? null : section("Regressions over time", h("p", { class: "hint" }, "Benchmarks that became worse on one machine and have not recovered, the newest change first, with the 95 % interval of the change."),
        table({ id: "a", caption: "Regressions over time", columns, rows: regressed, empty: "None is known." }), waiting),
      section("Benchmarks", h("p", { class: "hint" }, "Runs with the same title and workloads on the same hardware. The line is the typical value over the last 60 runs, of the setting that moved if one did; its band is the spread of rounds, its height a fifth of the value or more."),
        table({ id: "b", caption: "Benchmarks", columns: benchmarkColumns(page.metrics, page.benchmarks), rows: page.benchmarks, filter: true, empty: "There are no runs." }),
        page.benchmarks_total > page.benchmarks.length ? h("p", { class: "hint" }, `The newest ${page.benchmarks.length} of ${page.benchmarks_total}; the list of runs has all.`) : null),
      others.length ? section("Other changes over time", table({ id: "o", caption: "Other changes over time", columns, rows: others })) : null,
      page.trade_offs.length ? section("Trade-offs between settings", h("p", { class: "hint" }, "In the newest run of these benchmarks a setting is slower or worse than the baseline. This is a difference between settings, and no change over time."), table({ id: "l", caption: "Trade-offs between settings", columns: runColumns(), rows: page.trade_offs.map(asRow) })) : null,
      section("Newest runs", table({ id: "n", caption: "Newest runs", columns: runColumns(), rows: page.newest.map(asRow), empty: "There are no runs." }),
        h("p", {}, h("a", { href: address.to("runs") }, `All ${meta.runs.toLocaleString("en-US")} runs`))),
    ],
  };
}

/** What a reader comes for, in one sentence: whether something became worse, how much, since when and with what. */
function conclusion(regressed, page, meta) {
  if (!regressed.length) return h("p", { class: "lead" }, `No regression over time is known${page.pending ? " so far" : ""} in ${meta.runs.toLocaleString("en-US")} runs.`);
  const size = (row) => Math.abs(Math.log(row.after / row.before)) || 0;
  const worst = regressed.reduce((one, other) => (size(other) > size(one) ? other : one));
  const cause = worst.differs[0];
  return h("p", { class: "lead" }, regressed.length > 1 ? `${regressed.length} regressions stand. The largest: ` : "A regression stands: ",
    h("a", { href: address.to(`b/${worst.benchmark}-${worst.hardware}`) }, short(worst.title, 60)), `, ${page.metrics[worst.metric]?.label || worst.metric} of ${worst.workload} under ${worst.setting}, ${shareOf(worst)} since `, h("span", { class: "date" }, format.date(worst.since_unix_ns) || "the run"),
    cause ? `, when ${cause.what} changed from ${short(cause.before, 30)} to ${short(cause.after, 30)}${worst.differs.length > 1 ? " and more" : ""}.` : ".");
}

/** With a margin chosen, smaller changes of level are left out. */
function isBeyondMargin(row) {
  const margin = chosenMargin();
  return margin === null || Math.abs(row.after - row.before) > margin * Math.abs(row.before);
}

function benchmarkColumns(metrics, rows) {
  // Of the same title: what tells them apart stands below it, as the other columns may be out of sight.
  const twins = new Set(rows.map((row) => row.title).filter((title, place, all) => all.indexOf(title) !== place));
  const apart = (row) => (twins.has(row.title) ? h("div", { class: "hint" }, [short(row.hardware_in_words, 48), row.spark?.workload].filter(Boolean).join("; ")) : null);
  const scaleOf = (row) => format.scale(metrics[row.spark.metric]?.unit || "", [last(row.spark.typical)]);
  return [
    { name: "benchmark", value: (row) => row.title, cell: (row) => [h("a", { href: address.to(`b/${row.id}-${row.hardware}`) }, short(row.title, 70)), apart(row)] },
    { name: "regressions", numeric: true, value: (row) => row.regressions, hint: "over time", cell: (row) => (row.regressions === null ? "..." : row.regressions ? h("b", { class: "slower" }, row.regressions) : "0") },
    { name: "over the runs", value: (row) => (row.spark ? trend(row.spark.typical) : null), cell: (row) => (row.spark ? spark(row.spark.typical, row.spark.spread, `${metrics[row.spark.metric]?.label} under ${row.spark.setting} over ${row.spark.typical.length} runs`) : ""), hint: "sorted by the last value over the first" },
    { name: "newest", numeric: true, value: (row) => (row.spark ? last(row.spark.typical) : null), cell: (row) => (row.spark && last(row.spark.typical) !== null ? h("a", { href: address.toNumber(row.newest.id, row.spark.workload, row.spark.setting, row.spark.metric) }, scaleOf(row).text(last(row.spark.typical))) : "") },
    { name: "metric", value: (row) => (row.spark ? metrics[row.spark.metric]?.label : ""), cell: (row) => (row.spark ? [metrics[row.spark.metric]?.label, h("div", { class: "hint" }, `${row.spark.workload}, ${row.spark.setting}`)] : "") },
    { name: "newest run", value: (row) => row.newest.started_unix_ns, cell: (row) => [h("a", { href: address.to(`r/${row.newest.id}`) }, format.date(row.newest.started_unix_ns) || "run"), " ", verdicts(row.newest)] },
    { name: "machine", value: (row) => row.hardware_in_words, cell: (row) => short(row.hardware_in_words, 48) },
    { name: "runs", numeric: true, value: (row) => row.runs },
  ];
}

function last(values) {
  return values[values.length - 1];
}

function trend(values) {
  const present = values.filter((one) => one !== null);
  return present.length ? present[present.length - 1] / present[0] : null;
}

export async function runsPage(_, meta) {
  const rows = (await loadedRuns(0)).slice();
  const first = await get("runs/0.json");
  let loaded = 1;
  const place = h("div");
  const draw = () => place.replaceChildren(
    table({ id: "r", caption: "Runs", columns: runColumns({ beside: [pickColumn(bar)] }), rows, filter: true, parse, empty: "There are no runs." }),
    loaded < first.chunks ? h("button", { type: "button", onclick: async () => (rows.push(...(await loadedRuns(loaded++))), draw()) }, "Load older runs") : "");
  const bar = h("p", { role: "status", class: "bar" });
  draw();
  tellPicked(bar);
  return {
    title: `Runs of ${meta.title}`,
    content: [h("p", { class: "hint" }, `Words that a run has to have, or key:text with a key of ${meta.query_keys.join(", ")}; not: in front asks for the others. As of \`iolab ls\`.`), bar, place],
  };
}

/** Two runs that are picked can be compared. */
function pickColumn(bar) {
  return {
    name: "pick",
    value: (run) => (picked().includes(run.id) ? 1 : 0),
    cell: (run) => h("input", { type: "checkbox", "aria-label": `Compare ${run.name}`, checked: picked().includes(run.id), onchange: (event) => {
      const others = picked().filter((id) => id !== run.id);
      const now = event.target.checked ? [...others.slice(-1), run.id] : others;
      address.put({ c: now.join(".") });
      if (others.length > 1) document.querySelectorAll("td input[type=checkbox]").forEach((box) => (box.checked = box === event.target || (box.checked && now.some((id) => box.dataset.id === id))));
      tellPicked(bar);
    }, "data-id": run.id }),
  };
}

function picked() {
  return address.get("c").split(".").filter(Boolean);
}

function tellPicked(bar) {
  const [ours, theirs] = picked();
  bar.replaceChildren(theirs ? h("a", { class: "action", href: address.to(`c/${ours}/${theirs}`) }, "Compare the two picked runs") : ours ? "One run is picked; pick another to compare them." : "");
}

async function loadedRuns(chunk) {
  const { columns } = await get(`runs/${chunk}.json`);
  return columns.id.map((_, place) => asRow(Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, values[place]]))));
}
