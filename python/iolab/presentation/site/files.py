"""The pages as files, for any web server."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from iolab.adapters.collection.collection import Collection
from iolab.base.errors import InputError
from iolab.base.output_file import refused
from iolab.domain.collection.entry import Entry
from iolab.presentation.site import benchmark, overview
from iolab.presentation.site import run as run_page
from iolab.presentation.site.assets import page_for_files, static_files
from iolab.presentation.site.parts import metric_id

MARK = "iolab-site"
"""A file that says that iolab wrote a directory, and may replace it."""
REMEDY = "choose another --out, a new or empty directory"


@dataclass
class Written:
    """What was written."""

    files: int = 0
    bytes: int = 0


def write(runs: Collection, out: Path) -> Written:
    """Writes the site beside its place and puts it there whole. InputError if something else is there, or it can't be
    written."""
    _check(out)
    for one in runs.benchmarks():
        runs.changes(one)
    new, old = out.with_name(f".{out.name}.new"), out.with_name(f".{out.name}.old")
    written = Written()
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        for rest in (new, old):
            shutil.rmtree(rest, ignore_errors=True)
        for name, content in _contents(runs):
            path = new / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            written.files += 1
            written.bytes += len(content)
        if out.exists():
            out.rename(old)
        new.rename(out)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise refused(error, out) from None
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return written


def _check(out: Path) -> None:
    if not out.exists() and not out.is_symlink():
        return
    if out.is_symlink() or not out.is_dir():
        raise InputError("is no directory of its own", where=str(out), remedy=REMEDY)
    if any(out.iterdir()) and not (out / MARK).is_file():
        raise InputError("the directory is not empty, and no site of iolab's", where=str(out), remedy=REMEDY)


def _contents(runs: Collection) -> Iterator[tuple[str, bytes]]:
    """Every file by name."""
    yield MARK, b"Written by `iolab site`, which replaces this directory when it is asked to write here again.\n"
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
