"""More reports of lines with figures: those of file servers, clusters, object stores and rented machines.

cryptsetup benchmark, filebench, vdbench, rbd bench, ceph osd perf, SPDK's perf, warp, IO500, kubestr, pveperf,
bench.sh, nench.sh, the summary of the container image dbench, smallfile, requests of etcd's benchmark and others,
s3-benchmark, DLIO, and percentiles in a line.
"""

from __future__ import annotations

from iolab.files.importer.figures import (
    GIB,
    KIB,
    MIB,
    MS,
    NUMBER,
    TOO_SHORT,
    US,
    Figure,
    Rule,
    amount,
    figures_format,
    latencies,
    of,
    positive,
    rule,
)


def _span(name: str) -> str:
    return rf"{amount(name)}(?P<{name}_unit>[num]?s)"


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
            rf"(?P<phase>[\w.-]{{1,60}}+)\s++{amount('count')}ops\s++{amount('iops')}ops/s\s++{amount('rate')}mb/s\s++"
            rf"{positive('mean')}ms/op(?:\s++[\d.]++us/op-cpu)?"
            rf"(?:\s++\[\s*+{positive('min')}ms\s*+-\s*+{positive('max')}ms\])?",
            absent=TOO_SHORT,
            count=of("ops"),
            iops=of("iops"),
            rate=of("rate_bytes_per_s", MIB),
            **_FILEBENCH_LATENCY,
        ),
        rule(
            rf"(?:\d{{1,9}}: )?[\d.]++: IO Summary:\s++{amount('count')} ops,?\s++{amount('iops')} ops/s,?\s++"
            rf"\(?{amount('reads')}/{amount('writes')} r(?:d)?/w(?:r)?\)?,?\s++{amount('rate')}mb/s,?\s++"
            rf"(?:[\d.]++us cpu/op,\s++)?{positive('mean')}ms(?:/op| latency)",
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
_RAW = rf"{_TIME_OF_DAY}avg_\d++-\d++\s++{amount('iops')}\s++{amount('rate')}\s++{_SKIP}{_SKIP}{amount('mean')}\s++"


def _vdbench_rules() -> list[Rule]:
    """The averages of each run: of raw devices by version, and of filesystems, whose line has more columns."""
    all_ = {"iops": of("iops"), "rate": of("rate_bytes_per_s", MIB), "mean": of("latency_ns_mean", MS)}
    return [
        rule(rf"{_TIME_OF_DAY}Starting RD=(?P<workload>\S.{{0,200}}?)\s*+$", begins=True),
        # Versions before 5.04.06, and those since.
        rule(
            _RAW + rf"{amount('max')}\s++{amount('stddev')}\s++{_SKIP}{NUMBER}\s*+$",
            **all_,
            max=of("latency_ns_max", MS),
            stddev=of("latency_ns_stddev", MS),
        ),
        rule(
            _RAW + rf"{positive('r_mean')}\s++{positive('w_mean')}\s++{positive('r_max')}\s++{positive('w_max')}\s++"
            rf"{amount('stddev')}\s++{amount('depth')}\s++{_SKIP}{NUMBER}\s*+$",
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
            rf"{_TIME_OF_DAY}avg_\d++-\d++\s++{amount('iops')}\s++{amount('mean')}\s++{_SKIP}{_SKIP}{_SKIP}"
            rf"{amount('reads')}\s++{positive('r_mean')}\s++{amount('writes')}\s++{positive('w_mean')}\s++"
            rf"{amount('r_rate')}\s++{amount('w_rate')}\s++{amount('rate')}\s++{NUMBER}(?>(?:\s++{NUMBER}){{10,14}})\s*+$",
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
    repeats=r"\d++\s++\d++\s++[\d.]++\s++[\d.]++ \w++/s",
    rules=[
        rule(r"bench(?:-write)?\s++(?P<workload>(?:type \w|io_size)[\w ]{0,120}?)\s*+$", begins=True),
        rule(
            rf"elapsed:\s++{amount('time')}\s++ops:\s++{amount('count')}\s++ops/sec:\s++{amount('iops')}\s++"
            rf"bytes/sec:\s++{amount('rate')}(?: (?P<rate_unit>[KMGT]iB|B)/s)?",
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
            rf"(?P<workload>\d{{1,6}}+)\s++{amount('commit')}\s++{amount('apply')}\s*+$",
            commit=of("commit_latency_ns", MS),
            apply=of("apply_latency_ns", MS),
        ),
    ],
)

_SPDK = rf":\s++{amount('iops')}\s++{amount('rate')}\s++{amount('mean')}\s++{amount('min')}\s++{amount('max')}\s*+$"
_SPDK_FIGURES = {
    "iops": of("iops"),
    "rate": of("rate_bytes_per_s", MIB),
    **latencies(US, "mean", "min", "max"),
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
            rule(rf"{percent}0*% :\s*+{amount('at')}us", at=of(f"latency_ns_{name}", US))
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
_MEAN_OF_WARP = r"(?:\* |(?=Average: |Throughput: ))(?:(?:Average|Throughput): )?"
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
                rule(rf"{place}{amount('objects')} obj/s", begins=begins, objects=of("operations_per_s")),
                rule(
                    rf"{place}{amount('rate')} Mi?B/s, {amount('objects')} obj/s",
                    begins=begins,
                    rate=of("rate_bytes_per_s", MIB),
                    objects=of("operations_per_s"),
                ),
            )
        ),
        rule(rf"\* \S{{1,200}}: Avg: {NUMBER} (?:Mi?B/s|obj/s)", left_out="what warp's report has of each host"),
        rule(
            rf"(?:\* )?(?:Fastest|50% Median|Slowest): {NUMBER} ?(?:[KMG]i?B/s|obj/s)",
            left_out="the fastest, median and slowest part of the time in warp's report",
        ),
        rule(
            rf"\* (?:Reqs: )?Avg: (?P<mean>{_SPAN}), 50%: (?P<p50>{_SPAN}), 90%: (?P<p90>{_SPAN}), "
            rf"99%: (?P<p99>{_SPAN}), Fastest: (?P<min>{_SPAN}), Slowest: (?P<max>{_SPAN})",
            **latencies(1e9, "mean", "p50", "p90", "p99", "min", "max"),
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
        rule(rf"BUFFERED READS:\s++{amount('rate')} MB/sec", rate=of("rate_bytes_per_s", MIB, "read")),
        rule(rf"AVERAGE SEEK TIME:\s++{amount('seek')} ms", seek=of("seek_latency_ns_mean", MS)),
        rule(rf"FSYNCS/SECOND:\s++{amount('syncs')}", syncs=of("fsyncs_per_s")),
    ],
)

