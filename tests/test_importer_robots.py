"""CrystalDiskMark's text, the kernel test robot's tables, and tables under titles in prose."""

from pathlib import Path

import pytest
from iolab.base.errors import InputError
from iolab.files.importer.run_import import open_run
from iolab.files.importer.titles import title_of
from test_importer import value

MIB = 2**20
EIGHT = """CrystalDiskMark 8.0.4 x64 (C) 2007-2021 hiyohiyo

[Read]
  SEQ    1MiB (Q=  8, T= 1):   512.250 MB/s [    488.5 IOPS] < 16301.25 us>
  RND    4KiB (Q= 32, T=16):  1204.224 MB/s [ 294000.0 IOPS] <  1740.50 us>

[Write]
  SEQ    1MiB (Q=  8, T= 1):   401.000 MB/s [    382.4 IOPS] < 20850.00 us>
  RND    4KiB (Q= 32, T=16):   819.200 MB/s [ 200000.0 IOPS] <  2550.75 us>
"""
FIVE = """CrystalDiskMark 5.2.1 x64 (C) 2007-2017 hiyohiyo
   Sequential Read (Q= 32,T= 1) :   520.000 MB/s
  Sequential Write (Q= 32,T= 1) :   480.000 MB/s
  Random Read 4KiB (Q= 32,T= 1) :   409.600 MB/s [100000.0 IOPS]
 Random Write 4KiB (Q= 32,T= 1) :   204.800 MB/s [ 50000.0 IOPS]
"""
ROBOT = """commit:
  1111aaaa22 ("block: one")
  3333bbbb44 ("block: another")

1111aaaa22cc55dd 3333bbbb44ee66ff77009988aa7
---------------- ---------------------------
         %stddev     %change         %stddev
             \\          |                \\
      8000 ±  2%     -25.0%       6000 ±  4%  fio.write_iops
     50.00          +1100.0%     600.00        fio.time.elapsed_time
      3.30 ± 46%      +1.5        4.80 ± 13%  perf-profile.children.x
"""
PARAMETERS = """compiler/disk/fs/test/testcase:
  gcc-13/1SSD/xfs/randwrite/fio-basic

"""


def posted(path: Path, text: str):
    file = path / "posted.txt"
    file.write_text(text, encoding="utf-8")
    return open_run(file)


def test_each_test_of_crystaldiskmark_is_a_workload(tmp_path: Path) -> None:
    run = posted(tmp_path, EIGHT)
    assert value(run, "posted", "random 4 KiB Q=32 T=16", "write.rate_bytes_per_s") == 819.2e6
    assert value(run, "posted", "random 4 KiB Q=32 T=16", "read.iops") == 294_000
    assert value(run, "posted", "sequential 1 MiB Q=8 T=1", "read.latency_ns_mean") == 16_301_250


def test_older_versions_name_the_operation_in_the_line(tmp_path: Path) -> None:
    run = posted(tmp_path, FIVE)
    assert value(run, "posted", "sequential Q=32 T=1", "read.rate_bytes_per_s") == 520e6
    assert value(run, "posted", "random 4 KiB Q=32 T=1", "write.iops") == 50_000


def test_a_line_with_two_results_is_left_out_aloud(tmp_path: Path) -> None:
    line = "  SEQ    1MiB (Q=  1, T= 1):   300.000 MB/s [    286.1 IOPS]   250.000 MB/s [    238.4 IOPS]\n"
    run = posted(tmp_path, EIGHT.replace("\n[Write]", f"{line}\n[Write]"))
    assert any("each needs a text of its own: left out" in problem for problem in run.problems)


@pytest.mark.parametrize(
    "change", [str, lambda text: text.replace("±", "=C2=B1"), lambda text: text.replace("±", "\ufffd")]
)
def test_the_robots_commits_are_settings(tmp_path: Path, change) -> None:
    run = posted(tmp_path, change(PARAMETERS + ROBOT))
    workload, last = "fio-basic[disk=1SSD,fs=xfs,test=randwrite]", '3333bbbb44 ("block: another")'
    assert value(run, last, workload, "fio_write_iops") == 6000
    assert value(run, last, workload, "fio_write_iops_stddev_percent") == 4
    assert value(run, last, workload, "perf-profile_children_x") == 4.8
    assert value(run, '1111aaaa22 ("block: one")', workload, "fio_time_elapsed_time") == 50


