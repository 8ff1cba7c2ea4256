"""What fio prints, in all its forms: text, terse lines, JSON, logs; alone, in mails, of clients, of what failed."""

import json
from pathlib import Path

import pytest
from iolab.base.errors import InputError
from iolab.domain.arms import Arm, compare_arms
from iolab.files.importer.run_import import open_files, open_run
from iolab.files.store import RunData
from iolab.presentation.table import render
from support.command_line import CommandLine
from test_importer import opened, value

SAMPLES = Path(__file__).parent / "imported"
MIB = 2**20
JOB = "a: (groupid=0, jobs=1): err= 0: pid={}: Thu Nov 26 22:00:38 2026\n"
RESULT = "  read: IOPS={0}, BW=1MiB/s (1MB/s)(1024KiB/1000msec)\n     lat (usec): min=1, max=9, avg={1}, stdev=1\n"
SHARE = "   bw (  KiB/s): min=1, max=1, per={}%, avg=1.00, stdev= 0.00, samples=1\n"
STATUS = "\nRun status group 0 (all jobs):\n   READ: bw=1MiB/s (1MB/s), io=1MiB (1MB), run=1-1msec\n"


def job(**more: object) -> dict[str, object]:
    latency = {"min": 1, "max": 9, "mean": 5.0, "stddev": 1.0, "N": 1000}
    side = {"io_bytes": 4096000, "bw_bytes": 4096000, "iops": 1000.0, "runtime": 1000, "total_ios": 1000}
    return {"jobname": "a", "groupid": 0, "error": 0, "read": {**side, "lat_ns": latency}, **more}


def written(path: Path, *jobs: dict[str, object], **more: object) -> Path:
    path.write_text(json.dumps({"fio version": "fio-3.33", "jobs": jobs, **more}))
    return path


def text_of(run: RunData) -> list[tuple[str, str, int]]:
    return [(one[0], one[1], one[2]) for one in run.trials.select("setting", "workload", "round").iter_rows()]


def test_a_list_of_results_holds_as_many_runs(tmp_path: Path) -> None:
    """Scripts put the documents of several runs into one list, in one line."""
    path = tmp_path / "list.json"
    path.write_text(json.dumps([{"fio version": "fio-3.33", "jobs": [job()]}] * 2))
    assert text_of(open_run(path)) == [("list", "a", 0), ("list", "a", 1)]


@pytest.mark.parametrize(
    ("name", "setting", "workload", "metric", "expected"),
    [
        ("fio-2.1.txt", "fio-2.1", "randread", "rate_bytes_per_s", 2**30 / 3.576),
        ("fio-2.1.txt", "fio-2.1", "randread", "iops", 262144 / 3.576),
        ("fio-2.1.txt", "fio-2.1", "randread", "latency_ns_mean", 435240),
        ("fio-2.1.txt", "fio-2.1", "randread", "latency_ns_p999", 1112e3),
        ("fio-2.1.txt", "fio-2.1", "randread", "cpu_system_s", 0.3032 * 3.576),
        ("fio-3.33-mail.txt", "here is what I get on ext4", "a", "write.iops", 25850 / 1.001),
        ("fio-3.33-mail.txt", "here is what I get on ext4", "a", "read.rate_bytes_per_s", 25886 * 4096 / 1.001),
        ("fio-3.33-terse5.txt", "fio-3.33-terse5", "a", "write.latency_ns_p999", 27e3),
        ("fio-3.33-terse5.txt", "fio-3.33-terse5", "a", "read.rate_bytes_per_s", 3976 * 1024 / 0.063),
        ("fio-3.33-terse2.txt", "fio-3.33-terse2", "a", "write.iops", 16215),
        ("fio_clat_hist.1.log", "fio", "fio clat histogram log", "read.ops", 910),
    ],
)
def test_figures(name: str, setting: str, workload: str, metric: str, expected: float) -> None:
    assert value(open_run(SAMPLES / name), setting, workload, metric) == pytest.approx(expected, rel=1e-6)


