"""The registry of formats, and which of them a file is in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

from iolab.base.errors import InputError, unknown
from iolab.files.importer.affinity import FORMAT as AFFINITY
from iolab.files.importer.aligned import FORMAT as ALIGNED
from iolab.files.importer.aligned import without_metric
from iolab.files.importer.backup_tools import FORMATS as BACKUP_TOOLS
from iolab.files.importer.benchstat import FORMAT as BENCHSTAT
from iolab.files.importer.biotop import FORMAT as BIOTOP
from iolab.files.importer.columns import unit_in
from iolab.files.importer.context_switches import FORMAT as CONTEXT_SWITCHES
from iolab.files.importer.crystaldiskmark import FORMAT as CRYSTALDISKMARK
from iolab.files.importer.csv_file import FORMAT as CSV_FILE
from iolab.files.importer.csv_in_text import FORMAT as CSV_IN_TEXT
from iolab.files.importer.csv_in_text import ends_in_text
from iolab.files.importer.csv_in_text import tables as tables_of_csv
from iolab.files.importer.csv_metrics import FORMAT as CSV_METRICS
from iolab.files.importer.csv_rounds import FORMAT as CSV_ROUNDS
from iolab.files.importer.database_tools import FORMATS as DATABASE_TOOLS
from iolab.files.importer.diskspd import FORMAT as DISKSPD
from iolab.files.importer.dstat import FORMAT as DSTAT
from iolab.files.importer.elbencho_csv import FORMAT as ELBENCHO_CSV
from iolab.files.importer.fio_hist_log import FORMAT as FIO_HIST_LOG
from iolab.files.importer.fio_json import FORMAT as FIO_JSON
from iolab.files.importer.fio_lines import FORMAT as FIO_LINES
from iolab.files.importer.fio_log import FORMATS as FIO_LOGS
from iolab.files.importer.fio_summary import FORMAT as FIO_SUMMARY
from iolab.files.importer.fio_text import FORMAT as FIO_TEXT
from iolab.files.importer.format import Format
from iolab.files.importer.fs_mark import FORMAT as FS_MARK
from iolab.files.importer.hyperfine import FORMAT as HYPERFINE
from iolab.files.importer.hyperfine import PRINTED as HYPERFINE_PRINTED
from iolab.files.importer.iosnoop import FORMAT as IOSNOOP
from iolab.files.importer.iostat import FORMAT as IOSTAT
from iolab.files.importer.iostest import FORMAT as IOSTEST
from iolab.files.importer.iozone import FORMAT as IOZONE
from iolab.files.importer.kbench import FORMAT as KBENCH
from iolab.files.importer.kernels import FORMAT as KERNELS
from iolab.files.importer.lists import FORMAT as LISTED
from iolab.files.importer.lkp import FORMAT as LKP
from iolab.files.importer.lmbench import FORMATS as LMBENCH
from iolab.files.importer.load_tools import FORMATS as LOAD_TOOLS
from iolab.files.importer.markdown import BARS
from iolab.files.importer.markdown import FORMAT as MARKDOWN
from iolab.files.importer.mmtests import FORMAT as MMTESTS
from iolab.files.importer.mmtests_log import FORMAT as MMTESTS_LOG
from iolab.files.importer.mountstats import FORMAT as MOUNTSTATS
from iolab.files.importer.mountstats import is_single_snapshot
from iolab.files.importer.mpstat import FORMAT as MPSTAT
from iolab.files.importer.nfsiostat import FORMAT as NFSIOSTAT
from iolab.files.importer.older_tools import FORMATS as OLDER_TOOLS
from iolab.files.importer.own_benchmarks import FORMATS as OWN_BENCHMARKS
from iolab.files.importer.pgbench import FORMAT as PGBENCH
from iolab.files.importer.pgbench import LOG_FORMAT as PGBENCH_LOG
from iolab.files.importer.pgbench import thread_of
from iolab.files.importer.phoronix import FORMAT as PHORONIX
from iolab.files.importer.pidstat import FORMAT as PIDSTAT
from iolab.files.importer.prose import FORMAT as PROSE
from iolab.files.importer.rados_json import FORMAT as RADOS_JSON
from iolab.files.importer.sar import FORMAT as SAR
from iolab.files.importer.server_tools import FORMATS as SERVER_TOOLS
from iolab.files.importer.shell_commands import command_of
from iolab.files.importer.slow_operations import FORMAT as SLOW_OPERATIONS
from iolab.files.importer.source import Source
from iolab.files.importer.spread import FORMAT as SPREAD
from iolab.files.importer.sysbench import FORMAT as SYSBENCH
from iolab.files.importer.sysstat_json import FORMAT as SYSSTAT_JSON
from iolab.files.importer.time_command import FORMAT as TIME_COMMAND
from iolab.files.importer.tiobench import FORMAT as TIOBENCH
from iolab.files.importer.unread import (
    INPUTS,
    OPTION,
    PARTS,
    UNREAD,
    UnreadFormat,
    shape_of,
)
from iolab.files.importer.unread_figures import SEEN_MAX, has_unit, into_csv, is_header, seen
from iolab.files.importer.vdbench_flat import FORMAT as VDBENCH_FLAT
from iolab.files.importer.vmstat import FORMAT as VMSTAT
from iolab.files.importer.vmstat_disks import FORMAT as VMSTAT_DISKS
from iolab.files.importer.zpool_iostat import FORMAT as ZPOOL_IOSTAT

FORMATS: dict[str, Format] = {
    one.name: one
    for one in (
        FIO_JSON,
        FIO_TEXT,
        FIO_SUMMARY,
        FIO_LINES,
        FIO_HIST_LOG,
        *FIO_LOGS,
        TIOBENCH,
        IOZONE,
        FS_MARK,
        IOSTEST,
        MMTESTS,
        MMTESTS_LOG,
        HYPERFINE,
        HYPERFINE_PRINTED,
        SYSBENCH,
        PGBENCH,
        PGBENCH_LOG,
        TIME_COMMAND,
        MOUNTSTATS,
        NFSIOSTAT,
        MPSTAT,
        IOSTAT,
        SYSSTAT_JSON,
        AFFINITY,
        SPREAD,
        KERNELS,
        CONTEXT_SWITCHES,
        SAR,
        VMSTAT,
        VMSTAT_DISKS,
        PIDSTAT,
        IOSNOOP,
        BIOTOP,
        SLOW_OPERATIONS,
        RADOS_JSON,
        *LOAD_TOOLS,
        *DATABASE_TOOLS,
        *SERVER_TOOLS,
        *OLDER_TOOLS,
        *OWN_BENCHMARKS,
        BENCHSTAT,
        *BACKUP_TOOLS,
        VDBENCH_FLAT,
        DSTAT,
        PHORONIX,
        ELBENCHO_CSV,
        KBENCH,
        ZPOOL_IOSTAT,
        DISKSPD,
        CRYSTALDISKMARK,
        LKP,
        *LMBENCH,
        MARKDOWN,
        BARS,
        ALIGNED,
        LISTED,
        PROSE,
        CSV_IN_TEXT,
        CSV_ROUNDS,
        CSV_METRICS,
        CSV_FILE,
    )
}
LOOKS_LIKE = "looks like"
"""How an error begins that says what a file is, and that it is not read."""
OF_TEXT = (PROSE, LISTED, CSV_IN_TEXT, ALIGNED, BARS)
"""What people write themselves, the vaguest first: it gives way to whatever else stands in a text."""
_OF_SHEET = re.compile(
    r"\W*(?:(?:technical|performance|product) )?(?:specifications?|specs|data ?sheet)\b[^.]{0,40}"
    r"|[^.:]{1,60} (?:specifications?|specs?|data ?sheet):",
    re.IGNORECASE,
)
_OF_TESTS = re.compile(r"\b(?:(?:I|we) (?:have )?measured|benchmarks?|results?|fio|dd|runs?)\b", re.IGNORECASE)
"""What a sheet of a maker's has as its heading, and what a text that was measured says somewhere. Chosen."""
_WISHED = re.compile(
    r"\b(?:up to|rated|advertis\w*|claim\w*|theoretical\w*|should|must|requir\w*|targets?|limit of|supposed)\b",
    re.IGNORECASE,
)
"""Chosen."""
NEAREST_MAX = 3
NAME_MIN = 5
"""Shorter names of formats are words of their own: time, sar, dd."""
NEAR = 0.5
"""The share of a format's typical words from which on a text is near to it."""
BEGINNING_BYTES = 4096
UNREAD_LINES = 2000
"""Lines in which formats that are not read are looked for, each by each pattern."""


