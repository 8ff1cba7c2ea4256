// Small drawings in SVG: a line over runs, an interval beside its margin, the rounds of a number.

import { svg } from "./dom.js";

const SPARK_SHARE = 0.2;

/** A line of typical values with a band of their spread; its height is a fifth of the middle value or more, so that
 * noise does not fill it. */
export function spark(values, spread = [], label = "") {
  const [width, height] = [120, 26];
  const ends = values.flatMap((one, place) => (one === null ? [] : [one - (spread[place] || 0), one + (spread[place] || 0)]));
  if (!ends.length) return "";
  const [least, most] = [Math.min(...ends), Math.max(...ends)];
  const middle = (least + most) / 2;
  const reach = Math.max(most - least, SPARK_SHARE * Math.abs(middle)) / 2;
  const [low, high] = [middle - reach, middle + reach];
  const x = (place) => 2 + (values.length < 2 ? 0.5 : place / (values.length - 1)) * (width - 6);
  const y = (value) => (high === low ? height / 2 : height - 3 - ((value - low) / (high - low)) * (height - 6));
  const places = values.map((_, place) => place).filter((place) => values[place] !== null);
  const path = (points) => points.map(([a, b], place) => `${place ? "L" : "M"}${a.toFixed(1)} ${b.toFixed(1)}`).join("");
  const upper = places.map((place) => [x(place), y(values[place] + (spread[place] || 0))]);
  const lower = places.map((place) => [x(place), y(values[place] - (spread[place] || 0))]).reverse();
  const last = places[places.length - 1];
  return svg("svg", { class: "spark", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label || `${places.length} runs` },
    spread.length ? svg("path", { class: "band", d: `${path([...upper, ...lower])}Z` }) : null,
    svg("path", { class: "line", d: path(places.map((place) => [x(place), y(values[place])])) }),
    svg("circle", { class: "mark", cx: x(last), cy: y(values[last]), r: 2.2 }));
}

/**
 * An interval of a ratio on a logarithmic axis, the margin of `same` as a band, 1 as a line.
 * @param {any} judged
 * @param {number} margin
 * @param {number} reach the largest factor that the axis shows
 */
export function interval(judged, margin, reach, kind) {
  const [width, height] = [130, 22];
  const scale = Math.log(Math.max(reach, 1 + 2 * margin, 1.02));
  const x = (ratio) => width / 2 + (Math.max(-1, Math.min(1, Math.log(ratio) / scale)) * (width - 10)) / 2;
  if (judged.ratio === null || judged.ci_low === null || judged.ci_high === null) return "";
  const [from, to] = [x(1 / (1 + margin)), x(1 + margin)];
  return svg("svg", { class: `interval ${kind}`, width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `ratio ${judged.ratio.toPrecision(4)}, interval ${judged.ci_low.toPrecision(4)} to ${judged.ci_high.toPrecision(4)}` },
    svg("rect", { class: "margin-band", x: from, y: 2, width: Math.max(1, to - from), height: height - 4 }),
    svg("line", { class: "one", x1: width / 2, x2: width / 2, y1: 1, y2: height - 1 }),
    svg("line", { class: "reach", x1: x(judged.ci_low), x2: x(judged.ci_high), y1: height / 2, y2: height / 2 }),
    svg("circle", { class: "mark", cx: x(judged.ratio), cy: height / 2, r: 3.5 }));
}

/** How far an axis has to reach that several intervals share: the largest end, but for a few that are far out. */
export function reachOf(all) {
  const ends = all.flatMap((one) => [one.ci_low, one.ci_high]).filter((one) => one !== null && one > 0).map((one) => Math.exp(Math.abs(Math.log(one)))).sort((a, b) => a - b);
  return ends.length ? Math.max(1.05, ends[Math.floor((ends.length - 1) * 0.95)]) : 1.1;
}

/**
 * The rounds of several settings as marks on one axis, with the typical value and its spread.
 * @param {{name: string, rounds: (number|null)[], typical: number|null, spread: number|null}[]} rows
 * @param {(value: number) => string} text
 */
export function strip(rows, text) {
  const every = rows.flatMap((one) => one.rounds).filter((one) => one !== null);
  if (!every.length) return "";
  const [low, high] = [Math.min(...every), Math.max(...every)];
  const [left, width, step] = [150, 640, 34];
  const height = rows.length * step + 26;
  const x = (value) => left + 14 + (high === low ? 0.5 : (value - low) / (high - low)) * (width - left - 90);
  return svg("svg", { class: "strip", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `values of ${every.length} rounds from ${text(low)} to ${text(high)}` },
    rows.map((one, place) => {
      const y = place * step + 18;
      const name = one.name.length > 22 ? `${one.name.slice(0, 21)}…` : one.name;
      return svg("g", { class: `series c${place % 10}` },
        svg("text", { x: left, y: y + 4, "text-anchor": "end" }, name),
        one.typical === null || one.spread === null ? null : svg("line", { class: "reach", x1: x(clamp(one.typical - one.spread, low, high)), x2: x(clamp(one.typical + one.spread, low, high)), y1: y, y2: y }),
        one.rounds.map((value, round) => (value === null ? null : svg("circle", { class: "round", cx: x(value), cy: y + ((round % 3) - 1) * 4, r: 3 }))),
        one.typical === null ? null : svg("line", { class: "typical", x1: x(one.typical), x2: x(one.typical), y1: y - 9, y2: y + 9 }));
    }),
    svg("text", { class: "axis", x: x(low), y: height - 4, "text-anchor": "middle" }, text(low)),
    high === low ? null : svg("text", { class: "axis", x: x(high), y: height - 4, "text-anchor": "middle" }, text(high)));
}

function clamp(value, low, high) {
  return Math.max(low, Math.min(high, value));
}
