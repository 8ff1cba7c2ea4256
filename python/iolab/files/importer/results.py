"""What importers fill: trials of other people's numbers, in the store's terms.

A parser opens a table for each table it meets and adds rows to it. A row is one (setting, workload, phase); when the
same one comes again it is the next round. In a table of `variants` it is not a round but another setting that happens
to have the same name, and takes the table's caption into its name.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

from iolab.base.errors import InputError
from iolab.base.toml import TomlTable
from iolab.domain.metric import ALL, Key, describe, parse_key
from iolab.domain.validity import NOT_JUDGED
from iolab.files.importer.shell_commands import calls_apart, commands_apart, path_apart
from iolab.files.importer.text import QUOTED_MAX
from iolab.files.importer.titles import Titles, differ_by_tests
from iolab.files.store.rows import TableRow

MAIN = "main"
NOT_STATED = "not in the source"
OF_COMMANDS = "results below different commands are of different workloads, and no rounds of one"
_OF_CLOCK = re.compile(r"command\[|time ")
PROBLEMS_MAX = 50
FAULTS_NAMED_MAX = 3
"""The faults that one row names: a run of many jobs fails in each for the same reason."""
NAMED_MAX = 4
SETTINGS_MAX = 2000
WORKLOADS_MAX = 2000
FIGURES_MAX = 2_000_000
"""Metrics, buckets of histograms and intervals of all files together; each takes up to 500 bytes of memory."""

ResultKey = tuple[str, str, str, str | None]
"""Setting, workload, phase, first metric."""
Measured = tuple[str, str, str]
"""Workload, key and job of a metric."""


class FigureBudget:
    """How many more figures there is memory for."""

    def __init__(self) -> None:
        self.left = FIGURES_MAX

    def take(self) -> None:
        """InputError when there is none left."""
        self.left -= 1
        if self.left < 0:
            raise InputError(f"more than {FIGURES_MAX:,} figures", remedy="import less at a time, or split the file")


@dataclass
class Row:
    """The figures of one setting on one phase of a workload, once."""

    setting: str
    workload: str
    phase: str
    room: FigureBudget = field(default_factory=FigureBudget)
    rows: list[TableRow] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    """What went wrong according to the source."""
    started_unix_ns: int = 0
    """When it was measured; 0 if the source does not report it."""
    round: int = 0
    """Its round if the source names rounds, from 0; it is a later one if that has the same figures already."""
    amount: str = ""
    """What was done, if the source states it: the same in all rounds of a measurement."""
    reported: set[tuple[str, str]] = field(default_factory=set)
    """Key and job of every metric in it."""

    @property
    def place(self) -> ResultKey:
        """What makes a row the same measurement as another: names, and the metric that it begins with."""
        return self.setting, self.workload, self.phase, self.rows[0].key if self.rows else None

    def key(self, metric: str, op: str = ALL) -> str:
        """What the metric is called in this row's phase."""
        return str(Key(None if self.phase == MAIN else self.phase, op, metric))

    def add(self, metric: str, value: float | None, *, op: str = ALL, job: str = ALL, absent: str = NOT_STATED) -> None:
        """One metric, in the unit of its name; if it is repeated in the same row, the first counts. A value that is no
        finite number is absent, with the reason."""
        if value is not None and not math.isfinite(value):
            value, absent = None, "not a finite number in the source"
        key = self.key(metric, op)
        if (key, job) in self.reported:
            return
        self.reported.add((key, job))
        reason = absent if value is None else None
        self._append(TableRow(self.phase, job, op, "metric", metric, key, None, value, reason))

    def leave_out(self, metric: str) -> None:
        """Forgets what was added of it."""
        self.rows = [row for row in self.rows if row.metric != metric]
        self.reported = {(key, job) for key, job in self.reported if parse_key(key).metric != metric}

    def histogram(self, buckets: Iterable[tuple[float, float]], *, op: str, job: str = ALL) -> None:
        """Latency counts by bucket: its upper bound in ns, and how many."""
        for latency_ns, count in buckets:
            self._append(
                TableRow(self.phase, job, op, "histogram", "latency_ns", None, float(latency_ns), float(count), None)
            )

    def interval(self, metric: str, start_ns: float, value: float, *, op: str = ALL, job: str = ALL) -> None:
        """One number of one interval of a time series; left out if it is not finite."""
        if math.isfinite(start_ns) and math.isfinite(value):
            self._append(TableRow(self.phase, job, op, "interval", metric, None, start_ns, value, None))

    def fault(self, text: str, *, job: str | None = None, errno: int | None = None) -> None:
        """Something went wrong according to the source: the row's figures are not shown as a measurement."""
        self.faults.append(text)
        name = f"errno_{errno}" if errno else None
        self._append(TableRow(self.phase, job, None, "fault", name, None, None, 1.0, text))

    def bound_percentiles(self) -> bool:
        """Lowers percentiles above the maximum to it, as tools print that report the upper bounds of buckets. Whether
        there were any."""
        metrics = [(place, row) for place, row in enumerate(self.rows) if row.what == "metric" and row.metric]
        maxima = {(row.job, row.op): row.value for _, row in metrics if row.metric == "latency_ns_max"}
        found = False
        for place, row in metrics if maxima else ():
            highest = maxima.get((row.job, row.op))
            is_percentile = str(row.metric).startswith("latency_ns_p")
            if is_percentile and highest is not None and row.value is not None and row.value > highest:
                self.rows[place] = row._replace(value=highest)
                found = True
        return found

    def note(self, text: str) -> None:
        """Adds a remark that stands with the trial's metrics."""
        self._append(TableRow(None, None, None, "note", None, None, None, None, text))

    def _append(self, row: TableRow) -> None:
        self.room.take()
        self.rows.append(row)


