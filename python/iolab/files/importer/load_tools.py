"""Load generators whose reports are lines of figures: bonnie++, dbench, pg_test_fsync, stress-ng, dd, hdparm, IOR,
mdtest, elbencho, ioping, compilebench."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from iolab.files.importer.figures import KIB, MB, MIB, MS, NUMBER, US, Rule, amount, figures_format, latencies, of, rule
from iolab.files.importer.results import Results
from iolab.files.importer.source import Source

TOO_SHORT = "too short to measure, which bonnie++ marks with plus signs"


def _csv_of_bonnie() -> str:
    """bonnie++'s line for programs, versions 1.96 to 2.00 (bon_csv2html(1))."""
    head = (
        r"(?:(?P<newest>1\.98)|1\.9[67]),[^,]*+,(?P<machine>[^,]*+),\d++,\d*+,[^,]*+,[^,]*+,"
        r"(?(newest)\d*+,\d*+,)"
    )
    rates = ",".join(
        rf"(?P<{name}>[\d.]*+)\+*+,(?P<{name}_cpu>[\d.]*+)\+*+"
        for name in ("putc", "put", "rewrite", "getc", "get", "seek")
    )
    files = ",".join(rf"(?P<{name}>[\d.]*+)\+*+,[\d.]*+\+*+" for name in BONNIE_FILES)
    latencies = "".join(rf",(?:(?P<{phase}_latency>\d++[um]?s)|[^,]*+)" for phase in (*BONNIE_BLOCKS, *BONNIE_FILES))
    return head + rates + r",\d*+,[^,]*+,[^,]*+,[^,]*+,[^,]*+," + files + f"(?:{latencies})?"


BONNIE_FILES = ("seq_create", "seq_stat", "seq_delete", "random_create", "random_stat", "random_delete")
BONNIE_BLOCKS = ("put_char", "put_block", "rewrite", "get_char", "get_block", "seek")
BONNIE_RATES = {"putc": "put_char", "put": "put_block", "rewrite": "rewrite", "getc": "get_char", "get": "get_block"}
_BONNIE_BLOCKS = {
    **{name: of("rate_bytes_per_s", KIB, phase=phase) for name, phase in BONNIE_RATES.items()},
    **{f"{name}_cpu": of("cpu_percent", phase=phase) for name, phase in BONNIE_RATES.items()},
    "seek": of("iops", phase="seek"),
    "seek_cpu": of("cpu_percent", phase="seek"),
}
_BONNIE_FILES = {name: of("operations_per_s", phase=name) for name in BONNIE_FILES}
_BONNIE_LATENCIES = {
    f"{phase}_latency": of("latency_ns_max", 1e9, phase=phase) for phase in (*BONNIE_BLOCKS, *BONNIE_FILES)
}
"""The longest that one operation took (duration.h of bonnie++)."""
_LATENCY_OF_BONNIE = r"(?P<{0}_latency>\d++[um]?s)"


def _bonnie_latencies(*phases: str, after: str) -> Rule:
    """The table's line below the phase `after`."""
    cells = r"\s++".join(map(_LATENCY_OF_BONNIE.format, phases))
    figures = {f"{phase}_latency": _BONNIE_LATENCIES[f"{phase}_latency"] for phase in phases}
    return rule(rf"Latency\s++{cells}\s*+$", after=after, **figures)


