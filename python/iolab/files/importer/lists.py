"""Lists in a text: which of their labels and lines above name settings, and which what was done."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from iolab.base.plain_text import counted
from iolab.domain.metric import ALL
from iolab.files.importer import written_number
from iolab.files.importer.columns import MEASURED, OF_TEST, is_case, stated_in
from iolab.files.importer.conditions import EXPECTED
from iolab.files.importer.dotted import settings_in
from iolab.files.importer.format import Format
from iolab.files.importer.listed import (
    OF_NO_NAME,
    RUNS,
    SETTING,
    VERSION_OR_SETTING,
    WITH_STATISTICS,
    Entry,
    alone,
    entries,
    parts_of,
    with_bullet,
    with_statistics,
    with_ways,
)
from iolab.files.importer.quantity_cell import quantity, statistics_in, ways_in, without_spaces
from iolab.files.importer.results import Results
from iolab.files.importer.source import Line, Source
from iolab.files.importer.titles import NUMBERED_ROUND, TITLE_MAX, may_name, title_of
from iolab.files.importer.unread import RANGE

LINES_MIN, METRICS_MIN = 2, 3
"""Lines, or the metrics of a single one, that make a list. Chosen."""
LINE_QUOTED_MAX = 60
ALIKE, ALIKE_MIN = 1.05, 3
"""Figures behind a label that differ by no more, and are so many, are runs. Chosen: conditions differ by more."""
_OF_FIO = re.compile(r"\s*[sc]?lat\s*\([mun]?sec\)\s*: min=")
"""Latencies; which of the rates above they belong to is not known."""
_MARKS = re.compile(r"[*`]")
_BULLET = re.compile(r"\s*(?:[-*\u2022+]|(?:\d{1,2}|[a-z])[.)])\s+(?=\S)")
_GAP = re.compile(r"\s{2}|\t")
_BARE_LINE = re.compile(
    r"(?P<before>\s*(?:[-*\u2022+] )?)(?P<label>[A-Za-z\d](?:[^\s:=|]| (?! )){0,40}?)(?:\s*[:=]|\s)\s+"
    r"(?:~ ?)?(?P<figures>\d[\d.,]*+[kM]?(?:\s+\d[\d.,]*+[kM]?){0,9})\s*"
)
_RANGE = re.compile(
    r"(?P<before>^.{2,60}?(?:[:=]|-{1,2}>?)\s+)~?(?P<low>\d[\d.]*+(?:[kM](?![A-Za-z]))?)"
    r" ?(?P<unit>[A-Za-z\u00b5/]{1,8})?\s*(?:-|\u2013|\.\.|to)\s*~?"
    r"(?P<high>\d[\d.]*+(?:[kM](?![A-Za-z]))?) ?(?P<of_high>[A-Za-z\u00b5/]{1,8})\s*$"
)
"""`ext4: 900MB/s - 1000MB/s`, `ext4: 900-1000 MB/s`."""
_REMARK = re.compile(r"\s*\([^()]*\)$")
_LABEL_ABOVE = re.compile(
    r"\s*+(?:[-*\u2022+] )?(?P<label>[A-Za-z][^=|]{0,80}?)(?:[:,]? (?:in )?|\s*[(\[])"
    r"(?P<unit>[A-Za-z\u00b5/]{1,14})[)\]]?:?\s*+"
)
_FIGURE_ALONE = re.compile(r"\s*+~?\d[\d.,]*+\s*+")
_OF_UNIT = re.compile(
    r"(?P<before>\s*+(?:[-*\u2022+] )?[A-Za-z\d][^:=|]{0,80}[:=]\s*+~?\d[\d.,]*+ ?)"
    r"(?P<unit>[A-Za-z/]{4,12})(?P<end>\.?\s*+)"
)
UNIT_MIN = 4
"""The letters of a unit in which a slip is sure. Chosen."""
_OF_STEP = re.compile(
    r"\s*+(?:(?:[-*\u2022+]|\d{1,2}[.)]) +)?(?:(?:and|now|then|this time),? )?(?:it|this|that|which|dd|fio)\b"
    r"(?P<what>[^\d:=|]{3,60}?)(?P<figure>~?\d[\d.,]*+(?<![.,]) ?(?:[kM] )?[A-Za-z/]{2,8})[.!]?\s*+",
    re.IGNORECASE,
)
_WRITES, _READS = re.compile(r"\bwrit", re.IGNORECASE), re.compile(r"\bread", re.IGNORECASE)
_NO_NAME = re.compile(r"`[^`]*`|[:=;,|*`]|^\s*(?:[-\u2022+]|\d{1,2}[.)])(?= )|\b(?:I|we) ")
STEP_MAX = 50
_WAYS = re.compile(r"\b(?:reads? ?/ ?writes?|r ?/ ?w)\b", re.IGNORECASE)
_OF_COUNT = re.compile(
    r"(?:cnt|count|n|(?:sample|run|round|iteration|repeat|trial|thread|client|worker|job)s?|numjobs|iodepth|qd)",
    re.IGNORECASE,
)
"""Labels of how often or with how many it was measured, in a list whose figures are rates."""
_OF_REPETITIONS = re.compile(
    r"\b(?:runs?|rounds?|times|iterations?|trials|tries|attempts|repeats|repetitions)\b", re.IGNORECASE
)
_OF_SETUP = re.compile(
    r"(?:setup|config(?:uration)?|setting|system|machine|host|variant|kernel|file ?system|scheduler)\b", re.IGNORECASE
)
_BESIDE_TEST = re.compile(
    rf"(?P<first>{SETTING.pattern})[ ,:/-]+(?P<rest>\S.*)"
    rf"|(?P<before>\S.*?)(?:[ ,:/-]+|\s*[(\[])(?P<last>{SETTING.pattern})[)\]]?",
    re.IGNORECASE,
)
"""`ext4 randread`, `randread (bfq)`."""


class _Place(NamedTuple):
    """What the lines say that a line is indented below."""

    setting: str | None
    name: str
    """The beginning of its workload's."""