def test_runs_of_one_text_are_settings_named_by_what_stands_above_them() -> None:
    run = open_run(SAMPLES / "fio-3.33-mail.txt")
    assert text_of(run) == [("here is what I get on ext4", "a", 0), ("And with XFS", "a", 0)]


def test_a_client_names_its_host_and_its_sum_is_no_job(tmp_path: Path) -> None:
    run = open_run(SAMPLES / "fio-3.33-client.txt")
    assert text_of(run) == [("fio-3.33-client", "c1", 0)]
    hosts = tmp_path / "hosts.txt"
    one = JOB.format(1) + RESULT.format(100, 5)
    hosts.write_text(f"<h1> {one.strip()}\n<h2> {one.replace('pid=1', 'pid=2').strip()}\nAll clients: {one[3:]}")
    assert sorted(set(open_run(hosts).job_metrics()["job"])) == ["h1:a", "h2:a"]


def test_snapshots_of_a_run_are_left_out_but_the_last(tmp_path: Path) -> None:
    path = tmp_path / "status.txt"
    path.write_text("".join(JOB.format(7) + RESULT.format(iops, 5) + STATUS for iops in (100, 200, 300)))
    run = open_run(path)
    assert value(run, "status", "a", "read.iops") == 300
    assert "2 snapshots of runs that went on are left out" in run.problems[0]


def test_short_runs_that_follow_each_other_are_no_snapshots(tmp_path: Path) -> None:
    path = tmp_path / "short.json"
    path.write_text("\n".join(json.dumps({"timestamp_ms": 10**12 + 1300 * n, "jobs": [job()]}) for n in range(3)))
    assert text_of(open_run(path)) == [("short", "a", n) for n in range(3)]


def test_jobs_that_share_a_rate_ran_together_and_others_follow_each_other(tmp_path: Path) -> None:
    path = tmp_path / "jobs.txt"
    path.write_text("".join(JOB.format(pid) + RESULT.format(100, 5) + SHARE.format("50.00") for pid in (1, 2)))
    assert value(open_run(path), "jobs", "a", "iops") == 200
    path.write_text("".join(JOB.format(pid) + RESULT.format(100, 5) + SHARE.format("100.00") for pid in (1, 2)))
    assert text_of(open_run(path)) == [("jobs", "a", 0), ("jobs", "a", 1)]


def test_runs_that_differ_in_an_option_are_settings_named_by_it(tmp_path: Path) -> None:
    path = tmp_path / "depths.json"
    documents = [{"jobs": [job()], "global options": {"iodepth": depth, "bs": "4k"}} for depth in ("1", "32", "1")]
    assert text_of(opened(path, "\n".join(map(json.dumps, documents)))) == [
        ("depths iodepth=1", "a", 0),
        ("depths iodepth=32", "a", 0),
        ("depths iodepth=1", "a", 1),
    ]


def test_a_mixed_report_has_rates_and_latencies(tmp_path: Path) -> None:
    mixed = job()
    mixed["mixed"] = mixed.pop("read")
    run = open_run(written(tmp_path / "mixed.json", mixed))
    assert [value(run, "mixed", "a", metric) for metric in ("iops", "latency_ns_mean")] == [1000, 5]
    both = open_run(written(tmp_path / "both.json", job(mixed=mixed["mixed"])))
    assert value(both, "both", "a", "iops") == 1000, "mixed stands beside the reads that it is made of"


def test_trims_are_discards(tmp_path: Path) -> None:
    trims = job()
    trims["trim"] = trims.pop("read")
    run = open_run(written(tmp_path / "trims.json", trims))
    assert [value(run, "trims", "a", metric) for metric in ("iops", "discard.iops")] == [1000, 1000]