_CELLS = r"(?:0[kmg]?(?=\s++\+)|(?P<{0}>[\d.]++[kmg]?|\++))\s++(?P<{0}_cpu>\d++|\++)"
"""`0k +++` is too short to measure as well."""
BONNIE = figures_format(
    "bonnie++",
    "bonnie++'s line of comma-separated values (-q prints it alone), else its table",
    recognised_by=r"1\.9[678],\d\.\d\d\w?,[^,]*+,",
    words=("bonnie", "Sequential Output", "Sequential Create", "--Random-"),
    titled=True,
    repeats=r"Latency ",
    rules=[
        rule(_csv_of_bonnie(), begins=True, absent=TOO_SHORT, **_BONNIE_BLOCKS, **_BONNIE_FILES, **_BONNIE_LATENCIES)
    ],
    otherwise=(
        r"(?:Version\s++[\d.]++\w?\s++)?-{2,20}Sequential (?:Output|Create)-",
        [
            rule(r"(?:Version\s++[\d.]++\w?\s++)?-{2,20}Sequential Output-", begins=True),
            rule(
                r"(?:(?P<machine>\S{1,60}+)\s++\d{1,9}+[KMGT]?|\d{1,9}+[KMGT])(?::\S++)?\s++"
                + r"\s++".join(_CELLS.format(name) for name in (*BONNIE_RATES, "seek")),
                absent=TOO_SHORT,
                **_BONNIE_BLOCKS,
            ),
            rule(
                # With -f, without the tests of single characters.
                r"\S{1,60}+\s++\d{1,9}+[KMGT]?\s{6,}+"
                + r"\s++".join(map(_CELLS.format, ("put", "rewrite")))
                + r"\s{6,}+"
                + r"\s++".join(map(_CELLS.format, ("get", "seek"))),
                absent=TOO_SHORT,
                **{name: _BONNIE_BLOCKS[name] for name in _BONNIE_BLOCKS if not name.startswith(("putc", "getc"))},
            ),
            rule(
                r"\d{1,9}+(?::\S++)?\s++" + r"\s++".join(_CELLS.format(name) for name in BONNIE_FILES),
                absent=TOO_SHORT,
                **_BONNIE_FILES,
            ),
            _bonnie_latencies(*BONNIE_BLOCKS, after="seek"),
            # With -f.
            _bonnie_latencies(*(phase for phase in BONNIE_BLOCKS if "char" not in phase), after="seek"),
            _bonnie_latencies(*BONNIE_FILES, after="random_delete"),
        ],
    ),
)

_LABEL = r"(?:(?P<setting>[A-Za-z][\w .=-]{0,40}+):\s++)?"
"""Before a line that somebody took out of an output."""
DBENCH = figures_format(
    "dbench",
    "dbench's and tbench's reports: throughput, latency of each operation",
    recognised_by=rf"{_LABEL}Throughput [\d.]++ MB/sec.{{0,40}}\bprocs\b",
    words=("Throughput", "clients", "procs", "max_latency", "AvgLat", "NTCreateX"),
    titled=True,
    repeats=r"Running for \d|\d++\s++\d++\s++[\d.]++ MB/sec\s++(?:execute|warmup|cleanup)",
    rules=[
        rule(
            rf"(?P<phase>[A-Z][A-Za-z]{{2,20}}X?)\s++{amount('count')}\s++{amount('mean')}\s++{amount('max')}\s*+$",
            count=of("ops"),
            mean=of("latency_ns_mean", MS),
            max=of("latency_ns_max", MS),
        ),
        rule(
            rf"{_LABEL}Throughput {amount('rate')} MB/sec.{{0,20}}?(?P<workload>\d++ clients).{{0,10}}?\bprocs\b"
            rf"(?:.{{0,10}}?max_latency={amount('max')} ms)?",
            rate=of("rate_bytes_per_s", MB),
            max=of("latency_ns_max", MS),
            closes=True,
        ),
        # Version 3.
        rule(
            rf"Throughput {amount('rate')} MB/sec.{{0,40}}?(?P<workload>\d++ procs)",
            rate=of("rate_bytes_per_s", MB),
            closes=True,
        ),
    ],
)