def _spelled_out(lines: Sequence[Line], results: Results | None = None) -> list[Line]:
    """The lines, as a list has them that leaves nothing out."""
    lines = _with_middles(_with_units_beside(lines, results), results)
    lines = _with_steps(_with_figures_below(lines), results)
    return _with_units_above(lines)


def _with_units_above(lines: Sequence[Line]) -> list[Line]:
    """The lines, with what a line right above names with bare figures says that these are: `IOPS of 4k reads` above
    `ext4: 312` and `xfs: 298`."""
    made: list[Line] = []
    what, has_columns = "", False
    statistics: Sequence[str] = ()
    has_ways = False
    for line in lines:
        if _WAYS.search(line.text) and not MEASURED.search(line.text):
            has_ways = True
        elif has_ways:
            line = Line(line.number, with_ways(line.text))
        if (named := statistics_in(line.text)) is not None and not MEASURED.search(line.text):
            statistics = named[1]
        elif statistics:
            line = Line(line.number, with_statistics(line.text, statistics))
        found = _BARE_LINE.fullmatch(line.text) if what else None
        if found is not None and _OF_COUNT.fullmatch(found["label"]):
            made.append(line)
            continue
        each = without_spaces(found["figures"]).split() if found else []
        # Below names of columns, several figures are no rounds.
        if found is not None and (len(each) == 1 or not has_columns):
            latency, _, unit = what.rpartition("(")
            label = f"{found['label']} {latency.removesuffix('time ')}".strip()
            figures = ", ".join(f"{figure} {unit.rstrip(')')}" for figure in each)
            made.append(Line(line.number, f"{found['before']}{label}: {figures}"))
            continue
        made.append(line)
        if what and title_of(line.text) and not stated_in(line.text):
            continue
        has_columns = has_columns if not line.text.strip() else bool(_GAP.search(line.text.strip()))
        is_above = not MEASURED.search(line.text) and len(line.text) <= TITLE_MAX and not entries(line.text)
        what = (stated_in(line.text) if is_above else "") or (what if not line.text.strip() else "")
    return made