@dataclass
class Table:
    """Rows that a tool printed together, under one heading."""

    line: int
    caption: str | None
    repeats: Literal["rounds", "variants"]
    room: FigureBudget
    titled: bool = False
    """Whether a title in the text above it may name its setting."""
    times_command: bool = False
    """Whether it states how long a command took, which may have printed figures of its own."""
    heading: str | None = None
    """The line above it that its settings are called by."""
    is_alike: bool = False
    """Whether nothing in it tells it from another of the same text: commands may."""
    columns: Sequence[str] = ()
    """The names of its columns, if they say what was measured."""
    numbers_rounds: bool = False
    """Whether it says which rows are of one round, wherever they stand."""
    rows: list[Row] = field(default_factory=list)

    def row(self, setting: str, workload: str, phase: str = MAIN) -> Row:
        """A new row for a setting, a workload and a phase, spaces in their names made single."""
        row = Row(" ".join(setting.split()), " ".join(workload.split()), phase, self.room)
        self.room.take()
        self.rows.append(row)
        return row

    @property
    def content(self) -> tuple[Any, ...]:
        """What the table holds, to find whether another holds the same."""
        return tuple((row.place, tuple(row.rows)) for row in self.rows)


@dataclass
class ImportedTrial:
    """A round of a workload under a setting, as a file of another program has it."""

    trial: int
    round: int
    workload: str
    setting: str
    source: int = 0
    """The place of its file among all that were read."""
    line: int = 0
    """Where its first row stands among those of the file; all of a table that numbers its rounds stand in one place."""
    started_unix_ns: int = 0
    rows: list[TableRow] = field(default_factory=list)
    faulty: bool = False


@dataclass(frozen=True)
class Unnamed:
    """What is known of settings that a text does not name."""

    setting: str
    """What they are called."""
    titles: Callable[[], Titles]
    is_labelled: bool = False
    """Whether whoever gave the file named its setting, whatever titles stand in it."""
    is_alone: bool = False
    """Whether no other file is compared with it."""


