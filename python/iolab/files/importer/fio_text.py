"""What fio prints for people, versions 1 to 3, and its terse lines, wherever they stand in a text.

Both are read into the shape of its JSON.

Figures are as exact as the text: sizes of `101MiB` have three digits, latencies of the terse format whole microseconds.
Lines of a client's output begin with `<host>`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from iolab.base.errors import InputError
from iolab.base.plain_text import counted
from iolab.base.strict_json import JsonObject
from iolab.domain.fio_report.job import table
from iolab.files.importer import fio_terse
from iolab.files.importer.fio_run import FioRun, add_runs
from iolab.files.importer.fio_sequence import Heading, Member, Sequence
from iolab.files.importer.format import Format
from iolab.files.importer.results import Results
from iolab.files.importer.shell_commands import command_of, sets
from iolab.files.importer.source import Line, Source
from iolab.files.importer.text import QUOTED_MAX
from iolab.files.importer.titles import DETAILS
from iolab.files.importer.written_number import number

NS = {"nsec": 1.0, "usec": 1e3, "msec": 1e6, "sec": 1e9}
DECIMAL = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "p": 10**15}
BINARY = {prefix: 1024**power for power, prefix in enumerate(DECIMAL)}
Fields = dict[str, Any]
AS_PRINTED = 0.01
"""Three digits are right by so much."""

_HOST = re.compile(r"<(?P<host>[\w.:-]{1,200}+)> ?")
JOB = re.compile(
    r"\s*+(?P<name>[^\s(:][^(:]{0,200}): \(groupid=(?P<group>\d{1,9}+)(?:, jobs=(?P<jobs>\d{1,9}+))?\): "
    r"err=\s*+(?P<error>-?\d{1,9}+)(?:.*: pid=(?P<pid>\d{1,9}+))?"
)
_CLIENT_JOB = re.compile(rf"(?:{_HOST.pattern})?{JOB.pattern}")
_BANNER = re.compile(
    r"\s*+(?P<name>[^\s(:][^(:]{0,200}): \(g=(?P<group>\d{1,9}+)\): rw=(?P<rw>[\w:]++), bs=(?P<bs>.{1,200}?), "
    r"ioengine=(?P<ioengine>[\w-]++), iodepth=(?P<iodepth>\d++)"
)
_BLOCK = re.compile(r"([\d.]++[KMG]?i?B?)-([\d.]++[KMG]?i?B?)", re.IGNORECASE)
_WAY = re.compile(r"\s*+(?P<way>read|write|trim|mixed)\s*+: ?(?=.*(?:IOPS=|bw=|BW=))")
_RATES = re.compile(
    r".{0,20}?IOPS=(?P<iops>[\d.]++[kMG]?), BW=(?P<rate>[\d.]++\s?\w*+)/s.{0,40}?"
    r"\((?P<size>[\d.]++\s?\w*+)/(?P<ms>\d{1,15}+)msec\)"
)
_OLD_RATES = re.compile(
    r".{0,20}?io=\s*+(?P<size>\d[\d.,]{0,20}? ?[KMGTPkmgtp]?i?[Bb]?), bw=\s*+[^,]*+,"
    r"(?: iops=\s*+(?P<iops>\d[\d.,]{0,20}?[kMG]?)\s*+,)? runt=\s*+(?P<ms>\d{1,15}+)\s?msec"
)
_ALONE = re.compile(_WAY.pattern.replace("(?=.*(?:IOPS=|bw=|BW=))", "") + _RATES.pattern)
_OLD_ALONE = re.compile(_WAY.pattern.replace("(?=.*(?:IOPS=|bw=|BW=))", "") + _OLD_RATES.pattern)


def _anonymous(pattern: re.Pattern[str]) -> str:
    """The pattern without names of groups, which may stand in one only once."""
    return re.sub(r"\(\?P<\w+>", "(?:", pattern.pattern)


_LABELLED = re.compile(
    r"\s*+(?P<label>[^\s:=](?>(?:[^:=]|:(?=\d\d)){0,80})):\s*+(?P<rates>(?:read|write|trim|mixed)\s*+:.*)"
)
"""`grep IOPS= *.log`: the name of what the rates are of, before them."""
_CLOCK = re.compile(r"[@_.-]?\d\d:\d\d(?::\d\d)?$")
_LABEL = _LABELLED.pattern.partition("(?P<rates>")[0]
_LABELLED_ALONE = re.compile(f"{_LABEL}(?:{_anonymous(_ALONE)}|{_anonymous(_OLD_ALONE)})")
_SYNC_ALONE = re.compile(r"\s*+fsync/fdatasync/sync_file_range:\s*+$")
"""What etcd asks for: nothing but the latencies of syncs."""
_NAMELESS = ": (groupid=0, jobs=1): err= 0"
"""The line above a job, after its name, if a text has its rates alone."""
_NO_NAME = "fio"
_OPTION = re.compile(r"\s--?([a-z_]{1,40})=(\S{1,80})")
"""What a command says of the rates below it, if no job is named there."""
_OF_TEST = re.compile(r"read|write|seq|rand|trim", re.IGNORECASE)
"""What a label has that names a job, and no setting."""
_FIGURE = r"\s*+(?P<{}>[\d.]++[kKMG]?)\s*+"
_LATENCY = re.compile(
    r"\s*+(?P<what>[cs]?lat|sync)\s*+\((?P<unit>[num]?sec)\)\s*+: "
    + ",".join(rf" ?{name}={_FIGURE.format(name)}" for name in ("min", "max", "avg", "stdev"))
)
_PERCENTILES = re.compile(r"\s*+(?P<what>clat|lat|sync) percentiles \((?P<unit>[num]?sec)\)\s*+:")
_PERCENTILE = re.compile(r"(?P<share>\d{1,3}+\.\d{1,6}+)th=\[\s*+(?P<at>[\d.]++)\]")
_SHARE = re.compile(r"\s*+bw .*\bper=\s*+(?P<share>[\d.]++)%")
_CPU = re.compile(
    r"\s*+cpu\s*+: usr=\s*+(?P<user>[\d.]++)%, sys=\s*+(?P<system>[\d.]++)%, ctx=(?P<ctx>\d{1,15}+)"
    r"(?:, majf=(?P<majf>\d{1,15}+), minf=(?P<minf>\d{1,15}+))?"
)
_ISSUED = re.compile(
    r"\s*+issued\s*+(?:r/w/d|rwts?)?\s*+: total=r?=?(?P<read>\d{1,15}+)[/,]w?=?(?P<write>\d{1,15}+)"
    r"(?:[/,]d?=?(?P<trim>\d{1,15}+))?(?:,(?P<sync>\d{1,15}+))?"
)
_ERRORS = re.compile(r"\s*+errors\s*+: total=(?P<total>\d{1,15}+), first_error=(?P<first>\d{1,9}+)")
_FAILED = re.compile(r"fio: pid=\d{1,9}+, err=(?P<error>\d{1,9}+)/file:.{1,60}error=(?P<why>.{1,80})")
_RUNS_FIO = re.compile(r"(?:^|[\s/])fio(?:-[\d.]+)?\s")
_END = re.compile(r"\s*+(?:Run status group|Disk stats)")
_SUM = re.compile(r"\s*+(?:READ|WRITE): \S")
_VERSION = re.compile(r"\s*+fio-\d+\.\d+\S*+\s*+$")
"""Which fio prints before the jobs of a run."""
_STARTING = re.compile(r"\s*+Starting (?P<count>\d{1,6}+) (?:process|thread)")
_BREAKS_OFF = re.compile(
    r"\s*+[cs]?lat \([mun]sec\): min=(?!.*stdev=\s*+\d).*"
    r"|[\s|]\s*+\S.*=(?:\s*+|.*,\s*+|.*, \s*+(?:[A-Za-z]\w*+|\d++\.\d*+(?>(?:th)?))|.*\[[^\]]*+|.*\([^)]*+)$"
)
"""A line of a job that goes on: behind a comma, an equals sign, in brackets, before the last of its figures."""
_LATENCY_BEGUN = re.compile(r"\s*+(?:[cs]?lat|sync) \([num]?sec\)\s*+: min=(?!.*stdev=).*,\s*+$")
_LATENCY_ENDS = re.compile(r"\s*+(?>(?:(?:max|avg|stdev)=\s*+[\d.]++[kKMG]?(?:,\s*+|\s*+$))+)$")
"""The rest of a line that a mail wrapped."""
_READS_AND_WRITES = re.compile(r"rw|readwrite|randrw")
_ELISION = re.compile(r"\s*+[\[(<]\s?(?:\.{3,9}|…|snip\w*|cut|\.{3} ?\w+ ?\.{3})\s?[\])>]\s*+$", re.IGNORECASE)
"""Where whoever posted it left lines out."""
_DISK = re.compile(r"\s++(?P<name>[\w!/-]{1,64}+): ios=\d")


class _Job:
    """A job's lines, as they come."""

    def __init__(self, found: re.Match[str], host: str | None) -> None:
        name = found["name"].strip()
        self.raw: Fields = {
            "jobname": name,
            "groupid": int(found["group"]),
            "error": int(found["error"]),
            **({"hostname": host} if host else {}),
        }
        self.jobs = int(found["jobs"] or 1)
        self.pid = found["pid"]
        self.shares: dict[str, float] = {}
        self._way: Fields = {}
        self._name = ""
        self._percentiles: Fields | None = None
        self._scale = 1.0

    def read(self, text: str) -> bool:
        """Whether the line belongs to the job."""
        readers: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], None]], ...] = (
            (_WAY, self._begin),
            (_LATENCY, self._latency),
            (_PERCENTILES, self._begin_percentiles),
            (_SHARE, self._share),
            (_CPU, self._cpu),
            (_ISSUED, self._issued),
            (_ERRORS, self._errors),
        )
        for pattern, reader in readers:
            if found := pattern.match(text):
                reader(found)
                return True
        if self._percentiles is not None:
            for found in _PERCENTILE.finditer(text):
                if (at := number(found["at"])) is not None:
                    self._percentiles[f"{float(found['share']):.6f}"] = at * self._scale
        return False

    def _begin(self, way: re.Match[str]) -> None:
        rest = way.string[way.end() :]
        found = _RATES.match(rest) or _OLD_RATES.match(rest)
        if not found:
            return
        self._name = way["way"]
        size = size_in_bytes(found["size"], is_old=found.re is _OLD_RATES)
        if found.re is _RATES:
            size = amount(found, size)
        self._way = self.raw[self._name] = {
            "io_bytes": size,
            "io_kbytes": size / 1024,
            "iops": _counted(found["iops"] or "0"),
            "runtime": float(found["ms"]),
        }

    def _latency(self, found: re.Match[str]) -> None:
        scale = NS.get(found["unit"], 1.0)
        where = self._sync() if found["what"] == "sync" else self._way
        where.setdefault("lat_ns" if found["what"] == "sync" else f"{found['what']}_ns", {}).update(
            {
                "min": _counted(found["min"]) * scale,
                "max": _counted(found["max"]) * scale,
                "mean": _counted(found["avg"]) * scale,
                "stddev": _counted(found["stdev"]) * scale,
            }
        )

    def _begin_percentiles(self, found: re.Match[str]) -> None:
        self._scale = NS.get(found["unit"], 1.0)
        where = self._sync() if found["what"] == "sync" else self._way
        name = "lat_ns" if found["what"] == "sync" else f"{found['what']}_ns"
        self._percentiles = where.setdefault(name, {}).setdefault("percentile", {})

    def _sync(self) -> Fields:
        made: Fields = self.raw.setdefault("sync", {})
        return made

    def _share(self, found: re.Match[str]) -> None:
        if (share := number(found["share"])) is not None:
            self.shares[self._name] = share / 100

    def _cpu(self, found: re.Match[str]) -> None:
        self.raw |= {"usr_cpu": number(found["user"]) or 0.0, "sys_cpu": number(found["system"]) or 0.0}
        self.raw |= {name: int(found[name]) for name in ("ctx", "majf", "minf") if found[name]}

    def _issued(self, found: re.Match[str]) -> None:
        for name in ("read", "write", "trim", "sync"):
            # Syncs that were measured and not counted are not none.
            if found[name] and name in self.raw and (name != "sync" or int(found[name])):
                self.raw[name]["total_ios"] = int(found[name])
        if "mixed" in self.raw:
            self.raw["mixed"]["total_ios"] = sum(int(found[name] or 0) for name in ("read", "write", "trim"))

    def _errors(self, found: re.Match[str]) -> None:
        self.raw |= {"total_err": int(found["total"]), "first_error": int(found["first"])}

    def finished(self, banner: JsonObject | None) -> JsonObject:
        """As fio's JSON has it."""
        options = banner or {}
        sides = [self.raw[way] for way in ("read", "write", "trim", "mixed") if way in self.raw]
        self.raw["job_runtime"] = self.jobs * max((side["runtime"] for side in sides), default=0.0)
        block = size_in_bytes(str(options.get("bs", "")), is_old=True) if options.get("bs") else 0.0
        for side in sides:
            exact = block * side.get("total_ios", 0)
            if exact and abs(exact - side["io_bytes"]) <= AS_PRINTED * side["io_bytes"]:
                side["io_bytes"] = exact
        if options:
            self.raw["job options"] = options
        return self.raw