def _with_middles(lines: Sequence[Line], results: Results | None) -> list[Line]:
    """The lines with the middle of each range that is all of a label's figures."""
    made, count = list[Line](), 0
    for line in lines:
        found = _RANGE.match(line.text)
        ends = [quantity(f"{found[end]} {found['of_high']}") for end in ("low", "high")] if found else []
        low, high = ends if len(ends) == 2 else (None, None)
        is_range = low is not None and high is not None and low.metric is not None and 0 < low.value < high.value
        if found is None or not is_range or found["unit"] not in (None, found["of_high"]):
            made.append(line)
            continue
        figures = [written_number.number(found[end].rstrip("kM")) or 0.0 for end in ("low", "high")]
        prefix = found["high"][-1] if found["high"][-1] in "kM" else ""
        middle = Line(line.number, f"{found['before']}{sum(figures) / 2:.9g}{prefix} {found['of_high']}")
        is_read = bool(entries(middle.text))
        made.append(middle if is_read else line)
        count += is_read
    if count and results is not None:
        results.problem(f"{counted(count, 'range')} in a list {'is' if count == 1 else 'are'} read as their middles")
    return made


def _with_figures_below(lines: Sequence[Line]) -> list[Line]:
    """The lines, with a figure alone that stands below its label and its unit in one line with these."""
    made: list[Line] = []
    for above, line, below in zip([Line(0, ""), *lines], lines, [*lines[1:], Line(0, "")], strict=False):
        is_alone = _FIGURE_ALONE.fullmatch(line.text) and not _FIGURE_ALONE.fullmatch(below.text)
        found = _LABEL_ABOVE.fullmatch(above.text) if is_alone and not MEASURED.search(above.text) else None
        one = quantity(f"1 {found['unit']}") if found else None
        if found is None or one is None or one.metric is None:
            made.append(line)
            continue
        name = " ".join(found["label"].replace(":", " ").split())
        made[-1] = Line(line.number, f"{name}: {line.text.strip()} {found['unit']}")
    return made


def _with_units_beside(lines: Sequence[Line], results: Results | None) -> list[Line]:
    """The lines, with the unit of a neighbour in place of one that is no unit, and differs by a letter too much or too
    few: `6117 sops/sec` right below `6079 ops/sec`."""
    found = [None, *(_OF_UNIT.fullmatch(line.text) for line in lines), None]
    made = []
    for line, before, one, after in zip(lines, found, found[1:], found[2:], strict=False):
        meant = [other["unit"] for other in (before, after) if one and other and _is_slip(one["unit"], other["unit"])]
        made.append(Line(line.number, f"{one['before']}{meant[0]}{one['end']}") if one and meant else line)
        if meant and results is not None:
            results.problem(f"its unit is taken as {meant[0]!r}, as in the line beside it", line.number)
    return made


def _is_slip(unit: str, meant: str) -> bool:
    shorter, longer = sorted((unit, meant), key=len)
    is_alike = any(longer[:at] + longer[at + 1 :] == shorter for at in range(len(longer)))
    is_slip = is_alike and len(longer) == len(shorter) + 1 and len(shorter) >= UNIT_MIN
    return is_slip and quantity(f"1 {unit}") is None and quantity(f"1 {meant}") is not None


