(() => {
  const POINTS = 1024;
  const unpacked = async (packed) => {
    const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint32Array(await new Response(stream).arrayBuffer());
  };
  const isTime = (key) => /^xaxis\d*\.(range|autorange)/.test(key);
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
  const drawn = ({ step_s: stepS, until_s: untilS, length, lines }, values, [low, high]) => {
    const bounded = (value) => Math.min(Math.max(value, 0), length);
    let step = 1;
    while ((bounded(Math.ceil(high / stepS)) - bounded(Math.floor(low / stepS))) / step > POINTS) {
      step *= 2;
    }
    const from = Math.floor(bounded(Math.floor(low / stepS)) / step) * step;
    const to = bounded(Math.ceil(high / stepS));
    const whole = Math.floor(untilS / stepS / step) * step;
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
        // What reaches beyond the end of the trace has no rate: it would look like an outage.
        if ((how === "rate" || how === "mean") && points.length > 1 && from + (points.length - 1) * step >= whole) {
          points[points.length - 1] = null;
        }
        return by === 1 ? points : points.map((value) => (value === null ? null : value * by));
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
      if (!Object.keys(changes).some(isTime)) {
        return;
      }
      values ??= await unpacked(packed);
      const axis = place.layout.xaxis;
      const { x, made } = drawn(fine, values, axis.autorange ? whole : axis.range);
      for (const axis of ["z", "y"]) {
        const places = [...made.keys()].filter((number) => fine.lines[number].axis === axis);
        if (places.length) {
          const update = { x: places.map(() => x) };
          update[axis] = places.map((number) => (axis === "z" ? made[number] : made[number][0]));
          Plotly.restyle(place, update, places);
        }
      }
    });
  }
  for (const source of document.querySelectorAll("script.plot-requests")) {
    const place = document.getElementById(source.dataset.plot);
    const { packed, scales, count, most, marks } = JSON.parse(source.textContent);
    let columns = null;
    const draw = async () => {
      const found = columns ?? (await unpacked(packed));
      columns = found;
      const value = (column, row) => found[column * count + row] * scales[column];
      const [low, high] = place.layout.xaxis.range;
      const seen = [];
      for (let row = 0; row < count && seen.length <= most; row += 1) {
        if (value(1, row) >= low && value(0, row) <= high) {
          seen.push(row);
        }
      }
      const rows = seen.length > most ? [] : seen;
      const of = (column) => rows.map((row) => value(column, row));
      Object.entries({ latency_us: [1, 2], place_gib: [0, 3] }).filter(([name]) => name in marks).forEach(([name, [x, y]]) =>
        Plotly.restyle(place, { x: [of(x)], y: [of(y)] }, [marks[name]]));
    };
    place.on("plotly_relayout", (changes) => Object.keys(changes).some(isTime) && draw());
    draw();
  }
})();
