"""`iolab compare` of several runs and files: whether they can be compared, what is told, how names are read."""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import iolab
import pytest
from iolab.domain.arms import Arm, pairing_of
from iolab.domain.comparison import OTHER_DRAWS
from iolab.domain.conditions import FILE_KEYS_MAX, _compared
from iolab.presentation.cli.invoke import invoke
from support.stored import MACHINE, stored_run

IMPORTED = Path(__file__).parent / "imported"
ONE_SETTING = """\
title = "Reads"
rounds = 6
seed = 7

[target]
kind = "directory"
path = "."

[workloads.reads]
engine = "null"
queue_depth = {depth}
duration = "1s"

[compare]
metrics = ["iops", "latency_ns_mean"]
"""


def fio(
    path: Path,
    *,
    iops: float = 1000.0,
    depth: int = 8,
    at_s: int = 1_700_000_000,
    version: str = "fio-3.36",
    jobs: dict[str, float] | None = None,
    stonewall: bool = False,
) -> Path:
    """What fio would write of jobs that each read at so many times `iops` for ten seconds, which ended at `at_s`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draw = random.Random(str(path.name) + str(path.parent.name))
    found = [_job(name, iops * factor * draw.uniform(0.99, 1.01)) for name, factor in (jobs or {"reads": 1.0}).items()]
    for number, job in enumerate(found if stonewall else ()):
        job["groupid"] = number
        job["job options"]["stonewall"] = ""
    document = {
        "fio version": version,
        "timestamp": at_s,
        "timestamp_ms": at_s * 1000,
        "global options": {"iodepth": str(depth), "bs": "4k"},
        "jobs": found,
        "disk_util": [{"name": "nvme0n1"}],
    }
    path.write_text(json.dumps(document))
    return path


def _job(name: str, iops: float) -> dict[str, Any]:
    count = int(10 * iops)
    latency = {"min": 1000, "max": 900_000, "mean": 1e9 / iops, "stddev": 10.0, "N": count}
    return {
        "jobname": name,
        "groupid": 0,
        "error": 0,
        "job options": {"name": name, "rw": "randread"},
        "read": {
            "io_bytes": 4096 * count,
            "bw_bytes": 4096 * iops,
            "total_ios": count,
            "runtime": 10_000,
            "lat_ns": latency,
        },
    }


def compared(capsys: pytest.CaptureFixture[str], *arguments: str | Path, status: int = 0) -> Any:
    assert invoke(["compare", *map(str, arguments), "--json"]) == status
    return json.loads(capsys.readouterr().out)


def text(capsys: pytest.CaptureFixture[str], *arguments: str | Path, status: int = 0) -> str:
    assert invoke(["compare", *map(str, arguments)]) == status
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return captured.out + captured.err


def two_runs(tmp_path: Path, *, depth: int = 8, kernel: str = "6.8.0-test", machine: str = "A <model>") -> None:
    stored_run(tmp_path / "old", ONE_SETTING.format(depth=8))
    described = {**MACHINE, "kernel": {"release": kernel}, "cpu": {"model": machine}}
    stored_run(tmp_path / "new", ONE_SETTING.format(depth=depth), faster={"default": 1.3}, machine=described)


def test_the_one_thing_that_differs_is_what_is_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    two_runs(tmp_path)
    document = compared(capsys, tmp_path / "old", tmp_path / "new")
    assert document["differs"] == [{"what": "kernel", "values": {"old": "6.1.0-test", "new": "6.8.0-test"}}]
    assert document["conclusion"] == "kernel is the one thing that differs: it is what is compared"
    assert {"filesystem", "device"} <= set(document["not_compared"])
    shown = text(capsys, tmp_path / "old", tmp_path / "new")
    answer, _, rest = shown.partition("\ndiffers: kernel: 6.1.0-test (old), 6.8.0-test (new)\n")
    assert rest and len(answer.splitlines()) > 1, "the conclusion comes first"
    assert "could not be compared, not on record: " in shown


def test_a_size_that_differs_is_told_as_it_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, size in (("old", '"4KiB"'), ("new", '{ "4KiB" = 70, "64KiB" = 30 }')):
        text_of = ONE_SETTING.format(depth=8).replace("queue_depth", f"block_size = {size}\nqueue_depth")
        stored_run(tmp_path / name, text_of)
    document = compared(capsys, tmp_path / "old", tmp_path / "new")
    sizes = {"what": "workload reads: block_size", "values": {"old": "4KiB", "new": "4KiB: 70, 64KiB: 30"}}
    assert sizes in document["differs"]


def test_a_machine_file_that_was_changed_is_told_by_its_keys(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of machines with nothing in common some keys, and how many more."""
    text_of = '[workloads.reads]\noperations = 10\nfile_size = "4MiB"\n[settings.default]\n'
    machine, experiment = tmp_path / "mine.toml", tmp_path / "reads.toml"
    given = (Path(iolab.__file__).parent / "data" / "machines" / "one_disk.toml").read_text()
    for name, call_ns in (("old", 1500), ("new", 4500)):
        machine.write_text(given.replace("\ncall_ns = 1500\n", f"\ncall_ns = {call_ns}\n"))
        experiment.write_text(f'machine = "model:mine.toml"\nrounds = 2\n{text_of}')
        assert invoke(["run", str(experiment), "--out", str(tmp_path / name), "--seed", "1"]) == 0
    experiment.write_text(f'machine = "model:nvme"\nrounds = 2\n{text_of}')
    assert invoke(["run", str(experiment), "--out", str(tmp_path / "flash"), "--seed", "1"]) == 0
    capsys.readouterr()
    document = compared(capsys, tmp_path / "old", tmp_path / "new")
    key = "machine file: cpus.call_ns"
    assert document["differs"] == [{"what": key, "values": {"old": "1500", "new": "4500"}}]
    assert document["conclusion"] == f"{key} is the one thing that differs: it is what is compared"
    named = [one["what"] for one in compared(capsys, tmp_path / "old", tmp_path / "flash")["differs"]]
    of_file = [what for what in named if what.startswith("machine file: ")]
    assert len(of_file) == FILE_KEYS_MAX + 1 and of_file[-1].endswith(" more keys"), of_file
    assert "machine file: title" not in named and "simulated machine: title" in named


