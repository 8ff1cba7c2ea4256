"""Who called whom on guest machines that followed calls, as a flame graph for each setting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from iolab.base.errors import InputError
from iolab.domain.chains import Chain, means, per_operation, with_callers
from iolab.domain.phase_record import InstructionsObservation
from iolab.domain.probe.instructions import NAME
from iolab.files.store import RunData
from iolab.presentation.report.plot import Figure, Plot, caption, literal
from iolab.presentation.table.probe_observations import PlaceObservations, observations_of

ROW_PX = 17
FRAME_PX = 110
SHOWN_FROM = 0.002
"""Narrower frames, as a share of all, are left out."""
LABELLED_FROM = 0.03
PLAIN, DEARER, CHEAPER = (125, 135, 148), (214, 69, 65), (57, 135, 201)
WHOLLY = 0.1
"""A frame that changed by this share of its size has the full colour."""


def figure(run: RunData, settings: Sequence[str]) -> Figure:
    """Without plots if no calls were followed."""
    return Figure(
        "flames",
        "Who called whom",
        "Instructions per operation: a frame is as wide as what a function and all that it called took, and lies above "
        "its caller. Against the baseline, red frames became more expensive and blue ones cheaper.",
        list(_plots(run, settings)),
    )


def _plots(run: RunData, settings: Sequence[str]) -> Iterator[Plot]:
    try:
        places: list[PlaceObservations[InstructionsObservation]] = observations_of(run, NAME)
        baseline = run.experiment.compare.baseline
    except InputError:
        return
    of = {(one.workload, one.phase, one.setting): _chains(one.observations) for one in places}
    for number, ((workload, phase, setting), chains) in enumerate(of.items()):
        if chains and setting in settings:
            before = of.get((workload, phase, baseline)) if setting != baseline else None
            title = f"{caption(workload, phase)}: {setting}{f' against {baseline}' if before else ''}"
            yield _flames(f"flames-{number}", title, with_callers(chains), with_callers(before) if before else None)


def _chains(observations: Sequence[InstructionsObservation]) -> dict[Chain, float]:
    return {chain: amount for chain, amount in means([per_operation(one) for one in observations]).items() if chain}


@dataclass(frozen=True)
class _Frame:
    chain: Chain
    left: float
    width: float


def _frames(whole: Mapping[Chain, float]) -> list[_Frame]:
    """From left to right by name, each above its caller."""
    below: dict[Chain, list[Chain]] = {}
    for chain in sorted(whole):
        below.setdefault(chain[:-1], []).append(chain)
    narrowest = SHOWN_FROM * sum(whole[chain] for chain in below.get((), []))
    found: list[_Frame] = []

    def place(chains: Sequence[Chain], left: float) -> None:
        for chain in chains:
            if whole[chain] >= narrowest:
                found.append(_Frame(chain, left, whole[chain]))
                place(below.get(chain, []), left)
            left += whole[chain]

    place(below.get((), []), 0.0)
    return found


def _flames(id_: str, title: str, whole: Mapping[Chain, float], before: Mapping[Chain, float] | None) -> Plot:
    frames = _frames(whole)
    total = sum(amount for chain, amount in whole.items() if len(chain) == 1)
    depth = max(len(frame.chain) for frame in frames)
    widest = max(frames, key=lambda frame: (len(frame.chain) > 1, frame.width))
    plot = Plot(
        id_,
        title,
        f"{len(frames)} frames, up to {depth} calls deep; {total:,.0f} instructions per operation in all, the widest "
        f"call {widest.chain[-1]} with {widest.width:,.0f}.",
        "instructions per operation",
        [""],
        height=FRAME_PX + ROW_PX * depth,
        y_axis={"showticklabels": False, "ticks": "", "showgrid": False},
        layout_extra={"bargap": 0.04, "barmode": "overlay"},
    )
    changes = [_change(frame, before) for frame in frames]
    plot.add(
        {
            "type": "bar",
            "orientation": "h",
            "base": [round(frame.left, 2) for frame in frames],
            "x": [round(frame.width, 2) for frame in frames],
            "y": [len(frame.chain) for frame in frames],
            "text": [literal(frame.chain[-1]) if frame.width >= LABELLED_FROM * total else "" for frame in frames],
            "textposition": "inside",
            "insidetextanchor": "start",
            "textangle": 0,
            "constraintext": "none",
            "cliponaxis": True,
            "marker": {"color": [_colour(frame, change) for frame, change in zip(frames, changes, strict=True)]},
            "customdata": [_label(frame, total, change) for frame, change in zip(frames, changes, strict=True)],
            "hovertemplate": "%{customdata}<extra></extra>",
            "showlegend": False,
        }
    )
    return plot


def _change(frame: _Frame, before: Mapping[Chain, float] | None) -> float | None:
    return None if before is None else frame.width - before.get(frame.chain, 0.0)


def _colour(frame: _Frame, change: float | None) -> str:
    share = min(1.0, abs(change or 0.0) / (WHOLLY * frame.width))
    towards = DEARER if (change or 0.0) > 0 else CHEAPER
    mixed = [round(plain + (full - plain) * share) for plain, full in zip(PLAIN, towards, strict=True)]
    return f"rgb({mixed[0]},{mixed[1]},{mixed[2]})"


def _label(frame: _Frame, total: float, change: float | None) -> str:
    changed = "" if change is None else f", {change:+,.1f}"
    return literal(f"{frame.chain[-1]}: {frame.width:,.1f} ({frame.width / total:.1%}){changed}")
