"""Load generators of databases: db_bench, HammerDB, BenchmarkSQL, cockroach workload, bbolt's bench, etcdctl's check,
YCSB, mongo-perf, memtier_benchmark, redis-benchmark, cassandra-stress, Kafka's producer test, clickhouse-benchmark,
tpcc-mysql."""

from __future__ import annotations

from iolab.files.importer.figures import (
    KIB,
    MIB,
    MS,
    NUMBER,
    TOO_SHORT,
    US,
    Rule,
    amount,
    figures_format,
    latencies,
    of,
    positive,
    rule,
)

DB_BENCH = figures_format(
    "db_bench",
    "db_bench of RocksDB and LevelDB: a phase for each benchmark",
    recognised_by=r"\w[\w\[\]. -]{1,60}\s*+:\s++[\d.]++ micros/op\b",
    words=("micros/op", "ops/sec", "fillseq", "readrandom", "RocksDB", "LevelDB"),
    titled=True,
    cut=rf"Percentiles: P50:(?!.*\bP99\.9: {NUMBER})",
    rules=[
        rule(
            rf"(?P<phase>\w[\w.-]{{1,60}}+)\s*+:\s++{NUMBER} micros/op.{{0,60}}?\((?P<time>)\w++ failure\)",
            opens=True,
            time=of("latency_ns_mean"),
            absent="the benchmark failed, as its line states",
        ),
        rule(
            rf"(?P<phase>\w[\w.-]{{1,60}}+)\s*+:\s++{amount('time')} micros/op(?: {amount('rate')} ops/sec)?"
            rf"(?: {amount('elapsed')} seconds)?(?:.{{0,60}}?;\s++(?:0\.0++|{amount('bytes')}) MB/s)?",
            opens=True,
            time=of("latency_ns_mean", US),
            rate=of("iops"),
            elapsed=of("elapsed_s"),
            bytes=of("rate_bytes_per_s", MIB),
            absent="not printed by this benchmark, or below its decimals",
        ),
        rule(rf"Count: \d++\s++Average: {NUMBER}\s++StdDev: {amount('stddev')}", stddev=of("latency_ns_stddev", US)),
        rule(rf"Min: {NUMBER}\s++Median: {NUMBER}\s++Max: {amount('max')}", max=of("latency_ns_max", US)),
        rule(
            rf"Percentiles: P50: {amount('p50')} P75: {NUMBER} P99: {amount('p99')} P99\.9: {amount('p999')}",
            p50=of("latency_ns_p50", US),
            p99=of("latency_ns_p99", US),
            p999=of("latency_ns_p999", US),
        ),
    ],
)

HAMMERDB = figures_format(
    "hammerdb",
    "HammerDB's results: new orders and transactions per minute, latencies of its procedures",
    recognised_by=r".{0,160}?TEST RESULT : System achieved|\"ratio_pct\": |TRANSACTION RESPONSE TIMES",
    words=("TEST RESULT", "System achieved", "NOPM", "TPM", "Vuser"),
    titled=True,
    repeats=r"SUMMARY OF|(?:CALLS|MIN|MAX|P\d\d|SD): ",
    rules=[
        rule(
            rf".{{0,160}}?TEST RESULT : System achieved {figures}",
            begins=True,
            new=of("new_orders_per_min"),
            all=of("transactions_per_min"),
        )
        for figures in (
            rf"{amount('new')} NOPM from {amount('all')} [\w ]{{1,40}}?TPM",
            rf"{amount('all')} [\w ]{{1,40}}?TPM at {amount('new')} NOPM",
        )
    ]
    + [
        rule(r".{0,100}?(?P<workload>\d{1,6} Active Virtual Users) configured", begins=True),
        rule(r"(?:>++ )?(?:PROC: |(?=\"\w++\": \{)\")(?P<phase>\w++)", opens=True),
        rule(
            rf"CALLS: {amount('count')}\s++MIN: {amount('min')}ms\s++AVG: {amount('mean')}ms\s++"
            rf"MAX: {amount('max')}ms",
            count=of("ops"),
            **latencies(MS, "min", "mean", "max"),
        ),
        rule(
            r"\s++".join(f"{name.upper()}: {amount(name)}ms" for name in ("p99", "p95", "p50")),
            **latencies(MS, "p99", "p95", "p50"),
        ),
        # The same as JSON.
        rule(rf"\"calls\": \"?{amount('count')}\"?,?\s*+$", count=of("ops")),
        *(
            rule(rf"\"{key}_ms\": \"?{amount('time')}\"?,?\s*+$", time=of(f"latency_ns_{name}", MS))
            for key, name in (
                ("min", "min"),
                ("avg", "mean"),
                ("max", "max"),
                ("p50", "p50"),
                ("p95", "p95"),
                ("p99", "p99"),
            )
        ),
    ],
)

