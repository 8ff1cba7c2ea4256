"""Texts as they are posted: encoded by mail programs, in logs that write something before each line, shortened."""

import quopri
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from iolab.base.errors import InputError
from iolab.files.importer.posted import Posting
from iolab.files.importer.run_import import open_run
from test_importer import opened, value

SAMPLES = Path(__file__).parent / "imported"
MAIL = "From: A\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: Quoted-Printable\n\n"
QUOTED = """On Thu, Mar 31, 2022 at 11:22 PM, B wrote:
> # fio -name=randrw -filename=/opt/foo -direct=1 -rw=randrw -bs=4k -size=10G -numjobs=16 -runtime=120
>
> // Ubuntu 16.04 / Linux 4.4.0:
> Run status group 0 (all jobs):
>    READ: bw=54.5MiB/s (57.1MB/s), 54.5MiB/s-54.5MiB/s (57.1MB/s-57.1MB/s), io=6537MiB (6854MB), run=120002-120002msec
>   WRITE: bw=54.5MiB/s (57.2MB/s), 54.5MiB/s-54.5MiB/s (57.2MB/s-57.2MB/s), io=6544MiB (6862MB), run=120002-120002msec
>
> // Ubuntu 18.04 / Linux 5.17:
> Run status group 0 (all jobs):
>    READ: bw=244MiB/s (255MB/s), 244MiB/s-244MiB/s (255MB/s-255MB/s), io=28.6GiB (30.7GB), run=120001-120001msec
>   WRITE: bw=244MiB/s (256MB/s), 244MiB/s-244MiB/s (256MB/s-256MB/s), io=28.6GiB (30.7GB), run=120001-120001msec
"""
OLD = """Run status group 0 (all jobs):
  WRITE: io=596856KB, aggrb=56946KB/s, minb=58313KB/s, maxb=58313KB/s, mint=10481msec, maxt=10481msec

Run status group 1 (all jobs):
  WRITE: io=6377.3MB, aggrb=472902KB/s, minb=484251KB/s, maxb=484251KB/s, mint=13809msec, maxt=13809msec
"""


def before_each_line(prefix: str) -> Callable[[str], str]:
    return lambda text: "".join(f"{prefix}{line}\n" for line in text.splitlines())


def encoded(text: str) -> str:
    return quopri.encodestring(text.encode()).decode()


@pytest.mark.parametrize(
    "posted",
    [
        lambda text: MAIL + encoded(text),
        encoded,
        before_each_line("20:17:58 DEBUG| [stdout] "),
        before_each_line("2024-09-05T03:47:26.123456789Z "),
        before_each_line("2024-09-05T03:47:26.123456789Z stdout F "),
        before_each_line("Sep  5 03:47:26 node-3 fio[1234]: "),
        before_each_line("bench-1  | "),
        before_each_line("[2024-09-05 03:47:26,123] INFO: "),
        before_each_line("# "),
        before_each_line("// "),
    ],
)
def test_what_is_posted_is_read_as_it_was_printed(tmp_path: Path, posted: Callable[[str], str]) -> None:
    text = (SAMPLES / "fio-2.1.txt").read_text()
    assert opened(tmp_path / "fio-2.1.txt", posted(text)).metrics.equals(open_run(SAMPLES / "fio-2.1.txt").metrics)


def test_a_log_within_a_mail_is_read_as_it_was_printed(tmp_path: Path) -> None:
    text = (SAMPLES / "fio-2.1.txt").read_text()
    path = tmp_path / "fio-2.1.txt"
    run = opened(
        path, "This is what CI has:\n\n" + before_each_line("20:17:58 DEBUG| [stdout] ")(text) + "\nSo there.\n"
    )
    assert run.metrics.drop("setting").equals(open_run(SAMPLES / path.name).metrics.drop("setting"))


def test_json_in_a_container_s_log(tmp_path: Path) -> None:
    path = tmp_path / "fio-3.33-plus.json"
    path.write_text(before_each_line("2024-09-05T03:47:26.1Z ")((SAMPLES / path.name).read_text()))
    assert open_run(path).metrics.equals(open_run(SAMPLES / path.name).metrics)


def test_only_the_part_of_a_mail_that_is_encoded_is_decoded() -> None:
    plain, packed = "Content-Transfer-Encoding: 7bit", "Content-Transfer-Encoding: quoted-printable"
    lines = [plain, "iops=20 a=3D", packed, "iops=3D20 and =", "more", plain, "bw=44 ="]
    found = list(Posting(lines).lines(enumerate(lines, 1)))
    assert found == [
        (1, plain),
        (2, "iops=20 a=3D"),
        (3, packed),
        (4, "iops=20 and more"),
        (6, plain),
        (7, "bw=44 ="),
    ]