PG_TEST_FSYNC = figures_format(
    "pg_test_fsync",
    "PostgreSQL's pg_test_fsync: syncs by method",
    recognised_by=r"Compare file sync methods using one \d++kB write"
    r"|(?:open_datasync|fdatasync|fsync|open_sync)\s++[\d.,]++ ops/sec\s",
    words=("Compare file sync methods", "usecs/op", "open_datasync", "fdatasync", "ops/sec"),
    titled=True,
    rules=[
        rule(r"Compare file sync methods using (?P<workload>(?:one|two) \d++kB writes?):"),
        rule(r"(?:Compare|Test|Non-sync)"),
        rule(
            # Versions before 9.3 print no time.
            rf"(?P<phase>[\w*, ]{{3,60}}?(?:\w+ writes?)?|\w++, \w++, \w++)\s{{2,}}+{amount('rate')} ops/sec"
            rf"(?:\s++{amount('time')} usecs/)?",
            decimal_comma=True,
            rate=of("iops"),
            time=of("latency_ns_mean", US),
        ),
    ],
)

STRESS_NG = figures_format(
    "stress-ng",
    "stress-ng --metrics or --metrics-brief: bogus operations, CPU time, the stressors' own rates",
    recognised_by=r"stress-ng: (?:metrc|info): .*\bbogo ops\b",
    words=("stress-ng", "bogo ops", "stressor", "usr time"),
    titled=True,
    cut=rf"stress-ng: (?:metrc|info): +\[\d++\] \w[\w-]*+(?>(?:\s++{NUMBER}){{1,5}})\s*+$",
    rules=[
        rule(r"stress-ng: (?:metrc|info): +\[\d++\] stressor\s++bogo ops\s", begins=True),
        rule(
            rf"stress-ng: (?:metrc|info): +\[\d++\] (?P<workload>\w[\w-]*+)\s++"
            rf"{NUMBER}\s++{amount('real')}\s++{amount('user')}\s++{amount('system')}\s++{amount('rate')}\s++{NUMBER}"
            rf"(?:\s++{amount('percent')}(?:\s++{amount('resident')})?)?\s*+$",
            real=of("elapsed_s"),
            user=of("cpu_user_s"),
            system=of("cpu_system_s"),
            rate=of("operations_per_s"),
            percent=of("cpu_percent"),
            resident=of("resident_bytes_max", KIB),
        ),
        *(
            rule(
                rf"stress-ng: (?:metrc|info): +\[\d++\] (?P<workload>\w[\w-]*+)\s++{amount('rate')} MB/sec {op} rate",
                rate=of("rate_bytes_per_s", MIB, op),
            )
            for op in ("read", "write")
        ),
        rule(
            rf"stress-ng: (?:metrc|info): +\[\d++\] (?P<workload>\w[\w-]*+)\s++"
            rf"{amount('rate')} MB/sec read/write combined",
            rate=of("rate_bytes_per_s", MIB),
        ),
    ],
)