_NENCH_TIMES = " / ".join(rf"{amount(name)} (?P<{name}_unit>[mun]?s)" for name in ("min", "mean", "max", "stddev"))
BENCH_SH = figures_format(
    "bench.sh",
    "bench.sh and nench.sh of rented machines: copies by dd, each a round, and what ioping measured",
    recognised_by=r"I/O [Ss]peed ?\(\d\w\w run\)\s*+:|ioping: seek rate",
    words=("I/O Speed", "Average I/O speed", "1st run", "ioping: seek rate"),
    titled=True,
    repeats=r"Average I/O speed",
    rules=[
        rule(r"nench\.sh v|Processor:", begins=True),
        rule(
            rf"(?:I/O [Ss]peed ?\()?\d\w\w run\)?\s*+:\s++{amount('rate')} (?P<rate_unit>[kMG]i?B)/s",
            begins=True,
            rate=of("rate_bytes_per_s", op="write"),
        ),
        rule(
            rf"min/avg/max/mdev = {_NENCH_TIMES}",
            **latencies(1.0, "min", "mean", "max", "stddev", phase="seek"),
        ),
        rule(
            rf"generated {NUMBER} (?:k )?requests in {NUMBER} s, {NUMBER} [KMGT]iB, "
            rf"{amount('iops')} (?:(?P<iops_unit>[kM]) )?iops, {amount('rate')} (?P<rate_unit>[KMG]iB)/s",
            iops=of("iops", op="read", phase="sequential"),
            rate=of("rate_bytes_per_s", op="read", phase="sequential"),
        ),
    ],
)

_IO_URING_IOPS = rf"(?:[\w=, ]{{0,80}}?, )?IOPS={amount('iops')}(?P<iops_unit>[kKM]?), "
IO_URING = figures_format(
    "t-io_uring",
    "fio's t/io_uring: a line is a round",
    recognised_by=r"(?:[\w=, ]{0,80}?, )?IOPS=[\d.]++[kKM]?, (?:BW=[\d.]++[KMG]iB/s, )?IOS/call=",
    words=("IOPS=", "BW=", "IOS/call="),
    titled=True,
    rules=[
        rule(
            rf"{_IO_URING_IOPS}BW={amount('rate')}(?P<rate_unit>[KMG]iB)/s, IOS/call=",
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


_RATES = rf"{amount('rate_read')}(?P<rate_read_unit>[KMGT]iB)/s / {amount('rate_write')}(?P<rate_write_unit>[KMGT]iB)/s"
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
            rf"(?P<workload>[a-z][\w,-]{{1,40}}+\s++\d++b)\s++(?:{amount('into')} MiB/s|N/A)"
            rf"\s++(?:{amount('back')} MiB/s|N/A)",
            absent="not available, says cryptsetup",
            into=of("rate_bytes_per_s", MIB, phase="encryption"),
            back=of("rate_bytes_per_s", MIB, phase="decryption"),
        ),
        rule(
            rf"(?P<workload>PBKDF2-\w++)\s++{amount('rate')} iterations per second",
            rate=of("operations_per_s"),
        ),
    ],
)

