(() => {
  const POINTS = 1024;
  const unpacked = async (packed) => {
    const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint32Array(await new Response(stream).arrayBuffer());
  };
  // So many intervals together, from one on: their sum, or the largest.
  const together = (values, begin, from, to, step, how) => {
    const points = [];
    for (let at = from; at < to; at += step) {
      let value = 0;
      for (let each = at; each < Math.min(at + step, to); each += 1) {
        const next = values[begin + each];
        value = how === "max" ? Math.max(value, next) : value + next;
      }
      points.push(value);
    }
    return points;
  };
  const divisor = (how, step, stepS) => ({ rate: step * stepS, mean: step })[how] ?? 1;
  const drawn = ({ step_s: stepS, length, lines }, values, [low, high]) => {
    const bounded = (value) => Math.min(Math.max(value, 0), length);
    let step = 1;
    while ((bounded(Math.ceil(high / stepS)) - bounded(Math.floor(low / stepS))) / step > POINTS) {
      step *= 2;
    }
    const from = Math.floor(bounded(Math.floor(low / stepS)) / step) * step;
    const to = bounded(Math.ceil(high / stepS));
    const x = [];
    for (let at = from; at < to; at += step) {
      x.push(stepS * (at + step / 2));
    }
    let row = 0;
    const made = lines.map(({ rows, how, scale }) => {
      const by = scale / divisor(how, step, stepS);
      const found = Array.from({ length: rows }, () => {
        const points = together(values, length * row, from, to, step, how);
        row += 1;
        return by === 1 ? points : points.map((value) => value * by);
      });
      return found;
    });
    return { x, made };
  };
  for (const source of document.querySelectorAll("script.plot-fine")) {
    const place = document.getElementById(source.dataset.plot);
    const { packed, ...fine } = JSON.parse(source.textContent);
    let values = null;
    const whole = [0, fine.step_s * fine.length];
    place.on("plotly_relayout", async (changes) => {
      if (!Object.keys(changes).some((key) => /^xaxis\d*\.(range|autorange)/.test(key))) {
        return;
      }
      values ??= await unpacked(packed);
      const axis = place.layout.xaxis;
      const { x, made } = drawn(fine, values, axis.autorange ? whole : axis.range);
      const update = { x: made.map(() => x) };
      update[fine.axis] = made.map((rows) => (fine.axis === "z" ? rows : rows[0]));
      Plotly.restyle(place, update, [...made.keys()]);
    });
  }
})();
