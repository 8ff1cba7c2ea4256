"""More reports of lines with figures: those of file servers, clusters, object stores and rented machines.

etcd's benchmark and etcdctl's check, bbolt's bench, cockroach workload, cryptsetup benchmark, filebench, vdbench, rbd
bench, ceph osd perf, SPDK's perf, warp, IO500, kubestr, pveperf, bench.sh, nench.sh, the summary of the container image
dbench, YCSB, smallfile, mongo-perf, memtier_benchmark, and percentiles in a line.
"""

from __future__ import annotations

from iolab.files.importer.figures import GIB, KIB, MIB, MS, NUMBER, US, Figure, Rule, figures_format, of, rule

TOO_SHORT = "below the decimals that are printed"


def _figure(name: str) -> str:
    return rf"(?P<{name}>{NUMBER})"


def _span(name: str) -> str:
    return rf"{_figure(name)}(?P<{name}_unit>[num]?s)"


def _positive(name: str) -> str:
    """A figure, without a value if it is zero: too small for its decimals."""
    return rf"(?:0++\.0++(?![\d.])|(?P<{name}>{NUMBER}))"


_FILEBENCH_LATENCY = {
    "mean": of("latency_ns_mean", MS),
    "min": of("latency_ns_min", MS),
    "max": of("latency_ns_max", MS),
}
FILEBENCH = figures_format(
    "filebench",
    "filebench's summary, and its breakdown by operation",
    recognised_by=r"(?:\d{1,9}: )?\d[\d.]{0,20}+: (?:IO Summary:|Per-Operation Breakdown)",
    words=("filebench", "Per-Operation Breakdown", "IO Summary", "ops/s", "ms/op"),
    titled=True,
    repeats=r"[\d.]++: Run took",
    rules=[
        rule(r"(?:\d{1,9}: )?[\d.]++: Per-Operation Breakdown", begins=True),
        # filebench/flowop.h: a megabyte is 2^20 bytes.
        rule(
            rf"(?P<phase>[\w.-]{{1,60}}+)\s++{_figure('count')}ops\s++{_figure('iops')}ops/s\s++{_figure('rate')}mb/s\s++"
            rf"{_positive('mean')}ms/op(?:\s++[\d.]++us/op-cpu)?"
            rf"(?:\s++\[\s*+{_positive('min')}ms\s*+-\s*+{_positive('max')}ms\])?",
            absent=TOO_SHORT,
            count=of("ops"),
            iops=of("iops"),
            rate=of("rate_bytes_per_s", MIB),
            **_FILEBENCH_LATENCY,
        ),
        rule(
            rf"(?:\d{{1,9}}: )?[\d.]++: IO Summary:\s++{_figure('count')} ops,?\s++{_figure('iops')} ops/s,?\s++"
            rf"\(?{_figure('reads')}/{_figure('writes')} r(?:d)?/w(?:r)?\)?,?\s++{_figure('rate')}mb/s,?\s++"
            rf"(?:[\d.]++us cpu/op,\s++)?{_positive('mean')}ms(?:/op| latency)",
            absent=TOO_SHORT,
            count=of("ops"),
            iops=of("iops"),
            reads=of("iops", op="read"),
            writes=of("iops", op="write"),
            rate=of("rate_bytes_per_s", MIB),
            mean=_FILEBENCH_LATENCY["mean"],
        ),
    ],
)

_TIME_OF_DAY = r"(?:\w{3} \d\d, \d{4} )?\d\d:\d\d:\d\d\.\d{1,3}\s++"
_SKIP = rf"{NUMBER}\s++"
_RAW = rf"{_TIME_OF_DAY}avg_\d++-\d++\s++{_figure('iops')}\s++{_figure('rate')}\s++{_SKIP}{_SKIP}{_figure('mean')}\s++"