REQUESTS = figures_format(
    "requests",
    "hey, wrk, ab, SeaweedFS' and etcd's benchmark: requests per second, latencies and their distribution",
    recognised_by=r"Requests/sec:\s++[\d.]++\s*+$|Requests per second:\s++[\d.]++ \[#/sec\]"
    r"|Completed \d++ of \d++ requests, [\d.]++% [\d.]++/s",
    words=("Requests/sec", "Slowest", "Fastest", "Latency distribution", "Transfer/sec", "requests in"),
    titled=True,
    whole={"operations_per_s": "Requests/sec"},
    rules=[
        rule(r"Summary:", begins=True),
        rule(rf"Total:\s++{amount('time')} secs", time=of("elapsed_s")),
        rule(r"-{4,}\s(?P<workload>\w[\w ]{0,40}?)\s-{4,}\s*+$", begins=True),
        # SeaweedFS' progress.
        rule(
            rf"Completed \d++ of \d++ requests, [\d.]++% {amount('rate')}/s {amount('bytes')}MB/s",
            of_interval=True,
            rate=of("operations_per_s"),
            bytes=of("rate_bytes_per_s", MIB),
        ),
        rule(rf"Time taken for tests:\s++{amount('time')} seconds", time=of("elapsed_s")),
        rule(rf"Requests per second:\s++{amount('rate')} \[#/sec\]", rate=of("operations_per_s")),
        rule(rf"Transfer rate:\s++{amount('rate')} \[Kbytes/sec\]", rate=of("rate_bytes_per_s", KIB)),
        rule(
            rf"Total:\s++{amount('least')}\s++{amount('mean')}\s++{amount('most')}\s++{amount('spread')}\s*+$",
            least=of("latency_ns_min", MS),
            mean=of("latency_ns_mean", MS),
            most=of("latency_ns_max", MS),
            spread=of("latency_ns_stddev", MS),
        ),
        *(
            rule(rf"{percent}%\s++{amount('at')}(?: ms)?\s*+$", at=of(f"latency_ns_p{percent}", MS))
            for percent in (50, 75, 90, 95, 99)
        ),
        *(
            rule(rf"{word}:\s++{amount('at')} secs", at=of(f"latency_ns_{name}", 1e9))
            for word, name in (("Slowest", "max"), ("Fastest", "min"), ("Average", "mean"), ("Stddev", "stddev"))
        ),
        rule(
            rf"Latency\s++{_span('mean')}\s++{_span('stddev')}\s++{_span('max')}\s++[\d.]++%",
            **latencies(1.0, "mean", "stddev", "max"),
        ),
        *(rule(rf"{percent}%\s++{_span('at')}$", at=of(f"latency_ns_p{percent}")) for percent in (50, 75, 90, 99)),
        rule(rf"\d++ requests in {amount('time')}s, ", time=of("elapsed_s")),
        rule(rf"Requests/sec:\s++{amount('rate')}\s*+$", rate=of("operations_per_s")),
        *(
            rule(rf"Transfer/sec:\s++{amount('rate')}{unit}B$", rate=of("rate_bytes_per_s", 1024.0**power))
            for power, unit in enumerate(("", "K", "M", "G"))  # wrk divides by 1,024
        ),
        *(
            rule(rf"{percent}%{{1,2}} in {amount('at')} secs", at=of(f"latency_ns_{name}", 1e9))
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
            **latencies(1.0, *_PERCENTILES),
        ),
    ],
)

