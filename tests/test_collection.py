"""Many runs: the index, the list, tags and notes, removal."""

import csv
import fcntl
import io
import json
import os
import shutil
import signal
import sqlite3
import sys
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from conftest import CommandLine
from fake_machine import FakeExecutor
from iolab.base.errors import InputError
from iolab.domain.collection import query
from iolab.domain.collection.hardware import hardware_id, hardware_of, unlike
from iolab.domain.summary import summarise
from iolab.files.collection import labels
from iolab.files.collection.collection import Collection
from iolab.files.collection.listing import Listing
from iolab.files.collection.run_reader import Read, read_runs
from iolab.files.store import read
from iolab.presentation.cli.invoke import invoke
from iolab.presentation.site import overview
from iolab.presentation.site import run as run_page
from support.stored import MACHINE, stored_run

SMALL = """\
title = "{title}"
rounds = 4
seed = {seed}
[target]
kind = "directory"
path = "."
[workloads.reads]
engine = "psync"
file_size = "1MiB"
duration = "1s"
[settings.plain]
[settings.fast]
cpus = [0]
"""


def small(title: str = "Small", seed: int = 7) -> str:
    return SMALL.format(title=title, seed=seed)


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Not to be written to: a test that does takes a copy."""
    parent = tmp_path_factory.mktemp("collection") / "runs"
    stored_run(parent / "old", small(), faster={"fast": 0.7})
    other = {**MACHINE, "kernel": {"release": "6.12.1"}, "hostname": "other"}
    stored_run(parent / "host-b" / "new", small("Not <b>small</b>", 8), faster={"fast": 1.5}, machine=other)
    return parent


@pytest.fixture
def runs(two_runs: Path, tmp_path: Path) -> Path:
    shutil.copytree(two_runs, tmp_path / "runs")
    return tmp_path / "runs"


def listed(directory: Path, *words: str) -> list[str]:
    collection = Collection(directory)
    collection.refresh()
    return [one.name for one in query.chosen(collection.entries, query.parse(words))]


def test_ls_has_title_date_machine_kernel_settings_and_verdicts(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["ls", str(runs)]) == 0
    head, *lines, total = capsys.readouterr().out.splitlines()
    assert head.split() == ["run", "date", "title", "machine", "kernel", "settings", "verdicts"]
    assert len(lines) == 2 and total.startswith("2 runs, 1 with a verdict of slower or worse")
    (old,) = [line for line in lines if line.startswith("old ")]
    for text in ("2023-11-14 22:13", "Small", "host", "6.1.0-test", "plain, fast", "slower"):
        assert text in old
    assert any(line.startswith("host-b/new ") for line in lines)


def test_what_is_kept_of_a_run_is_what_show_tells(runs: Path) -> None:
    collection = Collection(runs)
    collection.refresh()
    ((_, extract),) = collection.extracts([collection.entry("old")])
    summary = summarise(read(runs / "old"))
    told = {(one.metric, one.setting): (one.judgement.verdict, one.judgement.ratio) for one in summary.comparisons}
    assert {(one.metric, one.setting): (one.verdict, one.ratio) for one in extract.judged} == told
    cells = {(row.metric, setting): cell.typical for row in summary.rows for setting, cell in row.cells.items()}
    kept = {(one.metric, one.setting): one.typical for one in extract.measured}
    assert kept.items() >= cells.items()
    trials = extract.trials["reads"]["fast"]
    assert len(trials) == 4 and len({*trials}) == 4


def test_csv_and_json_have_every_run(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["ls", str(runs), "--as", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert {row["run"] for row in rows} == {"old", "host-b/new"}
    assert invoke(["ls", str(runs), "kernel:6.12", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["run"] for one in found["runs"]] == ["host-b/new"] and found["of"] == 2
    assert sum(found["runs"][0]["verdicts"].values()) > 0


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["small"], 2),
        (["title:small", "not:kernel:6.12"], 1),
        (["machine:other"], 1),
        (["verdict:slower"], 1),
        (["since:2023-11-14", "until:2023-11-14"], 2),
        (["since:2023-11-15"], 0),
        (["setting:fast state:done"], 2),
        (["nothing-like-it"], 0),
    ],
)
def test_queries(two_runs: Path, words: list[str], expected: int) -> None:
    assert len(listed(two_runs, *words)) == expected


@pytest.mark.parametrize("word", ["kernl:6", "since:yesterday"])
def test_a_wrong_word_is_one_line(two_runs: Path, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["ls", str(two_runs), word]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert word in line


@pytest.mark.parametrize("place", ["absent", "runs/old"])
def test_what_is_no_directory_of_runs_is_one_line(runs: Path, place: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["ls", str(runs.parent / place)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_the_index_follows_runs_that_come_change_and_go(runs: Path) -> None:
    assert listed(runs) == ["host-b/new", "old"] or listed(runs) == ["old", "host-b/new"]
    shutil.copytree(runs / "old", runs / "copy")
    collection = Collection(runs)
    collection.refresh()
    assert len(collection.entries) == 3 and len({one.id for one in collection.entries}) == 3
    with (runs / "copy" / "journal.jsonl").open("ab") as journal:
        journal.write(b'{"event":"torn')
    collection.refresh()
    (copy,) = [one for one in collection.entries if one.name == "copy"]
    assert any("torn" in problem for problem in copy.problems)
    shutil.rmtree(runs / "copy")
    collection.refresh()
    assert len(collection.entries) == 2


def test_many_runs_are_read_by_other_processes(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iolab.files.collection.run_reader.ALONE_MAX", 1)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    shutil.rmtree(runs / ".iolab-index", ignore_errors=True)
    assert listed(runs, "verdict:slower") == ["old"]
    assert "POLARS_MAX_THREADS" not in os.environ


def test_nothing_is_read_again_that_did_not_change(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = listed(runs)

    def refuse(*_: object) -> None:
        raise AssertionError("read again")

    monkeypatch.setattr("iolab.files.collection.run_reader.read_runs", refuse)
    assert listed(runs) == before


@pytest.mark.parametrize("damage", ["nothing there", "no database", "another format", "cut"])
def test_an_index_that_cannot_be_used_is_made_anew(runs: Path, damage: str) -> None:
    collection = Collection(runs)
    collection.refresh()
    path = collection.index_file
    for rest in path.parent.glob("*-*"):
        rest.unlink()
    if damage == "nothing there":
        path.unlink(missing_ok=True)
    elif damage == "another format":
        with sqlite3.connect(path) as db:
            db.execute("update about set format = 99")
    else:
        path.write_bytes(b"no database" * 999 if damage == "no database" else path.read_bytes()[:5000])
    assert len(listed(runs)) == 2


def test_one_unreadable_run_does_not_keep_the_others_from_being_listed(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (runs / "old" / "experiment.toml").write_text("rounds = ")
    (runs / "host-b" / "new" / "journal.jsonl").unlink()
    (runs / "host-b" / "new" / "journal.jsonl").mkdir()
    assert invoke(["ls", str(runs)]) == 0
    shown = capsys.readouterr().out
    assert shown.count("unreadable:") == 2


def test_tags_and_notes_go_where_the_run_goes(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["tag", str(runs / "old"), "nightly", "accepted"]) == 0
    assert invoke(["note", str(runs / "old"), "the fan was loud"]) == 0
    assert invoke(["tag", str(runs / "old"), "nightly", "--remove"]) == 0
    (runs / "old").rename(runs / "moved")
    capsys.readouterr()
    assert invoke(["ls", str(runs), "tag:accepted"]) == 0
    shown = capsys.readouterr().out
    assert "moved" in shown and "#accepted (the fan was loud)" in shown and "nightly" not in shown
    assert listed(runs, "loud") == ["moved"]
    assert invoke(["note", str(runs / "moved"), ""]) == 0
    assert labels.read(runs / "moved").note == ""


@pytest.mark.parametrize(
    ("arguments", "word"),
    [(["tag", "RUN", "two words"], "no tag"), (["tag", "RUN", "absent", "--remove"], "no tag absent"),
     (["note", "RUN", "two\nlines"], "one line"), (["tag", ".", "x"], "is not a run")],
)  # fmt: skip
def test_a_wrong_label_is_one_line(
    two_runs: Path, arguments: list[str], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke([str(two_runs / "old") if one == "RUN" else one for one in arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert word in line
    assert not (two_runs / "old" / "labels.json").exists()


def test_rm_asks_and_removes_only_runs(runs: Path, iolab: CommandLine) -> None:
    iolab("rm", runs / "old", status=None).assert_one_clear_line(2, "--yes")
    assert (runs / "old").is_dir()
    iolab("rm", runs / "old", runs / "host-b", "--yes", status=None).assert_one_clear_line(2, "is not a run")
    assert (runs / "old").is_dir(), "if one is refused, none is removed"
    (runs / "link").symlink_to(runs / "old")
    iolab("rm", runs / "link", "--yes", status=None).assert_one_clear_line(2, "symbolic link")
    assert "Removed" in iolab("rm", runs / "old", "--yes").stdout
    names = {path.name for path in runs.iterdir()}
    assert {"host-b", "link"} <= names and not any("old" in name for name in names)


def test_a_run_in_progress_is_shown_as_such_and_not_removed(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = runs / "old" / "journal.jsonl"
    journal.write_text("".join(journal.read_text().splitlines(keepends=True)[:-3]))
    assert listed(runs, "state:unfinished") == ["old"]
    with journal.open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert listed(runs, "state:running") == ["old"]
        collection = Collection(runs)
        collection.refresh()
        (shown,) = overview.live(collection).running
        assert (shown.run.name, shown.trials_done, shown.trials_expected) == ("old", 7, 8)
        assert [one.status for one in shown.trials] == ["ok"] * 7
        assert all(one.value for one in shown.trials) and shown.metric == "rate_bytes_per_s"
        assert {one.verdict for one in shown.judged} & {"slower", "undecided"}, "up to now"
        assert shown.left_s is not None and 0 < shown.left_s < 10
        assert invoke(["rm", str(runs / "old"), "--yes"]) == 2
        assert "is running here" in capsys.readouterr().err
    assert (runs / "old").is_dir()
    assert listed(runs, "state:running") == []


def test_a_run_that_ends_while_it_is_read_is_not_unfinished(runs: Path) -> None:
    journal = runs / "old" / "journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(lines[:-1]))
    held = journal.open("ab")
    fcntl.flock(held, fcntl.LOCK_EX)

    def read_and_end(directory: Path, names: Sequence[str], on_read: Callable[[int], None]) -> Iterator[Read]:
        yield from list(read_runs(directory, names, on_read))
        held.write(lines[-1].encode())
        held.close()

    listing = Listing(runs, read_and_end)
    listing.refresh()
    assert listing.entry("old").state == "running", "as it was when the list was begun"
    assert listed(runs, "state:done") and not listed(runs, "state:unfinished")


def test_a_run_that_ended_is_done_whoever_holds_its_journal(runs: Path) -> None:
    with (runs / "old" / "journal.jsonl").open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert listed(runs, "state:running") == []


def test_serve_answers_until_it_is_interrupted(runs: Path, iolab: CommandLine) -> None:
    with iolab.start("serve", runs, "--port", "0") as process:
        assert process.stdout is not None and process.stderr is not None
        address = process.stdout.readline().split()[1]
        with urllib.request.urlopen(f"{address}api/meta.json", timeout=60) as answer:
            assert json.load(answer)["runs"] == 2
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
        assert process.stderr.read() == "iolab: interrupted\n"


def test_serve_says_which_package_is_missing(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name.startswith("iolab.presentation.site")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert invoke(["serve", str(runs)]) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert "uvicorn" in line and "iolab[serve]" in line


def test_rm_of_several_that_a_terminal_confirms(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", lambda *_, **__: False)
    assert invoke(["rm", str(runs / "old")]) == 2
    assert "nothing was removed" in capsys.readouterr().err and (runs / "old").is_dir()
    monkeypatch.setattr("typer.confirm", lambda *_, **__: True)
    assert invoke(["rm", str(runs / "old")]) == 0
    assert not (runs / "old").exists()


def test_hardware_is_alike_whatever_the_kernel() -> None:
    facts = {"kernel": "6.1", "CPU": "A", "CPUs": "4", "memory": "15.6 GiB", "machine": "one"}
    ours = hardware_of("host", facts)
    newer = hardware_of("host", facts | {"kernel": "6.12", "memory": "15.5 GiB"})
    assert hardware_id(ours) == hardware_id(newer) and unlike(ours, newer) == []
    other = hardware_of("host", facts | {"CPU": "B", "memory": "31.2 GiB"})
    assert hardware_id(ours) != hardware_id(other)
    assert [what for what, _, _ in unlike(ours, other)] == ["CPU", "memory"]
    assert [what for what, _, _ in unlike(ours, hardware_of("model:nvme", facts))] == ["kind of machine"]
    guests = [hardware_of(f"guest:{kernel}", facts) for kernel in ("6.1", "6.12")]
    assert hardware_id(guests[0]) == hardware_id(guests[1])


def test_a_step_in_the_runs_of_a_benchmark_is_found_once_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = small().replace("rounds = 4", "rounds = 1")
    for night in range(16):
        speed = 1.0 if night < 11 else 0.8
        executor = FakeExecutor(faster={"plain": speed, "fast": speed})
        stored_run(
            tmp_path / "runs" / f"night-{night:02d}", text.replace("seed = 7", f"seed = {night}"), executor=executor
        )
    collection = Collection(tmp_path / "runs")
    collection.refresh()
    (benchmark,) = collection.benchmarks()
    assert [one.name for one in benchmark.entries] == sorted(one.name for one in benchmark.entries)
    assert collection.known_changes(benchmark) is None
    found = collection.changes(benchmark)
    slower = [one for one in found if one.metric == "rate_bytes_per_s" and one.regressed]
    assert slower and slower[0].verdict == "slower" and slower[0].after < slower[0].before
    page = overview.overview(collection)
    (row,) = page.benchmarks
    assert row.spark is not None and row.spark.setting in {one.setting for one in found if one.regressed}
    assert page.trade_offs == [], "both settings became slower: that is no trade-off"
    assert [one.since for one in run_page.page(collection, collection.entry("night-11")).changes] != []
    assert run_page.page(collection, collection.entry("night-05")).changes == []
    monkeypatch.setattr("iolab.domain.collection.benchmark.changes_of", lambda _: pytest.fail("looked at again"))
    again = Collection(tmp_path / "runs")
    again.refresh()
    assert again.changes(benchmark) == found


def test_the_line_of_a_benchmark_is_that_of_the_setting_that_moved(tmp_path: Path) -> None:
    text = small().replace("rounds = 4", "rounds = 3") + '[compare]\nmetrics = ["rate_bytes_per_s"]\n'
    for night in range(16):
        noise = 1 + (night * 7 % 5) / 1000
        speeds = {"plain": noise, "fast": (0.9 if night < 11 else 0.7) * noise}
        name = f"night-{night:02d}"
        stored_run(tmp_path / "runs" / name, text.replace("seed = 7", f"seed = {night}"), faster=speeds)
    collection = Collection(tmp_path / "runs")
    collection.refresh()
    assert overview.overview(collection).benchmarks[0].spark.setting == "plain"  # type: ignore[union-attr]
    for one in collection.benchmarks():
        collection.changes(one)
    page = overview.overview(collection)
    spark = page.benchmarks[0].spark
    assert spark is not None and spark.setting == "fast" and len(spark.typical) == len(spark.spread) == 16
    assert [row.change.setting for row in page.changes if row.change.regressed] == ["fast"]
    assert [run.name for run in page.trade_offs] == ["night-15"], "slower than the baseline, apart from regressions"


def test_an_input_error_names_a_run_that_is_not_there(two_runs: Path) -> None:
    with pytest.raises(InputError, match="no such run"):
        Collection(two_runs).entry("absent")


def test_the_kernels_are_those_that_the_settings_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "e.toml").write_text(
        "title = 'kernels'\nrounds = 1\nmachine = 'model:xpoint'\n"
        "[workloads.a]\npattern = 'random'\nfile_size = '1MiB'\nduration = '1ms'\n"
        "[settings.old]\nmachine.kernel = '5.10'\n[settings.new]\nmachine.kernel = '5.16'\n"
    )
    assert invoke(["run", str(tmp_path / "e.toml"), "--out", str(tmp_path / "runs" / "one")]) == 0
    capsys.readouterr()
    assert invoke(["ls", str(tmp_path / "runs"), "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["runs"]
    assert found["kernel"] == "5.10, 5.16"
