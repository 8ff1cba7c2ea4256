"""Texts of kernel developers: figures before and after a change in messages of commits and in mails, and JSON of tools
between lines of a text."""

import json
from pathlib import Path

import pytest
from iolab.base.errors import InputError
from test_importer import opened, value

KIB, MIB = 2**10, 2**20
MS = 1e6


def _iostat(tps: float) -> str:
    device = {"disk_device": "sdb", "tps": tps, "kB_read/s": 100.0, "kB_wrtn/s": 20.0, "kB_read": 5000, "kB_wrtn": 900}
    report = {"avg-cpu": {"user": 5.0, "idle": 95.0}, "disk": [device]}
    return json.dumps({"sysstat": {"hosts": [{"nodename": "a", "statistics": [report]}]}}, indent=1)


def test_what_iostat_moved_in_all_is_no_rate(tmp_path: Path) -> None:
    run = opened(tmp_path / "a.json", _iostat(30.0))
    assert value(run, "a", "iostat sdb", "read.rate_bytes_per_s") == 100 * KIB
    assert value(run, "a", "iostat sdb", "write.rate_bytes_per_s") == 20 * KIB


def test_the_json_of_iostat_may_stand_in_a_text(tmp_path: Path) -> None:
    run = opened(
        tmp_path / "a.txt", f"$ iostat -y -o JSON 5 1\n```\n{_iostat(30.0)}\n```\nIt is idle.\n{_iostat(50.0)}\n"
    )
    assert value(run, "a", "iostat sdb", "iops") == 50
    with pytest.raises(InputError, match="no whole JSON of sysstat"):
        opened(tmp_path / "b.txt", f"output:\n{_iostat(30.0)[:-9]}")


def test_the_mix_of_crystaldiskmark_is_no_write(tmp_path: Path) -> None:
    line = "  RND    4KiB (Q=  1, T= 1):   {}.000 MB/s [  20000.0 IOPS] <    49.00 us>\n"
    text = "".join(
        f"> [{name}\n> {line.format(rate)}" for name, rate in (("Write]", 80), ("Mix] Read 70%/Write 30%", 60))
    )
    run = opened(tmp_path / "a.txt", f"> CrystalDiskMark 8.0.4 x64\n{text}")
    assert value(run, "a", "random 4 KiB Q=1 T=1", "rate_bytes_per_s") == 60e6
    assert value(run, "a", "random 4 KiB Q=1 T=1", "write.rate_bytes_per_s") == 80e6


def test_lines_of_io_uring_without_bandwidth(tmp_path: Path) -> None:
    lines = "submitter=7\nIOPS={}, IOS/call=32/31, inflight=128 (128)\n"
    text = f"Before the patch:\n\n{lines.format(3000000)}\nor around 3M, and after:\n\n{lines.format('3.3M')}"
    run = opened(tmp_path / "a.txt", text)
    assert value(run, "Before the patch", "t-io_uring", "iops") == 3e6
    assert value(run, "after", "t-io_uring", "iops") == 3.3e6


def test_columns_of_one_metric_are_no_rounds(tmp_path: Path) -> None:
    text = (
        "| item | rate | avg latency | striped<br>rate | striped<br>avg latency |\n|---|---|---|---|---|\n"
        "| 4k write, deep | 900 iops | 2 ms | 1,200 iops | 1 ms |\n"
        "| 1M write, deep | 200 MB/s | 9 ms | 450 MB/s | 4 ms |\n"
    )
    run = opened(tmp_path / "a.txt", text)
    assert run.trials["round"].max() == 0
    assert value(run, "a", "4k write, deep[striped rate]", "iops") == 1200
    assert value(run, "a", "1M write, deep[rate]", "rate_bytes_per_s") == 200e6


