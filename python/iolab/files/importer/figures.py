"""Reports whose figures stand in lines of their own: a format is a list of rules, which line means what.

A rule's pattern has a named group for each figure, and one called NAME_unit if the line has the unit. It may have
`phase`, the part of the benchmark that the line is of, `setting`, and `pairs`, figures each with its unit behind it, of
which those that are no group's are left out with a word. `Begin` lines start a new row; where a phase
would have the same figure twice, the next row begins too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Any, NamedTuple

from iolab.base.plain_text import counted
from iolab.files.importer.durations import clock_s
from iolab.files.importer.format import Format
from iolab.files.importer.quantity_cell import quantity
from iolab.files.importer.results import MAIN, Results, Row, Table
from iolab.files.importer.source import Source
from iolab.files.importer.written_number import number

KB, MB, GB = 1e3, 1e6, 1e9
KIB, MIB, GIB = 2.0**10, 2.0**20, 2.0**30
MS, US = 1e6, 1e3
EACH_BYTES_MAX = 2.0**60
UNITS = {
    unit: scale
    for units in (
        {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12},
        {"ns": 1.0, "us": US, "µs": US, "ms": MS, "s": 1e9, "min": 60e9},
        {"B": 1.0, "KiB": KIB, "MiB": MIB, "GiB": GIB, "TiB": 2.0**40, "kB": KB, "MB": MB, "GB": GB},
    )
    for unit, scale in units.items()
}
"""Of numbers whose unit stands beside them: times in ns."""
NUMBER = r"(?:(?>(?:[.,]?\d){1,40})(?>(?:[eE][-+]?\d{1,3}+)?))"
"""As C's `%g` prints them too, `1.16e+03`."""
_BEGINS = r"\s*+(?:[-*\u2022] )?(?:"
"""Of a line, also as an item of a list."""
PHASE_MAX = 80
_PAIR = re.compile(rf"(?<!\S)({NUMBER}) (\S++)")


TOO_SHORT = "below the decimals that are printed"


def amount(name: str) -> str:
    """The pattern of a figure, as the group of that name."""
    return rf"(?P<{name}>{NUMBER})"


def positive(name: str) -> str:
    """The same, without a value if it is zero (`TOO_SHORT`)."""
    return rf"(?:0++\.0++(?![\d.])|(?P<{name}>{NUMBER}))"


class Figure(NamedTuple):
    """What a number in a line is: metric, what it is multiplied by, operation, and phase if not the line's."""

    metric: str
    scale: float = 1.0
    op: str = "all"
    phase: str | None = None


of = Figure


def latencies(scale: float, *names: str, phase: str | None = None) -> dict[str, Figure]:
    """The figures of groups that are called as latencies are, such as `mean` and `p99`; their unit as a scale to ns."""
    return {name: Figure(f"latency_ns_{name}", scale, phase=phase) for name in names}


