"""Texts of traces as people have them, small ones, each with the figures that are right."""

import itertools
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from iolab.base.errors import InputError
from iolab.presentation.cli.invoke import invoke
from iolab.studies.trace import export, study, trace_of
from iolab.studies.trace.characterise import STREAMS_MAX, characterise
from iolab.studies.trace.export import frames
from iolab.studies.trace.trace_dat import CHUNK_PAGES, PAGE_BYTES, TraceDat

Of = Callable[..., dict[str, Any]]


@pytest.fixture
def of(tmp_path: Path) -> Of:
    """The figures of a text."""
    numbers = itertools.count()

    def figures(text: str, gaps: str | None = None) -> dict[str, Any]:
        path = tmp_path / f"{next(numbers)}.txt"
        path.write_text(text)
        return study(trace_of([path], gaps=gaps))

    return figures


def rows_of(text: str, path: Path) -> Any:
    path.write_text(text)
    (rows,) = frames(trace_of([path]))
    return rows


def latencies(figures: dict[str, Any], stage: str = "device_ns") -> tuple[int, float, int]:
    values = figures["all"][stage]
    return values["count"], values["mean"], values["max"]


BIOSNOOP = "TIME(s)     COMM           PID    DISK    T SECTOR     BYTES   LAT(ms)\n"
IOSNOOP = "STARTs          ENDs            COMM         PID    TYPE DEV      BLOCK        BYTES     LATms\n"
D_AND_C = (
    "  8,0 0 {} {}.000000000 100 D R {} + 8 [a]\n",
    "  8,0 0 {} {}.000100000 0 C R {} + 8 [0]\n",
)


@pytest.mark.parametrize("at", ["0.000004", "0.000000", "1.000004", "5000.5"])
def test_a_line_of_biosnoop_is_the_end_of_an_io_whenever_its_clock_began(at: str, of: Of) -> None:
    figures = of(f"{BIOSNOOP}{at}    a      1950   xvda1   W 13092560   4096       0.74\n")
    assert latencies(figures) == (1, 740_000, 740_000)
    assert figures["slowest"][0]["arrived_ns"] == 0
    assert figures["elapsed_ns"] == 740_000
    assert figures["slowest"][0]["device"] == "xvda1"


@pytest.mark.parametrize("quote", ["", '"'])
def test_biosnoop_as_a_csv_file_is_the_same_trace(quote: str, of: Of) -> None:
    rows = [BIOSNOOP.split(), ["0.5", "my_task", "1950", "xvda1", "W", "13092560", "4096", "0.74"]]
    figures = of("".join(",".join(f"{quote}{entry}{quote}" for entry in row) + "\n" for row in rows))
    assert figures["format"] == "biosnoop"
    assert latencies(figures) == (1, 740_000, 740_000)
    assert figures["slowest"][0]["device"] == "xvda1"


def test_letters_and_the_queues_time_of_biosnoop_are_read(of: Of) -> None:
    head = "TIME(s)     COMM           PID    DISK    T    SECTOR     BYTES  QUE(ms) LAT(ms)\n"
    lines = [("WS", 8, 0.010), ("RA", 16, 0.250), ("FF", 0, -1.0), ("DS", 32, 0.0), ("FWFS", 64, 1.5)]
    text = "".join(
        f"0.00{number}000 fio 7 sda {letters} {sector} 4096 {queue:7.3f} 0.100\n"
        for number, (letters, sector, queue) in enumerate(lines, 1)
    )
    figures = of(head + text)
    told = {group["name"]: group["count"] for group in figures["by_operation"]}
    assert told == {"write": 2, "read": 1, "flush": 1, "discard": 1}
    assert latencies(figures) == (5, 100_000, 100_000)
    assert latencies(figures, "queue_ns") == (4, 440_000, 1_500_000)
    assert latencies(figures, "whole_ns")[2] == 1_600_000
    assert not {"queue_ns", "whole_ns"} & set(figures["absent"])


@pytest.mark.parametrize("head", [BIOSNOOP, "", "$ ./biosnoop\nTracing... Ctrl-C to end.\n"])
def test_biosnoop_is_read_without_its_headings_and_with_processes_that_it_missed(head: str, of: Of) -> None:
    figures = of(
        f"{head}0.001000    a daemon       1950   xvda1   W 13092560   4096       0.74\n"
        "0.002000    ?              0              R 0          8192       0.50\n"
        "0.003000    ?              0      ?       R ?          8192       1.00\n"
        "0.004000    fio            ?      sda     ? 64         512        0.01\n"
    )
    assert (figures["format"], figures["malformed"]) == ("biosnoop", 0)
    assert latencies(figures) == (4, 562_500, 1_000_000)
    devices = {one["name"]: (one["bytes_read"], one["bytes_written"]) for one in figures["devices"]}
    assert devices == {"xvda1": (0, 4096), "?": (16384, 0), "sda": (0, 0)}
    assert any("missed who made some requests" in note for note in figures["notes"])