def test_rules_between_the_rows_of_a_table_of_counts(tmp_path: Path) -> None:
    rule = "|--------|--------|--------|\n"
    rows = ("|    -   |    1   |    2   |", "|  base  | 9000   | 4000   |", "| first- | 9900   | 8000   |")
    text = "".join(f"{rule}{row}\n" for row in rows) + f"|  patch | +10.0% | 100.0% |\n{rule}"
    run = opened(tmp_path / "a.txt", f"Calls per second of each container:\n\n{text}")
    assert run.settings == ["base", "first-patch"]
    assert value(run, "base", "table[1]", "operations_per_s") == 9000
    assert value(run, "first-patch", "table[2]", "operations_per_s") == 8000
    assert any("lines of changes" in problem for problem in run.problems)


def test_seconds_before_and_after_a_patch(tmp_path: Path) -> None:
    run = opened(
        tmp_path / "a.txt", "Mount of a full disk:\nBefore patch: 171.5 seconds\nAfter this patch: 64.25 seconds\n"
    )
    assert value(run, "Before patch", "list", "time_ns") == 171.5e9
    assert value(run, "After this patch", "list", "time_ns") == 64.25e9


def test_a_sentence_does_not_stand_for_a_table(tmp_path: Path) -> None:
    table = "            before   after\n  one queue    193      289\n  four queues  354      356\n"
    between = "Then I asked others.\n\n" * 4
    text = f"The commit made calls drop from 289 MB/s to 193 MB/s.\n\n{between}{table}"
    with pytest.raises(InputError, match="nothing states what the figures of the table in lines"):
        opened(tmp_path / "a.txt", text)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (
            "[global]\nrw=randwrite\n\nresult:\nv5.1:  51 Mib/s\nv5.1-patched: 112 Mib/s\n",
            r"rates in Mb/s \(perhaps bits\)",
        ),
        ("fio --bs=4k --rw=write\nBW (MiB/s) old new\nwrite (4k) 3393 5397 59.1%\n", r"1 line with figures that no"),
    ],
)
def test_figures_beside_a_job_are_not_passed_over(tmp_path: Path, text: str, what: str) -> None:
    with pytest.raises(InputError, match=what):
        opened(tmp_path / "a.txt", text)


_IO_URING = "IOPS={}, BW=100MiB/s, IOS/call=32/31\n"


@pytest.mark.parametrize(
    ("above", "before", "after"),
    [
        ("{}:\n\n", "Before:\n", "After:\n"),
        ("## {}\n\n", "w/o patch\n\n", "w/ patch\n\n"),
        ("{}\n\n", "Without this series:\n", "With the series:\n"),
    ],
)
def test_changes_below_titles_of_what_was_done(tmp_path: Path, above: str, before: str, after: str) -> None:
    """They were rounds of settings that were called as what was done."""
    names = ("1) ext4", "2) xfs") if above == "{}\n\n" else ("ext4", "xfs")
    parts = [
        f"{above.format(name)}{before}{_IO_URING.format(rate)}\n{after}{_IO_URING.format(rate * 2)}\n"
        for name, rate in zip(names, (100, 30), strict=True)
    ]
    run = opened(tmp_path / "a.txt", "".join(parts))
    titles = [title.strip(" :\n") for title in (before, after)]
    assert run.settings == titles
    assert value(run, titles[0], "t-io_uring[ext4]", "iops") == 100
    assert value(run, titles[1], "t-io_uring[xfs]", "iops") == 60


def test_titles_of_what_was_done_below_changes(tmp_path: Path) -> None:
    parts = [
        f"{change}:\n\nseq read:\n{_IO_URING.format(rate)}\nrand read:\n{_IO_URING.format(rate / 2)}\n"
        for change, rate in (("Before", 100), ("After", 300))
    ]
    run = opened(tmp_path / "a.txt", "".join(parts))
    assert value(run, "Before", "t-io_uring[seq read]", "iops") == 100
    assert value(run, "After", "t-io_uring[rand read]", "iops") == 150


