"""What a metric is: name, unit, nature and help, and for iolab's own how it is computed from an observation.

Also the metrics that other programs measure and iolab itself does not, for imported numbers. What a tool measures that
iolab measures too has iolab's name (`iolab.domain.metric.METRICS`). A summary over repetitions, such as a tool's own
average, has a name of its own: it is one number, not a round.

The nature states how a difference of a metric is called, in every verdict.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from iolab.domain.observation import Observation

Scope = Literal["op", "transfer", "io", "phase", "measure", "flash", "probe"]
Nature = Literal["rate", "time", "benefit", "cost", "neutral"]
"""The kind of a metric, which determines the name of a difference. rate: work done per time, more is faster. time: how
long something took, more is slower. benefit: anything else that is better when higher. cost: anything else that is
worse when higher, such as CPU time, which nobody waits for, or a spread. neutral: neither, such as a queue depth."""
Better = Literal["higher", "lower"]
Verdict = Literal["faster", "slower", "better", "worse", "higher", "lower", "same", "undecided"]

DIFFERENCES: dict[Nature, tuple[Verdict, Verdict]] = {
    "rate": ("faster", "slower"),
    "time": ("slower", "faster"),
    "benefit": ("better", "worse"),
    "cost": ("worse", "better"),
    "neutral": ("higher", "lower"),
}
"""By the metric's nature: what a candidate is called whose values are higher, and one whose values are lower."""
VERDICTS: tuple[Verdict, ...] = ("slower", "worse", "faster", "better", "higher", "lower", "same", "undecided")
"""In the order of the output: what needs attention first."""
GAINS: frozenset[Verdict] = frozenset({"faster", "better"})
LOSSES: frozenset[Verdict] = frozenset({"slower", "worse"})
NO_DIFFERENCE: frozenset[Verdict] = frozenset({"same", "undecided"})


def better_of(nature: Nature) -> Better | None:
    """Which way is better; None if neither is."""
    ways: dict[Nature, Better] = {"rate": "higher", "benefit": "higher", "time": "lower", "cost": "lower"}
    return ways.get(nature)


@dataclass(frozen=True)
class MetricDescription:
    """The facts about a metric, whatever measures it."""

    name: str
    unit: str
    """`bytes/s`, `1/s`, `Hz`, `bytes`, `ns`, `s`, `cycles`, `count`, `share` (0 to 1), `percent`; empty if it is not
    known."""
    nature: Nature
    help: str

    @property
    def better(self) -> Better | None:
        """Which way is better; None if neither is."""
        return better_of(self.nature)


@dataclass(frozen=True)
class Metric(MetricDescription):
    """One that is computed from a record."""

    scope: Scope
    """op: of each operation of a phase, and of all transfers; transfer: of reads, writes and both. With op all only:
    io, if a phase reads or writes; phase, of every phase; measure, if a phase declares it; probe, if the trial has the
    probe on."""
    of: Callable[[Observation], float | None]
    absent: str
    """The reason when there is no value."""
    per_job: bool = False
    """Also kept for each job, of all its operations, if a phase has several; and for each weighted group."""
    per_group: bool = False
    """Also kept for each weighted group."""
    probe: str | None = None
    """Which probe gives it; with scope probe only."""


NO_TIME = "no time was measured"
NO_OPERATION = "no such operation completed in the measured part"
NO_IO = "no I/O completed in the measured part"
"""Why several metrics may have no value."""


SUMMARIES = {"min": "Lowest", "mean": "Mean", "max": "Highest"}

NAMELESS = "value"
"""What a metric is called that a table does not name."""
SCORE, COST = "score_", "cost_"
"""What names a benchmark's own statistic in an unknown unit: more of a score is better, less of a cost."""


