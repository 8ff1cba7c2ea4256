"""What `mpstat -o JSON`, `iostat -o JSON` and `sadf -j` print: the columns of their text under the same names, but for
percent signs and `/s`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from iolab.base.errors import InputError
from iolab.base.strict_json import JsonObject
from iolab.files.importer.format import Format
from iolab.files.importer.iostat import COLUMNS, CPU, Reports
from iolab.files.importer.mpstat import WORKLOAD as MPSTAT
from iolab.files.importer.results import Results
from iolab.files.importer.sar import WORKLOAD as SAR
from iolab.files.importer.source import Source, json_text
from iolab.files.importer.sysstat import Means, add_means, cpu_metric, sample

_START = re.compile(r"^(?P<space>\s*+)\{\s*+\"sysstat\"\s*+:", re.MULTILINE)


def _parse(source: Source, results: Results) -> None:
    iostat, cpus = Reports(), Means()
    sar = Reports(SAR, first_since_boot=False)
    for statistics in _statistics(source):
        if isinstance(shares := statistics.get("avg-cpu"), dict):
            iostat.add(CPU, {f"%{name}": value for name, value in _numbers(shares).items()})
        for device in _tables(statistics, "disk"):
            values = {_column(name, device): value for name, value in _numbers(device).items()}
            if "disk-device" in device:
                sar.add(str(device["disk-device"]), values)
            elif "disk_device" in device:
                iostat.add(str(device["disk_device"]), values)
        for cpu in _tables(statistics, "cpu-load"):
            name = str(cpu.get("cpu"))
            for state, value in _numbers(cpu).items():
                if metric := cpu_metric(f"%{state}"):
                    sample(cpus, metric, value, job="all" if name == "all" else f"cpu.{name}")
    iostat.finish(source, results)
    sar.finish(source, results)
    if cpus:
        add_means(results.table(1).row(source.stem_without_round, MPSTAT), cpus, interval_s=None)


def _column(name: str, device: JsonObject) -> str:
    """The name in the text of the same tool: `rkB` -> `rkB/s`, `util` and `util-percent` -> `%util`. `kB_read` beside
    `kB_read/s` is a total, and no rate."""
    bare = name.removesuffix("-percent")
    known = (one for one in (name, f"%{bare}", f"{name}/s") if one in COLUMNS and one not in device.keys() - {name})
    return next(known, name)


def _statistics(source: Source) -> Iterator[JsonObject]:
    """The reports of all hosts, of one document or of several, with other text between them. InputError if one is cut
    off."""
    text, end = json_text(source), 0
    while begin := _START.search(text, end):
        try:
            content, end = json.JSONDecoder().raw_decode(text, begin.end("space"))
        except (ValueError, RecursionError) as error:
            what = f"no whole JSON of sysstat ({error})"
            raise InputError(what, where=source.name, remedy="was it cut off?") from None
        sysstat = content.get("sysstat")
        for host in _tables(sysstat if isinstance(sysstat, dict) else {}, "hosts"):
            yield from _tables(host, "statistics")


def _tables(content: JsonObject, name: str) -> list[JsonObject]:
    found = content.get(name)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _numbers(content: JsonObject) -> dict[str, float]:
    return {
        name: float(value)
        for name, value in content.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
    }


FORMAT = Format(
    name="sysstat-json",
    help="mpstat and iostat with -o JSON, sadf -j",
    recognises=lambda source: bool(_START.search(source.head)),
    parse=_parse,
    words=('"sysstat"', '"statistics"', '"avg-cpu"', '"cpu-load"'),
    among_text=False,
)