class Results:
    """Collects the tables of one or more files; `finish` makes trials of them."""

    def __init__(self) -> None:
        self.trials: list[ImportedTrial] = []
        self.problems: list[str] = []
        self.workloads: dict[str, TomlTable] = {}
        """What is known of a workload: `kind` and options as in an experiment."""
        self.settings: dict[str, TomlTable] = {}
        """What the source states about a setting, as text."""
        self.machine: TomlTable = {}
        self.source = ""
        self.lines_read: set[int] = set()
        """Lines of the source that a format made something of, of formats that mark them."""
        self.shown: set[str] = set()
        """Metrics that a table shows unasked, though neither more nor less of them is better."""
        self.titled = False
        """Whether the format that is being read prints no line that looks like a title."""
        self.times_commands = False
        """Whether it states how long commands took."""
        self._stem = ""
        self._unnamed: Unnamed | None = None
        self._source_number = -1
        self._tables: list[Table] = []
        self._by_place: dict[tuple[str, str, int], ImportedTrial] = {}
        self._rounds: dict[tuple[str, str, str, str], int] = {}
        """How often each metric of a setting and workload was measured: (setting, workload, key, job)."""
        self._measured: list[tuple[Row, str, tuple[int, int]]] = []
        """The rows of all sources that are closed, each with its source's name and number, and its place there."""
        self._variants: dict[ResultKey, tuple[str, int]] = {}
        self._contents: dict[tuple[Any, ...], int] = {}
        self._left_out = 0
        self._room = FigureBudget()
        self._settings: set[str] = set()
        self._workloads: set[str] = set()

    def begin_source(self, name: str, stem: str, unnamed: Unnamed | None = None) -> None:
        """What follows comes from the file `name`; `stem` names the setting if the file does not. `unnamed`: what a
        setting is called of which the text only has a title, and the text's titles."""
        self._close()
        self.source, self._stem, self._unnamed = name, stem, unnamed
        self._source_number += 1
        self.lines_read = set()
        self._contents = {}

    def table(
        self,
        line: int,
        *,
        caption: str | None = None,
        heading: str | None = None,
        repeats: Literal["rounds", "variants"] = "rounds",
    ) -> Table:
        """A new table that starts at `line`. `heading`: the line above it that its settings are called by."""
        titled = self.titled and repeats == "rounds"
        table = Table(line, caption, repeats, self._room, titled, self.times_commands, heading)
        self._tables.append(table)
        return table

    def add_setting_facts(self, setting: str, facts: dict[str, str]) -> None:
        """What a source states about a setting; a contradiction to another source is a problem."""
        known = self.settings.setdefault(setting, {})
        for name, value in facts.items():
            before = known.setdefault(name, value)
            if before != value:
                self.problem(f"{name} is {value}, and {before} elsewhere in {setting}: not the same measurement")

    def problem(self, text: str, line: int | None = None) -> None:
        """Something that a reader of the numbers has to know, once."""
        where = self.source if line is None else f"{self.source}:{line}"
        reported = f"{where}: {text}"
        if reported in self.problems:
            return
        if len(self.problems) < PROBLEMS_MAX:
            self.problems.append(reported)
        else:
            self._left_out += 1

    def values(self) -> dict[str, list[float]]:
        """The figures read from this source by their units, sorted."""
        found: dict[str, list[float]] = {}
        for row in (row for table in self._tables for one in table.rows for row in one.rows):
            if row.what == "metric" and row.value and row.key:
                found.setdefault(describe(row.key).unit, []).append(abs(row.value))
        return {unit: sorted(values) for unit, values in found.items()}

    def names(self) -> set[str]:
        """What its settings and workloads are called, before titles of the text name any."""
        return {name for table in self._tables for row in table.rows for name in (row.setting, row.workload)}

    @property
    def figures(self) -> int:
        """How many rows and figures were read so far."""
        return FIGURES_MAX - self._room.left

    def finish(self) -> list[ImportedTrial]:
        """The trials, in the order in which their first rows came."""
        self._close()
        self._part_by_amount()
        for row, source, place in self._measured:
            self.source = source
            self._take(row, *place)
        self._measured = []
        if self._left_out:
            self.problems.append(f"and {self._left_out} more of this kind")
            self._left_out = 0
        return self.trials

    def _close(self) -> None:
        tables = sorted((table for table in self._tables if table.rows), key=lambda table: table.line)
        _name_timed(tables)
        if self._unnamed is not None:
            if not self._unnamed.is_labelled:
                _name_by_hosts(tables, self._unnamed)
            paths = self._without_paths(tables, self._unnamed)
            self._name_by_commands(tables, self._unnamed, paths)
            if not self._unnamed.is_labelled:
                self._name_by_changes(tables, self._unnamed)
                self._name_by_titles(tables, self._unnamed, paths)
            _name_by_paths([row for table in tables for row in table.rows if id(row) in paths], self._unnamed, paths)
            self._part_by_titles(tables, self._unnamed)
            self._name_calls(tables, self._unnamed)
            self._state_prose(tables, self._unnamed)
        first = 0
        for table in tables:
            if not self._is_repetition(table):
                if table.repeats == "variants":
                    self._name_variants(table)
                self._measured += [
                    (row, self.source, (self._source_number, first if table.numbers_rounds else first + place))
                    for place, row in enumerate(table.rows)
                ]
                first += len(table.rows)
        self._tables = []

    def _part_by_amount(self) -> None:
        """What was done in other amounts under one setting is not the same measurement, and no round of it: each amount
        is a workload of its own. Two files of one amount each are compared, and it is stated."""
        by_workload: dict[str, dict[tuple[str, str], dict[str, int]]] = {}
        for row, _, (source, _) in self._measured:
            if row.amount:
                of_place = by_workload.setdefault(row.workload, {}).setdefault((row.setting, row.phase), {})
                of_place.setdefault(row.amount, source)
        parted: set[str] = set()
        for workload, places in by_workload.items():
            first = {amount: source for amounts in places.values() for amount, source in amounts.items()}
            of = f"{workload} of {_listed(list(first))}: not the same measurement"
            if any(len(amounts) > 1 for amounts in places.values()):
                parted.add(workload)
                self.problem(f"{of}, so each is a workload; a line above each, such as bs=4k, makes settings of them")
            elif len({phase for _, phase in places}) < len(places) and 1 < len(first) == len(set(first.values())):
                self.problem(of)
        for row, _, _ in self._measured:
            if row.workload in parted and row.amount:
                row.workload = f"{row.workload}[{row.amount}]"

    def _name_by_commands(self, tables: list[Table], unnamed: Unnamed, paths: Mapping[int, str]) -> None:
        """Tables of the same measurement below different commands are of different workloads; of settings, if the
        commands differ by paths alone, or by what was set before the same command."""
        tables = [table for table in tables if table.titled or table.is_alike]
        count = Counter(place for table in tables for place in {row.place for row in table.rows})
        again = [table for table in tables if any(count[row.place] > 1 for row in table.rows)]
        if len(again) < 2:
            return
        lines, titles = [table.line for table in tables], unnamed.titles()
        are_titled = _differ(titles.marked(lines), [tuple(one.line for one in again)])
        are_unnamed = all(row.setting == unnamed.setting for table in self._tables for row in table.rows)
        are_alone = unnamed.is_alone and are_unnamed and not are_titled
        names = commands_apart(titles.commands(lines), [one.line for one in again], are_alone=are_alone)
        if names is None or (names.are_settings and are_titled):
            return
        for table in again:
            for row in table.rows:
                is_unnamed = row.setting == (table.heading if table.is_alike and table.heading else unnamed.setting)
                if names.are_settings and is_unnamed and not unnamed.is_labelled:
                    row.setting = paths.get(id(row), names.of[table.line])
                elif not names.are_settings and names.of[table.line]:
                    row.workload = f"{row.workload}[{names.of[table.line]}]"
        if not names.are_settings:
            self.problem(OF_COMMANDS)

    def _without_paths(self, tables: list[Table], unnamed: Unnamed) -> dict[int, str]:
        """Workloads that are commands which differ by one path alone are one workload. Returns the path of each row, by
        the row's id, which is the setting's name if nothing above names one."""
        rows = [row for table in tables for row in table.rows if row.setting == unnamed.setting]
        apart = {} if unnamed.is_labelled else path_apart(list(dict.fromkeys(row.workload for row in rows)))
        found = {}
        for row in rows:
            if row.workload in apart:
                row.workload, found[id(row)] = apart[row.workload]
        return found

    def _name_by_titles(self, tables: list[Table], unnamed: Unnamed, paths: Mapping[int, str]) -> None:
        """Tables of the same measurement under different titles are of different settings; of different workloads, if
        the titles differ by what was done."""
        tables = [table for table in tables if table.repeats == "rounds"]
        lines_of: dict[Measured, dict[int, None]] = {}
        for table in tables:
            for row in table.rows:
                for reported in row.reported if row.setting == unnamed.setting else ():
                    lines_of.setdefault((row.workload, *reported), {})[table.line] = None
        places = sorted({tuple(lines) for lines in lines_of.values() if len(lines) > 1})
        if not places:
            return
        titles = unnamed.titles()
        titled = [table for table in tables if table.titled]
        above = titles.marked([table.line for table in titled]) if titled else {}
        if not _differ(above, places):
            titled = tables
            above = titles.bare([table.line for table in tables], min(map(len, places)))
            if _differ(above, places) and any(above[line] is None for of_place in places for line in of_place):
                first = next(title for title in above.values() if title)
                if not paths:
                    self.problem(
                        f"'{first}' may name a setting, and not all results have such a line above: all are rounds of "
                        "one; a line that ends in a colon above each names its setting"
                    )
                return
        if _differ(above, places):
            are_tests = differ_by_tests([title for title in above.values() if title])
            for row, title in ((row, above[table.line]) for table in titled for row in table.rows):
                if not title or row.setting != unnamed.setting:
                    continue
                if are_tests:
                    row.workload = f"{row.workload}[{title}]"
                else:
                    row.setting = title

    def _name_by_changes(self, tables: list[Table], unnamed: Unnamed) -> None:
        """Tables under titles of what was changed are of these settings. What comes again under one is of other
        workloads, if other titles tell them apart."""
        tables = [table for table in tables if table.titled or table.heading]
        titles = unnamed.titles().changes([table.line for table in tables]) if tables else {}
        rows = [
            (row, called, *titles[table.line])
            for table in tables
            for row in (table.rows if titles else ())
            if (called := _called(row, table, unnamed))
        ]
        done: dict[tuple[str | None, ...], list[str | None]] = {}
        for row, called, changed, other in rows:
            done.setdefault((changed, row.setting.removeprefix(called), *row.place[1:]), []).append(other)
        apart = {place[2] for place, others in done.items() if len(set(others)) > 1}
        for row, called, changed, other in rows:
            if other is not None and row.workload in apart:
                row.workload = f"{row.workload}[{other}]"
            row.setting = changed + row.setting.removeprefix(called)

    def _part_by_titles(self, tables: list[Table], unnamed: Unnamed) -> None:
        """Tables that name their settings, each with a caption or below a title of its own, are of different
        workloads."""
        tables = [table for table in tables if table.titled]
        of_place: dict[ResultKey, set[int]] = {}
        for table in tables:
            for row in table.rows:
                if row.setting != unnamed.setting or table.caption:
                    of_place.setdefault(row.place, set()).add(table.line)
        again = {place: lines for place, lines in of_place.items() if len(lines) > 1}
        if not again:
            return
        lines = [table.line for table in tables]
        titles = unnamed.titles()
        captions = {table.line: table.caption for table in tables}
        ways = [
            captions,
            titles.marked(lines),
            titles.bare(lines, min(map(len, again.values()))),
            _columns_apart(tables),
        ]
        names = {place: next((way for way in ways if _are_apart(way, lines)), None) for place, lines in again.items()}
        for table in tables:
            for row in table.rows:
                if above := names.get(row.place):
                    row.workload = f"{row.workload}[{above[table.line]}]"

    def _name_calls(self, tables: Sequence[Table], unnamed: Unnamed) -> None:
        """Calls of a program that do the same work are settings, if nothing else in the text names any: called by the
        titles above them, or by their own words."""
        rows = [(row, table.line) for table in tables for row in table.rows]
        if not unnamed.is_alone or any(row.setting != unnamed.setting for row, _ in rows):
            return
        lines = {row.workload: line for row, line in rows if not _OF_CLOCK.match(row.workload)}
        if (apart := calls_apart(list(lines), are_commands=self.times_commands)) is None:
            return
        shared, words = apart
        titles = unnamed.titles().marked(list(lines.values()))
        are_titled = None not in titles.values() and len(set(titles.values())) == len(lines)
        settings = {command: str(titles[line]) if are_titled else words[command] for command, line in lines.items()}
        # How long each took by the shell's clock stands beside.
        timed = {f"command[{own}]": settings[command] for command, own in words.items()}
        timed |= {f"time {command}": setting for command, setting in settings.items()}
        if any(row.workload not in settings.keys() | timed.keys() for row, _ in rows):
            return
        self.problems = [one for one in self.problems if one != f"{self.source}: {OF_COMMANDS}"]
        if any("count=" in own for own in words.values()):
            self.problem("what dd copied differs in its amount: times are left out")
            for row, _ in rows:
                row.leave_out("elapsed_s")
        for row, _ in rows:
            if setting := timed.get(row.workload):
                row.setting, row.workload = setting, f"time {shared}"
            else:
                row.setting, row.workload = settings[row.workload] or row.workload, shared

    def _state_prose(self, tables: list[Table], unnamed: Unnamed) -> None:
        """Says where the text may go on to another setting in a sentence, which names none."""
        lines_of: dict[ResultKey, dict[int, None]] = {}
        for table in tables:
            for row in table.rows:
                lines_of.setdefault(row.place, {})[table.line] = None
        pairs = {pair: place[0] for place, lines in lines_of.items() for pair in pairwise(lines)}
        for (before, line), setting in sorted(pairs.items()):
            if prose := unnamed.titles().prose_between(before, line):
                self.problem(
                    f"'{prose[:QUOTED_MAX]}' stands above these results, which are taken as a round of '{setting}'; if "
                    "they are of another setting, name it in a line above them that ends in a colon",
                    line,
                )
                return

    def _is_repetition(self, table: Table) -> bool:
        """Quoted or posted again: measured twice, not all of several rows would come out the same."""
        if len(table.rows) < 2:
            return False
        first = self._contents.setdefault(table.content, table.line)
        if first == table.line:
            return False
        self.problem(f"the table is the one at line {first} again, left out", table.line)
        return True

    def _name_variants(self, table: Table) -> None:
        here = (self._stem, table.line)
        if any(self._variants.get(row.place, here) != here for row in table.rows):
            suffix = table.caption or f"{self._stem}, line {table.line}"
            for row in table.rows:
                row.setting = f"{row.setting} ({suffix})"
        for row in table.rows:
            self._variants[row.place] = here

    def _take(self, row: Row, source: int, line: int) -> None:
        if not row.rows:
            return
        if row.bound_percentiles():
            self.problem("percentiles above the maximum are bounds of buckets; the maximum is taken in their place")
        self._known(self._settings, row.setting, SETTINGS_MAX, "settings")
        self._known(self._workloads, row.workload, WORKLOADS_MAX, "workloads")
        metrics = [(row.setting, row.workload, *reported) for reported in row.reported]
        number = max((self._rounds.get(metric, 0) for metric in metrics), default=0)
        number = max(number, row.round)
        self._rounds.update(dict.fromkeys(metrics, number + 1))
        place = (row.setting, row.workload, number)
        trial = self._by_place.get(place)
        if trial is None:
            trial = ImportedTrial(len(self.trials), number, row.workload, row.setting, source, line)
            trial.started_unix_ns = row.started_unix_ns
            self._by_place[place] = trial
            self.trials.append(trial)
        trial.rows += row.rows
        trial.faulty |= bool(row.faults)
        for text in row.faults[:FAULTS_NAMED_MAX]:
            self.problem(f"{row.workload}: {text}; {NOT_JUDGED}")

    def _known(self, names: set[str], name: str, most: int, what: str) -> None:
        """Each is compared with the others: InputError when there are too many."""
        names.add(name)
        if len(names) > most:
            raise InputError(
                f"more than {most:,} {what}, such as '{name[:QUOTED_MAX]}'",
                where=self.source,
                remedy=f"import fewer at a time; of a CSV, see that it is a column of {what} that is called so",
            )


