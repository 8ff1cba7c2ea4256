// The state of a page is its address: `#/b/ID-HARDWARE?m=5&a=2d`. Whoever opens it sees the same.

/** Addresses stay below 200 characters: a longer query is cut. */
export const QUERY_MAX = 90;

/** @returns {{path: string[], state: URLSearchParams}} */
export function here() {
  const [path, state] = location.hash.replace(/^#\/?/, "").split("?");
  return { path: path.split("/").filter(Boolean), state: new URLSearchParams(state || "") };
}

/** A value of the state. @returns {string} */
export function get(name) {
  return here().state.get(name) || "";
}

/** Replaces values of the state; "" removes one. Nothing is drawn anew, and Back leads to the page before. */
export function put(changes) {
  const { path, state } = here();
  for (const [name, value] of Object.entries(changes)) {
    if (value === "" || value === null) state.delete(name);
    else state.set(name, String(value).slice(0, QUERY_MAX));
  }
  history.replaceState(null, "", written(path, state));
}

/** The address of another page, with what holds for all pages: the margin. */
export function to(path, values = {}) {
  const state = new URLSearchParams();
  const margin = get("m");
  if (margin) state.set("m", margin);
  for (const [name, value] of Object.entries(values)) if (value !== "") state.set(name, String(value).slice(0, QUERY_MAX));
  return written(path.split("/").filter(Boolean), state);
}

function written(path, state) {
  const text = state.toString();
  return `#/${path.join("/")}${text ? `?${text}` : ""}`;
}

/** Eight digits for a workload, a setting and a metric (FNV-1a): short enough for an address. */
export function placeId(workload, setting, metric) {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode([workload, setting, metric].join("\0"))) {
    hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  }
  return hash.toString(16).padStart(8, "0");
}

/** Where a number comes from. */
export function toNumber(run, workload, setting, metric) {
  return to(`r/${run}/n/${placeId(workload, setting, metric)}`);
}