@pytest.mark.parametrize("failed", [{"error": 84}, {"total_err": 3, "first_error": 84}, {"error": 5}])
def test_a_job_that_failed_is_named_and_not_judged(iolab: CommandLine, failed: dict[str, int]) -> None:
    written(iolab.cwd / "ok.json", job())
    written(iolab.cwd / "bad.json", job(**failed))
    said = "job a failed with error"
    for command in ("show bad.json", "compare ok.json bad.json", "history ok.json bad.json", "import bad.json --out x"):
        told = " ".join(iolab(*command.split()).stdout.split())
        assert said in told and "its figures are not judged" in told, command
    assert said in iolab("show", "x").stdout
    for arms in (("ok.json", "bad.json"), ("bad.json", "ok.json")):
        told = " ".join(iolab("compare", *arms).stdout.split())
        failure, _, rest = told.partition("figures are not judged ")
        assert "a: job a failed with error" in failure and "ndecided" not in told
        assert rest.startswith("Nothing is left to judge. could not be compared")
    found = iolab("compare", "ok.json", "x", "--json").json()["comparisons"]
    assert found and {one["verdict"] for one in found} == {"undecided"}


def test_a_key_of_one_file_refuses_no_other(tmp_path: Path) -> None:
    with_errors = open_files([written(tmp_path / "with.json", job(total_err=0))], None, "with")
    without = open_files([written(tmp_path / "without.json", job())], None, "without")
    for arms in ((with_errors, without), (without, with_errors)):
        found = compare_arms([Arm(str(place), [run]) for place, run in enumerate(arms)])
        assert "iops" in {one.metric for one in found}
        assert "errors" not in {one.metric for one in found}
    with pytest.raises(InputError, match="no such metric"):
        compare_arms([Arm("a", [without]), Arm("b", [without])], metrics=["errors"])


def test_a_latency_without_a_count_of_its_own_is_weighted_by_the_rate(tmp_path: Path) -> None:
    side = {"io_bytes": 361984, "bw": 68118, "iops": 133, "runtime": 5314}
    latency = {"min": 189438, "max": 869970, "mean": 478737.47, "stddev": 92629.54}
    old = {"jobname": "w", "groupid": 0, "error": 0, "write": {**side, "lat": latency}}
    run = open_run(written(tmp_path / "old.json", old))
    assert value(run, "old", "w", "latency_ns_mean") == pytest.approx(478737470)


def test_a_percentile_does_not_exceed_the_maximum(tmp_path: Path) -> None:
    one = job()
    one["read"]["lat_ns"]["percentile"] = {"99.900000": 10}  # type: ignore[index]
    assert value(open_run(written(tmp_path / "one.json", one)), "one", "a", "latency_ns_p999") == 9
    run = opened(tmp_path / "x_lat.1.log", "".join(f"{n}, {100_001 + n}, 0, 4096\n" for n in range(1, 121)))
    assert value(run, "x", "fio lat log", "read.latency_ns_p90") == value(
        run, "x", "fio lat log", "read.latency_ns_max"
    )


def test_times_that_are_dates_are_counted_from_the_first(tmp_path: Path) -> None:
    log = tmp_path / "x_iops.1.log"
    log.write_text("".join(f"{1_795_691_694_381 + n // 100}, 1, 0, 4096, 0\n" for n in range(3000)))
    assert value(open_run(log), "x", "fio iops log", "read.iops") == pytest.approx(100_000)
    log.write_text(
        "1795691694381, 1, 0, 4096, 0\n1795691694382, 1, 0, 4096, 0\n1795691694383, oops, 0, 4096, 0\n\n1, 1"
    )
    with pytest.raises(InputError, match=r"x_iops.1.log:3: no line of an fio log: '1795691694383, oops"):
        open_run(log, "fio-iops-log")


def test_a_cut_terse_line_is_named(tmp_path: Path) -> None:
    whole = (SAMPLES / "fio-3.33-terse5.txt").read_text()
    # Of reads, all but the end is there; of writes, nothing.
    cut = opened(tmp_path / "cut.txt", whole[:400])
    first = opened(tmp_path / "whole.txt", whole)
    assert value(cut, "cut", "a", "read.iops") == value(first, "whole", "a", "read.iops")
    assert "write.iops" not in set(cut.metrics["key"])
    assert "the line is cut off: rates of reads are read" in cut.problems[0]
    # Rates, latencies and CPU time are there; disks and some shares of latencies are not.
    begun = ";".join(whole.split(";")[:160])
    run = opened(tmp_path / "begun.txt", begun)
    assert value(run, "begun", "a", "write.latency_ns_p999") == 27e3
    assert "the line ends in its shares of latencies, which are not read" in run.problems[0]