def _with_steps(lines: Sequence[Line], results: Results | None) -> list[Line]:
    """The lines, with what `it` came to, as each of several says, as a figure of the step above: `I mounted xfs` and
    `It shows 51 MB/s`."""
    found: dict[str, dict[str, Line]] = {}
    above = ""
    for line in lines:
        said = None if EXPECTED.search(line.text) else _OF_STEP.fullmatch(line.text)
        one = quantity(said["figure"]) if said else None
        step = " ".join(_NO_NAME.sub(" ", above).split())[:STEP_MAX].strip()
        if said and one and one.metric not in (None, "ns") and step and not MEASURED.search(above):
            way = "write" if _WRITES.search(said["what"]) else "read" if _READS.search(said["what"]) else "throughput"
            of_way = found.setdefault(f"{way} {one.metric}", {})
            of_way[step] = Line(line.number, f"- {step}: {way}={said['figure']}")
        above = line.text if line.text.strip() else above
    made = {line.number: line for steps in found.values() if len(steps) > 1 for line in steps.values()}
    if made and results is not None:
        results.problem("figures that sentences state are read; check them against the text")
    return [made.get(line.number, line) for line in lines]


def _parse(source: Source, results: Results) -> None:
    last = None
    table = None
    unknown: list[Line] = []
    lines = _spelled_out(list(source.lines(results.problem)), results)
    changed = _changed(lines)
    repeats = any(map(_OF_REPETITIONS.search, source.text_lines))
    places, heads = _outline(lines)
    names = dict.fromkeys(one.name for line in lines for one in entries(line.text) if one.setting is None)
    given = {**_settings_in(names), **settings_in(names)}
    for line in lines:
        found = entries(line.text)
        if (
            not repeats
            and not _are_runs(line.text, found)
            and len({one._replace(value=0.0) for one in found}) < len(found)
        ):
            results.lines_read.add(line.number)
            results.problem("figures of one kind behind a label: left out; if they are rounds, say 'runs'", line.number)
            continue
        if not found:
            unknown += [line] if parts_of(line.text) and line.number not in heads else []
            continue
        results.lines_read.add(line.number)
        if alone(line.text):
            results.problem("rates that stand alone in their lines are taken as rounds of what stands above them")
        if None in parts_of(line.text):
            of_rate = WITH_STATISTICS.match(line.text)
            what = "of a rate, the mean and the extremes alone are read" if of_rate else ""
            results.problem(what or "a figure does not state what it is: left out", line.number)
        if table is None or last != line.number - 1:
            table = results.table(line.number)
        last = line.number
        for entry in found:
            name, stated = given.get(entry.name, (entry.name, None))
            if entry.name not in given and line.number in changed and line.number not in places:
                name, stated = OF_NO_NAME, entry.name
            elif re.fullmatch(NUMBERED_ROUND, name):
                name = OF_NO_NAME
            place = places.get(line.number)
            if place is not None:
                is_setting = place.setting == name
                name = place.name or OF_NO_NAME if is_setting or name == OF_NO_NAME else f"{place.name} {name}".strip()
                stated = stated or place.setting
            setting = entry.setting or stated or source.stem_without_round
            known = (row for row in table.rows if (row.setting, row.workload) == (setting, name))
            row = next((row for row in known if (row.key(entry.metric, entry.op), "all") not in row.reported), None)
            row = row or table.row(setting, name)
            ways = ways_in(name) if entry.op == ALL and place else []
            row.add(entry.metric, entry.value, op=ways[0] if len(ways) == 1 else entry.op)
    results.lines_read |= {line.number for line in unknown}
    ranges = [line for line in unknown if RANGE.search(line.text)]
    unknown = [line for line in unknown if line not in ranges]
    if ranges:
        of = counted(len(ranges), "line has a range", "lines have ranges")
        results.problem(f"{of} in place of a figure: left out; give the figure of each run", ranges[0].number)
    if unknown:
        of = counted(len(unknown), "line has a figure", "lines have figures")
        results.problem(f"{of} of no metric that iolab knows: left out, {_quoted(unknown[0].text.strip())!r} first")