def _vdbench_rules() -> list[Rule]:
    """The averages of each run: of raw devices by version, and of filesystems, whose line has more columns."""
    all_ = {"iops": of("iops"), "rate": of("rate_bytes_per_s", MIB), "mean": of("latency_ns_mean", MS)}
    return [
        rule(rf"{_TIME_OF_DAY}Starting RD=(?P<workload>\S.{{0,200}}?)\s*+$", begins=True),
        # Versions before 5.04.06, and those since.
        rule(
            _RAW + rf"{_figure('max')}\s++{_figure('stddev')}\s++{_SKIP}{NUMBER}\s*+$",
            **all_,
            max=of("latency_ns_max", MS),
            stddev=of("latency_ns_stddev", MS),
        ),
        rule(
            _RAW
            + rf"{_positive('r_mean')}\s++{_positive('w_mean')}\s++{_positive('r_max')}\s++{_positive('w_max')}\s++"
            rf"{_figure('stddev')}\s++{_figure('depth')}\s++{_SKIP}{NUMBER}\s*+$",
            absent="none of them, or too short to be printed",
            **all_,
            r_mean=of("latency_ns_mean", MS, "read"),
            w_mean=of("latency_ns_mean", MS, "write"),
            r_max=of("latency_ns_max", MS, "read"),
            w_max=of("latency_ns_max", MS, "write"),
            stddev=of("latency_ns_stddev", MS),
            depth=of("queue_depth_mean"),
        ),
        rule(
            rf"{_TIME_OF_DAY}avg_\d++-\d++\s++{_figure('iops')}\s++{_figure('mean')}\s++{_SKIP}{_SKIP}{_SKIP}"
            rf"{_figure('reads')}\s++{_positive('r_mean')}\s++{_figure('writes')}\s++{_positive('w_mean')}\s++"
            rf"{_figure('r_rate')}\s++{_figure('w_rate')}\s++{_figure('rate')}\s++{NUMBER}(?:\s++{NUMBER}){{10,14}}+\s*+$",
            absent="none of them, or too short to be printed",
            iops=of("operations_per_s"),
            mean=of("latency_ns_mean", MS),
            rate=of("rate_bytes_per_s", MIB),
            reads=of("iops", op="read"),
            writes=of("iops", op="write"),
            r_mean=of("latency_ns_mean", MS, "read"),
            w_mean=of("latency_ns_mean", MS, "write"),
            r_rate=of("rate_bytes_per_s", MIB, "read"),
            w_rate=of("rate_bytes_per_s", MIB, "write"),
        ),
    ]


VDBENCH = figures_format(
    "vdbench",
    "vdbench's output: the averages of each run of devices or of filesystems",
    recognised_by=rf"{_TIME_OF_DAY}avg_\d++-\d++\s",
    words=("Vdbench", "interval", "MB/sec", "resp", "Starting RD="),
    rules=_vdbench_rules(),
)

RBD = figures_format(
    "rbd",
    "rbd bench of Ceph: operations and bytes per second",
    recognised_by=r"elapsed:\s++\d++\s++ops:\s++\d++\s++ops/sec:",
    words=("rbd", "bench", "elapsed:", "ops/sec:", "bytes/sec:"),
    titled=True,
    rules=[
        rule(r"bench(?:-write)?\s++(?P<workload>(?:type \w|io_size)[\w ]{0,120}?)\s*+$", begins=True),
        rule(
            rf"elapsed:\s++{_figure('time')}\s++ops:\s++{_figure('count')}\s++ops/sec:\s++{_figure('iops')}\s++"
            rf"bytes/sec:\s++{_figure('rate')}(?: (?P<rate_unit>[KMGT]iB|B)/s)?",
            time=of("elapsed_s"),
            count=of("ops"),
            iops=of("iops"),
            rate=of("rate_bytes_per_s"),
        ),
    ],
)

OSD_PERF = figures_format(
    "osd-perf",
    "ceph osd perf: latencies of each OSD at that moment",
    recognised_by=r"osd(?:id)?\s++(?:fs_)?commit_latency\(ms\)\s++(?:fs_)?apply_latency\(ms\)",
    words=("osd", "commit_latency(ms)", "apply_latency(ms)"),
    titled=True,
    rules=[
        rule(r"osd(?:id)?\s++(?:fs_)?commit_latency", begins=True),
        rule(
            rf"(?P<workload>\d{{1,6}}+)\s++{_figure('commit')}\s++{_figure('apply')}\s*+$",
            commit=of("commit_latency_ns", MS),
            apply=of("apply_latency_ns", MS),
        ),
    ],
)

