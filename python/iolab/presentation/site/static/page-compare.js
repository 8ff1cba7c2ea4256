// Two runs side by side; not on unlike hardware, unless the reader asks for it.

import * as address from "./address.js";
import { get } from "./api.js";
import { facts, h, section, warnings } from "./dom.js";
import * as format from "./format.js";
import { judgedTable } from "./page-run.js";
import { table } from "./table.js";

export async function comparePage([ours, theirs], meta) {
  if (!meta.live) throw new Error("comparisons of any two runs are computed by `iolab serve`, and by `iolab compare`; these pages are files");
  const asked = address.get("unlike") === "1";
  const page = await get(`compare/${ours}/${theirs}.json${asked ? "?unlike=true" : ""}`);
  return {
    title: `${page.candidate.title || page.candidate.name}: two runs`,
    content: [
      facts([["baseline", run(page.baseline)], ["candidate", run(page.candidate)]]),
      h("p", { class: "links" }, h("a", { href: address.to(`c/${theirs}/${ours}`, asked ? { unlike: "1" } : {}) }, "The other way round")),
      page.judged === null ? refusal(page, ours, theirs) : [
        page.unlike.length ? warnings(["The hardware differs: the numbers compare machines, too."]) : null,
        warnings(page.problems),
        section("Verdicts", h("ul", {}, ...page.sentences.map((text) => h("li", {}, text))), h("p", { class: "hint" }, "What `iolab compare` reports about the two. Runs that were not measured in turns are not paired: drift is in the differences."), judgedTable(page.judged, page.metrics, page.same_within, { ours, theirs })),
        section("What else differs", page.conclusion ? h("p", {}, `${page.conclusion}.`) : null, differences(page.differs), page.not_compared.length ? h("p", { class: "hint" }, `Not on record of both: ${page.not_compared.join(", ")}.`) : null),
      ],
    ],
  };
}

function run(one) {
  return [h("a", { href: address.to(`r/${one.id}`) }, one.name), ` ${format.date(one.started_unix_ns)} ${one.kernel}`];
}

function refusal(page, ours, theirs) {
  return section("Not compared", h("p", { role: "alert" }, "The two ran on different hardware. A difference of their numbers would be the machines', and of nothing that was to be tested."),
    differences(page.unlike), h("p", {}, h("a", { class: "action", href: address.to(`c/${ours}/${theirs}`, { unlike: "1" }) }, "Compare them all the same")));
}

function differences(rows) {
  return table({ id: "d", caption: "Differences", rows, empty: "Nothing that is on record.", columns: [
    { name: "what", value: (one) => one.what },
    { name: "baseline", value: (one) => one.baseline },
    { name: "candidate", value: (one) => one.candidate },
  ] });
}