@dataclass(frozen=True)
class Rule:
    """A kind of line, and what its groups are."""

    text: str
    figures: Mapping[str, Figure] = field(default_factory=dict)
    begins: bool = False
    """The line belongs to a new row, whatever came before."""
    opens: bool = False
    """Its phase holds for the lines after it that name none."""
    ends: bool = False
    """What follows is not read, up to the next line that begins a row."""
    closes: bool = False
    """The workload that it names is that of all rows since the last such line."""
    names: bool = False
    """The workload that it names is that of the row begun, and of the lines after it."""
    may_name: bool = False
    """The workload that it names is that of the lines after it up to one that says more; perhaps it is no heading."""
    quotient: tuple[str, str, str] | None = None
    """A metric that is one group's number by another's."""
    decimal_comma: bool = False
    """Commas are decimal signs, as the tool prints them in other languages; it parts no thousands."""
    amount: str | None = None
    """The figure that states how much was done, in bytes: the same in all rounds."""
    each: tuple[str, str] | None = None
    """Bytes and operations, as printed with three digits: the size of one, a power of two, is that of all rounds."""
    absent: str = "not in the source"
    """Why a figure is missing that the line has a place for."""
    after: str | None = None
    """The phase that the last line with figures has to be of."""
    counts: bool = False
    """It stands above the figures of a whole measurement, as dd's records do. Figures right above it, and not right
    below another, were of one in progress."""
    so_far: bool = False
    """Its figures are averages of what was done so far. They count where the report below is cut off before its own."""
    of_interval: bool = False
    """Its figures are of an interval. Their means count where nothing else of the report is in the text."""
    left_out: str | None = None
    """What such lines state that is not read; it is said once."""

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Compiled when it is asked for: commands that read no such report would spend a tenth of their start on it."""
        return re.compile(self.text, re.ASCII)


_OF_RULES = (
    *("begins", "opens", "ends", "closes", "names", "may_name", "quotient"),
    *("decimal_comma", "amount", "each", "absent", "after", "counts", "so_far", "of_interval", "left_out"),
)


def rule(pattern: str, **more: Any) -> Rule:
    """A rule; figures are given as `group=of(...)`."""
    known = {name: more.pop(name) for name in _OF_RULES if name in more}
    return Rule(_BEGINS + pattern + ")", more, **known)


class _Reader:
    def __init__(
        self, source: Source, results: Results, workload: str, rules: Sequence[Rule], whole: Mapping[str, str]
    ) -> None:
        self.source = source
        self.results = results
        self.workload = workload
        self.rules = rules
        self.whole = whole
        self.begun: list[tuple[Table, tuple[Rule, re.Match[str]] | None]] = []
        """The tables whose first line is here, each with the last averages above it."""
        self.so_far: tuple[Rule, re.Match[str]] | None = None
        self.intervals: list[tuple[Table, str, Rule, re.Match[str]]] = []
        """Lines of progress, each with its table and workload."""
        self.left_out: dict[str, int] = {}
        """What lines state that are not read, and the first of each."""
        self.units: dict[str, int] = {}
        """Those of figures that are left out, and the first line of each."""
        self.waiting = 0
        """The line of a heading below which no figures were read."""
        self.table: Table | None = None
        self.rows: dict[tuple[str, str], Row] = {}
        self.phase = MAIN
        self.section = ""
        self.machine = ""
        """Of the last line that names one and has no figures."""
        self.ended = False
        self.line = 0
        self.last_phases: set[str] = set()
        """Those of the last line with figures."""
        self.line_of: dict[tuple[str, str], int] = {}
        """The last line that a row has figures of."""
        self.counted_at = -1
        """The last line that counts."""
        self.above: dict[str, int] = {}
        """The headings above figures that have no other figures between them, by their lines."""
        self.below: list[Table] = []
        """The figures below them, each as printed at the end of a measurement."""
        self.in_progress: list[tuple[int, Table]] = []
        """Lines of figures, each right below the one before, and not right below one that counts."""
        machines = {found["machine"] for line in source.text_lines for found in self._naming(line)}
        self.has_machines = len(machines) > 1

    def _naming(self, line: str) -> Iterator[re.Match[str]]:
        for one in self.rules:
            if "machine" in one.pattern.groupindex and (found := one.pattern.match(line)):
                yield found

    def read(self) -> None:
        for line in self.source.lines(self.results.problem):
            for one in self.rules:
                is_here = one.after is None or one.after in self.last_phases
                if is_here and (found := one.pattern.match(line.text)):
                    self.results.lines_read.add(line.number)
                    self._take(one, found, line.number)
                    break
        self._average_intervals()
        self._share_out()
        for what, line_number in self.left_out.items():
            self.results.problem(f"{what}: left out", line_number)
        if self.units:
            self.results.problem(f"figures in {', '.join(self.units)}: left out", min(self.units.values()))
        if self.waiting:
            what = f"the figures of {self.workload} that belong below this line are not in the text"
            self.results.problem(what, self.waiting)
        lacking: dict[str, list[int]] = {}
        for table, so_far in self.begun:
            if lack := self._complete(table, so_far):
                lacking.setdefault(lack, []).append(table.line)
        for lack, lines in lacking.items():
            which = "the report is" if len(lines) == 1 else f"{len(lines)} reports, of which this is the first, are"
            self.results.problem(f"{which} cut off, or shortened: without {lack}", lines[0])

    def _average_intervals(self) -> None:
        """Adds the means over the progress of each report that was stopped before its end."""
        for _, of_table in groupby(self.intervals, key=lambda one: id(one[0])):
            lines = list(of_table)
            table, workload, rule, _ = lines[0]
            if table.rows:
                continue
            row = table.row(self.source.stem_without_round, workload)
            for group, figure in rule.figures.items():
                values = [value for *_, found in lines if (value := _value(found[group], figure.scale)) is not None]
                row.add(figure.metric, sum(values) / len(values) if values else None, op=figure.op)
            what = f"{counted(len(lines), 'line')} of progress, each of an interval, without the report at the end"
            self.results.problem(f"{what}: their mean is taken", table.line)

    def _complete(self, table: Table, so_far: tuple[Rule, re.Match[str]] | None) -> str:
        """What the report lacks; the averages above it are taken in their place."""
        there = {row.metric for one in table.rows for row in one.rows}
        missing = {metric: name for metric, name in self.whole.items() if metric not in there}
        if not there or not missing:
            return ""
        names = " and ".join(missing.values())
        if so_far is None:
            return names
        one, found = so_far
        for group, figure in one.figures.items():
            if figure.metric in missing:
                table.rows[0].add(figure.metric, _value(found[group], figure.scale), op=figure.op)
        return f"{names}; the last averages before the end are taken in their place"

    def _take(self, one: Rule, found: re.Match[str], line: int) -> None:
        groups = found.groupdict()
        if one.decimal_comma:
            groups |= {group: _with_point(groups[group] or "") for group in one.figures}
        self.line = line
        if one.counts:
            self._counted(line)
            return
        if one.so_far:
            self.so_far = one, found
            return
        if one.of_interval:
            self.table = self.table or self.results.table(line)
            self.waiting = 0
            self.intervals.append((self.table, " ".join((self.workload, *self.section.split())), one, found))
            return
        if one.left_out:
            self.left_out.setdefault(one.left_out, line)
            return
        heads = not one.figures and not one.may_name and (one.begins or bool(groups.get("workload")))
        self.waiting = line if heads else 0 if one.figures or one.ends else self.waiting
        self.ended = one.ends or (self.ended and not one.begins)
        if self.ended:
            return
        if heads and not one.begins:
            self._share_out(is_over=bool(self.below))
            self.above.setdefault(" ".join((self.workload, *groups["workload"].split())), line)
        if one.begins or self.table is None:
            self.table, self.rows = self.results.table(line), {}
        if one.begins and one.figures:
            self.below.append(self.table)
        if one.begins:
            self.phase = MAIN
            self.begun.append((self.table, self.so_far))
            self.so_far = None
        phase = phase_name(groups["phase"]) if groups.get("phase") else self.phase
        if one.opens:
            self.phase = phase
        if one.names or not (one.figures or one.opens):
            self.section, self.machine = groups.get("workload") or "", groups.get("machine") or ""
        if one.names:
            self._name_rows(self.table, " ".join((self.workload, self.section)))
        if not one.figures:
            return
        if "pairs" in groups:
            read = {found.start(group) for group in one.figures}
            for pair in _PAIR.finditer(found.string, *found.span("pairs")):
                if pair.start(1) not in read:
                    self.units.setdefault(pair[2], line)
        self.last_phases = {figure.phase or phase for figure in one.figures.values()}
        named = groups.get("setting") or ((groups.get("machine") or self.machine) if self.has_machines else None)
        setting = named or self.source.stem_without_round
        if not named:
            goes_on = bool(self.in_progress) and self.in_progress[-1][0] == line - 1
            self.in_progress = self.in_progress if goes_on else []
            if self.counted_at != line - 1:
                self.in_progress.append((line, self.table))
        workload = groups.get("workload") or self.section
        workload = " ".join((self.workload, *workload.split()))
        first = self._row(one, self.table, setting, workload, phase)
        if one.quotient is not None:
            metric, above, below = one.quotient
            numbers = number(groups[above] or ""), number(groups[below] or "")
            first.add(metric, numbers[0] / numbers[1] if numbers[0] is not None and numbers[1] else None)
        for group, figure in one.figures.items():
            row = first if figure.phase is None else self._row(one, self.table, setting, workload, figure.phase)
            scale = UNITS[unit] if (unit := groups.get(f"{group}_unit")) is not None else figure.scale
            value = _value(groups[group], scale) if groups.get(group) else None
            row.add(figure.metric, value, op=figure.op, absent=one.absent)
            if group == one.amount and value is not None:
                row.amount = f"{value:,.0f} bytes"
        if one.each is not None:
            size, count = (
                _value(groups[group] or "", UNITS.get(groups[f"{group}_unit"] or "", 1.0)) for group in one.each
            )
            if size and count:
                each = max(1.0, min(size / count, EACH_BYTES_MAX))
                first.amount = f"{2 ** round(math.log2(each)):,} bytes"
        if one.closes:
            for other in self.table.rows:
                other.workload = workload
            self.table = None

    def _share_out(self, *, is_over: bool = True) -> None:
        """Gives each of several headings that stand together its figures, if below them are as many."""
        if not is_over:
            return
        names, tables = list(self.above), [table for table in self.below if table.rows]
        if len(names) == len(tables):
            for name, table in zip(names, tables, strict=True):
                self._name_rows(table, name)
        elif len(names) > 1 and tables:
            what = f"{counted(len(names), 'heading')} of {self.workload} above {counted(len(tables), 'result')}"
            self.results.problem(
                f"{what}: which is of which is not known, all are taken as of the last", tables[0].line
            )
        self.above, self.below = {}, []

    def _name_rows(self, table: Table, workload: str) -> None:
        for row in table.rows:
            row.workload = workload
        self.rows = {(workload, phase): row for (_, phase), row in self.rows.items()}

    def _counted(self, line: int) -> None:
        if self.in_progress and self.in_progress[-1][0] == line - 1:
            for _, table in self.in_progress:
                table.rows.clear()
        self.in_progress, self.counted_at = [], line

    def _row(self, one: Rule, table: Table, setting: str, workload: str, phase: str) -> Row:
        """The row of this phase; a new one if it has one of the line's figures already from the line before."""
        row = self.rows.get((workload, phase))
        metrics = [figure for figure in one.figures.values() if (figure.phase or phase) == phase]
        if row is None or (
            self.line != self.line_of.get((workload, phase))
            and any((row.key(figure.metric, figure.op), "all") in row.reported for figure in metrics)
        ):
            if row is not None:
                # The report begins again, perhaps under another title.
                table, self.rows = self.results.table(self.line), {}
                self.table = table
            row = self.rows[workload, phase] = table.row(setting, workload, phase)
        self.line_of[workload, phase] = self.line
        return row