_WIDE = "".join(map(chr, range(0xFF01, 0xFF5F)))
_PRINTED = st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp", "Zs", "Cs"], exclude_characters=_WIDE)
"""Less wide forms of ASCII, which are read as plain ones."""


@given(st.lists(st.text(_PRINTED, max_size=99)))
def test_encoded_lines_come_back(lines: list[str]) -> None:
    text = encoded("".join(f"x{line}x\n" for line in lines))
    header = "Content-Transfer-Encoding: quoted-printable"
    read = Posting([header]).lines(enumerate([header, *text.split("\n")[:-1]]))
    assert [line for _, line in read][1:] == [f"x{line}x" for line in lines]


def test_times_of_a_table_are_no_log(tmp_path: Path) -> None:
    path = tmp_path / "times.csv"
    path.write_text("time,iops\n" + "".join(f"2024-09-05T03:47:2{n}Z,{100 + n}\n" for n in range(6)))
    assert open_run(path).metrics.height


def test_a_table_in_a_log_is_read_if_it_is_short(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("".join(f"web-1  | {line}\n" for line in ("setting,iops", *("a,1",) * 3, *("b,2",) * 3)))
    assert value(open_run(path), "b", "log", "iops", round=2) == 2
    path.write_text("".join(f"web-1  | {line}\n" for line in ("setting,iops", *("a,1",) * 19_999)))
    with pytest.raises(InputError, match=r"stands in a log or a mail.*take off what is before each line"):
        open_run(path)


@pytest.mark.parametrize(
    ("setting", "metric", "expected"),
    [
        ("Ubuntu 16.04 / Linux 4.4.0", "read.rate_bytes_per_s", 6537 * 2**20 / 120.002),
        ("Ubuntu 16.04 / Linux 4.4.0", "rate_bytes_per_s", (6537 + 6544) * 2**20 / 120.002),
        ("Ubuntu 18.04 / Linux 5.17", "write.rate_bytes_per_s", 244 * 2**20),
        ("Ubuntu 18.04 / Linux 5.17", "elapsed_s", 120.001),
    ],
)
def test_summaries_alone_have_rates(tmp_path: Path, setting: str, metric: str, expected: float) -> None:
    run = opened(tmp_path / "mail.txt", QUOTED)
    assert value(run, setting, "fio", metric) == pytest.approx(expected)
    assert "iops" not in set(run.metrics["metric"])
    assert any("only fio's summary was read" in problem for problem in run.problems)


def test_groups_of_one_summary_are_phases(tmp_path: Path) -> None:
    run = opened(tmp_path / "old.txt", OLD)
    assert value(run, "old", "fio", "group_0/rate_bytes_per_s") == pytest.approx(596856 * 1024 / 10.481)
    assert value(run, "old", "fio", "group_1/rate_bytes_per_s") == pytest.approx(6377.3 * 2**20 / 13.809)


RESULT = """a: (g=0): rw=write, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=libaio, iodepth={depth}
a: (groupid=0, jobs=1): err= 0: pid={depth}: Thu Sep  5 03:52:31 2024
  write: IOPS={depth}00, BW=512MiB/s (537MB/s)(1024KiB/1000msec); 0 zone resets
"""


def of_two_depths(above: Callable[[int], str]) -> str:
    return "".join(above(depth) + RESULT.format(depth=depth) for depth in (1, 8))


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        (of_two_depths(lambda depth: f"## QD-{depth}\n\nResult:\n\n"), ["QD-1", "QD-8"]),
        (of_two_depths(lambda depth: "Result:\n\n"), ["Result iodepth=1", "Result iodepth=8"]),
        (of_two_depths(lambda depth: "## Results\n"), ["Results iodepth=1", "Results iodepth=8"]),
    ],
)
def test_a_heading_that_any_run_could_have_names_no_setting(tmp_path: Path, text: str, settings: list[str]) -> None:
    """Runs of different depths were rounds of one setting, `Result`."""
    assert opened(tmp_path / "notes.md", text).trials["setting"].to_list() == settings


def test_figures_in_bold_are_read(tmp_path: Path) -> None:
    lines = [
        "transaction type: <builtin: select only>",
        "number of clients: 4",
        "latency average = 2.5 ms",
        "tps = 1600.0",
    ]
    path = tmp_path / "bold.txt"
    path.write_text("\n\n".join(f"**{line}**" for line in lines))
    assert value(open_run(path), "bold", "pgbench[select only,clients=4]", "transactions_per_s") == 1600