def _settings_in(names: Collection[str]) -> dict[str, tuple[str, str]]:
    """Names that say what was changed beside what was done: each in two, where one was done under several."""
    parts = {name: found for name in names if (found := _BESIDE_TEST.fullmatch(name))}
    split = {name: (one["rest"] or one["before"], one["first"] or one["last"]) for name, one in parts.items()}
    split = {name: one for name, one in split.items() if OF_TEST.search(one[0]) or is_case(one[0])}
    for name in names:
        found = VERSION_OR_SETTING.search(name)
        if name not in split and found:
            rest = " ".join(f"{name[: found.start()]} {name[found.end() :]}".split()).strip(" ,;")
            split[name] = rest or OF_NO_NAME, found[0]
    settings: dict[str, set[str]] = {}
    for rest, setting in split.values():
        settings.setdefault(rest, set()).add(setting.lower())
    return {name: one for name, one in split.items() if len(settings[one[0]]) > 1}


def _are_runs(text: str, entries: Sequence[Entry]) -> bool:
    """Whether figures of one kind follow each other, each with its unit, as close to each other as runs of the same."""
    values = [one.value for one in entries]
    are_one_kind = len({one._replace(value=0.0) for one in entries}) == 1
    return len(values) >= ALIKE_MIN and bool(RUNS.search(text)) and are_one_kind and max(values) <= ALIKE * min(values)


def _changed(lines: Sequence[Line]) -> set[int]:
    """The lines whose labels name what was changed: each has the same metrics as those right above and below it, and
    another label, which names no test and stands nowhere else. Where labels come again, what stands above them is
    what was changed."""
    blocks: list[list[tuple[int, list[Entry]]]] = []
    last = -2
    for place, line in enumerate(lines):
        parts = parts_of(line.text)
        found = [one for one in parts if one is not None]
        if found and last == place - 1:
            blocks[-1].append((line.number, found))
        elif found:
            blocks.append([(line.number, found)])
        if found or (parts and last == place - 1):
            last = place
    known: Counter[Entry] = Counter()
    changed: dict[int, list[Entry]] = {}
    for block in blocks:
        said = [found for _, found in block]
        known.update({one._replace(value=0.0) for found in said for one in found})
        kinds = {tuple((one.op, one.metric) for one in found) for found in said}
        names = [one.setting or one.name for found in said for one in found[:1]]
        are_names = not any(
            name.partition("[")[0] == OF_NO_NAME or OF_TEST.search(name) or re.fullmatch(NUMBERED_ROUND, name)
            for name in names
        )
        have_one = all(len({one.name for one in found}) == 1 for found in said)
        have_one = have_one and not all(found[0].setting for found in said)
        if len(kinds) == 1 < len(names) == len(set(names)) and are_names and have_one:
            changed |= dict(block)
    again = any(known[one._replace(value=0.0)] > 1 for found in changed.values() for one in found)
    return set() if again else set(changed)


def _outline(lines: Sequence[Line]) -> tuple[dict[int, _Place], set[int]]:
    """By line of a figure, what the lines above say that it is indented below, where they differ; and these lines.

    One of the levels, or the figures' own labels, names settings: what was changed, else whatever is no test and has
    the same figures below each of its names."""
    above: list[tuple[int, str, int]] = []
    heads: set[int] = set()
    paths: dict[int, tuple[str, ...]] = {}
    said: dict[int, list[Entry]] = {}
    for line, next_line in zip(lines, [*lines[1:], Line(0, "")], strict=True):
        if not line.text.strip():
            continue
        text = with_bullet(line.text)
        bullet, depth = _BULLET.match(text), _depth(text)
        while above and above[-1][0] >= depth:
            above.pop()
        text = text[depth:]
        next_depth = _depth(with_bullet(next_line.text))
        if found := entries(line.text):
            paths[line.number] = tuple(name for _, name, _ in above)
            heads |= {number for *_, number in above}
            said[line.number] = found
            # One space more is an oversight.
            text = text.partition(":")[0] if next_depth > depth + 1 else ""
        is_above = next_depth > depth
        if name := _head(text, is_item=bool(bullet), is_above=is_above):
            above.append((depth, name, line.number))
    nested = {number: path for number, path in paths.items() if path}
    while len({path[0] for path in nested.values()}) == 1:
        nested = {number: path[1:] for number, path in nested.items() if path[1:]}
    below: dict[tuple[int, str], set[Entry]] = {}
    for number, path in nested.items():
        for level, name in enumerate(path):
            below.setdefault((level, name), set()).update(one._replace(value=0.0) for one in said[number])
    of_settings, labels = None, {number: said[number][0] for number in nested}
    if not any(one.setting for one in labels.values()):
        of_settings = _level_of_settings(below)
    are_cases = all(_is_test(name) for path in nested.values() for name in path)
    are_labels = (
        of_settings is None and are_cases and not any(one.setting or _is_test(one.name) for one in labels.values())
    )
    places = {}
    for number, path in nested.items():
        setting = path[of_settings] if of_settings is not None and of_settings < len(path) else None
        rest = " ".join(name for level, name in enumerate(path) if level != of_settings)
        places[number] = _Place(labels[number].name if are_labels else setting, rest)
    return places, heads