def test_terse_lines_of_two_versions_of_fio_are_of_two_runs(tmp_path: Path) -> None:
    line = (SAMPLES / "fio-3.33-terse5.txt").read_text().strip().splitlines()[0]
    other = line.replace("fio-3.33;a;", "fio-2.0.15;b;")
    assert other != line
    run = opened(tmp_path / "two.txt", f"{line}\n{other}\n")
    assert value(run, "two", "a", "read.iops") == value(run, "two", "b", "read.iops")


COMMAND = "$ fio --name=a --rw=randread --bs=4k --filename={} --size=1G\n"


def test_runs_below_commands_that_differ_in_a_path_are_settings(tmp_path: Path) -> None:
    runs = [COMMAND.format(path) + JOB.format(n) + RESULT.format(100 * n, 5) for n, path in ((1, "/e/f"), (2, "/x/f"))]
    run = opened(tmp_path / "two.txt", "\n".join(runs))
    assert [value(run, f"--filename=/{at}/f", "a", "iops") for at in "ex"] == [100, 200]
    again = opened(tmp_path / "again.txt", "\n".join((runs[0], runs[0].replace("pid=1", "pid=3"))))
    assert text_of(again) == [("again", "a", 0), ("again", "a", 1)]


def test_runs_below_commands_that_go_on_in_other_lines_are_told_apart(tmp_path: Path) -> None:
    command = "$ fio --name=a --rw=randread \\\n> --bs=4k --size={}\n"
    runs = [command.format(f"{n}G") + JOB.format(n) + RESULT.format(100 * n, 5) for n in (1, 2)]
    run = opened(tmp_path / "two.txt", "\n".join(runs))
    assert [value(run, "two", f"a[--size={n}G]", "iops") for n in (1, 2)] == [100, 200]
    assert "results below different commands are of different workloads" in run.problems[0]


def test_quantiles_of_jobs_are_shown_with_the_jobs(tmp_path: Path) -> None:
    percentiles = "    clat percentiles (usec):\n     | 50.00th=[    {0}], 99.00th=[    8], 99.99th=[    9]\n"
    first = JOB.format(1) + RESULT.format(1000, 5) + percentiles.format(4)
    second = JOB.format(2).replace("a:", "b:") + RESULT.format(1000, 5) + percentiles.format(6)
    run = opened(tmp_path / "jobs.txt", first + second)
    jobs = run.job_metrics()
    of_job = {job: jobs.filter(job=job, key="latency_ns_p50")["value"][0] for job in ("a", "b")}
    assert of_job == {"a": 4e3, "b": 6e3}
    assert "latency_ns_p50" in run.experiment.compare.metrics
    assert "quantiles of jobs don't make one of all: --by-job shows each" in " ".join(render(run, "plain").split())
    assert "quantiles of jobs" not in render(opened(tmp_path / "one.txt", first), "plain")


def test_a_json_that_is_cut_off_in_the_second_job_is_shown(tmp_path: Path) -> None:
    text = (SAMPLES / "fio-3.33-mixed.json").read_text()
    run = opened(tmp_path / "cut.json", "".join(text.partition('"jobname" : "w"')[:2]))
    assert set(run.experiment.compare.metrics) <= set(run.keys)
    assert "the JSON is cut off" in " ".join(render(run, "plain").split())


def test_a_line_of_a_name_and_a_rate_above_a_run_is_its_name(tmp_path: Path) -> None:
    text = f"The results were surprising, as everybody who saw them said:\nvirtiofs-patched: 252K IOPS\n{JOB.format(1)}"
    text += f"{RESULT.format(100, 5)}\nqemu-9p: 14.1K IOPS\n{JOB.format(2)}{RESULT.format(200, 5)}"
    assert text_of(opened(tmp_path / "two.txt", text)) == [("virtiofs-patched", "a", 0), ("qemu-9p", "a", 0)]


