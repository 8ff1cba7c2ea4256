"""The functions of guest machines whose cost differs from the baseline's, as bars that add up to the difference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from iolab.base.errors import InputError
from iolab.base.plain_text import counted
from iolab.domain.phase_record import InstructionsObservation
from iolab.domain.probe.instructions import NAME
from iolab.domain.symbol_changes import compared
from iolab.domain.symbols import Difference
from iolab.files.store import RunData
from iolab.presentation.report.plot import Figure, Plot, caption, colour_of, literal
from iolab.presentation.table.probe_observations import PlaceObservations, observations_of

BARS_MAX = 20
BAR_PX = 22
CHANGE_MIN = 0.5
"""Instructions per operation; smaller changes are summed up."""
OTHERS = "all others"


def figure(run: RunData, settings: Sequence[str]) -> Figure:
    """Without plots if no instructions were counted, or nothing is compared."""
    return Figure(
        "functions",
        "Which functions became more expensive",
        "Instructions per operation that a function takes more or fewer than under the baseline; the bars add up to "
        "the difference of the totals. Full colour: its rounds lie further apart between the settings than among "
        "themselves.",
        list(_plots(run, settings)),
    )


def _plots(run: RunData, settings: Sequence[str]) -> Iterator[Plot]:
    try:
        places: list[PlaceObservations[InstructionsObservation]] = observations_of(run, NAME)
        baseline = run.experiment.compare.baseline
    except InputError:
        return
    by_place = {(one.workload, one.phase, one.setting): one.observations for one in places}
    for number, ((workload, phase, setting), observations) in enumerate(by_place.items()):
        before = by_place.get((workload, phase, baseline))
        if setting != baseline and setting in settings and before is not None:
            found = compared(before, observations)
            title = f"{caption(workload, phase)}: {setting} against {baseline}"
            yield _bars(f"functions-{number}", title, found, settings.index(setting))


def _bars(id_: str, title: str, found: Sequence[Difference], place: int) -> Plot:
    shown = [one for one in found if abs(one.change) >= CHANGE_MIN][:BARS_MAX]
    rest = sum(one.change for one in found if one not in shown)
    names = [f"{one.symbol} [{one.module}]" if one.module else one.symbol for one in shown] + [OTHERS]
    changes = [one.change for one in shown] + [rest]
    plot = Plot(
        id_,
        title,
        f"{counted(len(shown), 'function')}, the largest change first; "
        f"in all {sum(changes):+,.1f} instructions per operation.",
        "instructions per operation, change",
        [""],
        height=BAR_PX * (len(names) + 6),
        y_axis={"autorange": "reversed", "ticks": ""},
    )
    plot.add(
        {
            "type": "bar",
            "orientation": "h",
            "x": [round(change, 2) for change in changes],
            "y": [literal(name) for name in names],
            "marker": {"color": colour_of(place), "opacity": [*(1.0 if one.is_named else 0.45 for one in shown), 0.45]},
            "hovertemplate": "%{y}: %{x:+,.1f}<extra></extra>",
            "showlegend": False,
        }
    )
    return plot
