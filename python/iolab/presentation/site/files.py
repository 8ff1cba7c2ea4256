"""The pages as files, for any web server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from iolab.base import beneath, replaceable
from iolab.base.durable import put_in_place, write_new
from iolab.base.errors import InputError
from iolab.base.output_file import refusals_explained
from iolab.domain.collection.entry import Entry
from iolab.files.collection.collection import Collection
from iolab.presentation.site import benchmark, overview
from iolab.presentation.site import run as run_page
from iolab.presentation.site.assets import page_for_files, static_files
from iolab.presentation.site.parts import metric_id

MARK = "iolab-site"
"""A file that lists what iolab wrote in a directory, which may be replaced if that is all."""
MARK_LINE = "Written by `iolab site`, which replaces this directory when it is asked to write here again:"
MARK_BYTES_MAX = 1 << 28
REMEDY = "choose another --out, a new or empty directory"


@dataclass
class SiteSize:
    """What was written."""

    files: int = 0
    bytes: int = 0


def write(runs: Collection, out: Path) -> SiteSize:
    """Writes the site beside its place and puts it there whole. InputError if something else is there, or it can't be
    written."""
    replaceable.refuse_strangers(out.parent)
    with refusals_explained(out):
        _check(out)
    for one in runs.benchmarks():
        runs.changes(one)
    written = SiteSize()
    with refusals_explained(out):
        beneath.make_directories(out.absolute().parent)
        with put_in_place(out.absolute(), (), replaced=lambda found: _check_open(out, found)) as new:
            names = []
            for name, content in _contents(runs):
                path = new / name
                _make_parents(path, new)
                write_new(path, content, new)
                names.append(name)
                written.files += 1
                written.bytes += len(content)
            mark = "\n".join([MARK_LINE, *names, ""]).encode()
            write_new(new / MARK, mark, new)
            written.files += 1
            written.bytes += len(mark)
    return written


def _make_parents(path: Path, new: Path) -> None:
    for parent in reversed(path.parents):
        if parent.is_relative_to(new) and parent != new:
            beneath.make_directory(parent, new, exist_ok=True)


def _check(out: Path) -> None:
    """Before the work."""
    if out.name in ("", "..") or (os.path.lexists(out) and (out.is_symlink() or not out.is_dir())):
        raise InputError("is no directory of its own", where=str(out), remedy=REMEDY)
    if out.is_dir():
        with beneath.followed(out) as found:
            _check_open(out, found)


def _check_open(out: Path, directory: int) -> None:
    """InputError unless it is empty, or holds what iolab wrote and nothing else: as its mark lists it."""
    found = beneath.files_below(directory)
    if not found:
        return
    if MARK not in found:
        raise InputError("the directory is not empty, and no site of iolab's", where=str(out), remedy=REMEDY)
    fd = os.open(MARK, os.O_RDONLY | beneath.SAFELY, dir_fd=directory)
    with os.fdopen(fd, "rb") as file:
        first, *listed = file.read(MARK_BYTES_MAX).decode(errors="replace").split("\n")
    if first == MARK_LINE:
        if more := sorted(set(found) - set(listed) - {MARK}):
            raise InputError(f"holds more than a site of iolab's: {more[0]}", where=str(out), remedy=REMEDY)
    else:
        raise InputError(f"its {MARK} does not list what iolab wrote", where=str(out), remedy=f"remove it, or {REMEDY}")


def _contents(runs: Collection) -> Iterator[tuple[str, bytes]]:
    """Every file by name."""
    for name, content in static_files().items():
        yield name, page_for_files(content) if name == "index.html" else content
    yield "api/meta.json", _json(overview.meta(runs, live=False))
    yield "api/overview.json", _json(overview.overview(runs))
    for chunk in range(overview.chunks(runs)):
        yield f"api/runs/{chunk}.json", _json(overview.run_list(runs, chunk))
    for one in runs.benchmarks():
        place = f"api/benchmarks/{one.id}-{one.hardware}"
        found = benchmark.page(runs, one)
        yield f"{place}.json", _json(found)
        yield f"{place}/matrix.json", _json(benchmark.matrix_page(runs, one))
        for key in found.metrics:
            with suppress(InputError):
                yield f"{place}/{metric_id(key)}.json", _json(benchmark.metric_page(runs, one, metric_id(key)))
    for entry in runs.entries:
        if entry.state != "unreadable":
            yield from _of_run(runs, entry)


def _of_run(runs: Collection, entry: Entry) -> Iterator[tuple[str, bytes]]:
    """What can't be read any more is left out: its links lead nowhere, the others somewhere."""
    with suppress(InputError):
        found = run_page.page(runs, entry)
        yield f"api/run/{entry.id}.json", _json(found)
        yield f"api/run/{entry.id}/experiment.toml", run_page.experiment(runs, entry)
        yield f"api/run/{entry.id}/machine.json", run_page.machine(runs, entry)
        numbers = {trial for of_setting in found.trials.values() for trials in of_setting.values() for trial in trials}
        for trial in sorted(number for number in numbers if number is not None):
            with suppress(InputError):
                yield f"api/run/{entry.id}/trials/{trial}.json", run_page.record(runs, entry, trial)


def _json(page: BaseModel) -> bytes:
    return page.model_dump_json().encode()
