"""Published figures beside the model's, for people: three lines to a row, published, simulated, error."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from iolab.base.plain_text import counted
from iolab.base.quantity import ABSENT, change
from iolab.presentation.table.distribution import drawn
from iolab.presentation.table.layout import Alternatives, Footnotes
from iolab.presentation.table.plain import SENTENCE_WIDTH_MAX, empty_table
from iolab.presentation.table.scorecard import scorecard
from iolab.presentation.table.words import sentence, unit_of
from iolab.studies.reproduction.as_json import objects
from iolab.studies.reproduction.score import ComparedCell, times
from iolab.studies.reproduction.statements import JudgedStatement, limits

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from iolab.studies.reproduction.cell_role import By
    from iolab.studies.reproduction.options import ChosenOptions, FittedOptions
    from iolab.studies.reproduction.reproduction import ReproducedTable, Reproduction, UncomparedCell

MARKS = {"fit": "fit ", "chosen": "chosen "}
"""Before the errors of cells that are no predictions."""
LINES = ("published", "simulated", "error")


def reproductions(found: Sequence[Reproduction]) -> RenderableType:
    """All tables, what was fitted, and the score of each table and of all."""
    from rich.console import Group

    return Group(
        *(part for one in found for part in _reproduced(one)),
        *scorecard([part for one in found for part in objects(one)]),
    )


def _reproduced(found: Reproduction) -> Iterator[RenderableType]:
    from rich.text import Text

    published = found.published
    yield Text(published.title, style="bold")
    yield _sentences(published.source)
    yield _sentences("; ".join(f"{name}: {text}" for name, text in published.setup.items()))
    for one in found.tables:
        yield from _one(one)
    if found.statements:
        yield _heading(f"{published.name}/claims", "claims of the sources")
        yield from (_statement(one) for one in found.statements)
    for distribution in found.distributions:
        yield _heading(distribution.name, f"{distribution.title} [{distribution.unit}]")
        yield from drawn(distribution)
        for claim in distribution.claims():
            yield _marked(claim.text, met=claim.met)
    if published.fitted:
        yield _sentences("Fitted:", *(_fitted(name, one) for name, one in published.fitted.items()))
    if published.chosen:
        yield _sentences("Chosen:", *(_chosen(name, one) for name, one in published.chosen.items()))
    yield Text()


def _fitted(name: str, one: FittedOptions) -> str:
    return f"● {name}: {one.parameter} = {one.value:.15g} of {one.machine}, to {_cells_of(one)}. {one.why}"


def _chosen(name: str, one: ChosenOptions) -> str:
    return f"● {name}: {one.what}. {one.why} Serves {_cells_of(one)}."


def _cells_of(one: By) -> str:
    return "; ".join(f"{table}: {', '.join(cells)}" for table, cells in one.serves.items())


def _one(found: ReproducedTable) -> Iterator[RenderableType]:
    from rich.console import Group

    table, footnotes = found.table, Footnotes()
    yield _heading(table.name, f"{table.title} [{table.unit}]")
    answers: dict[str, ComparedCell | UncomparedCell] = {one.cell.name: one for one in found.compared}
    answers |= {one.cell.name: one for one in found.not_compared}
    drawings = [
        Group(*(_part(found, columns, answers, footnotes) for columns in _in_parts(table.columns, parts)))
        for parts in range(1, len(table.columns) + 1)
    ]
    yield Alternatives(*drawings)
    if lines := [*footnotes.lines(), *(f"Doubted, {pattern}: {text}" for pattern, text in table.notes.items())]:
        yield _sentences(*lines)
    if null := found.null:
        beside = f"{null.words}: {times(null.factor)} off, the model {times(null.model_factor)}"
        yield _sentences(
            f"{'No skill shown. ' if null.as_good else ''}Null predictor, {beside}, of {counted(null.cells, 'cell')}"
        )
    for claim in found.claims:
        yield _marked(f"{claim.text} (set {claim.date})", met=claim.met)


def _statement(one: JudgedStatement) -> RenderableType:
    """The claim, and below it the verdict in words."""
    from rich.console import Group
    from rich.padding import Padding

    comparison = one.comparison
    if one.absent is not None:
        found = one.absent
    elif comparison is not None:
        found = sentence(comparison, unit_of(comparison.metric), same_within=comparison.judgement.same_within)
    else:
        shown = ", ".join(f"{value:.4g}" for value in one.values)
        statement = one.statement
        of = statement.metric if statement.per is None else f"{statement.metric} by {statement.per}"
        found = f"{of} of {statement.setting}: {shown}; said {limits(statement)}"
    head = _marked(f"{one.statement.text} ({one.statement.who})", met=one.met)
    return Group(head, Padding(_sentences(found, style="dim"), (0, 0, 0, 2)))


def _marked(text: str, *, met: bool) -> RenderableType:
    return _sentences(f"{'✓' if met else '✗'} {text}", style="green" if met else "red")


def _heading(name: str, text: str) -> RenderableType:
    from rich.padding import Padding
    from rich.text import Text

    return Padding(Text.assemble((name, "bold cyan"), f"  {text}"), (1, 0, 0, 0), expand=False)


def _part(
    found: ReproducedTable,
    columns: Sequence[str],
    answers: dict[str, ComparedCell | UncomparedCell],
    footnotes: Footnotes,
) -> Table:
    """Some columns of a table, all its rows."""
    table = empty_table()
    table.add_column("")
    table.add_column("", style="dim")
    for column in columns:
        table.add_column(column, justify="right")
    for row in found.table.rows:
        cells = [_cell(answers[f"{row}/{column}"], footnotes) for column in columns]
        table.add_row(row, "\n".join(LINES), *("\n".join(lines) for lines in cells))
    return table


def _cell(answer: ComparedCell | UncomparedCell, footnotes: Footnotes) -> tuple[str, str, str]:
    published = answer.cell.published
    figure = f"{published:.10g}"
    simulated = ABSENT if answer.simulated is None else _like(figure, answer.simulated)
    if isinstance(answer, ComparedCell):
        error = change(answer.simulated / published)
        return figure, simulated, f"{MARKS.get(answer.cell.role, '')}{error}"
    return figure, simulated, footnotes.mark(answer.reason)


def _like(figure: str, value: float) -> str:
    """With as many decimals as the published figure has, and at least three digits."""
    decimals = len(figure.partition(".")[2])
    text = f"{value:.{decimals}f}"
    return text if float(text) >= 100 or len(text.strip("0.")) >= 3 else f"{value:.3g}"


def _in_parts(columns: Sequence[str], parts: int) -> list[Sequence[str]]:
    length = -(-len(columns) // parts)
    return [columns[start : start + length] for start in range(0, len(columns), length)]


def _sentences(*lines: str, style: str = "") -> RenderableType:
    from rich.constrain import Constrain
    from rich.text import Text

    return Constrain(Text("\n".join(lines), style=style), SENTENCE_WIDTH_MAX)