def _called(row: Row, table: Table, unnamed: Unnamed) -> str | None:
    """What the row's setting is called by, of what stands in no title of its own: the file, or the line above."""
    if row.setting == unnamed.setting:
        return unnamed.setting
    return table.heading if table.heading and row.setting.startswith(table.heading) else None


def _name_by_hosts(tables: Sequence[Table], unnamed: Unnamed) -> None:
    """Tables below prompts of several hosts are of settings that are called so, if that alone tells them apart."""
    rows = [(row, table.line) for table in tables for row in table.rows if row.setting == unnamed.setting]
    of_place: dict[ResultKey, list[int]] = {}
    for row, line in rows:
        of_place.setdefault(row.place, []).append(line)
    if not any(len(lines) > 1 for lines in of_place.values()):
        return
    hosts = unnamed.titles().hosts([table.line for table in tables])
    if all(
        None not in (names := [hosts[line] for line in lines]) and len(set(names)) == len(names)
        for lines in of_place.values()
    ):
        for row, line in rows:
            row.setting = hosts[line] or row.setting


def _name_by_paths(rows: Sequence[Row], unnamed: Unnamed, paths: Mapping[int, str]) -> None:
    """What was measured on several paths, by the rows' ids, is of settings that are called so; of workloads, if
    something else names settings, and one path is in several."""
    settings: dict[str, set[str]] = {}
    for row in rows:
        if row.setting != paths[id(row)]:
            settings.setdefault(paths[id(row)], set()).add(row.setting)
    are_workloads = any(len(names) > 1 for names in settings.values())
    for row in rows:
        if are_workloads:
            row.workload = f"{row.workload}[{paths[id(row)]}]"
        elif row.setting == unnamed.setting:
            row.setting = paths[id(row)]