class _Reader:
    def __init__(self) -> None:
        self.runs = Sequence()
        self.heading = Heading()
        self.banners: dict[str, JsonObject] = {}
        self.job: _Job | None = None
        self.line = 0
        self.title: str | None = None
        """What stood above the job."""
        self.is_nameless = False
        """Whether the job's first lines are not in the text."""
        self.without_rates: list[tuple[int, str]] = []
        """Lines and names of jobs below which no rates stand."""
        self.headless = 0
        """The line of a summary above which no job stands."""
        self.has_gap = False
        """Whether lines were left out since the job's first."""
        self.is_printing = False
        """Whether what stands here was printed by a command right above: it is no title."""
        self.label = ""
        """What stood before the last rates on their line."""
        self.failure = ""
        """What a job ended with, of those without figures."""
        self.cut: list[tuple[str, int | None]] = []
        """What of jobs is not in the text."""
        self.started = self.ended = self.started_at = 0
        """How many jobs the run says that it has, how many are in the text, and the line that says so."""

    def read(self, line: Line) -> None:
        prefix = None if DETAILS.match(line.text) else _HOST.match(line.text)
        host = prefix["host"] if prefix else None
        text = line.text[prefix.end() :] if prefix else line.text
        if (labelled := _LABELLED.match(text)) and _LABELLED_ALONE.match(text):
            text = labelled["rates"]
            # Files that are called by the time of day alone are rounds.
            label = _CLOCK.sub("", labelled["label"])
            if label != self.label:
                self.label = label
                self.finish_job()
                self.runs.close(None)
                is_named = label != labelled["label"] and self.heading.is_given
                if not _OF_TEST.search(self.label) and not is_named:
                    self.heading.read(f"{self.label}:")
        self.is_printing &= bool(text.strip())
        if found := JOB.match(text) or self._of_nameless(text):
            if self.has_gap and self.job is not None and found.string.endswith(_NAMELESS):
                what = "lines are left out above these rates, which are taken as those of another job"
                self.cut.append((what, line.number))
                self.finish_job()
                self.runs.close(None)
            self.finish_job()
            self.has_gap = self.is_printing = False
            self.job, self.line, self.title = _Job(found, host), line.number, self.heading.take()
            self.is_nameless = found.string.endswith(_NAMELESS)
            if self.is_nameless:
                self.job.read(text)
        elif found := _BANNER.match(text):
            self.finish_job()
            self.runs.close(self.heading.take())
            self.banners[found["name"].strip()] = _options(found)
        elif _END.match(text):
            self.finish_job()
            if self.runs.is_empty:
                self.headless = self.headless or line.number
            self.runs.close(None)
        elif _VERSION.match(text):
            self.finish_job()
            self.runs.close(None)
            self.finish_run()
        elif found := _STARTING.match(text):
            self.started, self.started_at = self.started + int(found["count"]), line.number
        elif command := command_of(text):
            self.finish_job()
            self.runs.close(None)
            if sets(command):
                self.heading.name(command)
            elif _RUNS_FIO.search(command):
                self.banners[_NO_NAME] = {name: value for name, value in _OPTION.findall(command) if name != "name"}
                self.is_printing = True
        elif found := _FAILED.match(text):
            self.failure = f"a job failed with error {found['error']} ({found['why'].strip()})"
        elif found := _DISK.match(text):
            self.runs.disk(found["name"])
        elif _ELISION.match(text):
            self.has_gap = True
        elif (self.job is None or not self.job.read(text)) and not self.is_printing:
            self.heading.read(text)

    def _of_nameless(self, text: str) -> re.Match[str] | None:
        """The beginning of a job that has none in the text: a line of rates below prose, or a second one of a way."""
        found = _ALONE.match(text) or _OLD_ALONE.match(text)
        if self.job is None and _SYNC_ALONE.match(text):
            return JOB.match("fio" + _NAMELESS)
        if found is None or (self.job is not None and not self.is_nameless and not self.has_gap):
            return None
        is_other = self.heading.is_given or self.has_gap
        goes_on = self.job is not None and found["way"] not in self.job.raw and not is_other
        name = self.label if _OF_TEST.search(self.label) else _NO_NAME
        return None if goes_on else JOB.match(name.replace("(", "[") + _NAMELESS)

    def finish_run(self) -> None:
        if 0 < self.ended < self.started:
            what = f"fio started {counted(self.started, 'job')}, and {self.ended} of them are in the text"
            self.cut.append((f"{what}: rates are theirs", self.started_at))
        self.started = self.ended = 0

    def finish_job(self) -> None:
        job, self.job = self.job, None
        if job is not None:
            self.ended += job.jobs
            raw = job.finished(self.banners.get(str(job.raw["jobname"])))
            identity = (raw.get("hostname"), raw["jobname"], job.pid) if job.pid else None
            of_syncs = self.is_nameless and "sync" in raw
            if not raw.get("error") and not of_syncs and not raw.keys() & {"read", "write", "trim", "mixed"}:
                self.without_rates.append((self.line, str(raw["jobname"])))
                if "sync" not in raw:
                    return
            way = table(raw, "job options").get("rw", "")
            sides = [one for one in ("read", "write") if one in raw]
            if len(sides) == 1 and _READS_AND_WRITES.fullmatch(str(way).partition(":")[0]):
                other = "writes" if sides == ["read"] else "reads"
                what = f"job {str(raw['jobname'])[:QUOTED_MAX]} has rw={way}, and no {other} of it are in the text"
                self.cut.append((what, self.line))
            self.runs.add(Member(self.line, raw, job.shares, identity), self.title)


