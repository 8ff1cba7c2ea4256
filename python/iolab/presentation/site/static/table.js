// A table that is sorted by its headings, filtered by words, and saved as CSV. How it is sorted stands in the address.

import * as address from "./address.js";
import { h } from "./dom.js";
import { natural } from "./format.js";

const SHOWN = 100;

/**
 * @typedef {object} Column
 * @property {string} name
 * @property {(row: any) => string|number|null} value what it is sorted by, and what its CSV has
 * @property {(row: any) => string} [words] what its CSV has in place of the value
 * @property {(row: any) => any} [cell] what is shown; without it the value
 * @property {boolean} [numeric]
 * @property {boolean} [wrap] on a phone too
 * @property {string} [hint]
 */

/**
 * @param {object} options
 * @param {string} options.id a letter or two: its name in the address
 * @param {string} options.caption
 * @param {Column[]} options.columns
 * @param {any[]} options.rows in the order that is shown first
 * @param {boolean} [options.filter] with a field for words
 * @param {(text: string) => (row: any) => boolean} [options.parse] what the words mean; without it, what rows show
 * @param {string} [options.empty]
 */
export function table({ id, caption, columns, rows, filter = false, parse, empty = "none" }) {
  if (!rows.length) return h("p", { class: "hint" }, empty);
  let shown = SHOWN;
  const body = h("tbody");
  const count = h("span", { class: "hint", role: "status" });
  const more = h("button", { type: "button", onclick: () => ((shown += 10 * SHOWN), draw()) }, "Show more");
  const head = columns.map((column, place) =>
    h("th", { scope: "col", class: column.numeric ? "number" : "", title: column.hint },
      h("button", { type: "button", onclick: () => sortBy(place) }, column.name)));
  const field = h("input", { type: "search", maxlength: address.QUERY_MAX, "aria-label": `Filter: ${caption}`, placeholder: "filter", "data-filter": true, oninput: () => (address.put({ [`${id}f`]: field.value }), (shown = SHOWN), draw()) });
  field.value = address.get(`${id}f`);

  function sortBy(place) {
    const [before, down] = sorting();
    const next = before !== place ? "a" : down ? "" : "d";
    address.put({ [id]: next && `${place}${next}` });
    draw();
  }

  function sorting() {
    const found = /^(\d{1,2})([ad])$/.exec(address.get(id));
    return found && Number(found[1]) < columns.length ? [Number(found[1]), found[2] === "d"] : [-1, false];
  }

  function chosen() {
    const text = filter ? field.value.trim() : "";
    let kept = rows;
    count.classList.remove("problem");
    if (text) {
      try {
        kept = rows.filter(parse ? parse(text) : words(text, columns));
      } catch (error) {
        count.classList.add("problem");
        count.textContent = error.message;
        return null;
      }
    }
    const [place, down] = sorting();
    return place < 0 ? kept : sorted(kept, columns[place], down);
  }

  function draw() {
    const [place, down] = sorting();
    head.forEach((cell, number) => (number === place ? cell.setAttribute("aria-sort", down ? "descending" : "ascending") : cell.removeAttribute("aria-sort")));
    const kept = chosen();
    if (kept === null) return;
    body.replaceChildren(...kept.slice(0, shown).map((row) => line(row, columns)));
    more.hidden = kept.length <= shown;
    const of = kept.length === rows.length ? "" : `${kept.length.toLocaleString("en-US")} of `;
    count.textContent = `${of}${rows.length.toLocaleString("en-US")} ${rows.length === 1 ? "row" : "rows"}`;
  }

  const save = h("button", { type: "button", onclick: () => saved(`${caption}.csv`, csv(chosen() || rows, columns)) }, "CSV");
  draw();
  return h("div", { class: "table" },
    h("div", { class: "tools" }, filter ? field : null, count, save),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption, onkeydown: byArrows },
      h("table", {}, h("caption", {}, caption), h("thead", {}, h("tr", {}, head)), body)),
    more);
}

function line(row, columns) {
  return h("tr", {}, columns.map((column, place) => {
    const shown = column.cell ? column.cell(row) : column.value(row);
    return h(place === 0 ? "th" : "td", { class: `${column.numeric ? "number" : ""} ${column.wrap ? "wrap" : ""}`.trim(), scope: place === 0 ? "row" : null }, shown === null ? "" : shown);
  }));
}

function words(text, columns) {
  const wanted = text.toLowerCase().split(/\s+/).filter(Boolean);
  return (row) => {
    const said = columns.map((column) => String(column.value(row) ?? "")).join(" ").toLowerCase();
    return wanted.every((word) => said.includes(word));
  };
}

function sorted(rows, column, down) {
  const keyed = rows.map((row) => [column.value(row), row]);
  keyed.sort(([a], [b]) => {
    // What has no value comes last, whichever way.
    if (a === null || a === "" || b === null || b === "") return (a === null || a === "") - (b === null || b === "");
    const order = typeof a === "number" && typeof b === "number" ? a - b : natural(String(a), String(b));
    return down ? -order : order;
  });
  return keyed.map(([, row]) => row);
}

/** Up and down lead from a row's first link to the next row's. */
function byArrows(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const row = event.target.closest?.("tbody tr");
  if (!step || !row) return;
  const next = step > 0 ? row.nextElementSibling : row.previousElementSibling;
  const link = next?.querySelector("a, button, input");
  if (link) {
    link.focus();
    event.preventDefault();
  }
}

/** Full precision; what a spreadsheet would take for a formula gets an apostrophe. */
export function csv(rows, columns) {
  const cell = (value) => {
    if (value === null || value === undefined) return "";
    let text = String(value);
    if (typeof value === "string" && /^\s*[=+\-@]|^[\t\r\n]/.test(text) && !/^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(text)) text = `'${text}`;
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const lines = [columns.map((one) => cell(one.name)), ...rows.map((row) => columns.map((one) => cell((one.words || one.value)(row))))];
  return lines.map((one) => `${one.join(",")}\n`).join("");
}

function saved(name, text) {
  const place = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  const link = h("a", { href: place, download: name.replace(/[^\w .+-]+/g, "_") });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(place), 10_000);
}
