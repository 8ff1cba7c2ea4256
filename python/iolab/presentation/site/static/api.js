// What the pages show, by name. Served or from files: the names are the same.

/** @type {Map<string, Promise<any>>} */
const kept = new Map();
const KEPT_MAX = 60;

/**
 * An answer by its name below api/, such as `run/0123456789ab.json`. Throws an Error that says what is wrong.
 * @param {string} name
 */
export function get(name) {
  let found = kept.get(name);
  if (!found) {
    found = fetched(name);
    kept.set(name, found);
    found.catch(() => kept.delete(name));
    if (kept.size > KEPT_MAX) kept.delete(kept.keys().next().value);
  }
  return found;
}

/** The same, asked for again. */
export function getAgain(name) {
  kept.delete(name);
  return get(name);
}

/** After runs changed. */
export function forget() {
  kept.clear();
}

async function fetched(name) {
  const answer = await fetch(`api/${name}`, { credentials: "same-origin", cache: "no-cache" });
  if (answer.ok) return answer.json();
  const said = await answer.json().catch(() => ({}));
  const what = typeof said.what === "string" ? said.what : `the server answers ${answer.status}`;
  throw new Error(answer.status === 404 && !said.what ? "this page was not written" : what);
}
