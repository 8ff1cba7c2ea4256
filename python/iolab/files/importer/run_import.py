"""Other people's numbers as runs: files of the classic tools, recognised by their content."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from iolab.base.errors import InputError
from iolab.base.plain_text import counted
from iolab.files.importer.accounting import state_unread, state_warnings
from iolab.files.importer.formats import formats_of, sources_of
from iolab.files.importer.groups import Group, Groups
from iolab.files.importer.mmtests_log import is_log_directory, sources_in
from iolab.files.importer.results import Results, Unnamed
from iolab.files.importer.run import in_memory, write
from iolab.files.importer.source import Source
from iolab.files.importer.titles import Titles
from iolab.files.store import read
from iolab.files.store.directory import RunDirectory, check_free

if TYPE_CHECKING:
    from iolab.files.store import RunData


def open_run(path: Path, format_name: str | None = None) -> RunData:
    """The run in directory `path`, or what the file `path` holds, as a run in memory.

    `format_name`: a name in `iolab.files.importer.formats.FORMATS`; None: by the content. InputError names
    what is wrong, and where.
    """
    if not path.exists():
        raise InputError("does not exist", where=str(path), remedy="name a run's directory, or a file of another tool")
    if path.is_dir():
        if format_name is not None:
            raise InputError("is for files, and this is a directory", where="--from", remedy=f"leave it out for {path}")
        if not RunDirectory(path).journal_file.exists() and is_log_directory(path):
            return open_files([path])
        return read(path)
    return open_files([path], format_name)


def open_files(paths: Sequence[Path], format_name: str | None = None, setting: str | None = None) -> RunData:
    """What the files hold together, as one run in memory. `setting`: what the files measured, if they don't report it.
    InputError names what is wrong, and where."""
    results, sources = _read(paths, format_name, setting)
    return in_memory(paths[0], results, sources)


def import_files(paths: Sequence[Path], out: Path, format_name: str | None = None) -> RunDirectory:
    """Makes a run directory of one or more files. InputError names what is wrong, and where."""
    return import_groups(Groups([Group("", list(paths), named=False)], None, []), out, format_name)


def import_groups(groups: Groups, out: Path, format_name: str | None = None) -> RunDirectory:
    """The same of files that are grouped: the files of a named group are rounds of the setting of that name."""
    check_free(out)
    results = Results()
    used: list[tuple[str, str]] = []
    together = [path for group in groups.groups if not group.named for path in group.paths]
    for name, members in [(None, together), *((group.name, group.paths) for group in groups.groups if group.named)]:
        used += _add(members, format_name, name, results)
    results.problems += groups.problems
    return write(out, _finished(results, used), used)


def _read(
    paths: Sequence[Path], format_name: str | None, setting: str | None = None
) -> tuple[Results, list[tuple[str, str]]]:
    results = Results()
    used = _add(paths, format_name, setting, results)
    return _finished(results, used), used


def _finished(results: Results, used: Sequence[tuple[str, str]]) -> Results:
    trials = results.finish()
    if not any(row.what != "metric" or row.value is not None for trial in trials for row in trial.rows):
        raise _nothing(results, used)
    return results


def _add(
    paths: Sequence[Path], format_name: str | None, setting: str | None, results: Results
) -> list[tuple[str, str]]:
    used = []
    for path in (path for path in paths if path.is_dir()):
        if RunDirectory(path).journal_file.exists():
            raise InputError("is a run already", where=str(path), remedy=f"iolab show {path}")
        used += _read_directory(path, results)
    for found in sources_of([path for path in paths if not path.is_dir()], setting):
        source = _whole(found, format_name)
        used.append((source.name, _parse(source, format_name, results, is_alone=len(paths) == 1)))
        if source.has_decimal_commas and not source.name.endswith(".csv"):
            results.problem("commas in figures are taken as decimal signs")
        if source.wrapping is not None:
            width = source.wrapping.width
            results.problem(f"lines that were wrapped at about {width} columns, as in a mail, are joined")
    return used


def _parse(source: Source, format_name: str | None, results: Results, *, is_alone: bool = False) -> str:
    """Adds what the source holds; returns the names of its formats. `is_alone`: it is compared with no other."""
    formats = formats_of(source, format_name)
    results.begin_source(source.name, source.stem, _unnamed(source, is_alone=is_alone))
    for one in formats:
        results.titled, results.times_commands = one.titled, one.times_commands
        one.parse(source, results)
    if source.is_short and formats[0].among_text:
        state_warnings(source, results)
    state_unread(source, formats, results)
    return " ".join(one.name for one in formats)


def _whole(source: Source, format_name: str | None) -> Source:
    """The source, with lines joined that a mail wrapped if more figures of the same measurements can be read from it
    so, or any: a line of figures is known by how many it has."""
    ways, indented = source.joined(indented=False), source.joined(indented=True)
    if not ways and not indented:
        return source
    before, figures = _measured(source, format_name)
    # Lines that are indented by themselves, as fio's, are joined only if nothing can be read else.
    read = ((one, *_measured(one, format_name)) for one in (ways if before else [*ways, *indented]))
    more = [(found, one) for one, measured, found in read if found > figures and (not before or measured == before)]
    return max(more, key=lambda one: one[0])[1] if more else source


def _measured(source: Source, format_name: str | None) -> tuple[set[tuple[str, str, int]], int]:
    """What a source holds measurements of, and how many figures."""
    results = Results()
    with suppress(InputError):
        _parse(source, format_name, results)
    return {(one.setting, one.workload, one.round) for one in results.finish()}, results.figures


def _unnamed(source: Source, *, is_alone: bool) -> Unnamed:
    titles = cache(lambda: Titles(source.lines(lambda what, line: None)))
    return Unnamed(source.stem_without_round, titles, source.label is not None, is_alone)


def _read_directory(path: Path, results: Results) -> list[tuple[str, str]]:
    """What is known of a log directory of mmtests; what is not is passed over, with the number of such files."""
    if not is_log_directory(path):
        raise InputError("a directory, and no log directory of mmtests", where=str(path), remedy="name the files in it")
    used, passed_over = [], 0
    for source in sources_in(path):
        try:
            formats = [one for one in formats_of(source) if one.name != "csv"]
            results.begin_source(source.name, source.stem)
            for one in formats:
                one.parse(source, results)
        except InputError as error:
            formats = []
            if "unrecognised" not in str(error):
                results.problem(f"passed over: {error}")
        if formats:
            used.append((source.name, " ".join(one.name for one in formats)))
        passed_over += not formats
    if passed_over:
        results.begin_source(str(path), path.name)
        of = counted(passed_over, "file is", "files are")
        results.problem(f"{of} in no format that iolab recognises, and passed over")
    return used


def _nothing(results: Results, used: Sequence[tuple[str, str]]) -> InputError:
    if results.problems:
        return InputError(f"no figures: {results.problems[-1]}", remedy=f"{BY_HAND}; else {HOW_TO_FORCE}")
    names = ", ".join(name for _, name in used)
    return InputError(
        f"its header looks like {names}, and no figures were found below it",
        where=", ".join(path for path, _ in used),
        remedy=f"if a mail wrapped its lines, join them; if they were changed by hand, {BY_HAND}; else {HOW_TO_FORCE}",
    )


BY_HAND = "put their figures into a CSV file, a row per run"
HOW_TO_FORCE = "name the format with --from; docs/reference/importers.md lists them"

__all__ = ["import_files", "import_groups", "open_files", "open_run"]
