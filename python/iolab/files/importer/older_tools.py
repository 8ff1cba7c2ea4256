"""Load generators whose results stand in old mails: FFSB, tiotest without its Perl script, UnixBench, PostMark,
seeker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from iolab.files.importer.figures import GIB, KIB, MIB, MS, Rule, figures_format, latencies, of, rule

NUMBER = r"[\d.]{1,40}+"
SIZES = (("GB", GIB), ("MB", MIB), ("KB", KIB), ("B", 1.0))
"""ffsb_printsize of ffsb/util.c divides by powers of 1024."""
SYSTEM_CALLS = ("open", "read", "write", "create", "lseek", "unlink", "close", "stat")


def _figure(name: str) -> str:
    return rf"(?P<{name}>{NUMBER})"


def _ffsb_rules() -> Iterator[Rule]:
    yield rule(r"Total Results\s*+$", begins=True)
    start = rf"(?P<phase>[a-z_]{{3,24}}+)\s*+:\s++{_figure('count')}\s++{_figure('rate')}\s++{NUMBER}%\s++{NUMBER}%\s++"
    counts = {"count": of("ops"), "rate": of("operations_per_s")}
    yield rule(rf"{start}NA\s*+$", **counts)
    for unit, scale in SIZES:
        yield rule(rf"{start}{_figure('bytes')}{unit}/sec", **counts, bytes=of("rate_bytes_per_s", scale))
        for op in ("read", "write"):
            yield rule(
                rf"{op.capitalize()} Throughput: {_figure('bytes')}{unit}/sec",
                bytes=of("rate_bytes_per_s", scale, op),
            )
    yield rule(rf"{_figure('rate')} Transactions per Second", rate=of("operations_per_s"))
    for call in SYSTEM_CALLS:
        yield rule(
            rf"\[ *{call}\]\s++{_figure('min')}\s++{_figure('mean')}\s++{_figure('max')}\s++{_figure('count')}",
            **latencies(MS, "min", "mean", "max", phase=f"{call}_call"),
            count=of("ops", phase=f"{call}_call"),
        )
    yield rule(rf"{_figure('percent')}% CPU Utilization", percent=of("cpu_percent"))


FFSB = figures_format(
    "ffsb",
    "FFSB's results: each operation, rates of reads and writes, latencies of system calls",
    recognised_by=r"Op Name\s++Transactions\s++Trans/sec\s|FFSB version [\w.-]++ started",
    words=("FFSB", "Op Name", "Trans/sec", "% Op Weight", "Transactions per Second"),
    titled=True,
    rules=list(_ffsb_rules()),
)


def _tiotest_rules() -> Iterator[Rule]:
    """Megabytes are 2^20 bytes (tiotest.c)."""
    yield rule(r"Tiotest results for (?P<workload>\d{1,6} concurrent io threads?):", begins=True)
    for op in ("read", "write"):
        item = rf"\|\s*+(?P<phase>(?:Random )?{op.capitalize()})\s++"
        yield rule(
            # No rate if it took no time.
            rf"{item}{_figure('size')} MBs \|\s*+{_figure('time')} s \|\s*+(?:{_figure('rate')}|inf|-?nan) MB/s \|",
            absent="it took no time",
            size=of("bytes", MIB, op),
            time=of("elapsed_s"),
            rate=of("rate_bytes_per_s", MIB, op),
        )
        yield rule(
            rf"{item}\|\s*+{_figure('mean')} ms \|\s*+{_figure('max')} ms \|",
            mean=of("latency_ns_mean", MS, op),
            max=of("latency_ns_max", MS, op),
        )


TIOTEST = replace(
    figures_format(
        "tiotest",
        "tiotest's tables of rates and latencies, without tiobench.pl",
        recognised_by=r"Tiotest results for \d++ concurrent io threads?:",
        words=("Tiotest", "concurrent io threads", "Usr CPU", "Average latency"),
        titled=True,
        rules=list(_tiotest_rules()),
    ),
    # Its tables are drawn as other clients draw theirs.
    among_text=False,
)

_UNIX_TEST = r"(?P<phase>[A-Z][\w+() /-]{5,50}?)"
_UNIX_UNITS = {
    # Kibibytes: fstime.c counts in units of 1024 bytes.
    "KBps": of("rate_bytes_per_s", KIB),
    "lps": of("operations_per_s"),
    "lpm": of("operations_per_s", 1 / 60),
    "MWIPS": of("rate_mwips"),
}
_UNIX_BEGIN = r"(?:Benchmark Run:|BYTE UNIX Benchmarks)"
_UNIX_COPIES = r"\d++ CPUs? in system; running (?P<workload>\d++ parallel cop(?:y|ies)) of tests"


def _unixbench_rules(*, has_rates: bool) -> Iterator[Rule]:
    yield rule(_UNIX_BEGIN, begins=True)
    yield rule(_UNIX_COPIES, names=True)
    for unit, figure in _UNIX_UNITS.items():
        yield rule(rf"{_UNIX_TEST}\s{{2,}}+{_figure('rate')} {unit}\s++\(", rate=figure)
    cells = rf"{NUMBER}\s++{_figure('result')}\s++{_figure('index')}\s*+$"
    if not has_rates:
        copied = {"result": _UNIX_UNITS["KBps"], "index": of("index")}
        yield rule(rf"(?P<phase>File Copy[\w ]{{1,40}}?)\s{{2,}}+{cells}", **copied)
    # What a result without its unit is, its line above states.
    yield rule(rf"{_UNIX_TEST}\s{{2,}}+{cells}", index=of("index"))
    yield rule(
        rf"(?:System Benchmarks Index Score|FINAL SCORE)[\w ()]{{0,20}}?\s{{2,}}+{_figure('index')}", index=of("index")
    )


UNIXBENCH = figures_format(
    "unixbench",
    "UnixBench's results: the rate and the index of each test, and the score",
    recognised_by=r"[A-Z][\w+() /-]{5,50}?\s{2,}+[\d.]++ (?:KBps|lps|lpm|MWIPS)\s++\([\d.]++ s(?:ecs)?, \d++ samples\)",
    words=("UnixBench", "File Copy", "bufsize", "maxblocks", "KBps", "lps"),
    titled=True,
    repeats=r"\d++ x .*\d++ \d++|-{10,}",
    rules=list(_unixbench_rules(has_rates=True)),
    otherwise=(
        r"System Benchmarks (?:Partial )?Index\s|INDEX VALUES",
        list(_unixbench_rules(has_rates=False)),
    ),
)

_EACH = rf"\({_figure('rate')} per second\)"
POSTMARK = figures_format(
    "postmark",
    "PostMark's results: transactions, files and bytes per second",
    recognised_by=rf"{NUMBER} seconds of transactions \(\d++ per second\)",
    words=("PostMark", "seconds of transactions", "per second", "Creation alone"),
    titled=True,
    rules=[
        rule(rf"{_figure('time')} seconds total", begins=True, time=of("elapsed_s")),
        rule(rf"{NUMBER} seconds of transactions {_EACH}", rate=of("transactions_per_s")),
        rule(rf"{NUMBER} (?P<phase>created|read|appended|deleted) {_EACH}", rate=of("files_per_s")),
        rule(
            rf"(?P<phase>Creation alone|Deletion alone|Mixed with transactions): {NUMBER} files {_EACH}",
            left_out="parts of creations and deletions",
        ),
        # Powers of 1024 (postmark.c, scalefloat).
        *(
            rule(
                rf"{NUMBER} \w++ {word} \({_figure('rate')} {unit} per second\)",
                rate=of("rate_bytes_per_s", scale, op),
            )
            for word, op in (("read", "read"), ("written", "write"))
            for unit, scale in (("bytes", 1.0), ("kilobytes", KIB), ("megabytes", MIB), ("gigabytes", GIB))
        ),
    ],
)

SEEKER = figures_format(
    "seeker",
    "seeker's results: random reads per second, and how long one took",
    recognised_by=rf"Results: {NUMBER} seeks/second, {NUMBER} ms random access time",
    words=("Seeker", "seeks/second", "random access time"),
    titled=True,
    rules=[
        rule(r"Benchmarking (?P<workload>/\S{1,80}) \["),
        rule(
            rf"Results: {_figure('rate')} seeks/second, {_figure('time')} ms random access time",
            begins=True,
            rate=of("iops", op="read"),
            time=of("latency_ns_mean", MS, "read"),
        ),
    ],
)

FORMATS = (FFSB, TIOTEST, UNIXBENCH, POSTMARK, SEEKER)
