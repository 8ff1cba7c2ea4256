"""Several outputs of a monitor in one text, and what a run of one setting states first of a file of many figures."""

import json
from pathlib import Path

import pytest
from iolab.files.importer.run_import import open_run
from iolab.presentation.table import render
from test_importer import value

SAMPLES = Path(__file__).parent / "imported"
BANNER = "Linux 6.1.0 (vm) \t11/28/26 \t_x86_64_\t(2 CPU)\n\n"
HEADER = "Device             tps    kB_read/s    kB_wrtn/s    kB_dscd/s    kB_read    kB_wrtn    kB_dscd"


def report(tps: float, device: str = "vda") -> str:
    return f"{HEADER}\n{device}             {tps:.2f}       100.00    50.00    0.00    100    50    0\n\n"


def outputs(banner: str, titles: tuple[str, str]) -> str:
    """Two outputs of three reports, the first since the boot."""
    ours, theirs = report(1) + report(400) + report(600), report(1) + report(200) + report(400)
    return f"{titles[0]}\n{banner}{ours}{titles[1]}\n{banner}{theirs}"


@pytest.mark.parametrize("titles", [("scheduler none", "scheduler bfq"), ("scheduler none:", "scheduler bfq:")])
@pytest.mark.parametrize("banner", ["", BANNER])
def test_outputs_of_iostat_under_lines_are_settings(tmp_path: Path, banner: str, titles: tuple[str, str]) -> None:
    (tmp_path / "mail.txt").write_text(outputs(banner, titles))
    run = open_run(tmp_path / "mail.txt")
    assert list(run.settings) == ["scheduler none", "scheduler bfq"]
    assert value(run, "scheduler none", "iostat vda", "iops") == 500
    assert value(run, "scheduler bfq", "iostat vda", "iops") == 300
    left_out = "the first report is left out as the averages since the boot; it counts below '$ iostat -y'"
    assert run.problems == [f"{tmp_path}/mail.txt: {left_out}"]


def test_a_report_since_the_boot_beside_those_of_intervals_is_named(tmp_path: Path) -> None:
    text = f"bad:\n{BANNER}{report(1)}{report(400)}\ngood:\n{BANNER}{report(300)}"
    (tmp_path / "mail.txt").write_text(text)
    run = open_run(tmp_path / "mail.txt")
    assert value(run, "bad", "iostat vda", "iops") == 400
    assert value(run, "good", "iostat vda", "iops") == 300
    assert "a report alone, as iostat prints of the time since the boot, stands beside others" in run.problems[1]


def test_outputs_without_titles_are_rounds_and_a_remark_in_one_output_is_no_boot(tmp_path: Path) -> None:
    (tmp_path / "twice.txt").write_text(outputs(BANNER, ("", "")))
    run = open_run(tmp_path / "twice.txt")
    assert run.values("iops", "iostat vda")["twice"].to_list() == [500, 300]
    remark = BANNER + report(1) + report(400) + "now with bfq:\n" + report(200) + report(400)
    (tmp_path / "remark.txt").write_text("with none:\n" + remark)
    run = open_run(tmp_path / "remark.txt")
    assert value(run, "with none", "iostat vda", "iops") == 400
    assert value(run, "now with bfq", "iostat vda", "iops") == 300


@pytest.mark.parametrize(
    ("name", "workload", "key"), [("sar-d.txt", "sar vda", "iops"), ("mpstat.txt", "mpstat", "cpu_user_percent")]
)
def test_outputs_of_sar_and_mpstat_under_lines_are_settings(tmp_path: Path, name: str, workload: str, key: str) -> None:
    text = (SAMPLES / name).read_text()
    (tmp_path / "two.txt").write_text(f"before\n{text}\nafter\n{text}")
    run = open_run(tmp_path / "two.txt")
    alone = value(open_run(SAMPLES / name), Path(name).stem, workload, key)
    assert [value(run, setting, workload, key) for setting in ("before", "after")] == [alone, alone]


def test_the_busiest_device_is_first_and_idle_ones_are_one_line(tmp_path: Path) -> None:
    cpu = (
        "avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n     50.00   0.00   20.00   10.00   0.00   20.00\n\n"
    )
    rows = {"loop0": 0, "loop1": 0, "vda": 7, "vdb": 300}
    devices = "\n".join(
        report(tps, name).replace("100.00", "0.00").replace(" 50.00", " 0.00") if not tps else report(tps, name)
        for name, tps in rows.items()
    )
    lines = [line for line in devices.splitlines() if line and line != HEADER]
    (tmp_path / "disks.txt").write_text(f"{cpu}{HEADER}\n" + "\n".join(lines) + "\n")
    run = open_run(tmp_path / "disks.txt")
    assert run.workloads == ["iostat vdb", "iostat vda", "iostat loop0", "iostat loop1", "iostat cpu"]
    shown = render(run, "plain").splitlines()
    assert [line.partition(",")[0] for line in shown[2:6]] == [
        "● iostat vdb: IOPS 300.0",
        "● iostat vda: IOPS 7.000",
        "● iostat cpu: CPU user percent 50.00%",
        "● No activity: iostat loop0 and iostat loop1.",
    ]