def _listed(names: list[str]) -> str:
    shown = names[:NAMED_MAX] if len(names) > NAMED_MAX + 1 else names
    return ", ".join(shown) + (f" and {len(names) - len(shown)} more" if len(shown) < len(names) else "")


def _are_apart(titles: dict[int, str | None], lines: Collection[int]) -> bool:
    """Whether each of the tables at those lines has a title of its own."""
    of_lines = {titles[line] for line in lines}
    return None not in of_lines and len(of_lines) == len(lines)


def _columns_apart(tables: Sequence[Table]) -> dict[int, str | None]:
    """By line of each table, the names of its columns that not all have."""
    shared = set.intersection(*(set(table.columns) for table in tables))
    return {table.line: ", ".join(name for name in table.columns if name not in shared) or None for table in tables}


def _name_timed(tables: Sequence[Table]) -> None:
    """How long a command took is no round of what it printed itself, as with `time dd`."""
    others = {row.workload for table in tables if not table.times_command for row in table.rows}
    for row in (row for table in tables if table.times_command for row in table.rows):
        if row.workload in others:
            row.workload = f"time {row.workload}"


def _differ(titles: dict[int, str | None], places: Sequence[tuple[int, ...]]) -> bool:
    """Whether tables of the same measurement, by their lines, have different titles."""
    return any(len({titles[line] for line in of_place if line in titles}) > 1 for of_place in places)
