// Large plots, by uPlot: lines with intervals and rounds, colours that belong to their series, zoom in the address.

import * as address from "./address.js";
import { h } from "./dom.js";

const HEIGHT = 340;
const DASHES = [[], [8, 4], [2, 3], [12, 3, 2, 3]];

/** @type {Set<{redraw: () => void, width: () => void}>} */
const drawn = new Set();

/** Before another page is drawn. */
export function forgetPlots() {
  drawn.clear();
}

addEventListener("resize", () => drawn.forEach((one) => one.width()));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawn.forEach((one) => one.redraw()));

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** The colour of a series: by the place of its name among all names, shown or not. */
function colourOf(place) {
  return colour(`--c${place % 10}`);
}

/** Each text once: several runs of a day have its date at the first. */
export function once(texts) {
  return texts.map((text, place) => (texts.indexOf(text) < place ? "" : text));
}

/**
 * @typedef {object} Line
 * @property {string} name
 * @property {(number|null)[]} y
 * @property {(number|null)[]} [spread] half the height of an interval around y
 * @property {(number|null)[][]} [rounds] values around y, each a small mark
 */

/**
 * @param {object} options
 * @param {string} options.id in the address
 * @param {string} options.label what is drawn, for those who can't see it
 * @param {number[]} options.x
 * @param {Line[]} options.lines
 * @param {(x: number) => string} options.xText
 * @param {{divisor: number, number: (y: number) => string}} options.scale of y
 * @param {string} [options.xLabel]
 * @param {string} [options.yLabel]
 * @param {boolean} [options.logX]
 * @param {{at: number, bad: boolean, text: string}[]} [options.marks] vertical lines
 * @param {{line: number, at: number}[]} [options.stars] points that are marked
 * @param {(line: number, place: number) => void} [options.onPoint] a point was chosen
 */