def test_everything_that_differs_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    two_runs(tmp_path, depth=32, machine="Another")
    names = {one["what"] for one in compared(capsys, tmp_path / "old", tmp_path / "new")["differs"]}
    assert names == {"kernel", "CPU", "workload reads: queue_depth"}
    shown = text(capsys, tmp_path / "old", tmp_path / "new")
    assert "differs: workload reads: queue_depth: 8 (old), 32 (new)" in shown
    assert "3 things differ: the numbers compare all of them together" in shown


def test_job_files_are_compared_option_by_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, depth in (("old", 2), ("new", 4)):
        (tmp_path / "job.fio").write_text(
            f"; a job\n[reads]\nrw=randread\nsize=1m\nioengine=libaio\ndirect=1\niodepth={depth}\n"
        )
        (tmp_path / "own.toml").write_text(
            'machine = "model:nvme"\nrounds = 2\nseed = 1\n[workloads.job]\nkind = "fio"\nfile = "job.fio"\n'
        )
        assert invoke(["run", str(tmp_path / "own.toml"), "--out", str(tmp_path / name), "--json"]) == 0
    capsys.readouterr()
    differs = compared(capsys, tmp_path / "old", tmp_path / "new")["differs"]
    assert differs == [{"what": "workload job: [reads] iodepth", "values": {"old": "2", "new": "4"}}]


