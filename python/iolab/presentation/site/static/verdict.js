// Verdicts at another margin. The intervals, p and q are iolab's; only the rule is applied again that stands in
// docs/reference/statistics.md: the whole interval within the margin is `same`; an interval that excludes 1, with q at
// most alpha, is a difference; anything else is `undecided`. A test holds it against `iolab.domain.verdict`.

import * as address from "./address.js";
import { h } from "./dom.js";

const DIFFERENCES = {
  rate: ["faster", "slower"],
  time: ["slower", "faster"],
  benefit: ["better", "worse"],
  cost: ["worse", "better"],
  neutral: ["higher", "lower"],
};
const ORDER = ["slower", "worse", "faster", "better", "higher", "lower", "undecided", "same"];

/** The margin that the reader chose, as a share; null: each experiment's own. */
export function chosenMargin() {
  const text = address.get("m");
  const percent = Number(text);
  return text !== "" && Number.isFinite(percent) && percent >= 0 ? percent / 100 : null;
}

/** @param {any} judged @param {number|null} margin */
export function verdictAt(judged, margin) {
  if (margin === null || judged.ratio === null || judged.ci_low === null || judged.ci_high === null) return judged.verdict;
  const { ci_low: low, ci_high: high, q_value: q } = judged;
  if (low >= 1 / (1 + margin) && high <= 1 + margin) return "same";
  if ((low <= 1 && high >= 1) || (q !== null && q > judged.alpha)) return "undecided";
  const [ifHigher, ifLower] = DIFFERENCES[judged.nature];
  return low > 1 ? ifHigher : ifLower;
}

/** Where a verdict stands among those that need attention first. */
export function severity(verdict) {
  return ORDER.indexOf(verdict);
}

/** Whether a change of a metric of this nature is for the worse: -1, 0 or 1 (for the better). */
export function direction(nature, ratio) {
  const better = { rate: 1, benefit: 1, time: -1, cost: -1, neutral: 0 }[nature] || 0;
  return ratio === null ? 0 : better * Math.sign(ratio - 1);
}

/** A verdict as a label. */
export function badge(verdict, more = "") {
  return h("span", { class: `badge ${verdict}` }, verdict, more);
}

/** The label of a comparison at the chosen margin. */
export function badgeOf(judged) {
  const verdict = verdictAt(judged, chosenMargin());
  const rounds = verdict === "undecided" && verdict === judged.verdict && judged.rounds_to_decide;
  return badge(verdict, rounds ? ` (${rounds} more)` : "");
}
