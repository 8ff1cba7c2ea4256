"""The report's bars and flame graphs of functions of guest machines (presentation/report)."""

from types import SimpleNamespace
from typing import Any

import pytest
from iolab.base.errors import InputError
from iolab.presentation.report import flames, functions
from iolab.presentation.table.probe_observations import PlaceObservations

RUN: Any = SimpleNamespace(experiment=SimpleNamespace(compare=SimpleNamespace(baseline="old")))


def observed(**amounts: int) -> dict[str, object]:
    """An observation of one operation."""
    names = list(amounts)
    return {
        "operations": 1,
        "user": 10,
        "symbols": names,
        "modules": ["" for _ in names],
        "instructions": list(amounts.values()),
        "calls": [1 for _ in names],
    }


def test_the_bars_add_up_to_the_difference_and_the_sure_ones_stand_out(monkeypatch: pytest.MonkeyPatch) -> None:
    old = [observed(submit=100, complete=50), observed(submit=101, complete=60)]
    new = [observed(submit=150, complete=55), observed(submit=151, complete=58)]
    places = [PlaceObservations("reads", "old", "main", old), PlaceObservations("reads", "new", "main", new)]
    monkeypatch.setattr(functions, "observations_of", lambda run, probe: places)
    (plot,) = functions.figure(RUN, ["old", "new"]).plots
    (bars,) = plot.traces
    assert bars["y"] == ["submit", "complete", "all others"]
    assert bars["x"] == [50.0, 1.5, 0]
    assert bars["marker"]["opacity"][:2] == [1.0, 0.45]


def test_a_run_that_counts_nothing_has_no_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(run: object, probe: str) -> list[PlaceObservations[Any]]:
        raise InputError("the probe instructions was off")

    monkeypatch.setattr(functions, "observations_of", nothing)
    assert functions.figure(RUN, ["old", "new"]).plots == []


def test_a_frame_lies_above_its_caller_and_is_as_wide_as_what_it_called(monkeypatch: pytest.MonkeyPatch) -> None:
    def followed(helper: int) -> dict[str, object]:
        chains = {"functions": ["[user mode]", "entry", "helper"], "callers": [0, 0, 1]}
        return {**observed(entry=30, helper=helper), "chains": {**chains, "instructions": [10, 30, helper]}}

    places = [
        PlaceObservations("reads", name, "main", [followed(helper)]) for name, helper in (("old", 60), ("new", 70))
    ]
    monkeypatch.setattr(flames, "observations_of", lambda run, probe: places)
    plain, compared = flames.figure(RUN, ["old", "new"]).plots
    (frames,) = plain.traces
    assert (frames["base"], frames["x"], frames["y"]) == ([0.0, 10.0, 10.0], [10, 90, 60], [1, 1, 2])
    (changed,) = compared.traces
    assert compared.caption == "reads: new against old"
    assert changed["customdata"][2] == "helper: 70.0 (63.6%), +10.0"
    assert changed["marker"]["color"][0] != changed["marker"]["color"][2]
