"""fio's JSON as cells: a reporting group of alike jobs is one. Its job options say what was asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from iolab.base.strict_json import JsonObject
from iolab.domain.calibration.cell import Cell
from iolab.domain.fio_report.document import documents, job_list, last_of_each_run
from iolab.domain.fio_report.job import Job, number, table
from iolab.domain.workload.fio_file import value
from iolab.domain.workload.io import IoOptions
from iolab.files.measured.found import MeasuredCells

SHARE_OF_READS = {
    "read": 100,
    "randread": 100,
    "write": 0,
    "randwrite": 0,
    "rw": 50,
    "readwrite": 50,
    "randrw": 50,
}
ENGINES = {"io_uring": "io_uring", "libaio": "libaio", "psync": "psync", "sync": "psync", "pvsync": "pvsync"}
PVSYNC_2 = "pvsync2"
DEFAULT_ENGINE = "psync"
OF_NO_CELL = ("rate", "rate_iops", "rate_min", "thinktime", "bssplit", "bsrange", "zonemode", "trim_percentage")
"""Options that a cell has no counterpart of: an open loop, pauses, sizes by share, zones."""
SIZE_DEFAULT = 2**30
IN_FLIGHT_MOST = 1.25
"""Times the depth: rates of jobs that end at other times than their group add up to a little more than it did. A round
number, chosen with diskplorer's maps in sight."""


class _NoCell(Exception):
    """Why a job makes none."""


def read(text: str, name: str) -> MeasuredCells:
    """The cells of fio's documents in the text, whose file is `name`.

    Raises:
        InputError: nested too deeply, or cut off too often.
    """
    found = MeasuredCells()
    for document in last_of_each_run(list(documents(text, name))):
        options = table(document.content, "global options")
        for jobs in _groups(document.content):
            shown = f"{name}:{document.line}: {jobs[0].name}"
            if document.cut_job and number(document.cut_job, "groupid") == jobs[0].group:
                found.left_out.append(f"{shown}: the JSON is cut off in another job of its group")
                continue
            try:
                found.cells.append(_cell(jobs, options | table(jobs[0].raw, "job options")))
            except (_NoCell, ValueError) as reason:
                found.left_out.append(f"{shown}: {_in_a_line(reason)}")
    return found


def _groups(content: JsonObject) -> Iterator[list[Job]]:
    """The jobs that ran at once."""
    by_group: dict[int, list[Job]] = {}
    for raw in job_list(content):
        if isinstance(raw, dict) and raw.get("jobname") != "All clients":
            group = int(number(raw, "groupid"))
            by_group.setdefault(group, []).append(Job(str(raw.get("jobname", "job")), group, raw))
    yield from by_group.values()


def _cell(jobs: list[Job], options: JsonObject) -> Cell:
    if len({job.name for job in jobs}) > 1:
        raise _NoCell("several jobs ran at once; a cell is one, in any number of copies")
    texts = {name: str(given) for name, given in options.items()}
    iops = sum(side.ops / side.runtime_ms * 1000 for job in jobs for side in job.transfers if side.runtime_ms > 0)
    if iops <= 0:
        raise _NoCell("it did nothing")
    asked = _asked(jobs, texts, iops)
    name = f"{jobs[0].name} {_rw(texts)} {texts.get('bs', '4k')} {asked.queue_depth * asked.jobs}"
    return Cell(name, asked, iops, _p99_ns(jobs))


def _asked(jobs: list[Job], texts: dict[str, str], iops: float) -> IoOptions:
    """As asked, or as deep as Little's law finds it: fio states of a group the options of its first job, also if there
    were others, as in diskplorer's maps (a group for each depth, of as many jobs as the host has CPUs)."""
    options = _options(texts)
    asked = IoOptions.model_validate(options)
    sides = [(side.ops, side.latency.mean_ns) for job in jobs for side in job.transfers if side.ops and side.latency]
    if len(jobs) != 1 or not sides:
        return asked
    mean_ns = sum(ops * latency for ops, latency in sides) / sum(ops for ops, _ in sides)
    found = iops * mean_ns / 1e9
    if found <= IN_FLIGHT_MOST * asked.queue_depth * asked.jobs:
        return asked
    of_one, copies = (1, round(found)) if asked.engine in ("psync", "pvsync") else (round(found), 1)
    return IoOptions.model_validate({**options, "queue_depth": of_one, "jobs": copies})


def _options(texts: dict[str, str]) -> dict[str, Any]:
    for name in OF_NO_CELL:
        if name in texts and texts[name] not in ("0", ""):
            raise _NoCell(f"{name}={texts[name]}: a cell has no counterpart of it")
    if texts.get("random_distribution", "random").partition(":")[0] != "random":
        raise _NoCell(f"random_distribution={texts['random_distribution']}: cells are uniform")
    if texts.get("direct", "0") != "1" and texts.get("buffered") != "0":
        raise _NoCell("without direct=1 the page cache is in it, and not the device alone")
    rw = _rw(texts)
    engine = texts.get("ioengine", DEFAULT_ENGINE).replace(PVSYNC_2, "pvsync")
    if engine not in ENGINES:
        raise _NoCell(f"ioengine={engine}: a cell has no counterpart of it")
    depth = 1 if ENGINES[engine] in ("psync", "pvsync") else int(texts.get("iodepth", "1"))
    size = value.size(texts["size"]) if texts.get("size", "%")[-1] != "%" else SIZE_DEFAULT
    return {
        "pattern": "random" if rw.startswith("rand") else "sequential",
        "read_percent": _read_percent(texts, rw),
        "block_size": f"{value.size(texts.get('bs', texts.get('blocksize', '4k')).split(',')[0])}B",
        "queue_depth": depth,
        "jobs": int(texts.get("numjobs", "1")),
        "file_size": f"{max(size, 4096)}B",
        "engine": ENGINES[engine],
        "duration": "1s",
        **_durable(texts),
    }


def _rw(texts: dict[str, str]) -> str:
    rw = texts.get("rw", texts.get("readwrite", "read")).partition(":")[0]
    if rw not in SHARE_OF_READS:
        raise _NoCell(f"rw={rw}: a cell reads, writes or both")
    return rw


def _read_percent(texts: dict[str, str], rw: str) -> float:
    if SHARE_OF_READS[rw] != 50:
        return SHARE_OF_READS[rw]
    if "rwmixwrite" in texts:
        return 100 - float(texts["rwmixwrite"])
    return float(texts.get("rwmixread", "50"))


def _durable(texts: dict[str, str]) -> dict[str, int]:
    if (how := texts.get("sync", "0")) not in ("0", "none"):
        return {"dsync_every" if how == "dsync" else "osync_every": 1}
    return {
        ours: int(texts[theirs])
        for theirs, ours in (("fsync", "fsync_every"), ("fdatasync", "fdatasync_every"))
        if texts.get(theirs, "0") != "0"
    }


def _p99_ns(jobs: list[Job]) -> float | None:
    """Of the only side of a single result: percentiles of several can't be merged."""
    sides = [side for job in jobs for side in job.transfers]
    if len(sides) != 1 or sides[0].latency is None:
        return None
    return sides[0].latency.percentiles_ns.get("p99")


def _in_a_line(reason: Exception) -> str:
    if isinstance(reason, ValidationError):
        first = reason.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return str(reason)