_SPDK = (
    rf":\s++{_figure('iops')}\s++{_figure('rate')}\s++{_figure('mean')}\s++{_figure('min')}\s++{_figure('max')}\s*+$"
)
_SPDK_FIGURES = {
    "iops": of("iops"),
    "rate": of("rate_bytes_per_s", MIB),
    **{name: of(f"latency_ns_{name}", US) for name in ("mean", "min", "max")},
}
SPDK_PERF = figures_format(
    "spdk-perf",
    "SPDK's spdk_nvme_perf: IOPS, rate and latency of each device and in total, percentiles",
    recognised_by=r"Device Information\s++:\s++IOPS\s++Mi?B/s\s++Average|Summary latency data for ",
    words=("Device Information", "IOPS", "MiB/s", "Average", "from core"),
    titled=True,
    repeats=r"\d++\.\d++% :",
    rules=[
        rule(r"Device Information\s++:", begins=True),
        rule(r"Total\s++" + _SPDK, **_SPDK_FIGURES),
        rule(r"(?P<phase>\S.{0,100}?from core\s++\d++)" + _SPDK, **_SPDK_FIGURES),
        rule(r"Summary latency data for (?P<phase>\S.{0,100}?from core\s++\d++):", opens=True),
        *(
            rule(rf"{percent}0*% :\s*+{_figure('at')}us", at=of(f"latency_ns_{name}", US))
            for percent, name in (
                ("50\\.", "p50"),
                ("90\\.", "p90"),
                ("95\\.", "p95"),
                ("99\\.", "p99"),
                ("99\\.9", "p999"),
            )
        ),
    ],
)

_SPAN = r"(?:\d++m)?[\d.]++[mµu]?s"
_MEAN_OF_WARP = r"\* (?:(?:Average|Throughput): )?"
WARP = figures_format(
    "warp",
    "warp's analysis of an object store: a workload for each operation",
    recognised_by=rf"{_MEAN_OF_WARP}{NUMBER} (?:Mi?B/s, {NUMBER} )?obj/s|\* (?:Reqs: )?Avg: {_SPAN}, 50%: ",
    words=("warp", "Operation:", "* Average:", "obj/s", "Throughput, split into"),
    titled=True,
    rules=[
        rule(r"(?:Report|Operation): (?P<workload>[A-Z][A-Za-z]{2,12})\b", begins=True),
        # Versions that write MB/s mean 2^20 bytes as well (pkg/bench/analyze.go).
        *(
            one
            for place, begins in ((_MEAN_OF_WARP, False), (r"(?P<workload>Cluster Total):\s++", True))
            for one in (
                rule(rf"{place}{_figure('objects')} obj/s", begins=begins, objects=of("operations_per_s")),
                rule(
                    rf"{place}{_figure('rate')} Mi?B/s, {_figure('objects')} obj/s",
                    begins=begins,
                    rate=of("rate_bytes_per_s", MIB),
                    objects=of("operations_per_s"),
                ),
            )
        ),
        rule(rf"\* \S{{1,200}}: Avg: {NUMBER} (?:Mi?B/s|obj/s)", left_out="what warp's report has of each host"),
        rule(
            rf"\* (?:Fastest|50% Median|Slowest): {NUMBER} ?(?:Mi?B/s|obj/s)",
            left_out="the fastest, median and slowest part of the time in warp's report",
        ),
        rule(
            rf"\* (?:Reqs: )?Avg: (?P<mean>{_SPAN}), 50%: (?P<p50>{_SPAN}), 90%: (?P<p90>{_SPAN}), "
            rf"99%: (?P<p99>{_SPAN}), Fastest: (?P<min>{_SPAN}), Slowest: (?P<max>{_SPAN})",
            **{name: of(f"latency_ns_{name}", 1e9) for name in ("mean", "p50", "p90", "p99", "min", "max")},
        ),
    ],
)

PVEPERF = figures_format(
    "pveperf",
    "Proxmox's pveperf: reads, seeks and syncs",
    recognised_by=r"FSYNCS/SECOND:\s++\d",
    words=("pveperf", "BUFFERED READS", "AVERAGE SEEK TIME", "FSYNCS/SECOND"),
    titled=True,
    whole={"fsyncs_per_s": "FSYNCS/SECOND"},
    rules=[
        rule(r"CPU BOGOMIPS:", begins=True),
        rule(rf"BUFFERED READS:\s++{_figure('rate')} MB/sec", rate=of("rate_bytes_per_s", MIB, "read")),
        rule(rf"AVERAGE SEEK TIME:\s++{_figure('seek')} ms", seek=of("seek_latency_ns_mean", MS)),
        rule(rf"FSYNCS/SECOND:\s++{_figure('syncs')}", syncs=of("fsyncs_per_s")),
    ],
)