BENCHMARKSQL = figures_format(
    "benchmarksql",
    "BenchmarkSQL's results: new orders and transactions per minute",
    recognised_by=r".{0,120}?Measured tpm(?:C|TOTAL)\b",
    words=("jTPCC", "Measured tpmC", "Measured tpmTOTAL", "Running Average"),
    titled=True,
    repeats=r".{0,120}?Running Average",
    rules=[
        rule(rf".{{0,120}}?Measured tpmC \(NewOrders\) = {amount('new')}", begins=True, new=of("new_orders_per_min")),
        rule(rf".{{0,120}}?Measured tpmTOTAL = {amount('all')}", all=of("transactions_per_min")),
    ],
)

_COCKROACH = ("mean", "p50", "p95", "p99", "max")
_COCKROACH_TPCC = ("mean", "p50", "p90", "p95", "p99", "max")

COCKROACH = figures_format(
    "cockroach",
    "cockroach workload's results: rate and latencies of each operation, and of all together; tpmC of its TPC-C",
    recognised_by=r"_elapsed_++(?:errors_++ops\(total\)|tpmC|ops/sec\(cum\))_",
    words=("_elapsed___errors", "ops/sec(cum)", "pMax(ms)", "tpmC"),
    titled=True,
    cut=r"[\d.]++s(?:\s++[\d.]++){1,7}\s*+$",
    rules=[
        rule(
            rf"[\d.]++s\s++\d++\s++{amount('count')}\s++{amount('rate')}\s++"
            + r"\s++".join(map(amount, _COCKROACH))
            + r"(?:\s++(?P<phase>[\w-]++))?\s*+$",
            count=of("ops"),
            rate=of("operations_per_s"),
            **latencies(MS, *_COCKROACH),
        ),
        # Of pebble's bench, which states amplifications behind.
        rule(
            r"[\d.]++s\s++(?P<rate>\d++\.\d++)\s++"
            + r"\s++".join(map(amount, _COCKROACH))
            + r"(?:\s++[\d.]++){0,3}\s*+$",
            rate=of("operations_per_s"),
            **latencies(MS, *_COCKROACH),
        ),
        rule(
            rf"[\d.]++s\s++{amount('orders')}\s++[\d.]++%\s++" + r"\s++".join(map(amount, _COCKROACH_TPCC)) + r"\s*+$",
            orders=of("new_orders_per_min", phase="tpcc"),
            **latencies(MS, *_COCKROACH_TPCC, phase="tpcc"),
        ),
    ],
)

CLICKHOUSE = figures_format(
    "clickhouse-benchmark",
    "clickhouse-benchmark's report: queries, rows and bytes per second, quantiles of the queries' times",
    recognised_by=r"\S.{0,80}?\bQPS: [\d.]++, RPS: ",
    words=("clickhouse-benchmark", "Queries executed", "QPS:", "RPS:", "result MiB/s"),
    titled=True,
    repeats=rf"\d++\.\d{{3}}%\s++{NUMBER} sec",
    rules=[
        rule(
            rf"\S.{{0,80}}?\bQPS: {amount('queries')}, RPS: {amount('rows')}, MiB/s: {amount('rate')}",
            begins=True,
            queries=of("queries_per_s"),
            rows=of("rows_per_s"),
            rate=of("rate_bytes_per_s", MIB),
        ),
        *(
            rule(rf"{share}%\s++{amount('at')} sec", at=of(f"latency_ns_{name}", 1e9))
            for share, name in (
                *(("0[.]000", "min"), ("50[.]000", "p50"), ("90[.]000", "p90"), ("95[.]000", "p95")),
                *(("99[.]000", "p99"), ("99[.]900", "p999"), ("99[.]990", "p9999")),
            )
        ),
    ],
)

_TPCC_MYSQL = ("new_order", "payment", "order_status", "delivery", "stock_level")
TPCC_MYSQL = figures_format(
    "tpcc-mysql",
    "tpcc-mysql's results: new orders per minute, the mean time of each transaction",
    recognised_by=r"<TpmC>|\[0\] sc:\d++ +lt:\d",
    words=("MEASURING START", "<Raw Results>", "<Constraint Check>", "TpmC", "max_rt"),
    titled=True,
    repeats=r"\d++, (?:trx: )?\d",
    rules=[
        rule(r"MEASURING START", begins=True),
        *(
            rule(
                rf"\[{place}\] sc:\d++ ++lt:\d++ ++rt:\d++ ++fl:\d++ ++avg_rt: {amount('mean')}",
                mean=of("latency_ns_mean", MS, phase=phase),
            )
            for place, phase in enumerate(_TPCC_MYSQL)
        ),
        rule(rf"{amount('orders')} TpmC", orders=of("new_orders_per_min")),
    ],
)

