"""Reports of benchmarks that are written for a program, with Go's testing package, criterion.rs and JMH, and SQLite's
speedtest1."""

from __future__ import annotations

from iolab.files.importer.figures import NUMBER, figures_format, of, rule


def _go(name: str, unit: str) -> str:
    """A figure with its unit, wherever it stands behind the number of iterations."""
    return rf"(?=(?>(?:.*?\s(?P<{name}>{NUMBER}) {unit}(?!\S))?))"


_GO_BYTES, _GO_THINGS = r"(?P<rate_unit>MB|)(?:(?<=MB)|[Bb]ytes)/s(?:ec)?", r"(?![Bb]ytes)[A-Za-z]+s/s(?:ec)?"
_GO_LINE = rf"(?:\w{{1,20}}[:=](?P<setting>\S{{1,40}}) )?Benchmark(?P<workload>\S{{1,160}}+)\s++\d++(?=\s++{NUMBER} \S)"
GO = figures_format(
    "go-bench",
    "benchmarks of Go's testing package: the time of an operation, and rates that the line has",
    recognised_by=rf"(?:\S{{1,61}} )?Benchmark\S{{1,160}}+\s++\d++(?:\s++{NUMBER} \S++)*?"
    rf"\s++{NUMBER} (?:ns/op|MB/s|[A-Za-z]+s/s(?:ec)?)(?!\S)",
    words=("Benchmark", "ns/op", "B/op", "allocs/op", "goos:", "pkg:"),
    titled=True,
    rules=[
        rule(
            _GO_LINE + _go("time", "ns/op") + _go("rate", _GO_BYTES) + _go("things", _GO_THINGS) + "(?P<pairs>.*)",
            time=of("latency_ns_mean"),
            rate=of("rate_bytes_per_s"),
            things=of("operations_per_s"),
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

_JMH_LINE = (
    r"(?P<workload>[A-Za-z]\w*+(?>(?:\.\w++)+)(?::\S++)?(?:\s++[^\s±]++){0,5}?)\s++(?:thrpt|avgt|sample|ss)"
    r"(?:\s++\d++)?"
)
JMH = figures_format(
    "jmh",
    "the table of the Java Microbenchmark Harness: scores that are rates or times",
    recognised_by=r"Benchmark\s.{0,120}?\bMode\s++Cnt\s++Score\s",
    words=("Benchmark", "Mode", "Cnt", "Score", "Error", "Units"),
    titled=True,
    rules=[
        *(
            rule(
                rf"{_JMH_LINE}\s++(?P<rate>{NUMBER})(?: ±\s*+{NUMBER})?\s++ops/{per}\s*+$",
                rate=of("operations_per_s", scale),
            )
            for per, scale in (("s", 1.0), ("ms", 1e3), ("us", 1e6))
        ),
        rule(
            rf"{_JMH_LINE}\s++(?P<time>{NUMBER})(?: ±\s*+{NUMBER})?\s++(?P<time_unit>[num]?s)/op\s*+$",
            time=of("latency_ns_mean"),
        ),
    ],
)

SPEEDTEST1 = figures_format(
    "speedtest1",
    "SQLite's speedtest1: the time of each test, and of all",
    recognised_by=r"-- Speedtest1 for SQLite|\d{3,4} - .{1,80}?\.{3,}\s++\d++\.\d++s\s*+$",
    words=("Speedtest1 for SQLite", "TOTAL..."),
    titled=True,
    rules=[
        rule(r"-- Speedtest1 for SQLite", begins=True),
        rule(rf"(?P<workload>\d{{3,4}} - .{{1,80}}?|TOTAL)\.{{3,}}\s++(?P<time>{NUMBER})s\s*+$", time=of("elapsed_s")),
    ],
)
FORMATS = (GO, CRITERION, JMH, SPEEDTEST1)