_NENCH_TIMES = " / ".join(rf"{_figure(name)} (?P<{name}_unit>[mun]?s)" for name in ("min", "mean", "max", "stddev"))
BENCH_SH = figures_format(
    "bench.sh",
    "bench.sh and nench.sh of rented machines: copies by dd, each a round, and what ioping measured",
    recognised_by=r"I/O [Ss]peed ?\(\d\w\w run\)\s*+:|ioping: seek rate",
    words=("I/O Speed", "Average I/O speed", "1st run", "ioping: seek rate"),
    titled=True,
    rules=[
        rule(r"nench\.sh v|Processor:", begins=True),
        rule(
            rf"(?:I/O [Ss]peed ?\()?\d\w\w run\)?\s*+:\s++{_figure('rate')} (?P<rate_unit>[kMG]i?B)/s",
            begins=True,
            rate=of("rate_bytes_per_s", op="write"),
        ),
        rule(
            rf"min/avg/max/mdev = {_NENCH_TIMES}",
            **{name: of(f"latency_ns_{name}", phase="seek") for name in ("min", "mean", "max", "stddev")},
        ),
        rule(
            rf"generated {NUMBER} (?:k )?requests in {NUMBER} s, {NUMBER} [KMGT]iB, "
            rf"{_figure('iops')} (?:(?P<iops_unit>[kM]) )?iops, {_figure('rate')} (?P<rate_unit>[KMG]iB)/s",
            iops=of("iops", op="read", phase="sequential"),
            rate=of("rate_bytes_per_s", op="read", phase="sequential"),
        ),
    ],
)

_IO_URING_IOPS = rf"(?:[\w=, ]{{0,80}}?, )?IOPS={_figure('iops')}(?P<iops_unit>[kKM]?), "
IO_URING = figures_format(
    "t-io_uring",
    "fio's t/io_uring: a line is a round",
    recognised_by=r"(?:[\w=, ]{0,80}?, )?IOPS=[\d.]++[kKM]?, (?:BW=[\d.]++[KMG]iB/s, )?IOS/call=",
    words=("IOPS=", "BW=", "IOS/call="),
    titled=True,
    rules=[
        rule(
            rf"{_IO_URING_IOPS}BW={_figure('rate')}(?P<rate_unit>[KMG]iB)/s, IOS/call=",
            begins=True,
            iops=of("iops"),
            rate=of("rate_bytes_per_s"),
        ),
        # Older versions print no bandwidth.
        rule(rf"{_IO_URING_IOPS}IOS/call=", begins=True, iops=of("iops")),
    ],
)

_THOUSANDS = r"[\d.]{1,12}+k?"


def _pair(name: str) -> str:
    return rf"(?P<{name}_read>{_THOUSANDS})/(?P<{name}_write>{_THOUSANDS})"


def _ways(name: str, metric: str, scale: float = 1.0) -> dict[str, Figure]:
    return {f"{name}_{op}": of(metric, scale, op) for op in ("read", "write")}


_RATES = (
    rf"{_figure('rate_read')}(?P<rate_read_unit>[KMGT]iB)/s / {_figure('rate_write')}(?P<rate_write_unit>[KMGT]iB)/s"
)
_LABEL = r"(?:(?P<setting>[A-Za-z][\w .-]{0,40}): )?"
DBENCH_SUMMARY = figures_format(
    "dbench-summary",
    "the summary of the container image dbench, which runs fio: reads and writes of each test",
    recognised_by=rf"= Dbench Summary =|{_LABEL}(?:Mixed )?Random Read/Write IOPS: [\d.]++k?/",
    words=("Dbench Summary", "Random Read/Write IOPS", "Average Latency (usec) Read/Write", "Sequential Read/Write"),
    titled=True,
    rules=[
        rule(r"= Dbench Summary =", begins=True),
        rule(
            rf"{_LABEL}(?P<phase>Random|Sequential|Mixed Random) Read/Write IOPS: {_pair('iops')}(?:\. BW: {_RATES})?",
            **_ways("iops", "iops"),
            **_ways("rate", "rate_bytes_per_s"),
        ),
        rule(
            rf"{_LABEL}(?P<phase>Average Latency) \(usec\) Read/Write: {_pair('mean')}",
            **_ways("mean", "latency_ns_mean", US),
        ),
        rule(rf"{_LABEL}(?P<phase>Sequential) Read/Write: {_RATES}", **_ways("rate", "rate_bytes_per_s")),
    ],
)