export function plot({ id, label, x, lines: given, xText, scale, xLabel = "", yLabel = "", logX = false, marks = [], stars = [], onPoint }) {
  // Drawn in the unit that is shown, so that the axis has round numbers.
  const part = (value) => (value === null || value === undefined ? null : value / scale.divisor);
  const lines = given.map((line) => ({ ...line, y: line.y.map(part), spread: line.spread?.map(part), rounds: line.rounds?.map((one) => one.map(part)) }));
  const yText = (value) => scale.number(value * scale.divisor);
  const names = lines.map((line) => line.name).sort();
  const colours = lines.map((line) => names.indexOf(line.name));
  const place = h("div", { class: "plot", role: "img", "aria-label": label });
  const told = h("output", { class: "hint told", "aria-live": "off" }, "\u00a0");
  const hidden = new Set(address.get(`${id}h`).split(".").filter(Boolean).map(Number));
  /** @type {any} */
  let drawing = null;
  const legend = h("div", { class: "legend", role: "group", "aria-label": "Lines" }, lines.map((line, number) => {
    const button = h("button", { type: "button", "aria-pressed": String(!hidden.has(number)), class: `series c${colours[number] % 10}`, onclick: () => {
      hidden.has(number) ? hidden.delete(number) : hidden.add(number);
      button.setAttribute("aria-pressed", String(!hidden.has(number)));
      address.put({ [`${id}h`]: [...hidden].sort((a, b) => a - b).join(".") });
      drawing?.setSeries(number + 1, { show: !hidden.has(number) });
    } }, line.name || "all");
    return button;
  }));

  const draw = () => {
    drawing?.destroy();
    const axis = { stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 }, font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif", labelSize: 18 };
    drawing = new globalThis.uPlot({
      width: Math.max(260, place.clientWidth || 800),
      height: HEIGHT,
      legend: { show: false },
      cursor: { drag: { x: true, y: false }, points: { size: 8 } },
      scales: { x: { time: false, distr: logX ? 3 : 1, log: 2, range: rangeX }, y: { range: rangeY } },
      axes: [
        { ...axis, label: xLabel || null, space: 90, values: (_, at) => once(at.map((one) => (one === null || (!logX && !Number.isInteger(one)) ? "" : xText(one)))) },
        { ...axis, label: yLabel || null, size: 76, values: (_, at) => at.map((one) => (one === null ? "" : yText(one))) },
      ],
      series: [{}, ...lines.map((line, number) => ({
        label: line.name, show: !hidden.has(number), stroke: colourOf(colours[number]), width: 1.5, spanGaps: true,
        dash: DASHES[Math.floor(colours[number] / 10) % DASHES.length], points: { show: true, size: 5, fill: colourOf(colours[number]) },
      }))],
      hooks: { draw: [marksDrawn], setCursor: [tell], setSelect: [zoomed] },
    }, [x, ...lines.map((line) => line.y)], place);
    drawing.over.addEventListener("dblclick", () => address.put({ [`${id}x`]: "" }));
    drawing.over.addEventListener("click", chosen);
  };

  function rangeX(_, low, high) {
    const [from, to] = address.get(`${id}x`).split("_").map(Number);
    if (Number.isFinite(from) && Number.isFinite(to) && to > from) return [from, to];
    if (logX) return [low, high > low ? high : low * 2];
    const [first, last] = [x[0] ?? 0, x[x.length - 1] ?? 1];
    const room = (last - first) * 0.02 || 0.5;
    return [first - room, last + room];
  }

  function rangeY() {
    const seen = [];
    lines.forEach((line, number) => {
      if (hidden.has(number)) return;
      line.y.forEach((value, at) => {
        if (value === null) return;
        const spread = line.spread?.[at] || 0;
        seen.push(value - spread, value + spread, ...(line.rounds?.[at] || []).filter((one) => one !== null));
      });
    });
    if (!seen.length) return [0, 1];
    const [low, high] = seen.reduce(([a, b], one) => [Math.min(a, one), Math.max(b, one)], [Infinity, -Infinity]);
    const room = (high - low || Math.abs(high) || 1) * 0.06;
    return [low - room, high + room];
  }

  function marksDrawn(u) {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    const at = (value, scale) => u.valToPos(value, scale, true);
    for (const mark of marks) {
      ctx.strokeStyle = colour(mark.bad ? "--slower" : "--muted");
      ctx.setLineDash([4, 4]);
      ctx.beginPath();
      ctx.moveTo(at(mark.at - 0.5, "x"), bbox.top);
      ctx.lineTo(at(mark.at - 0.5, "x"), bbox.top + bbox.height);
      ctx.stroke();
    }
    ctx.setLineDash([]);
    lines.forEach((line, number) => {
      if (hidden.has(number)) return;
      ctx.strokeStyle = ctx.fillStyle = colourOf(colours[number]);
      ctx.globalAlpha = 0.55;
      line.y.forEach((value, place) => {
        if (value === null) return;
        const spread = line.spread?.[place];
        if (spread) {
          ctx.beginPath();
          ctx.moveTo(at(x[place], "x"), at(value - spread, "y"));
          ctx.lineTo(at(x[place], "x"), at(value + spread, "y"));
          ctx.stroke();
        }
        for (const round of line.rounds?.[place] || []) if (round !== null) ctx.fillRect(at(x[place], "x") + 3, at(round, "y") - 1, 3, 2);
      });
      ctx.globalAlpha = 1;
    });
    for (const { line, at: place } of stars) {
      if (hidden.has(line) || lines[line].y[place] === null) continue;
      ctx.strokeStyle = colour("--ink");
      ctx.lineWidth = 2;
      ctx.beginPath();
      ctx.arc(at(x[place], "x"), at(lines[line].y[place], "y"), 8, 0, 2 * Math.PI);
      ctx.stroke();
    }
    ctx.restore();
  }

  function tell(u) {
    const at = u.cursor.idx;
    if (at === null || at === undefined) return;
    const values = lines.flatMap((line, number) => (hidden.has(number) || line.y[at] === null || line.y[at] === undefined ? [] : [`${line.name ? `${line.name} ` : ""}${yText(line.y[at])}${line.spread?.[at] ? ` ± ${yText(line.spread[at])}` : ""}`]));
    const mark = marks.find((one) => one.at === x[at]);
    told.textContent = `${xText(x[at])}: ${values.join("; ")}${mark ? `; ${mark.text}` : ""}`;
  }

  function zoomed(u) {
    if (u.select.width < 3) return;
    const ends = [u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x")];
    address.put({ [`${id}x`]: ends.map((one) => Number(one.toPrecision(5))).join("_") });
  }

  let pressedAt = 0;
  place.addEventListener("mousedown", (event) => (pressedAt = event.clientX));

  function chosen(event) {
    const at = drawing.cursor.idx;
    if (!onPoint || Math.abs(event.clientX - pressedAt) > 3 || at === null || at === undefined) return;
    let [best, nearest] = [-1, Infinity];
    lines.forEach((line, number) => {
      if (hidden.has(number) || line.y[at] === null) return;
      const distance = Math.abs(drawing.valToPos(line.y[at], "y") - drawing.cursor.top);
      if (distance < nearest) [best, nearest] = [number, distance];
    });
    if (best >= 0) onPoint(best, at);
  }

  const one = { redraw: draw, width: () => place.isConnected && drawing?.setSize({ width: Math.max(260, place.clientWidth), height: HEIGHT }) };
  drawn.add(one);
  // Its width is known once it stands on the page.
  requestAnimationFrame(() => place.isConnected && draw());
  return h("figure", {}, legend, place, told);
}
