"""fio's JSON and json+ output, versions 2 and 3, of one machine or of clients: one document or several.

The last of the snapshots that --status-interval prints counts.
"""

from __future__ import annotations

from itertools import takewhile

from iolab.base.errors import InputError
from iolab.domain.fio_report.document import documents, last_of_each_run
from iolab.files.importer.fio_run import FioRun, add_runs
from iolab.files.importer.fio_sequence import Heading, snapshots
from iolab.files.importer.format import Format
from iolab.files.importer.results import Results
from iolab.files.importer.source import Source, json_text

LINES_ABOVE = 20
"""Lines above a document in which its heading may stand."""


def _parse(source: Source, results: Results) -> None:
    text = json_text(source)
    found = list(documents(text, source.name))
    if not found:
        raise InputError(
            "results of fio inside another JSON",
            where=source.name,
            remedy="write each of them into a file of its own, such as with jq '.results[0]'",
        )
    kept = last_of_each_run(found)
    if len(kept) < len(found):
        results.problem(snapshots(len(found) - len(kept)))
    for document in kept:
        if document.problem:
            results.problem(document.problem, document.line)
    headings = _headings(text, [document.line for document in found])
    add_runs(source, results, [FioRun(one.line, one.content, headings[one.line], one.cut_job) for one in kept])


def _headings(text: str, documents: list[int]) -> dict[int, str | None]:
    """By the line on which each document begins, what the text calls its run: the line above, else that of the last."""
    lines = text.split("\n") if len(documents) > 1 else []
    found: dict[int, str | None] = {}
    latest: str | None = None
    for line in documents:
        heading = Heading()
        above = takewhile(lambda one: not one.startswith(("{", "}", "]")), reversed(lines[: line - 1][-LINES_ABOVE:]))
        for one in reversed(list(above)):
            heading.read(one)
        latest = found[line] = heading.take() or latest
    return found


def _recognises(source: Source) -> bool:
    head = source.head
    return any(
        f"{mark}fio version{mark}" in head or (f"{mark}jobname{mark}" in head and f"{mark}jobs{mark}" in head)
        for mark in "\"'"
    )


FORMAT = Format(
    name="fio-json",
    help="fio --output-format=json or json+, versions 2 and 3",
    recognises=_recognises,
    parse=_parse,
    words=('"fio version"', '"jobs"', '"jobname"', '"lat_ns"', '"iops"'),
    among_text=False,
)
