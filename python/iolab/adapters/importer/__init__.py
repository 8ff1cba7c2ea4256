"""Other people's numbers as runs: files of the classic tools, recognised by their content."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from iolab.adapters.importer.formats import formats_of, sources_of
from iolab.adapters.importer.results import Results
from iolab.adapters.importer.run import in_memory, write
from iolab.adapters.store import read
from iolab.adapters.store.directory import check_free
from iolab.base.errors import InputError

if TYPE_CHECKING:
    from iolab.adapters.store import RunData
    from iolab.adapters.store.directory import RunDirectory


def open_run(path: Path, format_name: str | None = None) -> RunData:
    """The run in directory `path`, or what the file `path` holds, as a run in memory.

    `format_name`: a name in `iolab.adapters.importer.formats.FORMATS`; None: told by the content. InputError names
    what is wrong, and where.
    """
    if not path.exists():
        raise InputError("does not exist", where=str(path), remedy="name a run's directory, or a file of another tool")
    if path.is_dir():
        if format_name is not None:
            raise InputError("is for files, and this is a directory", where="--from", remedy=f"leave it out for {path}")
        return read(path)
    return open_files([path], format_name)


def open_files(paths: Sequence[Path], format_name: str | None = None) -> RunData:
    """What the files hold together, as one run in memory. InputError names what is wrong, and where."""
    results, sources = _read(paths, format_name)
    return in_memory(paths[0], results, sources)


def import_files(paths: Sequence[Path], out: Path, format_name: str | None = None) -> RunDirectory:
    """Makes a run directory of one or more files. InputError names what is wrong, and where."""
    check_free(out)
    results, sources = _read(paths, format_name)
    return write(out, results, sources)


def _read(paths: Sequence[Path], format_name: str | None) -> tuple[Results, list[tuple[str, str]]]:
    results = Results()
    used = []
    for source in sources_of(paths):
        formats = formats_of(source, format_name)
        results.begin_source(source.name, source.stem)
        for one in formats:
            one.parse(source, results)
        used.append((source.name, " ".join(one.name for one in formats)))
    if not results.finish():
        raise _nothing(results, used)
    return results, used


def _nothing(results: Results, used: Sequence[tuple[str, str]]) -> InputError:
    if results.problems:
        return InputError(f"no figures: {results.problems[0]}")
    names = ", ".join(name for _, name in used)
    return InputError(f"no figures found as {names}", where=", ".join(path for path, _ in used), remedy=HOW_TO_FORCE)


HOW_TO_FORCE = "name the format with --from; docs/reference/importers.md lists them"

__all__ = ["import_files", "open_files", "open_run"]