def test_runs_of_different_days_are_not_paired(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    two_runs(tmp_path)
    for one in compared(capsys, tmp_path / "old", tmp_path / "new")["comparisons"]:
        assert one["pairing"] == "none"
        assert one["notes"] == ["not paired: drift is in this difference"]
    shown = text(capsys, tmp_path / "old", tmp_path / "new")
    assert "not paired: drift is in this difference" in shown
    (iops,) = compared(capsys, tmp_path / "old", tmp_path / "new", "--metric", "iops")["comparisons"]
    assert iops["verdict"] == "faster" and 1.29 < iops["ratio"] < 1.31


def test_simulated_rounds_of_the_same_seed_are_paired(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    simulated = """
machine = "model:nvme"
rounds = 2
seed = {seed}
[workloads.reads]
file_size = "1MiB"
duration = "5ms"
queue_depth = {depth}
"""
    for name, seed, depth in (("old", 1, 2), ("new", 1, 4), ("other", 2, 4)):
        (tmp_path / f"{name}.toml").write_text(simulated.format(seed=seed, depth=depth))
        assert invoke(["run", str(tmp_path / f"{name}.toml"), "--out", str(tmp_path / name), "--json"]) == 0
    capsys.readouterr()
    document = compared(capsys, tmp_path / "old", tmp_path / "new", "--metric", "iops")
    assert [one["pairing"] for one in document["comparisons"]] == ["round"]
    assert document["differs"] == [{"what": "workload reads: queue_depth", "values": {"old": "2", "new": "4"}}]
    document = compared(capsys, tmp_path / "old", tmp_path / "other", "--metric", "iops")
    (one,) = document["comparisons"]
    assert (one["pairing"], one["notes"]) == ("draws", [OTHER_DRAWS])


def test_guests_do_not_drift_and_are_paired_by_their_seed() -> None:
    def arm(machine: str, seed: int) -> Arm:
        return Arm(machine, [cast(Any, SimpleNamespace(machine_name=machine, seed=seed))])

    assert pairing_of(arm("guest:6.1.0-56-cloud", 1), arm("guest:6.12.117+deb12-cloud", 1)) == "round"
    assert pairing_of(arm("guest:6.1.0-56-cloud", 1), arm("guest:6.12.117+deb12-cloud", 2)) == "draws"
    assert pairing_of(arm("guest:6.1.0-56-cloud", 1), arm("host", 1)) == "none"


def test_settings_of_one_run_stay_paired(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored_run(tmp_path / "run")
    document = compared(capsys, tmp_path / "run")
    assert {one["pairing"] for one in document["comparisons"]} == {"round"}
    assert "differs" not in document


def test_the_page_has_what_differs_above_the_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    two_runs(tmp_path, machine="<script>alert(1)</script>")
    assert "Report: " in text(capsys, tmp_path / "old", tmp_path / "new", "-o", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert page.index("kernel: 6.1.0-test (old)") < page.index("<table>")
    assert "not paired: drift is in this difference" in page
    assert "<script>" not in page and "&lt;script&gt;" in page


def test_of_three_runs_the_first_is_the_baseline_or_the_named_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, faster in (("a", 1.0), ("b", 1.2), ("c", 0.7)):
        stored_run(tmp_path / name, ONE_SETTING.format(depth=8), faster={"default": faster})
    paths = [tmp_path / name for name in "abc"]
    found = compared(capsys, *paths, "--metric", "iops")["comparisons"]
    assert [(one["setting"], one["against"], one["verdict"]) for one in found] == [
        ("default in b", "default in a", "faster"),
        ("default in c", "default in a", "slower"),
    ]
    found = compared(capsys, *paths, "--metric", "iops", "--baseline", "c")["comparisons"]
    assert [one["against"] for one in found] == ["default in c"] * 2
    assert "--baseline" in text(capsys, *paths, "--baseline", "bb", status=2)
    assert "is given twice" in text(capsys, paths[0], paths[0], status=2)


def test_natural_names_are_rounds_of_settings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [
        fio(tmp_path / f"{name}-{number}.json", iops=iops, at_s=1_700_000_000 + 1000 * place + 60 * number)
        for place, (name, iops) in enumerate((("old", 1000), ("new", 1500)))
        for number in (1, 2, 3)
    ]
    document = compared(capsys, *files, "--metric", "iops")
    (one,) = document["comparisons"]
    assert (one["setting"], one["against"], one["n"], one["n_baseline"]) == ("new", "old", 3, 3)
    assert (one["verdict"], one["pairing"]) == ("faster", "none")
    shown = text(capsys, *files)
    assert shown.splitlines()[1].startswith("● new is faster than old in rate (+51.9 %)")
    assert "\nnames read as setting and round: old (3), new (3); --group-by REGEX reads them otherwise\n" in shown
    (one,) = compared(capsys, *files, "--metric", "iops", "--baseline", "new")["comparisons"]
    assert one["verdict"] == "slower"


def test_files_that_were_measured_in_turns_are_paired(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [
        fio(tmp_path / f"{name}-{number}.json", iops=iops, at_s=1_700_000_000 + 100 * number + 20 * place)
        for place, (name, iops) in enumerate((("old", 1000), ("new", 1500)))
        for number in range(1, 6)
    ]
    (one,) = compared(capsys, *files, "--metric", "iops")["comparisons"]
    assert (one["pairing"], one["notes"]) == ("round", [])


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("seconds", "{value}"),
        ("round,seconds", "{round},{value}"),
        ("seconds,iops", "{value},100"),
        ("kernel,round,seconds", "{name},{round},{value}"),
        ("kernel,seconds", "6.1-{name},{value}"),
        ("workload,seconds", "build,{value}"),
    ],
)
def test_a_csv_is_a_setting_or_a_round_of_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], header: str, row: str
) -> None:
    by_name = {"old": (9.1, 9.2, 9.3), "new": (8.1, 8.2, 8.3)}
    for name, values in by_name.items():
        rows = [row.format(name=name, round=place, value=value) for place, value in enumerate(values, start=1)]
        (tmp_path / f"{name}.csv").write_text("\n".join([header, *rows, ""]))
        for place, one in enumerate(rows, start=1):
            (tmp_path / f"{name}-{place}.csv").write_text(f"{header}\n{one}\n")
    rounds = [tmp_path / f"{name}-{place}.csv" for name in by_name for place in (1, 2, 3)]
    for files in ([tmp_path / "old.csv", tmp_path / "new.csv"], rounds):
        (one,) = compared(capsys, *files, "--metric", "seconds")["comparisons"]
        assert (one["n_baseline"], one["n"], one["verdict"]) == (3, 3, "faster")
        assert 0.88 < one["ratio"] < 0.9
    (one,) = compared(capsys, rounds[0], rounds[3], "--metric", "seconds")["comparisons"]
    assert (one["n"], one["verdict"]) == (1, "undecided")
    assert "for one CSV file, and there are more" in text(capsys, *rounds, "--round-column", "round", status=2)


def test_numbers_that_may_be_something_else_are_no_rounds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for names in (("qd-8", "qd-16"), ("linux-5.10", "linux-6.1"), ("qd-1", "qd-2")):
        files = [fio(tmp_path / f"{name}.json") for name in names]
        document = compared(capsys, *files)
        assert "names" not in document
        assert {one["setting"] for one in document["comparisons"]} == {names[1]}


def test_directories_are_settings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, iops in (("old", 1000), ("new", 1500)):
        for number in (1, 2, 10):
            fio(tmp_path / name / f"run{number}.json", iops=iops)
    (tmp_path / "new" / "notes.bin").write_bytes(b"\0\1\2")
    document = compared(capsys, tmp_path / "old", tmp_path / "new", "--metric", "iops")
    assert document["names"] == "directories read as settings: old (3), new (3)"
    (one,) = document["comparisons"]
    assert (one["against"], one["setting"], one["n"], one["verdict"]) == ("old", "new", 3, "faster")
    assert any("notes.bin: left out" in problem for problem in document["problems"])


def test_what_repeats_the_total_is_not_compared_unasked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [fio(tmp_path / f"{name}.json") for name in ("old", "new")]
    metrics = [one["metric"] for one in compared(capsys, *files)["comparisons"]]
    assert "iops" in metrics and not [metric for metric in metrics if metric.startswith("read.")]
    (one,) = compared(capsys, *files, "--metric", "read.iops")["comparisons"]
    assert one["metric"] == "read.iops"


def test_one_directory_is_read_by_its_names_or_by_a_pattern(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, iops in (("old", 1000), ("new", 1500)):
        for number in (1, 2, 3):
            fio(tmp_path / "all" / f"{name}-{number}.json", iops=iops)
    (one,) = compared(capsys, tmp_path / "all", "--metric", "iops", "--baseline", "old")["comparisons"]
    assert (one["setting"], one["n"]) == ("new", 3)
    for pattern in (r"/(old|new)", r"/(?P<setting>[a-z]+)-(?P<round>\d)", r"(/)(?P<setting>[a-z]+)"):
        document = compared(capsys, tmp_path / "all", "--metric", "iops", "--group-by", pattern)
        assert document["names"] == "names read by --group-by: new (3), old (3)"
        assert document["comparisons"][0]["against"] == "old"
    for wrong, word in (("(", "no regular expression"), ("old", "has no group"), ("(older)", "does not match")):
        assert word in text(capsys, tmp_path / "all", "--group-by", wrong, status=2)


def test_an_option_of_fio_that_one_arm_cannot_have_on_record_is_no_difference() -> None:
    each = {"fio: r: rw": "randread", "fio: w: rw": "randwrite", "fio: bs": "4k"}
    of_all = {"fio: rw": "randread", "fio: bs": "4k"}
    found = _compared({"a": each, "b": of_all}, [])
    assert [(one.what, one.values) for one in found.differs] == [("fio: w: rw", {"a": "randwrite", "b": "randread"})], (
        "an option of all is each job's"
    )
    without = _compared({"a": of_all, "b": {"fio version": "fio-3.33"}}, [])
    assert without.differs == [] and {"fio: rw", "fio: bs"} <= set(without.unknown)
    (not_given,) = _compared({"a": of_all, "b": {"fio: rw": "randread"}}, []).differs
    assert str(not_given) == "fio: bs: 4k (a), not given (b)"


def test_what_fio_says_of_itself_is_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = fio(tmp_path / "base.json")
    other = fio(tmp_path / "deeper.json", depth=32, version="fio-3.28")
    document = compared(capsys, one, other)
    assert document["differs"] == [
        {"what": "fio version", "values": {"base": "fio-3.36", "deeper": "fio-3.28"}},
        {"what": "fio: iodepth", "values": {"base": "8", "deeper": "32"}},
    ]
    assert "kernel" in document["not_compared"] and "device" not in document["not_compared"]


def test_rounds_with_other_options_are_no_rounds_of_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("old", "new"):
        for number in (1, 2):
            fio(tmp_path / f"{name}-{number}.json", depth=8 * number)
    problems = compared(capsys, *sorted(tmp_path.glob("*.json")))["problems"]
    assert any("iodepth is 16, and 8 elsewhere in old" in problem for problem in problems)


def test_jobs_are_compared_one_by_one_and_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, writer in (("old", 1.0), ("new", 2.0)):
        for number in range(1, 6):
            fio(tmp_path / f"{name}-{number}.json", jobs={"reader": 1.0, "writer": writer})
    files = [*sorted(tmp_path.glob("old*")), *sorted(tmp_path.glob("new*"))]
    found = compared(capsys, *files, "--metric", "iops")["comparisons"]
    assert {one["job"]: one["verdict"] for one in found} == {None: "faster", "reader": "same", "writer": "faster"}
    shown = text(capsys, *files, "--metric", "latency_ns_mean")
    assert "reader+writer, job reader" in shown and "reader+writer, job writer" in shown
    (writer,) = compared(capsys, *files, "--metric", "iops", "--job", "writer")["comparisons"]
    assert writer["job"] == "writer" and 1.9 < writer["ratio"] < 2.1
    assert "did you mean writer?" in text(capsys, *files, "--job", "writr", status=2)
    assert "--by-job" in text(capsys, *files, "--job", "writer", "--by-job", status=2)


def test_jobs_of_a_run_are_compared_where_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored_run(tmp_path / "run", faster={"fast": 1.2})
    asked = [tmp_path / "run", "--metric", "rate_bytes_per_s"]
    assert {one["job"] for one in compared(capsys, *asked)["comparisons"]} == {None}
    jobs = {one["job"] for one in compared(capsys, *asked, "--by-job")["comparisons"]}
    assert None in jobs and len(jobs) == 3
    only = next(job for job in jobs if job)
    found = compared(capsys, *asked, "--job", only)["comparisons"]
    assert {one["job"] for one in found} == {only}
    assert {one["setting"]: one["verdict"] for one in found}["fast"] == "faster"


def test_several_runs_of_a_setting_are_a_value_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in (1, 2, 3):
        stored_run(tmp_path / f"old-{number}", ONE_SETTING.format(depth=8))
        stored_run(tmp_path / f"new-{number}", ONE_SETTING.format(depth=8), faster={"default": 1.3})
    paths = [tmp_path / f"{name}-{number}" for name in ("old", "new") for number in (1, 2, 3)]
    document = compared(capsys, *paths, "--metric", "iops")
    assert document["names"].startswith("names read as setting and round: old (3), new (3)")
    (one,) = document["comparisons"]
    assert (one["setting"], one["n"], one["pairing"]) == ("default in new", 3, "none")


def test_an_imported_run_of_several_files_is_not_paired_either(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, depth in (("old", 8), ("new", 32)):
        for number in (1, 2, 3):
            fio(tmp_path / f"{name}-run{number}.json", depth=depth)
    files = [*sorted(tmp_path.glob("old*")), *sorted(tmp_path.glob("new*"))]
    assert invoke(["import", *map(str, files), "--out", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    document = compared(capsys, tmp_path / "run", "--metric", "iops")
    assert document["comparisons"][0]["pairing"] == "none"
    assert document["differs"] == [{"what": "fio: iodepth", "values": {"old": "8", "new": "32"}}]


def test_one_setting_alone_is_said_to_be_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    two_runs(tmp_path)
    shown = text(capsys, tmp_path / "old")
    assert "A comparison takes two settings, or two runs; iolab show prints one alone." in shown
    assert "A comparison takes" not in text(capsys, tmp_path / "old", tmp_path / "new")


def test_rounds_of_one_setting_are_no_comparison(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in (1, 2):
        stored_run(tmp_path / "all" / f"run{number}", ONE_SETTING.format(depth=8))
    shown = text(capsys, tmp_path / "all", "--group-by", "/(run)", status=2)
    assert "nothing to compare with" in shown
    (tmp_path / "empty").mkdir()
    assert "holds no run and no file" in text(capsys, tmp_path / "empty", status=2)


def test_doubts_stand_beside_problems_and_not_among_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    two_runs(tmp_path)
    document = compared(capsys, tmp_path / "old", tmp_path / "new")
    assert document["problems"] == []
    assert [doubt.partition(" (")[0] for doubt in document["doubts"]] == [
        f"{name}: the engine null does no I/O: its operations are no reads or writes" for name in ("old", "new")
    ]
    shown = text(capsys, tmp_path / "old", tmp_path / "new")
    assert "! old: the engine null does no I/O" in shown
    (tmp_path / "old" / "trials" / "000000.parquet").write_bytes(b"")
    problems = compared(capsys, tmp_path / "old", tmp_path / "new")["problems"]
    assert problems
    assert all("null does no I/O" not in problem for problem in problems)


def test_a_gate_judges_every_job_and_tables_state_what_they_leave_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"job{number}" for number in range(30)]
    for number in range(5):
        for setting, last in (("old", 1.0), ("new", 0.5)):
            jobs = dict.fromkeys(names, 1.0) | {names[-1]: last}
            fio(tmp_path / setting / f"{number}.json", jobs=jobs, at_s=1_700_000_000 + 1000 * number, stonewall=True)
    shown = text(capsys, tmp_path / "old", tmp_path / "new", "--fail-on", "slower", status=1)
    assert "● new is slower than old in job29: rate (-" in shown
    for name in names:  # each has its leading metrics in the table
        assert all(f"\n{name}/{metric} " in shown for metric in ("rate_bytes_per_s", "iops", "latency_ns_mean"))
    found = compared(capsys, tmp_path / "old", tmp_path / "new")["comparisons"]
    all_of, in_table = {one["metric"] for one in found}, {line.split()[0] for line in shown.splitlines() if "/" in line}
    left_out = len(all_of - in_table)
    assert left_out > 0
    assert f"! the tables leave out {left_out} metrics for their length, none of which differs: --json has" in shown
    assert {one["metric"] for one in found if one["verdict"] == "slower"} <= in_table
    assert "leave out" not in text(capsys, tmp_path / "old", tmp_path / "new", "--metric", "latency_ns_min")


def test_jobs_that_are_judged_together_are_stated_to_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for setting in ("old", "new"):
        fio(tmp_path / f"{setting}.json", jobs={f"job{number}": 1.0 for number in range(9)})
    together = "! old: 9 kinds of jobs are judged together: --by-job judges each"
    assert together in text(capsys, tmp_path / "old.json", tmp_path / "new.json")
    assert "judged together" not in text(capsys, tmp_path / "old.json", tmp_path / "new.json", "--by-job")


def test_of_one_round_the_largest_change_of_a_leading_metric_comes_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = fio(tmp_path / "before.json", jobs={"seq": 1.0, "rand": 1.0}, stonewall=True)
    document = json.loads(before.read_text())
    seq, rand = (job["read"] for job in document["jobs"])
    seq["lat_ns"]["max"] *= 3
    seq["bw_bytes"] *= 1.005
    rand["bw_bytes"] *= 0.66
    seq["io_bytes"], rand["io_bytes"] = 1.005 * seq["io_bytes"], 0.66 * rand["io_bytes"]
    (tmp_path / "after.json").write_text(json.dumps(document))
    assert "after differs from before in rand: rate (-34.0 %), seq: latency max (3.00x) and seq: rate (+0.5 %)" in (
        " ".join(text(capsys, before, tmp_path / "after.json").split())
    )


def test_settings_without_values_are_not_too_few_settings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "few.toml").write_text(
        'machine = "model:nvme"\nrounds = 2\n[workloads.reads]\noperations = 50\nfile_size = "8MiB"\n'
        "[settings.shallow]\n[settings.deep]\nworkload = { queue_depth = 8 }\n"
    )
    assert invoke(["run", str(tmp_path / "few.toml"), "--out", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    arguments = (tmp_path / "run", "--metric", "latency_ns_p999")
    absent = "of fewer than 10,000 values, fewer than 10 lie beyond it"
    cause = f"no setting has a value of latency p99.9: {absent}; a trial had at most 50 operations"
    shown = text(capsys, *arguments)
    assert f"Measure longer, or name another metric: {cause}" in shown and "takes two settings" not in shown
    refused = text(capsys, *arguments, "--fail-on", "slower", status=2)
    assert f"slower: can never hold, {cause}" in refused and "measure longer" in refused


def test_a_column_is_meant_by_its_own_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"{name},{number},{number + 3}" for number in range(3) for name in "ab"]
    (tmp_path / "p.csv").write_text("\n".join(["setting,round,p99_ms", *rows]))
    assert "did you mean latency_ns_p99?" in text(capsys, tmp_path / "p.csv", "--metric", "p99_ms", status=2)


def test_files_that_differ_in_a_column_are_compared_by_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, column, first in (("old", "foo", 100), ("new", "bar", 120)):
        rows = [f"{first + place},{place}" for place in range(1, 4)]
        (tmp_path / f"{name}.csv").write_text("\n".join([f"iops,{column}", *rows, ""]))
    files = (tmp_path / "old.csv", tmp_path / "new.csv")
    found = compared(capsys, *files)
    assert [one["metric"] for one in found["comparisons"]] == ["iops"]
    assert 1.19 < found["comparisons"][0]["ratio"] < 1.2
    assert "not compared, since not all have them: foo (old) and bar (new)" in found["doubts"]
    assert "unknown metric" in text(capsys, *files, "--metric", "neither", status=2)


@pytest.mark.parametrize(
    ("order", "paired"),
    [("aaabbb", False), ("aabbab", False), ("ababab", True), ("abbaab", True), ("ababa", True), ("bbbaaa", False)],
)
def test_rows_pair_by_their_place_only_where_settings_take_turns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], order: str, paired: bool
) -> None:
    rows = [f"{name},{100 - place}" for place, name in enumerate(order)]
    path = tmp_path / "s.csv"
    path.write_text("\n".join(["setting,iops", *rows, ""]))
    found = compared(capsys, path)
    assert [one["pairing"] for one in found["comparisons"]] == ["round" if paired else "none"]
    assert ("settings do not take turns in the rows: rows are not paired" in str(found["problems"])) != paired
    by_hand = compared(capsys, path, "--setting-column", "setting")
    assert by_hand["comparisons"][0]["pairing"] == found["comparisons"][0]["pairing"]


@pytest.mark.parametrize(("rounds", "paired"), [("123123", True), ("123456", False), ("135246", True)])
def test_a_column_of_rounds_pairs_rows_wherever_they_stand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rounds: str, paired: bool
) -> None:
    """One that counts runs tells their order, by which settings take turns or not."""
    rows = [f"{name},{number},{100 + int(number)}" for name, number in zip("aaabbb", rounds, strict=True)]
    (tmp_path / "s.csv").write_text("\n".join(["setting,run,iops", *rows, ""]))
    (found,) = compared(capsys, tmp_path / "s.csv")["comparisons"]
    assert (found["pairing"] == "round") == paired and found["n"] == 3


@pytest.mark.parametrize(("order", "pairing"), [("aaabbb", "none"), ("ababab", "round")])
def test_rows_of_a_table_of_markdown_pair_as_those_of_a_csv_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], order: str, pairing: str
) -> None:
    rows = [f"| {name} | {100 + place} |" for place, name in enumerate(order)]
    (tmp_path / "s.md").write_text("\n".join(["| config | IOPS |", "|---|---|", *rows, ""]))
    assert compared(capsys, tmp_path / "s.md")["comparisons"][0]["pairing"] == pairing


