"""hyperfine's --export-json and --export-csv, and what it prints: commands, timed several times.

The JSON has each repetition's time, which is a round; CPU times it has as means only. The others have summaries only. A
command is a setting; the parameters of --parameter-list distinguish commands of the same name.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from iolab.base.errors import InputError
from iolab.base.strict_json import JsonObject
from iolab.files.importer.format import Format
from iolab.files.importer.results import Results, Row, Table
from iolab.files.importer.source import Source, json_text
from iolab.files.importer.text import QUOTED_MAX
from iolab.files.importer.written_number import number

WORKLOAD = "command"
SUMMARIES = {
    "mean": "elapsed_s_mean",
    "stddev": "elapsed_s_stddev",
    "median": "elapsed_s_median",
    "min": "elapsed_s_min",
    "max": "elapsed_s_max",
}
CPU_MEANS = {"user": "cpu_user_s_mean", "system": "cpu_system_s_mean"}
COLUMNS = ("command", "mean", "stddev", "median", "user", "system", "min", "max")
PARAMETER = "parameter_"
NAME_MAX = 200
"""Characters of a command that name its setting."""

_CSV = re.compile(",".join(COLUMNS[:4]))
_JSON = re.compile(r"\s*+\{\s*+\"results\"\s*+:\s*+\[\s*+\{\s*+\"command\"\s*+:")


def _parse(source: Source, results: Results) -> None:
    if _JSON.match(source.head):
        _parse_json(source, results)
    else:
        _parse_csv(source, results)


def _parse_json(source: Source, results: Results) -> None:
    found = _of_json(source)
    names = _names((str(one.get("command", "")), _table(one, "parameters")) for one in found)
    for place, (name, one) in enumerate(zip(names, found, strict=True)):
        if place:
            # It ends all runs of a command before it begins the next: their rounds have nothing in common.
            results.begin_source(source.name, source.stem)
        table = results.table(1)
        times = one.get("times")
        if not isinstance(times, list) or not times:
            _add_summaries(table.row(name, WORKLOAD), one)
            continue
        _add_rounds(table, name, times, one.get("exit_codes"))
        means = table.row(name, WORKLOAD)
        for key, metric in CPU_MEANS.items():
            means.add(metric, _float(one.get(key)))
        results.workloads.setdefault(WORKLOAD, {"kind": "hyperfine"})


def _add_rounds(table: Table, name: str, times: list[Any], exit_codes: Any) -> None:
    codes = exit_codes if isinstance(exit_codes, list) else []
    for place, time in enumerate(times):
        row = table.row(name, WORKLOAD)
        row.add("elapsed_s", _float(time), absent="not a number in the source")
        code = codes[place] if place < len(codes) else 0
        if code != 0:
            ending = f"exit status {code}" if isinstance(code, int) and not isinstance(code, bool) else "a signal"
            row.fault(f"the command ended with {ending[:QUOTED_MAX]}")


def _add_summaries(row: Row, values: Mapping[str, Any]) -> None:
    for key, metric in (SUMMARIES | CPU_MEANS).items():
        row.add(metric, _float(values.get(key)))


def _of_json(source: Source) -> list[JsonObject]:
    try:
        content = json.loads(json_text(source))
    except (ValueError, RecursionError) as error:
        raise InputError(f"no whole JSON of hyperfine ({error})", where=source.name, remedy="was it cut off?") from None
    found = content.get("results") if isinstance(content, dict) else None
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _parse_csv(source: Source, results: Results) -> None:
    reader = csv.DictReader(io.StringIO(source.whole()))
    try:
        rows = list(reader)
    except csv.Error as error:
        raise InputError(f"not a table: {error}", where=f"{source.name}:{reader.line_num}") from None
    if any(None in row or None in row.values() for row in rows):
        raise InputError("a row has not as many fields as the header", where=source.name, remedy="was it cut off?")
    if "command" not in (reader.fieldnames or ()):
        raise InputError("no column 'command'", where=f"{source.name}:1", remedy="expected hyperfine --export-csv")
    table = results.table(1)
    parameters = [
        {key.removeprefix(PARAMETER): value for key, value in row.items() if key.startswith(PARAMETER)} for row in rows
    ]
    names = _names((row["command"], given) for row, given in zip(rows, parameters, strict=True))
    for name, row in zip(names, rows, strict=True):
        _add_summaries(table.row(name, WORKLOAD), row)


def _names(commands: Iterator[tuple[str, Mapping[str, Any]]]) -> list[str]:
    """What the settings are called: the command, and its parameters if several have the same."""
    found = [(command[:NAME_MAX].strip() or WORKLOAD, given) for command, given in commands]
    count = Counter(name for name, _ in found)
    return [
        f"{name} {' '.join(f'{key}={value}' for key, value in given.items())}"[: 2 * NAME_MAX]
        if given and count[name] > 1
        else name
        for name, given in found
    ]


def _float(value: Any) -> float | None:
    if isinstance(value, str):
        return number(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _table(content: JsonObject, name: str) -> JsonObject:
    value = content.get(name)
    return value if isinstance(value, dict) else {}


def _recognises(source: Source) -> bool:
    return bool(_JSON.match(source.head)) or bool(_CSV.match(source.head))


_PRINTED = re.compile(r"\s*+Benchmark (?:#|)\d++: (?P<command>\S.*)")
_TIME = r"(?P<{0}>[\d.]++) (?P<{0}_unit>ms|s|[uµ]s)"
_SUMMARY = re.compile(
    rf"\s*+Time \((?:mean ± .|abs ≡)\):\s++{_TIME.format('mean')}(?:\s*+±\s*+{_TIME.format('stddev')})?"
    rf"\s++\[User: {_TIME.format('user')}, System: {_TIME.format('system')}\]"
)
_RANGE = re.compile(rf"\s*+Range \(min … max\):\s++{_TIME.format('min')} …\s++{_TIME.format('max')}")
_IN_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6}


def _parse_printed(source: Source, results: Results) -> None:
    """Commands are settings; where each comes again, what stands above them is."""
    row: Row | None = None
    count = Counter(found["command"] for text in source.text_lines if (found := _PRINTED.match(text)))
    come_again = len(set(count.values())) == 1 and 1 not in count.values()
    for line in source.lines(results.problem):
        if found := _PRINTED.match(line.text):
            command = found["command"][:NAME_MAX]
            names = (source.stem_without_round, command) if come_again else (command, WORKLOAD)
            row = results.table(line.number).row(*names)
        elif row is not None and (found := _SUMMARY.match(line.text) or _RANGE.match(line.text)):
            groups = found.groupdict()
            for key, metric in (SUMMARIES | CPU_MEANS).items():
                if groups.get(key) and (value := number(groups[key])) is not None:
                    row.add(metric, value * _IN_SECONDS[groups[f"{key}_unit"]])


PRINTED = Format(
    name="hyperfine-text",
    help="what hyperfine prints: mean, spread, least and most of each command",
    recognises=lambda source: source.has_line(_SUMMARY),
    parse=_parse_printed,
    words=("Benchmark 1", "Time (mean", "Range (min", "[User:"),
    titled=True,
)
FORMAT = Format(
    name="hyperfine",
    help="hyperfine --export-json (a time is a round) and --export-csv",
    recognises=_recognises,
    parse=_parse,
    words=('"results"', '"command"', '"exit_codes"', "command,mean,stddev"),
    among_text=False,
)