_SHELL = r"(?:[^#$]{0,80}[#$] ?)?(?:(?:sudo|time) ){0,2}"
"""Before a command."""
_DD_COPIED = (
    rf"{_LABEL}{amount('size')}(?: (?![kMGT]i?B )[^\s\d]{{1,12}}+ |字节 ?)(?:[(\uff08][^()\uff08\uff09]*+[)\uff09] ?)?"
    rf"(?:[^\s\d]{{1,14}}, |transferred in |已复制[\uff0c,] ?){amount('time')} (?:s|秒)"
)
DD = figures_format(
    "dd",
    "dd's last lines, GNU's in any language, busybox's or BSD's: each is a round of the command above it",
    recognised_by=rf"{_DD_COPIED}(?:ecs|econds)?(?:[,\uff0c]| \()|[\d.]++ [kMGT]i?B copied, ",
    words=("records in", "records out", "bytes", "copied"),
    titled=True,
    cut=r"\d++ bytes \([^()]*+\) copied(?:, [\d.]*+)?\s*+$",
    rules=[
        rule(r"(?:记录了)?\d++\+\d++ [^\s\d]", counts=True),
        # Below it, zsh's time repeats it.
        rule(rf"{_SHELL}dd (?P<workload>\w+=\S(?!.*\ds user\b).{{0,120}}?)\s*+$"),
        # What stands between a command and its figures may say that they are another's: `and reading it back:`.
        rule(
            r"(?P<workload>(?:[A-Za-z']{1,20}+ ){0,4}(?i:sequential |random )?(?i:read|write|writing)(?i:s|ing)?"
            r"(?: [A-Za-z]{1,20}+){0,3}):?\s*+$",
            may_name=True,
        ),
        rule(r"(?P<workload>(?i:read|writ|copy|load|fill)ing [^:]{1,80}?)(?: \([^()]{1,60}\))?:\s*+$", may_name=True),
        rule(
            # Shortened to what is rounded.
            rf"{NUMBER} [kMGT]i?B copied, {amount('time')} s(?:econds)?, {amount('rate')} (?P<rate_unit>[kMGT]?B)/s",
            begins=True,
            rate=of("rate_bytes_per_s"),
            time=of("elapsed_s"),
        ),
        rule(
            _DD_COPIED,
            begins=True,
            decimal_comma=True,
            size=of("bytes"),
            time=of("elapsed_s"),
            amount="size",
            quotient=("rate_bytes_per_s", "size", "time"),
        ),
    ],
)

_RSYNC_SENT = (
    r"sent [\d.,]++[KMGT]? bytes\s++received [\d.,]++[KMGT]? bytes\s++"
    rf"{amount('rate')}(?P<rate_unit>[KMGT]?) bytes/sec"
)
RSYNC = figures_format(
    "rsync",
    "rsync's last lines: the bytes that it sent and received by the time that it took; each is a round",
    recognised_by=_RSYNC_SENT,
    words=("sent", "received", "bytes/sec", "speedup"),
    titled=True,
    repeats=r"File list \w++ time|total size is [\d.,]++[KMGT]?\s++speedup is ",
    rules=[
        rule(rf"{_SHELL}rsync (?P<workload>\S.{{0,160}}?)\s*+$"),
        rule(_RSYNC_SENT, begins=True, rate=of("rate_bytes_per_s")),
        rule(
            r"[\d.,]++[KMGT]?\s++\d{1,3}%\s++[\d.,]++[kKMG]B/s\s",
            left_out="rates of single files, as --progress prints",
        ),
    ],
)

HDPARM = figures_format(
    "hdparm",
    "hdparm -t and -T: rates of reads of the device and of the cache; each is a round",
    recognised_by=r"Timing (?:cached|buffer-cache|buffered disk|O_DIRECT (?:cached|disk)) reads:",
    words=("Timing", "reads:", "MB in", "MB/sec", "seconds"),
    titled=True,
    rules=[
        rule(r"(?P<workload>/dev/[^\s:]++):\s*+$", begins=True),
        *(
            rule(
                rf"Timing (?P<phase>[\w -]{{4,30}}?)reads:\s++{amount('size')} MB in\s++{amount('time')} seconds =\s*+"
                rf"{amount('rate')} {unit}/sec",
                size=of("bytes", MIB),
                time=of("elapsed_s"),
                rate=of("rate_bytes_per_s", size),
            )
            for unit, size in (("MB", MIB), ("kB", KIB))
        ),
    ],
)

