"""The figure of a run that searched among versions: every measurement over the history, and where the changes are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from iolab.base.quantity import scale_for
from iolab.files.store import RunData
from iolab.presentation.report.plot import Figure, Plot, colour_of, literal, series
from iolab.presentation.table.words import label, unit_of
from iolab.studies.run.bisect import CONFIRM_FROM_ROUND, Finding, findings_in


def figure(run: RunData, _settings: Sequence[str]) -> Figure:
    """Without plots if the run is no search, or has no answer yet."""
    return Figure(
        "search",
        "Which version did it",
        "Above, a mark per trial in the order of the versions, those of the search and the fresh rounds that confirm; "
        "the line is the level that the search takes each version for. Below, the probability that the level stepped "
        "between a version and the measured one before it.",
        [_plot(run, found, place) for place, found in enumerate(_findings(run))],
    )


def _findings(run: RunData) -> Iterator[Finding]:
    if run.is_search:
        yield from (found for found in findings_in(run.path) if found.answer.kind != "unknown")


def _plot(run: RunData, found: Finding, place: int) -> Plot:
    now, names = found.search.posterior, [literal(name) for name in found.versions]
    rows = run.metrics.filter(
        (run.metrics["key"] == found.metric) & (run.metrics["workload"] == found.question.workload)
    ).drop_nulls("value")
    scale = scale_for(unit_of(found.metric), rows["value"].to_list())
    plot = Plot(
        f"search-{place}",
        f"{label(found.metric)} of {found.question.workload}",
        f"{label(found.metric)} of every trial over the versions from {names[0]} to {names[-1]}, and the probability "
        "of a change before each.",
        "version",
        [scale.suffix.strip() or "value", "P(changed)"],
        x_axis={"type": "category", "categoryorder": "array", "categoryarray": names},
    )
    for number, (text, fresh) in enumerate((("search", False), ("fresh rounds", True))):
        part = rows.filter((rows["round"] >= CONFIRM_FROM_ROUND) == fresh)
        if len(part):
            values = [value / scale.divisor for value in part["value"].to_list()]
            marks = {"mode": "markers", "x": [literal(name) for name in part["setting"].to_list()]}
            plot.add(series(text, number, [], values) | marks)
    measured = [names[point] for point in now.points]
    plot.add(series("level", 2, [], (now.mean_levels / scale.divisor).tolist()) | {"x": measured})
    shares = now.in_gaps(found.search.margin).tolist()
    bars = {"type": "bar", "name": "P(changed)", "x": measured[1:], "y": shares, "showlegend": False}
    plot.add({**bars, "marker": {"color": colour_of(1)}}, 1)
    return plot
