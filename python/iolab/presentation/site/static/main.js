// Which page an address names, what stands around each page, and what changes while it is looked at.

import * as address from "./address.js";
import { forget, get, getAgain } from "./api.js";
import { h } from "./dom.js";
import { learnUnits } from "./format.js";
import { benchmarkPage, matrixPage } from "./page-benchmark.js";
import { comparePage } from "./page-compare.js";
import { livePage } from "./page-live.js";
import { metricPage } from "./page-metric.js";
import { overviewPage, runsPage } from "./page-overview.js";
import { numberPage, runPage } from "./page-run.js";
import { forgetPlots } from "./plot.js";

const POLL_MS = 2000;
const main = document.getElementById("main");
const margin = document.getElementById("margin");
let meta = null;
let turn = 0;
let shown = "";

/** By the first part of the address. @type {Record<string, (path: string[], meta: any) => Promise<{title: string, content: any}>>} */
const PAGES = {
  "": overviewPage,
  runs: runsPage,
  live: livePage,
  c: comparePage,
  b: (path, known) => (path[1] === "matrix" ? matrixPage(path, known) : path.length > 1 ? metricPage(path, known) : benchmarkPage(path, known)),
  r: (path, known) => (path[1] === "n" ? numberPage(path, known) : runPage(path, known)),
};

/** Draws the page that the address names; of several at once the last. */
async function show({ again = false } = {}) {
  const mine = ++turn;
  const { path } = address.here();
  const name = path.join("/");
  const [first = "", ...rest] = path;
  margin.value = address.get("m");
  try {
    meta = meta || (await getAgain("meta.json"));
    learnUnits(meta.units);
    around(first);
    const page = PAGES[first];
    if (!page) throw new Error("there is no such page");
    const { title, content } = await page(rest, meta);
    if (mine !== turn) return;
    forgetPlots();
    document.title = `${title} - iolab`;
    main.replaceChildren(...[h("h1", {}, title), content].flat(2).filter(Boolean));
  } catch (error) {
    if (mine !== turn) return;
    document.title = "iolab";
    main.replaceChildren(h("h1", {}, "This page cannot be shown"), h("p", { class: "problem", role: "alert" }, error.message));
  }
  if (!again && name !== shown) {
    scrollTo(0, 0);
    if (shown) main.focus({ preventScroll: true });
  }
  shown = name;
  main.dataset.shown = name || "overview";
}

function around(first) {
  const pages = [["", "Overview"], ["runs", "Runs"], ...(meta.live ? [["live", "In progress"]] : [])];
  document.getElementById("pages").replaceChildren(...pages.map(([path, name]) => h("a", { href: address.to(path), "aria-current": path === first && "page" }, name)));
  const how = meta.live ? "read only, as it is now" : "as it was when it was written";
  document.getElementById("footer").replaceChildren(h("p", {}, `iolab ${meta.version}: ${meta.runs.toLocaleString("en-US")} runs of ${meta.title}, ${how}.`));
}

/** While somebody looks, asks whether runs changed, and draws what did. */
async function poll() {
  if (!document.hidden && meta?.live) {
    try {
      const now = await getAgain("meta.json");
      if (now.changed !== meta.changed) {
        meta = now;
        forget();
        await show({ again: true });
      } else if (address.here().path[0] === "live") {
        await show({ again: true });
      }
    } catch {
      // The server is away: what is shown stays.
    }
  }
  setTimeout(poll, POLL_MS);
}

margin.addEventListener("change", () => {
  const percent = Number(margin.value);
  address.put({ m: margin.value !== "" && percent >= 0 && percent <= 100 ? String(percent) : "" });
  show({ again: true });
});
document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
addEventListener("hashchange", () => show());
addEventListener("keydown", (event) => {
  const typing = event.target.matches?.("input, textarea, select");
  const field = document.querySelector("[data-filter]");
  if (event.key === "/" && !typing && field) {
    event.preventDefault();
    field.focus();
  }
});
show().then(poll);