_MDTEST_PHASE = r"(?P<phase>(?:Directory|File|Tree) [a-z]++)\s*+(?::\s++)?"
"""Versions up to 3 have a colon after it. What was not measured has zeros alone; with per-rank figures, three more
numbers stand before the iterations'."""
_MDTEST = [
    rule(r"SUMMARY rate", begins=True),
    rule(r"SUMMARY time", ends=True),
    # Not possessive as a whole, which Python before 3.11.5 matches wrongly (gh-106052).
    rule(rf"{_MDTEST_PHASE}(?:0[.,]0++\s++){{3,6}}0[.,]0++\s*+$"),
]
_MDTEST_RATES = {name: of(f"operations_per_s_{name}") for name in ("mean", "min", "max")}
_MDTEST_STDDEV = of("operations_per_s_stddev")
MDTEST = figures_format(
    "mdtest",
    "mdtest's summary of rates: the mean over its own iterations, and their spread",
    # Of version 3.4 before its release: the spread is that of the ranks.
    recognised_by=r"Operation\s++per Rank:.*Std Dev\s++per Iteration:",
    words=("SUMMARY rate", "mdtest", "Directory creation", "File creation", "Tree creation"),
    titled=True,
    repeats=r"V-\d",
    rules=[
        *_MDTEST,
        rule(
            rf"{_MDTEST_PHASE}(?:{NUMBER}\s++){{4}}{amount('max')}\s++{amount('min')}\s++{amount('mean')}\s*+$",
            decimal_comma=True,
            **_MDTEST_RATES,
        ),
    ],
    otherwise=(
        r"SUMMARY rate:? ?\(.*of \d++ iterations",
        [
            *_MDTEST,
            rule(
                rf"{_MDTEST_PHASE}(?:(?:{NUMBER}\s++){{3}})??{amount('max')}\s++{amount('min')}\s++"
                rf"{amount('mean')}\s++{amount('stddev')}\s*+$",
                decimal_comma=True,
                **_MDTEST_RATES,
                stddev=_MDTEST_STDDEV,
            ),
            rule(
                rf"{_MDTEST_PHASE}{amount('max')}\s++{amount('min')}\s++{amount('mean')}\s*+$",
                decimal_comma=True,
                **_MDTEST_RATES,
            ),
        ],
    ),
)

_IOR_BEST = figures_format(
    "ior",
    "IOR's last lines",
    recognised_by=r"Max (?:Write|Read):\s++[\d.]++ MiB/sec",
    words=("Max Write",),
    rules=[
        rule(rf"Max {op}:\s++{amount('rate')} MiB/sec", rate=of("rate_bytes_per_s", MIB, op.lower()))
        for op in ("Write", "Read")
    ],
)
_IOR = figures_format(
    "ior",
    "IOR's table: rates of writes and reads; each iteration is a round, or its summary alone, the means over them",
    recognised_by=r"access\s++bw\(MiB/s\)\s|remove\s++-\s++-\s++-\s|Max (?:Write|Read):\s++[\d.]++ MiB/sec",
    words=("access", "bw(MiB/s)", "block(KiB)", "wr/rd(s)", "Max Write"),
    titled=True,
    repeats=r"Max (?:Write|Read):|stonewalling pairs",
    rules=[
        *(
            rule(
                rf"{op}\s++{amount('rate')}\s++{amount('iops')}\s++{amount('latency')}(?:\s++[\d.]++){{6}}\s++\d++\s*+$",
                rate=of("rate_bytes_per_s", MIB, op),
                iops=of("iops", op=op),
                latency=of("latency_ns_mean", 1e9, op),
            )
            for op in ("write", "read")
        ),
        *(
            rule(
                # The rest of a line that somebody shortened.
                rf"{op}\s++{amount('rate')}(?:(?:\s++[\d.]++){{6}}\s++\d++\s*+$|(?:\s++[\d.]++){{0,6}}\s++\.{{3}}\s*+$)",
                rate=of("rate_bytes_per_s", MIB, op),
            )
            for op in ("write", "read")
        ),
    ],
    # Versions before 3.3 state no operations.
    otherwise=(
        r"Operation\s++Max\(MiB\)\s",
        [
            rule(
                rf"(?:\d++: )?{op}(?:\s++\d++\.\d\d){{2}}\s++{amount('rate')}\s++\d++\.\d\d{ops}\s++{amount('time')}"
                r"(?:\s++[\d.A-Z]++){8}",
                rate=of("rate_bytes_per_s", MIB, op),
                time=of("elapsed_s", op=op),
                **({"count": of("operations_per_s", op=op)} if ops else {}),
            )
            for op in ("write", "read")
            for ops in (rf"(?:\s++\d++\.\d\d){{2}}\s++{amount('count')}\s++\d++\.\d\d", "")
        ],
    ),
)