def _depth(text: str) -> int:
    """Where the line begins, behind its bullet."""
    bullet = _BULLET.match(text)
    return bullet.end() if bullet else len(text) - len(text.lstrip())


def _level_of_settings(below: Mapping[tuple[int, str], set[Entry]]) -> int | None:
    """Which level of lines names what was changed, by what stands below each of its names."""
    levels = [
        [name for at, name in below if at == level] for level in range(1 + max((at for at, _ in below), default=-1))
    ]
    for level, names in enumerate(levels):
        if len(names) > 1 and all(SETTING.fullmatch(name) or _OF_SETUP.match(name) for name in names):
            return level
    for level, names in enumerate(levels):
        kinds = {frozenset(below[level, name]) for name in names}
        # What brackets say of names that differ without them is a remark.
        bare = [_REMARK.sub("", name) for name in names]
        called = bare if len(set(bare)) == len(names) and not all(map(_is_test, names)) else names
        if len(names) > 1 and len(kinds) == 1 and not any(map(_is_test, called)):
            return level
    return None


def _is_test(name: str) -> bool:
    return name == OF_NO_NAME or bool(OF_TEST.search(name)) or is_case(name)


def _head(text: str, *, is_item: bool, is_above: bool) -> str:
    """The line as what figures below it may belong to, which are indented if it `is_above` them; empty if it is a
    sentence, or a title, which holds further."""
    short = _MARKS.sub("", text).strip().removesuffix(":" if is_item else "").rstrip()
    is_name = 0 < len(short) <= LINE_QUOTED_MAX and short[-1] not in ".,;:"
    return short if is_name and (is_item or ((is_above or may_name(short)) and not title_of(short))) else ""


def _quoted(text: str) -> str:
    """The line, less the begin of a long one: its figure stands at the end."""
    return text if len(text) <= LINE_QUOTED_MAX else f"...{text[-LINE_QUOTED_MAX:]}"


def _recognises(source: Source) -> bool:
    lines = source.text_lines
    whole = _spelled_out([Line(number, text) for number, text in enumerate(lines, 1)])
    said = [{(one.op, one.metric) for one in entries(line.text)} for line in whole]
    is_list = sum(map(bool, said)) >= LINES_MIN or max(map(len, said), default=0) >= METRICS_MIN
    is_list |= any(len({one.setting for one in entries(line.text)} - {None}) > 1 for line in whole)
    return is_list and not any(map(_OF_FIO.match, lines))


FORMAT = Format(
    name="list",
    help="lists of figures in a text: a label, a colon or a dash, a figure with its unit; or several on a line",
    recognises=_recognises,
    parse=_parse,
    words=("IOPS:", "Throughput:", "latency:", "MB/s"),
    titled=True,
    is_written=True,
)