def test_the_queues_time_is_read_without_headings_too(of: Of) -> None:
    figures = of("0.001000 fio 7 sda WS 8 4096   0.010   0.100\n0.002000 fio 7 sda R 8 4096  -1.000   0.100\n")
    assert latencies(figures) == (2, 100_000, 100_000)
    assert latencies(figures, "queue_ns") == (1, 10_000, 10_000)


@pytest.mark.parametrize(
    "line", ["1.5 fio 7 sda R 8 4096", "1 fio 7 sda R 8 4096 0.1", "0.1 7 R 8 4096 0.1", "0.1 0.2"]
)
def test_other_lines_are_not_biosnoop_without_headings(line: str, of: Of) -> None:
    with pytest.raises(InputError, match="not a trace that iolab knows"):
        of(f"{line}\n" * 3)


def test_iosnoop_is_read_where_it_has_times(tmp_path: Path, of: Of) -> None:
    figures = of(IOSNOOP + "1.000000 1.001320 my task 1809 W 202,1 17039968 4096 1.32\n")
    assert (figures["format"], figures["devices"][0]["device"]) == ("iosnoop", "202:1")
    assert latencies(figures) == (1, 1_320_000, 1_320_000)
    path = tmp_path / "untimed.txt"
    path.write_text("COMM         PID    TYPE DEV      BLOCK        BYTES     LATms\nfio 1 R 8,0 8 4096 0.10\n")
    with pytest.raises(InputError, match="iosnoop -ts"):
        study(trace_of([path]))


def test_any_number_of_devices_is_counted_each(of: Of) -> None:
    lines = (f"{1000 + number},R,{number * 4096},4096,{number}\n" for number in range(3000))
    figures = of("".join(lines))
    assert len(figures["devices"]) == 3000
    assert {device["reads"] for device in figures["devices"]} == {1}
    named = of("".join(f"1{number:017},host{number % 300},{number % 7},Read,0,512,10\n" for number in range(2100)))
    assert len(named["devices"]) == 2100
    assert {device["name"] for device in named["devices"]} >= {"host0_0", "host299_6"}


def test_headings_name_no_device_and_numbers_of_the_trace_are_its_own(tmp_path: Path) -> None:
    head = "device_id,opcode,offset,length,timestamp\n"
    text = head + "0,R,4096,4096,1577808000000046\n1,W,8192,4096,1577808000000426\n"
    rows = rows_of(text, tmp_path / "a.csv")
    assert rows["device"].to_list() == ["0", "1"]
    figures = study(trace_of([tmp_path / "a.csv"]))
    assert [device["name"] for device in figures["devices"]] == ["0", "1"]


def test_hosts_and_names_are_one_device_in_all_files_of_a_trace(tmp_path: Path) -> None:
    for number, host in enumerate(("usr", "src1", "usr")):
        line = f"12816637200306162{number},{host},0,Read,7014609920,24576,41286\n"
        (tmp_path / f"{number}.csv").write_text(line)
    trace = trace_of([tmp_path / f"{number}.csv" for number in range(3)])
    figures = study(trace)
    assert {device["name"]: device["reads"] for device in figures["devices"]} == {"usr_0": 2, "src1_0": 1}
    assert {name for rows in frames(trace) for name in rows["device"]} == {"usr_0", "src1_0"}


def test_fields_in_quotation_marks_and_of_two_numbers_are_read(of: Of) -> None:
    figures = of('"419","W","8792731648","16384","1577808144360767"\n')
    assert (figures["format"], figures["devices"][0]["name"]) == ("Alibaba", "419")
    fiu = "329131208190249 4892 syslogd 904265560 8 W {} 0 531e779d\n"
    assert [device["device"] for device in of(fiu.format(6) + fiu.format(8))["devices"]] == ["6:0", "8:0"]


def test_a_mails_marks_are_no_part_of_a_line(of: Of) -> None:
    text = "".join(line.format(number, number, 8) for number, line in enumerate(D_AND_C, 1))
    quoted = "> " + text.strip("\n").replace("\n", "\n> ") + "\n"
    assert latencies(of(f"Hi all,\n\n{quoted}> >\n")) == latencies(of(text))


