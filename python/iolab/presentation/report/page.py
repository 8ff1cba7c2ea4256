"""The page: what the template shows, in its order."""

from __future__ import annotations

import io
import json
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

from iolab.base.errors import InputError
from iolab.base.plain_text import counted, visible
from iolab.base.strict_json import JsonObject
from iolab.base.version import VERSION
from iolab.domain.explain import causes, explain
from iolab.domain.explain.inputs import of_run
from iolab.domain.summary import Summary, summarise
from iolab.files.store import RunData
from iolab.presentation.report import probes
from iolab.presentation.report.figures import figures
from iolab.presentation.report.forest import forest
from iolab.presentation.report.plot import Figure
from iolab.presentation.table import axis, cause, csv
from iolab.presentation.table.alone import alone
from iolab.presentation.table.conclusions import conclusions
from iolab.presentation.table.explanation import explanations
from iolab.presentation.table.grid import GridRow, grid
from iolab.presentation.table.words import rounds_of_both, sentences, tally
from iolab.presentation.terminal import console
from iolab.studies.reproduction.evidence import trust

REMARKS_SHOWN_MAX = 50
WHY_WIDTH = 100
CSV_BYTES_MAX = 200_000
"""Before base64, which makes a third more of it: the page stays below 2 MB."""

IN_ROUNDS = (
    "Each round runs every workload under every setting once, in an order shuffled anew for each round, so that what "
    "drifts in the machine falls on all settings alike. Settings are compared within rounds."
)
UNPAIRED = (
    "What is compared was measured one after the other, not in turns: its rounds are not paired, and what drifts in "
    "the machine is in the differences."
)
HOW = (
    "The ratio to the baseline comes with an interval that covers the true ratio in 95 % of cases. Same means that the "
    "whole interval lies within the margin; a difference means that it excludes 1, with the share of false "
    "discoveries over all comparisons held to 5 %; anything else is undecided. A rate or a time is then faster or "
    "slower; another metric is better or worse, or higher or lower if neither direction is better.",
    "Latency counts from submission to completion; in an open loop from the time at which the operation was due, so "
    "that a stall is not forgotten. Warm-up and a transient at the start are left out of the metrics.",
)


def render(run: RunData, metrics: Sequence[str] = ()) -> str:
    """The report as one HTML document, scripts included."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("iolab.presentation.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        finalize=_shown,
    )
    summary = summarise(run, metrics=metrics)
    return environment.get_template("page.html.j2").render(
        page=_page(run, summary, metrics),
        figures=[figure_json(figure) for figure in figures(run, summary)],
        style=Markup(asset("page.css")),
        script=Markup(asset("page.js")),
        # Its strings hold a few control characters as they are; written out, they mean the same to a browser.
        plotly_js=Markup(visible(asset("plotly-cartesian.min.js"))),
    )


def _page(run: RunData, summary: Summary, metrics: Sequence[str]) -> JsonObject:
    why = _why(run, metrics)
    swept = [_unbroken(text) for text in axis.sentences(summary)]
    return {
        "version": VERSION,
        "title": summary.title,
        "facts": list(_facts(run, summary)),
        "warnings": [*summary.problems, *summary.doubts, *rounds_of_both(summary.comparisons)],
        "tally": tally(summary.comparisons).capitalize(),
        "baseline": summary.baseline,
        "same_within": f"{summary.same_within * 100:.3g} %",
        "forest": forest(summary.comparisons),
        "conclusions": [
            {"verdict": one.verdict, "sentence": _unbroken(one.text)} for one in conclusions(summary.comparisons)
        ],
        "swept": swept,
        "alone": [_unbroken(text) for text in (() if swept else alone(summary))],
        "rules": [_unbroken(text) for text in summary.rules],
        "verdicts": [
            {"verdict": comparison.judgement.verdict, "sentence": _unbroken(text)}
            for comparison, text in sentences(summary)
        ],
        "settings": summary.settings,
        "tables": [
            {"workload": workload, "rows": [_row(row, summary) for row in rows]}
            for workload, rows in grid(summary).items()
        ],
        "probe_tables": probes.tables(run),
        "why": why,
        "why_first": _first_paragraph(why) if why else [],
        "csv": _csv(run, metrics),
        "remarks": _remarks(run),
        "machine": [*_trust(run), *main_facts(run.machine)],
        "machine_in_full": list(all_facts(run.machine)),
        "experiment": run.experiment_text,
        "how": (UNPAIRED if any(one.pairing == "none" for one in summary.comparisons) else IN_ROUNDS, *HOW),
        "source": str(run.path),
    }


def _trust(run: RunData) -> Iterator[tuple[str, str]]:
    """How far the mechanisms of a simulated run were ever compared with a measurement."""
    if words := "; ".join(trust(run)):
        yield "trust", words


def _why(run: RunData, metrics: Sequence[str]) -> str | None:
    """What `iolab explain --all` prints; None if nothing differs."""
    try:
        inputs = of_run(run, metrics, None)
    except InputError:
        return None
    found, explained = causes(inputs.frame, inputs.results, inputs.changes), explain(inputs.frame, inputs.results)
    if all(one.why_not for one in explained):
        return None
    text = io.StringIO()
    page = console(text, width=WHY_WIDTH, color_system=None)
    page.print(cause.causes(found))
    page.print(explanations(explained))
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()).strip("\n")


def _first_paragraph(why: str) -> list[str]:
    """The sentences that an explanation begins with, unbroken; how one thing led to another on a line of its own."""
    lines = why.split("\n\n", 1)[0].splitlines()
    prose = [line.strip() for line in lines if "→" not in line]
    return [" ".join(prose), *(line.strip() for line in lines if "→" in line)]


def _csv(run: RunData, metrics: Sequence[str]) -> Any:
    """A data address of every trial's metrics as CSV; of the compared ones if all are too many, else None."""
    from markupsafe import Markup

    for keys in ((), [*dict.fromkeys(row.metric for row in summarise(run, metrics=metrics).rows)]):
        try:
            content = csv.render(run, keys).encode()
        except InputError:
            return None
        if len(content) <= CSV_BYTES_MAX:
            return Markup(f"data:text/csv;charset=utf-8;base64,{b64encode(content).decode()}")
    return None


