"""Formats that are recognised and not read, each with what makes its tool write one that is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from iolab.base.plain_text import counted
from iolab.files.importer.unread_figures import has_unit, is_header, is_row
from iolab.files.importer.written_number import is_number

LINES_OF_TABLE = 5
IF_ROUNDS = "if they are rounds, add 'runs' and leave out their average"


INTO_CSV = "put its figures into a CSV file, a row per run"
COUNTS = "put its counts into a CSV file, a row per run and a column per event"
TRACE = "read it with iolab trace"
OF_DRIVE = (
    "these are a drive's counters since it was made, and no load's figures; put what each run added to them into a CSV "
    "file, a row per run, such as setting,round,data_units_written"
)


class UnreadFormat(NamedTuple):
    """A format: a line that only it has, and the way out."""

    name: str
    line: re.Pattern[str]
    remedy: str


UNREAD = tuple(
    UnreadFormat(name, re.compile(pattern), remedy)
    for name, pattern, remedy in (
        ("stress-ng's YAML", r"^\s*bogo-ops-per-second-real-time:", "use what --metrics prints"),
        ("the report of perf stat", r"Performance counter stats for", COUNTS),
        ("IOR's JSON", r"\"bwMaxMIB\"", "leave out -O summaryFormat=JSON"),
        ("ioping's JSON", r"\s*\"ignored\": (?:true|false)", "leave out -json"),
        ("ioping's raw statistics", r"^\d+(?: \d+){9}$", "leave out -B and -p"),
        ("a report of pidstat without -d", r"\bUID\s+(?:TGID\s+TID|PID)\s", "run pidstat -d"),
        (
            "a report of sar without devices",
            r"\b(?:pgpgin/s|kbmemfree|runq-sz|proc/s)\s",
            "run sar -d, sar -b or sar -u",
        ),
        ("mpstat's report of interrupts or nodes", r"\s(?:intr/s|NODE\s+%usr)", "leave out -I and -n"),
        ("perf stat's CSV", r"^[\d.]+,[^,]*,[\w:/.-]+,\d+,\d+\.\d+,", COUNTS),
        ("perf bench's report", r"^# Running '[\w/-]+' benchmark", INTO_CSV),
        ("pg_test_timing's report", r"^Per loop time including overhead", INTO_CSV),
        (
            "smartctl's report",
            r"^smartctl \d|^Data Units Written:|^SMART/Health Information|^\s*\"smartctl\": \{"
            r"|^ID# ATTRIBUTE_NAME\s+FLAG",
            OF_DRIVE,
        ),
        (
            "nvme's log",
            r"\b(?:(?:host|nand)_bytes_written|wear_leveling|percentage_used|percent_used|data_units_(?:read|written)|avail_spare)\b",
            OF_DRIVE,
        ),
        (
            "blkparse's summary of a trace",
            r"^\s*Reads Queued:\s+[\d,]+,\s+[\d,]+Ki?B",
            "read the trace itself with iolab trace",
        ),
        ("btt's report", r"^=+ All Devices =+", "read the trace itself with iolab trace"),
        ("a histogram", r"^\s*[mun]?secs?\s+: count\s+distribution", TRACE),
        (
            "a histogram",
            r"^\s*(?:\S+\s+: count\s+distribution|\[\d+\w?, \d+\w?\)\s+\d+ \|)",
            f"{TRACE}; write the unit of its latencies in the line above the buckets, such as '@usecs:'",
        ),
        (
            "/proc/mdstat",
            r"^\s*\[[=>.]+\]\s+(?:resync|recovery|reshape|check) *=",
            "put the speed of each run into a CSV file, such as setting,round,rate (kB/s)",
        ),
        (
            "a copy of /proc/diskstats",
            r"^\s*\d+\s+\d+\s+[a-z]\S*(?:\s+\d+){11,17}\s*$",
            "its counters grow from boot on: run iostat -x during the load, or put what each run added to them into a "
            "CSV file, a row per run",
        ),
        (
            "a histogram of the nvme tool",
            r"^Bucket\s+\d+: \d+[mun]?s to \d+",
            "put its percentiles into a CSV file, a row per run, such as setting,round,latency p99 (us)",
        ),
        (
            "a table of ratios alone",
            r"^\s*Relative to:?\s",
            "give the figures that they were computed from: iolab compares measurements",
        ),
        ("a trace of block events", r"\d: +(?:block:)?block_(?:rq|bio)_\w+: ", TRACE),
        (
            "a trace of block events without their times",
            r"\bblock_(?:rq|bio)_\w+: ",
            "give the lines as the kernel prints them, such as 'task-12 [001] 3.456789: block_rq_issue: ...'",
        ),
        (
            "warp cmp's differences",
            r"^\s*(?:\* )?[\w% ]{4,12}: [-+][\d.]+% \([-+].*(?:throughput|obj/s)",
            "give what warp analyze prints of each file, such as warp analyze OLD.csv.zst > old.txt: iolab compare "
            "old.txt new.txt",
        ),
        (
            "a trace of biosnoop",
            r"^(?:#\s*)?\"?TIME[^\s,]*[\s,]+\"?COMM\"?[\s,]+\"?PID\"?[\s,]+\"?DISK"
            r"|^\d+\.\d+\s+\S.{0,30}\s\d+\s+\S+\s+[RWDFNEASM]{1,4}\s+\d+\s+\d+(?:\s+-?\d+\.\d+){1,2}\s*$",
            TRACE,
        ),
        (
            "a trace of system calls (strace)",
            r"^(?:\[?(?:pid )?\s*\d+\]? )?(?:[\d:.]+ )?"
            r"(?:p?(?:read|write)v?2?(?:64)?|f(?:data)?sync|openat)\(.*\)\s+= -?\d",
            "record the block I/Os themselves: iolab record; or put the times of calls into a CSV file, a row each, "
            "such as setting,round,fsync latency (s)",
        ),
        ("a trace of blktrace", r"^\s*\d+,\d+\s+\d+\s+\d+\s+\d+\.\d+\s+\d+\s+[A-Z]\s", TRACE),
        ("iorate's table", r"^\s*test_number\s+test_name\s", INTO_CSV),
        ("arcstat's report", r"^\s*time\s+(?:read|hits)\s.*\bmiss", INTO_CSV),
        (
            "the progress of Kafka's performance test, without its last line",
            r"^\s*\d+ records sent, [\d.]+ records/sec",
            "give the line at its end too, which has percentiles such as '99th'",
        ),
        (
            "perf sched's delays of tasks",
            r"^\s*Task\s+\|\s+Runtime ms\s+\|",
            "they are delays of processors, not of I/O; put them into a CSV file, a row per run",
        ),
        ("a result file of Phoronix", r"<PhoronixTestSuite>", "phoronix-test-suite result-file-to-csv NAME"),
        ("cargo bench's report", r"^test \S+ +\.\.\. bench: ", INTO_CSV),
        ("DTrace's distribution", r"^\s*value  -+ Distribution -+ count", INTO_CSV),
        ("juicefs bench's progress", r"^\s*(?:Write|Read) (?:big|small) blocks: \d+/\d+ ", "give the table at its end"),
        (
            "bdevperf's report of old",
            r"^\s*\S+\s+: *[\d.]+ IO/s\s+[\d.]+ MB/s",
            "put its figures into a CSV file, a row per run; its MB are 2^20 bytes",
        ),
        (
            "a trace of bcc's trace, without times",
            r"^\d+\s+\d+\s+\S+\s+block_\w+\s",
            "record the I/Os themselves: iolab record, or biosnoop",
        ),
        ("Criterion's report", r"^\s*\S.*\s(?:time|thrpt):\s+\[[\d.]+ \S+ [\d.]+ ", INTO_CSV),
        (
            "Google Benchmark's report",
            r"^Benchmark\s+Time\s+CPU\s+Iterations",
            "have it write CSV: --benchmark_format=csv",
        ),
        ("gstat's report", r"^\s*L\(q\)\s+ops/s\s", "run iostat -x in its place"),
        (
            "iotop's report",
            r"\bDISK READ\s+DISK WRITE\b|(?:Total|Actual) DISK READ\s*:",
            "run pidstat -d, or iostat -x, in its place",
        ),
        (
            "zpool iostat's histograms or queues",
            r"\b(?:total_wait|syncq_read|sync_queue|req_size\s+ind)\b",
            "run zpool iostat -lv",
        ),
        ("ezFio's table", r"^-+\s*Sustained Multi-Threaded|^ezFio test parameters", "give the CSV file that it writes"),
        ("winsat's report", r"^(?:> )?Disk\s+(?:Random|Sequential) [\d.]+ (?:Read|Write)\s", INTO_CSV),
        (
            "pv's progress",
            r"^\s*[\d.]+[KMGT]?i?B \d+:\d\d:\d\d \[",
            "its rate is that of the last second; have it print the average: pv -a",
        ),
        ("blogbench's scores", r"^Final score for (?:re)?writes:", INTO_CSV),
        ("xdd's report", r"^\s*T\s+Q\s+Bytes\s+Ops\s+Time\s+Rate\s+IOPS\b", INTO_CSV),
        ("flent's summary of a network", r"^Summary of \w+ test run from", INTO_CSV),
        ("iperf's report", r"^\[ *(?:ID|SUM)\] Interval\s+Transfer", INTO_CSV),
        ("a histogram of Prometheus", r"^\w+_bucket\{[^}]*\ble=\"[^}]*\} \d", TRACE),
        ("a page of Prometheus' metrics", r"^# TYPE \w+ (?:histogram|counter|gauge|summary)\s*$", INTO_CSV),
        ("an I/O profile of juicefs stats", r"^-+usage-+ -+fuse-+", INTO_CSV),
    )
)

BESIDE = (
    *(one for one in UNREAD if one.name in ("the report of perf stat", "a histogram", "/proc/mdstat")),
    UnreadFormat(
        "mdtest's part per rank",
        re.compile(r"Operation\s++per Rank:.*Std Dev\s++per Iteration:"),
        "the part per iteration is",
    ),
)
"""Those that stand beside results of other tools, and have nothing that those print."""

NO_RESULT = "it has no figures of a load; give what the benchmark printed"
PARTS = tuple(
    UnreadFormat(name, re.compile(pattern), remedy)
    for name, pattern, remedy in (
        ("a kernel's log", r"^(?:<\d{1,3}>)?\[\s*\d{1,7}\.\d{6}\]\s", NO_RESULT),
        ("the error counters of btrfs", r"^\[\S+\]\.(?:write_io|read_io|corruption)_errs\s+\d", NO_RESULT),
        ("turbostat's report", r"\bAvg_MHz\s+Busy%", "it has no figures of I/O; iostat -x at the same time has"),
        (
            "a list of devices or filesystems",
            r"^NAME\s+(?:MAJ:MIN|SIZE|FSTYPE|TYPE)\b|^Filesystem\s+(?:Type\s+)?(?:Size|1[KM]-blocks)\s",
            NO_RESULT,
        ),
        ("single lines of fio's output", r"\bIOPS=[\d.]+k?, BW=", "give all of its output, or a row per run as CSV"),
        (
            "a page of results of OpenBenchmarking.org",
            r"^\s*OpenBenchmarking\.org\b|\b(?:More|Fewer|Less|Higher|Lower) Is Better\b",
            "have the Phoronix Test Suite write CSV: phoronix-test-suite result-file-to-csv NAME",
        ),
        (
            "a part of fio's JSON",
            r"^\s*\"(?:jobname|[sc]?lat(?:_ns)?|io_k?bytes|iops_mean|usr_cpu|latency_[num]s|iodepth_level)\" ?: ",
            "give all of it, from its first brace",
        ),
        (
            "a part of fio's output, without its rates",
            r"^\s*(?:[sc]?lat|bw|issued rwts?)\s*(?:\([a-zA-Z /]+\))?\s*: (?:min=|total=)|\b[Bb][Ww]=[\d.]+[KMG]?i?B/s",
            "give the lines above it too, from 'read: IOPS=' or 'write: IOPS=' on",
        ),
        (
            "ioping's lines of requests, without its statistics",
            r"^\d+ [kKMG]?i?B \S+ .*\b(?:request|seq)=\d+ time=",
            "give the lines at its end too; ioping prints them at Ctrl-C, and alone with -q",
        ),
        (
            "mdtest's table without the line that states whether it has rates or times",
            r"^\s*Operation\s+Max\s+Min\b",
            "if these are rates, write it above them: SUMMARY rate: (of 1 iterations)",
        ),
        (
            "rados bench's progress, without its summary",
            r"^\s*(?:\S+\s+)?sec Cur ops\s+started\s+finished",
            "give the lines from 'Total time run' on, too",
        ),
        (
            "dbench's progress, without its summary",
            r"^\s*\d+\s+\d+\s+[\d.]+ MB/sec\s+(?:warmup|execute|cleanup)\s+\d+ sec\b",
            "give the lines at its end too, from 'Operation Count AvgLat' on; if it failed, it has none",
        ),
        (
            "fio's progress, without its results",
            r"^\s*Jobs: \d+ \(f=\d+\)",
            "give the lines at its end too; fio prints them at Ctrl-C as well",
        ),
        (
            "the progress of cockroach workload, without its results",
            r"^\s*_elapsed_+errors_+ops/sec\(inst\)_",
            "give the lines at its end too, from '_elapsed___errors_____ops(total)' on",
        ),
        (
            "YCSB's progress, without its report",
            r"\b\d+ sec: \d+ operations; ",
            "give the lines at its end too, from '[OVERALL]' on",
        ),
        (
            "sysbench's progress, without its results",
            r"^\[ \d+s \] (?:thds|reads): ",
            "give the lines at its end too, from 'SQL statistics' or 'File operations' on",
        ),
        (
            "db_bench's progress, without its results",
            r"\.\.\. thread \d+: \(\d+,\d+\) ops and",
            "give the lines at its end too, such as 'readrandom : 12.2 micros/op'",
        ),
        (
            "a post whose figures are in pictures",
            r"\[img\]|!\[[^\]]*\]\(|\S\.(?:png|jpe?g)\b",
            "write the figures that they show into a CSV file, a row per run, such as setting,round,rate (MB/s)",
        ),
        (
            "a change of sources",
            r"^\s*\d+ files? changed, \d+ (?:insertion|deletion)",
            f"if its text has results, {INTO_CSV}",
        ),
        (
            "a text with rates in M/s (bytes, or operations)",
            r"\d ?[kKMG]/s\b",
            "write MB/s or MiB/s if they are bytes, Mops/s if they are operations, and read it again",
        ),
        (
            "a text with rates in Mb/s (perhaps bits)",
            r"\d ?[kMG]i?b(?:/s|ps)\b",
            "write MB/s, or an eighth of it, and read it again",
        ),
    )
)
"""Of outputs and texts from which only a part is here. Looked for where nothing else is in the text."""

INPUTS = tuple(
    UnreadFormat(name, re.compile(pattern), remedy)
    for name, pattern, remedy in (
        (
            "smallfile's settings, without its results",
            r"^\s*files/thread : \d",
            "give the lines at its end too, from 'total threads' on",
        ),
        (
            "fio's job file, without results",
            r"^(?:ioengine|iodepth|rwmixread|readwrite|rw)\s*=\s*\w[\w.%:-]*\s*(?:[#;].*)?$",
            "run it, in a file of its own: iolab run FILE.fio",
        ),
        (
            "a command of fio, without its results",
            r"^\s*(?:\W ?)?(?:sudo )?(?:\S*/)?fio\s+-{1,2}\w",
            "give what fio printed, or put the options into a job file and run it: iolab run FILE.fio",
        ),
    )
)
"""What was asked for, where no line of the text has a rate or a latency."""
OPTION = re.compile(r"\s*[a-z_]+\s*=\s*\S{1,80}\s*(?:[#;].*)?")
"""A line of a job file, with its remark: `rate_iops=20000` is none of results."""


_BARE = re.compile(r"\s*+-?\d[\d.]*+(?>(?:[\s,;]++-?\d[\d.]*+){2,})\s*+$")
_ALONE = re.compile(r"\s*+-?\d{1,15}\.\d{1,15}\s*+$|\s*+-?\d{1,3}(?:,\d{3})+\s*+$")
"""Decimals or thousands: a list of whole numbers may number something."""
RANGE = re.compile(
    r"(?<![\d.,])\d[\d.,]*+[kM]? ?(?:-|~|\u2013|\.\.|to) ?\d[\d.,]*+ ?(?:[kM]? ?IOPS|[kKMGT]?i?B/s|[mun]s)\b",
    re.IGNORECASE,
)
_COUNT = re.compile(r"(?<![\w.])\d[\d.,]*+ ?[kKM]? (?:reads?|writes?)\b", re.IGNORECASE)
"""`245K read`: a figure whose unit is in the writer's mind."""
_SHARE = re.compile(r"(?<![\w.])[-+~]?\d[\d.,]*+ ?(?:%|per ?cent\b|x\b)", re.IGNORECASE)
_PAIR = re.compile(r"(?<![\w.])\d[\d.,]*+\s+\d[\d.,]*+(?![\w.])")
LINE_MAX = 40
_CELLS = re.compile(r"[^\s,;]+")
_CELL_ALONE = re.compile(r"\s*+[^|\s][^|]{0,60}\|\s*+$")
CELLS_ALONE_MIN = 6
ROWS_MIN = 3
NAMES_ABOVE_MAX = 2
_ROW_OF_BARS = re.compile(r"\s*(?:[|│].*\d.*[|│]\s*$|[|│][\s|│]*$|```)")