def _of_tools() -> Iterator[Format]:
    """The formats of tools that may stand among other text, of which figures are what they print."""
    return (
        one for one in FORMATS.values() if one.among_text and not one.is_written and one not in (MARKDOWN, *OF_TEXT)
    )


def formats_of(source: Source, name: str | None = None) -> list[Format]:
    """The formats that the file holds: one, or several kinds of tables in a mail. `name` overrides what is recognised.

    InputError if there is no format of that name, or if the content is like none.
    """
    text = source.head
    if name is not None:
        if name not in FORMATS:
            raise InputError(f"{name}: {unknown('format', name, FORMATS)}", where="--from")
        return [FORMATS[name]]
    whole = next((one for one in FORMATS.values() if not one.among_text and one.recognises(source)), None)
    if whole is not None and whole is not CSV_FILE:
        is_json = text.lstrip()[:1] in ("{", "[")
        return [whole, *(() if is_json else filter(lambda one: one.recognises(source), _of_tools()))]
    if is_part := whole is not None and ends_in_text(source):
        if CSV_IN_TEXT.recognises(source):
            return [CSV_IN_TEXT]
        whole = None
    # What is regular as a CSV file is one, unless it begins as a table whose columns and units are known.
    searched = replace(source, head_bytes=BEGINNING_BYTES) if whole else source
    # What people write themselves is short; in a long log, looking for it takes ten seconds.
    written = () if searched.is_short else OF_TEXT
    tables = [one for one in FORMATS.values() if one.among_text and one not in written and one.recognises(searched)]
    # What stands beside the tables of tools and of Markdown is made of them.
    for made in OF_TEXT:
        if len(tables) > 1 and made in tables:
            tables.remove(made)
    if whole:
        return [one for one in tables if one not in OF_TEXT] or [CSV_FILE]
    if any(one not in (MARKDOWN, *OF_TEXT) for one in tables):
        return tables
    _refuse(UNREAD, source)
    # What stands above the heading of a sheet is none of it.
    before = list(takewhile(lambda line: not _OF_SHEET.fullmatch(line), source.text_lines))
    is_sheet = len(before) < len(source.text_lines) and not any(map(has_unit, before))
    if is_sheet and not any(map(_OF_TESTS.search, source.text_lines)):
        _refuse_wished(source)
    # What sentences say may be part of what a table says.
    if tables == [PROSE]:
        _refuse_nameless(source)
    if tables and (is_part or tables[0] not in (PROSE, ALIGNED) or not CSV_FILE.resembles(source)):
        return tables
    _refuse(PARTS, source)
    given = (line for line in source.text_lines if not command_of(line) and not OPTION.fullmatch(line))
    if not any(has_unit(line) or unit_in(line) for line in given):
        _refuse(INPUTS, source)
    if shape := shape_of(source.text_lines):
        raise InputError(f"unrecognised format: {shape.what}", where=source.name, remedy=shape.remedy)
    if meant := [one for one in FORMATS.values() if one.resembles(source)]:
        return meant
    if not tables and not source.is_short:
        near = ", ".join(_nearest(text))
        raise InputError(
            f"unrecognised format{f'; nearest: {near}' if near else ''}; it is long, and what people write themselves "
            "is looked for in short texts alone",
            where=source.name,
            remedy="give the lines with its figures: sed -n 100,120p FILE > short.txt",
        )
    _refuse_nameless(source)
    if all(map(_WISHED.search, filter(has_unit, source.text_lines))):
        _refuse_wished(source)
    if rows := next(tables_of_csv(source), None):
        first, last = rows[0].number, rows[-1].number
        raise InputError(
            f"unrecognised format: lines {first} to {last} are a CSV table whose names do not state what figures are",
            where=source.name,
            remedy=f"give them alone: sed -n {first},{last}p FILE > table.csv",
        )
    near = ", ".join(_nearest(text))
    raise InputError(
        f"unrecognised format{f'; nearest: {near}' if near else ''}{seen(source.text_lines)}",
        where=source.name,
        remedy=f"{into_csv(source.text_lines)}; or name its format with --from FORMAT",
    )


