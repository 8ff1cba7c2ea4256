"""Directories of several runs that iolab made: show, report, history and import take them."""

import json
import shutil

from support.command_line import CommandLine

EXPERIMENT = """
title = "Reads"
machine = "model:quad-7200"
rounds = 2
seed = 1

[workloads.reads]
pattern = "sequential"
direct = false
file_size = "4MiB"
duration = "20ms"

[settings.none]
scheduler = "noop"

[settings.deadline]
scheduler = "deadline"
"""
TUNED = (
    EXPERIMENT.partition("[settings.none]")[0]
    + """
[settings.short]
read_ahead_kb = 8

[tune]
objectives = ["rate_bytes_per_s"]
trials = 6
confirm = 5

[tune.space]
read_ahead_kb = [8, 128]
"""
)


def test_what_takes_one_run_says_which_there_are(iolab: CommandLine) -> None:
    for directory, mark in (("sweep", "sweep.json"), ("tune", "tune.json"), ("search", "search.jsonl")):
        (iolab.cwd / directory).mkdir()
        (iolab.cwd / directory / mark).write_text("{}")
    for directory in ("sweep", "tune"):
        iolab("tag", directory, "x", status=2).assert_one_clear_line(
            2, "holds runs, and is none", f"iolab ls {directory}"
        )
    for command in (["tag", "search", "x"], ["history", "search"], ["compare", "search"]):
        told = iolab(*command, status=2)
        told.assert_one_clear_line(2, "is a search among commits, which has no run", "iolab show search")


def test_a_sweep_has_a_report_and_a_history_and_machines_are_told_apart(iolab: CommandLine) -> None:
    iolab.write("reads.toml", EXPERIMENT)
    machines = ("--machine", "model:quad-7200", "--machine", "model:laptop-2010")
    for name in ("first", "second"):
        iolab("sweep", "reads.toml", *machines, "--seed", "1", "--out", name)
    assert "2 machines" in iolab("show", "first").stdout
    iolab("report", "first", "-o", "sweep.html")
    page = (iolab.cwd / "sweep.html").read_text()
    assert "reads on model:quad-7200: reads" in page and "reads on model:laptop-2010: reads" in page
    found = iolab("history", "first", "second", "--metric", "iops", "--json").json()
    assert len(found["runs"]) == 4
    assert found["series"] == 4, "two settings on each of two machines"
    assert not found["problems"]
    told = iolab("show", ".", status=2).stderr
    assert "holds runs, and is none itself; name one of them: first/" in told


def test_a_tuner_shows_its_answer_and_reports_its_fresh_rounds(iolab: CommandLine) -> None:
    iolab.write("tuned.toml", TUNED)
    iolab("tune", "tuned.toml", "--out", "tuned")
    assert "On fresh rounds" in iolab("show", "tuned").stdout
    iolab("report", "tuned", "-o", "tuned.html")
    assert "read_ahead_kb" in (iolab.cwd / "tuned.html").read_text()
    assert len(iolab("history", "tuned", "--json").json()["runs"]) >= 2


def test_import_groups_names_as_compare_does(iolab: CommandLine) -> None:
    side = {"io_bytes": 4096, "iops": 1, "runtime": 1000, "total_ios": 1}
    for name in ("old-1", "old-2", "new-1", "new-2"):
        job = {"jobname": "a", "groupid": 0, "error": 0, "read": side}
        iolab.write(f"{name}.json", json.dumps({"fio version": "fio-3.33", "jobs": [job]}))
    files = [f"{name}.json" for name in ("old-1", "old-2", "new-1", "new-2")]
    said = iolab("import", *files, "--out", "run").stdout
    assert "names read as setting and round: old (2), new (2)" in said
    assert "2 settings, 2 rounds" in said
    (iolab.cwd / "all").mkdir()
    for file in files:
        shutil.move(iolab.cwd / file, iolab.cwd / "all" / file)
    assert "2 settings, 2 rounds" in iolab("import", "all", "--group-by", "(old|new)-", "--out", "other").stdout
    assert "is a run already" in iolab("import", "run", "--out", "third", status=2).stderr


def test_directories_of_files_are_settings_however_they_are_named(iolab: CommandLine) -> None:
    for kernel, values in (("6.1.0-28", (100, 101, 99)), ("6.12.6", (90, 91, 89))):
        (iolab.cwd / "res" / kernel).mkdir(parents=True)
        for number, value in enumerate(values, 1):
            (iolab.cwd / "res" / kernel / f"read-run{number}.csv").write_text(f"iops\n{value}\n")
    files = sorted(str(path.relative_to(iolab.cwd)) for path in (iolab.cwd / "res").glob("*/*"))
    for paths in (["res"], files, ["res/6.1.0-28", "res/6.12.6"]):
        found = iolab("compare", *paths, "--json").json()
        assert found["names"].startswith("directories read as settings: 6.1.0-28 (3), 6.12.6 (3)")
        (one,) = found["comparisons"]
        assert (one["against"], one["setting"]) == ("6.1.0-28", "6.12.6")
        assert (one["baseline"], one["candidate"]) == (100, 90)
    # Who groups them otherwise is obeyed, and names that end in rounds are settings as before.
    by_run = iolab("compare", "res/6.1.0-28", "res/6.12.6", "--group-by", "(run[12])", "--json", status=2)
    assert "does not match" in by_run.stderr
    for directory in ("first", "second"):
        (iolab.cwd / directory).mkdir()
    for name, place in (("old-1", "first"), ("new-1", "first"), ("old-2", "second"), ("new-2", "second")):
        (iolab.cwd / place / f"{name}.csv").write_text("iops\n100\n")
    paths = ["first/old-1.csv", "first/new-1.csv", "second/old-2.csv", "second/new-2.csv"]
    assert iolab("compare", *paths, "--json").json()["names"].startswith("names read as setting and round: old (2)")