def describe_by_name(key: str) -> MetricDescription:
    """A name that is registered nowhere, such as a CSV column's: unit and direction as far as its words say them.

    Rates and what is good are better high; latencies, durations, percentiles of nothing else, CPU time and counts and
    rates of what hurts are better low. Of any other name, and of one of what hurts and what is good together, nothing
    says which way is better.
    """
    name = key.rpartition("/")[2]
    family: dict[str, Nature] = {SCORE: "benefit", COST: "cost"}
    for prefix, nature in family.items():
        if name.startswith(prefix):
            what = name.removeprefix(prefix).replace("_", " ")
            return MetricDescription(name, "", nature, f"The benchmark's own {what}, in its own unit.")
    own = BYTE_RATE.search(key)
    unit = f"{own['unit']}/s" if own else next((unit for pattern, unit in _UNITS if pattern.search(key)), "")
    return MetricDescription(key, unit, _nature(key), "As the file names it.")


def _nature(key: str) -> Nature:
    name = key.lower()
    if said := _SAID.search(name):
        return "cost" if said["less"] else "benefit"
    words = set(re.split(r"[^a-z0-9]+", name)) | set(re.split(r"[^a-z0-9]+", _CAPITAL.sub(" ", key).lower()))
    harms = bool(words & _HARM)
    is_turned = words & _TURNED and words & (_HARM | _WORDS["time"])
    if is_turned or (harms and (words & _OF_GOOD or _OF_BYTES.search(name))):
        # `hit/miss ratio`, `evictions avoided`, `MB/s after drop_caches`, `time saved`, `ops until failure`.
        return "neutral"
    if re.search(r"(/|per_?)s(ec)?(ond)?\b", name) or _IN_A_SECOND.search(name):
        return "cost" if harms else "rate"
    if words & _WORDS["rate"] and words & _WORDS["time"] == {"s"}:
        # `iops_s`: no time but the second.
        return "rate"
    if "cpu" in words and words & _OF_CPU:
        return "neutral"
    # What is used or goes wrong before times: CPU time is no time that anybody waits for.
    for nature, meant in _WORDS.items():
        if meant & words:
            return "cost" if harms and nature == "rate" else nature
    if harms:
        return "cost"
    return "time" if any(map(_PERCENTILE.fullmatch, words)) else "neutral"


_WORDS: dict[Nature, set[str]] = {
    "cost": {"cpu", "stddev", "stdev", "deviation"},
    "time": {
        *("latency", "latencies", "lat", "clat", "slat", "time", "elapsed", "duration", "delay", "wait", "stall"),
        *("runtime", "walltime", "wall", "rtt", "await", "svctm", "pause", "pauses"),
        *("ns", "us", "ms", "s", "nsec", "usec", "msec", "sec", "secs", "seconds", "minutes", "hours"),
    },
    "rate": {
        *("iops", "kiops", "rate", "throughput", "bandwidth", "bw", "goodput"),
        *("kbps", "mbps", "gbps", "tps", "qps", "rps", "tpm", "tpmc", "nopm"),
    },
    "benefit": {
        *("score", "scores", "points", "fps", "frames", "hit", "hits", "speed", "speedup", "performance"),
        *("efficiency", "fairness", "gain", "success", "successes", "availability", "uptime"),
    },
}
_PERCENTILE = re.compile(r"p\d\d\d*|\d\dth")
"""Of latencies, where nothing else is named."""
_OF_CPU = {"idle", "mhz", "ghz", "freq", "frequency", "speed"}
"""Of a CPU, no time that it spends on I/O."""