def _refuse_wished(source: Source) -> None:
    """Of what a maker or a plan says, or of what is asked for."""
    if first := next((line for line in source.text_lines if has_unit(line) and not is_header(line)), ""):
        raise InputError(
            f"nothing was measured: {first.strip()[:SEEN_MAX]!r} is specified, asked for or wished",
            where=source.name,
            remedy="give what a benchmark printed: iolab compares measurements",
        )


def _refuse_nameless(source: Source) -> None:
    if found := without_metric(source):
        first, last, are_changes = found
        if are_changes:
            raise InputError(
                f"unrecognised format: the table in lines {first} to {last} has changes in percent alone",
                where=source.name,
                remedy="give the figures that they were computed of",
            )
        raise InputError(
            f"unrecognised format: nothing states what the figures of the table in lines {first} to {last} are",
            where=source.name,
            remedy="write it right above the table, such as 'IOPS:', 'TPS:', 'latency in ms:' or 'time in s:'",
        )


def _refuse(known: Sequence[UnreadFormat], source: Source) -> None:
    for unread in known:
        if any(unread.line.search(line) for line in source.text_lines[:UNREAD_LINES]):
            raise InputError(f"{LOOKS_LIKE} {unread.name}, which is not read", where=source.name, remedy=unread.remedy)


def sources_of(paths: Sequence[Path], label: str | None = None) -> list[Source]:
    """A source per file; a snapshot of /proc/self/mountstats and the one after it are read as one, and so are the logs
    of one pgbench's threads. `label`: the name of all files' setting, if the files give none."""
    sources: list[Source] = []
    waiting: Source | None = None
    for path in paths:
        source = Source(path, label=label)
        if (first := thread_of(source)) is not None:
            place = next((place for place, one in enumerate(sources) if one.name == first), None)
            if place is not None:
                sources[place] = replace(sources[place], paths=(*sources[place].paths, path))
                continue
        if waiting is not None and is_single_snapshot(source):
            sources[-1] = replace(waiting, paths=(path,))
            waiting = None
            continue
        sources.append(source)
        waiting = source if is_single_snapshot(source) else None
    return sources


def _nearest(text: str) -> list[str]:
    """The formats that the text has at least half of the typical words of, or that it names, those with most first."""
    lower = text.lower()
    shares = {one.name: sum(word.lower() in lower for word in one.words) / len(one.words) for one in FORMATS.values()}
    named = {name for name in shares if len(name) >= NAME_MIN and name.lower() in lower}
    near = sorted((name for name in shares if shares[name] >= NEAR or name in named), key=lambda name: -shares[name])
    return near[:NEAREST_MAX]