def test_each_group_of_fios_jobs_has_a_sentence(tmp_path: Path) -> None:
    """Jobs behind `stonewall` are measurements of their own: the first must not hide the others."""
    sides = {"iops": 0, "io_bytes": 4096000, "total_ios": 1000, "runtime": 1000}
    quantiles = {f"{share}.000000": 5 for share in (50, 90, 99)} | {"99.900000": 9}
    latency = {"min": 1, "max": 9, "mean": 5.0, "stddev": 1.0, "N": 20000, "percentile": quantiles}
    names = ("seq-read", "rand-read", "rand-write", "seq-write")
    jobs = [
        {
            "jobname": name,
            "groupid": place,
            "error": 0,
            "usr_cpu": 1.0,
            "sys_cpu": 2.0,
            "ctx": 9,
            "majf": 0,
            "minf": 1,
            "read": {**sides, "total_ios": 1000 * (place + 1), "lat_ns": latency},
        }
        for place, name in enumerate(names)
    ]
    (tmp_path / "corners.json").write_text(json.dumps({"fio version": "fio-3.33", "jobs": jobs}))
    shown = render(open_run(tmp_path / "corners.json"), "plain").splitlines()
    assert [line.partition(",")[2].partition(" and")[0] for line in shown[2:6]] == [
        f" IOPS {count}" for count in ("1,000", "2,000", "3,000", "4,000")
    ]
    assert [line.partition(":")[0] for line in shown[2:6]] == [f"● {name}" for name in names]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("dbench-4.00.txt", "● rate "),
        ("ioping-1.3.txt", "latency mean "),
        ("stress-ng-0.15.06.txt", "● operations "),
        ("pg_test_fsync-15.txt", "fdatasync: IOPS "),
    ],
)
def test_what_a_tool_is_run_for_is_stated_first(name: str, sentence: str) -> None:
    assert sentence in render(open_run(SAMPLES / name), "plain").splitlines()[2]


COPIED = {
    "4k": "65536 bytes (66 kB, 64 KiB) copied, 0.0655360 s, 1.0 MB/s",
    "64k": "1048576 bytes (1.0 MB, 1.0 MiB) copied, 0.1048576 s, 10 MB/s",
    "1M": "16777216 bytes (17 MB, 16 MiB) copied, 0.0838860 s, 200 MB/s",
}


@pytest.mark.parametrize("title", ["bs={}", "{}", "== {} ==", "bs={} count=16"])
def test_lines_that_differ_by_their_figures_alone_name_settings(tmp_path: Path, title: str) -> None:
    """What `for bs in 4k 64k 1M; do echo "bs=$bs"; dd ...; done` prints."""
    records = "16+0 records in\n16+0 records out\n"
    (tmp_path / "loop.txt").write_text("".join(f"{title.format(bs)}\n{records}{end}\n" for bs, end in COPIED.items()))
    run = open_run(tmp_path / "loop.txt")
    rates = [value(run, title.format(bs).strip("= "), "dd", "rate_bytes_per_s") for bs in COPIED]
    assert rates == pytest.approx([1e6, 1e7, 2e8], rel=1e-5)
    assert run.problems == []
    shown = render(run, "plain")
    assert "rate is highest at 1M" in shown


def test_copies_of_several_sizes_are_no_rounds_in_silence(tmp_path: Path) -> None:
    (tmp_path / "dd.txt").write_text("".join(f"16+0 records in\n16+0 records out\n{end}\n" for end in COPIED.values()))
    run = open_run(tmp_path / "dd.txt")
    (problem,) = run.problems
    assert "dd of 65,536 bytes, 1,048,576 bytes, 16,777,216 bytes: not the same measurement" in problem
    assert value(run, "dd", "dd[1,048,576 bytes]", "rate_bytes_per_s") == pytest.approx(1e7, rel=1e-5)