class _Shape(NamedTuple):
    """What a text is beyond doubt that is no CSV file: how it is seen, and how to make one of it."""

    what: str
    remedy: str


def shape_of(lines: Sequence[str]) -> _Shape | None:
    """JSON, and tables whose columns have something else between them than in a CSV file; None for any other text."""
    filled = [line for line in lines if line.strip()][:LINES_OF_TABLE]
    if filled and re.match(r"\s*(?:\{|\[\s*(?:[\[{\"\]]|$))", filled[0]):
        return _Shape("JSON of none of the tools that iolab knows", "make a CSV file of it: jq -r '... | @csv'")
    if len(filled) > 1 and all(_ROW_OF_BARS.match(line) for line in filled):
        return _Shape("rows of a table without its header", "give the line above them, too, that names the columns")
    if sum(map(bool, map(_CELL_ALONE.match, lines))) >= CELLS_ALONE_MIN:
        return _Shape(
            "a table with a cell per line",
            "make a line of each row, such as 'name | IOPS | latency (ms)' and the rows below it, with the units of "
            "figures in the names of their columns",
        )
    has_names = bool(filled) and not filled[0].rstrip().endswith(":")
    for what, separator, change in (
        ("bars", r"\s*\|\s*", "s/ *[|] */,/g"),
        ("spaces", " +", "s/^ +//; s/ +/,/g"),
    ):
        rows = [re.split(separator, line.strip().strip("|").strip()) for line in filled]
        if has_names and len(rows) > 1 and len(rows[0]) > 1 and all(_is_row(row, rows[0]) for row in rows[1:]):
            return _Shape(f"a table with {what} between its columns", f"make a CSV file of it: sed -E '{change}'")
    ranges = [found[0] for line in lines if (found := RANGE.search(line))]
    if 2 * len(ranges) > sum(map(has_unit, lines)):
        return _Shape(
            f"its figures are ranges, such as {ranges[0][:LINE_MAX]!r}",
            "give the figure of each run, a line each, such as 'before: 4209 IOPS'",
        )
    shares = [found[0] for line in lines if (found := _SHARE.search(line))]
    texts = [_SHARE.sub(" ", line) for line in lines if not is_header(line)]
    if shares and not any(
        has_unit(text) or is_row(text) or _PAIR.search(text) or _COUNT.search(text) for text in texts
    ):
        return _Shape(
            f"it has ratios alone, such as {shares[0]!r}: only changes, and iolab compares measurements",
            "give the figures that they were computed from, before and after, such as 'before: 4209 IOPS'",
        )
    if alone := lone_figures(lines):
        return _Shape(
            f"{counted(alone, 'line')} of a figure alone; nothing states what the figures are",
            f"name each, such as 'latency: 5.2 ms'; {IF_ROUNDS}",
        )
    if _is_headless(lines):
        return _Shape(
            "rows of figures without a heading",
            "write one above them that names each column and its unit, such as setting,round,rate (MB/s); if each row "
            "is an I/O, name the columns with iolab trace FILE --columns",
        )
    return None


def lone_figures(lines: Sequence[str]) -> int:
    """How many lines have a figure and nothing else, of which so many follow each other that they are a list."""
    are_alone = [bool(_ALONE.match(line)) for line in lines]
    return sum(len(run) for one, of_one in groupby(are_alone) if one and len(run := list(of_one)) >= ROWS_MIN)


def _is_headless(lines: Sequence[str]) -> bool:
    """Whether there are rows of nothing but figures, and no line of as many names above the first."""
    rows = [place for place, line in enumerate(lines) if _BARE.match(line)]
    if len(rows) < ROWS_MIN:
        return False
    count = len(_CELLS.findall(lines[rows[0]]))
    above = lines[max(rows[0] - NAMES_ABOVE_MAX, 0) : rows[0]]
    return not any(len(_CELLS.findall(line)) >= count for line in above)


def _is_row(row: Sequence[str], header: Sequence[str]) -> bool:
    return len(row) == len(header) and any(map(is_number, row)) and not any(map(is_number, header))
