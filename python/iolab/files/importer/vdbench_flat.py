"""vdbench's flatfile.html: a line per interval below a line of names, of which the averages of each run are read."""

from __future__ import annotations

from iolab.files.importer.figures import MIB, MS
from iolab.files.importer.format import Format
from iolab.files.importer.results import Results, Table
from iolab.files.importer.source import Source
from iolab.files.importer.written_number import number

WORKLOAD = "vdbench"
COLUMNS = {
    "rate": ("iops", "all", 1.0),
    "MB/sec": ("rate_bytes_per_s", "all", MIB),
    "bytes/io": ("request_bytes_mean", "all", 1.0),
    "resp": ("latency_ns_mean", "all", MS),
    "resp_max": ("latency_ns_max", "all", MS),
    "resp_std": ("latency_ns_stddev", "all", MS),
    "queue_depth": ("queue_depth_mean", "all", 1.0),
    "cpu_used": ("cpu_busy_percent", "all", 1.0),
    **{
        f"{op}_{column}": (f"latency_ns_{statistic}", op, MS)
        for op in ("read", "write")
        for column, statistic in (("resp", "mean"), ("max", "max"), ("std", "stddev"))
    },
    # Of filesystems.
    **{f"{op.capitalize()}_rate": ("iops", op, 1.0) for op in ("read", "write")},
    **{f"{op.capitalize()}_resp": ("latency_ns_mean", op, MS) for op in ("read", "write")},
    **{f"MB_{op}": ("rate_bytes_per_s", op, MIB) for op in ("read", "write")},
}
VARIED = ("reqrate", "xfersize", "threads", "rdpct", "whpct", "seekpct")
"""What a run's loops vary."""
_NAMES = frozenset(("Run", "Interval", "reqrate", "rate"))
NO_REQUEST = "none of them, or too short to be printed"


def _columns(text: str) -> list[str]:
    words = text.split()
    return words if set(words) >= _NAMES else []


def _parse(source: Source, results: Results) -> None:
    columns: list[str] = []
    found: list[tuple[Table, dict[str, str]]] = []
    for line in source.lines(results.problem):
        if names := _columns(line.text):
            columns = names
            continue
        words = line.text.split()
        values = dict(zip(columns, words, strict=True)) if len(words) == len(columns) else {}
        if values.get("Interval", "").startswith("avg_"):
            found.append((results.table(line.number), values))
    varied = [name for name in VARIED if len({values.get(name) for _, values in found}) > 1]
    for table, values in found:
        which = ",".join(f"{name}={_short(values.get(name, ''))}" for name in varied)
        row = table.row(source.stem_without_round, f"{WORKLOAD} {values['Run']}" + (f"[{which}]" if which else ""))
        for column, text in values.items():
            if known := COLUMNS.get(column):
                metric, op, scale = known
                value = number(text)
                is_none = value is None or (op != "all" and value == 0 and metric.startswith("latency"))
                row.add(metric, None if is_none or value is None else value * scale, op=op, absent=NO_REQUEST)


def _short(text: str) -> str:
    value = number(text)
    return text if value is None else f"{value:g}"


FORMAT = Format(
    name="vdbench-flat",
    help="vdbench's flatfile.html: the averages of each run",
    recognises=lambda source: any(map(_columns, source.text_lines)),
    parse=_parse,
    words=("reqrate", "Interval", "bytes/io", "read_resp", "write_resp"),
)
