"""GNU time (-v and its default line), `time` of bash and zsh, and POSIX `time -p`. Each block is a round.

Resident memory is in units of 1024 bytes; file system inputs and outputs are getrusage's blocks of 512 bytes.
"""

from __future__ import annotations

import re

from iolab.base.plain_text import counted
from iolab.files.importer.durations import clock_s
from iolab.files.importer.format import Format
from iolab.files.importer.results import Results, Row
from iolab.files.importer.source import Line, Source
from iolab.files.importer.text import QUOTED_MAX
from iolab.files.importer.written_number import number

KIB, BLOCK = 1024, 512
_ALL = ("real", "user", "sys")
_COMMAND = re.compile(r"\s*+Command being timed: \"(?P<command>.*)\"\s*+$")
_FIELD = re.compile(r"\s*+(?P<name>[A-Z][\w ()/:,]*?): (?P<value>\S++)\s*+$")
_TIME = r"(?:(?P<minutes>\d{1,15})m ?)?(?P<seconds>\d{1,15}(?:[.,]\d{1,15})?)s?"
_EACH_TIME = re.compile(rf"{_TIME}(?!\S)")
_BARE_TIME = re.sub(r"\?P<\w+>", "?:", _TIME)
_SIMPLE = re.compile(
    rf"\s*+(?P<name>real|user|sys)\s++(?P<times>{_BARE_TIME}(?:\s++(?:(?P=name)\s++)?{_BARE_TIME}){{0,9}})\s*+$",
    re.IGNORECASE,
)
"""Of one run, or of several side by side."""
_IN_A_LINE = re.compile(
    r"\s*+(?:(?P<label>[^\s:][^:]{0,60}):)?"
    + "".join(
        rf"\s*+{name}\s++(?:(?P<{name}_minutes>\d{{1,15}})m ?)?(?P<{name}_seconds>\d{{1,15}}\.\d{{1,15}})s?"
        for name in _ALL
    )
    + r"\s*+$"
)
"""Its lines joined, perhaps behind a name."""
_DEFAULT = re.compile(
    r"\s*+(?P<user>[\d.]++)user\s++(?P<system>[\d.]++)system\s++(?P<elapsed>[\d.:]++)elapsed\s++(?P<percent>[\d?]++)%CPU"
    r"(?:.*?(?<!\d)(?P<resident>\d{1,15}+)maxresident)?"
)
_ZSH = re.compile(
    r"\s*+(?:(?P<command>\S.{0,160}?) {1,2})?(?P<user>[\d.,]++)s user (?P<system>[\d.,]++)s system"
    r" (?P<percent>\d{1,6})% cpu (?P<elapsed>[\d.,:]++) total\s*+$"
)
_GAP = re.compile(r"\s{2,}+|\t+|\s*+\|\s*+")
_FAULTS = re.compile(
    r"\s*+(?P<inputs>\d{1,15}+)inputs\+(?P<outputs>\d{1,15}+)outputs "
    r"\((?P<major>\d{1,15}+)major\+(?P<minor>\d{1,15}+)minor\)"
)
_PROMPT = re.compile(
    r"(?:\S{0,80}?[#$%>+]\s|\d{1,2}[.)] )?\s*+(?:sudo |env )?time\s++(?!-p\s*+$)"
    r"(?P<command>[\w./~]\S*+ \S.{0,120}?)\s*+$"
)
"""The line above what bash, zsh and busybox print, which `set -x` marks with a plus sign."""
_EXIT = re.compile(r"\s*+(?:Command exited with non-zero status|Exit status:)\s++(?P<status>\d{1,9}+)\s*+$")
_METRICS = {
    "User time (seconds)": ("cpu_user_s", 1.0),
    "System time (seconds)": ("cpu_system_s", 1.0),
    "Maximum resident set size (kbytes)": ("resident_bytes_max", float(KIB)),
    "Major (requiring I/O) page faults": ("faults_major", 1.0),
    "Minor (reclaiming a frame) page faults": ("faults_minor", 1.0),
    "Voluntary context switches": ("context_switches_voluntary", 1.0),
    "Involuntary context switches": ("context_switches_involuntary", 1.0),
    "Swaps": ("swaps", 1.0),
    "File system inputs": ("block_input_bytes", float(BLOCK)),
    "File system outputs": ("block_output_bytes", float(BLOCK)),
}
_ELAPSED = "Elapsed (wall clock) time (h:mm:ss or m:ss)"
WORKLOAD = "command"