def _parse_ior(source: Source, results: Results) -> None:
    """Its last lines have the best iterations; where nothing else is in the text, these are read."""
    if source.has_line(_IOR_TABLE):
        _IOR.parse(source, results)
    else:
        results.problem("of each operation, the best iteration alone is in the text")
        _IOR_BEST.parse(source, results)


_IOR_TABLE = re.compile(r"\s*+(?:access\s++bw\(MiB/s\)|Operation\s++Max\(MiB\)|(?:write|read|remove)\s++[-\d.])")
IOR = replace(_IOR, parse=_parse_ior)

_LAST = rf"{NUMBER}\s++"
_SPAN = r"(?:\d++h)?(?:\d++m)?[\d.]++m?s"
_LATENCIES = r"(?: us)?\s*+:\s*+\[ ?" + r"[, ]++".join(
    rf"{word}={amount(name)}(?P<{name}_unit>[mu]?s)?"
    for word, name in (("min", "min"), ("avg", "mean"), ("max", "max"))
)
_OPERATIONS = {"": "all", " write": "write", " read": "read"}
"""What a row of a mixed phase ends in -> its operation."""


def _elbencho_rules() -> Iterator[Rule]:
    """Rows of a phase, of versions 1 to 3: the first states the phase, and since 1.7 the others leave it out."""
    yield rule(r"OPERATION\s++RESULT TYPE", begins=True)
    for elapsed, time, scale in (
        ("time", rf"{_SPAN}\s++(?P<time>{_SPAN})", 1.0),
        ("(?:time )?ms", _LAST + amount("time"), 1e-3),
    ):
        yield rule(
            rf"(?P<phase>[A-Z]{{2,20}}\d{{0,3}}+)\s++Elapsed {elapsed}\s*+:\s++{time}\s*+$",
            opens=True,
            time=of("elapsed_s", scale),
        )
    for word, op in _OPERATIONS.items():
        start, last = r"(?:[A-Z]{2,20}\d{0,3}+\s++)?", rf"{word}\s*+:\s++{_LAST}"
        yield rule(rf"{start}IOPS{last}{amount('rate')}\s*+$", rate=of("iops", op=op))
        for unit, scale in (("MiB", MIB), ("MB", MB)):
            throughput = rf"(?:Throughput )?{unit}/s{last}{amount('rate')}\s*+$"
            yield rule(start + throughput, rate=of("rate_bytes_per_s", scale, op))
            yield rule(rf"{start}Total {unit}{last}{amount('size')}\s*+$", size=of("bytes", scale, op))
        yield rule(
            rf"{start}(?:Files|Dirs|Entries|Objects|Buckets)/s{last}{amount('rate')}\s*+$",
            rate=of("files_per_s", op=op),
        )
        # Microseconds where no unit stands beside the number.
        for what, prefix in (("IO", ""), ("Files", "file_"), ("Dirs", "dir_"), ("(?:Ent|Entries|Objects)", "entry_")):
            yield rule(
                rf"{start}{what} lat(?:ency)?{word}{_LATENCIES}",
                **{name: of(f"{prefix}latency_ns_{name}", US, op) for name in ("min", "mean", "max")},
            )
        yield rule(
            rf"{start}IO lat % us{word}\s*+:\s*+\[.{{0,200}}?\b50%<={amount('p50')}.{{0,200}}?\b99%<={amount('p99')}",
            p50=of("latency_ns_p50", US, op),
            p99=of("latency_ns_p99", US, op),
        )


