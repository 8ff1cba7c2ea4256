// A sweep: parameter x metric as a heat map, throughput over the parameter with its knee, latency against throughput.

import * as address from "./address.js";
import { h, section } from "./dom.js";
import * as format from "./format.js";
import { plot } from "./plot.js";
import { table } from "./table.js";

export function sweepSections(page) {
  return page.sweeps.map((sweep, place) => section(`${sweep.name || "Sweep"} over ${sweep.parameter}`, ...parts(page, sweep, place)));
}

function parts(page, sweep, place) {
  const values = new Map(page.measured.map((one) => [[one.workload, one.setting, one.metric].join("\0"), one]));
  const of = (point, metric) => values.get([point.workload, point.setting, metric].join("\0"));
  return [
    sweep.throughput ? curves(page, sweep, of, place) : null,
    sweep.throughput && sweep.latency ? against(page, sweep, of, place) : null,
    sweep.lines.map((line, number) => heat(page, sweep, line, of, `${place}x${number}`)),
  ];
}

function curves(page, sweep, of, place) {
  const x = [...new Set(sweep.lines.flatMap((line) => line.points.map((point) => point.x)))].sort((a, b) => a - b);
  const texts = new Map(sweep.lines.flatMap((line) => line.points.map((point) => [point.x, point.text])));
  const info = page.metrics[sweep.throughput];
  const lines = sweep.lines.map((line) => {
    const found = x.map((at) => line.points.find((point) => point.x === at)).map((point) => point && of(point, sweep.throughput));
    return { name: line.name, y: found.map((one) => one?.typical ?? null), spread: found.map((one) => one?.spread ?? null), rounds: found.map((one) => one?.rounds || []) };
  });
  const scale = format.scale(info.unit, lines.flatMap((line) => line.y));
  const stars = sweep.lines.flatMap((line, number) => (line.knee === null ? [] : [{ line: number, at: x.indexOf(line.points[line.knee].x) }]));
  const told = sweep.lines.filter((line) => line.knee !== null).map((line) => `${line.name ? `${line.name}: ` : ""}the knee is at ${line.points[line.knee].text}`);
  return [
    h("h3", {}, `${info.label} over ${sweep.parameter}, ${scale.suffix}`),
    h("p", { class: "hint" }, told.length ? `${told.join("; ")}: there more of the parameter stops to pay. A ring marks it.` : "No knee: the curve does not rise, or is as good as straight."),
    plot({ id: `k${place}`, label: `${info.label} over ${sweep.parameter}`, x, lines, logX: x[0] > 0 && x[x.length - 1] / x[0] >= 8, xText: (at) => texts.get(at) || String(Number(at.toPrecision(3))), scale, xLabel: sweep.parameter, yLabel: info.label, stars }),
  ];
}

function against(page, sweep, of, place) {
  const [rate, time] = [page.metrics[sweep.throughput], page.metrics[sweep.latency]];
  const points = sweep.lines.map((line) => line.points.map((point) => [of(point, sweep.throughput)?.typical ?? null, of(point, sweep.latency)?.typical ?? null, point.text]).filter(([a, b]) => a !== null && b !== null));
  const x = [...new Set(points.flat().map(([at]) => at))].sort((a, b) => a - b);
  if (x.length < 2) return null;
  const [across, up] = [format.scale(rate.unit, x), format.scale(time.unit, points.flat().map(([, value]) => value))];
  const lines = points.map((found, number) => ({ name: sweep.lines[number].name, y: x.map((at) => found.find(([one]) => one === at)?.[1] ?? null) }));
  const divisor = across.divisor;
  return [
    h("h3", {}, `${time.label}, ${up.suffix}, against ${rate.label}, ${across.suffix}`),
    plot({ id: `l${place}`, label: `${time.label} against ${rate.label}`, x: x.map((at) => at / divisor), lines, xText: (at) => across.number(at * divisor), scale: up, xLabel: rate.label, yLabel: time.label }),
  ];
}

function heat(page, sweep, line, of, id) {
  const metrics = page.compared.filter((metric) => line.points.some((point) => of(point, metric)?.typical != null));
  const ends = Object.fromEntries(metrics.map((metric) => {
    const found = line.points.map((point) => of(point, metric)?.typical ?? null).filter((one) => one !== null);
    return [metric, { low: Math.min(...found), high: Math.max(...found), scale: format.scale(page.metrics[metric].unit, found) }];
  }));
  const share = (metric, value) => (ends[metric].high === ends[metric].low ? 0 : (value - ends[metric].low) / (ends[metric].high - ends[metric].low));
  return [
    h("h3", {}, `${line.name ? `${line.name}: ` : ""}${sweep.parameter} × metric`),
    table({ id: `h${id}`, caption: `${line.name || sweep.name}: ${sweep.parameter} × metric`, rows: line.points, columns: [
      { name: sweep.parameter, value: (point) => point.x, cell: (point) => point.text },
      ...metrics.map((metric) => ({
        name: `${page.metrics[metric].label}${ends[metric].scale.suffix ? `, ${ends[metric].scale.suffix}` : ""}`, numeric: true, hint: page.metrics[metric].help,
        value: (point) => of(point, metric)?.typical ?? null,
        cell: (point) => {
          const one = of(point, metric);
          if (!one || one.typical === null) return "-";
          return h("div", { class: "heat", style: { background: `color-mix(in srgb, var(--accent) ${(share(metric, one.typical) * 40).toFixed(0)}%, transparent)` } },
            h("a", { href: address.toNumber(page.run.id, one.workload, one.setting, metric) }, ends[metric].scale.spread(one.typical, one.spread)));
        },
      })),
    ] }),
  ];
}
