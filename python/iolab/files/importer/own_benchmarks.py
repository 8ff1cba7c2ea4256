"""Reports of benchmarks that are written for a program, with Go's testing package and criterion.rs."""

from __future__ import annotations

from iolab.files.importer.figures import MB, NUMBER, figures_format, of, rule

_GO_LINE = rf"Benchmark(?P<workload>\S{{1,160}}+)\s++\d++\s++(?P<time>{NUMBER}) ns/op(?:\s++(?P<rate>{NUMBER}) MB/s)?+"
GO = figures_format(
    "go-bench",
    "benchmarks of Go's testing package: the time of an operation, and rates that the line has",
    recognised_by=rf"Benchmark\S{{1,160}}+\s++\d++\s++{NUMBER} ns/op",
    words=("Benchmark", "ns/op", "B/op", "allocs/op", "goos:", "pkg:"),
    titled=True,
    rules=[
        rule(
            rf"{_GO_LINE}(?:\s++{NUMBER} (?!B/op|allocs/op)\S+)*?\s++(?P<things>{NUMBER}) [A-Za-z]+s/s(?:\s|$)",
            time=of("latency_ns_mean"),
            rate=of("rate_bytes_per_s", MB),
            things=of("operations_per_s"),
            absent="not printed by this benchmark",
        ),
        rule(
            _GO_LINE,
            time=of("latency_ns_mean"),
            rate=of("rate_bytes_per_s", MB),
            absent="not printed by this benchmark",
        ),
    ],
)

_TIME = r"(?:[nmuµ]|p)?s"


def _middle(name: str, unit: str, behind: str = "") -> str:
    """The estimate, between the bounds of its confidence interval."""
    bound = rf"{NUMBER} {unit}{behind}"
    return rf"\[{bound}\s(?P<{name}>{NUMBER}) (?P<{name}_unit>{unit}){behind}\s{bound}\s?\]"


CRITERION = figures_format(
    "criterion",
    "benchmarks of criterion.rs: the estimate of the time, and of the rate",
    recognised_by=rf".{{0,160}}?\btime:\s++{_middle('time', _TIME)}",
    words=("Benchmarking", "time:   [", "thrpt:  [", "change:", "Performance has", "outliers among"),
    titled=True,
    rules=[
        rule(r"Benchmarking |Found \d|\d++ \(|Performance has|No change|Change within|change:"),
        # A long name stands above its figures.
        rule(r"(?P<workload>[\w.-]++/[\w/.: -]{1,160}?)\s*+$", names=True, begins=True),
        rule(
            rf"(?P<workload>\S.{{0,160}}?)\s++time:\s++{_middle('time', _TIME)}",
            begins=True,
            names=True,
            time=of("latency_ns_mean"),
        ),
        rule(rf"time:\s++{_middle('time', _TIME)}", time=of("latency_ns_mean")),
        rule(rf"thrpt:\s++{_middle('rate', '[KMGT]?i?B', '/s')}", rate=of("rate_bytes_per_s")),
        rule(rf"thrpt:\s++{_middle('things', '[KMG]?', 'elem/s')}", things=of("operations_per_s")),
    ],
)
FORMATS = (GO, CRITERION)