def test_of_an_unknown_name_neither_way_is_better_unless_it_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f"{name},{number},{(10 + 5 * (name == 'b')) * (1 + number / 100)}" for number in range(6) for name in "ab"]
    path = tmp_path / "q.csv"
    path.write_text("\n".join(["setting,round,util %", *rows]))
    unsaid = text(capsys, path)
    assert unsaid.startswith("1 higher.\n● b is higher than a in util % (+50.0 %).")
    assert (
        "! which way is better is not known of util %: give --lower-is-better 'util %' or --higher-is-better 'util %'"
        in " ".join(unsaid.split())
    )
    for direction, verdict in (("lower", "worse"), ("higher", "better")):
        said = text(capsys, path, f"--{direction}-is-better", "util %")
        assert said.startswith(f"1 {verdict}.") and "is not known" not in said


def test_which_way_is_better_can_be_said_of_two_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, level in (("old", 10), ("new", 15)):
        rows = "".join(f"{level + number / 10},{level},{level + number}\n" for number in range(6))
        (tmp_path / f"{name}.csv").write_text(f"temp/s in C,foo,iops\n{rows}")
    files = [tmp_path / "old.csv", tmp_path / "new.csv"]
    found = {one["metric"]: one["verdict"] for one in compared(capsys, *files)["comparisons"]}
    assert found == {"temp_per_s in C": "faster", "foo": "higher", "iops": "faster"}
    directions = ("--lower-is-better", "temp/s in C", "--lower-is-better", "foo", "--higher-is-better", "iops")
    found = {one["metric"]: one["verdict"] for one in compared(capsys, *files, *directions)["comparisons"]}
    assert found == {"temp_per_s in C": "worse", "foo": "worse", "iops": "faster"}