def test_summaries_of_details_name_runs_and_fences_do_not(tmp_path: Path) -> None:
    job = "r: (groupid=0, jobs=1): err= 0: pid={0}: Mon\n  read: IOPS={0}, BW=4000KiB/s (4096kB/s)(4000KiB/1000msec)\n"
    posted = "".join(
        f"<details>\n<summary>{name} (raid, <b>fast</b>)</summary>\n\n```plaintext\n{job.format(iops)}```\n</details>\n"
        for name, iops in (("zfs", 1000), ("btrfs", 4000))
    )
    path = tmp_path / "details.md"
    assert value(opened(path, posted), "zfs (raid, fast)", "r", "iops") == 1000
    assert value(open_run(path), "btrfs (raid, fast)", "r", "iops") == 4000


IN_TURN = ("mq-deadline", "bfq", "mq-deadline", "bfq")
PASTED = {
    "sysbench-fileio-1.0.20.txt": "sysbench fileio rndrw[block=16K,threads=2]",
    "stress-ng-0.15.06.txt": "stress-ng hdd",
    "iozone-throughput.txt": "iozone[file_kib=1048576,record_kib=256,threads=12]",
    "pgbench-15.txt": "pgbench[TPC-B (sort of),clients=2,threads=2,scale=2]",
    "dd.txt": "dd",
    "dbench-4.00.txt": "dbench 2 clients",
    "ioping-1.3.txt": "ioping[4,096 bytes]",
    "bonnie-2.00.txt": "bonnie++",
    "elbencho-3.txt": "elbencho",
    "fio-2.16.json": "rand",
    "fio-3.33-terse5.txt": "a",
    "fio-2.1.txt": "randread",
}


@pytest.mark.parametrize("name", PASTED)
@pytest.mark.parametrize("between", ["\n", "\n\n"])
def test_a_line_without_a_mark_above_each_of_several_outputs_names_its_setting(
    name: str, between: str, tmp_path: Path
) -> None:
    text = (SAMPLES / name).read_text()
    run = opened(tmp_path / "posted.txt", "\n".join(f"{title}{between}{text}" for title in IN_TURN))
    assert run.settings == ["mq-deadline", "bfq"] and PASTED[name] in run.workloads
    # That sample holds outputs of two sizes.
    stated = "not the same measurement" if name == "ioping-1.3.txt" else "left out"
    # Latencies of files.
    stated = "lines with figures were not read: " if name == "elbencho-3.txt" else stated
    assert not [problem for problem in run.problems if "left out" not in problem and stated not in problem]


def pasted(*above: str) -> str:
    """An output of sysbench below each line, with 1000, 2000 ... reads a second."""
    text = (SAMPLES / "sysbench-fileio-1.0.20.txt").read_text()
    read, rates = "reads/s:                      10928.27", iter(range(1000, 9000, 1000))
    assert text.count(read) == 1
    return "\n".join(f"{title}\n{text.replace(read, f'reads/s: {next(rates)}.00')}" for title in above)


def test_a_setting_has_the_figures_below_its_line(tmp_path: Path) -> None:
    path = tmp_path / "posted.txt"
    path.write_text(f"Hi,\n\nboth on one disk.\n\n{pasted('With the patch', 'Without it')}\nThanks,\nA\n")
    run, workload = open_run(path), PASTED["sysbench-fileio-1.0.20.txt"]
    assert [value(run, one, workload, "read.iops") for one in ("With the patch", "Without it")] == [1000, 2000]


@pytest.mark.parametrize("above", [("", ""), ("Run 1", "Run 2"), ("First run", "Second run")])
def test_lines_that_only_number_outputs_are_rounds(above: tuple[str, str], tmp_path: Path) -> None:
    run = opened(tmp_path / "posted.txt", pasted(*above))
    assert run.settings == ["posted"] and run.trials.height == 2 and not run.problems


def test_what_may_be_a_title_of_some_outputs_is_stated(tmp_path: Path) -> None:
    run = opened(tmp_path / "posted.txt", pasted("", "with the patch"))
    (problem,) = run.problems
    assert run.settings == ["posted"] and run.trials.height == 2
    assert "'with the patch' may name a setting" in problem and "a line that ends in a colon" in problem


def test_lines_of_code_with_a_figure_in_bold_are_whole(tmp_path: Path) -> None:
    run = opened(
        tmp_path / "page.md",
        "`w: (groupid=0, jobs=1): err= 0: pid=34320: Sun Jun 24 13:25:43 2018`\n\n"
        "  `write: IOPS=1879, BW=7518KiB/s (7698kB/s)(514MiB/70001msec)`\n\n"
        "    `clat (usec): min=408, max=3428,` **`avg=529.00`**`, stdev=60.83`\n\n"
        "     `lat (usec): min=410, max=3429, avg=531.15, stdev=60.82`\n\n"
        "    `clat percentiles (usec):`\n\n"
        "     `| 99.00th=[  717],` _**`99.50th=[  766]`**_`, 99.90th=[ 1020], 99.95th=[ 1500],`\n",
    )
    found = [value(run, "page", "w", f"latency_ns_{name}") for name in ("mean", "p99", "p999")]
    assert found == [531_150, 717_000, 1_020_000]