def _options(banner: re.Match[str]) -> JsonObject:
    """What the line above the results holds about a job."""
    options: JsonObject = {name: banner[name] for name in ("rw", "ioengine", "iodepth")}
    sizes = {size for pair in _BLOCK.findall(banner["bs"]) for size in pair}
    return options | {"bs": sizes.pop() if len(sizes) == 1 else banner["bs"]}


def _counted(text: str) -> float:
    """`25.9k` -> 25900."""
    digits = text.rstrip("kKMG")
    return (number(digits) or 0.0) * DECIMAL[text[len(digits) :].lower()[:1]]


def amount(found: re.Match[str], size: float) -> float:
    """Bytes that were done, by the rate if that has no fewer digits, or if they contradict it: `214GiB/30001msec`
    beside `BW=7317MiB/s`."""
    seconds = float(found["ms"]) / 1e3
    rate = size_in_bytes(found["rate"], is_old=False)
    whole, last = _digits(found["rate"])
    contradicts = abs(size - rate * seconds) > rate * seconds * last
    return rate * seconds if rate and (whole >= _digits(found["size"])[0] or contradicts) else size


def _digits(figure: str) -> tuple[int, float]:
    """How many digits it has, and what one of the last place is as a share of it: `116MiB` -> 3, 1/116."""
    digits = re.sub(r"[^\d]", "", figure)
    return len(digits.lstrip("0")), 1 / max(int(digits or "0"), 1)