def test_what_a_command_printed_before_its_jobs_is_no_title(tmp_path: Path) -> None:
    text = f"spdk is as follows:\n$ fio a.fio -ioengine=spdk\nEAL: Detected 24 lcore(s)\n{JOB.format(1)}"
    text += f"{RESULT.format(100, 5)}\nlibaio is as follows:\n$ fio a.fio -ioengine=libaio\n"
    text += f"{JOB.format(2)}{RESULT.format(200, 5)}"
    wanted = [("spdk is as follows", "a", 0), ("libaio is as follows", "a", 0)]
    assert text_of(opened(tmp_path / "two.txt", text)) == wanted


def test_a_line_of_rates_above_a_run_is_no_title(tmp_path: Path) -> None:
    above = "//{} results\nIOPS={}, BW=14.4MiB/s (15.1MB/s)\n\n"
    text = above.format("SPDK", 100) + JOB.format(1) + RESULT.format(100, 5)
    text += "\n" + above.format("KERNEL", 200) + JOB.format(2) + RESULT.format(200, 5)
    wanted = [("SPDK results", "a", 0), ("KERNEL results", "a", 0)]
    assert text_of(opened(tmp_path / "two.txt", text)) == wanted


def test_rates_below_lines_that_were_left_out_are_of_another_job(tmp_path: Path) -> None:
    write = RESULT.format(30, 50).replace("read:", "write:")
    run = opened(tmp_path / "cut.txt", JOB.format(1) + RESULT.format(100, 5) + "[...]\n" + write)
    assert value(run, "cut", "a", "iops") == 100
    assert value(run, "cut", "fio", "iops") == 30
    assert any("lines are left out above these rates" in problem for problem in run.problems)


def test_json_in_a_mail_is_read_quoted_too(tmp_path: Path) -> None:
    path = tmp_path / "mail.txt"
    text = json.dumps({"fio version": "fio-3.33", "jobs": [job()]}, indent=2)
    path.write_text("He wrote:\n" + "\n".join(f"> {line}" for line in text.split("\n")) + "\nBye\n")
    assert value(open_run(path), "mail", "a", "iops") == 1000


def test_lines_that_lost_their_indentation_are_no_headings(tmp_path: Path) -> None:
    path = tmp_path / "flat.txt"
    lines = (SAMPLES / "fio-3.33-mail.txt").read_text().split("\n")
    path.write_text("\n".join(line.removeprefix("> ").strip() for line in lines if "ext4" not in line))
    assert [one[0] for one in text_of(open_run(path))] == ["flat iodepth=4", "And with XFS"]


def test_fio_1_writes_commas_in_numbers(tmp_path: Path) -> None:
    path = tmp_path / "one.txt"
    text = (SAMPLES / "fio-2.1.txt").read_text()
    text = text.replace("io=1024.0MB, bw=293226KB/s, iops=73306", "io=1,024MiB, bw=286MiB/s, iops=73,306")
    run = opened(path, text.replace("issued    : total=r=262144/w=0/d=0", "issued r/w/d: total=262144/0/0"))
    assert value(run, "one", "randread", "rate_bytes_per_s") == pytest.approx(2**30 / 3.576)
    assert value(run, "one", "randread", "iops") == pytest.approx(262144 / 3.576)


def test_a_job_that_failed_before_it_had_figures_says_why(tmp_path: Path) -> None:
    path = tmp_path / "none.txt"
    said = "fio: pid=2625, err=2/file:filesetup.c:805, func=open(/srv/x), error=No such file or directory"
    with pytest.raises(InputError, match=r"no figures: a job failed with error 2 \(No such file or directory\)"):
        opened(path, f"fio-3.33\nStarting 1 process\n{said}\n\n\nRun status group 0 (all jobs):\n")