_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")
"""Within `MissRate`."""
_HARM = {
    *("error", "errors", "miss", "misses", "loss", "losses", "lost", "fail", "fails", "failed", "failure", "failures"),
    *("drop", "drops", "dropped", "timeout", "timeouts", "retry", "retries", "retried", "abort", "aborts", "aborted"),
    *("retrans", "retransmit", "retransmits", "retransmitted", "retransmission", "retransmissions"),
    *("eviction", "evictions", "evicted", "fault", "faults", "stall", "stalls", "switch", "switches"),
    *("interrupt", "interrupts", "conflict", "conflicts", "collision", "collisions", "rejected", "rejects"),
    *("waf", "amplification", "amp", "wear", "erase", "erases", "iowait", "steal", "backlog", "jitter"),
    *("cost", "price", "overhead", "penalty", "slowdown", "fragmentation", "downtime", "rss"),
    *("power", "energy", "watts", "joules"),
}
"""What goes wrong or is used up: its rate is better low too. Chosen."""
_TURNED = {"avoided", "saved", "prevented", "corrected", "recovered", "until", "between", "before"}
"""Beside a time or a word of harm, more may be better. Chosen."""
_SAID = re.compile(
    r"(?:(?P<less>lower|less|smaller|fewer)|higher|more|greater|larger|bigger)[ _-]?(?:is|=|->)?[ _-]?better"
)
"""What a name itself says."""
_OF_GOOD = _WORDS["rate"] - {"rate"} | _WORDS["benefit"] | _TURNED
"""Beside a word of harm, they leave open which way is better. Chosen."""
_OF_BYTES = re.compile(r"(?<![a-z])(?:[kmgt]?i?b|bytes)_?(?:/|per_?|(?<=_))s(?:ec)?(?![a-z])")

_COUNTED = (
    "bytes|(?:io|rd|wr|tx|rx)?ops|ios?|iops|reads|writes|creates|unlinks|lookups|commits|f?syncs|files|inodes|rows|records|keys"
    "|inserts|updates|deletes|queries|statements|req(?:uest)?s?|tx(?:n|ns)?|trans(?:action)?s|events|messages|msgs|packets|pkts"
)
"""What is counted in a second, where a name ends with `_s`."""
BYTE_RATE = re.compile(r"(?:(?:^|[ _])[(\[]?|[(\[])(?P<unit>[kKmMgGtT]i?[Bb])_(?:per_)?s(?:ec)?[)\]]?$")
"""How a column's name ends whose figures are in a unit of its own, such as `bw (MB/s)`."""
_IN_A_SECOND = re.compile(rf"(?:^|_)(?:[kmgt]i?b|{_COUNTED})_s(?:ec)?$")
_UNITS = [
    (re.compile(pattern), unit)
    for pattern, unit in (
        (_IN_A_SECOND.pattern, "1/s"),
        (r"bytes_per_s(_|$)", "bytes/s"),
        (r"_ns(_|$)", "ns"),
        (r"_per_s$", "1/s"),
        (r"_percent$", "percent"),
        (r"_bytes(_|$)", "bytes"),
        (r"_s(_(min|mean|max|stddev))?$", "s"),
    )
]


def _all() -> Iterator[MetricDescription]:
    yield from _times()
    yield from _rates()
    yield from _operations()
    yield from _transactions()
    yield from _requests()
    yield from _processes()


def _times() -> Iterator[MetricDescription]:
    for name, what in (*SUMMARIES.items(), ("stddev", "Standard deviation of the")):
        nature: Nature = "cost" if name == "stddev" else "time"
        yield MetricDescription(f"elapsed_s_{name}", "s", nature, f"{what} wall time over the tool's own repetitions.")
    yield MetricDescription("elapsed_s_median", "s", "time", "Median wall time over the tool's own repetitions.")
    yield MetricDescription("cpu_s", "s", "cost", "CPU time, user and system.")
    for name in ("user", "system"):
        yield MetricDescription(
            f"cpu_{name}_s_mean", "s", "cost", f"Mean {name} CPU time over the tool's own repetitions."
        )