def test_single_lines_of_fio_are_jobs_without_a_name(tmp_path: Path) -> None:
    run = opened(
        tmp_path / "mail.txt",
        "none:\n  read: IOPS=4257, BW=16.6MiB/s (17.4MB/s)(998MiB/60001msec)\n"
        "    clat (usec): min=2, max=900, avg= 4.28, stdev=97.75\n"
        "bfq:\n  read: IOPS=3998, BW=15.6MiB/s (16.4MB/s)(937MiB/60001msec)\n"
        "  write: IOPS=11, BW=46KiB/s (47kB/s)(2760KiB/60001msec)\n",
    )
    assert value(run, "none", "fio", "iops") == pytest.approx(4257)
    assert value(run, "none", "fio", "latency_ns_mean") == pytest.approx(4280)
    assert value(run, "bfq", "fio", "read.iops") == pytest.approx(3998)
    assert value(run, "bfq", "fio", "write.iops") == pytest.approx(11)
    # Shortened to the rates; with latencies below them, it is not known whose they are.
    short = "read: IOPS=4257, BW=16.6MiB/s\n4k randwrite: IOPS=36.5k, BW=143MiB/s (149MB/s)\n"
    (tmp_path / "short.txt").write_text(short)
    run = open_run(tmp_path / "short.txt")
    assert value(run, "short", "fio-lines", "read.iops") == 4257
    assert value(run, "short", "fio-lines 4k randwrite", "rate_bytes_per_s") == 143 * 2**20
    (tmp_path / "more.txt").write_text(short + "    clat (usec): min=45, max=12345, avg=705.32, stdev=234.56\n")
    with pytest.raises(InputError, match="single lines of fio's output"):
        open_run(tmp_path / "more.txt")


OLD_SYSBENCH = """[  48s] threads: 256, tps: 5228.50, reads: 52233.96, writes: 0.00, errors: 0.00
OLTP test statistics:
    queries performed:
        read:                            2661980
    transactions:                        266198 (5216.63 per sec.)

General statistics:
    total time:                          51.0288s
    total number of events:              266198
    response time:
         avg:                                 49.06ms
         approx.  95 percentile:              73.10ms
"""


def test_sysbench_that_begins_with_its_intervals(tmp_path: Path) -> None:
    run = opened(tmp_path / "old.txt", OLD_SYSBENCH)
    (workload,) = run.workloads
    assert value(run, "old", workload, "transactions_per_s") == 5216.63
    assert value(run, "old", workload, "latency_ns_p95") == 73.1e6
    assert not [key for key in run.keys if "rate_bytes" in key]


def test_who_waited_for_syncs_sees_them_first(tmp_path: Path) -> None:
    path = tmp_path / "etcd.txt"
    path.write_text(
        "t: (groupid=0, jobs=1): err= 0: pid=12041: Wed Jun 30 15:01:07 2021\n"
        "  write: IOPS=8240, BW=18.1MiB/s (19.0MB/s)(22.0MiB/1217msec); 0 zone resets\n"
        "     lat (usec): min=2, max=3090, avg=44.87, stdev=48.88\n"
        "  fsync/fdatasync/sync_file_range:\n"
        "    sync (usec): min=52, max=552, avg=73.71, stdev=14.16\n"
        "     issued rwts: total=0,10029,0,10029 short=0,0,0,0 dropped=0,0,0,0\n"
    )
    assert open_run(path).experiment.compare.metrics[0] == "sync.latency_ns_mean"


def test_wide_forms_of_ascii_are_plain_and_a_cache_of_a_size_is_a_setting(tmp_path: Path) -> None:
    text = "\uff10\u3000readahead\uff1a\uff16\uff10\uff17\uff19 ops/sec\n2MB readahead: 6117 ops/sec\n"
    run = opened(tmp_path / "post.txt", text)
    assert value(run, "0 readahead", "list", "operations_per_s") == 6079
    assert value(run, "2MB readahead", "list", "operations_per_s") == 6117
    text = "ext4\uff1aread 90MB/s\uff0cwrite 80MB/s\nxfs\uff1aread 70MB/s\uff0cwrite 60MB/s\n"
    run = opened(tmp_path / "ways.txt", text)
    assert value(run, "xfs", "list", "write.rate_bytes_per_s") == 60e6