def test_a_gate_names_what_it_cannot_judge(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"{name},{n},{100 + 20 * (name == 'b') + n},{10 + 5 * (name == 'b')}" for n in range(6) for name in "ab"]
    (tmp_path / "q.csv").write_text("\n".join(["setting,round,iops,queue", *rows]))
    arguments = ["compare", str(tmp_path / "q.csv"), "--fail-on", "worse"]
    assert invoke(arguments) == 0
    why = "--fail-on leaves some out, as which way is better is not known of queue: give --lower-is-better queue"
    assert why in capsys.readouterr().err
    assert invoke([*arguments, "--lower-is-better", "queue"]) == 1
    assert "queue b worse" in capsys.readouterr().err
    assert invoke([*arguments, "--lower-is-better", "queue", "--higher-is-better", "queue"]) == 2


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("pgbench_log.20850", ("before-{}.log", "before_run{}.txt", "before_run{}.20850")),
        ("fio_clat_hist.1.log", ("before_run{}_clat_hist.1.log", "before-{}_clat_hist.2.log")),
        ("fio_lat.1.log", ("before_run{}_lat.1.log", "before-{}_clat.log")),
    ],
)
def test_files_named_by_setting_and_round_are_rounds_whatever_tool_wrote_them(
    tmp_path: Path, source: str, names: Sequence[str]
) -> None:
    for place, name in enumerate(names):
        (tmp_path / str(place)).mkdir()
        paths = [
            tmp_path / str(place) / name.format(turn).replace("before", setting)
            for setting in ("before", "after")
            for turn in (1, 2, 3)
        ]
        for path in paths:
            path.write_bytes((IMPORTED / source).read_bytes())
        found = list(iolab.compare(*paths))
        assert {(one.against, one.setting) for one in found} == {("before", "after")}
        assert max(one.judgement.n for one in found) == 3 == max(one.judgement.n_baseline or 0 for one in found)