ELBENCHO = figures_format(
    "elbencho",
    "elbencho's table: each phase, with the figures at the end of its last thread",
    recognised_by=r"OPERATION\s++RESULT TYPE\s++FIRST DONE\s++LAST DONE"
    rf"|[A-Z]{{2,20}}\d{{0,3}}+\s++Elapsed (?:time|ms)\s*+:\s++{NUMBER}"
    rf"|(?:IO|Files|Dirs|Ent|Entries|Objects) lat(?:ency)?(?: read| write)?{_LATENCIES}",
    words=("OPERATION", "RESULT TYPE", "FIRST DONE", "LAST DONE", "Throughput MiB/s"),
    titled=True,
    repeats=r"Svc compl|Time ms each",
    cut=r"(?:Svc compl|Time ms each|[A-Z]\w* lat)[^\[\]]*+\[[^\]]*+$",
    rules=list(_elbencho_rules()),
)

_TIME, _SIZE = "ns|us|ms|s|min", "B|[KMGT]iB"
IOPING = figures_format(
    "ioping",
    "ioping's statistics, with -q or without: requests, rates and latencies",
    recognised_by=rf"--- .{{1,200}}? ioping statistics ---|\d++ requests completed in {NUMBER} (?:{_TIME}), "
    rf"(?:{NUMBER} (?:{_SIZE}) (?:read|written), )?{NUMBER} (?:[kM] )?iops,"
    rf"|min/avg/max/mdev = {NUMBER} (?:{_TIME}) / ",
    words=("ioping statistics", "requests completed in", "min/avg/max/mdev"),
    titled=True,
    repeats=r"generated \d|\d++ [kKMG]?i?B (?:<<<|>>>|from) ",
    whole={"latency_ns_mean": "min/avg/max/mdev"},
    rules=[
        # Versions up to 0.6; a page may have lost the end of the line above.
        rule(
            rf"(?:--- .{{1,200}}? ioping statistics ---)?{amount('count')}\srequests completed in {NUMBER} ms, "
            rf"{amount('iops')} iops, {NUMBER} mb/s",
            begins=True,
            count=of("ops"),
            iops=of("iops"),
        ),
        rule(r"--- (?P<machine>\S{1,120})(?: .{1,80}?)? ioping statistics ---", begins=True),
        # Versions 0.6 to 0.9.
        rule(
            rf"{amount('count')}\s(?:(?P<count_unit>[kM]) )?requests completed in {NUMBER} (?:{_TIME}), "
            rf"{amount('iops')} (?:(?P<iops_unit>[kM]) )?iops, {amount('rate')} (?P<rate_unit>{_SIZE})/s",
            count=of("ops"),
            iops=of("iops"),
            rate=of("rate_bytes_per_s"),
        ),
        rule(
            rf"{amount('count')} (?:(?P<count_unit>[kM]) )?requests completed in {NUMBER} (?:{_TIME}), "
            rf"{amount('size')} (?P<size_unit>{_SIZE}) (?P<phase>read|written), "
            rf"{amount('iops')} (?:(?P<iops_unit>[kM]) )?iops, {amount('rate')} (?P<rate_unit>{_SIZE})/s",
            opens=True,
            each=("size", "count"),
            count=of("ops"),
            size=of("bytes"),
            iops=of("iops"),
            rate=of("rate_bytes_per_s"),
        ),
        rule(
            rf"min/avg/max/mdev = {amount('min')}/{amount('mean')}/{amount('max')}/{amount('stddev')} ms",
            **latencies(MS, "min", "mean", "max", "stddev"),
        ),
        rule(
            "min/avg/max/mdev = "
            + " / ".join(rf"{amount(name)} (?P<{name}_unit>{_TIME})" for name in ("min", "mean", "max", "stddev")),
            min=of("latency_ns_min"),
            mean=of("latency_ns_mean"),
            max=of("latency_ns_max"),
            stddev=of("latency_ns_stddev"),
        ),
    ],
)

