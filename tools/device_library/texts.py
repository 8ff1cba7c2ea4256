"""The texts of the library: a device file for each model, and the table of the page."""

import textwrap
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from classes import class_table
from fitting import FITTED, HELD_BACK, LATENCIES, Fitted, apart, by_little, of_class
from iolab.studies.calibrate.device_file import comment_lines, table_text
from runs import SOURCE, Model, geometric_mean

Json = dict[str, Any]
UNITS = {"rbps": "MB/s", "wbps": "MB/s", "rlat_us": "ms", "wlat_us": "ms"}
SCALES = {"MB/s": 1e6, "ms": 1e3}


def device_text(found: Fitted, models: Sequence[Model]) -> str:
    """The device's file."""
    model = found.model
    lines = [
        f"{model.name}, {model.gb} GB, {found.kind.name}, here of {_gb(found)} GB.",
        f'source = "{SOURCE}; result{"s" if len(model.results) > 1 else ""} {", ".join(model.results)}"',
        *([f"odd: {model.odd}"] if model.odd else []),
        f"fitted, to {'; '.join(_measured(model, name) for name in FITTED)}: {', '.join(_keys(found))}",
        "from the wlat of the class's other models: firmware.stall.ns, as a share of write_ns",
        *([f"not shown by these, and so of the class: {', '.join(found.kept)}"] if found.kept else []),
        f"held back, by what factor the simulated figure is off: {_factors(found, models)}",
        f"estimates (E): all else, of the class, {found.kind.like}; a die of 32 GB",
    ]
    own = {"kind": "flash", "like": found.kind.like, **beyond(found.device, class_table(found.kind))}
    return "\n".join(line for comment in lines for line in comment_lines(comment)) + "\n\n" + table_text(own)


def beyond(device: Json, other: Json) -> Json:
    """What the device has otherwise."""
    return {
        key: beyond(value, other[key]) if isinstance(value, dict) and key in other else value
        for key, value in device.items()
        if value != other.get(key)
    }


def page_table(library: Sequence[Fitted], models: Sequence[Model]) -> str:
    """The page's table and its sums."""
    return "\n".join(_page_lines(library, models)) + "\n"


def _page_lines(library: Sequence[Fitted], models: Sequence[Model]) -> Iterator[str]:
    counted = [found for found in library if not found.model.odd]
    for name, some in (("all", library), (f"without the {len(library) - len(counted)} odd ones", counted)):
        yield from textwrap.wrap(f"- {len(some)} models, {name}: {_sums(some, models)}", 100, subsequent_indent="  ")
    yield ""
    yield "| figure | device | mean of the class | Little's law |"
    yield "| --- | ---: | ---: | ---: |"
    for figure in HELD_BACK:
        factors = [found.factor(figure) for found in counted]
        means = [_off_class(found, models, figure) for found in counted]
        laws = [_off_little(found, figure) for found in counted] if figure in LATENCIES else []
        yield f"| `{figure}` | {median(factors):.2f} | {median(means):.2f} | {_median(laws)} |"
    yield ""
    heads = [f"`{figure}`" for figure in HELD_BACK]
    yield f"| device | {' | '.join(heads)} | device | mean of the class | Little's law |"
    yield f"| --- |{' ---: |' * (len(HELD_BACK) + 3)}"
    for found in library:
        own = [found.factor(figure) for figure in HELD_BACK]
        means = [_off_class(found, models, figure) for figure in HELD_BACK]
        laws = [_off_little(found, figure) for figure in LATENCIES]
        odd = " (odd)" if found.model.odd else ""
        cells = [*own, geometric_mean(own), geometric_mean(means), geometric_mean(laws)]
        yield f"| `{found.model.file}`{odd} | {' | '.join(f'{one:.2f}' for one in cells)} |"


def _sums(some: Sequence[Fitted], models: Sequence[Model]) -> str:
    factors = [found.factor(figure) for found in some for figure in HELD_BACK]
    means = [_off_class(found, models, figure) for found in some for figure in HELD_BACK]
    better = sum(_mean_factor(found) < _mean_off_class(found, models) for found in some)
    within = sum(factor <= 1.25 for factor in factors) / len(factors)
    return (
        f"typically x{median(factors):.2f}, {within:.0%} within 25 %; the mean of the class x{median(means):.2f}; "
        f"the device is better on {better}"
    )


def _mean_factor(found: Fitted) -> float:
    return geometric_mean([found.factor(figure) for figure in HELD_BACK])


def _mean_off_class(found: Fitted, models: Sequence[Model]) -> float:
    return geometric_mean([_off_class(found, models, figure) for figure in HELD_BACK])


def _off_class(found: Fitted, models: Sequence[Model], figure: str) -> float:
    return apart(of_class(found.model, list(models), figure), found.model.figures[figure])


def _off_little(found: Fitted, figure: str) -> float:
    return apart(by_little(found.model, figure), found.model.figures[figure])


def _median(values: Sequence[float]) -> str:
    return f"{median(values):.2f}" if values else ""


def _gb(found: Fitted) -> int:
    geometry = found.device["geometry"]
    bytes_: int = geometry["page_bytes"] * geometry["pages_per_block"] * geometry["blocks_per_plane"]
    for key in ("planes_per_die", "dies_per_channel", "channels"):
        bytes_ *= geometry[key]
    return round(bytes_ / 1e9)


def _keys(found: Fitted) -> list[str]:
    return [f"{name} = {value}" for name, value in found.keys.items() if name not in found.kept]


def _measured(model: Model, figure: str) -> str:
    unit = UNITS.get(figure, "/s")
    return f"{figure} = {model.figures[figure] / SCALES.get(unit, 1):.4g} {unit}"


def _factors(found: Fitted, models: Sequence[Model]) -> str:
    parts = []
    for figure in HELD_BACK:
        nulls = [f"mean of the class {_off_class(found, models, figure):.2f}"]
        nulls += [f"Little's law {_off_little(found, figure):.2f}"] if figure in LATENCIES else []
        parts.append(f"{_measured(found.model, figure)}: {found.factor(figure):.2f} ({', '.join(nulls)})")
    return "; ".join(parts)
