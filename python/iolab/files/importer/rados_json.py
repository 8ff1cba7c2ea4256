"""rados bench's --format=json, and the JSON that cbt (Ceph Benchmarking Tool) makes of its report.

cbt's `benchmark/radosbench.py` writes each line of the report as a key, such as `"Bandwidth (MB/sec)": "24.5"`; rados
itself writes `"bandwidth"`, as text too (ceph/src/common/obj_bencher.cc, whose MB are 2^20 bytes).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from iolab.base.errors import InputError
from iolab.files.importer.figures import MIB
from iolab.files.importer.format import Format
from iolab.files.importer.results import Results
from iolab.files.importer.source import Source, json_text
from iolab.files.importer.written_number import number

METRICS = {
    "total_time_run": ("elapsed_s", 1.0),
    "bandwidth": ("rate_bytes_per_s", MIB),
    "stddev_bandwidth": ("rate_bytes_per_s_stddev", MIB),
    "average_iops": ("iops", 1.0),
    "stddev_iops": ("iops_stddev", 1.0),
    "average_latency": ("latency_ns_mean", 1e9),
    "stddev_latency": ("latency_ns_stddev", 1e9),
    "max_latency": ("latency_ns_max", 1e9),
    "min_latency": ("latency_ns_min", 1e9),
    # ceph tell osd.N bench.
    "elapsed_sec": ("elapsed_s", 1.0),
    "bytes_per_sec": ("rate_bytes_per_s", 1.0),
    "iops": ("iops", 1.0),
}
"""By key without unit: the metric, and what the number is multiplied by."""
_OF_CBT = re.compile(r"json_output\.\d+\.[^/]+$")
"""cbt's file of one process: `json_output.PROCESS.HOST`."""
AT_ONCE = (
    "cbt writes a file for each process, which run at the same time: the rates of several add up, and none is a round"
)
_BEGINS = re.compile(r"(?:^(?P<name>[\w.-]{1,60}): )?\{", re.MULTILINE)
"""`osd.0: {`, as `ceph tell 'osd.*' bench` prints."""
_UNIT = re.compile(r"\s*\([^)]*\)|:")
_RECOGNISED = re.compile(r'"(?:Total time run|total_time_run)"\s*:|"bytes_written"\s*:\s*\d+,\s*"blocksize"\s*:')


def _objects(text: str, name: str) -> Iterator[tuple[int, str | None, dict[str, object]]]:
    """The outermost objects of the text, with their lines and names. InputError for one that does not end."""
    decoder, place, counted, line = json.JSONDecoder(), 0, 0, 1
    while found := _BEGINS.search(text, place):
        line += text.count("\n", counted, found.start())
        counted = found.start()
        try:
            content, place = decoder.raw_decode(text, found.end() - 1)
        except (ValueError, RecursionError):
            raise InputError("JSON that is cut off or damaged", where=f"{name}:{line}") from None
        yield line, found["name"], content


def _parse(source: Source, results: Results) -> None:
    if _OF_CBT.search(source.name):
        results.problem(AT_ONCE)
    for line, name, content in _objects(json_text(source), source.name):
        inner = list(content.values())
        if len(inner) == 1 and isinstance(inner[0], dict):
            content = inner[0]
        by_key = {_UNIT.sub("", key).strip().lower().replace(" ", "_"): value for key, value in content.items()}
        figures = {key: number(str(by_key[key])) for key in METRICS if key in by_key}
        if any(one is not None for one in figures.values()):
            row = results.table(line).row(source.stem_without_round, f"rados[{name}]" if name else "rados")
            for key, figure in figures.items():
                metric, scale = METRICS[key]
                row.add(metric, None if figure is None else figure * scale)


FORMAT = Format(
    name="rados-json",
    help="rados bench --format=json, json_output of cbt's radosbench, ceph tell osd.N bench",
    recognises=lambda source: bool(_RECOGNISED.search(source.head)),
    parse=_parse,
    words=("total_time_run", "Total time run", "average_iops", "average_latency"),
    among_text=False,
)