_COCKROACH_LATENCIES = {name: of(f"latency_ns_{name}", MS) for name in ("mean", "p50", "p90", "p95", "p99", "max")}
COCKROACH = figures_format(
    "cockroach",
    "cockroach workload's results: rate and latencies of each operation, and of all together; tpmC of its TPC-C",
    recognised_by=r"_elapsed_++(?:errors_++ops\(total\)|tpmC)_",
    words=("_elapsed___errors", "ops/sec(cum)", "pMax(ms)", "tpmC"),
    titled=True,
    cut=r"[\d.]++s(?:\s++[\d.]++){1,7}\s*+$",
    rules=[
        rule(
            rf"[\d.]++s\s++\d++\s++{_figure('count')}\s++{_figure('rate')}\s++"
            + r"\s++".join(map(_figure, ("mean", "p50", "p95", "p99", "max")))
            + r"(?:\s++(?P<phase>[\w-]++))?\s*+$",
            count=of("ops"),
            rate=of("operations_per_s"),
            **{name: _COCKROACH_LATENCIES[name] for name in ("mean", "p50", "p95", "p99", "max")},
        ),
        rule(
            rf"[\d.]++s\s++{_figure('orders')}\s++[\d.]++%\s++"
            + r"\s++".join(map(_figure, _COCKROACH_LATENCIES))
            + r"\s*+$",
            orders=of("new_orders_per_min", phase="tpcc"),
            **{name: figure._replace(phase="tpcc") for name, figure in _COCKROACH_LATENCIES.items()},
        ),
    ],
)

_GO_DURATION = r"(?:\d++h)?+(?:\d++m(?!s))?+[\d.]++[nmuµ]?s"
BBOLT = figures_format(
    "bbolt",
    "bbolt's bench: writes and reads, how long one took and how many a second",
    recognised_by=r"(?:# )?(?:Write|Read)\s++\d++\(ops\)\s++\S++\s++\([^()/]++/op\)",
    words=("bbolt", "(ops)", "/op)", "op/sec)"),
    titled=True,
    repeats=r"Completed \d++ requests, \d",
    rules=[
        rule(r"(?:[%$#] )?\S{0,80}\bbbolt bench(?:\s++(?P<workload>-\S.{0,120}?))?\s*+$", begins=True),
        rule(
            rf"(?:# )?(?P<phase>Write|Read)\s++{_figure('count')}\(ops\)\s++(?P<time>{_GO_DURATION})\s++"
            rf"\((?P<mean>{_GO_DURATION})/op\)\s++\({_figure('rate')} op/sec\)",
            count=of("ops"),
            time=of("elapsed_s"),
            mean=of("latency_ns_mean", 1e9),
            rate=of("operations_per_s"),
        ),
    ],
)

CRYPTSETUP = figures_format(
    "cryptsetup",
    "cryptsetup benchmark: rates of encryption and decryption in memory",
    recognised_by=r"#\s++Algorithm \|\s++Key \|\s++Encryption \|",
    words=("cryptsetup benchmark", "Algorithm", "Encryption", "Decryption"),
    titled=True,
    repeats=r"argon2id?\s",
    rules=[
        rule(r"# Tests are approximate", begins=True),
        rule(
            rf"(?P<workload>[a-z][\w,-]{{1,40}}+\s++\d++b)\s++(?:{_figure('into')} MiB/s|N/A)"
            rf"\s++(?:{_figure('back')} MiB/s|N/A)",
            absent="not available, says cryptsetup",
            into=of("rate_bytes_per_s", MIB, phase="encryption"),
            back=of("rate_bytes_per_s", MIB, phase="decryption"),
        ),
        rule(
            rf"(?P<workload>PBKDF2-\w++)\s++{_figure('rate')} iterations per second",
            rate=of("operations_per_s"),
        ),
    ],
)