@pytest.mark.parametrize(
    ("name", "metric", "scale"), [("hyperfine-1.15.txt", "elapsed_s_mean", 1e-3), ("hyperfine-1.15.md", "Mean_ns", 1e6)]
)
def test_what_hyperfine_prints_for_people_has_its_means(name: str, metric: str, scale: float) -> None:
    run = open_run(SAMPLES / name)
    commands = ("dd if=/dev/zero of=t bs=1M count=8", "dd if=/dev/zero of=t bs=64k count=128")
    assert list(run.settings) == list(commands)
    (workload,) = run.workloads
    means = [value(run, one, workload, metric) for one in commands]
    assert means == pytest.approx([12.0 * scale, 15.4 * scale])
    assert any("±" in problem for problem in run.problems) == name.endswith(".md")


@pytest.mark.parametrize(
    ("column", "name", "unit"),
    [
        ("rate_MiB/s", "rate", "MiB/s"),
        ("rkB/s", "rkB", "/s"),
        ("bw (MB/s)", "bw", "MB/s"),
        ("MB/s", "rate", "MB/s"),
        ("read KiB/s", "read", "KiB/s"),
    ],
)
def test_a_rate_in_a_unit_of_its_own_has_it_beside_the_figure(
    tmp_path: Path, column: str, name: str, unit: str
) -> None:
    (tmp_path / "rates.csv").write_text(f"round,{column}\n1,100\n2,120\n3,110\n")
    shown = render(open_run(tmp_path / "rates.csv"), "plain").splitlines()
    assert shown[2] == f"● {name} 110.0 {unit} (100.0 to 120.0)."


def test_what_was_too_short_to_measure_is_not_zero(tmp_path: Path) -> None:
    """bonnie++ 2.00's table, of a machine whose cache holds the file."""
    rows = "vm      32M::8192:5 1679k  82    0k +++    0k +++ 2650k  81    0k +++ +++++ +++"
    head = "Version     2.00a   ------Sequential Output------ --Sequential Input- --Random-"
    (tmp_path / "bonnie.txt").write_text(f"{head}\n{rows}\n")
    run = open_run(tmp_path / "bonnie.txt")
    assert value(run, "bonnie", "bonnie++", "put_char/rate_bytes_per_s") == 1679 * 1024
    (row,) = run.metrics.filter(key="put_block/rate_bytes_per_s").to_dicts()
    assert row["value"] is None and "too short" in row["reason"]


def test_first_lines_that_differ_by_a_version_name_settings(tmp_path: Path) -> None:
    text = f"16+0 records in\n16+0 records out\n{COPIED['64k']}\n"
    (tmp_path / "kernels.txt").write_text(f"kernel 6.1\n{text}\nkernel 6.6\n{text}\n")
    assert list(open_run(tmp_path / "kernels.txt").settings) == ["kernel 6.1", "kernel 6.6"]
    times = "real 0.01\nuser 0.00\nsys 0.00\n\nreal 0.02\nuser 0.00\nsys 0.00\n"
    (tmp_path / "time.txt").write_text(times)
    assert list(open_run(tmp_path / "time.txt").settings) == ["time"]


def test_a_name_before_a_line_of_dd_is_its_setting(tmp_path: Path) -> None:
    copied = "1073741824 bytes (1.1 GB, 1.0 GiB) copied"
    (tmp_path / "mail.txt").write_text(f"none: {copied}, 2 s, 537 MB/s\nbfq:  {copied}, 4 s, 268 MB/s\n")
    run = open_run(tmp_path / "mail.txt")
    assert [value(run, name, "dd", "rate_bytes_per_s") for name in ("none", "bfq")] == [2**29, 2**28]


def test_the_device_that_is_busy_leads_before_one_with_more_requests(tmp_path: Path) -> None:
    """A disk that is full at 70 requests a second is what the reader of iostat looks for."""
    (tmp_path / "disks.txt").write_text(
        "Device            r/s     rkB/s r_await aqu-sz  %util\n"
        "nvme0n1        800.00   12800.0    0.11   0.10   9.00\n"
        "sda             70.00    1120.0   31.20   3.20  99.80\n"
    )
    shown = render(open_run(tmp_path / "disks.txt"), "markdown").splitlines()
    assert "- iostat sda: device busy percent 99.80%, read latency mean 31.20 ms and read IOPS 70.00." in shown[4]


def test_each_command_has_an_output_of_its_own(tmp_path: Path) -> None:
    header = "procs -----------memory---------- ---swap-- -----io---- -system-- ----cpu----\n"
    header += " r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa\n"
    row = " 2  0 152388 226112  11092 1087072    0    2     {}     1    0    1 47 22 27  1\n"
    (tmp_path / "v.txt").write_text(f"# vmstat -a\n\n{header}{row.format(10)}# vmstat\n\n{header}{row.format(30)}")
    run = open_run(tmp_path / "v.txt")
    assert [value(run, "v", "vmstat", "read.rate_bytes_per_s", n) for n in (0, 1)] == [10 * 1024, 30 * 1024]
    assert run.problems == []