_OF_IO500 = r"\[RESULT\]\s++(?:(?:BW|IOPS)\s++phase \d++\s++)?(?P<phase>[a-z][\w-]++)\s++"
_IO500_TIME = rf"\s*+: time {amount('time')} seconds"
IO500 = figures_format(
    "io500",
    "IO500's results: a phase for each part of ior, mdtest and find, and the scores",
    recognised_by=rf"{_OF_IO500}{NUMBER} (?:GiB/s|kI?iops|kIOPS)",
    words=("[RESULT]", "[SCORE]", "GiB/s", "kIOPS", "ior-easy-write"),
    titled=True,
    rules=[
        rule(
            rf"{_OF_IO500}{amount('rate')} GiB/s{_IO500_TIME}", rate=of("rate_bytes_per_s", GIB), time=of("elapsed_s")
        ),
        rule(rf"{_OF_IO500}{amount('rate')} k(?:iops|IOPS){_IO500_TIME}", rate=of("iops", 1e3), time=of("elapsed_s")),
        # A score is a geometric mean over phases.
        rule(
            rf"\[SCORE\s*+\]\s++Bandwidth {NUMBER} GiB/s : IOPS {NUMBER} k(?:iops|IOPS) : TOTAL {amount('score')}",
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
            rf"IOPS={amount('iops')} BW\(KiB/s\)={amount('rate')}",
            iops=of("iops"),
            rate=of("rate_bytes_per_s", KIB),
        ),
        rule(
            rf"iops: min={amount('min')} max={amount('max')} avg={NUMBER}",
            min=of("iops_min"),
            max=of("iops_max"),
        ),
    ],
)

_OF_XFS_IO = rf"{NUMBER} (?:[KMGT]iB|bytes), \d++ ops; \S{{1,20}}+(?: sec)? \({amount('rate')} "
XFS_IO = figures_format(
    "xfs_io",
    "xfs_io's pread and pwrite: bytes and operations per second",
    recognised_by=r"(?:wrote|read) \d++/\d++ bytes at offset \d",
    words=("xfs_io", "bytes at offset", "ops/sec"),
    titled=True,
    rules=[
        rule(r"(?P<phase>wrote|read) \d++/\d++ bytes at offset \d", begins=True, opens=True),
        rule(
            rf"{_OF_XFS_IO}(?P<rate_unit>[KMG]iB)/sec and {amount('iops')} ops/sec\)",
            rate=of("rate_bytes_per_s"),
            iops=of("iops"),
        ),
        rule(
            rf"{_OF_XFS_IO}bytes/sec and {amount('iops')} ops/sec\)",
            rate=of("rate_bytes_per_s"),
            iops=of("iops"),
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
            for line in (rf"{what} =\s++{amount('it')}\s*+$", rf"{amount('it')} (?:sec )?{what}\s*+$")
        ),
    ],
)

S3_BENCHMARK = figures_format(
    "s3-benchmark",
    "Wasabi's s3-benchmark: bytes and operations per second of puts, gets and deletes; each loop is a round",
    recognised_by=r"Loop \d++: (?:PUT|GET|DELETE) time ",
    words=("Wasabi benchmark program", "Loop 1:", "Slowdowns", "operations/sec", "deletes/sec"),
    titled=True,
    rules=[
        rule(
            rf"Loop \d++: (?P<phase>PUT|GET|DELETE) time {amount('time')} secs,"
            rf"(?: objects = {amount('count')}, speed = {amount('rate')}{unit}B/sec,)? "
            rf"{amount('operations')} (?:operations|deletes)/sec",
            time=of("elapsed_s"),
            count=of("ops"),
            rate=of("rate_bytes_per_s", scale),
            operations=of("operations_per_s"),
            absent="deletes move no bytes",
        )
        # Of the package bytefmt, which divides by 1,024.
        for unit, scale in (("K", KIB), ("M", MIB), ("G", GIB), ("", 1.0))
    ],
)

DLIO = figures_format(
    "dlio",
    "DLIO's and MLPerf Storage's metrics of training: samples and bytes per second, how busy accelerators were",
    recognised_by=r"\[METRIC\] Training (?:I/O )?Throughput \(",
    words=("[METRIC]", "[OUTPUT]", "Running DLIO", "Accelerator Utilization [AU]", "samples/second"),
    titled=True,
    repeats=r"\[OUTPUT\]",
    rules=[
        rule(
            rf"\[METRIC\] Training Accelerator Utilization \[AU\] \(%\): {amount('busy')}",
            begins=True,
            busy=of("accelerator_busy_percent"),
        ),
        rule(rf"\[METRIC\] Training Throughput \(samples/second\): {amount('rate')}", rate=of("samples_per_s")),
        rule(
            rf"\[METRIC\] Training I/O Throughput \(MB/second\): {amount('rate')}",
            rate=of("rate_bytes_per_s", MIB, "read"),
        ),
    ],
)

FORMATS = (
    S3_BENCHMARK,
    DLIO,
    SMALLFILE,
    XFS_IO,
    IO500,
    KUBESTR,
    REQUESTS,
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