def _facts(run: RunData, summary: Summary) -> Iterator[str]:
    # 0: the source of an imported run does not report it.
    if starts := [start for start in run.trials["started_unix_ns"].drop_nulls() if start]:
        yield datetime.fromtimestamp(min(starts) / 1e9, UTC).strftime("%Y-%m-%d %H:%M UTC")
    for count, what in ((summary.rounds, "round"), (summary.trials, "trial"), (len(summary.settings), "setting")):
        yield counted(count, what)
    yield f"machine {summary.machine_in_words}"
    kernel = run.machine.get("kernel")
    if isinstance(kernel, Mapping) and isinstance(kernel.get("release"), str):
        yield f"Linux {kernel['release']}"


def _row(row: GridRow, summary: Summary) -> JsonObject:
    helps = {one.metric: one.help for one in summary.rows}
    return {"key": row.metric, "help": helps[row.metric], "label": row.label, "unit": row.unit, "cells": row.cells}


def figure_json(figure: Figure) -> JsonObject:
    """As the template's macro `section` takes it."""
    plots = [
        {
            "id": plot.id,
            "caption": plot.caption,
            "description": plot.description,
            "height": plot.height,
            "json": _script_json(plot.figure()),
            "fine": None if plot.fine is None else _script_json(plot.fine),
            "requests": None if plot.requests is None else _script_json(plot.requests),
        }
        for plot in figure.plots
    ]
    return {"id": figure.id, "heading": figure.heading, "explanation": figure.explanation, "plots": plots}


def _script_json(payload: JsonObject) -> Any:
    """JSON that can stand inside a script element, whatever names it holds."""
    from markupsafe import Markup

    text = json.dumps(payload, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))


def _remarks(run: RunData) -> list[dict[str, str]]:
    """Faults and notes, the same text once with how often it was said."""
    import polars as pl

    grouped = (
        run.remarks()
        .group_by("what", "text", "workload", maintain_order=True)
        .agg(pl.col("setting").unique(maintain_order=True), pl.col("trial").n_unique().alias("trials"))
        .sort("what", maintain_order=True)
    )
    found = []
    for what, text, workload, settings, trials in grouped.head(REMARKS_SHOWN_MAX).iter_rows():
        where = f"{workload}, {', '.join(settings)}; {counted(trials, 'trial')}"
        found.append({"kind": what, "text": text, "where": where})
    if grouped.height > REMARKS_SHOWN_MAX:
        more = grouped.height - REMARKS_SHOWN_MAX
        found.append({"kind": "more", "text": f"{more} further in the records", "where": ""})
    return found


def _shown(value: Any) -> Any:
    """Nothing that a terminal obeys, in names too: `-o -` may print on one."""
    return visible(value.replace("\r\n", "\n")) if type(value) is str else value


def _unbroken(text: str) -> str:
    """With no line break between a number and its percent sign."""
    return text.replace(" %", "\u00a0%")


def asset(name: str) -> str:
    """A text file of this package."""
    return (files("iolab.presentation.report") / name).read_text()


MAIN_FACTS = (
    "model.name",
    "model.title",
    "kernel.release",
    "kernel.distribution",
    "cpu.model",
    "cpu.count_online",
    "memory.total",
    "virtualization.machine",
    "target.asked_for.kind",
    "target.place",
    "target.filesystem.type",
    "target.device.name",
    "target.device.model",
)
"""What a reader asks first."""


def main_facts(machine: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Name and text of the facts that a reader asks about first, those that there are."""
    rows = dict(all_facts(machine))
    return [(name, rows[name]) for name in MAIN_FACTS if name in rows]


def all_facts(machine: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Nested tables as rows `cpu.model`; what could not be read, `{"absent": why}`, is left out."""
    for key, item in machine.items():
        name = f"{prefix}{key}"
        if isinstance(item, Mapping):
            if set(item) != {"absent"}:
                yield from all_facts(item, f"{name}.")
        elif isinstance(item, list):
            if item:
                yield name, "; ".join(part if isinstance(part, str) else json.dumps(part) for part in item)
        elif item is not None and item != "":
            yield name, str(item)
