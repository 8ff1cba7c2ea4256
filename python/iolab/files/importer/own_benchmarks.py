"""Reports of benchmarks that programs bring along, Go's and criterion's, and of programs that back up: Borg, restic."""

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

_LASTED = r"\d[\d.]{0,12}[\d. a-z]{0,60}? seconds"
BORG = figures_format(
    "borg",
    "borg create --stats: how long it took",
    recognised_by=rf"Duration: {_LASTED}\s*+$",
    words=("Archive name:", "Archive fingerprint", "Duration:", "This archive:", "Chunk index:"),
    titled=True,
    rules=[
        rule(r"Archive name: ", begins=True),
        rule(rf"Duration: (?P<elapsed>{_LASTED})\s*+$", elapsed=of("elapsed_s")),
    ],
)

_AGO = r"(?:\d++:)?\d++:\d\d"
RESTIC = figures_format(
    "restic",
    "restic's last lines of a backup: how much it read, and how long it took",
    recognised_by=rf"processed \d++ files, [\d.]++ [KMGT]?i?B in {_AGO}|duration: {_AGO}, [\d.]++[KMGT]iB/s",
    repeats=r"\[[\d:]++\] [\d.]++%",
    words=("processed", "files,", "Added to the repository", "snapshot", "saved"),
    titled=True,
    rules=[
        rule(
            rf"processed {NUMBER} files, (?P<size>{NUMBER}) (?P<size_unit>[KMGT]?i?B) in (?P<elapsed>{_AGO})",
            size=of("bytes"),
            elapsed=of("elapsed_s"),
        ),
        # Versions before 0.9.
        rule(
            rf"duration: (?P<elapsed>{_AGO}), (?P<rate>{NUMBER})(?P<rate_unit>[KMGT]iB)/s",
            elapsed=of("elapsed_s"),
            rate=of("rate_bytes_per_s"),
        ),
    ],
)
FORMATS = (GO, CRITERION, BORG, RESTIC)
