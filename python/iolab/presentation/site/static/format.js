// Numbers, dates and changes in words, as iolab's tables have them (`iolab.base.quantity`).

/** @type {Record<string, {divisor: number, suffix: string}[]>} */
let units = {};
const MULTIPLE_FROM = 3;

/** The steps of each unit, as the collection's meta.json has them. */
export function learnUnits(known) {
  units = known;
}

/**
 * How the values of a row are shown: all by one divisor, the largest with four digits; counts are whole if all are.
 * @param {string} unit
 * @param {(number|null)[]} values
 */
export function scale(unit, values) {
  const sizes = values.filter((one) => one !== null && one !== undefined && Number.isFinite(one) && one !== 0).map(Math.abs);
  const largest = sizes.length ? Math.max(...sizes) : 0;
  const smallest = sizes.length ? Math.min(...sizes) : 0;
  const steps = units[unit] || [{ divisor: 1, suffix: unit }];
  const step = steps.find((one) => largest >= one.divisor) || steps[steps.length - 1];
  const whole = unit === "count" && sizes.every(Number.isInteger);
  const decimals = whole ? 0 : Math.min(6, Math.max(0, 4 - digits(largest / step.divisor), 2 - digits(smallest / step.divisor)));
  const number = (value) =>
    value === null || value === undefined || !Number.isFinite(value)
      ? "-"
      : (value / step.divisor).toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
  const gap = ["%", ""].includes(step.suffix) ? "" : "\u00a0";
  return {
    suffix: step.suffix,
    divisor: step.divisor,
    number,
    text: (value) => (number(value) === "-" ? "-" : number(value) + gap + step.suffix),
    spread: (value, spread) => (spread === null || spread === undefined || number(value) === "-" ? number(value) : `${number(value)}\u00a0±\u00a0${number(spread)}`),
  };
}

function digits(number) {
  return number ? Math.floor(Math.log10(number)) + 1 : 1;
}

/** `+3.1 %` for a ratio of 1.031, `4.93x` for one of 4.93. */
export function change(ratio, asMultiple = ratio >= MULTIPLE_FROM) {
  if (ratio === null || ratio === undefined) return "";
  if (!asMultiple) {
    const percent = Math.round((ratio - 1) * 1000) / 10 + 0;
    return `${percent < 0 ? "" : "+"}${percent.toFixed(1)}\u00a0%`;
  }
  if (ratio >= 999) return ">999x";
  if (ratio < 0.01) return "<0.01x";
  return `${ratio.toFixed(Math.max(0, 3 - Math.max(1, digits(ratio))))}x`;
}

/** `+3.1 % [+1.0 %, +5.2 %]`. */
export function changeWithInterval(low, ratio, high) {
  if (ratio === null || low === null || high === null) return "";
  const asMultiple = (high || ratio) >= MULTIPLE_FROM;
  return `${change(ratio, asMultiple)} [${change(low, asMultiple)},\u00a0${change(high, asMultiple)}]`;
}

/** `40 s`, `12 min`, `3 h 20 min`. */
export function span(seconds) {
  if (seconds < 100) return `${Math.ceil(seconds)} s`;
  const minutes = Math.ceil(seconds / 60);
  return minutes < 100 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** `2026-11-23 16:54`, in UTC. */
export function date(unixNs) {
  return unixNs === null || unixNs === undefined ? "" : new Date(unixNs / 1e6).toISOString().slice(0, 16).replace("T", " ");
}

/** `2026-11-23`. */
export function day(unixNs) {
  return date(unixNs).slice(0, 10);
}

/** `6.9` before `6.12`. */
export const natural = new Intl.Collator("en", { numeric: true }).compare;