class _Reader:
    def __init__(self, source: Source, results: Results) -> None:
        self.source = source
        self.results = results
        self.row: Row | None = None
        self.seconds: dict[str, float] = {}
        self.beside: dict[str, list[float]] = {}
        """Of runs side by side."""
        self.above = ""
        """The last line that is none of times: it may name runs side by side."""
        self.names = _simple_in(source)
        """Which of real, user and sys the text has."""
        self.exit_status = 0
        self.command = WORKLOAD
        """What the shell was given last."""

    def read(self, line: Line) -> None:
        if found := _COMMAND.match(line.text):
            self._begin(line, found["command"] or WORKLOAD)
        elif found := _EXIT.match(line.text):
            self._exited(int(found["status"]))
        elif found := _SIMPLE.match(line.text):
            self._simple(
                line, found["name"].lower(), [_seconds(*one.groups()) for one in _EACH_TIME.finditer(found["times"])]
            )
        elif found := _IN_A_LINE.match(line.text):
            self.command = found["label"] or self.command
            for name in _ALL:
                self._simple(line, name, [_seconds(found[f"{name}_minutes"], found[f"{name}_seconds"])])
        elif found := _DEFAULT.match(line.text) or _ZSH.match(line.text):
            self._default(line, found)
        elif found := _FAULTS.match(line.text):
            self._faults(found)
        elif found := _PROMPT.match(line.text):
            self.command = found["command"]
        elif self.row and (found := _FIELD.match(line.text)):
            self._field(self.row, found["name"], found["value"])
        elif line.text.strip():
            self.above, self.beside = line.text.strip(), {}

    def _begin(self, line: Line, command: str = WORKLOAD, setting: str | None = None) -> Row:
        name = command.rstrip(" \\") or WORKLOAD
        self.row = self.results.table(line.number).row(setting or self.source.stem_without_round, name)
        return self.row

    def _beside(self, line: Line, name: str, times: list[float]) -> None:
        """A line of runs side by side; the last of three makes a row of each. Names stand above."""
        self.beside[name] = times
        if len(self.beside) < len(_ALL) or len({*map(len, self.beside.values())}) > 1:
            return
        names = [one for one in _GAP.split(self.above) if one]
        if len(names) != len(times) or len(set(names)) < len(names):
            self.results.problem(
                f"{counted(len(times), 'run')} side by side without a name each in the line above",
                line.number,
            )
        else:
            for place, setting in enumerate(names):
                self.seconds = {key: self.beside[key][place] for key in _ALL}
                self._finish_simple(self._begin(line, self.command, setting.strip(" :")))
        self.beside = {}

    def _field(self, row: Row, name: str, value: str) -> None:
        if name == _ELAPSED:
            row.add("elapsed_s", clock_s(value), absent=f"{value[:QUOTED_MAX]} is no time")
        elif name == "Percent of CPU this job got":
            row.add("cpu_percent", number(value.rstrip("%")), absent="too short to show it")
        elif name in _METRICS:
            metric, scale = _METRICS[name]
            amount = number(value)
            row.add(metric, None if amount is None else amount * scale, absent=f"{value[:QUOTED_MAX]} is no number")

    def _simple(self, line: Line, name: str, times: list[float]) -> None:
        if len(times) > 1:
            self._beside(line, name, times)
            return
        self.seconds[name] = times[0]
        if not self.seconds.keys() < (self.names or set(_ALL)):
            self._finish_simple(self._begin(line, self.command))

    def _finish_simple(self, row: Row) -> None:
        row.add("elapsed_s", self.seconds["real"])
        if len(self.seconds) == len(_ALL):
            real, user, system = (self.seconds[key] for key in _ALL)
            row.add("cpu_user_s", user)
            row.add("cpu_system_s", system)
            row.add("cpu_percent", 100 * (user + system) / real if real else None, absent="too short to show it")
        self.seconds = {}

    def _default(self, line: Line, found: re.Match[str]) -> None:
        known = found.groupdict()
        row = self._begin(line, known.get("command") or self.command)
        row.add("elapsed_s", clock_s(found["elapsed"].replace(",", ".")), absent="no time")
        row.add("cpu_user_s", number(found["user"].replace(",", ".")))
        row.add("cpu_system_s", number(found["system"].replace(",", ".")))
        row.add("cpu_percent", number(found["percent"]), absent="too short to show it")
        if resident := known.get("resident"):
            row.add("resident_bytes_max", float(resident) * KIB)
        self._exited(self.exit_status)
        self.exit_status = 0

    def _faults(self, found: re.Match[str]) -> None:
        if self.row:
            self.row.add("faults_major", float(found["major"]))
            self.row.add("faults_minor", float(found["minor"]))
            self.row.add("block_input_bytes", float(found["inputs"]) * BLOCK)
            self.row.add("block_output_bytes", float(found["outputs"]) * BLOCK)

    def _exited(self, status: int) -> None:
        """GNU time reports a failure before its default line, and in the last line of -v."""
        if status and self.row and self.row.rows:
            self.row.fault(f"the command ended with exit status {status}")
        else:
            self.exit_status = status


def _parse(source: Source, results: Results) -> None:
    reader = _Reader(source, results)
    for line in source.lines(results.problem):
        reader.read(line)


def _seconds(minutes: str | None, seconds: str) -> float:
    return 60 * float(minutes or 0) + float(seconds.replace(",", "."))


def _simple_in(source: Source) -> set[str]:
    return {found["name"].lower() for line in source.text_lines if (found := _SIMPLE.match(line))}


def _recognises(source: Source) -> bool:
    simple = _simple_in(source)
    is_alone = simple == {"real"} and any(map(_PROMPT.match, source.text_lines))
    return (
        simple == set(_ALL)
        or is_alone
        or any(source.has_line(pattern) for pattern in (_COMMAND, _DEFAULT, _ZSH, _IN_A_LINE))
    )


FORMAT = Format(
    name="time",
    help="GNU time -v or its default line, time of bash and zsh, time -p",
    recognises=_recognises,
    parse=_parse,
    words=("Command being timed", "Elapsed (wall clock)", "Maximum resident", "real", "user", "sys"),
    titled=True,
    times_commands=True,
)
