"""The page of `iolab compare`: what differs between the arms, then each comparison with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from itertools import groupby
from pathlib import Path

from iolab.base import output_file
from iolab.base.plain_text import visible
from iolab.base.quantity import ABSENT, scale_for
from iolab.base.strict_json import JsonObject
from iolab.base.version import VERSION
from iolab.domain.comparison import Comparison
from iolab.domain.metric import describe
from iolab.presentation.report.forest import forest
from iolab.presentation.table.conclusions import conclusions
from iolab.presentation.table.words import change_with_interval, label, tally, verdict_with_rounds


def write(
    path: Path,
    title: str,
    about: Sequence[str],
    comparisons: Sequence[Comparison],
    problems: Sequence[str],
    inputs: Sequence[Path] = (),
    *,
    swept: Sequence[str] = (),
) -> None:
    """Writes the page to `path`, as `iolab.base.output_file` does, and over none of `inputs`. `about`: what stands
    above the numbers, a line each; `swept`: what sweeps come to. Errors as of that."""
    output_file.write(path, render(title, about, comparisons, problems, swept=swept).encode(), inputs)


def render(
    title: str,
    about: Sequence[str],
    comparisons: Sequence[Comparison],
    problems: Sequence[str],
    *,
    answer: Sequence[str] = (),
    swept: Sequence[str] = (),
) -> str:
    """The page as HTML; it opens without a network and has no script. A search without runs has its `answer` alone."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("iolab.presentation.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        finalize=lambda value: visible(value) if type(value) is str else value,
    )
    return environment.get_template("comparison.html.j2").render(
        title=title,
        version=VERSION,
        style=Markup((files("iolab.presentation.report") / "page.css").read_text()),
        about=about,
        answer=answer,
        swept=swept,
        tally=tally(comparisons).capitalize(),
        conclusions=conclusions(comparisons),
        forest=forest(comparisons),
        against=", ".join(dict.fromkeys(one.against for one in comparisons)),
        blocks=[
            {"place": place or "Results", "rows": [_row(one) for one in found]}
            for place, found in groupby(comparisons, key=lambda one: one.place)
        ],
        notes=list(dict.fromkeys(note for one in comparisons for note in one.notes)),
        problems=problems,
    )


def _row(comparison: Comparison) -> JsonObject:
    judgement, metric = comparison.judgement, describe(comparison.metric)
    scale = scale_for(metric.unit, (judgement.baseline, judgement.candidate))
    return {
        "key": comparison.metric,
        "help": metric.help,
        "label": label(comparison.metric),
        "unit": scale.suffix,
        "against": comparison.against,
        "setting": comparison.setting,
        "baseline": scale.number(judgement.baseline),
        "candidate": scale.number(judgement.candidate),
        "n": judgement.n if judgement.n_baseline is None else f"{judgement.n_baseline}, {judgement.n}",
        "change": change_with_interval(judgement) or ABSENT,
        "word": judgement.verdict,
        "verdict": verdict_with_rounds(judgement),
    }
