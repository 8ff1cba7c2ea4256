"""Hostile files: none crashes an importer, each is read in linear time, and what is too much is one clear error."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from iolab.base.errors import InputError
from iolab.base.plain_text import whole_number
from iolab.domain.comparison import compare_csv
from iolab.files.importer import results, source
from iolab.files.importer.formats import FORMATS, formats_of
from iolab.files.importer.html_table import ROW_CHARS_MAX, with_bars
from iolab.files.importer.results import Results
from iolab.files.importer.run_import import open_run
from iolab.files.importer.source import Source
from iolab.files.importer.written_number import is_number, number
from iolab.presentation.cli.invoke import invoke
from iolab.presentation.table import render
from support.growth import assert_linear
from test_importer import opened
from test_importer_fuzz import SAMPLES, read

KIB = 1024


def parsed(path: Path, name: str | None) -> None:
    one = Source(path)
    found = Results()
    try:
        formats = formats_of(one, name)
        found.begin_source(one.name, one.stem)
        for format_of_it in formats:
            format_of_it.parse(one, found)
        found.finish()
    except InputError:
        pass


FS_MARK = "FSUse%        Count         Size    Files/sec     App Overhead\n"
TIOBENCH = "Identifier  Thr  Rate  (CPU%)  Latency  Latency >2s >10s Eff\n"
AFFINITY = "A Q C | MBPS Avg Lat StdDev\n"
IOSTEST = "job Set NR cgrp1 total\n"
MMTESTS = "Hmean 1  10.00 (  0.00%)  12.00 ( 20.00%)\n"
IOZONE = "  kB  reclen    write  rewrite    read    reread\n"

CRASHED = [
    ("mmtests", MMTESTS + "   10.00 (  0.00%)  12.00 ( 20.00%)\n"),
    ("fs_mark", FS_MARK + "1 1e999 51200 600 7000\n"),
    ("fs_mark", FS_MARK + "1 1000 1e999 600 7000\n"),
    ("fs_mark", FS_MARK + "1 1e308 51200 600 7000\n1 -1e308 51200 600 7000\n"),
    ("tiobench", TIOBENCH + "a 1e308 66 15% 0.05 100 0 0 4\n"),
    ("tiobench", "1" * 5000 + " threads\nfile size = " + "1" * 5000 + " mb\n" + TIOBENCH + "a 1 66 15% 1 100 0 0 4\n"),
    ("affinity", AFFINITY + "1 1 1 | e5 1 1 | 1 1 1 1\n"),
    ("affinity", AFFINITY + "1 1 1 | .e5 1 1 | 1 1 1 1\n"),
    ("iostest", IOSTEST + "bsr 1 ² 100 100\nbsr ² 1 100 100\n"),
    ("context-switches", f"a average context switch rate {'1' * 400}\nb average context switch rate 1,2,3\n"),
    ("iozone", IOZONE + f"{'1' * 5000} 4 1 1 1 1\n1e30 4 1 1 1 1\n"),
    ("iozone", IOZONE.strip() + " x" * 40 + "\n1024 4 " + "1 " * 41 + "\n"),
    ("iozone", "Children see throughput for " + "1" * 5000 + " readers = 5 kB/sec\n"),
    ("iozone", f"\tRecord Size {'1' * 5000} kB\n\tFile size set to {'1' * 5000} kB\n\t{'1' * 5000} cores x 1.6GHz\n"),
    ("iozone", f"iozone -t{'1' * 5000} -s{'1' * 5000}k\n"),
    ("time", f"real 1\nuser 1\nsys 1\nExit status: {'1' * 5000}\n"),
    ("mpstat", f"21:16:11 CPU %usr\n21:16:12 {'1' * 5000} 1\n"),
    ("fio-lat-log", f"{'1' * 5000}, 5, 0, 4096\n"),
    ("fio-json", '{"jobs": [{"jobname": "a", "error": ' + "1" * 5000 + "}]}"),
    ("fio-json", '{"jobs": [{"read": {"runtime": 5}}], "timestamp_ms": ' + "1" * 399 + "}"),
    ("fio-json", '{"jobs": [{"read": {"total_ios": 1, "lat_ns": {"max": 5, "N": -3, "stddev": 2}}}]}'),
    ("fio-json", '{"jobs": [{"read": {"total_ios": 1, "lat_ns": {"max": 5, "bins": {"²": 1, "5": 1e308}}}}]}'),
    ("fio-json", '{"x": ' + "[" * 100_000),
    ("fio-json", '{"x":[\n' * 2000),
    ("sysstat-json", '{"sysstat": {"hosts": [{"statistics": [{"disk": [{"tps": ' + "1" * 5000 + "}]}]}]}}"),
    ("csv", "setting,round,iops\nround,0,1\nround_,0,2\n"),
    ("csv", "setting,round,iops,^.*$,*\n^.*$,0,1,2,3\n*,0,2,3,4\n"),
    ("mmtests", "bench\n         ^.*$     round\n" + MMTESTS),
    ("csv", "setting,round,iops\n" + "a,0,1e308\nb,0,5e-324\na,1,5e-324\nb,1,1e308\n"),
    ("csv", "setting,round,iops\n" + "".join(f"a,{n},1e308\nb,{n},1.7e308\n" for n in range(9))),
    ("csv", "setting,round,iops\n" + "".join(f"a,{n},-1.7e308\nb,{n},1.7e308\na,{n + 9},1e308\n" for n in range(9))),
]


@pytest.mark.parametrize(("name", "text"), CRASHED, ids=lambda value: str(value)[:12])
def test_what_once_crashed(name: str, text: str) -> None:
    read(text.encode(), name, f"x_{name.split('-')[1]}.1.log" if name.endswith("log") else "any.txt")


def test_the_command_line_ends_in_one_line_and_status_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "any.txt"
    path.write_text(FS_MARK + f"1 {'9' * 400} 51200 600 7000\n")
    assert invoke(["show", str(path)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") <= 2 and f"{path}:2, column Count: '{'9' * 40}' is not a number" in " ".join(said.split())


@pytest.mark.parametrize(
    ("word", "value"),
    [
        *(("1,234.5", 1234.5), ("4.95%", 4.95), (".5", 0.5), ("5.", 5.0), ("-1e3", -1000.0), ("1e308", 1e308)),
        *(("e5", None), (".", None), (".e5", None), ("", None), ("1e309", None), ("12,34", None), ("nan", None)),
        *(("9" * 64, 1e64), ("9" * 65, None), ("\u0661", None), ("1_0", None), ("%", None)),
    ],
)
def test_a_number_is_finite_and_short(word: str, value: float | None) -> None:
    assert number(word) == value
    assert is_number(word) == (value is not None and "%" not in word)


def test_a_whole_number_has_at_most_15_digits() -> None:
    assert whole_number("9" * 15) == 10**15 - 1
    assert [whole_number(word) for word in ("9" * 16, "-1", "1.0", "\u00b2", "\u0661", "")] == [None] * 6


FILLERS = (" ", "1,", "a ")
FILLERS_LONG = ("1", ".", "a", "1 ", ":", "(1", "Rate ")
LINES_LOOKED_AT = 3
PLACES_LOOKED_AT = 3


def sample_of_each_format() -> dict[str, Path]:
    return {one.name: sample for sample in SAMPLES for one in formats_of(Source(sample))}


def spread_over(many: list[str], most: int) -> list[str]:
    return many[:: max(1, len(many) // most)][:most]


def stretched(text: str, filler: str, characters: int) -> str:
    """The text, and some of its lines again with so much of the filler at some of their places."""
    lines = [line for line in dict.fromkeys(text.split("\n")) if line.strip()]
    made = []
    for line in [*lines[:1], *spread_over(lines[1:], LINES_LOOKED_AT)]:
        words = line[:500].split(" ")
        for place in range(0, len(words) + 1, max(1, len(words) // PLACES_LOOKED_AT)):
            made.append(" ".join([*words[:place], filler * (characters // len(filler)), *words[place:]]))
    return "\n".join([text, *made])


@pytest.mark.parametrize(
    "filler", [*FILLERS, *(pytest.param(filler, marks=pytest.mark.long) for filler in FILLERS_LONG)]
)
def test_patterns_take_linear_time(filler: str, tmp_path: Path) -> None:
    """Each line of each sample with one part of it stretched, to what is just short enough to be read."""
    for name, sample in sample_of_each_format().items():
        if sample.suffix == ".txt":
            text = sample.read_text()

            def of_size(size: int, name: str = name, sample: Path = sample, text: str = text) -> Callable[[], object]:
                path = tmp_path / f"{size}{sample.name}"
                path.write_text(stretched(text, filler, size))
                return lambda: parsed(path, name)

            assert_linear(of_size, 12 * KIB)


def many_blank_lines(n: int) -> str:
    return "\n" * n * 50


def many_spaces(n: int) -> str:
    return " " * n * 256


def many_unclosed_objects(n: int) -> str:
    return '{"x": [\n' + '{"y": [1, 1, 1, 1, 1, 1],\n' * n


def many_results(n: int) -> str:
    return '{"jobs": [{"jobname": "a", "read": {"total_ios": 1}}]}\n' * n


def many_braces(n: int) -> str:
    return "{\n" * n


def many_facts(n: int) -> str:
    return "".join(f"k{one}=1\n" for one in range(n)) + (IOSTEST + "bsr 1 1 100 100\n\n") * n


def many_tables(n: int) -> str:
    return (FS_MARK + "1 1000 51200 600 7000\n2 2000 51200 601 7000\n\n") * n


def many_problems(n: int) -> str:
    return "".join(IOZONE + f" {one} 4 1 1\n\n" for one in range(n))


def wide_iozone(n: int) -> str:
    return IOZONE.strip("\n") + " x" * n + "\n" + ("1024 4" + " 1" * (n // 2) + "\n") * 10


def many_columns(n: int) -> str:
    columns = [f"m{one}" for one in range(n)]
    return f"setting,round,{','.join(columns)}\n" + "".join(f"{s},1,{','.join('1' * n)}\n" for s in "ab")


def many_devices(n: int) -> str:
    return "Device tps kB/s\n" + "".join(f"sd{one} 1.0 2.0\n" for one in range(n))


@pytest.mark.parametrize(
    ("name", "make", "size"),
    [
        *(
            pytest.param(name, make, 300, marks=pytest.mark.long)
            for name in FORMATS
            for make in (many_spaces, many_blank_lines)
        ),
        *(("fio-json", make, 2000) for make in (many_unclosed_objects, many_braces)),
        ("fio-json", many_results, 300),
        ("iostest", many_facts, 500),
        ("fs_mark", many_tables, 500),
        ("iozone", many_problems, 500),
        ("iozone", wide_iozone, 2000),
        ("csv", many_columns, 2000),
        ("iostat", many_devices, 400),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_files_take_linear_time(name: str, make: Callable[[int], str], size: int, tmp_path: Path) -> None:
    def of_size(size: int) -> Callable[[], object]:
        path = tmp_path / (f"{size}_lat.1.log" if name.endswith("log") else f"{size}.txt")
        path.write_text(make(size))
        return lambda: parsed(path, name)

    assert_linear(of_size, 4 * size)


@pytest.mark.parametrize("part", ["<td ", "<td>", "<tr ", "</tr", "<table ", "<td colspan=9"])
def test_rows_of_html_take_linear_time(part: str) -> None:
    def of_size(size: int) -> Callable[[], object]:
        row = "<tr>" + part * (size // len(part))
        return lambda: [*with_bars(enumerate([row] * 20, 1))]

    assert_linear(of_size, ROW_CHARS_MAX - KIB)


def table_of(settings: int, workloads: int, rounds: int = 2) -> str:
    rows = (
        f"s{s},w{w},{r},{(7 * s + r) % 11 + 1}"
        for s in range(settings)
        for w in range(workloads)
        for r in range(rounds)
    )
    return "\n".join(["setting,workload,round,iops", *rows])


@pytest.mark.parametrize("shape", ["settings", "workloads", "rounds"])
def test_what_is_shown_takes_linear_time(shape: str, tmp_path: Path) -> None:
    def of_size(size: int) -> Callable[[], object]:
        path = tmp_path / f"{size}.csv"
        path.write_text(table_of(**({"settings": 2, "workloads": 1} | {shape: size})))
        return lambda: render(open_run(path), "json")

    assert_linear(of_size, 400)


@pytest.mark.parametrize(
    ("settings", "workloads", "said"),
    [(2001, 1, "more than 2,000 settings, such as 's2000'"), (1, 2001, "more than 2,000 workloads, such as 'w2000'")],
)
def test_more_settings_than_anybody_compares_are_refused(
    settings: int, workloads: int, said: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=said):
        opened(tmp_path / "any.csv", table_of(settings, workloads, 1))


def test_metrics_that_are_called_as_what_a_trial_has_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "any.csv"
    path.write_text("setting,iops,duration_ns,seed,status\na,1,5,2,7\nb,2,6,3,8\n")
    first = render(open_run(path), "csv").splitlines()[:2]
    assert first == [
        "trial,round,workload,setting,status,iops,duration_ns_,seed_,status_",
        "0,0,any,a,ok,1.0,5.0,2.0,7.0",
    ]


def test_names_are_no_patterns(tmp_path: Path) -> None:
    path = tmp_path / "any.csv"
    path.write_text("setting,round,^.*$,*\n^.*$,0,2,3\n*,0,3,4\n")
    assert render(open_run(path), "csv").splitlines()[0].endswith("status,^_*$,*")
    compared = compare_csv(path, "setting", "round", "^.*$")
    assert [(one.setting, one.metric) for one in compared] == [("*", "^.*$"), ("*", "*")]


def test_a_long_line_is_left_out_and_said(tmp_path: Path) -> None:
    path = tmp_path / "any.txt"
    row = "1 1000 51200 600 7000\n"
    run = opened(path, FS_MARK + row + "x" * (3 << 20) + "\n" + FS_MARK + row)
    assert run.metrics.filter(key="files_per_s")["value"].to_list() == [600.0, 600.0]
    assert f"{path}:3: the line is longer than 16 KiB, left out" in run.problems


@pytest.mark.parametrize(
    ("where", "limit", "name", "text", "said"),
    [
        (source, "TEXT_BYTES_MAX", "fs_mark", FS_MARK + "\n" * 200, "larger than"),
        (source, "WHOLE_BYTES_MAX", "fio-json", " " * 200 + "{}", "larger than"),
        (source, "VALUES_MAX", "sysstat-json", '{"sysstat": [' + "1," * 200 + "1]}", "about 202 values"),
        (results, "FIGURES_MAX", "fs_mark", FS_MARK + "1 1000 51200 600 7000\n" * 200, "more than 100 figures"),
    ],
)
def test_a_file_of_more_than_there_is_memory_for_is_refused(
    where: object, limit: str, name: str, text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(where, limit, 100)
    path = tmp_path / "any.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        open_run(path, name)


def test_the_rest_of_a_report_with_endless_json_around_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "any.json"
    report = json.dumps({"fio version": "fio-3.33", "jobs": [{"jobname": "a", "read": {"total_ios": 7, "runtime": 1}}]})
    assert render(opened(path, '{"x": [\n' * 100 + report + "\n{"), "json")


def test_what_people_write_is_looked_for_in_short_texts(tmp_path: Path) -> None:
    written = "Before: 4209 IOPS\nAfter: 5200 IOPS\n"
    log = tmp_path / "log.txt"
    log.write_text(written)
    assert open_run(log).settings == ["Before", "After"]
    log.write_text("gcc -c -O2 -o file.o file.c\n" * 5000 + written)
    with pytest.raises(InputError, match="it is long, and what people write themselves is looked for in short texts"):
        open_run(log)