def test_what_comes_again_below_changes_alone_is_a_round(tmp_path: Path) -> None:
    text = "".join(
        f"{name}:\n{_IO_URING.format(rate)}\n" for name, rate in zip(("Before", "After") * 2, range(4), strict=True)
    )
    run = opened(tmp_path / "a.txt", text)
    assert value(run, "After", "t-io_uring", "iops", round=1) == 3


def test_the_unit_in_the_corner_is_that_of_all_columns(tmp_path: Path) -> None:
    text = (
        "|  MiB/s  | fuse        | native      |\n"
        "|---|---|---|\n"
        "| read    | 400(±1.5%)  | 900(±.5%)   |\n"
        "| write   | 90(±.9%)    | 800(±1%)    |\n"
    )
    run = opened(tmp_path / "a.txt", text)
    assert value(run, "fuse", "read", "rate_bytes_per_s") == 400 * MIB
    assert value(run, "native", "write", "rate_bytes_per_s") == 800 * MIB


def test_a_column_of_options_beside_settings(tmp_path: Path) -> None:
    text = (
        "Speed is in MB/s.\n\n"
        "| test | args | gp2 | efs |\n"
        "|---|---|---|---|\n"
        "| read_bw | bs=128K rw=read | 62.5 | 42 |\n"
        "| write_bw | bs=128K rw=write | 63 | 41 |\n"
    )
    run = opened(tmp_path / "a.txt", text)
    assert value(run, "gp2", "read_bw", "rate_bytes_per_s") == 62.5e6
    assert any("columns of text are left out: args" in problem for problem in run.problems)


def test_two_figures_in_a_cell_name_no_setting(tmp_path: Path) -> None:
    text = (
        "| job | 2 paths | 1 path | p99 2p / 1p |\n"
        "|---|---|---|---|\n"
        "| read 1M | 1300 MB/s | 1500 MB/s | 50.5 / 33.5 ms |\n"
        "| read 4K | 60k IOPS | 63k IOPS | 1.1 / 0.9 ms |\n"
    )
    run = opened(tmp_path / "a.txt", text)
    assert run.settings == ["a"]
    assert any("50.5 / 33.5 ms" in problem for problem in run.problems)


def test_a_share_behind_a_rate_is_a_remark(tmp_path: Path) -> None:
    text = (
        "With this, I did the test:\n\n"
        "         w/o (orig)    w/ (this)\n"
        "SATA      104KB/s       121KB/s\n"
        "ramdisk   1.5MB/s       10.5MB/s (600%)\n"
    )
    run = opened(tmp_path / "a.txt", text)
    assert value(run, "w/ (this)", "ramdisk", "rate_bytes_per_s") == 10.5e6


def test_requests_per_second_with_commits_and_without(tmp_path: Path) -> None:
    text = "Without 3a8b36f378060d:       16.25 reqs/sec\nWith 3a8b36f378060d:           3.5 reqs/sec\n"
    run = opened(tmp_path / "a.txt", text)
    assert value(run, "With 3a8b36f378060d", "list", "operations_per_s") == 3.5


def test_a_title_in_single_quotes(tmp_path: Path) -> None:
    output = (
        "  Operation      Count    AvgLat    MaxLat\n"
        "  ----------------------------------------\n"
        "  Close        {}     0.001     0.120\n\n"
        "Throughput {} MB/sec  10 clients  10 procs  max_latency=530.000 ms\n"
    )
    text = f"'STRIPE = 64KB'\n\n{output.format(700, 300)}\n'STRIPE = 4KB'\n\n{output.format(800, 370)}"
    run = opened(tmp_path / "a.txt", text)
    assert value(run, "STRIPE = 64KB", "dbench 10 clients", "rate_bytes_per_s") == 300e6
    assert value(run, "STRIPE = 4KB", "dbench 10 clients", "rate_bytes_per_s") == 370e6


_SUMMARY = "  WRITE: bw={0}MiB/s, {0}MiB/s-{0}MiB/s, io={1}MiB, run=10000-10000msec\n"