def _rates() -> Iterator[MetricDescription]:
    for name, what in SUMMARIES.items():
        help_ = f"{what} rate of a thread or process."
        yield MetricDescription(f"rate_per_process_bytes_per_s_{name}", "bytes/s", "rate", help_)
    for name, unit, of_what in (("rate_bytes_per_s", "bytes/s", "rate"), ("iops", "1/s", "operations per second")):
        help_ = f"Standard deviation of the {of_what} over the tool's own intervals."
        yield MetricDescription(f"{name}_stddev", unit, "cost", help_)
    yield MetricDescription(
        "transfer_bytes_min", "bytes", "neutral", "Bytes transferred by the process with the smallest transfer."
    )


def _operations() -> Iterator[MetricDescription]:
    yield MetricDescription("operations_per_s", "1/s", "rate", "Repeated operations of the benchmark, such as creates.")
    for name, what in SUMMARIES.items():
        help_ = f"{what} rate of operations over the tool's own repetitions."
        yield MetricDescription(f"operations_per_s_{name}", "1/s", "rate", help_)
    help_ = "Standard deviation of the rate of operations over the tool's own repetitions."
    yield MetricDescription("operations_per_s_stddev", "1/s", "cost", help_)


def _transactions() -> Iterator[MetricDescription]:
    yield MetricDescription("transactions_per_s", "1/s", "rate", "Transactions of a database benchmark.")
    yield MetricDescription("queries_per_s", "1/s", "rate", "Statements of a database benchmark.")
    yield MetricDescription("events_per_s", "1/s", "rate", "sysbench's events, the operations that its test repeats.")
    yield MetricDescription("fsyncs_per_s", "1/s", "rate", "fsync calls.")
    for digits in ("25", "75", "95", "9999"):
        percent = f"{digits[:2]}.{digits[2:]}".rstrip(".")
        help_ = f"{percent}th percentile of the latency, as the tool prints it."
        yield MetricDescription(f"latency_ns_p{digits}", "ns", "time", help_)
    parts = {"submission": "until its submission, fio's slat", "completion": "from then on, fio's clat"}
    for part, of_fio in parts.items():
        for name in ("mean", "max"):
            help_ = f"{SUMMARIES[name]} time of an operation {of_fio}; part of its total latency."
            yield MetricDescription(f"{part}_latency_ns_{name}", "ns", "time", help_)
    yield MetricDescription(
        "transactions_per_min", "1/min", "rate", "HammerDB's transactions, of a kind that depends on the database."
    )
    yield MetricDescription(
        "new_orders_per_min", "1/min", "rate", "HammerDB's new orders, comparable across databases."
    )
    yield MetricDescription("transactions_failed", "count", "cost", "Transactions that the database refused.")
    yield MetricDescription(
        "transactions_skipped",
        "count",
        "cost",
        "Transactions that were not begun because they were too late (pgbench -L).",
    )


def _requests() -> Iterator[MetricDescription]:
    yield MetricDescription(
        "device_busy_percent", "percent", "neutral", "Time with requests outstanding at the device."
    )
    yield MetricDescription(
        "device_service_ns_mean", "ns", "time", "iostat's svctm; its authors advise against using it."
    )
    for kind, what in (("file", "a whole file"), ("dir", "a directory"), ("entry", "an entry or object")):
        for name, which in SUMMARIES.items():
            help_ = f"{which} latency of {what}, as elbencho prints it."
            yield MetricDescription(f"{kind}_latency_ns_{name}", "ns", "time", help_)
    yield MetricDescription("block_input_bytes", "bytes", "neutral", "Read from devices on behalf of the process.")
    yield MetricDescription("block_output_bytes", "bytes", "neutral", "Written to devices on behalf of the process.")


def _processes() -> Iterator[MetricDescription]:
    yield MetricDescription("resident_bytes_max", "bytes", "cost", "Highest resident memory.")
    for state in ("runnable", "blocked"):
        yield MetricDescription(f"tasks_{state}_mean", "", "neutral", f"Tasks that are {state}, a mean over reports.")
    yield MetricDescription("swaps", "count", "cost", "Times that the process was swapped out.")


TOOL_METRICS: dict[str, MetricDescription] = {metric.name: metric for metric in _all()}