RADOS = figures_format(
    "rados",
    "rados bench of Ceph: rate, IOPS and latencies of writes or reads",
    recognised_by=r"Bandwidth \(MB/sec\):\s++[\d.]++|Total (?:write|read)s made:\s++\d",
    words=("rados", "Total time run", "Bandwidth (MB/sec)", "Average IOPS", "Average Latency"),
    titled=True,
    repeats=r"Maintaining \d",
    whole={"rate_bytes_per_s": "Bandwidth (MB/sec)", "latency_ns_mean": "Average Latency(s)"},
    rules=[
        # Seconds, operations and the averages since the beginning.
        rule(
            rf"\d++(?:\s++\d++){{3}}\s++{amount('rate')}\s++{NUMBER}\s++(?:-|{NUMBER})\s++{amount('s')}\s*+$",
            so_far=True,
            rate=of("rate_bytes_per_s", MIB),
            s=of("latency_ns_mean", 1e9),
        ),
        rule(rf"Total time run:\s++{amount('s')}", begins=True, s=of("elapsed_s")),
        rule(rf"Total (?P<workload>write|read)s made:\s++{amount('count')}", names=True, count=of("ops")),
        # ceph/src/common/obj_bencher.cc divides by 2^20.
        rule(rf"Bandwidth \(MB/sec\):\s++{amount('rate')}", rate=of("rate_bytes_per_s", MIB)),
        rule(rf"Stddev Bandwidth:\s++{amount('rate')}", rate=of("rate_bytes_per_s_stddev", MIB)),
        rule(rf"Average IOPS:\s++{amount('rate')}", rate=of("iops")),
        *(
            rule(rf"{word} {what}:\s++{amount('rate')}", rate=of(f"{metric}_{word.lower()}", scale))
            for word in ("Min", "Max")
            for what, metric, scale in ((r"bandwidth \(MB/sec\)", "rate_bytes_per_s", MIB), ("IOPS", "iops", 1.0))
        ),
        rule(rf"Stddev IOPS:\s++{amount('rate')}", rate=of("iops_stddev")),
        *(
            rule(rf"{name} [Ll]atency(?:\(s\))?:\s++{amount('s')}", s=of(f"latency_ns_{metric}", 1e9))
            for name, metric in (("Average", "mean"), ("Stddev", "stddev"), ("Max", "max"), ("Min", "min"))
        ),
    ],
)

_OF_CPU = rf"\s*+\(user {amount('user')}s sys {amount('system')}s\)"
_CPU_FIGURES = {"user": of("cpu_user_s_mean"), "system": of("cpu_system_s_mean")}
COMPILEBENCH = figures_format(
    "compilebench",
    "compilebench's averages: rates and times over its own runs of each step",
    recognised_by=r"(?:intial|initial|compile|read|delete|stat)[\w ]{0,24} total runs \d++ avg ",
    words=("compilebench", "total runs", "intial create", "read compiled tree"),
    titled=True,
    rules=[
        rule(
            rf"(?P<phase>[a-z][a-z ]{{3,24}}?) total runs \d++ avg {amount('rate')} MB/s{_OF_CPU}",
            rate=of("rate_bytes_per_s_mean", MIB),
            **_CPU_FIGURES,
        ),
        rule(
            rf"(?P<phase>[a-z][a-z ]{{3,24}}?) total runs \d++ avg {amount('time')} seconds{_OF_CPU}",
            time=of("elapsed_s_mean"),
            **_CPU_FIGURES,
        ),
    ],
)

FORMATS = (
    RADOS,
    COMPILEBENCH,
    BONNIE,
    DBENCH,
    PG_TEST_FSYNC,
    STRESS_NG,
    DD,
    RSYNC,
    HDPARM,
    MDTEST,
    IOR,
    ELBENCHO,
    IOPING,
)