def test_changes_and_sizes_above_summaries_of_fio(tmp_path: Path) -> None:
    parts = [
        f"{change}:\n\n4k:\n{_SUMMARY.format(rate, rate * 10)}1M:\n{_SUMMARY.format(rate * 4, rate * 40)}\n"
        for change, rate in (("Before the series", 100), ("After the series", 120))
    ]
    run = opened(tmp_path / "a.txt", "".join(parts))
    assert value(run, "Before the series", "fio[1M]", "rate_bytes_per_s") == 400 * MIB
    assert value(run, "After the series", "fio[4k]", "rate_bytes_per_s") == 120 * MIB


def test_what_was_done_above_changes_of_fio(tmp_path: Path) -> None:
    line = "  read: IOPS={0}, BW=4000KiB/s (4096kB/s)(39.1MiB/10000msec)\n"
    parts = [
        f"{test}:\n\nunpatched:\n{line.format(rate)}patched:\n{line.format(rate * 2)}\n"
        for test, rate in (("With 16 threads, each doing 4k buffered writes", 1000), ("and with 1 thread", 70))
    ]
    run = opened(tmp_path / "a.txt", "".join(parts))
    assert run.settings == ["unpatched", "patched"]
    assert value(run, "patched", "fio[with 1 thread]", "iops") == 140
    assert value(run, "unpatched", "fio[With 16 threads, each doing 4k buffered writes]", "iops") == 1000


def test_numbered_tests_above_labels_of_changes(tmp_path: Path) -> None:
    text = "".join(
        f"#{number} {test}:\n   w/o patch: {rate} MB/s\n   w/ patch:  {rate + 1} MB/s\n"
        for number, test, rate in ((1, "seq write, 128k", 1500), (2, "rand write, 4k", 300))
    )
    run = opened(tmp_path / "a.txt", text)
    assert run.trials["round"].max() == 0
    assert value(run, "w/ patch", "list[2 rand write, 4k]", "rate_bytes_per_s") == 301e6


def test_rounds_with_a_prefix_share_the_unit_of_the_last(tmp_path: Path) -> None:
    run = opened(
        tmp_path / "a.txt", "Three runs each:\n\nbaseline: 1.98M, 2.01M, 1.99M IOPS\npatched: 2.1M, 2.12M, 2.11M IOPS\n"
    )
    assert value(run, "baseline", "list", "iops") == 1.98e6
    assert value(run, "patched", "list", "iops", round=2) == 2.11e6


def test_what_names_the_rows_of_mmtests_is_no_part_of_a_setting(tmp_path: Path) -> None:
    text = (
        "      clients           MQ                     SQ\n"
        "Amean 1      39.25 (0.00%)       43.25 * -10.19%*\n"
        "Amean 64    295.50 (0.00%)      253.25 *  14.30%*\n"
    )
    assert opened(tmp_path / "a.txt", text).settings == ["MQ", "SQ"]


def test_kernels_above_two_devices(tmp_path: Path) -> None:
    """One title has a colon and the other has none: all were rounds of one setting."""
    lines = "IOPS={0}, IOS/call=32/31, inflight=9 (9)\nIOPS={0}, IOS/call=32/32, inflight=8 (8)\n"
    parts = [
        f"{device}:\n\n5.10-rc5:\n{lines.format(rate)}\n5.10-rc5+all patches\n{lines.format(rate - 5)}\nA drop.\n\n"
        for device, rate in (("A null device", 2400), ("Using actual hardware", 850))
    ]
    run = opened(tmp_path / "a.txt", "".join(parts))
    assert run.settings == ["5.10-rc5", "5.10-rc5+all patches"]
    assert value(run, "5.10-rc5", "t-io_uring[A null device]", "iops", round=1) == 2400
    assert value(run, "5.10-rc5+all patches", "t-io_uring[Using actual hardware]", "iops") == 845
