"""The figures of a report, each from the run's raw records."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from iolab.base.plain_text import counted
from iolab.base.quantity import scale_for
from iolab.base.strict_json import JsonObject
from iolab.domain.metric import TRANSFERS
from iolab.domain.summary import Summary
from iolab.presentation.report import axes, flames, functions, heat, probes, search, steps
from iolab.presentation.report.plot import (
    FRAME_HEIGHT_PX,
    VERDICT_COLOURS,
    Figure,
    Plot,
    add_lines_over_time,
    by,
    by_setting,
    caption,
    duration,
    literal,
    plot_id,
    series,
)
from iolab.presentation.table.words import change_with_interval, label

if TYPE_CHECKING:
    import polars

    from iolab.domain.comparison import Comparison
    from iolab.files.store import RunData

GREY = "#8a93a0"
WORKLOADS_PLOTTED_MAX = 16
FOREST_ROW_PX = 34
RATIO_SHOWN_MAX = 1000.0
FIGURES_OF_KINDS = (search.figure, steps.figure, functions.figure, flames.figure)
"""What searches and single workload kinds add: (run, settings) -> a figure, without plots for other runs."""
NINES_APART, LATENCY_APART = 0.02, 1.03
PERCENTILES = (0, 50, 90, 99, 99.9, 99.99, 99.999, 99.9999)


def figures(run: RunData, summary: Summary) -> list[Figure]:
    """The figures that the run has data for."""
    workloads = run.workloads[:WORKLOADS_PLOTTED_MAX]
    left_out = len(run.workloads) - len(workloads)
    only = f" Shown are the first {len(workloads)} of {len(run.workloads)} workloads." if left_out else ""
    found = [
        axes.figure(summary),
        Figure(
            "differences",
            "How large, how sure",
            "Each line is the 95 % interval of a ratio to the baseline, the mark the estimate; the grey band is the "
            "margin within which settings count as the same. An interval that crosses 1 leaves it undecided.",
            _forests(summary),
        ),
        Figure(
            "rounds",
            "Throughput over the rounds",
            "One mark per trial. A trend that all settings share is the machine's; a setting that stands apart in "
            f"every round is what the verdicts are about.{only}",
            [plot for workload in workloads for plot in _rounds(run, summary.settings, workload)],
        ),
        Figure(
            "time",
            "Throughput within a trial",
            f"Median over the rounds, and the range from the lowest to the highest round; warm-up left out.{only}",
            [plot for workload in workloads for plot in _time(run, summary.settings, workload)],
        ),
        Figure(
            "latency",
            "Latency distribution",
            f"All rounds together: which share of the operations took at most how long. Lower is better.{only}",
            [plot for workload in workloads for plot in _latency(run, summary.settings, workload)],
        ),
        heat.heat_maps(run, summary, workloads),
        *(of_kind(run, summary.settings) for of_kind in FIGURES_OF_KINDS),
        probes.figure(run, summary.settings, workloads),
    ]
    drawn = [replace(figure, plots=[plot for plot in figure.plots if plot.traces]) for figure in found]
    return [figure for figure in drawn if figure.plots]


def _forests(summary: Summary) -> list[Plot]:
    places = dict.fromkeys(row.place for row in summary.rows)
    return [plot for number, place in enumerate(places) if (plot := _forest(summary, place, f"differences-{number}"))]


def _forest(summary: Summary, place: str, plot_id: str) -> Plot | None:
    shown = [c for c in summary.comparisons if c.place == place and c.judgement.ratio is not None]
    if not shown:
        return None
    several = len(summary.settings) > 2
    names = [
        f"{literal(label(c.metric))}<br>{literal(c.setting)}" if several else literal(label(c.metric)) for c in shown
    ]
    margin = 1 + summary.same_within
    plot = Plot(
        plot_id,
        f"{place}, ratio to {summary.baseline}",
        f"Forest plot of {len(shown)} ratios to {summary.baseline} on {place}; the verdicts state the same in words.",
        "ratio to the baseline",
        [""],
        height=FRAME_HEIGHT_PX + 20 + FOREST_ROW_PX * len(shown) * (3 if several else 2) // 2,
        x_axis={"type": "log", "tickformat": "~r", "nticks": 6},
        y_axis={"autorange": "reversed", "tickvals": list(range(len(shown))), "ticktext": names, "showgrid": False},
        layout_extra={
            "shapes": [
                _upright("rect", 1 / margin, margin, fillcolor=GREY, opacity=0.22, line={"width": 0}),
                _upright("line", 1, 1, line={"color": GREY, "width": 1}),
            ]
        },
    )
    for verdict, colour in VERDICT_COLOURS.items():
        rows = [(row, comparison) for row, comparison in enumerate(shown) if comparison.judgement.verdict == verdict]
        if rows:
            plot.add(_forest_trace(verdict, colour, rows))
    return plot


def _upright(kind: str, left: float, right: float, **more: object) -> JsonObject:
    """A shape from the bottom of the plot to its top."""
    return {
        "type": kind,
        "x0": left,
        "x1": right,
        "xref": "x",
        "yref": "paper",
        "y0": 0,
        "y1": 1,
        "layer": "below",
        **more,
    }


def _forest_trace(verdict: str, colour: str, rows: list[tuple[int, Comparison]]) -> JsonObject:
    judgements = [comparison.judgement for _, comparison in rows]
    ratios = [_shown_ratio(judgement.ratio) for judgement in judgements]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": verdict,
        "x": ratios,
        "y": [row for row, _ in rows],
        "marker": {"color": colour, "size": 10},
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [_shown_ratio(j.ci_high) - ratio for j, ratio in zip(judgements, ratios, strict=True)],
            "arrayminus": [ratio - _shown_ratio(j.ci_low) for j, ratio in zip(judgements, ratios, strict=True)],
            "color": colour,
            "thickness": 2.5,
            "width": 5,
        },
        "text": [f"{change_with_interval(judgement)}, {counted(judgement.n, 'round')}" for judgement in judgements],
        "hovertemplate": "%{y}<br>%{text}<extra></extra>",
    }


def _shown_ratio(ratio: float | None) -> float:
    """Within what the axis can show."""
    return min(max(ratio or 1.0, 1 / RATIO_SHOWN_MAX), RATIO_SHOWN_MAX)


def _rounds(run: RunData, settings: list[str], workload: str) -> Iterator[Plot]:
    import polars as pl

    rates = run.metrics.filter(
        (pl.col("workload") == workload)
        & (pl.col("metric") == "rate_bytes_per_s")
        & pl.col("op").is_in(TRANSFERS)
        & pl.col("value").is_not_null()
    )
    for number, (phase, of_phase) in enumerate(by(rates, "phase")):
        ops = by(of_phase, "op")
        scales = [scale_for("bytes/s", of_op["value"].to_list()) for _, of_op in ops]
        plot = Plot(
            plot_id("rounds", run, workload, number),
            caption(workload, phase),
            f"Throughput of each setting in each round of {workload}; the table above has the typical values.",
            "round",
            [f"{op}, {scale.suffix}" for (op, _), scale in zip(ops, scales, strict=True)],
            x_axis={"dtick": 1} if of_phase["round"].n_unique() <= 12 else {},
            y_axis={"rangemode": "tozero"},
        )
        for panel, ((_, of_op), scale) in enumerate(zip(ops, scales, strict=True)):
            for setting, rows in by_setting(of_op, settings):
                rows = rows.sort("round")
                y = (rows["value"] / scale.divisor).to_list()
                x = (rows["round"] + 1).to_list()
                line = series(setting, settings.index(setting), x, y, mode="lines+markers", showlegend=panel == 0)
                plot.add(line, panel)
        yield plot


def _time(run: RunData, settings: list[str], workload: str) -> Iterator[Plot]:
    import polars as pl

    rates = _interval_rates(run.intervals(workload=workload).filter(pl.col("job") == "all"))
    for number, (phase, of_phase) in enumerate(by(rates, "phase")):
        width_s = max(of_phase["length_s"].to_list())
        binned = (
            of_phase.with_columns(((pl.col("start_ns") / 1e9 / width_s + 1e-9).floor() * width_s).alias("start_s"))
            .group_by("op", "setting", "round", "start_s")
            .agg(pl.col("value").mean())
            .group_by("op", "setting", "start_s")
            .agg(pl.col("value").median(), pl.col("value").min().alias("low"), pl.col("value").max().alias("high"))
            .sort("op", "start_s")
        )
        ops = by(binned, "op")
        scales = [scale_for("bytes/s", of_op["value"].to_list()) for _, of_op in ops]
        plot = Plot(
            plot_id("time", run, workload, number),
            caption(workload, phase),
            f"Throughput of each setting over the time of a trial of {workload}, in intervals of {width_s:.3g} s.",
            "seconds since the start",
            [f"{op}, {scale.suffix}" for (op, _), scale in zip(ops, scales, strict=True)],
            y_axis={"rangemode": "tozero"},
        )
        for panel, ((_, of_op), scale) in enumerate(zip(ops, scales, strict=True)):
            add_lines_over_time(plot, panel, of_op, scale.divisor, settings)
        yield plot


def _interval_rates(intervals: polars.DataFrame) -> polars.DataFrame:
    """Rates of reads and writes with their interval's length, without a last interval that was cut short."""
    import polars as pl

    lengths = intervals.filter(pl.col("metric") == "length_s").select(
        "trial", "phase", "start_ns", pl.col("value").alias("length_s")
    )
    rates = intervals.filter((pl.col("metric") == "rate_bytes_per_s") & pl.col("op").is_in(TRANSFERS))
    whole = pl.col("length_s") > pl.col("length_s").max().over("trial", "phase") / 2
    return rates.join(lengths, on=["trial", "phase", "start_ns"], maintain_order="left").filter(whole)