REQUESTS = figures_format(
    "requests",
    "hey, wrk, ab, SeaweedFS' and etcd's benchmark: requests per second, latencies and their distribution",
    recognised_by=r"Requests/sec:\s++[\d.]++\s*+$|Requests per second:\s++[\d.]++ \[#/sec\]",
    words=("Requests/sec", "Slowest", "Fastest", "Latency distribution", "Transfer/sec", "requests in"),
    titled=True,
    whole={"operations_per_s": "Requests/sec"},
    rules=[
        rule(r"Summary:", begins=True),
        rule(rf"Total:\s++{_figure('time')} secs", time=of("elapsed_s")),
        rule(r"-{4,}\s(?P<workload>\w[\w ]{0,40}?)\s-{4,}\s*+$", begins=True),
        rule(rf"Time taken for tests:\s++{_figure('time')} seconds", time=of("elapsed_s")),
        rule(rf"Requests per second:\s++{_figure('rate')} \[#/sec\]", rate=of("operations_per_s")),
        rule(rf"Transfer rate:\s++{_figure('rate')} \[Kbytes/sec\]", rate=of("rate_bytes_per_s", KIB)),
        rule(
            rf"Total:\s++{_figure('least')}\s++{_figure('mean')}\s++{_figure('most')}\s++{_figure('spread')}\s*+$",
            least=of("latency_ns_min", MS),
            mean=of("latency_ns_mean", MS),
            most=of("latency_ns_max", MS),
            spread=of("latency_ns_stddev", MS),
        ),
        *(
            rule(rf"{percent}%\s++{_figure('at')}(?: ms)?\s*+$", at=of(f"latency_ns_p{percent}", MS))
            for percent in (50, 75, 90, 95, 99)
        ),
        *(
            rule(rf"{word}:\s++{_figure('at')} secs", at=of(f"latency_ns_{name}", 1e9))
            for word, name in (("Slowest", "max"), ("Fastest", "min"), ("Average", "mean"), ("Stddev", "stddev"))
        ),
        rule(
            rf"Latency\s++{_span('mean')}\s++{_span('stddev')}\s++{_span('max')}\s++[\d.]++%",
            **{name: of(f"latency_ns_{name}") for name in ("mean", "stddev", "max")},
        ),
        *(rule(rf"{percent}%\s++{_span('at')}$", at=of(f"latency_ns_p{percent}")) for percent in (50, 75, 90, 99)),
        rule(rf"\d++ requests in {_figure('time')}s, ", time=of("elapsed_s")),
        rule(rf"Requests/sec:\s++{_figure('rate')}\s*+$", rate=of("operations_per_s")),
        *(
            rule(rf"Transfer/sec:\s++{_figure('rate')}{unit}B$", rate=of("rate_bytes_per_s", 1024.0**power))
            for power, unit in enumerate(("", "K", "M", "G"))  # wrk divides by 1,024
        ),
        *(
            rule(rf"{percent}%{{1,2}} in {_figure('at')} secs", at=of(f"latency_ns_{name}", 1e9))
            for percent, name in (("50", "p50"), ("90", "p90"), ("95", "p95"), ("99", "p99"), ("99\\.9", "p999"))
        ),
    ],
)

_PERCENTILES = ("p50", "p75", "p90", "p95", "p99", "p999", "p9999")
IOLATPCTS = figures_format(
    "iolatpcts",
    "lines of latency percentiles: read p50=4.1ms p75=5.2ms p90=7.0ms",
    recognised_by=r"(?:\S++\s++)?p50=[\d.]++[num]?s p75=",
    words=("p50=", "p75=", "p99="),
    titled=True,
    rules=[
        rule(
            r"(?:(?P<phase>[\w./-]{1,40}):?\s++)?p50="
            + _span("p50")
            + "".join(rf"(?:\s++{name}={_span(name)})?" for name in _PERCENTILES[1:])
            + r"(?:\s|$)",
            **{name: of(f"latency_ns_{name}") for name in _PERCENTILES},
        ),
    ],
)

ETCDCTL = figures_format(
    "etcdctl",
    "etcdctl check perf: writes per second, the slowest one and the deviation, passed or failed",
    recognised_by=r"(?:PASS|FAIL): Throughput (?:is|too low:) \d",
    words=("etcdctl", "check perf", "Throughput", "Slowest request", "Stddev"),
    titled=True,
    rules=[
        rule(
            rf"(?:PASS|FAIL): Throughput (?:is|too low:) {_figure('rate')} writes/s",
            begins=True,
            rate=of("operations_per_s", op="write"),
        ),
        rule(
            rf"(?:PASS: |FAIL: )?Slowest request took (?:too long: )?{_figure('max')}s",
            max=of("latency_ns_max", 1e9, "write"),
        ),
        rule(rf"(?:PASS|FAIL): Stddev (?:is|too high:) {_figure('sd')}s", sd=of("latency_ns_stddev", 1e9, "write")),
    ],
)

