"""Traces of block I/O: small recordings of the real tools, what is told of them, and their other forms."""

import bz2
import gzip
import json
import lzma
import os
import re
import shutil
import struct
import subprocess
import zlib
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import polars as pl
import pytest
from iolab.base.errors import InputError
from iolab.domain.workload.trace import TraceOptions
from iolab.files import experiment
from iolab.machines.system import tracefs
from iolab.presentation.cli.invoke import invoke
from iolab.presentation.report.over_time import Counts, How, fine, step_of, times
from iolab.studies.trace import export, study, trace_of
from iolab.studies.trace.characterise import characterise
from iolab.studies.trace.explain import explain_slow
from iolab.studies.trace.export import frames
from iolab.studies.trace.stretches import _judged

TRACES = Path(__file__).parent / "traces"
ROOT = Path(__file__).resolve().parents[1]


def figures_of(name: str) -> dict[str, Any]:
    return study(trace_of([TRACES / name]))


@pytest.mark.parametrize(
    ("name", "format_", "requests", "known"),
    [
        ("trace-cmd-6.dat.gz", "trace.dat 6", 54, 52),
        ("trace-cmd-7.dat", "trace.dat 7", 54, 52),
        ("perf.data.xz", "perf.data", 56, 53),
        ("perf-script.txt", "trace events as text", 56, 53),
        ("tracefs.txt", "trace events as text", 39, 39),
        ("set", "blktrace 7", 54, 52),
        ("blkparse.txt", "blkparse", 54, 52),
        ("blktrace-8", "blktrace 8", 30, 27),
    ],
)
def test_recordings_of_the_real_tools_are_read_whole(name: str, format_: str, requests: int, known: int) -> None:
    figures = figures_of(name)
    assert figures["format"] == format_
    assert (figures["malformed"], figures["events_lost"], figures["events_unmatched"]) == (0, 0, 0)
    assert figures["all"]["count"] == requests
    assert figures["all"]["whole_ns"]["count"] == known


def test_version_8_of_blktrace_tells_zeroes_from_writes() -> None:
    """Times as a few lines of Python pair them by sector and length."""
    trace = trace_of([TRACES / "blktrace-8"])
    device = study(trace)["all"]["device_ns"]
    assert (device["count"], device["mean"], device["max"]) == (28, 1957736.25, 33027412)
    (copy,) = TraceOptions.model_validate({"file": str(TRACES / "blktrace-8")}).attachments.values()
    rows = [line.split(",")[2:5] for line in copy.splitlines()[1:]]
    assert ["D", "4194304", "1048576"] in rows and ["WZ", "8388608", "1048576"] in rows
    # Of fdatasync(2), and of the kernel after either write that was to be durable, with RWF_DSYNC or by BLKZEROOUT.
    assert [row[0] for row in rows].count("F") == 3


def test_biosnoop_of_bpftrace_tells_whole_milliseconds() -> None:
    figures = figures_of("biosnoop-bpftrace.txt")
    assert (figures["format"], figures["malformed"]) == ("biosnoop.bt", 0)
    assert figures["all"]["count"] == figures["all"]["device_ns"]["count"] == 60
    assert {group["name"] for group in figures["by_process"]} == {"dd"}
    assert any("whole milliseconds" in note for note in figures["notes"])


def test_one_recording_says_the_same_in_every_form() -> None:
    """To the nanosecond of the recording; perf's text has microseconds."""
    recorded = figures_of("trace-cmd-7.dat")
    for name in ("set", "blkparse.txt"):
        again = figures_of(name)
        for stage in ("queue_ns", "scheduler_ns", "device_ns", "whole_ns"):
            assert again["all"][stage] == recorded["all"][stage], (name, stage)
    exact, text = (figures_of(name)["all"]["device_ns"] for name in ("perf.data.xz", "perf-script.txt"))
    assert exact["count"] == text["count"]
    assert abs(exact["mean"] - text["mean"]) < 1000


def test_a_log_of_arrivals_says_which_figures_it_can_not_give() -> None:
    figures = figures_of("fio-iolog-3.txt.zst")
    assert figures["all"]["count"] == 520
    assert figures["all"]["whole_ns"] is None
    assert "latency" in figures["absent"]


PUBLIC = {
    "MSR Cambridge": ("128166372003061629,usr,0,Read,7014609920,24576,41286\n", "read", 24576, 4_128_600),
    "Alibaba": ("419,W,8792731648,16384,1577808144360767\n", "write", 16384, None),
    "CloudPhysics": ("version,time,op,size,lbn\n1,5633898,2a,512,42932745\n", "write", 512, None),
    "Tencent": ("1538323200,12910952,128,0,1063\n", "read", 65536, None),
    "FIU": ("329131208190249 4892 syslogd 904265560 8 W 6 0 531e779d\n", "write", 4096, None),
    "Meta": ("310 262144 4325376 1572074461.57806 1 24 3 5\n", "read", 4325376, None),
}