def _latency(run: RunData, settings: list[str], workload: str) -> Iterator[Plot]:
    counts = run.latency_counts(workload)
    for number, (phase, of_phase) in enumerate(by(counts, "phase")):
        ops = sorted(by(of_phase, "op"))
        plot = Plot(
            plot_id("latency", run, workload, number),
            caption(workload, phase),
            f"Latency percentiles of each setting on {workload}; the table above has the main ones.",
            "share of operations",
            [f"{op} latency" for op, _ in ops],
            x_axis={
                "tickvals": [_nines(percentile / 100) for percentile in PERCENTILES],
                "ticktext": [f"{percentile:g} %" for percentile in PERCENTILES],
            },
            y_axis={"type": "log", **_time_ticks(of_phase["latency_ns"].to_list())},
        )
        for panel, (_, of_op) in enumerate(ops):
            for setting, rows in by_setting(of_op, settings):
                plot.add(_percentiles(setting, settings.index(setting), rows, showlegend=panel == 0), panel)
        yield plot


def _percentiles(setting: str, place: int, rows: polars.DataFrame, *, showlegend: bool) -> JsonObject:
    """The cumulated histogram; the slowest operation stands at the share that it leaves below it."""
    total = float(rows["count"].sum())
    shares = [min(share, 1 - 0.5 / total) for share in (rows["count"].cum_sum() / total).to_list()]
    points = _apart(
        [
            (round(_nines(share), 3), latency_ns)
            for share, latency_ns in zip(shares, rows["latency_ns"].to_list(), strict=True)
        ]
    )
    text = [f"{(1 - 10**-nines) * 100:.5g} % within {duration(ns)}" for nines, ns in points]
    line = series(setting, place, [nines for nines, _ in points], [ns for _, ns in points], showlegend=showlegend)
    return line | {"text": text, "hovertemplate": f"%{{text}}<extra>{literal(setting)}</extra>"}


def _apart(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The first and the last, and of those between the ones that an eye distinguishes: a histogram has thousands."""
    kept = points[:1]
    for nines, latency_ns in points[1:-1]:
        if nines - kept[-1][0] >= NINES_APART or latency_ns > kept[-1][1] * LATENCY_APART:
            kept.append((nines, latency_ns))
    return kept + points[1:][-1:]


def _nines(share: float) -> float:
    """0.9 -> 1, 0.99 -> 2: equal steps for each nine."""
    return -math.log10(1 - share)


def _time_ticks(latencies_ns: list[float]) -> JsonObject:
    """A tick per decade."""
    lowest, highest = (math.log10(max(1.0, end(latencies_ns))) for end in (min, max))
    ticks = [10.0**decade for decade in range(math.floor(lowest), math.ceil(highest) + 1)]
    return {"tickvals": ticks, "ticktext": [duration(tick) for tick in ticks]}
