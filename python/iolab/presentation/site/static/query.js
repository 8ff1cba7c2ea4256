// Which runs are asked for: the language of `iolab ls` (`iolab.domain.collection.query`).

const IN_ALL = ["run", "title", "machine", "kernel", "setting", "workload", "tag", "note"];
const MACHINES = ["model", "guest"];

/** @type {Record<string, (run: any) => string[]>} */
const TEXTS = {
  run: (run) => [run.name, run.id],
  title: (run) => [run.title],
  machine: (run) => [run.machine],
  kernel: (run) => [run.kernel],
  setting: (run) => run.settings,
  workload: (run) => run.workloads || [],
  verdict: (run) => Object.keys(run.verdicts),
  state: (run) => [run.state],
  tag: (run) => run.tags,
  note: (run) => [run.note],
};

/** A test of runs. Throws an Error that names a key that does not exist. @returns {(run: any) => boolean} */
export function parse(text) {
  const conditions = text.split(/\s+/).filter(Boolean).map(condition);
  return (run) => conditions.every((holds) => holds(run));
}

function condition(word) {
  const negated = word.startsWith("not:");
  const rest = negated ? word.slice(4) : word;
  const colon = rest.indexOf(":");
  const key = colon < 0 ? "" : rest.slice(0, colon);
  if (colon < 0 || MACHINES.includes(key)) return (run) => IN_ALL.some((one) => has(run, one, rest)) !== negated;
  const value = rest.slice(colon + 1);
  if (key === "since") return (run) => (run.date !== "" && run.date >= value) !== negated;
  if (key === "until") return (run) => (run.date !== "" && run.date < `${value}~`) !== negated;
  if (!(key in TEXTS)) throw new Error(`${key}: no such key; one of ${Object.keys(TEXTS).join(", ")}, since, until`);
  return (run) => has(run, key, value) !== negated;
}

function has(run, key, text) {
  return TEXTS[key](run).some((one) => one.toLowerCase().includes(text.toLowerCase()));
}