def phase_name(text: str) -> str:
    """`write, fsync, close` -> `write_fsync_close`."""
    return re.sub(r"\W+", "_", text[:PHASE_MAX].strip().lower(), flags=re.ASCII).strip("_") or MAIN


def figures_format(
    name: str,
    help: str,
    *,
    recognised_by: str,
    words: tuple[str, ...],
    rules: Sequence[Rule],
    otherwise: tuple[str, Sequence[Rule]] | None = None,
    titled: bool = False,
    repeats: str | None = None,
    whole: Mapping[str, str] | None = None,
    cut: str | None = None,
) -> Format:
    """A format of such lines. `recognised_by`: a line that only this tool prints. `otherwise`: what a file without such
    a line is recognised by, and the rules that hold for it instead. `titled`: as in `Format`.
    `repeats`: lines of figures that its other lines state too, or that come before the end of the measurement.
    `whole`: metrics that every report has, and what the tool calls them. `cut`: lines that end too early."""
    pattern = re.compile(_BEGINS + recognised_by + ")", re.ASCII)
    own = None if repeats is None else re.compile(_BEGINS + repeats + ")", re.ASCII)
    too_short = None if cut is None else re.compile(_BEGINS + cut + ")", re.ASCII)
    second = None if otherwise is None else re.compile(_BEGINS + otherwise[0] + ")", re.ASCII)

    def recognises(source: Source) -> bool:
        return source.has_line(pattern) or (second is not None and source.has_line(second))

    def parse(source: Source, results: Results) -> None:
        chosen = rules if otherwise is None or source.has_line(pattern) else otherwise[1]
        _Reader(source, results, name, chosen, whole or {}).read()
        for line in source.lines(lambda what, line: None) if too_short is not None else ():
            if too_short is not None and too_short.match(line.text):
                results.problem("the line is cut off, and what came behind it is not in the text", line.number)

    return Format(name, help, recognises, parse, words, titled=titled, own=own)


def _with_point(text: str) -> str:
    return text if "." in text else text.replace(",", ".")


def _value(text: str, scale: float) -> float | None:
    """`475k` of a column in KiB is 475; of any other, 475,000. `2m5.755s` and `2:05` are seconds."""
    if ":" in text:
        clock = clock_s(text)
        return None if clock is None else clock * scale
    if text.endswith("s"):
        known = quantity(text)
        return known.value / 1e9 * scale if known is not None and known.metric == "ns" else None
    bare = text.rstrip("kmg")
    value = number(bare)
    if value is None or bare == text:
        return value if value is None else value * scale
    power = "kmg".index(text[len(bare)])
    return value * (1024.0**power * scale if scale == KIB else 1000.0 ** (power + 1) * scale)