@pytest.mark.parametrize(
    ("name", "text", "operation", "latency_ns"),
    [
        ("SPC", "0,20941264,8192,W,0.551706\n0,20939840,8192,r,0.554041\n", {"write", "read"}, None),
        ("Systor '17", "1456095588.064894000,0.000425000,R,3,1234,4096\n", {"read"}, 425_000),
        ("Systor '17", "Timestamp,Response,IOType,LUN,Offset,Size\n1456095588.064894,,W,3,0,512\n", {"write"}, None),
    ],
)
def test_further_public_traces_are_known(
    name: str, text: str, operation: set[str], latency_ns: int | None, of: Of
) -> None:
    figures = of(text)
    assert (figures["format"], figures["malformed"]) == (name, 0)
    assert {group["name"] for group in figures["by_operation"]} == operation
    whole = figures["all"]["whole_ns"]
    assert (whole and whole["max"]) == latency_ns


def test_what_perf_lost_is_lost_in_its_text_too(of: Of) -> None:
    """As `perf script --show-lost-events` prints it; the completion that is missing may be among them."""
    issue = "fio 1 [000] {}: block:block_rq_issue: 8,0 R 4096 () 64 + 8 [fio]\n"
    end = "swapper 0 [00{}] {}: block:block_rq_complete: 8,0 R () 64 + 8 [0]\n"
    text = issue.format("1.000000") + "swapper     0 [001] 2.000000: PERF_RECORD_LOST lost 11\n"
    text += end.format(1, "3.000094") + issue.format("9.000000") + end.format(1, "9.000300")
    figures = of("swapper 0 [001] 0.5: block:block_plug: [x]\n" + text)
    assert (figures["malformed"], figures["events_lost"], figures["losses"]) == (0, 11, 1)
    assert latencies(figures) == (1, 300_000, 300_000)


@pytest.mark.parametrize("line", ["CPU:1 [LOST 3 EVENTS]", "CPU:1 [3 EVENTS DROPPED]"])
def test_every_tools_words_for_lost_events_are_known(line: str, of: Of) -> None:
    event = "fio-1 [001] ..... {}: block_rq_issue: 8,0 R 4096 () {} + 8 [fio]\n"
    figures = of(event.format("1.0", 8) + line + "\n" + event.format("1.5", 64))
    assert (figures["malformed"], figures["events_lost"], figures["losses"]) == (0, 3, 1)


def test_each_device_numbers_its_events_on_each_cpu(of: Of) -> None:
    lines = [
        (0, 1, "0.000000000", "D", 8), (16, 1, "0.000100000", "D", 8), (0, 2, "0.001000000", "C", 8),
        (0, 3, "0.002000000", "D", 16), (0, 4, "0.003000000", "C", 16), (16, 2, "0.004000000", "C", 8),
    ]  # fmt: skip
    text = "".join(
        f"8,{minor} 0 {number} {at} 1 {what} R {sector} + 8 [0]\n" for minor, number, at, what, sector in lines
    )
    figures = of(text)
    assert (figures["losses"], figures["unknown_lost"]) == (0, 0)
    assert latencies(figures) == (3, (1_000_000 + 1_000_000 + 3_900_000) / 3, 3_900_000)


def test_a_filtered_text_has_all_its_times_and_a_gap_has_none_across(of: Of) -> None:
    filtered = "".join(
        line.format(7 * number + 3 * end, number, 8 * number)
        for number in range(1, 50)
        for end, line in enumerate(D_AND_C)
    )
    figures = of(filtered)
    assert (figures["losses"], latencies(figures)) == (0, (49, 100_000, 100_000))
    assert any("the text was filtered" in note for note in figures["notes"])
    assert of(filtered, "lost")["all"]["device_ns"] is None
    gap = "".join(
        line.format(2 * number + end + (1000 if number > 25 else 0), number, 8 * number)
        for number in range(1, 50)
        for end, line in enumerate(D_AND_C)
    )
    assert (of(gap)["losses"], of(gap)["events_lost"]) == (1, 1000)
    assert of(gap, "filtered")["losses"] == 0
    with pytest.raises(InputError, match="kind of gaps"):
        of(gap, "gone")