@pytest.mark.parametrize(
    ("name", "metric", "expected"),
    [
        ("fio-2.1.txt", "submission_latency_ns_mean", 3270),
        ("fio-2.1.txt", "submission_latency_ns_max", 212e3),
        ("fio-2.16.json", "read.submission_latency_ns_mean", 3500),
    ],
)
def test_the_time_of_submission_is_a_metric_of_its_own(name: str, metric: str, expected: float) -> None:
    run = open_run(SAMPLES / name)
    setting, workload, _ = text_of(run)[0]
    assert value(run, setting, workload, metric) == pytest.approx(expected)


def test_submission_latencies_alone_are_what_a_post_of_fio_1_compares(tmp_path: Path) -> None:
    """Of several jobs the mean weighs by operations."""
    rates = "read : io=40960KB, bw=409600 B/s, iops={iops} , runt=102400msec\nslat (usec): min=2 , max=900 , avg={avg}"
    side = f"{rates}, stdev= 1.00\n\n"
    text = f"**Old**\n{side.format(iops=100, avg='4000.50')}**New**\n{side.format(iops=90, avg=' 1.50')}"
    run = opened(tmp_path / "aio.txt", text)
    found = [value(run, setting, "fio", "read.submission_latency_ns_mean") for setting in ("Old", "New")]
    assert found == [4_000_500, 1500]
    assert not run.problems
    jobs = "".join(
        JOB.format(pid) + RESULT.format(iops, 5) + f"    slat (usec): min=1, max={pid}, avg={pid}.00, stdev=0.10\n"
        for pid, iops in ((1, 300), (4, 100))
    )
    shares = jobs.replace("stdev=1\n", "stdev=1\n" + SHARE.format("50.00"))
    run = opened(tmp_path / "jobs.txt", shares)
    assert value(run, "jobs", "a", "submission_latency_ns_mean") == (300 * 1 + 100 * 4) / 400 * 1e3
    terse = (SAMPLES / "fio-3.33-terse5.txt").read_text().replace(";63;0;0;0.000000;0.000000;", ";63;1;19;2.5;0.1;", 1)
    run = opened(tmp_path / "terse.txt", terse)
    assert value(run, "terse", "a", "read.submission_latency_ns_mean") == 2500


@pytest.mark.parametrize("before", ["# ", "@08:18:", "[08:18:01] ", "results/ext4.log:12:", "ext4.log-", "ext4: "])
def test_terse_lines_behind_what_a_script_or_grep_writes(tmp_path: Path, before: str) -> None:
    terse = (Path(__file__).parent / "imported" / "fio-3.33-terse5.txt").read_text()
    lines = [line for line in terse.splitlines() if ";fio-" in line]
    expected = opened(tmp_path / "a.txt", f"{lines[0]}\n")
    found = opened(tmp_path / "b.txt", f"{before}{lines[0]}\n")
    assert found.workloads == expected.workloads and found.metrics["value"].equals(expected.metrics["value"])
    of_two = opened(tmp_path / "c.txt", f"a/ext4.log:3:{lines[0]}\na/xfs.log:3:{lines[0]}\n")
    assert of_two.settings == ["a/ext4.log", "a/xfs.log"]


def test_jobs_above_the_sums_of_their_group_alone_name_these(tmp_path: Path) -> None:
    line = (
        "{0}: (groupid=0, jobs=1): err= 0: pid=45: Wed Feb 26 09:35:40 2020\n"
        "  READ: bw={1}MiB/s (9MB/s), {1}MiB/s-{1}MiB/s (9MB/s-9MB/s), io={1}MiB (9MB), run=1000-1000msec\n\n"
    )
    (tmp_path / "a.txt").write_text(line.format("plain", 900) + line.format("encrypted", 35))
    run = open_run(tmp_path / "a.txt")
    assert value(run, "plain", "fio", "read.rate_bytes_per_s") == 900 * 2**20
    assert value(run, "encrypted", "fio", "read.rate_bytes_per_s") == 35 * 2**20
