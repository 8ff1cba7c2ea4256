"""fio's JSON and json+ output, versions 2 and 3, of one machine or of clients: one document or several.

The last of the snapshots that --status-interval prints counts.
"""

from __future__ import annotations

from iolab.base.errors import InputError
from iolab.domain.fio_report.document import documents, last_of_each_run
from iolab.files.importer.fio_run import FioRun, add_runs
from iolab.files.importer.format import Format
from iolab.files.importer.results import Results
from iolab.files.importer.source import Source, json_text


def _parse(source: Source, results: Results) -> None:
    found = list(documents(json_text(source), source.name))
    if not found:
        raise InputError(
            "results of fio inside another JSON",
            where=source.name,
            remedy="write each of them into a file of its own, such as with jq '.results[0]'",
        )
    kept = last_of_each_run(found)
    if len(kept) < len(found):
        results.problem(f"{len(found) - len(kept)} snapshots of runs that went on are left out")
    for document in kept:
        if document.problem:
            results.problem(document.problem, document.line)
    add_runs(source, results, [FioRun(document.line, document.content) for document in kept])


def _recognises(source: Source) -> bool:
    return '"fio version"' in source.head or ('"jobname"' in source.head and '"jobs"' in source.head)


FORMAT = Format(
    name="fio-json",
    help="fio --output-format=json or json+, versions 2 and 3",
    recognises=_recognises,
    parse=_parse,
    words=('"fio version"', '"jobs"', '"jobname"', '"lat_ns"', '"iops"'),
    among_text=False,
)