_GO_DURATION = r"(?:\d++h)?(?:\d++m(?!s))?[\d.]++[nmuµ]?s"

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
            rf"(?:# )?(?P<phase>Write|Read)\s++{amount('count')}\(ops\)\s++(?P<time>{_GO_DURATION})\s++"
            rf"\((?P<mean>{_GO_DURATION})/op\)\s++\({amount('rate')} op/sec\)",
            count=of("ops"),
            time=of("elapsed_s"),
            mean=of("latency_ns_mean", 1e9),
            rate=of("operations_per_s"),
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
            rf"(?:PASS|FAIL): Throughput (?:is|too low:) {amount('rate')} writes/s",
            begins=True,
            rate=of("operations_per_s", op="write"),
        ),
        rule(
            rf"(?:PASS: |FAIL: )?Slowest request took (?:too long: )?{amount('max')}s",
            max=of("latency_ns_max", 1e9, "write"),
        ),
        rule(rf"(?:PASS|FAIL): Stddev (?:is|too high:) {amount('sd')}s", sd=of("latency_ns_stddev", 1e9, "write")),
    ],
)

GO_YCSB = figures_format(
    "go-ycsb",
    "go-ycsb's last report: operations per second and latencies of each operation",
    recognised_by=r"Run finished, takes ",
    words=("Run finished, takes", "Takes(s)", "OPS", "Avg(us)", "99th(us)"),
    titled=True,
    repeats=r"[A-Z_]++\s++- Takes\(s\): ",
    rules=[
        rule(rf"Run finished, takes {amount('time')}s", begins=True, time=of("elapsed_s", phase="run")),
        *(
            # Lines as these above, of what was done so far, have no such line before them.
            rule(
                rf"(?P<phase>[A-Z_]++)\s++- Takes\(s\): [\d.]++, Count: {amount('count')}, OPS: {amount('rate')}, "
                rf"Avg\(us\): {amount('mean')}, Min\(us\): {amount('min')}, Max\(us\): {amount('max')}, "
                rf"(?:50th\(us\): {amount('p50')}, )?(?:90th\(us\): {amount('p90')}, )?95th\(us\): {amount('p95')}, "
                rf"99th\(us\): {amount('p99')}(?:, 99\.9th\(us\): {amount('p999')})?"
                rf"(?:, 99\.99th\(us\): {amount('p9999')})?",
                after=after,
                count=of("ops"),
                rate=of("operations_per_s"),
                **latencies(US, "mean", "min", "max", "p50", "p90", "p95", "p99", "p999", "p9999"),
            )
            for after in ("run", "read", "update", "insert", "scan", "read_modify_write", "delete", "total")
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
        rule(rf"\[OVERALL\],\s*+RunTime\(ms\),\s*+{amount('time')}", begins=True, time=of("elapsed_s", 1e-3)),
        rule(rf"\[OVERALL\],\s*+Throughput\(ops/sec\),\s*+{amount('rate')}", rate=of("operations_per_s")),
        rule(rf"\[(?P<phase>[A-Z-]++)\],\s*+Operations,\s*+{amount('count')}", count=of("ops")),
        rule(rf"\[(?P<phase>[A-Z-]++)\],\s*+Return=ERROR,\s*+{amount('count')}", count=of("errors")),
        *(
            rule(
                rf"\[(?P<phase>[A-Z-]++)\],\s*+{what}Latency\((?P<at_unit>[um]s)\),\s*+(?:0(?:\.0)?|{amount('at')})\s*+$",
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

MONGO_PERF = figures_format(
    "mongo-perf",
    "mongo-perf's results: operations per second of each test, a workload for each number of threads",
    recognised_by=r"(?:Insert|(?:Multi)?Update|Remove|Queries|Commands)\.[A-Z][\w.]++\s*+$",
    words=("mongo-perf", "Insert.", "Update.", "Queries.", "MultiUpdate."),
    titled=True,
    rules=[
        rule(r"(?P<phase>[A-Z]\w++\.[A-Z][\w.]++)\s*+$", opens=True),
        rule(rf"(?P<workload>\d{{1,4}})\s++{amount('rate')}\s*+$", rate=of("operations_per_s")),
    ],
)


def _memtier(*columns: str) -> list[Rule]:
    """The rules of its table with these columns of latencies, in ms. It divides bytes by 1,024."""
    return [
        rule(r"(?P<workload>BEST RUN|WORST RUN|AGGREGATED AVERAGE) RESULTS", begins=True),
        rule(r"ALL STATS", begins=True),
        *(
            rule(
                rf"{which}\s++{amount('ops')}(?:\s++(?:[\d.]++|---)){{2}}\s++"
                + r"\s++".join(map(positive, columns))
                + rf"\s++(?:{amount('rate')}|---)\s*+$",
                absent="none of them was done",
                ops=of("operations_per_s"),
                rate=of("rate_bytes_per_s", KIB),
                **latencies(MS, *columns),
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

_REDIS_RATE = rf"{amount('rate')}\s++requests per second"
REDIS = figures_format(
    "redis-benchmark",
    "redis-benchmark's report, also with -q: requests per second and latencies of each command",
    recognised_by=r"\d++ requests completed in [\d.]++ seconds|throughput summary: \d"
    r"|[A-Z][A-Z_\d]+(?: \([^()]*\)){0,2}: [\d.]++ requests per second",
    words=("requests per second", "requests completed in", "parallel clients", "throughput summary"),
    titled=True,
    repeats=r"\d{1,3}(?:\.\d++)?% <= [\d.]++ milliseconds",
    rules=[
        rule(r"={3,} (?P<workload>\S.{0,60}?) ={3,}\s*+$", begins=True),
        rule(
            rf"{amount('count')}\s++requests completed in {amount('time')} seconds",
            count=of("ops"),
            time=of("elapsed_s"),
        ),
        rule(rf"(?:throughput summary: )?{_REDIS_RATE}\s*+$", rate=of("operations_per_s")),
        rule(
            rf"(?P<workload>[A-Z][A-Z_\d]+(?: \([^()]*\)){{0,2}}): {_REDIS_RATE}(?:, p50={amount('p50')} msec)?",
            rate=of("operations_per_s"),
            p50=of("latency_ns_p50", MS),
            absent="not printed by this version",
        ),
        rule(
            r"\s++".join(map(positive, ("mean", "min", "p50", "p95", "p99", "max"))) + r"\s*+$",
            absent=TOO_SHORT,
            **latencies(MS, "mean", "min", "p50", "p95", "p99", "max"),
        ),
    ],
)

CASSANDRA_STRESS = figures_format(
    "cassandra-stress",
    "cassandra-stress' results: operations per second and latencies of all, which it repeats for each operation",
    recognised_by=r"[Oo]p rate\s++:\s++[\d,]++(?: op/s)?\s++\[",
    words=("Op rate", "Partition rate", "Row rate", "Latency 99th percentile", "Total operation time"),
    titled=True,
    whole={"operations_per_s": "Op rate", "latency_ns_mean": "Latency mean"},
    repeats=r"(?:Partition|Row) rate\s|.* GC time |total,|[A-Z]+,\s",
    rules=[
        rule(r"Results:\s*+$", begins=True),
        rule(rf"[Oo]p rate\s++:\s++{amount('rate')}", rate=of("operations_per_s")),
        *(
            rule(rf"[Ll]atency {what}\s++:\s++{amount('time')}(?: ms)?\s", time=of(f"latency_ns_{name}", MS))
            for what, name in (
                *(("mean", "mean"), ("median", "p50"), ("95th percentile", "p95"), ("99th percentile", "p99")),
                *((r"99\.9th percentile", "p999"), ("max", "max")),
            )
        ),
        rule(rf"Total partitions\s++:\s++{amount('count')}", count=of("partitions")),
        rule(rf"Total errors\s++:\s++{amount('count')}", count=of("errors")),
        rule(r"Total operation time\s++:\s++(?P<time>\d++:\d\d:\d\d)", time=of("elapsed_s")),
    ],
)

_KAFKA = rf"{amount('count')}\s++records sent, {amount('records')} records/sec \({amount('rate')} MB/sec\), "
KAFKA = figures_format(
    "kafka-producer",
    "kafka-producer-perf-test's last line: records and bytes per second, and latencies",
    recognised_by=r"\d++ records sent, [\d.]++ records/sec .*\b99th",
    words=("records sent", "records/sec", "ms avg latency", "ms 99th"),
    titled=True,
    repeats=r"\d++ records sent, (?!.*\b99th)",
    rules=[
        # It divides by 2^20 (ProducerPerformance.java).
        rule(
            rf"{_KAFKA}{amount('mean')} ms avg latency, {amount('max')} ms max latency, {amount('p50')} ms 50th, "
            rf"{amount('p95')} ms 95th, {amount('p99')} ms 99th, {amount('p999')} ms 99\.9th",
            begins=True,
            count=of("ops"),
            records=of("operations_per_s"),
            rate=of("rate_bytes_per_s", MIB),
            **latencies(MS, "mean", "max", "p50", "p95", "p99", "p999"),
        ),
    ],
)

FORMATS = (
    *(DB_BENCH, HAMMERDB, BENCHMARKSQL, MEMTIER, GO_YCSB, YCSB, MONGO_PERF, ETCDCTL, BBOLT, COCKROACH),
    *(REDIS, CASSANDRA_STRESS, KAFKA, CLICKHOUSE, TPCC_MYSQL),
)