@pytest.mark.parametrize("name", PUBLIC)
def test_public_traces_are_known_by_their_lines(name: str, tmp_path: Path) -> None:
    line, operation, size, latency_ns = PUBLIC[name]
    path = tmp_path / "trace.csv"
    path.write_text(line * 3)
    figures = study(trace_of([path]))
    assert figures["format"] == name
    assert [group["name"] for group in figures["by_operation"]] == [operation]
    assert figures["all"]["bytes"] == 3 * size
    whole = figures["all"]["whole_ns"]
    assert (whole and whole["max"]) == latency_ns


META_NAMES = "block_id io_offset io_size op_time op_name user_namespace user_name rs_shard_id op_count host_name\n"


@pytest.mark.parametrize("names", ["", META_NAMES, f"# {META_NAMES}"])
def test_metas_numbers_are_gets_and_puts_in_blocks_of_8_mib(names: str, tmp_path: Path) -> None:
    lines = [
        f"{block} 4096 8192 {1000 + block}.5 {code} 1 2 0 1 7" for block, code in enumerate([1, 2, 5, 3, 4, 6, 100])
    ]
    path = tmp_path / "trace"
    path.write_text(names + "\n".join(lines) + "\n")
    figures = study(trace_of([path]))
    assert (figures["format"], figures["malformed"]) == ("Meta", 0)
    assert {group["name"]: group["count"] for group in figures["by_operation"]} == {"read": 3, "write": 3, "other": 1}
    (rows,) = frames(trace_of([path]))
    assert rows["sector"].to_list() == [(block * 2**23 + 4096) // 512 for block in range(7)]
    assert rows["device"].unique().to_list() == ["7"]
    assert figures["elapsed_ns"] == 6 * 10**9


def test_the_columns_of_any_table_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("when;what;where;how long;took\n1.5;R;8;4096;0.25\n2.5;W;16;8192;0.5\n")
    named = trace_of([path], "time:ms,operation,offset:sectors,size:B,latency:ms", "semicolon")
    figures = study(named)
    assert figures["elapsed_ns"] == 1_500_000
    assert figures["all"]["whole_ns"]["max"] == 500_000
    with pytest.raises(InputError, match="did you mean offset"):
        trace_of([path], "time:ms,ofset:B,size:B")
    with pytest.raises(InputError, match="needs the column size"):
        trace_of([path], "time:ms,offset:B")


def test_lost_events_are_counted_and_never_bridged(tmp_path: Path) -> None:
    """The completion of the first read is lost, and another read of the same sectors completes."""
    lines = [
        "fio-1 [000] ..... 1.000000: block_rq_issue: 8,0 R 4096 () 64 + 8 [fio]",
        "CPU:1 [LOST 2 EVENTS]",
        "fio-1 [001] ..... 1.000900: block_rq_complete: 8,0 R () 64 + 8 [0]",
        "fio-1 [000] ..... 9.000000: block_rq_issue: 8,0 R 4096 () 64 + 8 [fio]",
        "fio-1 [001] ..... 9.000300: block_rq_complete: 8,0 R () 64 + 8 [0]",
    ]
    first = "fio-1 [001] ..... 0.900000: block_plug: [fio]"
    path = tmp_path / "trace.txt"
    path.write_text("\n".join([first, *lines]) + "\n")
    figures = study(trace_of([path]))
    assert figures["events_lost"] == 2
    assert figures["unknown_lost"] == 1
    assert figures["all"]["count"] == 2
    assert figures["all"]["device_ns"]["count"] == 1
    assert figures["all"]["device_ns"]["max"] == 300_000


def test_what_perf_lost_is_counted_once(tmp_path: Path) -> None:
    """Where it was lost, and again in sums without a time, which `perf record` writes at the end from 6.1 on."""
    data = bytearray(lzma.decompress((TRACES / "perf.data.xz").read_bytes()))
    begin, size = struct.unpack_from("<2Q", data, 40)
    at, sample_time = begin, 0
    while at < begin + size:
        kind, _, length = struct.unpack_from("<IHH", data, at)
        sample_time = struct.unpack_from("<Q", data, at + 32)[0] if kind == 9 else sample_time
        at += length
    # Number of the event and count, or the count alone; then task, time, number, CPU.
    lost = struct.pack("<IHH6Q", 2, 0, 56, 1, 700, 0, sample_time, 1, 0)
    sums = [struct.pack("<IHH5Q", 13, 0, 48, count, 0, 0, 1, 0) for count in (100, 600, 30)]
    more = lost + b"".join(sums)
    data[begin + size : begin + size] = more
    struct.pack_into("<Q", data, 48, size + len(more))
    for section in range(bin(int.from_bytes(data[72:104], "little")).count("1")):
        place = begin + size + len(more) + 16 * section
        struct.pack_into("<Q", data, place, struct.unpack_from("<Q", data, place)[0] + len(more))
    path = tmp_path / "perf.data"
    path.write_bytes(data)
    figures, recorded = study(trace_of([path])), figures_of("perf.data.xz")
    assert (figures["events_lost"], figures["losses"]) == (730, 2)
    assert figures["elapsed_ns"] == recorded["elapsed_ns"]
    assert figures["all"]["count"] == recorded["all"]["count"]


def test_what_is_no_trace_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.txt"
    other.write_text("nothing of the kind\n")
    cut = tmp_path / "cut.dat"
    cut.write_bytes((TRACES / "trace-cmd-7.dat").read_bytes()[:900])
    for path in (other, cut, tmp_path / "absent", tmp_path):
        assert invoke(["trace", str(path)]) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1


def test_results_of_a_tool_are_said_to_be_no_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "dd.txt"
    path.write_text("1+0 in\n1+0 out\n1048576 bytes (1.0 MB, 1.0 MiB) copied, 0.0015 s, 699 MB/s\n")
    assert invoke(["trace", str(path)]) == 2
    assert capsys.readouterr().err == f"iolab: {path}: results in the format dd, and no trace; iolab show {path}\n"


def test_what_is_packed_with_bzip2_is_said_to_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trace.bz2"
    path.write_bytes(bz2.compress(b"nothing"))
    assert invoke(["trace", str(path)]) == 2
    assert "packed with bzip2, which iolab does not unpack: bzcat FILE" in capsys.readouterr().err


def test_a_cut_recording_gives_what_it_still_holds(tmp_path: Path) -> None:
    whole = (TRACES / "set.blktrace.1").read_bytes()
    (tmp_path / "cut.blktrace.0").write_bytes(whole[: len(whole) // 2 + 7])
    figures = study(trace_of([tmp_path / "cut"]))
    assert figures["malformed"] == 1
    assert "within a record" in figures["first_malformed"]
    assert figures["all"]["count"] > 5


def requests(path: Path) -> set[tuple[int | None, ...]]:
    rows = pl.concat(list(frames(trace_of([path]))))
    return set(rows.select("sector", "sectors", "queued_ns", "issued_ns", "completed_ns").iter_rows())


@pytest.mark.parametrize("packing", ["", ".gz"])
def test_a_cut_trace_dat_tells_no_time_that_the_whole_does_not(packing: str, tmp_path: Path) -> None:
    """One CPU's events end before the other's: what completes afterwards may be another's completion."""
    raw = gzip.decompress((TRACES / "trace-cmd-6.dat.gz").read_bytes())
    whole = tmp_path / "whole.dat"
    whole.write_bytes(raw)
    cut = tmp_path / f"cut.dat{packing}"
    if packing:
        packed = gzip.compress(raw)
        cut.write_bytes(packed[:-100])
    else:
        cut.write_bytes(raw[:-100])
    figures = study(trace_of([cut]))
    assert figures["malformed"] >= 1 and figures["losses"] >= 1
    known = {row for row in requests(cut) if None not in row}
    assert known and known < requests(whole)


def test_recordings_in_one_file_are_all_read(tmp_path: Path) -> None:
    raw = gzip.decompress((TRACES / "trace-cmd-6.dat.gz").read_bytes())
    for name, parts in (("6", [raw, raw]), ("7", [raw, (TRACES / "trace-cmd-7.dat").read_bytes(), raw])):
        path = tmp_path / name
        path.write_bytes(b"".join(parts))
        figures = study(trace_of([path]))
        assert (figures["malformed"], figures["restarts"]) == (0, len(parts) - 1), figures["first_malformed"]
        assert figures["all"]["count"] == 54 * len(parts)


def test_the_drivers_flush_is_no_fua_and_a_flush_that_is_asked_for_no_write(tmp_path: Path) -> None:
    path = tmp_path / "trace.txt"
    path.write_text(
        "fio-1 [000] ..... 1.000000: block_bio_queue: 8,0 FWS 0 + 0 [fio]\n"
        "fio-1 [000] ..... 1.000001: block_getrq: 8,0 FWS 0 + 0 [fio]\n"
        "kworker-2 [000] ..... 1.000002: block_rq_issue: 8,0 FF 0 () 0 + 0 [kworker]\n"
        "kworker-2 [000] ..... 1.000102: block_rq_complete: 8,0 FF () 18446744073709551615 + 0 [0]\n"
        "kworker-2 [000] ..... 1.000103: block_rq_complete: 8,0 WS () 0 + 0 [0]\n"
    )
    (device,) = study(trace_of([path]))["devices"]
    assert (device["flushes"], device["fua"], device["writes"], device["others"]) == (1, 0, 0, 2)
    (rows,) = frames(trace_of([path]))
    assert rows["operation"].to_list() == ["flush", "flush"]


def test_the_life_of_one_request_is_told_step_by_step(capsys: pytest.CaptureFixture[str]) -> None:
    trace = str(TRACES / "trace-cmd-7.dat")
    row = next(
        row for (rows,) in [frames(trace_of([Path(trace)]))] for row in rows.iter_rows(named=True) if row["sectors"]
    )
    assert invoke(["trace", trace, "--sector", str(row["sector"] + 1), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert any(one["completed_ns"] == row["completed_ns"] for one in told["requests"])
    assert invoke(["trace", trace, "--sector", str(row["sector"])]) == 0
    assert "the driver has it" in capsys.readouterr().out
    assert invoke(["trace", trace, "--sector", str(2**40)]) == 2
    assert "no request holds" in capsys.readouterr().err


def test_a_place_that_can_not_be_written_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for form in ("parquet", "perfetto", "iolog"):
        out = tmp_path / "absent" / form
        assert invoke(["trace", str(TRACES / "trace-cmd-7.dat"), "--to", form, "-o", str(out)]) == 2
        assert str(out) in capsys.readouterr().err


def test_the_tables_tell_stages_and_who_was_in_front(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["trace", str(TRACES / "trace-cmd-7.dat")]) == 0
    shown = capsys.readouterr().out
    for words in ("scheduler", "seq.", "in front", "Working set"):
        assert words in shown


def test_the_first_line_says_where_the_time_went_and_who_was_in_front(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["trace", str(TRACES / "trace-cmd-7.dat")]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert re.match(
        "● \\d+ % of the time is in the device, [\\d.,]+ µs a request; 8 of the slowest 10 waited behind ", first
    )


def test_a_page_holds_the_maps(tmp_path: Path) -> None:
    page = tmp_path / "trace.html"
    assert invoke(["trace", str(TRACES / "perf.data.xz"), "-o", str(page)]) == 0
    text = page.read_text()
    for name in ("trace-over-time", "trace-processes", "trace-distribution"):
        assert f'data-plot="{name}"' in text
    assert len(text) < 3_000_000


def test_zooming_shows_every_interval_that_was_counted() -> None:
    """What the page draws at first is the sum of what it holds for who zooms in."""
    rows = [[float(number % 7) for number in range(5000)], [2.0**40] * 5000]
    hows: dict[How, Callable[[list[float]], float]] = {"count": sum, "max": max, "mean": lambda part: sum(part) / 8}
    for how, of in hows.items():
        for row in rows:
            counts = Counts.of([row], how)
            assert step_of(counts.length) == 8
            expected = [of(row[at : at + 8]) for at in range(0, 5000, 8)]
            assert counts.drawn(0.5, 2500.0)[0] == pytest.approx(expected, rel=1e-6)
            assert len(times(counts.length, 0.5)) == len(expected)
    whole = Counts.of(rows[:1], "rate", 0.25)
    packed = fine([whole], 0.5, 2500.0)
    assert packed is not None and packed["lines"] == [{"rows": 1, "how": "rate", "scale": 0.25, "axis": "y"}]
    values = struct.unpack("<5000I", zlib.decompress(b64decode(packed["packed"])))
    assert list(values) == rows[0]
    assert whole.drawn(0.5, 2500.0)[0][0] == sum(rows[0][:8]) * 0.25 / (8 * 0.5)
    assert fine([Counts.of([[1.0] * 1024], "count")], 0.5, 512.0) is None


def test_maps_are_as_fine_as_is_asked_for() -> None:
    coarse = study(trace_of([TRACES / "trace-cmd-7.dat"]), intervals=16)["maps"]
    finer = study(trace_of([TRACES / "trace-cmd-7.dat"]), intervals=2**14)["maps"]
    assert len(coarse["reads"]) <= 16 < len(finer["reads"])
    for key in ("reads", "writes", "bytes_written", "depth_ns"):
        assert sum(coarse[key]) == sum(finer[key])
    assert sum(map(sum, coarse["latency"])) == sum(map(sum, finer["latency"]))


def test_discards_are_an_operation_of_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trace.txt"
    path.write_text(
        "fio-1 [000] ..... 1.000000: block_rq_issue: 8,0 DS 1048576 () 64 + 2048 [fio]\n"
        "fio-1 [001] ..... 1.000900: block_rq_complete: 8,0 DS () 64 + 2048 [0]\n"
    )
    figures = study(trace_of([path]), queues=[[1], [0]])
    (device,) = figures["devices"]
    assert (device["discards"], device["bytes_discarded"], device["others"]) == (1, 1048576, 0)
    assert (sum(figures["maps"]["discards"]), sum(figures["maps"]["bytes_discarded"])) == (1, 1048576)
    assert [group["count"] for group in figures["by_queue"]] == [0, 1]
    assert invoke(["trace", str(path)]) == 0
    assert "discarded" in capsys.readouterr().out


def test_parquet_has_a_row_per_request(tmp_path: Path) -> None:
    path = tmp_path / "requests.parquet"
    export(trace_of([TRACES / "trace-cmd-7.dat"]), "parquet", path)
    rows = pl.read_parquet(path)
    figures = figures_of("trace-cmd-7.dat")
    whole_ns = (rows["completed_ns"] - rows["queued_ns"]).drop_nulls()
    assert len(rows) == figures["all"]["count"]
    assert (len(whole_ns), whole_ns.max()) == (figures["all"]["whole_ns"]["count"], figures["all"]["whole_ns"]["max"])
    assert set(rows["process"].drop_nulls()) == {"fio", "kworker/1:1H"}
    assert rows["fua"].sum() == figures["devices"][0]["fua"]


def test_a_log_for_fio_has_every_issue(tmp_path: Path) -> None:
    path = tmp_path / "log"
    export(trace_of([TRACES / "trace-cmd-7.dat"]), "iolog", path)
    again = study(trace_of([path]))
    recorded = figures_of("trace-cmd-7.dat")
    assert again["all"]["count"] == recorded["events"]["issue"]
    assert again["all"]["bytes"] == recorded["all"]["bytes"]


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def fields(data: bytes) -> list[tuple[int, int | bytes]]:
    """A protobuf message as its fields."""
    at, found = 0, list[tuple[int, int | bytes]]()
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        if key & 7 == 2:
            found.append((key >> 3, data[at : at + value]))
            at += value
        else:
            found.append((key >> 3, value))
    return found


def test_perfetto_gets_slices_that_nest_and_never_overlap(tmp_path: Path) -> None:
    """As Perfetto reads it: in the order of time, then of the file; an end is of what its track opened last."""
    path = tmp_path / "trace.perfetto"
    export(trace_of([TRACES / "trace-cmd-7.dat"]), "perfetto", path)
    events: list[tuple[int, int, int, str]] = []
    for _, packet in fields(path.read_bytes()):
        assert isinstance(packet, bytes)
        content = dict(fields(packet))
        if isinstance(event := content.get(11), bytes):
            told = dict(fields(event))
            at_ns, track, kind, name = content[8], told[11], told[9], told.get(23, b"")
            assert (
                isinstance(at_ns, int) and isinstance(track, int) and isinstance(kind, int) and isinstance(name, bytes)
            )
            events.append((at_ns, track, kind, name.decode()))
    open_: dict[int, list[tuple[int, str, int]]] = {}
    whole: list[int] = []
    stages: dict[str, list[int]] = {}
    for at_ns, track, kind, name in sorted(events, key=lambda event: event[0]):
        stack = open_.setdefault(track, [])
        if kind == 1:
            stack.append((at_ns, name, len(stack)))
            assert len(stack) <= 2
        elif kind == 2:
            began_ns, begun, depth = stack.pop()
            if depth == 0:
                whole.append(at_ns - began_ns)
            else:
                stages.setdefault(begun, []).append(at_ns - began_ns)
    assert not any(open_.values())
    expected = figures_of("trace-cmd-7.dat")["all"]
    assert len(whole) >= expected["whole_ns"]["count"] and max(whole) >= expected["whole_ns"]["max"]
    for stage in ("queue", "scheduler", "device"):
        told = expected[f"{stage}_ns"]
        assert sum(stages[stage]) == pytest.approx(told["mean"] * told["count"])


@pytest.mark.skipif(shutil.which("blkparse") is None, reason="needs blkparse (the package blktrace)")
def test_blkparse_reads_what_is_written_for_it(tmp_path: Path) -> None:
    export(trace_of([TRACES / "trace-cmd-7.dat"]), "blktrace", tmp_path / "out")
    command = ["blkparse", "-i", "out", "-q"]
    text = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60).stdout
    assert text.count(" C ") == figures_of("trace-cmd-7.dat")["events"]["complete"]


@pytest.mark.skipif(shutil.which("btt") is None, reason="needs btt (the package blktrace)")
def test_btt_tells_the_same_times_of_requests_with_data(tmp_path: Path) -> None:
    """Its averages, to the nanosecond that it prints; flushes, which have no data, it leaves out."""
    commands = (
        ["blkparse", "-i", str(TRACES / "set"), "-d", "merged", "-O", "-q"],
        ["btt", "-i", "merged", "-o", "told"],
    )
    for command in commands:
        subprocess.run(command, cwd=tmp_path, capture_output=True, check=True, timeout=60)
    lines = [line.split() for line in (tmp_path / "told.avg").read_text().splitlines()]
    told = {
        words[0]: (round(float(words[2]) * 1e9), int(words[4]))
        for words in lines
        if len(words) == 5 and "2" in words[0]
    }
    export(trace_of([TRACES / "set"]), "parquet", tmp_path / "rows.parquet")
    rows = pl.read_parquet(tmp_path / "rows.parquet").filter(pl.col("sectors") > 0)

    def mean(begin: str, end: str) -> tuple[float, int]:
        took = (rows[f"{end}_ns"] - rows[f"{begin}_ns"]).drop_nulls()
        return round(took.mean()), len(took)  # type: ignore[arg-type]

    assert mean("inserted", "issued") == told["I2D"]
    assert mean("issued", "completed") == told["D2C"]
    assert mean("queued", "completed") == told["Q2C"]
    queue_ns, requests = mean("queued", "inserted")
    assert requests == told["Q2G"][1] == told["G2I"][1]
    assert abs(queue_ns - told["Q2G"][0] - told["G2I"][0]) <= 1


NO_TRACEFS = tracefs.root() is None or os.geteuid() != 0


@pytest.mark.skipif(NO_TRACEFS, reason="needs root and a mounted tracefs")
def test_a_recording_holds_what_the_command_did_and_leaves_nothing_behind(
    loop_device: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "recorded.dat"
    command = ["dd", f"if={loop_device}", "of=/dev/null", "bs=64K", "count=50", "iflag=direct", "status=none"]
    assert invoke(["record", str(loop_device), "-o", str(path), "--json", "--", *command]) == 0
    recorded = json.loads(capsys.readouterr().out)
    assert (recorded["events_lost"], recorded["command_status"]) == (0, 0)
    figures = study(trace_of([path]))
    read = next(group for group in figures["by_operation"] if group["name"] == "read")
    assert read["bytes"] >= 50 * 65536
    assert figures["unended"] == figures["unknown_lost"] == 0
    assert any(group["name"] == "dd" for group in figures["by_process"])
    instances = tracefs.root()
    assert instances is not None and not list((instances / "instances").glob("iolab-record-*"))


def test_only_a_block_device_is_recorded(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert invoke(["record", "/dev/null", "-o", str(tmp_path / "x")]) == 2
    assert "is no block device" in capsys.readouterr().err


def test_json_is_the_figures(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["trace", str(TRACES / "set"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["records"] == 269


def test_a_characterised_trace_is_an_experiment_with_its_streams(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    assert invoke(["characterise", str(TRACES / "trace-cmd-7.dat"), "-o", str(path)]) == 0
    loaded = experiment.load(path)
    text = path.read_text()
    assert len(loaded.workloads) == 1
    assert '"64KiB"' in text and '"4KiB"' in text
    assert "fdatasync_every" in text


def test_a_sequential_writer_and_a_skewed_reader_are_told_apart(tmp_path: Path) -> None:
    lines, places = [], [rank for rank in range(1, 101) for _ in range(600 // rank)]
    for number, rank in enumerate(sorted(places, key=lambda rank: hash((rank * 7919, 1)))):
        lines.append(f"{number * 1000},1,reader,{rank * 40960},4096,R")
        lines.append(f"{number * 1000 + 300},2,writer,{2**30 + number * 65536},65536,W")
    path = tmp_path / "two.csv"
    path.write_text("\n".join(lines) + "\n")
    reader, writer = sorted(
        characterise(trace_of([path], "time:us,pid,process,offset:B,size:B,operation")), key=lambda one: one.name
    )
    assert (writer.pattern, writer.read_percent, writer.sizes) == ("sequential", 0, {65536: 100})
    assert (reader.pattern, reader.read_percent) == ("zipf", 100)
    assert reader.zipf_theta == pytest.approx(1, abs=0.2)
    assert reader.rate_iops == pytest.approx(1000, rel=0.01)
    assert reader.dispersion < 0.5


def planted(path: Path, latency_us: int, seed: int, requests: int = 4000) -> Path:
    """A trace of a device that answers after about so long."""
    random = Random(seed)
    lines, now = ["# tracer: nop"], 1.0
    for number in range(requests):
        now += 0.001 * random.random()
        took = latency_us * random.gammavariate(4, 0.25) / 1e6
        for at, event in ((now, "issue: 8,0 R 4096 ()"), (now + took, "complete: 8,0 R ()")):
            name = "[fio]" if "issue" in event else "[0]"
            lines.append(f"fio-1 [000] ..... {at:.6f}: block_rq_{event} {number * 8} + 8 {name}")
        now += took
    path.write_text("\n".join(lines) + "\n")
    return path


def test_two_traces_are_judged_by_stretches_of_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, same, slow = (planted(tmp_path / f"{seed}.txt", us, seed) for seed, us in enumerate((500, 500, 600)))
    assert invoke(["compare", str(one), str(slow), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    by_metric = {found["metric"]: found["judgement"] for found in told["comparisons"]}
    assert by_metric["device_ns_mean"]["verdict"] == "slower"
    assert by_metric["device_ns_mean"]["ci_low"] < 1.2 < by_metric["device_ns_mean"]["ci_high"] * 1.02
    assert "not an experiment" in told["problems"][0]
    assert invoke(["compare", str(one), str(same), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {found["judgement"]["verdict"] for found in told["comparisons"]} <= {"same", "undecided"}
    assert invoke(["compare", str(one), str(slow)]) == 0
    assert "slower" in capsys.readouterr().out
    assert invoke(["compare", str(one), str(slow), "--fail-on", "slower"]) == 2


def test_a_longer_trace_of_the_same_load_is_not_told_apart() -> None:
    """Its stretches are as many as those of the shorter one, not averages of many beside single ones."""

    random = np.random.default_rng(3)

    def requests(stretches: int) -> pl.DataFrame:
        counts = random.choice([3, 4, 5, 6, 9], stretches, p=[0.1, 0.35, 0.3, 0.15, 0.1])
        times = np.concatenate([1000 * at + np.arange(count) for at, count in enumerate(counts)])
        return pl.DataFrame({"completed_ns": times, "whole_ns": np.ones(len(times))})

    told = [_judged("requests_per_s", [requests(1000), requests(31)], "whole_ns", "rate", 0.02) for _ in range(30)]
    judged = [one.judgement for one in told if one.judgement is not None]
    assert len(judged) == 30 and all(one.n == one.n_baseline for one in judged)
    assert sum(one.verdict in ("lower", "higher") for one in judged) <= 2


def test_a_short_trace_gets_no_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    short = planted(tmp_path / "short.txt", 500, 1, requests=5)
    assert invoke(["compare", str(short), str(short)]) == 0
    assert "record longer" in " ".join(capsys.readouterr().out.split())


def with_flushes(
    path: Path, slow_us: int, seed: int, *, beside: str = "FF", place: str = "0 + 0", reads: int = 1200, each: int = 40
) -> Path:
    """Reads of 200 us; each fortieth has a flush, or another request, under way beside it, and takes longer."""
    random = Random(seed)
    lines = ["# tracer: nop"]

    def request(began: float, took_us: float, what: str, place: str, process: str) -> None:
        lines.append(f"{process} [000] ..... {began:.6f}: block_rq_issue: 8,0 {what} 0 () {place} [{process}]")
        ended = began + took_us / 1e6
        lines.append(f"{process} [000] ..... {ended:.6f}: block_rq_complete: 8,0 {what} () {place} [0]")

    for number in range(reads):
        began = 1 + number / 100
        is_slow = number % each == each - 1
        if is_slow:
            request(began - 0.0001, 4000, beside, place, "sync-2")
        request(began, slow_us if is_slow else 150 + 100 * random.random(), "R", f"{number * 64} + 8", "fio-1")
    order = sorted(lines[1:], key=lambda line: float(line.split()[3].rstrip(":")))
    path.write_text("\n".join([lines[0], *order]) + "\n")
    return path


def test_what_slow_requests_have_in_common_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = with_flushes(tmp_path / "one.txt", 3000, 1)
    assert invoke(["explain", str(path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["measure"], told["slow"]) == ("device", 60)
    (device,) = told["stages"]
    assert (device["name"], device["share"]) == ("device", pytest.approx(1))
    traits = {trait["what"]: trait for trait in told["traits"]}
    assert traits["is of sync"]["slow_share"] == traits["had a flush in flight beside it"]["slow_share"] == 0.5
    extra_us = (4000 - 200) * 30 + (3000 - 200) * 30
    assert traits["is of sync"]["time_share"] == pytest.approx((4000 - 200) * 30 / extra_us, rel=0.02)
    assert invoke(["explain", str(path)]) == 0
    assert "More frequent among the slowest" in capsys.readouterr().out


def test_few_requests_with_most_of_the_extra_time_are_the_slow_ones(tmp_path: Path) -> None:
    """Ten discards and the ten reads behind them, among 6,000 reads: a hundredth would be two thirds noise."""
    large = f"400000 + {(512 << 20) // 512}"
    path = with_flushes(tmp_path / "trim.txt", 3900, 1, beside="DS", place=large, reads=6000, each=600)
    found = explain_slow(trace_of([path]))
    assert found.slow == 20
    assert found.held == pytest.approx(0.5, abs=0.05)
    traits = {one.what: one for one in found.traits}
    behind = traits["came when a discard was in flight"]
    assert (traits["is a discard up to 512MiB"].slow_share, behind.slow_share, behind.other_share) == (0.5, 0.5, 0)


def test_nothing_is_named_of_slow_requests_that_differ_in_time_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = with_flushes(tmp_path / "noise.txt", 200, 1, each=10_000)
    assert invoke(["explain", str(path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["traits"] == []
    assert told["held"] < 0.36, "the share of the slowest tenth of evenly spread times"
    assert invoke(["explain", str(path)]) == 0
    assert "neither by their number nor by their time" in " ".join(capsys.readouterr().out.split())


def test_the_change_between_two_traces_is_taken_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same requests, of which the reads beside flushes take 3 ms in the one and 6 ms in the other."""
    paths = [with_flushes(tmp_path / f"{us}.txt", us, 1) for us in (3000, 6000)]
    assert invoke(["explain", *map(str, paths), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["after_ns"] - told["before_ns"] == pytest.approx(3e6 * 30 / 1230, rel=0.01)
    assert told["mix_ns"] == pytest.approx(0, abs=1)
    assert told["mix_ns"] + told["slower_ns"] == pytest.approx(told["after_ns"] - told["before_ns"])
    assert told["groups"][0]["name"] == "read up to 4KiB"


@pytest.mark.skipif(NO_TRACEFS, reason="needs root and a mounted tracefs")
def test_a_slow_request_ends_a_recording(loop_device: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "slow.dat"
    read = f"while :; do dd if={loop_device} of=/dev/null bs=64K count=2 iflag=direct status=none; done"
    command = ["record", str(loop_device), "-o", str(path), "--keep", "5s", "--for", "30s", "--json"]
    assert invoke([*command, "--until-slower", "1us", "--", "sh", "-c", read]) == 0
    recorded = json.loads(capsys.readouterr().out)
    assert recorded["slow_ns"] >= 1000 and recorded["seconds"] < 25
    assert study(trace_of([path]))["all"]["device_ns"]["max"] >= 1000


def test_a_trace_without_sizes_states_none(capsys: pytest.CaptureFixture[str]) -> None:
    """Absent is never 0: biosnoop.bt prints neither sizes nor operations."""
    assert invoke(["trace", str(TRACES / "biosnoop-bpftrace.txt")]) == 0
    stated = capsys.readouterr().out
    assert "biosnoop.bt: 60 records over 0.415 s, 60 requests\n" in stated
    assert "\n144.6 requests/s\n" in stated
    assert "! no operations, sizes and sectors: the trace states none of them\n" in stated
    assert not any(word in stated for word in ("0B", "0 B", "written", "sector ", "reads"))
    assert invoke(["trace", str(TRACES / "blkparse.txt")]) == 0
    assert "written" in capsys.readouterr().out


def test_a_stack_of_layers_is_split_by_layer() -> None:
    """RAID 1 over two dm-delays of 10 ms over null_blk, recorded in a guest: every time below a delay is short."""
    figures = study(trace_of([ROOT / "docs/samples/layers-tracefs.txt"]))
    layers = {device["device"]: device["layer"] for device in figures["devices"] if device["layer"]}
    assert {name: layer["lower"] for name, layer in layers.items()} == {
        "9:512": ["252:0", "252:1"],
        "252:0": ["254:0"],
        "252:1": ["254:1"],
    }
    assert [layer["unknown"] for layer in layers.values()] == [0, 0, 0]
    for name, layer in layers.items():
        assert layer["own_ns"] is not None and layer["below_ns"] is not None
        longer, shorter = (
            (layer["below_ns"], layer["own_ns"]) if name == "9:512" else (layer["own_ns"], layer["below_ns"])
        )
        assert longer["min"] > 10e6 and shorter["max"] < 20e3


def test_figures_of_arrivals_are_in_the_order_of_arrival(tmp_path: Path) -> None:
    """A stream that arrives once a millisecond, whose I/Os take 1 to 20 ms and so overtake each other."""
    first = 128166372003061629
    ended = sorted((number + 1 + 7 * number % 20, number) for number in range(4200))
    lines = [
        f"{first + number * 10_000},usr,0,Read,{number * 4096},4096,{(end - number) * 10_000}" for end, number in ended
    ]
    path = tmp_path / "msr.csv"
    path.write_text("\n".join(lines) + "\n")
    figures = study(trace_of([path]))
    assert [(one["mean"], one["most"], one["dispersion"]) for one in figures["bursts"]] == [
        (1, 1, 0), (10, 10, 0), (100, 100, 0), (1000, 1000, 0)
    ]  # fmt: skip
    assert figures["devices"][0]["sequential_share"] == 1
