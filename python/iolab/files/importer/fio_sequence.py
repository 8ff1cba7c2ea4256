"""Which jobs of a text belong to one run of fio, and what the text calls it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from iolab.base.plain_text import counted
from iolab.base.strict_json import JsonObject
from iolab.files.importer.results import Results
from iolab.files.importer.shell_commands import OF_CHANGE
from iolab.files.importer.titles import OF_ANY_RUN, TITLE_MAX, without_markup

HEADING_MAX = 60
WHOLE = 1.1
"""The shares of a group's jobs in its rate make 1, but for rounding and jobs that end early."""

_OF_FIO = re.compile(
    r"\s++\S.*[:=|]|\.\.\.\s*+$|fio[-:_ ]|Starting \d|Jobs: \d|.*: Laying out|\s*+(?:READ|WRITE|TRIM|MIXED):"
    r"|\|\s|(?:[sc]?lat|bw|iops|sync|IO depths|submit|complete|latency|cpu|issued|errors|Run|Disk|fsync)\b.*[:=(]"
    rf"|[\[\]{{}}$#]$|\$\s|(?!#\s+(?i:{OF_CHANGE})$)#\s(?=[a-z./])"
    r"|IOPS=\d|BW=\d"
    r"|\s*+(?:--[a-z][\w-]*+(?:[= ]|$)|-[a-z]\w*+=)"
    r"|\s*+[a-z]\w*=\s*+[\d.]++[kMG]?,?\s*+$|zone resets$|"
    r".*\bfio\b.*--|note: |hostname=|Client|Server|WARNING|Send |Accept|All clients|\S*@\S*[:~]"
)
_OF_MAIL = re.compile(
    r"(?:From|To|Cc|Date|Subject|Author(?:Date)?|Commit(?:Date)?|Merge|Message-ID|Link|Fixes|[A-Z][\w-]{1,40}-by): "
)
"""Headers of mails and commits, and trailers."""
_SUMMED_UP = re.compile(
    r"(?P<label>[^\W\d][^:=]{0,60}+):\s++~?[\d.,]{1,12}+\s?(?:[kKM]\s?)?(?:IOPS|[KMG]i?B/s(?:ec)?)\W*+", re.IGNORECASE
)
"""What a poster writes above an output: `qemu-9p: 14.1K IOPS`."""
_ITEM = re.compile(r"[-\u2022] \S+(?: \S+){0,3}")
"""Of a list: `- zfs`. Four words are chosen."""
_DECORATION = "#=*-_~:[]() \t"


class Heading:
    """The line that stands above a run in the prose: one that ends in a colon, else the last short one."""

    def __init__(self) -> None:
        self._line: str | None = None
        self._section: str | None = None
        self._is_title = False

    def read(self, text: str) -> None:
        """Any line that is not a run's own."""
        plain, is_tagged = without_markup(text)
        short = plain.strip()
        if (
            not short
            or short.endswith(",")
            or len(short) > (TITLE_MAX if is_tagged or short.endswith(":") else HEADING_MAX)
            or _OF_FIO.match(text)
            or _OF_MAIL.match(short)
            or not re.search(r"\w", short)
        ):
            return
        if found := _SUMMED_UP.fullmatch(short):
            short = f"{found['label']}:"
        in_brackets = short[0] == "(" and short[-1] == ")"
        is_title = is_tagged or short.endswith(":") or short[0] in "#=*" or bool(_ITEM.fullmatch(short))
        if not is_title and not in_brackets and self._is_title:
            return
        line = " ".join(short.removeprefix("//").strip(_DECORATION).split())
        line += ")" * (line.count("(") - line.count(")"))
        if short.startswith("#") and not OF_ANY_RUN.fullmatch(line):
            self._section = line
        self._line = self._section if self._section and OF_ANY_RUN.fullmatch(line) else line
        self._is_title = is_title

    def name(self, text: str) -> None:
        """What is known to name the run."""
        self._line, self._is_title = text[:TITLE_MAX], True

    @property
    def is_given(self) -> bool:
        """Whether a line was read since the last time."""
        return self._line is not None

    def take(self) -> str | None:
        """What was read since the last time, if anything."""
        line, self._line, self._is_title = self._line, None, False
        return line


def snapshots(count: int) -> str:
    """What is left out if `--status-interval` printed a run several times: all but the last."""
    return counted(count, "snapshot of a run that went on is left out", "snapshots of runs that went on are left out")


@dataclass(frozen=True)
class Member:
    """A job in a text."""

    line: int
    raw: dict[str, Any]
    """As fio's JSON has it."""
    shares: dict[str, float]
    """The job's share of its group's rate, by direction, if the text reports it."""
    identity: tuple[object, ...] | None
    """The same in the snapshots of one run; None if nothing shows it."""

    @property
    def name(self) -> str:
        """With its host."""
        return f"{self.raw.get('hostname', '')}:{self.raw['jobname']}"


class FoundRun(NamedTuple):
    """A run in a text."""

    line: int
    content: JsonObject
    heading: str | None


@dataclass
class _Run:
    heading: str | None
    members: list[Member] = field(default_factory=list)
    disks: dict[str, None] = field(default_factory=dict)

    def takes(self, new: Member) -> bool:
        """Whether the job may have run together with those that are here, or after them."""
        if not self.members:
            return True
        if new.identity is None and new.raw["groupid"] < self.members[-1].raw["groupid"]:
            return False
        if new.identity is not None and any(one.identity == new.identity for one in self.members):
            return False
        group = [one for one in self.members if one.raw["groupid"] == new.raw["groupid"]]
        alike = [one for one in group if one.name == new.name]
        if alike and new.identity is None and not new.shares:
            return False
        return all(sum(one.shares.get(way, 0.0) for one in group) + share <= WHOLE for way, share in new.shares.items())


class Sequence:
    """The runs of a text, job by job."""

    def __init__(self) -> None:
        self._runs: list[_Run] = []
        self._open = False
        self._heading: str | None = None
        self._snapshots = 0

    def close(self, heading: str | None) -> None:
        """What follows is another run. `heading`: what stood above it."""
        self._open = False
        self._heading = heading or self._heading

    @property
    def is_empty(self) -> bool:
        """Whether no job was added."""
        return not self._runs

    def disk(self, name: str) -> None:
        """A disk that the last run kept busy."""
        if self._runs:
            self._runs[-1].disks[name] = None

    def add(self, member: Member, heading: str | None) -> None:
        """The next job."""
        self._heading = heading or self._heading
        if not self._open or not self._runs or heading or not self._runs[-1].takes(member):
            before = self._runs[-1].members if self._runs and self._runs[-1].heading == self._heading else []
            if member.identity is not None and any(one.identity == member.identity for one in before):
                self._runs.pop()
                self._snapshots += 1
            self._runs.append(_Run(self._heading))
            self._open = True
        self._runs[-1].members.append(member)

    def finished(self, results: Results) -> list[FoundRun]:
        """The runs, of the snapshots of one the last."""
        if self._snapshots:
            results.problem(snapshots(self._snapshots))
        return [
            FoundRun(
                run.members[0].line,
                {"jobs": [one.raw for one in run.members], "disk_util": [{"name": name} for name in run.disks]},
                run.heading,
            )
            for run in self._runs
        ]