_OF_IO500 = r"\[RESULT\]\s++(?:(?:BW|IOPS)\s++phase \d++\s++)?(?P<phase>[a-z][\w-]++)\s++"
_IO500_TIME = rf"\s*+: time {_figure('time')} seconds"
IO500 = figures_format(
    "io500",
    "IO500's results: a phase for each part of ior, mdtest and find, and the scores",
    recognised_by=rf"{_OF_IO500}{NUMBER} (?:GiB/s|kI?iops|kIOPS)",
    words=("[RESULT]", "[SCORE]", "GiB/s", "kIOPS", "ior-easy-write"),
    titled=True,
    rules=[
        rule(
            rf"{_OF_IO500}{_figure('rate')} GiB/s{_IO500_TIME}", rate=of("rate_bytes_per_s", GIB), time=of("elapsed_s")
        ),
        rule(rf"{_OF_IO500}{_figure('rate')} k(?:iops|IOPS){_IO500_TIME}", rate=of("iops", 1e3), time=of("elapsed_s")),
        # A score is a geometric mean over phases.
        rule(
            rf"\[SCORE\s*+\]\s++Bandwidth {NUMBER} GiB/s : IOPS {NUMBER} k(?:iops|IOPS) : TOTAL {_figure('score')}",
            score=of("score"),
        ),
    ],
)

KUBESTR = figures_format(
    "kubestr",
    "kubestr's summary of fio: a workload for each job, reads and writes",
    recognised_by=r"IOPS=[\d.]++ BW\(KiB/s\)=[\d.]++",
    words=("kubestr", "JobName:", "BW(KiB/s)=", "blocksize="),
    titled=True,
    repeats=r"bw\(KiB/s\): min=",
    rules=[
        rule(r"JobName: (?P<workload>\S++)", begins=True),
        rule(r"(?P<phase>read|write|trim):\s*+$", opens=True),
        rule(
            rf"IOPS={_figure('iops')} BW\(KiB/s\)={_figure('rate')}",
            iops=of("iops"),
            rate=of("rate_bytes_per_s", KIB),
        ),
        rule(
            rf"iops: min={_figure('min')} max={_figure('max')} avg={NUMBER}",
            min=of("iops_min"),
            max=of("iops_max"),
        ),
    ],
)

_OF_XFS_IO = rf"{NUMBER} (?:[KMGT]iB|bytes), \d++ ops; \S{{1,20}}+(?: sec)? \({_figure('rate')} "
XFS_IO = figures_format(
    "xfs_io",
    "xfs_io's pread and pwrite: bytes and operations per second",
    recognised_by=r"(?:wrote|read) \d++/\d++ bytes at offset \d",
    words=("xfs_io", "bytes at offset", "ops/sec"),
    titled=True,
    rules=[
        rule(r"(?P<phase>wrote|read) \d++/\d++ bytes at offset \d", begins=True, opens=True),
        rule(
            rf"{_OF_XFS_IO}(?P<rate_unit>[KMG]iB)/sec and {_figure('iops')} ops/sec\)",
            rate=of("rate_bytes_per_s"),
            iops=of("iops"),
        ),
        rule(
            rf"{_OF_XFS_IO}bytes/sec and {_figure('iops')} ops/sec\)",
            rate=of("rate_bytes_per_s"),
            iops=of("iops"),
        ),
    ],
)

YCSB = figures_format(
    "ycsb",
    "YCSB's report: operations per second, and the latencies of each operation",
    recognised_by=r"\[OVERALL\],\s*+(?:RunTime|Throughput)\(",
    words=("[OVERALL]", "RunTime(ms)", "Throughput(ops/sec)", "AverageLatency(us)", "99thPercentileLatency"),
    titled=True,
    repeats=r"\[[\w%-]++\],\s|\S.{0,40}\d++ sec: \d++ operations; ",
    whole={"operations_per_s": "Throughput(ops/sec)"},
    rules=[
        rule(rf"\[OVERALL\],\s*+RunTime\(ms\),\s*+{_figure('time')}", begins=True, time=of("elapsed_s", 1e-3)),
        rule(rf"\[OVERALL\],\s*+Throughput\(ops/sec\),\s*+{_figure('rate')}", rate=of("operations_per_s")),
        rule(rf"\[(?P<phase>[A-Z-]++)\],\s*+Operations,\s*+{_figure('count')}", count=of("ops")),
        rule(rf"\[(?P<phase>[A-Z-]++)\],\s*+Return=ERROR,\s*+{_figure('count')}", count=of("errors")),
        *(
            rule(
                rf"\[(?P<phase>[A-Z-]++)\],\s*+{what}Latency\((?P<at_unit>[um]s)\),\s*+(?:0(?:\.0)?|{_figure('at')})\s*+$",
                absent=TOO_SHORT,
                at=of(f"latency_ns_{name}"),
            )
            for what, name in (
                *(("Average", "mean"), ("Min", "min"), ("Max", "max"), ("50thPercentile", "p50")),
                *(("95thPercentile", "p95"), ("99thPercentile", "p99"), (r"99\.9(?:th)?Percentile", "p999")),
            )
        ),
    ],
)