def test_characterise_has_the_depth_of_a_filtered_text(tmp_path: Path) -> None:
    steps = sorted((number + end * 3.5, number, end) for number in range(1, 200) for end in (0, 1))
    text = "".join(
        f"  8,0 0 {7 * place} {at:.9f} 100 {'DC'[end]} R {8 * number} + 8 [{'a0'[end]}]\n"
        for place, (at, number, end) in enumerate(steps, 1)
    )
    (tmp_path / "text").write_text(text)
    command = ["characterise", str(tmp_path / "text"), "-o", str(tmp_path / "own.toml"), "--gaps"]
    assert invoke([*command, "lost"]) == 2
    assert invoke([*command, "filtered"]) == 0
    assert "queue_depth = 32" in (tmp_path / "own.toml").read_text()


FAILED = """\
  8,0 0 1 0.000000000 100 Q R 8 + 8 [a]
  8,0 0 2 0.000001000 100 D R 8 + 8 [a]
  8,0 0 3 0.001000000 0 C R 8 + 8 [-5]
  8,0 0 4 0.002000000 100 Q W 80 + 8 [a]
  8,0 0 5 0.002001000 100 D W 80 + 8 [a]
  8,0 0 6 0.003000000 0 C W 80 + 8 [0]
"""


def test_requests_that_failed_are_said_first_and_can_be_asked_for(
    of: Of, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (failed,) = of(FAILED)["failed"]
    assert (failed["operation"], failed["error"], failed["count"], failed["first_ns"]) == ("read", -5, 1, 1_000_000)
    (tmp_path / "eio.txt").write_text(FAILED)
    assert invoke(["trace", str(tmp_path / "eio.txt")]) == 0
    shown = capsys.readouterr().out
    assert re.match(r"● 1 of \d+ requests failed \(read, EIO \(-5\)\); ", shown)
    assert "! 1 request failed: read, EIO (-5)" in shown
    assert invoke(["trace", str(tmp_path / "eio.txt"), "--failed", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["requests"]
    assert (row["sector"], row["error"]) == (8, -5)
    (tmp_path / "fine.txt").write_text("".join(FAILED.splitlines(keepends=True)[3:]))
    assert invoke(["trace", str(tmp_path / "fine.txt"), "--failed"]) == 2
    assert "no request failed" in capsys.readouterr().err


def test_completions_alone_are_no_idle_device(of: Of) -> None:
    figures = of("".join(D_AND_C[1].format(number, number, 8 * number) for number in range(1, 20)))
    (device,) = figures["devices"]
    assert (device["idle_share"], device["depth_mean"], device["depth_max"]) == (None, None, None)
    assert "depth_max" in figures["absent"]


def test_zeroes_are_no_bytes_that_are_written(of: Of) -> None:
    line = "fio-1 [000] ..... {}: block_rq_{}: 8,0 {} {}() {} + 8 [{}]\n"
    text = "".join(
        line.format(f"{number}.{end}", what, letters, size, 8 * number, word)
        for number, letters in enumerate(("WZS", "WS"), 1)
        for end, what, size, word in ((0, "issue", "4096 ", "fio"), (1, "complete", "", "0"))
    )
    (device,) = of(text)["devices"]
    assert (device["writes"], device["bytes_written"]) == (1, 4096)
    assert (device["zeroes"], device["bytes_zeroed"]) == (1, 4096)
    assert sum(of(text)["maps"]["bytes_written"]) == 4096


def test_percentiles_are_shown_where_enough_requests_lie_beyond(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for count, known in ((99, set()), (100, {"p90"}), (1000, {"p90", "p99"}), (10_000, {"p90", "p99", "p99.9"})):
        lines = (f"{number}.000000 a 1 sda R {8 * number} 4096 0.{number % 1000:03}\n" for number in range(count))
        (tmp_path / "a.txt").write_text(BIOSNOOP + "".join(lines))
        assert invoke(["trace", str(tmp_path / "a.txt")]) == 0
        out = capsys.readouterr().out
        assert {name for name in ("p90", "p99", "p99.9", "p99.99") if f" {name} " in out} == known
        assert "e+0" not in out


def test_a_log_for_fio_of_lines_of_ios_is_in_the_order_of_time_and_tells_devices_apart(tmp_path: Path) -> None:
    lines = [
        "1.000000 a 1 sda R 8 4096 0.100\n",
        "2.000000 a 1 sdb W 16 512 1500.000\n",
        "9.0 a 1 sda R 24 4096 7500.0\n",
    ]
    (tmp_path / "snoop").write_text(BIOSNOOP + "".join(lines))
    trace = trace_of([tmp_path / "snoop"])
    export(trace, "iolog", tmp_path / "log")
    (again,) = frames(trace_of([tmp_path / "log"]))
    (rows,) = frames(trace)
    rows = rows.sort("issued_ns")
    assert again["sector"].to_list() == rows["sector"].to_list() == [16, 8, 24]
    since = ((rows["issued_ns"] - rows["issued_ns"][0]) // 1000).to_list()
    assert (again["arrived_ns"] // 1000).to_list() == since
    assert again["device"].n_unique() == 2
    export(trace, "blktrace", tmp_path / "files")
    (back,) = frames(trace_of([tmp_path / "files"]))
    for name in ("sector", "sectors", "operation", "pid"):
        assert back.sort("sector")[name].to_list() == rows.sort("sector")[name].to_list()
    took = [(one["completed_ns"] - one["issued_ns"]).to_list() for one in (back.sort("sector"), rows.sort("sector"))]
    assert took[0] == took[1] == [100_000, 1_500_000_000, 7_500_000_000]


def test_the_short_form_has_the_figures_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.txt").write_text(FAILED)
    assert invoke(["trace", str(tmp_path / "a.txt"), "--json"]) == 0
    whole = json.loads(capsys.readouterr().out)
    assert invoke(["trace", str(tmp_path / "a.txt"), "--json", "--short"]) == 0
    short = json.loads(capsys.readouterr().out)
    assert set(whole) - set(short) == {"maps"}
    assert set(whole["all"]["whole_ns"]) - set(short["all"]["whole_ns"]) == {"histogram"}
    assert invoke(["trace", str(tmp_path / "a.txt"), "--short"]) == 2


def test_tasks_of_one_name_are_streams_of_their_own(tmp_path: Path) -> None:
    lines = []
    for number in range(400):
        lines.append(f"{number * 1000},1,fio,{(number * 7919 % 1000) * 4096},4096,R")
        lines.append(f"{number * 1000 + 300},2,fio,{(number * 104729 % 1000) * 4096},4096,R")
        lines.append(f"{number * 1000 + 600},3,fio,{2**30 + number * 65536},65536,W")
        lines.append(f"{number * 1000 + 800},3,fio,{(number * 611953 % 1000) * 4096},4096,R")
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    found = characterise(trace_of([tmp_path / "a.csv"], "time:us,pid,process,offset:B,size:B,operation"))
    told = sorted((one.name, one.pattern == "sequential", one.read_percent) for one in found)
    assert told == [("fio-1", False, 100), ("fio-2", False, 100), ("fio-3", False, 100), ("fio-3", True, 0)]


def test_sequential_tasks_beyond_the_first_are_not_mixed_with_random_ones(tmp_path: Path) -> None:
    lines = []
    for task in range(1, 31):
        for number in range(60 - task):
            offset = task * 2**30 + (number if task % 2 else number * 7919 % 1000) * 4096
            lines.append(f"{number * 1000 + task},{task},fio,{offset},4096,R")
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    found = characterise(trace_of([tmp_path / "a.csv"], "time:us,pid,process,offset:B,size:B,operation"))
    assert len(found) == STREAMS_MAX
    assert sum(one.requests for one in found) == len(lines)
    assert {one.pattern == "sequential" for one in found if one.name == "others"} == {True, False}


HISTOGRAMS: dict[str, tuple[str, list[Any]]] = {
    "bcc": (
        """Tracing block device I/O... Hit Ctrl-C to end.

disk = 'sda'
     usecs               : count     distribution
        64 -> 127        : 0        |                                        |
       128 -> 255        : 30       |**********                              |
       256 -> 511        : 70       |****************************************|

disk = b'sdb'
     usecs               : count     distribution
       512 -> 1023       : 5        |****************************************|
""",
        [("disk = sda", 100, [(128_000, 256_000, 30), (256_000, 512_000, 70)]), ("disk = sdb", 5, None)],
    ),
    "bpftrace": (
        """@usecs[sda]:
[512, 1K)             10 |@@@@@               |
[1K, 2K)              90 |@@@@@@@@@@@@@@@@@@@@|

@usecs[sda]:
[512, 1K)              1 |@@@@@@@@@@@@@@@@@@@@|
""",
        [("sda", 101, [(512_000, 1_024_000, 11), (1_024_000, 2_048_000, 90)])],
    ),
    "quoted": (
        "Fred wrote:\n> > @usecs[read]:\n> > [4, 8)  20 |@@|\n> >\n> > @usecs[write]:\n> > [8, 16) 5 |@|\n",
        [("read", 20, [(4_000, 8_000, 20)]), ("write", 5, [(8_000, 16_000, 5)])],
    ),
    "titles": (
        "before:\n@usecs:\n[4, 8)  20 |@@|\n[8, 16) 5 |@|\n== after ==\n@usecs:\n[8, 16) 50 |@@|\n",
        [("before", 25, [(4_000, 8_000, 20), (8_000, 16_000, 5)]), ("after", 50, [(8_000, 16_000, 50)])],
    ),
    "sentence above": (
        "Here an example:\n     msecs               : count     distribution\n   2 -> 3   : 30   |**|\n",
        [("", 30, [(2_000_000, 4_000_000, 30)])],
    ),
    "iolatency": (
        """Tracing block I/O. Output every 1 seconds. Ctrl-C to end.

  >=(ms) .. <(ms)   : I/O      |Distribution                          |
       0 -> 1       : 2104     |######################################|
       1 -> 2       : 280      |######                                |
""",
        [("", 2384, [(0, 1_000_000, 2104), (1_000_000, 2_000_000, 280)])],
    ),
    "operations": (
        """operation = read
     usecs               : count     distribution
         2 -> 3          : 40       |****************************************|

operation = write
     usecs               : count     distribution
         4 -> 7          : 20       |****************************************|
avg = 5 usecs, total: 100 usecs, count: 20
""",
        [("operation = read", 40, [(2_000, 4_000, 40)]), ("operation = write", 20, [(4_000, 8_000, 20)])],
    ),
    "map": (
        "@queue_us[sync]: \n[2k, 4k)   30 |@@@@@@@@@@|\n",
        [("queue[sync]", 30, [(2_048_000, 4_096_000, 30)])],
    ),
    "clock": (
        """     msecs               : count     distribution
         2 -> 3          : 30       |****************************************|
18014398509481984 -> 36028797018963967 : 3 |****            |
""",
        [("", 30, [(2_000_000, 4_000_000, 30)])],
    ),
}


@pytest.mark.parametrize("name", HISTOGRAMS)
def test_histograms_are_distributions_and_no_requests(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, expected = HISTOGRAMS[name]
    path = tmp_path / "a.txt"
    path.write_text(text)
    assert invoke(["trace", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["histograms"]
    for one, (title, count, buckets) in zip(found, expected, strict=True):
        assert (one["name"], one["count"]) == (title, count)
        assert buckets is None or [tuple(bucket) for bucket in one["histogram_ns"]] == buckets
    assert invoke(["trace", str(path)]) == 0
    assert "p50 from" in capsys.readouterr().out
    assert invoke(["trace", str(path), "--to", "parquet", "-o", str(tmp_path / "b")]) == 2
    assert "holds histograms and no requests" in capsys.readouterr().err


def test_a_histogram_without_its_unit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Show names iolab trace, which doesn't send the user back."""
    path = tmp_path / "a.txt"
    path.write_text("@:\n[4, 8)  20 |@@|\n[8, 16) 5 |@|\n")
    assert invoke(["trace", str(path)]) == 2
    refused = capsys.readouterr().err
    assert "looks like a histogram" in refused and "such as '@usecs:'" in refused and "iolab trace" not in refused


def test_a_trace_is_frames_in_python() -> None:
    import iolab

    trace = iolab.trace(Path(__file__).parent / "traces" / "trace-cmd-7.dat")
    assert trace.requests.height == trace.figures["all"]["count"] == 54
    by_operation = trace.by("operation")
    assert by_operation["count"].sum() == 54
    known = (
        trace.requests.filter(trace.requests["operation"] == "write").select("queued_ns", "completed_ns").drop_nulls()
    )
    mean = (known["completed_ns"] - known["queued_ns"]).mean()
    assert by_operation.filter(by_operation["name"] == "write")["whole_ns_mean"].item() == pytest.approx(mean)
    assert trace.by("process")["name"].to_list()[0] in trace.requests["process"].to_list()
    assert (trace.devices.height, trace.slowest.height) == (1, 10)
    assert "Where the time went" in trace._repr_html_()
    assert "histogram" not in json.dumps(trace.figures)
    with pytest.raises(InputError, match="did you mean size"):
        trace.by("sizes")


FIXTURES = Path(__file__).parents[1] / "crates" / "measure" / "trace" / "tests" / "fixtures"


def test_a_packed_recording_holds_every_page_for_iolab_and_for_trace_cmd(tmp_path: Path) -> None:
    """The kernel's own pages of two CPUs, of which the second has none in a further file."""
    formats = sorted((FIXTURES / "formats").glob("block_*.txt"))
    head = TraceDat(
        header_page=(FIXTURES / "formats" / "header_page.txt").read_bytes(),
        header_event=b"",
        formats=[path.read_bytes() for path in formats],
        command_lines=b"1 init\n",
    )
    raw = [(FIXTURES / f"block.cpu{cpu}.raw").read_bytes() for cpu in (0, 1)]
    cpus = [[one[at : at + PAGE_BYTES] for at in range(0, len(one), PAGE_BYTES)] for one in raw]
    size = head.write(tmp_path / "a.dat", cpus)
    assert size == (tmp_path / "a.dat").stat().st_size < sum(map(len, raw))
    told = [line for line in (FIXTURES / "block.txt").read_text().splitlines() if ": block_" in line]
    figures = study(trace_of([tmp_path / "a.dat"]))
    assert figures["format"] == "trace.dat 7"
    assert figures["records"] - figures["records_skipped"] == len(told)
    many = 3 * CHUNK_PAGES // len(cpus[0]) + 1
    head.write(tmp_path / "one.dat", [cpus[0], []])
    head.write(tmp_path / "many.dat", [cpus[0] * many, []])
    one, whole = (study(trace_of([tmp_path / name]))["records"] for name in ("one.dat", "many.dat"))
    assert whole == many * one > 0
    if shutil.which("trace-cmd") is not None:
        command = ["trace-cmd", "report", "-i", str(tmp_path / "a.dat")]
        shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
        assert sum(": block_" in line for line in shown.splitlines()) == len(told)


def test_biosnoop_with_times_of_day_in_a_post(of: Of) -> None:
    figures = of(
        "```sh\n$ sudo ./biosnoop -t\n"
        "TIMESTAMP    COMM           PID     DISK    T    SECTOR     BYTES   LAT(ms)\n"
        "17:58:57.814 mount          163467  sde     WSM  41944043   4096      1.422\n"
        "17:58:59.814 mount          163467  sde     WSM  41945067   4096      1.429\n"
        "```\n"
    )
    assert latencies(figures) == (2, 1_425_500, 1_429_000)
    assert figures["elapsed_ns"] == 2_000_000_000 + 1_422_000
    assert figures["malformed"] == 0


def test_stacks_below_events_of_perf_are_no_records(of: Of) -> None:
    figures = of(
        "dd 42 [001]   100.000100: block:block_rq_issue: 8,0 W 4096 () 2048 + 8 [dd]\n"
        "            7fffa5a2dc02 blk_update_request ([kernel.kallsyms])\n"
        "        6566322d30333762 [unknown] ([unknown])\n"
        "swapper 0 [001]   100.000600: block:block_rq_complete: 8,0 W () 2048 + 8 [0]\n"
    )
    assert latencies(figures) == (1, 500_000, 500_000)
    assert (figures["records"], figures["malformed"]) == (2, 0)


def test_no_time_lies_across_a_loss_without_its_time(of: Of) -> None:
    figures = of(
        "dd 42 [001]   100.000100: block:block_rq_issue: 8,0 W 4096 () 2048 + 8 [dd]\n"
        "PERF_RECORD_LOST lost 11\n"
        "swapper 0 [000]   102.000200: block:block_rq_complete: 8,0 W () 2048 + 8 [0]\n"
        "dd 42 [001]   104.000100: block:block_rq_issue: 8,0 W 4096 () 2056 + 8 [dd]\n"
        "swapper 0 [000]   104.000300: block:block_rq_complete: 8,0 W () 2056 + 8 [0]\n"
    )
    assert latencies(figures) == (1, 200_000, 200_000)
    assert figures["malformed"] == 0


def test_a_report_that_is_no_trace_is_called_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(
        "PID    COMM             D MAJ MIN DISK       I/O  Kbytes  AVGms\n9056   dd  W 253 0   vda  14 14336 138.1\n"
    )
    with pytest.raises(InputError, match="results in the format biotop, and no trace"):
        study(trace_of([path]))


def _biosnoop(lat_ms: float) -> str:
    rows = (
        f"{turn / 1000:.6f} postgres 2001 sda R {8 * turn} 8192 {lat_ms + turn % 7 / 100:.3f}\n" for turn in range(1500)
    )
    return BIOSNOOP + "".join(rows)


def _blkparse(lat_ms: float) -> str:
    lines = "  8,0 1 {} {:.9f} 1200 D R {} + 8 [a]\n", "  8,0 1 {} {:.9f} 0 C R {} + 8 [0]\n"
    at = (
        (place, turn / 1000 + place * (lat_ms + turn % 7 / 100) / 1000, turn)
        for turn in range(1500)
        for place in (0, 1)
    )
    events = sorted(at, key=lambda event: event[1])
    return "".join(lines[place].format(number, time, 8 * turn) for number, (place, time, turn) in enumerate(events, 1))


@pytest.mark.parametrize("text_of", [_biosnoop, _blkparse])
def test_texts_of_traces_are_compared_and_explained_as_traces(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text_of: Callable[[float], str]
) -> None:
    paths = [tmp_path / name for name in ("good", "bad")]
    for path, lat_ms in zip(paths, (0.3, 0.6), strict=True):
        path.write_text(text_of(lat_ms))
    assert invoke(["compare", *map(str, paths)]) == 0
    first = capsys.readouterr().out
    assert first.startswith("The second trace is slower in device mean (+90.")
    assert invoke(["explain", *map(str, paths)]) == 0
    assert "100 % in the device" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("line", "latency"),
    [
        ("{0}00000,usr,0,Read,{1},4096,{2}000", True),
        ("0.{0},0.000{2},R,0,{1},4096", True),
        ("0,R,{1},4096,15000{0}0000", False),
        ("1538{0},{1},8,0,1283", False),
        ("0,{1},4096,r,0.{0}", False),
    ],
    ids=["MSR Cambridge", "Systor '17", "Alibaba", "Tencent", "SPC"],
)
def test_public_traces_are_compared_and_explained_as_traces(
    line: str, latency: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of which half have no latency: that is said, and no column is compared."""
    for name, times in (("fast", 1), ("slow", 2)):
        length = 13 if line.startswith("{0}0000") else 6
        lines = [
            line.format((1281663720 * 10**3 if length == 13 else 10**5) + number, 8 * number, 100 * times + number % 7)
            for number in range(400)
        ]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    status = invoke(["compare", *(str(tmp_path / f"{name}.csv") for name in ("fast", "slow"))])
    printed = capsys.readouterr()
    assert (status == 0) == latency
    assert ("The second trace" in printed.out) if latency else "has no latency to compare" in printed.err
    assert (invoke(["explain", str(tmp_path / "slow.csv")]) == 0) == latency
    explained = capsys.readouterr()
    assert "defect" not in explained.err and ("100 % in the" in explained.out) == latency


def _bpftrace(first: int) -> str:
    counts = [10, 200, 500, 150, 20, 3]
    ranges = (f"[{first << place}, {first << place + 1})" for place in range(len(counts)))
    return "@usecs:\n" + "".join(f"{one:20}{n:8} |{'@':52}|\n" for one, n in zip(ranges, counts, strict=True))


def _hdr(step: float, unit: str) -> str:
    rows = [(step, 0.5, 500), (2 * step, 0.9, 900), (4 * step, 0.99, 990), (9 * step, 1.0, 1000)]
    lines = [f"{value:12.3f} {share:14.12f} {total:10} {1 / (1.0001 - share):14.2f}" for value, share, total in rows]
    return "\n".join(
        [f"       Value{unit}     Percentile TotalCount 1/(1-Percentile)", "", *lines, "#[Mean = 1.0]", ""]
    )


def test_two_histograms_are_compared_by_the_buckets_of_their_percentiles(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, first in (("old", 16), ("new", 32), ("like", 16)):
        (tmp_path / name).write_text(_bpftrace(first))
    assert invoke(["compare", str(tmp_path / "old"), str(tmp_path / "new"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["percentiles"]
    assert [(one["percentile"], one["difference"]) for one in found] == [(50, "higher"), (90, "higher")]
    assert (found[0]["baseline_ns"], found[0]["candidate_ns"]) == ([64_000, 128_000], [128_000, 256_000])
    assert invoke(["compare", str(tmp_path / "old"), str(tmp_path / "like")]) == 0
    assert "● p50 of like is in the same bucket: 64 to 128.0 µs" in capsys.readouterr().out
    assert invoke(["compare", str(tmp_path / "old"), str(tmp_path / "new"), "--fail-on", "slower"]) == 2


def test_percentiles_of_hdr_histogram_need_a_unit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, step, unit in (("old", 1.0, "(ms)"), ("new", 2.5, "(ms)"), ("none", 1.0, "")):
        (tmp_path / name).write_text(_hdr(step, unit))
    assert invoke(["compare", str(tmp_path / "old"), str(tmp_path / "new"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["percentiles"]
    assert [(one["percentile"], one["difference"]) for one in found] == [
        (50, "undecided"),
        (90, "higher"),
        (99, "higher"),
    ]
    assert found[1]["candidate_ns"] == [2_500_000, 5_000_000]
    assert invoke(["compare", str(tmp_path / "none"), str(tmp_path / "old")]) == 2
    assert "none:1: HdrHistogram's text states no unit of its values; write it" in capsys.readouterr().err