def test_tables_under_titles_are_settings(tmp_path: Path) -> None:
    header = "FSUse%        Count         Size    Files/sec     App Overhead"
    table = header + "\n     1         1000            0        {}             1\n"
    run = posted(tmp_path, f"Before this patch:\n\n{table.format(500)}\nAfter this patch:\n\n{table.format(600)}")
    assert value(run, "Before this patch", "fs_mark[size=0]", "files_per_s") == 500
    assert value(run, "After this patch", "fs_mark[size=0]", "files_per_s") == 600


def test_titles_that_number_are_rounds(tmp_path: Path) -> None:
    text = "".join(f"Run {n}:\nreal 0m{n}.5s\nuser 0m0.1s\nsys 0m0.2s\n" for n in (1, 2, 3))
    run = posted(tmp_path, text)
    assert [value(run, "posted", "command", "elapsed_s", round=round) for round in range(3)] == [1.5, 2.5, 3.5]


@pytest.mark.parametrize(
    ("line", "title"),
    [
        ("Using io_fsync():", "Using io_fsync()"),
        ("### With the patch", "With the patch"),
        ("baseline run 2:", "baseline"),
        ("Results:", None),
        ("On Fri, 1 Mar 2024, A B wrote:", None),
        ("# fio --name=x:", None),
        ("It is slower.", None),
    ],
)
def test_a_title_is_short_and_ends_in_a_colon(line: str, title: str | None) -> None:
    assert title_of(line) == title


def test_a_report_that_begins_again_may_stand_under_another_title(tmp_path: Path) -> None:
    line = "        fsync                             {} ops/sec    1000 usecs/op\nNon-Sync'ed 8kB writes:\n"
    run = posted(tmp_path, f"On the disk:\n\n{line.format('100,125')}\nand on the SSD:\n\n{line.format('9000.5')}")
    assert value(run, "On the disk", "pg_test_fsync", "fsync/iops") == 100.125
    assert value(run, "on the SSD", "pg_test_fsync", "fsync/iops") == 9000.5


GERMAN = """10:15:01          DEV       tps     rkB/s     wkB/s   areq-sz    aqu-sz     await     %util
10:25:01          sda     12,50    100,00   1024,00    110,05      0,12      9,50      1,48
Durchschn.:       sda     99,00    100,00   1024,00    110,05      0,12      9,50      1,48
"""


def test_sysstat_in_other_languages(tmp_path: Path) -> None:
    run = posted(tmp_path, GERMAN)
    assert value(run, "posted", "sar sda", "iops") == 12.5
    assert value(run, "posted", "sar sda", "write.rate_bytes_per_s") == 1024 * 1024


def test_sysbench_from_its_throughput_on_and_one_that_failed(tmp_path: Path) -> None:
    run = posted(
        tmp_path, "Throughput:\n    read, MiB/s:                  7.00\n    written, MiB/s:               5.00\n"
    )
    assert value(run, "posted", "sysbench test", "rate_bytes_per_s") == 12 * MIB
    failed = "Running the test with following options:\nThreads started!\nFATAL: Failed to fsync file! errno = 22\n"
    with pytest.raises(InputError, match="sysbench failed: Failed to fsync"):
        posted(tmp_path, failed)


def test_a_column_of_operations_is_no_setting(tmp_path: Path) -> None:
    file = tmp_path / "ior.csv"
    file.write_text("access,rate,tasks\nwrite,565.5,48\nread,1800.25,48\n")
    assert value(open_run(file), "ior", "csv[access=read]", "rate") == 1800.25


def test_names_beyond_16_bits_are_names(tmp_path: Path) -> None:
    file = tmp_path / "red.md"
    file.write_text(
        "| Status | p50 |\n|---|---|\n| \U0001f534 broken | 276 ms |\n| \U0001f7e2 ok | 0.5 ms |\n", encoding="utf-8"
    )
    run = open_run(file)
    assert value(run, "\U0001f534 broken", "table", "latency_ns_p50") == 276e6
    assert list(run.experiment.settings) == ["\U0001f534 broken", "\U0001f7e2 ok"]


def test_intervals_of_sysbench_stand_for_results_that_are_cut_off(tmp_path: Path) -> None:
    text = "Running the test with following options:\nDoing random read test\nThreads started!\n"
    lines = "[ 10s ] reads: 500.00 MiB/s writes: 0.00 MiB/s\n[ 20s ] reads: 600.00 MiB/s writes: 0.00 MiB/s\n"
    run = posted(tmp_path, text + lines)
    assert value(run, "posted", "sysbench fileio rndrd", "read.rate_bytes_per_s") == 550 * MIB
    assert any("ends before its results" in problem for problem in run.problems)