SMALLFILE = figures_format(
    "smallfile",
    "smallfile's results: files, I/Os and bytes per second of all threads",
    recognised_by=r"total threads = \d|[\d.]++% of requested files processed",
    words=("smallfile", "total threads", "total files", "of requested files processed", "files/sec"),
    titled=True,
    repeats=r"(?:host|total \w++|[\d.]++% of requested)\b",
    rules=[
        rule(r"total threads = \d++\s*+$", begins=True),
        *(
            rule(line, it=figure)
            for what, figure in (
                ("elapsed time", of("elapsed_s")),
                ("files/sec", of("operations_per_s")),
                ("IOPS", of("iops")),
                ("MiB/sec", of("rate_bytes_per_s", MIB)),
            )
            for line in (rf"{what} =\s++{_figure('it')}\s*+$", rf"{_figure('it')} (?:sec )?{what}\s*+$")
        ),
    ],
)

MONGO_PERF = figures_format(
    "mongo-perf",
    "mongo-perf's results: operations per second of each test, a workload for each number of threads",
    recognised_by=r"(?:Insert|(?:Multi)?Update|Remove|Queries|Commands)\.[A-Z][\w.]++\s*+$",
    words=("mongo-perf", "Insert.", "Update.", "Queries.", "MultiUpdate."),
    titled=True,
    rules=[
        rule(r"(?P<phase>[A-Z]\w++\.[A-Z][\w.]++)\s*+$", opens=True),
        rule(rf"(?P<workload>\d{{1,4}})\s++{_figure('rate')}\s*+$", rate=of("operations_per_s")),
    ],
)


def _memtier(*latencies: str) -> list[Rule]:
    """The rules of its table with these columns of latencies, in ms. It divides bytes by 1,024."""
    return [
        rule(r"(?P<workload>BEST RUN|WORST RUN|AGGREGATED AVERAGE) RESULTS", begins=True),
        rule(r"ALL STATS", begins=True),
        *(
            rule(
                rf"{which}\s++{_figure('ops')}(?:\s++(?:[\d.]++|---)){{2}}\s++"
                + r"\s++".join(map(_positive, latencies))
                + rf"\s++(?:{_figure('rate')}|---)\s*+$",
                absent="none of them was done",
                ops=of("operations_per_s"),
                rate=of("rate_bytes_per_s", KIB),
                **{name: of(f"latency_ns_{name}", MS) for name in latencies},
            )
            for which in ("(?P<phase>Sets|Gets|Waits)", "Totals")
        ),
    ]


_MEMTIER_COLUMNS = r"Type\s++Ops/sec\s++Hits/sec\s++Misses/sec\s++"
MEMTIER = figures_format(
    "memtier",
    "memtier_benchmark's table: operations and bytes per second, latencies of sets, gets and all together",
    recognised_by=_MEMTIER_COLUMNS + "Avg",
    words=("memtier_benchmark", "Ops/sec", "Hits/sec", "Misses/sec", "KB/sec", "Totals"),
    titled=True,
    repeats=r"\[RUN #\d",
    cut=r"(?:Sets|Gets|Waits|Totals)(?:\s++(?:[\d.]++|---)){1,4}(?:\s++\d++(?:\.\d?)?)?\s*+$",
    rules=_memtier("mean", "p50", "p99", "p999"),
    otherwise=(_MEMTIER_COLUMNS + "Latency", _memtier("mean")),
)

FORMATS = (
    MEMTIER,
    YCSB,
    SMALLFILE,
    MONGO_PERF,
    XFS_IO,
    IO500,
    KUBESTR,
    REQUESTS,
    ETCDCTL,
    BBOLT,
    COCKROACH,
    CRYPTSETUP,
    IOLATPCTS,
    IO_URING,
    FILEBENCH,
    VDBENCH,
    RBD,
    OSD_PERF,
    SPDK_PERF,
    WARP,
    PVEPERF,
    BENCH_SH,
    DBENCH_SUMMARY,
)