OWN = re.compile(
    r"\s*+(?:<[^<>]{1,200}> ?)?(?:[cs]?lat|bw|iops|cpu|IO depths|submit|complete|issued|latency|sync)\b[^:]{0,30}:"
    r"|\s*+(?:\||Jobs: \d|(?:[^\s:]{1,80}:\s++)?(?:READ|WRITE|TRIM|MIXED|read|write|trim|mixed)\s*+: ?(?:bw|io|IOPS)=)"
    r"|.*: ios=\d|.*\(f=\d+\)[:,]"
)
"""Lines of fio whose figures others state more exactly, or that are not read: iops, depths, utilisation."""


def size_in_bytes(text: str, *, is_old: bool) -> float:
    """`101MiB` -> bytes. fio 1 and 2 write `MB` for what fio 3 calls `MiB`."""
    bare = text.replace(" ", "")
    digits = bare.rstrip("KMGTPkmgtpiBb")
    unit = bare[len(digits) :].lower().removesuffix("b")
    scales = BINARY if is_old or unit.endswith("i") else DECIMAL
    return (number(digits) or 0.0) * scales.get(unit.removesuffix("i"), 1)


def _parse(source: Source, results: Results) -> None:
    reader = _Reader()
    terse = fio_terse.Reader(results)
    last: Line | None = None
    begun: Line | None = None
    for line in source.lines(results.problem):
        if begun is not None:
            whole = Line(begun.number, f"{begun.text.rstrip()} {line.text.strip()}")
            is_rest, begun = bool(_LATENCY_ENDS.match(line.text)), None
            if is_rest:
                reader.read(whole)
                last = whole
                continue
        if not terse.read(line):
            reader.read(line)
        begun = line if _LATENCY_BEGUN.match(line.text) else None
        last = line if line.text.strip() else last
    if last is not None and reader.job is not None and _BREAKS_OFF.match(last.text):
        results.problem("fio's output is cut off in this line", last.number)
    reader.finish_job()
    reader.finish_run()
    for what, place in reader.cut:
        results.problem(what, place)
    for place, name in reader.without_rates:
        results.problem(f"no rates are below the line of job {name[:QUOTED_MAX]}: are its lines whole?", place)
    if reader.headless:
        results.problem("this summary is not read: the jobs that it is of are not in the text", reader.headless)
    found = reader.runs.finished(results) or terse.runs.finished(results)
    if not found and reader.failure:
        raise InputError(f"fio printed no figures: {reader.failure}", where=source.name)
    add_runs(source, results, [FioRun(*run) for run in found])


FORMAT = Format(
    name="fio-text",
    help="fio's output for people, and its terse lines of versions 2 to 5; each of several runs is a setting",
    recognises=lambda source: (
        any(map(source.has_line, (fio_terse.LINE, _FAILED, _ALONE, _OLD_ALONE, _LABELLED_ALONE, _SYNC_ALONE)))
        # Jobs above the sums of their group and nothing else are read with these.
        or (source.has_line(_CLIENT_JOB) and (source.has_line(_WAY) or not source.has_line(_SUM)))
    ),
    parse=_parse,
    own=OWN,
    words=("groupid=", "err=", "IOPS=", "BW=", "clat (usec)", "Run status group"),
)
